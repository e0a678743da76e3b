"""Columns of rows in events, and event ids: as a plain model says, for any batches, saves and late rows."""

from __future__ import annotations

import datetime
import decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from operators.border.border_model import Model
from operators.border.test_border import cut_at, form, in_time, options, query, script

import vedette as vd
from vedette.operators import carried_rows
from vedette.operators.border import key_state

TYPES = {
    "k": pa.string(),
    "s": pa.string(),
    "x": pa.float64(),
    "n": pa.int64(),
    "t": pa.int64(),
    "label": pa.int64(),
    "note": pa.string(),
}


class Labelled(Model):
    """The model, which also says the label of each event's row."""

    def __init__(self, *given):
        super().__init__(*given)
        self.labels = {}

    def _move(self, name, row, time):
        last, n_late = self.labels.get(name), self.n_late
        events = super()._move(name, row, time)
        if self.n_late == n_late:
            self.labels[name] = row["label"]
        is_delayed = self.dwell is not None
        return [
            (*event, last if event[1] != time or (is_delayed and event[3] == "enter") else row["label"])
            for event in events
        ]

    def _expire(self, now):
        return [(*event, self.labels[event[0]]) for event in super()._expire(now)]

    def advance(self, now):
        return [event if len(event) == 6 else (*event, self.labels[event[0]]) for event in super().advance(now)]


def labelled(batches, *, shuffled):
    n = 0
    for _, batch in in_time(batches, shuffled):
        yield [{**row, "label": n + place, "note": f"row {n + place}"} for place, row in enumerate(batch)]
        n += len(batch)


def to_table(batch):
    return pa.table({name: pa.array([row[name] for row in batch], type_) for name, type_ in TYPES.items()})


def make(texts, options):
    queries = vd.QuerySet("k string, s string, x double, n bigint", name="alerts")
    for name, (text, _) in texts.items():
        queries.add(name, text)
    return queries.border(key="k", time="t", columns=["label", "note"], **options)


def run(batches, texts, options, saves=()):
    """All events, and the monitor, which is saved and loaded after some batches."""
    monitor, events = make(texts, options), []
    base, deltas = monitor.save(), []
    for number, batch in enumerate(batches):
        events += monitor.step(to_table(batch)).to_pylist()
        if number in saves:
            deltas.append(monitor.take_delta())
            monitor = make(texts, options)
            monitor.load(base)
            for delta in deltas:
                monitor.apply_delta(delta)
    return events, monitor


@pytest.fixture(autouse=True)
def few(monkeypatch):
    monkeypatch.setattr(key_state, "FEW_FREED", 1)
    monkeypatch.setattr(carried_rows, "_FEW", 1)


def plain(events):
    return sorted((e["key"], e["time"], e["query"], e["event"], e["reason"], e["label"]) for e in events)


@given(script, options, st.booleans(), st.sets(st.integers(0, 4)), st.data())
def test_the_columns_of_an_event_are_those_of_the_row_that_caused_it(batches, options, shuffled, saves, data):
    texts = {name: form(*data.draw(query)) for name in "pq"}
    model = Labelled(options.get("late", "drop"), options.get("expire_after"), options.get("dwell"))
    model.forms = {
        name: what if "margin" in options else (what[0], lambda row: False) for name, (_, what) in texts.items()
    }
    rows = list(labelled(batches, shuffled=shuffled))
    events, monitor = run(rows, texts, options, saves)
    assert plain(events) == sorted(event for batch in rows for event in model.step(batch))
    assert all(event["note"] == f"row {event['label']}" for event in events)
    if monitor.clock is not None:
        late = monitor.advance(monitor.clock + 20).to_pylist()
        assert plain(late) == sorted(model.advance(monitor.clock))


