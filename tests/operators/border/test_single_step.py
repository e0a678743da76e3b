"""A step of one row is that of a batch: `step_batches` never takes the short way, so it is the judge here."""

from __future__ import annotations

import datetime

import numpy as np
import pyarrow as pa
import pytest

import vedette as vd
from tests.operators.border.border_model import Model, by_key, from_table
from tests.operators.border.small_steps import (
    SCHEMA,
    check_is_refused_as_in_a_batch,
    make_row,
    make_text,
    rest_of,
    step_as_batch,
)
from vedette.data import answer_limit
from vedette.errors import AnswerError, RowError
from vedette.operators.border import single_step
from vedette.queries import parts
from vedette.queries.planner import compilation
from vedette.settings import Settings

FORMS = {
    "lists": lambda row: {name: [value] for name, value in row.items()},
    "arrays": lambda row: {name: [value] if value is None else np.array([value]) for name, value in row.items()},
    "a batch": lambda row: pa.RecordBatch.from_pylist([row], schema=_ARROW),
    "a table": lambda row: pa.Table.from_pylist([row], schema=_ARROW),
    "a table of other types": lambda row: pa.Table.from_pylist([{**row, "K": row["k"]}], schema=_OTHER),
}
_FIELDS = [("x", pa.float64()), ("y", pa.float64()), ("n", pa.int64())]
_ARROW = pa.schema([("k", pa.string()), *_FIELDS, ("s", pa.large_string()), ("t", pa.int64())])
_OTHER = pa.schema([("t", pa.int64()), *_FIELDS, ("s", pa.string_view()), ("K", pa.large_string())])


@pytest.fixture
def taken(monkeypatch):
    """Counts single steps: those that were taken, and those that were left to a step of a batch."""
    counts = {True: 0, False: 0}
    step = single_step._SingleSteps.step

    def counted(self, monitor, rows):
        found = step(self, monitor, rows)
        counts[found is not None] += 1
        return found

    monkeypatch.setattr(single_step._SingleSteps, "step", counted)
    return counts


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"late": "apply"},
        {"event_id": True},
        {"columns": ["y", "t2"], "metadata": ["owner"]},
        {"expire_after": 7},
        {"dwell": 2, "margin": 0.5},
        {"cross": True},
        {"held_back": True},
    ],
    ids=str,
)
@pytest.mark.parametrize("seed", range(2))
def test_single_rows_give_the_events_and_the_state_of_batches(options, seed, taken, monkeypatch):
    source = np.random.default_rng(seed)
    monkeypatch.setattr(parts, "SMALL_PART", int(source.choice([0, 2048])))  # or else there is one part,
    monkeypatch.setattr(compilation, "SMALL_GROUP", int(source.choice([0, 256])))  # and no index but a scan
    queries = vd.QuerySet(SCHEMA)
    for number in range(30):
        queries.add(f"q{number}", make_text(source), metadata={"owner": f"o{number % 3}"})
    judge, monitor = (queries.border(key="k", time="t", **options) for _ in range(2))
    forms, time = list(FORMS.values()), 0
    for step in range(120):
        time += int(source.choice([-1, 0, 1, 2], p=[0.05, 0.15, 0.7, 0.1]))
        rows = forms[source.integers(len(forms))](make_row(source, time))
        if "columns" in options:
            rows = dict(zip(rows.schema.names, rows.columns, strict=True)) if not isinstance(rows, dict) else rows
            rows = {**{name: pa.array(values) for name, values in rows.items()}, "t2": [step]}
            rows = pa.table(rows) if step % 2 else {name: pa.array(each).to_pylist() for name, each in rows.items()}
        expected, found = step_as_batch(judge, rows), monitor.step(rows)
        assert found.schema == expected.schema
        assert found.to_pylist() == expected.to_pylist()
        assert rest_of(monitor) == rest_of(judge)
        if step == 20:
            assert monitor.save() == judge.save()
        if step > 20 and step % 10 == 0:
            assert monitor.take_delta() == judge.take_delta()
        if step % 30 == 29:  # keys that were seen before need steps of batches, once
            queries.replace(f"q{source.integers(30)}", make_text(source))
            queries.remove(f"q{step}") if f"q{step}" in queries else queries.add(f"r{step}", make_text(source))
    assert monitor.save() == judge.save()
    if options.keys() & {"expire_after", "dwell", "cross", "held_back"}:
        assert taken[True] == 0
    else:
        assert taken[True] > 40


