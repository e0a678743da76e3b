"""What tests say of the services that they need, a broker or a database: with which they ran, or why they did not.

It is told at the end of the run, also of those in processes of their own.
"""

from __future__ import annotations

from typing import Any

import pytest

TOLD: set[str] = set()


def pytest_sessionfinish(session: Any) -> None:
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["services"] = sorted(TOLD)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    TOLD.update(getattr(node, "workeroutput", {}).get("services", []))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    for told in sorted(TOLD):
        terminalreporter.write_line(told)
