"""Which keys changed: the log stays small if no delta is ever taken, and the next delta is then a whole state."""

from __future__ import annotations

import numpy as np
import pytest

from vedette import QuerySet
from vedette.operators.border import change_log


@pytest.fixture
def queries():
    queries = QuerySet("k bigint, t bigint, x double")
    queries.add("high", "x > 3")
    return queries


def visit(monitor, number, n_keys=10):
    """Keys that are never seen again, and two that stay."""
    keys = np.concatenate([[1, 2], 100 * (number + 1) + np.arange(n_keys)])
    monitor.step({"k": keys, "t": np.full(len(keys), number), "x": np.full(len(keys), number % 7.0)})


def rows_of(monitor):
    return sorted(monitor.keys.keys.take(np.flatnonzero(monitor.keys.has_row[: len(monitor.keys)])).tolist())


def test_keys_that_come_and_go_after_a_save_take_no_memory(queries, monkeypatch):
    monkeypatch.setattr(change_log, "MANY_FREED", 50)
    monitor = queries.border(key="k", time="t", expire_after=2)
    visit(monitor, 0)
    monitor.save()
    most = 0
    for number in range(1, 60):
        visit(monitor, number)
        most = max(most, sum(map(len, monitor.changes._freed)))
    assert 0 < most <= 50 + 40

    other = queries.border(key="k", time="t", expire_after=2)
    other.apply_delta(monitor.take_delta())  # a whole state
    assert rows_of(other) == rows_of(monitor)
    for number in range(60, 63):  # deltas are small again
        visit(monitor, number)
        other.apply_delta(monitor.take_delta())
        assert rows_of(other) == rows_of(monitor)
    assert other.save() == monitor.save()
