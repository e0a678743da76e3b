"""The three tiers of tests. Each test is in exactly one, as a marker: `fast`, `full` or `matrix`.

`make test` runs `fast`, `make test-all` runs `full`, and `make test-matrix` runs `matrix`. A marker on a test or its
module decides. Without one, a test that needs a broker or PostgreSQL, or is in a folder listed here, is `full`; others
are `fast`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

TIERS = ("fast", "full", "matrix")
FULL_FOLDERS = ("tests/benchmarks/", "tests/kafka/", "tests/papers/")
FULL_FIXTURES = frozenset({"broker", "jars"})
ROOT = Path(__file__).parent.parent


@pytest.hookimpl(tryfirst=True)  # before -m selects
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        marked = marked_tiers(item)
        if len(marked) > 1:
            raise pytest.UsageError(f"{item.nodeid} is in several tiers: {', '.join(marked)}; mark it with one")
        if not marked:
            item.add_marker(default_tier(item))


def marked_tiers(item: pytest.Item) -> list[str]:
    """The tiers that a test is marked with."""
    return [tier for tier in TIERS if item.get_closest_marker(tier)]


def default_tier(item: pytest.Item) -> str:
    """The tier of a test without a marker."""
    path = item.path.as_posix().removeprefix(f"{ROOT.as_posix()}/")
    needs_service = FULL_FIXTURES.intersection(getattr(item, "fixturenames", ()))
    parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
    is_postgres = any(isinstance(value, str) and value == "postgres" for value in parameters)
    if needs_service or is_postgres or path.startswith(FULL_FOLDERS):
        return "full"
    return "fast"
