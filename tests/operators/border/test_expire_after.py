"""Queries with different `expire_after`: each is answered as if the monitor had its own, for any batches."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from operators.border import test_now
from operators.border.border_model import by_key, from_table
from operators.border.test_now import MINUTE, moment, table_of

import vedette as vd
from vedette.operators.border.stored_state import StoredBorder
from vedette.operators.state import from_bytes, to_bytes

minutes = st.none() | st.integers(1, 8).map(lambda each: f"{each} minutes")
alone = st.fixed_dictionaries(
    {},
    optional={
        "dwell": st.sampled_from(["1 minutes", "3 minutes"]),
        "cooldown": st.sampled_from(["2 minutes", "5 minutes"]),
        "once": st.just(True),
        "cross": st.just(True),
    },
)


def run(monitor, rows, sizes, times):
    """The events of rows in time order, in batches of some sizes, and with some calls of `advance` between."""
    events, end, now = [], 0, 0
    for size, time in zip(sizes, times, strict=False):
        batch, end = rows[end : end + size], end + size
        events += test_now.from_table(monitor.step(table_of(batch)))
        now = max([now, *(row["t"] for row in batch)])
        if time is not None:
            following = rows[end]["t"] if end < len(rows) else 40 * MINUTE
            events += test_now.from_table(monitor.advance(moment(min(now // MINUTE + time, following // MINUTE))))
    return (
        events
        + test_now.from_table(monitor.step(table_of(rows[end:])))
        + test_now.from_table(monitor.advance(moment(60)))
    )


calls = st.lists(st.none() | st.integers(0, 5), min_size=8, max_size=8)
queries_of = st.dictionaries(st.sampled_from(["q1", "q2", "q3"]), st.tuples(test_now.conditions, minutes), min_size=2)


@given(queries_of, st.lists(test_now.rows, max_size=10), alone, minutes, st.data())
def test_a_query_is_answered_as_if_its_silence_were_that_of_the_monitor(queries, rows, options, default, data):
    rows = sorted(rows, key=lambda row: row["t"])
    sizes, times = [data.draw(st.integers(1, 4)) for _ in range(8)], data.draw(calls)
    mixed = vd.QuerySet(test_now.SCHEMA)
    for name, ((text, _), own) in queries.items():
        mixed.add(name, text, **({} if own is None else {"expire_after": own}))
    found = run(mixed.border(key="k", time="t", expire_after=default, **options), rows, sizes, times)
    for name, ((text, _), own) in queries.items():
        single = vd.QuerySet(test_now.SCHEMA)
        single.add(name, text)
        expected = run(single.border(key="k", time="t", expire_after=own or default, **options), rows, sizes, times)
        assert by_key([event for event in found if event[2] == name]) == by_key(expected)


@given(queries_of, st.lists(test_now.rows, max_size=10), alone, minutes, st.data())
def test_events_with_now_do_not_depend_on_batches(queries, rows, options, default, data):
    rows = sorted(rows, key=lambda row: row["t"])
    mixed = vd.QuerySet(test_now.SCHEMA)
    for name, ((text, _), own) in queries.items():
        mixed.add(name, text, **({} if own is None else {"expire_after": own}))
    answers = []
    for _ in range(2):
        monitor = mixed.border(key="k", time="t", expire_after=default, **options)
        answers.append(by_key(run(monitor, rows, [data.draw(st.integers(1, 4)) for _ in range(8)], data.draw(calls))))
    assert answers[0] == answers[1]


def make(**silences):
    queries = vd.QuerySet("k string, x double, t bigint")
    for name, own in silences.items():
        queries.add(name, "x < 1", **({} if own is None else {"expire_after": own}))
    return queries


def step(monitor, *rows):
    table = {name: [row[place] for row in rows] for place, name in enumerate("kxt")}
    return [event[:4] for event in from_table(monitor.step(table))]


def test_a_key_leaves_each_query_after_its_own_silence_and_enters_it_again():
    monitor = make(short=5, long=20, never=None).border(key="k", time="t")
    step(monitor, ("a", 0.0, 0))
    assert step(monitor, ("b", 5.0, 10)) == [("a", 5, "short", "exit")]
    assert step(monitor, ("b", 5.0, 12)) == []
    assert step(monitor, ("a", 0.0, 15)) == [("a", 15, "short", "enter")]
    assert from_table(monitor.advance(100)) == [
        ("a", 20, "short", "exit", "expired"),
        ("a", 35, "long", "exit", "expired"),
    ]
    assert monitor.n_keys == 2  # a query that keys never leave by silence keeps them
    assert step(monitor, ("a", 5.0, 200)) == [("a", 200, "never", "exit")]


@pytest.mark.parametrize("sizes", [[5], [3, 1, 1], [1] * 5], ids=str)
@pytest.mark.parametrize("now", [None, 35], ids=["rows", "advance"])
def test_a_cooldown_holds_back_the_delayed_enter_of_a_silent_key(sizes, now):
    queries = make(never=None)
    queries.add("short", "x > 100", expire_after=3)
    queries.add("slow", "x < 1", expire_after=20, dwell=1, cooldown=4)
    monitor, end, events = queries.border(key="k", time="t"), 0, []
    rows = [("a", 0.0, 28), ("a", 5.0, 29), ("a", 0.0, 31), ("b", 5.0, 35), ("a", 5.0, 36)]
    for size in sizes:
        events += step(monitor, *rows[end : end + size])
        end += size
        if end == 3 and now is not None:
            events += [event[:4] for event in from_table(monitor.advance(now))]
    mine = [event for event in events if event[2] == "slow"]
    assert mine == [("a", 29, "slow", "enter"), ("a", 29, "slow", "exit")]  # not the enter at 32, nor its exit


def test_keys_are_forgotten_after_the_longest_silence():
    monitor = make(short=5, long=20).border(key="k", time="t")
    step(monitor, ("a", 0.0, 0))
    monitor.advance(20)
    assert monitor.n_keys == 1
    monitor.advance(21)
    assert (monitor.n_keys, len(monitor.cooling)) == (0, 0)


def test_a_silent_key_is_matched_only_when_it_may_leave_a_query(monkeypatch):
    queries = make(**{f"q{number}": number for number in range(10, 1000)})
    queries.add("far", "x > 100", expire_after=1)
    monitor = queries.border(key="k", time="t")
    step(monitor, ("a", 5.0, 0))
    judged = []
    find = monitor.silent.find_due if monitor.silent else None
    assert find is not None
    monkeypatch.setattr(monitor.silent, "find_due", lambda *given: judged.append(len(find(*given))) or find(*given))
    for now in range(1, 900):
        assert monitor.advance(now).num_rows == 0
    assert sum(judged) == 1  # after the shortest silence; it is inside no query


def test_a_replaced_query_is_left_after_the_silence_that_it_had():
    queries = make(low=5, other=50)
    monitor = queries.border(key="k", time="t")
    step(monitor, ("a", 0.0, 0), ("b", 0.0, 0))
    queries.replace("low", "x < 2", expire_after=30)
    queries.remove("other")
    events = from_table(monitor.advance(10))
    assert sorted(events) == [(key, 5, "low", "exit", "replaced") for key in "ab"]
    events = from_table(monitor.step({"k": ["a"], "x": [0.0], "t": [20]}))
    assert sorted(events, key=str) == [("a", 20, "low", "enter", "first"), ("a", 20, "other", "exit", "removed")]
    assert (
        from_table(monitor.advance(100))
        == [
            ("b", 30, "other", "exit", "removed"),  # its own silence is longer than that of any active query
            ("a", 50, "low", "exit", "expired"),
        ]
        or sorted(from_table(monitor.advance(100))) == []
    )


def test_a_silent_key_keeps_the_default_under_which_it_had_its_last_row():
    queries = make(own=3, default=None, never=1000)
    monitor = queries.border(key="k", time="t", expire_after=10)
    assert step(monitor, ("a", 0.0, 0), ("b", 0.0, 8))[3:4] == [("b", 8, "own", "enter")]
    assert [event[:3] for event in from_table(monitor.advance(12))] == [
        ("a", 10, "default"),
        ("b", 11, "own"),
    ]
    for default in (5, 20, None):
        later = queries.border(key="k", time="t", expire_after=default)
        later.load(monitor.save())
        assert [event[:4] for event in from_table(later.advance(19))] == [("b", 18, "default", "exit")]
        assert [event[:4] for event in step(later, ("a", 0.0, 20))] == [
            ("a", 20, "own", "enter"),
            ("a", 20, "default", "enter"),
        ]
        later.advance(500)
        left = 1 if default is None else 0
        assert step(later, ("a", 5.0, 600)) == [("a", 600, "default", "exit")] * left + [("a", 600, "never", "exit")]


def test_a_state_that_is_divided_and_joined_knows_what_keys_have_left():
    queries = make(short=5, long=20, never=None)
    monitor = queries.border(key="k", time="t")
    assert ("a", 5, "short", "exit") in step(monitor, ("a", 0.0, 0), ("b", 0.0, 7))
    stored, content = StoredBorder(), from_bytes("border state", monitor.save())
    shards = [stored.pick(content, lambda _, keys, n=n: np.flatnonzero(np.arange(len(keys)) % 2 == n)) for n in (0, 1)]
    uniform = vd.QuerySet.from_bytes(queries.to_bytes()).border(key="k", time="t")
    for whole in (stored.unite(shards), stored.unite([*shards, from_bytes("border state", uniform.save())])):
        uniform.load(to_bytes("border state", whole))
        assert sorted(from_table(uniform.advance(50))) == [
            ("a", 20, "long", "exit", "expired"),
            ("b", 12, "short", "exit", "expired"),
            ("b", 27, "long", "exit", "expired"),
        ]


def test_a_monitor_whose_queries_begin_to_differ_goes_on_with_its_keys():
    queries = make(first=5)
    monitor = queries.border(key="k", time="t")
    step(monitor, ("a", 0.0, 0), ("b", 0.0, 2))
    queries.add("second", "x < 1", expire_after=2)
    assert step(monitor, ("b", 0.0, 4)) == [("b", 4, "second", "enter")]
    assert sorted(step(monitor, ("c", 0.0, 8))) == [
        ("a", 5, "first", "exit"),
        ("b", 6, "second", "exit"),
        ("c", 8, "first", "enter"),
        ("c", 8, "second", "enter"),
    ]


def test_events_of_a_silent_key_have_its_columns_and_distinct_ids():
    queries = make(short=5, long=20, never=None)
    rows = {"k": ["a", "b", "a"], "x": [0.0, 5.0, 0.0], "t": [0, 6, 30], "note": ["one", "two", "three"]}
    whole, cut = (queries.border(key="k", time="t", columns=["note"]) for _ in range(2))
    events = whole.step(rows).to_pylist()
    pieces = [cut.step({name: values[each : each + 1] for name, values in rows.items()}) for each in range(3)]
    found = [event for table in pieces for event in table.to_pylist()]
    assert sorted(found, key=str) == sorted(events, key=str)
    assert len({event["event_id"] for event in events}) == len(events)
    assert {event["note"] for event in events if event["event"] == "exit"} == {"one"}


@pytest.mark.parametrize("schema", ["k string, x double, t double", "k string, x double, t timestamp"])
def test_other_types_of_times(schema):
    queries = vd.QuerySet(schema)
    is_time = schema.endswith("timestamp")
    own = [f"{each} seconds" if is_time else each for each in (0.25 if not is_time else 1, 20)]
    queries.add_many(["short", "long"], ["x < 1"] * 2, expire_after=own)
    queries.add("never", "x < 1")
    times = [dt.datetime(2026, 1, 1), dt.datetime(2026, 1, 1, 0, 0, 30)] if is_time else [0.5, 30.0]
    monitor = queries.border(key="k", time="t")
    events = monitor.step({"k": ["a", "a"], "x": [0.0, 5.0], "t": times}).to_pylist()
    assert [(event["query"], event["event"]) for event in events[3:]] == [
        ("short", "exit"),
        ("long", "exit"),
        ("never", "exit"),
    ]


@pytest.mark.parametrize("own", [{"a": 10}, {"a": 10, "b": 20}, {}])
@pytest.mark.parametrize("default", [None, 15])
@pytest.mark.parametrize("late", ["drop", "apply"])
def test_silences_beyond_the_range_of_doubles_are_long(own, default, late):
    queries = vd.QuerySet("k string, x double, t double")
    for name in ("a", "b"):
        queries.add(name, "x > 0", expire_after=own.get(name))
    expires = {name: own.get(name, default) is not None for name in ("a", "b")}
    low, high = -1.7e308, 1.7e308

    def events(table):
        return sorted((each["query"], each["time"], each["event"]) for each in table.to_pylist())

    left = [(name, low, "exit") for name in expires if expires[name]]  # low + 10 is low
    stepped = queries.border(key="k", time="t", expire_after=default, late=late)
    stepped.step({"k": ["z"], "x": [1.0], "t": [low]})
    again = [(name, high, "enter") for name in expires if expires[name]]
    assert events(stepped.step({"k": ["z"], "x": [1.0], "t": [high]})) == sorted(left + again)
    advanced = queries.border(key="k", time="t", expire_after=default, late=late)
    advanced.step({"k": ["z"], "x": [1.0], "t": [low]})
    assert events(advanced.advance(high)) == left
