"""Reports which services (broker, database) the tests ran with, or why they were skipped.

The report is printed at the end of the run and includes tests of other xdist workers.
"""

from __future__ import annotations

from typing import Any

import pytest

REPORTED: set[str] = set()


def pytest_sessionfinish(session: Any) -> None:
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["services"] = sorted(REPORTED)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    REPORTED.update(getattr(node, "workeroutput", {}).get("services", []))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    for line in sorted(REPORTED):
        terminalreporter.write_line(line)