@given(script, options, st.data())
def test_event_ids_are_distinct_and_do_not_depend_on_batches_and_saves(batches, options, data):
    texts = {name: form(*data.draw(query)) for name in "pqrs"}
    rows = [row for batch in labelled(batches, shuffled=False) for row in batch]
    known = None
    for _ in range(2):
        saves = data.draw(st.sets(st.integers(0, 6)))
        events, _ = run(cut_at(rows, lambda: data.draw(st.integers(1, 6))), texts, options, saves)
        ids = {event.pop("event_id"): event for event in events}
        assert len(ids) == len(events)
        assert known in (None, ids)
        known = ids


@given(script, st.data())
def test_event_ids_of_late_rows_are_distinct(batches, data):
    texts = {name: form(*data.draw(query)) for name in "pq"}
    events, _ = run(labelled(batches, shuffled=True), texts, {"late": "apply"})
    assert len({event["event_id"] for event in events}) == len(events)


def border(**more):
    queries = vd.QuerySet("k bigint, x double, t bigint", **more)
    queries.add("low", "x < 1")
    return queries


def test_an_event_id_never_changes():
    rows = {"k": [7, 7], "x": [0.5, 2.0], "t": [1, 2]}
    ids = border(name="alerts").border(key="k", time="t", event_id=True).step(rows)["event_id"].to_pylist()
    assert ids == ["1f2c7aaa0cc34be5c93cf7b483995a24", "6e8b647d71e9dd6e141c475beca24506"]
    assert border().border(key="k", time="t", event_id=True).step(rows)["event_id"].to_pylist() != ids


def test_a_replaced_query_has_other_event_ids():
    queries = border()
    monitor = queries.border(key="k", time="t", event_id=True)
    rows = {"k": [7, 7], "x": [0.5, 2.0], "t": [1, 1]}
    first = monitor.step(rows)["event_id"].to_pylist()
    queries.replace("low", "x < 1.5")
    monitor.clear()
    assert set(first).isdisjoint(monitor.step(rows)["event_id"].to_pylist())


def test_events_have_ids_if_they_have_columns_and_otherwise_if_asked():
    rows = {"k": [7], "x": [0.5], "t": [1]}

    def names(**options):
        return border().border(key="k", time="t", **options).step(rows).column_names[5:]

    assert names() == []
    assert names(columns=["x"]) == ["x", "event_id"]
    assert names(event_id=True) == ["event_id"]
    assert names(columns=["x"], event_id=False) == ["x"]


VALUES = {
    "text": pa.array(["a", None]),
    "category": pa.array(["a", "b"]).dictionary_encode(),
    "number": pa.array([1, None], pa.int16()),
    "exact": pa.array([decimal.Decimal("1.50"), None]),
    "when": pa.array([datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC), None]),
    "raw": pa.array([b"\x00", None]),
    "list": pa.array([[1, 2], None]),
    "struct": pa.array([{"a": 1, "b": ["x"]}, None]),
    "nothing": pa.nulls(2),
    "flag": pa.array([True, None]),
}


def test_columns_of_any_type_are_carried_and_kept_in_the_state():
    queries = border()
    monitor = queries.border(key="k", time="t", columns=list(VALUES), expire_after=5)
    monitor.step(pa.table({"k": [1, 2], "x": [0.5, 0.5], "t": [1, 1], **VALUES}))
    loaded = queries.border(key="k", time="t", columns=list(VALUES), expire_after=5)
    loaded.load(monitor.save())
    left = sorted(loaded.advance(100).to_pylist(), key=lambda event: event["key"])
    for name, values in VALUES.items():
        assert [event[name] for event in left] == values.to_pylist()


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (["key"], "columns names 'key', which is a column of the answer itself"),
        (["Event_ID"], "'Event_ID'"),
        (["x", "X"], "'X', which is asked for twice"),
        ("x", "must be a list of names"),
        ([1], "it contains 1"),
    ],
)
def test_names_that_cannot_be_columns_of_events_are_refused(columns, words):
    with pytest.raises(vd.QueryError, match=words):
        border().border(key="k", time="t", columns=columns)


