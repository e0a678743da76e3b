"""Random queries and rows for small steps, and their judge: `step_batches` always makes a step of a batch."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest

import vedette as vd
from vedette.errors import RowError

SCHEMA = "k string, x double, y double, n bigint, s string, t bigint"
TEXTS = [
    "x > {a} AND x <= {b}",
    "x BETWEEN {a} AND {b} AND y BETWEEN {b} AND {c}",
    "x < {a} OR x > {b}",
    "x BETWEEN {a} AND {b} OR y > {c}",
    "s = 'a' AND x > {a}",
    "s IN ('b', 'c') AND n >= {a}",
    "n = {a} OR n IS NULL",
    "x + y > {a}",
    "x / n > {a}",
    "true",
]


def make_text(source):
    a, b, c = sorted(source.integers(-4, 5, 3).tolist())
    return TEXTS[source.integers(len(TEXTS))].format(a=a, b=b, c=c)


def make_row(source, time):
    def pick(*choices):
        return choices[source.integers(len(choices))]

    x, y = (pick(float(source.integers(-4, 5)), source.uniform(-5, 5), None) for _ in range(2))
    if source.random() < 0.1:
        x = math.nan
    return {
        "k": pick("a", "b", "Zoë", ""),
        "x": x,
        "y": y,
        "n": pick(-1, 0, 2, None),
        "s": pick("a", "b", "z", None),
        "t": time,
    }


def step_as_batch(monitor, rows):
    return pa.concat_tables(list(monitor.step_batches(rows))).unify_dictionaries()


def rest_of(monitor):
    """What a monitor has besides its keys' state."""
    return monitor.n_late, monitor.n_null_keys, monitor.n_failed, monitor.n_keys, monitor.clock, monitor.done


def check_is_refused_as_in_a_batch(rows):
    """Assert that wrong rows of a known key get the error of a batch and change nothing."""
    queries = vd.QuerySet("x double, t bigint")
    queries.add("q", "x > 0")
    monitor = queries.border(key="k", time="t")
    for time in range(2):
        monitor.step({"k": ["a"], "x": [-1.0], "t": [time]})
    before = monitor.save()
    errors = []
    for step in (monitor.step, lambda rows: list(monitor.step_batches(rows))):
        with pytest.raises(RowError) as raised:
            step(rows)
        errors.append(str(raised.value))
    assert errors[0] == errors[1]
    assert monitor.save() == before
