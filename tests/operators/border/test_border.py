"""Border events equal those of a plain model, for any batches, changes of the set, and saves in between."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from operators.border.border_model import Model, by_key, from_table

import vedette as vd
from vedette.operators.border import changes, key_state
from vedette.queries import parts, query_set
from vedette.queries.planner import compilation

SCHEMA = "k string, s string, x double, n bigint"
MARGIN = {"x": 1.0}


def number(value):
    return value is not None and not (isinstance(value, float) and math.isnan(value))


def between(value, low, high, margin=0.0):
    return number(value) and low - margin <= value <= high + margin


def above(value, low, margin=0.0):
    return value is not None and (math.isnan(value) or (value > low if margin == 0.0 else value >= low - margin))


# A text, and the same in plain Python: of a row, two numbers, and how far x may be outside.
PREDICATES = {
    "x BETWEEN {a} AND {b}": lambda r, a, b, m: a <= b and between(r["x"], a, b, m),
    "x > {a}": lambda r, a, b, m: above(r["x"], a, m),
    "x BETWEEN {a} AND {b} AND n BETWEEN {a} AND {b}": lambda r, a, b, m: (
        a <= b and between(r["x"], a, b, m) and between(r["n"], a, b)
    ),
    "s = 'u' AND x >= {a}": lambda r, a, b, m: (
        r["s"] == "u" and (r["x"] is not None and (math.isnan(r["x"]) or r["x"] >= a - m))
    ),
    "x = {a} OR n = {b}": lambda r, a, b, m: between(r["x"], a, a, m) or r["n"] == b,
    "x >= {a} AND n > x": lambda r, a, b, m: (
        number(r["x"]) and r["x"] >= a - m and r["n"] is not None and r["n"] > r["x"]
    ),
    "n IS NULL": lambda r, a, b, m: r["n"] is None,
    "s IN ('u', 'v')": lambda r, a, b, m: r["s"] in ("u", "v"),
    "x < {a} OR x > {b}": lambda r, a, b, m: (
        (number(r["x"]) and (r["x"] < a if m == 0 else r["x"] <= a + m)) or above(r["x"], b, m)
    ),
    "1 = 1": lambda r, a, b, m: True,
    "TRUE": lambda r, a, b, m: True,
    "n <= {b}": lambda r, a, b, m: r["n"] is not None and r["n"] <= b,
    "x >= {a} AND x < {b}": lambda r, a, b, m: (
        number(r["x"]) and a < b and a - m <= r["x"] and (r["x"] < b if m == 0 else r["x"] <= b + m)
    ),
}


def form(text, a, b, margin=1.0):
    """The text, its predicate, and the predicate within the margin; a new object each time."""
    test = PREDICATES[text]
    return text.format(a=float(a), b=float(b)), (
        lambda row: test(row, a, b, 0.0),
        lambda row: test(row, a, b, margin),
    )


small = st.integers(-3, 3)
rows = st.lists(
    st.fixed_dictionaries(
        {
            "k": st.sampled_from("ABC"),
            "s": st.sampled_from(["u", "v", "w", None]),
            "x": st.one_of(small.map(float), st.sampled_from([None, math.nan, 0.5, 2.5])),
            "n": st.one_of(small, st.none()),
            "gap": st.integers(0, 4),
        }
    ),
    max_size=8,
)
query = st.tuples(st.sampled_from(sorted(PREDICATES)), small, small)
change = st.one_of(
    st.tuples(st.just("put"), st.sampled_from("pqrs"), query),
    st.tuples(st.just("remove"), st.sampled_from("pqrs"), st.none()),
    st.tuples(st.sampled_from(["compact", "save", "delta"]), st.none(), st.none()),
)
script = st.lists(st.tuples(st.lists(change, max_size=3), rows), min_size=1, max_size=5)
options = st.fixed_dictionaries(
    {},
    optional={
        "late": st.sampled_from(["drop", "apply"]),
        "expire_after": st.integers(1, 6),
        "dwell": st.integers(1, 5),
        "margin": st.just(MARGIN),
    },
)


class Pair:
    """A monitor and the model, driven together."""

    def __init__(self, options):
        self.queries = vd.QuerySet(SCHEMA)
        self.queries.add_many(["always on"], ["x IS NOT NULL"])
        self.options = options
        self.monitor = self.queries.border(key="k", time="t", **options)
        self.base, self.deltas = self.monitor.save(), []
        self.model = Model(options.get("late", "drop"), options.get("expire_after"), options.get("dwell"))
        self.model.forms["always on"] = (lambda row: row["x"] is not None,) * 2

    def apply(self, kind, name, drawn):
        if kind == "put":
            text, what = form(*drawn)
            if "margin" not in self.options:
                what = what[0], lambda row: False
            (self.queries.replace if name in self.queries else self.queries.add)(name, text)
            self.model.forms[name] = what
        elif kind == "remove":
            if name in self.queries:
                self.queries.remove(name)
                del self.model.forms[name]
        elif kind == "compact":
            self.queries.compact()
        elif kind == "save":
            blob = self.monitor.save()
            self.queries = vd.QuerySet.from_bytes(self.queries.to_bytes())
            self.monitor = self.queries.border(key="k", time="t", **self.options)
            self.monitor.load(blob)
            self.base, self.deltas = self.monitor.save(), []
        else:
            self.deltas.append(self.monitor.take_delta())
            self.monitor = self.queries.border(key="k", time="t", **self.options)
            self.monitor.load(self.base)
            for delta in self.deltas:
                self.monitor.apply_delta(delta)

    def step(self, batch, advance=True):
        types = {"k": pa.string(), "s": pa.string(), "x": pa.float64(), "n": pa.int64(), "t": pa.int64()}
        table = pa.table({name: pa.array([row[name] for row in batch], type_) for name, type_ in types.items()})
        return from_table(self.monitor.step(table, advance=advance)), self.model.step(batch, advance=advance)


def in_time(batches, shuffled):
    """The batches with times: rows of a key never go back in time, unless `shuffled`."""
    now = 0
    for changes_, batch in batches:
        timed = []
        for row in batch:
            now += row["gap"] if not shuffled or row["gap"] < 4 else -3
            timed.append({**row, "t": now})
        yield changes_, timed


@pytest.fixture(autouse=True, params=["walks", "compares"])
def small_sets(request, monkeypatch):
    """Small sets would never be compacted nor have a second part, and moves would mostly be compared."""
    monkeypatch.setattr(parts, "SMALL_PART", 2)
    monkeypatch.setattr(compilation, "SMALL_GROUP", 2)
    monkeypatch.setattr(query_set, "FEW_REMOVED", 2)
    monkeypatch.setattr(key_state, "FEW_FREED", 1)
    monkeypatch.setattr(changes, "WALK_COST", -1e9 if request.param == "walks" else 1e9)


@given(script, options, st.booleans(), st.booleans())
def test_events_equal_those_of_the_model(batches, options, shuffled, advance):
    pair = Pair(options)
    for changes_, batch in in_time(batches, shuffled):
        for each in changes_:
            pair.apply(*each)
        got, wanted = pair.step(batch, advance)
        assert by_key(got) == by_key(wanted)
    assert pair.monitor.n_late == pair.model.n_late
    assert pair.monitor.n_keys == len(pair.model.keys)


def cut_at(rows, sizes):
    """The rows in batches, of sizes that are drawn."""
    start = 0
    while start < len(rows):
        end = start + sizes()
        yield rows[start:end]
        start = end


def events_of(batches, texts, options, advance=True):
    pair = Pair(options)
    for name, (text, _) in texts.items():
        pair.queries.add(name, text)
    return by_key([event for batch in batches for event in pair.step(batch, advance)[0]])


@given(script, options, st.data())
def test_other_batches_give_the_same_events(batches, options, data):
    rows = [row for _, batch in in_time(batches, shuffled=False) for row in batch]
    texts = {name: form(*data.draw(query)) for name in "pqrs"}
    answers = [events_of(cut_at(rows, lambda: data.draw(st.integers(1, 6))), texts, options) for _ in range(2)]
    assert answers[0] == answers[1]


# Few keys and times, so that rows are often late and keys often silent for about as long as they may be.
late_row = st.fixed_dictionaries(
    {
        "k": st.sampled_from("AB"),
        "s": st.just("u"),
        "x": st.sampled_from([-1.0, 1.0, 2.5]),
        "n": st.just(0),
        "t": st.integers(0, 12),
    }
)
late_options = st.fixed_dictionaries(
    {"late": st.sampled_from(["drop", "apply", "apply"]), "expire_after": st.integers(1, 4)},
    optional={"dwell": st.integers(1, 4), "margin": st.just(MARGIN)},
)
LATE_TEXTS = {"p": form("x > {a}", 0, 0), "q": form("x BETWEEN {a} AND {b}", 0, 1)}


@given(st.lists(st.lists(late_row, max_size=4), max_size=4), late_options, st.booleans(), st.data())
def test_cutting_a_batch_in_time_order_changes_nothing_for_any_late_option(batches, options, advance, data):
    whole = [sorted(batch, key=lambda row: row["t"]) for batch in batches]
    cut = [part for batch in whole for part in cut_at(batch, lambda: data.draw(st.integers(1, 3)))]
    assert events_of(whole, LATE_TEXTS, options, advance) == events_of(cut, LATE_TEXTS, options, advance)


@given(st.lists(st.lists(late_row, max_size=4), max_size=4), late_options, st.booleans())
def test_events_of_late_rows_and_silent_keys_equal_those_of_the_model(batches, options, advance):
    pair = Pair(options)
    for name, (text, what) in LATE_TEXTS.items():
        pair.queries.add(name, text)
        pair.model.forms[name] = what if "margin" in options else (what[0], lambda row: False)
    for batch in batches:
        got, wanted = pair.step(batch, advance)
        assert by_key(got) == by_key(wanted)
    assert (pair.monitor.n_late, pair.monitor.n_keys) == (pair.model.n_late, len(pair.model.keys))


def test_a_late_row_that_is_applied_does_not_let_its_key_expire():
    zones = vd.QuerySet("k string, x double, t bigint")
    zones.add("in", "x > 0")
    for batches in ([[10], [2, 11]], [[10], [2], [11]]):
        monitor = zones.border(key="k", time="t", late="apply", expire_after=3)
        tables = [monitor.step({"k": ["A"] * len(ts), "x": [1.0] * len(ts), "t": ts}) for ts in batches]
        assert [event["event"] for table in tables for event in table.to_pylist()] == ["enter"]


@pytest.mark.parametrize("late", ["drop", "apply"])
def test_a_key_far_behind_the_clock_expires_at_each_row_for_any_batches(late):
    zones = vd.QuerySet("k string, x double, t bigint")
    zones.add("in", "x > 0")
    for batches in ([[2, 4]], [[2], [4]]):
        monitor = zones.border(key="k", time="t", late=late, expire_after=3)
        monitor.step({"k": ["B"], "x": [0.0], "t": [10]})
        tables = [monitor.step({"k": ["A"] * len(ts), "x": [1.0] * len(ts), "t": ts}) for ts in batches]
        events = [(event["time"], event["event"]) for table in tables for event in table.to_pylist()]
        assert events == [(2, "enter"), (5, "exit"), (4, "enter"), (7, "exit")]


@given(script, st.integers(1, 5))
def test_time_alone_ends_a_dwell_and_a_silence(batches, dwell):
    pair = Pair({"dwell": dwell, "expire_after": 6})
    now = 0
    for changes_, batch in in_time(batches, shuffled=False):
        for each in changes_:
            pair.apply(*each)
        got, wanted = pair.step(batch)
        assert by_key(got) == by_key(wanted)
        now = max([now, *(row["t"] for row in batch)])
        assert by_key(from_table(pair.monitor.advance(now))) == by_key(pair.model.advance(now))
