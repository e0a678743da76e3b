"""The three tiers of tests. Each test is in exactly one, as a marker: `fast`, `full` or `matrix`.

`make test` runs `fast`, `make test-all` also `full`, and `make test-matrix` runs `matrix`. A marker on a test or its
module decides. Without one, a test is `full` if its file is listed here, if it needs a broker or PostgreSQL, or if it
has a parameter from `vedette.papers`; all others are `fast`. A test that needs a Spark session is `full`, too; one pass
of every operator is marked `fast`.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from vedette.indexes.names import PAPER_INDEXES

TIERS = ("fast", "full", "matrix")
# Folders and files whose tests are `full`: papers, services, clusters, kills, whole examples.
FULL_PATHS = (
    "tests/benchmarks/",
    "tests/deploy/",
    "tests/kafka/",
    "tests/papers/",
    "tests/registry/test_concurrency.py",
    "tests/registry/test_host_copy.py",
    "tests/run/test_outage.py",
    "tests/run/test_remote.py",
    "tests/serve/console/",
    "tests/spark/test_following_copies.py",
    "tests/spark/test_following_modes.py",
    "tests/spark/test_following_retries.py",
    "tests/spark/test_following_state.py",
    "tests/spark/test_modes.py",
    "tests/spark/test_session_checks.py",
    "tests/spark/test_webhook_kills.py",
    "tests/test_fleet_notifications_example.py",
    "tests/test_geofence_example.py",
    "tests/test_pairs_trading_example.py",
    "tests/test_vessels_example.py",
    "tests/test_zip.py",
)
FULL_FIXTURES = frozenset({"broker", "cluster", "jars", "spark"})
ROOT = Path(__file__).parent.parent


@pytest.hookimpl(tryfirst=True)  # before -m selects
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        marked = marked_tiers(item)
        if len(marked) > 1:
            raise pytest.UsageError(f"{item.nodeid} is in several tiers: {', '.join(marked)}; mark it with one")
        if not marked:
            item.add_marker(default_tier(item))
    items.sort(key=_is_short)  # the longest files start first, so that all processes end at about the same time


def _is_short(item: pytest.Item) -> bool:
    """Whether a test is in the fast tier and needs no Spark session."""
    return "spark" not in getattr(item, "fixturenames", ()) and marked_tiers(item) == ["fast"]


def marked_tiers(item: pytest.Item) -> list[str]:
    """The tiers that a test is marked with."""
    return [tier for tier in TIERS if item.get_closest_marker(tier)]


def default_tier(item: pytest.Item) -> str:
    """The tier of a test without a marker."""
    path = item.path.as_posix().removeprefix(f"{ROOT.as_posix()}/")
    parameters = list(item.callspec.params.values()) if hasattr(item, "callspec") else []
    if (
        path.startswith(FULL_PATHS)
        or FULL_FIXTURES.intersection(getattr(item, "fixturenames", ()))
        or any(_is_postgres(value) or _is_from_a_paper(value) for value in parameters)
    ):
        return "full"
    return "fast"


def _is_postgres(parameter: object) -> bool:
    return isinstance(parameter, str) and parameter.startswith("postgres")


def _is_from_a_paper(parameter: object) -> bool:
    """Whether a parameter is a structure of `vedette.papers`, a function of one, or the name of an index of one."""
    if isinstance(parameter, partial):
        return any(_is_from_a_paper(each) for each in (parameter.func, *parameter.args))
    if isinstance(parameter, str):
        return parameter in PAPER_INDEXES
    module = getattr(getattr(parameter, "__self__", parameter), "__module__", None)
    return isinstance(module, str) and module.startswith("vedette.papers.")
