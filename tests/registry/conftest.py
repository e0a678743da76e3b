"""Every test of the registry runs on SQLite and on PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import postgres
import pytest
from sqlalchemy import BigInteger, literal

import vedette as vd
from vedette.registry.store.database import Database


@pytest.fixture(scope="session")
def cluster() -> postgres.Cluster:
    """The PostgreSQL of this session; without it, the test is skipped with the reason."""
    try:
        return postgres.cluster()
    except postgres.UnavailableError as reason:
        pytest.skip(f"not run on PostgreSQL: {reason}")


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of an empty database."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'registry.db'}"
        return
    cluster = request.getfixturevalue("cluster")
    made = cluster.new_database()
    yield made
    cluster.drop_database(made)


@pytest.fixture
def open_registry(url: str) -> Iterator[Callable[..., vd.Registry]]:
    """Opens the registry once more, as another process would."""
    opened: list[vd.Registry] = []

    def open_(**options: object) -> vd.Registry:
        opened.append(vd.Registry(url, **{"retry_seconds": 200} | options))  # type: ignore[arg-type]
        return opened[-1]

    yield open_
    for each in opened:
        each.close()


@pytest.fixture
def registry(open_registry: Callable[..., vd.Registry]) -> vd.Registry:
    return open_registry()


class Clock:
    """A clock of the database that a test controls."""

    def __init__(self) -> None:
        self.microseconds = 1_700_000_000_000_000

    def advance(self, seconds: float) -> None:
        self.microseconds += round(seconds * 1_000_000)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(Database, "now", lambda self, connection: made.microseconds)
    monkeypatch.setattr(Database, "clock", lambda self: literal(made.microseconds, BigInteger))
    return made