@pytest.mark.parametrize("key", [7, "k7"])
def test_the_first_row_of_a_key_is_a_single_step(key, taken):
    source = np.random.default_rng(3)
    queries = vd.QuerySet(f"k {'bigint' if key == 7 else 'string'}, x double, y double, t bigint")
    lows = source.uniform(0, 100, 3000)
    queries.add_boxes(np.arange(2000), {"x": (lows[:2000], lows[:2000] + 3)})
    queries.add_boxes(np.arange(2000, 3000), {"x": (lows[2000:], lows[2000:] + 9), "y": (lows[:1000], lows[:1000] + 9)})
    judge, monitor = (queries.border(key="k", time="t", event_id=True) for _ in range(2))
    n_first = 0
    for time in range(60):
        rows = {"k": [key + time if key == 7 else f"{key}-{time // 2}"], "x": [source.uniform(0, 100)], "y": [1.0]}
        rows["t"] = [time]
        found = monitor.step(rows)
        assert found.to_pylist() == step_as_batch(judge, rows).to_pylist()
        n_first += found["reason"].to_pylist().count("first")
        assert rest_of(monitor) == rest_of(judge)
    assert n_first > 500
    assert taken[True] == 59
    assert monitor.save() == judge.save()


@pytest.mark.parametrize("n_axes", [1, 2])
def test_many_ranges_are_followed_or_compared_in_the_order_of_batches(n_axes, taken):
    source = np.random.default_rng(1)
    queries = vd.QuerySet("k bigint, x double, y double, t double")
    lows = source.uniform(0, 100, (2, 5000))
    boxes = {name: (low, low + source.uniform(0, 3, 5000)) for name, low in zip("xy"[:n_axes], lows, strict=False)}
    queries.add_boxes(np.arange(5000), boxes)
    judge, monitor = (queries.border(key="k", time="t") for _ in range(2))
    n_events, x, y = 0, 0.0, 0.0
    for time in range(300):
        x, y = source.uniform(0, 100, 2) if time % 3 == 0 else np.add((x, y), source.normal(0, 0.1, 2))
        rows = {"k": np.array([7]), "x": np.array([x]), "y": [y], "t": [float(time)]}
        found = monitor.step(rows)
        assert found.to_pylist() == step_as_batch(judge, rows).to_pylist()
        n_events += found.num_rows
    assert n_events > 200
    assert taken[True] == 299  # the first row is that of a batch
    assert monitor.save() == judge.save()


def test_rows_one_by_one_and_in_one_batch_give_the_events_of_the_model():
    source = np.random.default_rng(5)
    queries, model = vd.QuerySet("k string, x double, t bigint"), Model()
    for number in range(40):
        low = float(source.integers(-5, 5))
        queries.add(f"q{number}", f"x >= {low} AND x < {low + 2}")
        holds = lambda row, low=low: low <= row["x"] < low + 2  # noqa: E731
        model.forms[f"q{number}"] = holds, lambda row: False
    rows = [{"k": f"k{source.integers(5)}", "x": source.uniform(-6, 8), "t": t} for t in range(200)]
    expected = by_key(model.step(rows))
    whole, one_by_one = (queries.border(key="k", time="t") for _ in range(2))
    together = whole.step({name: [row[name] for row in rows] for name in rows[0]})
    singly = [event for row in rows for event in from_table(one_by_one.step({n: [v] for n, v in row.items()}))]
    assert by_key(from_table(together)) == expected
    assert by_key(singly) == expected


ZONE = datetime.timezone(datetime.timedelta(hours=2))


