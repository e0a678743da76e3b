"""Shared by all tests: Hypothesis profile, tiers, settings, and one Spark session per process."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

from tests.profiles import load_profile
from tests.services import pytest_sessionfinish, pytest_terminal_summary, pytest_testnodedown  # noqa: F401  hooks
from tests.tiers import pytest_collection_modifyitems  # noqa: F401  hook

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

load_profile()


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


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    from vedette import spark as vs

    session = vs.session("vedette tests", master="local[2]", log_level="OFF")
    yield session
    session.stop()
