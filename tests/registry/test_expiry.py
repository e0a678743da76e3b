"""Queries that expire: the first call after their expiry ends them, all under one version."""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable
from typing import Any

import pytest

import vedette as vd
from vedette.registry.write.locked_set import LockedSet


@pytest.fixture
def alerts(registry: vd.Registry) -> vd.Registry:
    registry.create("alerts", schema="price double")
    registry.add_many("alerts", ["a", "b"], ["price < 1", "price < 2"], ttl="10 seconds")
    registry.add("alerts", "c", "price < 3", ttl="1 hour")
    registry.add("alerts", "d", "price < 4")
    return registry


@pytest.fixture(autouse=True)
def _clock(clock: Any) -> None:
    """Before the first query is added."""


def test_the_next_call_ends_expired_queries_under_one_version(alerts: vd.Registry, clock: Any) -> None:
    clock.advance(9.999)
    assert alerts.set("alerts").n_active == len(alerts.list("alerts")) == 4

    clock.advance(0.001)

    assert [each.id for each in alerts.list("alerts")] == ["c", "d"]
    assert [query_id for piece in alerts.active("alerts") for query_id in piece.added_ids] == ["c", "d"]
    changes = alerts.changes("alerts", since=3)
    assert changes.versions.tolist() == [4]
    assert (sorted(changes.removed_ids), changes.added_ids) == (["a", "b"], [])
    assert alerts.set("alerts").n_active == 2


@pytest.mark.parametrize(
    "come",
    [
        lambda registry: registry.list("alerts"),
        lambda registry: registry.changes("alerts", since=0),
        lambda registry: registry.pin("p", 1, "alerts"),
        lambda registry: registry.history("alerts", "d"),
        lambda registry: list(registry.active("alerts")),
        lambda registry: registry.end_due("alerts"),
    ],
    ids=["list", "changes", "pin", "history", "active", "end_due"],
)
def test_every_read_ends_expired_queries(alerts: vd.Registry, clock: Any, come: Callable[[vd.Registry], Any]) -> None:
    clock.advance(11)

    come(alerts)

    assert alerts.set("alerts").version == 4
    come(alerts)
    assert alerts.set("alerts").version == 4


def test_reading_a_version_does_not_end_expired_queries(alerts: vd.Registry, clock: Any) -> None:
    clock.advance(11)

    assert [query_id for piece in alerts.active("alerts", at=1) for query_id in piece.added_ids] == ["a", "b"]
    assert alerts.set("alerts").version == 3


def test_a_reader_does_not_wait_for_a_writer_even_if_queries_have_expired(
    alerts: vd.Registry, open_registry: Callable[..., vd.Registry], clock: Any
) -> None:
    reader = open_registry(retry_seconds=60)
    info = alerts.set("alerts")
    clock.advance(11)

    def change_for_long(connection: Any) -> tuple[list[Any], float]:
        LockedSet(alerts.database, connection, info)
        start = time.monotonic()
        found = [
            [each.id for each in reader.list("alerts")],
            reader.changes("alerts", since=0).added_ids,
            [query_id for piece in reader.active("alerts") for query_id in piece.added_ids],
        ]
        return found, time.monotonic() - start

    found, seconds = alerts.database.write(change_for_long)

    assert found == [["a", "b", "c", "d"]] * 3  # the set was locked, so they are still active
    assert seconds < 30
    assert [each.id for each in reader.list("alerts")] == ["c", "d"]


def test_a_change_first_ends_expired_queries_so_their_ids_can_be_added(alerts: vd.Registry, clock: Any) -> None:
    clock.advance(11)

    assert alerts.add("alerts", "a", "price < 9", expect_version=3) == 5

    assert [each.state for each in alerts.history("alerts", "a")] == ["expired", "active"]
    with pytest.raises(vd.QueryError, match="no query 'b' in set 'alerts'"):
        alerts.remove("alerts", "b")


def test_an_expired_query_cannot_be_replaced(alerts: vd.Registry, clock: Any) -> None:
    clock.advance(11)

    with pytest.raises(vd.QueryError, match="no query 'a' in set 'alerts'"):
        alerts.replace("alerts", "a", ttl="1 hour")

    assert alerts.replace("alerts", "c", expires_at="never") == 5


def test_a_query_that_is_added_after_its_expiry_is_in_the_changes(alerts: vd.Registry, clock: Any) -> None:
    past = alerts.get("alerts", "d").created_at

    alerts.add("alerts", "late", "price < 5", expires_at=past)

    assert [each.id for each in alerts.list("alerts", prefix="l")] == []
    changes = alerts.changes("alerts", since=3)
    assert (changes.added_ids, changes.removed_ids, changes.versions.tolist()) == (["late"], ["late"], [4, 5])


def test_expiry_uses_the_clock_of_the_database(registry: vd.Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    registry.create("alerts", schema="price double")
    registry.add("alerts", "short", "price < 1", ttl="0.3 seconds")
    registry.add("alerts", "long", "price < 1", ttl="1 hour")
    until = time.monotonic() + 60

    while len(ids := [each.id for each in registry.list("alerts")]) > 1:
        assert time.monotonic() < until
        time.sleep(0.05)

    assert ids == ["long"]


@pytest.mark.parametrize(
    ("end", "message"),
    [
        ({"expires_at": "0001-01-01T00:00:00+14:00"}, "between the years 1 and 9999 in UTC"),
        ({"expires_at": "9999-12-31T23:59:59-14:00"}, "between the years 1 and 9999 in UTC"),
        ({"ttl": datetime.timedelta.max}, "3,000 years at most"),
    ],
)
def test_an_expiry_outside_the_range_of_datetime_is_refused(
    registry: vd.Registry, end: dict[str, Any], message: str
) -> None:
    registry.create("alerts", schema="price double")
    given = {name: datetime.datetime.fromisoformat(each) if name != "ttl" else each for name, each in end.items()}

    with pytest.raises(vd.QueryError, match=message):
        registry.add("alerts", "a", "price < 1", **given)

    last = datetime.datetime.max.replace(tzinfo=datetime.UTC)
    registry.add("alerts", "a", "price < 1", expires_at=last)
    registry.add("alerts", "b", "price < 1", ttl="1000000 days")
    assert [query.id for query in registry.list("alerts")] == ["a", "b"]
    assert registry.get("alerts", "a").expires_at == last
