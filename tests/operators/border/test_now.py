"""Border monitoring with now(): events when time passes keys that are silent."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from operators.border.border_model import by_key
from operators.border.now_model import MINUTE, NowModel

import vedette as vd
from vedette.operators.border.moving_bounds import MovingBounds
from vedette.operators.border.stored_state import StoredBorder
from vedette.operators.state import from_bytes, to_bytes

SCHEMA = "k string, x bigint, seen timestamp, t timestamp"
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def moment(minutes):
    return EPOCH + dt.timedelta(minutes=minutes)


def micros(time):
    return (time - EPOCH) // dt.timedelta(microseconds=1)


def table_of(rows):
    return {
        "k": [row["k"] for row in rows],
        "x": [row["x"] for row in rows],
        "seen": [None if row["seen"] is None else EPOCH + dt.timedelta(microseconds=row["seen"]) for row in rows],
        "t": [EPOCH + dt.timedelta(microseconds=row["t"]) for row in rows],
    }


def from_table(table):
    return [(e["key"], micros(e["time"]), e["query"], e["event"], e["reason"]) for e in table.to_pylist()]


# Conditions as texts and as functions of a row and a moment; None is unknown.
FIELDS = st.sampled_from(["t", "seen"])
OPERATORS = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
}


@st.composite
def moving(draw):
    field, op, minutes = draw(FIELDS), draw(st.sampled_from(sorted(OPERATORS))), draw(st.integers(-2, 4))
    compare = OPERATORS[op]

    def holds(row, now):
        return None if row[field] is None else compare(row[field], now - minutes * MINUTE)

    sign = "-" if minutes >= 0 else "+"
    return f"{field} {op} now() {sign} INTERVAL {abs(minutes)} MINUTES", holds


@st.composite
def fixed(draw):
    number = draw(st.integers(0, 3))
    if draw(st.booleans()):
        return f"x < {number}", lambda row, now: None if row["x"] is None else row["x"] < number
    minutes = draw(st.integers(0, 20))
    text = f"now() >= TIMESTAMP '{moment(minutes):%Y-%m-%d %H:%M:%S}'"
    return text, lambda row, now: now >= minutes * MINUTE


def both(parts):
    (a, one), (b, other) = parts

    def holds(row, now):
        values = {one(row, now), other(row, now)}
        return False if False in values else None if None in values else True

    return f"({a} AND {b})", holds


def either(parts):
    (a, one), (b, other) = parts

    def holds(row, now):
        values = {one(row, now), other(row, now)}
        return True if True in values else None if None in values else False

    return f"({a} OR {b})", holds


def negated(part):
    text, one = part
    return f"NOT {text}", lambda row, now: None if one(row, now) is None else not one(row, now)


leaves = st.one_of(moving(), moving(), fixed())
conditions = st.recursive(
    leaves,
    lambda inner: st.one_of(st.tuples(inner, inner).map(both), st.tuples(inner, inner).map(either), inner.map(negated)),
    max_leaves=3,
)

rows = st.fixed_dictionaries(
    {
        "k": st.sampled_from("ab"),
        "x": st.none() | st.integers(0, 3),
        "seen": st.none() | st.integers(0, 14).map(lambda each: each * MINUTE),
        "t": st.integers(0, 12).map(lambda each: each * MINUTE),
    }
)
batches = st.lists(rows, min_size=0, max_size=4)
ids = st.sampled_from(["q1", "q2", "q3"])
steps = st.lists(
    st.one_of(
        st.tuples(st.just("rows"), batches),
        st.tuples(st.just("rows"), batches),
        st.tuples(st.just("advance"), st.integers(0, 20)),
        st.tuples(st.just("set"), st.tuples(ids, conditions)),
        st.tuples(st.just("remove"), ids),
        st.tuples(st.just("reload"), st.booleans()),
    ),
    max_size=8,
)


class Pair:
    """A monitor and the model, with the same queries."""

    def __init__(self, queries, **options):
        self.set = vd.QuerySet(SCHEMA)
        self.options = options
        self.model = NowModel(**{name: _micros_of(value) for name, value in options.items()})
        for query, (text, holds) in queries.items():
            self.change(query, text, holds)
        self.monitor = self.set.border(key="k", time="t", **options)
        self.base, self.deltas = None, []

    def change(self, query, text, holds):
        self.set.replace(query, text) if query in self.set else self.set.add(query, text)
        self.model.forms[query] = lambda row, now: holds(row, now) is True

    def run(self, step):
        kind, what = step
        if kind == "set":
            self.change(what[0], *what[1])
        elif kind == "remove" and what in self.set:
            self.set.remove(what)
            del self.model.forms[what]
        elif kind == "reload":
            self.reload(what)
        elif kind == "rows":
            rows = [row | {"t": max(row["t"], self.model.reached)} for row in what]  # as advance promises
            self.check(self.monitor.step(table_of(rows)), self.model.step(rows))
        elif kind == "advance":
            self.check(self.monitor.advance(moment(what)), self.model.advance(what * MINUTE))

    def reload(self, is_delta):
        if is_delta and self.base is not None:
            self.deltas.append(self.monitor.take_delta())
        else:
            self.base, self.deltas = self.monitor.save(), []
        self.monitor = self.set.border(key="k", time="t", **self.options)
        self.monitor.load(self.base)
        for delta in self.deltas:
            self.monitor.apply_delta(delta)

    def check(self, table, expected):
        assert by_key(from_table(table)) == by_key(expected)


def _micros_of(value):
    return int(value.split()[0]) * MINUTE if isinstance(value, str) and value[0].isdigit() else value


options = st.fixed_dictionaries(
    {},
    optional={
        "late": st.sampled_from(["drop", "apply"]),
        "expire_after": st.sampled_from(["3 minutes", "6 minutes"]),
        "dwell": st.sampled_from(["1 minutes", "2 minutes"]),
    },
)


@given(st.dictionaries(ids, conditions, max_size=3), steps, options)
def test_events_are_those_of_every_query_at_every_moment(queries, steps, options):
    pair = Pair(queries, **options)
    for step in steps:
        pair.run(step)
    pair.run(("advance", 40))


@given(st.dictionaries(ids, conditions, min_size=1, max_size=3), st.lists(rows, max_size=10), st.data())
def test_events_do_not_depend_on_batches_and_on_calls_of_advance(queries, rows, data):
    rows = sorted(rows, key=lambda row: row["t"])
    whole, cut = Pair(queries), Pair(queries)
    expected = from_table(whole.monitor.step(table_of(rows))) + from_table(whole.monitor.advance(moment(30)))
    found, start = [], 0
    while start < len(rows):
        stop = data.draw(st.integers(start + 1, len(rows)))
        found += from_table(cut.monitor.step(table_of(rows[start:stop])))
        if data.draw(st.booleans()):
            latest = rows[stop]["t"] if stop < len(rows) else 20 * MINUTE
            time = data.draw(st.integers(rows[stop - 1]["t"] // MINUTE, latest // MINUTE))
            found += from_table(cut.monitor.advance(moment(time)))
        start = stop
    found += from_table(cut.monitor.advance(moment(30)))
    assert by_key(found) == by_key(expected)


def test_now_needs_timestamps_as_times():
    queries = vd.QuerySet("k string, ts timestamp, n bigint")
    queries.add("fresh", "ts > now() - INTERVAL 5 MINUTES")

    with pytest.raises(
        vd.QueryError, match=r"now\(\) is the time of the rows, which must be a timestamp; 'n' is bigint; "
    ):
        queries.border(key="k", time="n")
    monitor = queries.border(key="k", time="other")
    with pytest.raises(vd.QueryError, match="'other' is bigint"):
        monitor.step({"k": ["a"], "ts": [moment(0)], "other": [1]})
    assert monitor.n_keys == 0


def row(key, minutes, x=0):
    return {"k": key, "x": x, "seen": None, "t": minutes * MINUTE}


def test_a_step_that_is_not_finished_leaves_deadlines_as_they_were():
    pair = Pair(
        {"q1": ("t > now() - INTERVAL 2 MINUTES", lambda row, now: row["t"] > now - 2 * MINUTE)},
        expire_after="5 minutes",
    )
    pair.run(("rows", [row("a", 0), row("b", 0)]))

    pieces = pair.monitor.step_batches(table_of([row("a", 1), row("c", 9)]))
    next(pieces)
    pieces.close()
    pieces = pair.monitor.advance_batches(moment(3))
    next(pieces)
    pieces.close()

    pair.run(("advance", 3))
    pair.run(("rows", [row("a", 4)]))
    pair.run(("advance", 20))


def test_advance_examines_only_keys_that_are_due(monkeypatch):
    queries = vd.QuerySet("k bigint, ts timestamp")
    queries.add("fresh", "ts > now() - INTERVAL 5 MINUTES")
    monitor = queries.border(key="k", time="ts")
    monitor.step({"k": list(range(1000)), "ts": [moment(each % 10) for each in range(1000)]})
    examined = []
    find = MovingBounds.find

    def noting(bounds, columns, since, until):
        examined.append(len(since))
        return find(bounds, columns, since, until)

    monkeypatch.setattr(MovingBounds, "find", noting)

    assert monitor.advance(moment(6)).num_rows == 200
    assert monitor.advance(moment(6)).num_rows == 0
    assert monitor.advance(moment(7)).num_rows == 100
    assert examined == [200, 100]


def test_margins_do_not_hold_a_key_after_its_bound_has_passed():
    queries = vd.QuerySet("k string, price double, ts timestamp")
    queries.add("cheap", "price < 40 AND ts > now() - INTERVAL 5 MINUTES")
    monitor = queries.border(key="k", time="ts", margin={"price": 1.0})

    events = monitor.step({"k": ["a", "a"], "price": [39.0, 40.5], "ts": [moment(0), moment(1)]})
    assert [(e["event"], e["reason"]) for e in events.to_pylist()] == [("enter", "first")]
    events = monitor.advance(moment(9)).to_pylist()
    assert [(e["time"], e["event"], e["reason"]) for e in events] == [(moment(6), "exit", "time")]


def test_a_line_between_rows_crosses_ranges_at_the_moment_of_the_new_row():
    queries = vd.QuerySet("k string, x double, ts timestamp")
    queries.add("gate", "x BETWEEN 4 AND 6 AND ts > now() - INTERVAL 5 MINUTES")
    monitor = queries.border(key="k", time="ts", cross=True)

    events = monitor.step({"k": ["a"] * 3, "x": [0.0, 10.0, 0.0], "ts": [moment(0), moment(1), moment(20)]})

    assert [(e["time"], e["event"], e["reason"]) for e in events.to_pylist()] == [(moment(1), "cross", "moved")]


def test_states_are_merged_and_divided_with_their_deadlines():
    queries = vd.QuerySet(SCHEMA)
    queries.add("q1", "t > now() - INTERVAL 5 MINUTES")
    one, other = queries.border(key="k", time="t"), queries.border(key="k", time="t")
    one.step(table_of([row("a", 0), row("b", 1)]))
    other.step(table_of([row("c", 2)]))
    other.advance(moment(3))
    stored = StoredBorder()
    contents = [from_bytes(stored.kind, each.save()) for each in (one, other)]
    united = stored.unite(contents)
    picked = stored.pick(united, lambda part, keys: np.array([1, 2]))
    monitor = queries.border(key="k", time="t")
    monitor.load(to_bytes(stored.kind, picked))

    assert sorted(from_table(monitor.advance(moment(9)))) == [
        ("b", 6 * MINUTE, "q1", "exit", "time"),
        ("c", 7 * MINUTE, "q1", "exit", "time"),
    ]


def test_events_of_time_have_the_columns_of_the_last_row_and_the_same_id_however_they_are_emitted():
    queries = vd.QuerySet(SCHEMA)
    queries.add("fresh", "t > now() - INTERVAL 2 MINUTES")
    rows = [row("a", 0, 7), row("a", 5, 8)]
    found = []
    for advances in ([], [3], [2, 4]):
        monitor = queries.border(key="k", time="t", columns=["x"])
        events = monitor.step(table_of(rows[:1])).to_pylist()
        for minutes in advances:
            events += monitor.advance(moment(minutes)).to_pylist()
        found.append(events + monitor.step(table_of(rows[1:])).to_pylist())
    found.append(queries.border(key="k", time="t", columns=["x"]).step(table_of(rows)).to_pylist())

    assert all(each == found[0] for each in found)
    assert [(e["event"], e["reason"], e["x"]) for e in found[0]] == [
        ("enter", "first", 7),
        ("exit", "time", 7),
        ("enter", "moved", 8),
    ]
    assert len({e["event_id"] for e in found[0]}) == 3


def test_queries_may_have_options_of_their_own():
    queries = vd.QuerySet(SCHEMA)
    queries.add("calm", "t > now() - INTERVAL 2 MINUTES", cooldown="10 minutes")
    queries.add("slow", "t > now() - INTERVAL 2 MINUTES", dwell="4 minutes")
    queries.add("wide", "x < 3 AND t > now() - INTERVAL 2 MINUTES", margin=1)
    monitor = queries.border(key="k", time="t")

    events = monitor.step(table_of([row("a", 0, 2), row("a", 1, 3), row("a", 5, 2), row("a", 20, 9)]))

    assert sorted((micros(e["time"]) // MINUTE, e["query"], e["event"], e["reason"]) for e in events.to_pylist()) == [
        (0, "calm", "enter", "first"),
        (0, "wide", "enter", "first"),
        (3, "calm", "exit", "time"),
        (3, "wide", "exit", "time"),
        (5, "wide", "enter", "moved"),
        (7, "wide", "exit", "time"),
        (20, "calm", "enter", "moved"),
    ]