@pytest.mark.parametrize(
    ("values", "is_single"),
    [
        ([datetime.datetime(2026, 1, 2, 3, 4, 5, 6, datetime.UTC)], True),
        ([datetime.datetime(2026, 1, 2, 3, 4, 5, 6, ZONE)], False),
        ([datetime.datetime(2026, 1, 2, 3, 4, 5, 6)], False),
        (np.array(["2026-01-02T03:04:05.000006"], "datetime64[us]"), True),
        (np.array(["2026-01-02T03:04:05.000006"], "datetime64[ns]"), False),
        (pa.array([1_800_000_000_000_006], pa.timestamp("us", "Europe/Paris")), True),
        (pa.array([1_800_000_000_000_006], pa.timestamp("us")), True),
        (pa.array([1_800_000_000], pa.timestamp("s", "UTC")), False),
    ],
    ids=str,
)
def test_timestamps_are_those_of_batches(values, is_single, taken):
    queries = vd.QuerySet("k string, x double, t timestamp")
    queries.add("q", "x > 0")
    judge, monitor = (queries.border(key="k", time="t") for _ in range(2))
    early = {"k": ["a"], "x": [-1.0], "t": [datetime.datetime(2000, 1, 1, tzinfo=datetime.UTC)]}
    late = {"k": ["a"], "x": [1.0], "t": values}
    late = pa.table({"k": ["a"], "x": [1.0], "t": values}) if isinstance(values, pa.Array) else late
    for rows in (early, late):
        assert monitor.step(rows).equals(step_as_batch(judge, rows))
    assert taken[True] == is_single
    assert monitor.save() == judge.save()


WRONG = {
    "no key": {"k": [None], "x": [1.0], "t": [2]},
    "no column": {"k": ["a"], "t": [2]},
    "twins": {"k": ["a"], "x": [1.0], "X": [1.0], "t": [2]},
    "lengths": {"k": ["a"], "x": [1.0], "t": [2], "other": [1, 2]},
    "a value": {"k": ["a"], "x": 1.0, "t": [2]},
    "a text": {"k": ["a"], "x": ["1"], "t": [2]},
    "no time": {"k": ["a"], "x": [1.0], "t": [None]},
    "a far time": {"k": ["a"], "x": [1.0], "t": [1 << 62]},
    "another time": {"k": ["a"], "x": [1.0], "t": [2.5]},
    "another key": {"k": [5], "x": [1.0], "t": [2]},
    "a surrogate": {"k": ["\ud800"], "x": [1.0], "t": [2]},
    "two dimensions": {"k": ["a"], "x": np.ones((1, 1)), "t": [2]},
}


@pytest.mark.parametrize("rows", WRONG.values(), ids=WRONG.keys())
def test_a_wrong_row_gets_the_error_of_batches_and_changes_nothing(rows):
    check_is_refused_as_in_a_batch(rows)


def test_a_single_row_with_too_many_events_is_refused_and_changes_nothing(monkeypatch):
    queries = vd.QuerySet("k string, x double, t bigint")
    queries.add_boxes([f"q{number}" for number in range(20_000)], {"x": (np.zeros(20_000), np.full(20_000, 5.0))})
    monitor = queries.border(key="k", time="t")
    monitor.step({"k": ["a"], "x": [-1.0], "t": [0]})
    before = monitor.save()
    for most in (100, 100_000):
        monkeypatch.setattr(answer_limit, "settings", lambda most=most: Settings(max_answer_bytes=most))
        with pytest.raises(AnswerError, match="step_batches"):
            monitor.step({"k": ["a"], "x": [1.0], "t": [1]})
        assert monitor.save() == before
    monkeypatch.undo()
    assert monitor.step({"k": ["a"], "x": [1.0], "t": [1]}).num_rows == 20_000


def test_a_single_row_undoes_an_unfinished_step():
    queries = vd.QuerySet("k string, x double, t bigint")
    queries.add("q", "x > 0")
    monitor = queries.border(key="k", time="t")
    for time in range(2):
        monitor.step({"k": ["a"], "x": [-1.0], "t": [time]})
    pieces = monitor.step_batches({"k": ["a"], "x": [1.0], "t": [5]})
    next(pieces)
    assert monitor.step({"k": ["a"], "x": [1.0], "t": [3]})["time"].to_pylist() == [3]
    with pytest.raises(RowError, match="was undone"):
        next(pieces)
    assert monitor.clock == 3
