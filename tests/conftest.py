"""What tests share: one Spark session for all that need one in this process."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings
from hypothesis.internal.conjecture import providers

from tests.services import pytest_sessionfinish, pytest_terminal_summary, pytest_testnodedown  # noqa: F401  hooks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Compiling a kernel takes seconds, so an example's first run says nothing about its time; and without compiling, a few
# examples find what reads beyond an array. They are the same in every run, so that a test fails only for a change;
# HYPOTHESIS_PROFILE=hunt make test looks for others, and for more of them.
IS_COMPILED = os.environ.get("NUMBA_DISABLE_JIT", "0") == "0"
settings.register_profile("default", deadline=None, derandomize=True, max_examples=100 if IS_COMPILED else 25)
settings.register_profile("hunt", deadline=None, max_examples=5000)
PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "default")
settings.load_profile(PROFILE)

# Newer versions of Hypothesis also try the literals of all our modules that happen to be loaded: which those are
# depends on the tests that ran before.
if PROFILE == "default" and hasattr(providers, "is_local_module_file"):
    providers.is_local_module_file = lambda path: False


@pytest.fixture(autouse=True)
def logs_are_heard() -> None:
    """Commands that ran in this process before may have put all logs to silence."""
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


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    from vedette import spark as vs

    session = vs.session("vedette tests", master="local[2]", log_level="OFF")
    yield session
    session.stop()
