"""A step of a few rows is that of a batch, however they are given."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import vedette as vd
from tests.operators.border.small_steps import (
    SCHEMA,
    check_is_refused_as_in_a_batch,
    make_row,
    make_text,
    rest_of,
    step_as_batch,
)
from vedette.data import answer_limit
from vedette.errors import AnswerError
from vedette.operators.border import short_step
from vedette.queries import parts
from vedette.queries.planner import compilation
from vedette.settings import Settings

ARROW = pa.schema(
    [
        ("k", pa.string()),
        ("x", pa.float64()),
        ("y", pa.float64()),
        ("n", pa.int64()),
        ("s", pa.string()),
        ("t", pa.int64()),
    ]
)


@pytest.fixture
def taken(monkeypatch):
    """Counts short steps: those that were taken, and those that were left to a step of a batch."""
    counts = {True: 0, False: 0}
    step = short_step.ShortSteps.step

    def counted(self, monitor, rows):
        found = step(self, monitor, rows)
        counts[found is not None] += 1
        return found

    monkeypatch.setattr(short_step.ShortSteps, "step", counted)
    return counts


def as_lists(rows):
    return {name: [row[name] for row in rows] for name in rows[0]}


def as_arrays(rows):
    columns = as_lists(rows)
    return {name: each if None in each else np.array(each) for name, each in columns.items()}


FORMS = {
    "lists": as_lists,
    "arrays": as_arrays,
    "a batch": lambda rows: pa.RecordBatch.from_pylist(rows, schema=ARROW),
    "a table": lambda rows: pa.Table.from_pylist(rows, schema=ARROW).slice(0),
    "a slice": lambda rows: pa.Table.from_pylist([rows[0], *rows], schema=ARROW).slice(1),
    "two chunks": lambda rows: pa.concat_tables([pa.Table.from_pylist([row], schema=ARROW) for row in rows]),
    "pandas": lambda rows: pa.Table.from_pylist(rows, schema=ARROW).to_pandas(types_mapper=pd.ArrowDtype),
}


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"late": "apply"},
        {"event_id": True},
        {"columns": ["y", "s"], "metadata": ["owner"]},
        {"expire_after": 7},
        {"dwell": 2, "margin": 0.5},
    ],
    ids=str,
)
@pytest.mark.parametrize("seed", range(2))
def test_a_few_rows_give_the_events_and_the_state_of_a_batch(options, seed, taken, monkeypatch):
    source = np.random.default_rng(seed)
    monkeypatch.setattr(parts, "SMALL_PART", int(source.choice([0, 2048])))  # or else there is one part,
    monkeypatch.setattr(compilation, "SMALL_GROUP", int(source.choice([0, 256])))  # and no index but a scan
    queries = vd.QuerySet(SCHEMA)
    for number in range(30):
        queries.add(f"q{number}", make_text(source), metadata={"owner": f"o{number % 3}"})
    judge, monitor = (queries.border(key="k", time="t", **options) for _ in range(2))
    forms, time = list(FORMS.values()), 0
    for step in range(60):
        rows = []
        for _ in range(source.integers(1, 8)):
            time += int(source.choice([-1, 0, 1, 2], p=[0.1, 0.3, 0.5, 0.1]))
            new = {"k": f"k{step}"} if source.random() < 0.2 else {}
            rows.append(make_row(source, time) | new)
        rows = forms[source.integers(len(forms))](rows)
        expected, found = step_as_batch(judge, rows), monitor.step(rows)
        assert found.schema == expected.schema
        assert found.to_pylist() == expected.to_pylist()
        assert rest_of(monitor) == rest_of(judge)
        if step == 20:
            assert monitor.save() == judge.save()
        if step > 20 and step % 10 == 0:
            assert monitor.take_delta() == judge.take_delta()
        if step % 20 == 19:  # keys that were seen before need steps of batches, once
            queries.replace(f"q{source.integers(30)}", make_text(source))
            queries.remove(f"q{step}") if f"q{step}" in queries else queries.add(f"r{step}", make_text(source))
    assert monitor.save() == judge.save()
    assert taken[True] == 0 if options.keys() & {"expire_after", "dwell"} else taken[True] > 15


@pytest.mark.parametrize("n_axes", [1, 2])
@pytest.mark.parametrize("n_rows", [2, 50, short_step.MOST_ROWS + 1])
def test_many_ranges_are_followed_or_compared_in_the_order_of_batches(n_axes, n_rows, taken):
    source = np.random.default_rng(1)
    queries = vd.QuerySet("k bigint, x double, y double, t double")
    lows = source.uniform(0, 100, (2, 5000))
    boxes = {name: (low, low + source.uniform(0, 3, 5000)) for name, low in zip("xy"[:n_axes], lows, strict=False)}
    queries.add_boxes([f"q{number}" for number in range(5000)], boxes)
    judge, monitor = (queries.border(key="k", time="t") for _ in range(2))
    places = source.uniform(0, 100, (2, 60))
    for time in range(10):
        keys = source.integers(0, 60, n_rows)
        moves = source.normal(0, 0.1 if time % 3 else 30, (2, 60))
        places = np.clip(places + moves, 0, 100)
        x, y = places[:, keys] + source.normal(0, 0.1, (2, n_rows))
        rows = {"k": keys, "x": x, "y": y, "t": time + np.sort(source.uniform(0, 1, n_rows))}
        assert monitor.step(rows).to_pylist() == step_as_batch(judge, rows).to_pylist()
    assert taken[True] == (0 if n_rows > short_step.MOST_ROWS else 9)
    assert monitor.save() == judge.save()


UTC = datetime.UTC
ZONE = datetime.timezone(datetime.timedelta(hours=2))


@pytest.mark.parametrize(
    ("values", "is_short"),
    [
        ([datetime.datetime(2026, 1, 2, 3, 4, 5, each, UTC) for each in (6, 7)], True),
        ([datetime.datetime(2026, 1, 2, 3, 4, 5, each, ZONE) for each in (6, 7)], False),
        (np.array(["2026-01-02T03:04:05.000006"] * 2, "datetime64[us]"), True),
        (np.array(["2026-01-02T03:04:05.000006"] * 2, "datetime64[ns]"), False),
        (pa.array([1_800_000_000_000_006] * 2, pa.timestamp("us", "Europe/Paris")), True),
        (pa.array([1_800_000_000_000_006] * 2, pa.timestamp("us")), True),
        (pa.array([1_800_000_000] * 2, pa.timestamp("s", "UTC")), False),
    ],
    ids=str,
)
def test_timestamps_are_those_of_batches(values, is_short, taken):
    queries = vd.QuerySet("k string, x double, t timestamp")
    queries.add("q", "x > 0")
    judge, monitor = (queries.border(key="k", time="t") for _ in range(2))
    early = {"k": ["a"], "x": [-1.0], "t": [datetime.datetime(2000, 1, 1, tzinfo=UTC)]}
    late = {"k": ["a", "b"], "x": [1.0, 2.0], "t": values}
    late = pa.table(late) if isinstance(values, pa.Array) else late
    for rows in (early, late):
        assert monitor.step(rows).to_pylist() == step_as_batch(judge, rows).to_pylist()
    assert taken[True] == is_short
    assert monitor.save() == judge.save()


WRONG = {
    "no key": {"k": ["a", None], "x": [1.0, 1.0], "t": [2, 2]},
    "no column": {"k": ["a", "n"], "t": [2, 2]},
    "twins": {"k": ["a", "n"], "x": [1.0, 1.0], "X": [1.0, 1.0], "t": [2, 2]},
    "lengths": {"k": ["a", "n"], "x": [1.0, 1.0], "t": [2]},
    "other lengths": {"k": ["a", "n"], "x": [1.0, 1.0], "t": [2, 2], "other": [1]},
    "a value": {"k": ["a", "n"], "x": 1.0, "t": [2, 2]},
    "a text": {"k": ["a", "n"], "x": [1.0, "1"], "t": [2, 2]},
    "a truth": {"k": ["a", "n"], "x": [1.0, True], "t": [2, 2]},
    "no time": {"k": ["a", "n"], "x": [1.0, 1.0], "t": [2, None]},
    "a far time": {"k": ["a", "n"], "x": [1.0, 1.0], "t": [2, 1 << 62]},
    "a huge time": {"k": ["a", "n"], "x": [1.0, 1.0], "t": [2, 1 << 70]},
    "another time": {"k": ["a", "n"], "x": [1.0, 1.0], "t": [2, 2.5]},
    "another key": {"k": [5, 6], "x": [1.0, 1.0], "t": [2, 2]},
    "a surrogate": {"k": ["a", "\ud800"], "x": [1.0, 1.0], "t": [2, 2]},
    "two dimensions": {"k": ["a", "n"], "x": np.ones((2, 1)), "t": [2, 2]},
}


@pytest.mark.parametrize("rows", WRONG.values(), ids=WRONG.keys())
def test_wrong_rows_get_the_error_of_batches_and_change_nothing(rows):
    check_is_refused_as_in_a_batch(rows)


def test_a_few_rows_with_too_many_events_are_refused_and_change_nothing(monkeypatch):
    queries = vd.QuerySet("k string, x double, t bigint")
    queries.add_boxes([f"q{number}" for number in range(20_000)], {"x": (np.zeros(20_000), np.full(20_000, 5.0))})
    monitor = queries.border(key="k", time="t")
    monitor.step({"k": ["a"], "x": [-1.0], "t": [0]})
    before = monitor.save()
    rows = {"k": ["a", "b"], "x": [1.0, 2.0], "t": [1, 1]}
    for most in (100, 100_000, 400_000):
        monkeypatch.setattr(answer_limit, "settings", lambda most=most: Settings(max_answer_bytes=most))
        with pytest.raises(AnswerError, match="step_batches"):
            monitor.step(rows)
        assert monitor.save() == before
    monkeypatch.undo()
    assert monitor.step(rows).num_rows == 40_000


def test_an_error_in_the_middle_of_a_comparison_leaves_no_marks(monkeypatch):
    """The buffer of marks is shared by all steps of a thread."""
    queries = vd.QuerySet("k string, x double, t bigint")
    queries.add_boxes(np.arange(5000), {"x": (np.arange(5000.0), np.arange(5000.0) + 50)})
    judge, monitor = (queries.border(key="k", time="t") for _ in range(2))
    first, second = ({"k": ["a", "b"], "x": [x, x + 100], "t": [1, 1]} for x in (3000.0, 20.0))
    expected = [step_as_batch(judge, rows).to_pylist() for rows in (first, second)]
    assert monitor.step(first).to_pylist() == expected[0]
    from vedette.operators.border import differences

    with monkeypatch.context() as patch:
        patch.setattr(differences, "clear_stamps", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            monitor.step({"k": ["c", "d"], "x": [20.0, 3000.0], "t": [2, 2]})
    assert monitor.step(second).to_pylist() == expected[1]
    assert monitor.n_keys == judge.n_keys == 2
