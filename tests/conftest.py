"""Shared by all tests: Hypothesis profile, tiers, options of Java, settings, and one Spark session per process."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

from tests.java_options import use_fast_java
from tests.profiles import load_profile
from tests.services import pytest_sessionfinish, pytest_terminal_summary, pytest_testnodedown  # noqa: F401  hooks
from tests.tiers import pytest_collection_modifyitems  # noqa: F401  hook

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

load_profile()
use_fast_java()


@pytest.fixture(autouse=True)
def enable_logs() -> None:
    """Commands that ran in this process before may have disabled logging."""
    logging.disable(logging.NOTSET)


@pytest.fixture
def set_limits(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Changes settings of this process for one test: `set_limits(max_terms=5)`."""
    from vedette.settings import settings as read_settings

    def change(**limits: int) -> None:
        for name, value in limits.items():
            monkeypatch.setenv(f"VEDETTE_{name.upper()}", str(value))
        read_settings.cache_clear()

    yield change
    monkeypatch.undo()
    read_settings.cache_clear()


SUMMARY = re.compile(r"^vedette: (.*), \d+\.\d s\n\Z", re.MULTILINE)
Run = Callable[..., tuple[int | str, str, str]]


@pytest.fixture
def run(run_with_summary: Run) -> Run:
    """Runs a command: exit code, standard output, and standard error without the summary line."""

    def run_command(*arguments: object) -> tuple[int | str, str, str]:
        code, out, err = run_with_summary(*arguments)
        return code, out, SUMMARY.sub("", err)

    return run_command


@pytest.fixture
def summary_of(run_with_summary: Run) -> Callable[..., str]:
    """Runs a command that succeeds: its summary line, without the time."""

    def run_command(*arguments: object) -> str:
        code, _, err = run_with_summary(*arguments)
        assert code == 0, err
        found = SUMMARY.search(err)
        assert found is not None, err
        return found[1]

    return run_command


@pytest.fixture
def run_with_summary(monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]) -> Run:
    """Runs a command: exit code, standard output and standard error."""
    from vedette.cli import main

    def run_command(*arguments: object) -> tuple[int | str, str, str]:
        monkeypatch.setattr(sys, "argv", ["vedette", *map(str, arguments)])
        code: int | str = 0
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
        sys.stdout.flush()
        written = capfdbinary.readouterr()
        return code, written.out.decode(), written.err.decode()

    return run_command


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    from vedette import spark as vs

    session = vs.session("vedette tests", master="local[2]", log_level="OFF")
    yield session
    session.stop()