def test_a_missing_column_and_another_type_are_refused_and_change_nothing():
    monitor = border().border(key="k", time="t", columns=["colour"])
    with pytest.raises(vd.RowError, match="names 'colour', which is not a column of the rows; they have: k, t, x"):
        monitor.step({"k": [1], "x": [0.5], "t": [1]})
    monitor.step({"k": [1], "x": [0.5], "t": [1], "colour": ["red"]})
    blob = monitor.save()
    with pytest.raises(vd.RowError, match="column 'colour' was large_string so far; it is now list"):
        monitor.step({"k": [1], "x": [0.5], "t": [1], "colour": [[1]]})
    assert monitor.save() == blob
    unions = pa.UnionArray.from_dense(pa.array([0], pa.int8()), pa.array([0], pa.int32()), [pa.array([1])])
    with pytest.raises(vd.RowError, match="columns of unions cannot be carried"):
        monitor.step(pa.table({"k": [1], "x": [0.5], "t": [1], "colour": unions}))


def test_rows_without_a_key_are_left_out_of_columns_too():
    monitor = border().border(key="k", time="t", columns=["note"], null_key="drop")
    rows = {"k": pa.array([None, 1, None, 2]), "x": [0.5] * 4, "t": [1] * 4, "note": ["a", "b", "c", "d"]}
    assert monitor.step(pa.table(rows))["note"].to_pylist() == ["b", "d"]


def test_a_state_saved_with_other_columns_has_nulls_for_them():
    queries = border()
    monitor = queries.border(key="k", time="t", columns=["a"], expire_after=1)
    monitor.step({"k": [1], "x": [0.5], "t": [1], "a": ["old"], "b": ["new"]})
    other = queries.border(key="k", time="t", columns=["b", "a"], expire_after=1)
    other.load(monitor.save())
    (event,) = other.advance(5).to_pylist()
    assert (event["a"], event["b"]) == ("old", None)


def test_carried_rows_do_not_make_the_state_grow():
    monitor = border().border(key="k", time="t", columns=["note"])
    for step in range(200):
        monitor.step({"k": np.arange(50), "x": np.full(50, 0.5), "t": np.full(50, step), "note": ["text"] * 50})
    assert monitor.details.carried.n_rows <= 101


def test_metadata_is_that_of_the_revision_that_answered():
    queries = vd.QuerySet("k string, x double, t bigint")
    queries.add("low", "x < 1", metadata={"owner": "ann", "level": 3})
    queries.add("high", "x > 5")
    monitor = queries.border(key="k", time="t", metadata=["owner", "level", "colour"])

    def step(x, t):
        events = monitor.step({"k": ["a"], "x": [x], "t": [t]}).to_pylist()
        return [tuple(event[name] for name in ("query", "event", "owner", "level", "colour")) for event in events]

    assert step(0.0, 1) == [("low", "enter", "ann", "3", None)]
    queries.replace("low", "x < 2", metadata={"owner": "bob"})
    assert step(0.0, 2) == []
    assert step(9.0, 3) == [("low", "exit", "bob", None, None), ("high", "enter", None, None, None)]
    queries.remove("high")
    assert step(3.0, 4) == [("high", "exit", None, None, None)]
    queries.add("mid", "x < 4", metadata={"owner": "eve"})
    assert step(3.0, 5) == [("mid", "enter", "eve", None, None)]
    queries.remove("mid")
    assert step(3.0, 6) == [("mid", "exit", "eve", None, None)]


def test_metadata_that_events_have_themselves_is_refused():
    with pytest.raises(vd.QueryError, match="metadata names 'time', which is a column of the answer itself"):
        border().border(key="k", time="t", metadata=["time"])
    with pytest.raises(vd.QueryError, match="metadata names 'X'"):
        border().border(key="k", time="t", columns=["x"], metadata=["X"])
