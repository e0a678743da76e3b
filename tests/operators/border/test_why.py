"""Why a key is inside a query: its last row, and what margins and dwell times leave open."""

from __future__ import annotations

import datetime as dt
import json
import random

import pytest

import vedette as vd

SCHEMA = "symbol string, price double, t bigint"


def make_monitor(**options):
    alerts = vd.QuerySet(SCHEMA)
    alerts.add("cheap", "price < 40")
    return alerts.border(key="symbol", time="t", **options)


def step(monitor, *rows):
    symbols, prices, times = zip(*rows, strict=True)
    return monitor.step({"symbol": list(symbols), "price": list(prices), "t": list(times)}, advance=False).to_pylist()


@pytest.mark.parametrize("options", [{}, {"margin": 3.0}, {"dwell": 4}, {"margin": 2.0, "dwell": 3}])
def test_a_key_is_inside_exactly_when_its_last_event_or_an_open_enter_says_so(options):
    source = random.Random(5)
    monitor = make_monitor(**options)
    inside: dict[str, bool] = {}
    for time in range(60):
        key = source.choice("ABC")
        for event in step(monitor, (key, source.uniform(36, 46), time)):
            inside[event["key"]] = event["event"] == "enter"
        why = monitor.why("cheap", key)
        is_pending = why.pending_since is not None
        assert why.holds == (inside.get(key, False) or is_pending)
        assert json.loads(json.dumps(why.to_dict()))["holds"] == why.holds


def test_a_dwell_time_a_margin_and_an_expiry_are_shown():
    monitor = make_monitor(dwell=10, margin=2.0, expire_after=100)
    step(monitor, ("A", 39.0, 3))
    pending = monitor.why("cheap", "A")
    assert (pending.pending_since, pending.enters_at, pending.expires_at) == (3, 13, 103)
    step(monitor, ("A", 39.0, 20), ("A", 41.0, 21))

    why = monitor.why("cheap", "A")

    assert (why.holds, why.last.holds, why.lingering_since) == (True, False, 21)
    first = str(why).splitlines()[0]
    assert first.startswith("key 'A' is inside query 'cheap': outside since 21, but within the margin; ")
    assert first.endswith("without another row it leaves after 121")


def test_a_key_that_was_silent_for_too_long_for_a_query_is_outside_it():
    queries = vd.QuerySet("k string, x double, t bigint")
    queries.add_many(["short", "long"], ["x < 10"] * 2, expire_after=[5, 50])
    monitor = queries.border(key="k", time="t")
    monitor.step({"k": ["a", "b"], "x": [1.0, 99.0], "t": [0, 20]})
    short, long = monitor.why("short", "a"), monitor.why("long", "a")
    assert (short.holds, short.expired_at, short.expires_at) == (False, 5, None)
    assert (long.holds, long.expired_at, long.expires_at) == (True, None, 50)
    assert "query 'short'; it was silent for too long at 5\n" in str(short)


def test_a_cooldown_of_the_query_and_once_are_shown():
    alerts = vd.QuerySet(SCHEMA)
    alerts.add("cheap", "price < 40", cooldown=100, dwell=5)
    alerts.add("first", "price < 40", once=True)
    monitor = alerts.border(key="symbol", time="t", dwell=1000)
    step(monitor, ("A", 39.0, 3))
    assert monitor.why("cheap", "A").enters_at == 8
    step(monitor, ("A", 39.0, 10), ("A", 41.0, 11), ("A", 39.0, 12), ("A", 39.0, 20))

    why = monitor.why("cheap", "A")

    assert (why.reported_at, why.cooling_until, why.n_held_back) == (8, 108, 1)
    assert "; reported at 8, further events are held back until 108, 1 so far" in str(why)
    assert why.to_dict()["cooling_until"] == 108
    other = alerts.border(key="symbol", time="t")
    step(other, ("A", 39.0, 3), ("A", 41.0, 4))
    once = other.why("first", "A")
    assert (once.reported_at, once.cooling_until, once.n_held_back) == (3, None, 1)


def test_a_next_row_shows_the_move():
    monitor = make_monitor()
    step(monitor, ("A", 41.0, 1))

    why = monitor.why("cheap", "A", {"price": 39.0})

    assert (why.move, why.holds, why.next.holds) == ("enter", False, True)
    assert monitor.why("cheap", "A", {"price": 45.0}).move is None
    assert why.to_dict()["next"]["condition"]["detail"] == "price is 39, 1 below 40"


def test_times_are_those_of_the_rows_and_saved_states_answer_too():
    alerts = vd.QuerySet("symbol string, price double, ts timestamp")
    alerts.add("cheap", "price < 40")
    monitor = alerts.border(key="symbol", time="ts", dwell="5 minutes")
    moment = dt.datetime(2026, 3, 2, 14, tzinfo=dt.UTC)
    monitor.step({"symbol": ["IBM"], "price": [39.0], "ts": [moment]})
    other = alerts.border(key="symbol", time="ts", dwell="5 minutes")

    other.load(monitor.save())

    assert other.why("cheap", "IBM").enters_at == moment + dt.timedelta(minutes=5)
    assert str(other.why("cheap", "IBM")) == str(monitor.why("cheap", "IBM"))


def test_an_unknown_key_and_an_unknown_query_are_refused():
    monitor = make_monitor()

    with pytest.raises(vd.RowError, match="key 'A' has no row in this monitor; it has 0 keys"):
        monitor.why("cheap", "A")
    with pytest.raises(vd.QueryError, match="no query 'dear'"):
        monitor.why("dear", "A")
