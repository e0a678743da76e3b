"""Indexes of the literature answer where they are asked for, and the planner leaves them alone where not."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import vedette as vd
from vedette.indexes.names import INDEXES, PAPER_INDEXES

asked_for = pytest.mark.parametrize("index", PAPER_INDEXES)
FIELDS = "xyz"


def boxes_of(n, n_fields, start=0, width=0.01):
    lows = np.random.default_rng([2, n_fields, start]).random((n_fields, n))
    return np.arange(start, start + n), {
        name: (lows[axis], lows[axis] + width) for axis, name in enumerate(FIELDS[:n_fields])
    }


def query_set(n, index=None, n_fields=1, width=0.01):
    queries = vd.QuerySet("x double, y double, z double", index=index)
    queries.add_boxes(*boxes_of(n, n_fields, width=width))
    return queries


def some_rows(n, seed=3):
    return dict(zip(FIELDS, np.random.default_rng(seed).random((3, n)), strict=True))


def pairs(queries, rows):
    """By id: positions are those of one set."""
    hits = queries.match(rows)
    return sorted(zip(hits.rows.tolist(), hits.ids.to_pylist(), strict=True))


@asked_for
@pytest.mark.parametrize("n_fields", [1, 2, 3])
def test_it_answers_for_boxes_on_its_number_of_fields_and_says_so(index, n_fields):
    free = query_set(2_000, None, n_fields, 0.01 if n_fields == 1 else 0.3)
    forced = query_set(2_000, index, n_fields, 0.01 if n_fields == 1 else 0.3)
    rows = some_rows(300)

    assert pairs(forced, rows) == pairs(free, rows)
    answers = isinstance(forced._compiled().compiled[0].groups[0].index, INDEXES[index])
    assert answers == (n_fields in PAPER_INDEXES[index].n_fields)
    assert answers == (f"{index} was requested; no estimate (others: " in forced.explain())
    assert answers == (f": {index}, " in forced.explain())
    assert answers != (f": {index} was requested but supports " in forced.explain())


def test_the_planner_chooses_none_by_itself():
    for n in (10, 2_000, 20_000):
        plans = query_set(n).explain() + query_set(n, n_fields=2).explain()

        for index in PAPER_INDEXES:
            assert index not in plans
            assert INDEXES[index].__name__ not in plans


@asked_for
def test_queries_are_added_and_removed(index):
    n_fields = PAPER_INDEXES[index].n_fields[0]
    sets = [query_set(1_000, index, n_fields, 0.1), query_set(1_000, None, n_fields, 0.1)]
    rows = some_rows(200)
    for queries in sets:
        queries.add_boxes(*boxes_of(300, n_fields, 1_000, 0.1))
        for gone in range(0, 1_200, 3):
            queries.remove(gone)

    assert pairs(sets[0], rows) == pairs(sets[1], rows)


@asked_for
def test_boxes_on_other_fields_get_a_suitable_index(index):
    sets = [query_set(2_000, index), query_set(2_000)]
    rows = some_rows(100)
    for queries in sets:
        queries.add_boxes(*boxes_of(500, 2, 2_000, 0.3))
        queries.add_boxes(*boxes_of(500, 3, 3_000, 0.4))

    assert pairs(sets[0], rows) == pairs(sets[1], rows)
    for group in sets[0]._compiled().compiled[0].groups:
        assert isinstance(group.index, INDEXES[index]) == (len(group.fields) in PAPER_INDEXES[index].n_fields)


@asked_for
def test_it_is_saved_and_loaded_with_its_set(index, tmp_path):
    forced = query_set(500, index, PAPER_INDEXES[index].n_fields[0], 0.1)
    rows = some_rows(50)
    forced.save(tmp_path / "boxes.vedette")

    for copy in (vd.QuerySet.load(tmp_path / "boxes.vedette"), pickle.loads(pickle.dumps(forced))):
        assert copy.index == index
        assert isinstance(copy._compiled().compiled[0].groups[0].index, INDEXES[index])
        assert pairs(copy, rows) == pairs(forced, rows)
