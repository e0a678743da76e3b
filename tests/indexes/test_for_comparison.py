"""Indexes of the literature answer where they are asked for, and the planner leaves them alone where not."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import vedette as vd
from vedette.indexes import FOR_COMPARISON, INDEXES

asked_for = pytest.mark.parametrize("index", FOR_COMPARISON)


def intervals(n, index=None):
    lows = np.random.default_rng(2).random(n)
    queries = vd.QuerySet("x double, y double", index=index)
    queries.add_boxes(np.arange(n), {"x": (lows, lows + 0.01)})
    return queries


def pairs(queries, rows):
    hits = queries.match(rows)
    return sorted(zip(hits.rows.tolist(), hits.positions.tolist(), strict=True))


@asked_for
def test_it_answers_for_boxes_on_one_field_and_says_so(index):
    free, forced = intervals(2_000), intervals(2_000, index)
    rows = {"x": np.random.default_rng(3).random(300), "y": np.zeros(300)}

    assert pairs(forced, rows) == pairs(free, rows)
    assert isinstance(forced._compiled().compiled[0].groups[0].index, INDEXES[index])
    assert f"{index} was asked for; no estimate (others: " in forced.explain()


@asked_for
def test_the_planner_does_not_take_it_by_itself(index):
    for n in (10, 2_000, 20_000):
        told = intervals(n).explain()

        assert index not in told
        assert INDEXES[index].__name__ not in told


@asked_for
def test_boxes_on_two_fields_get_another_index(index):
    queries = intervals(2_000, index)
    lows = np.random.default_rng(4).random(500)
    queries.add_boxes(np.arange(2_000, 2_500), {"x": (lows, lows + 0.3), "y": (lows, lows + 0.3)})
    free = intervals(2_000)
    free.add_boxes(np.arange(2_000, 2_500), {"x": (lows, lows + 0.3), "y": (lows, lows + 0.3)})
    rows = {"x": np.random.default_rng(5).random(100), "y": np.random.default_rng(6).random(100)}

    assert pairs(queries, rows) == pairs(free, rows)


@asked_for
def test_it_is_saved_and_loaded_with_its_set(index, tmp_path):
    forced = intervals(500, index)
    rows = {"x": np.random.default_rng(7).random(50), "y": np.zeros(50)}
    forced.save(tmp_path / "intervals.vedette")

    for copy in (vd.QuerySet.load(tmp_path / "intervals.vedette"), pickle.loads(pickle.dumps(forced))):
        assert copy.index == index
        assert isinstance(copy._compiled().compiled[0].groups[0].index, INDEXES[index])
        assert pairs(copy, rows) == pairs(forced, rows)
