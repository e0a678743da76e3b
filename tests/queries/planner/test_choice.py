from __future__ import annotations

import numpy as np
import pytest

import vedette as vd
from vedette.indexes.names import INDEXES

RANDOM = np.random.default_rng(7)


def boxes_on(n, **widths):
    """A set of `n` boxes with that share of each field's domain [0, 1); a width of None is a key of 100 values."""
    queries = vd.QuerySet(
        ", ".join(f"{name} {'string' if width is None else 'double'}" for name, width in widths.items())
    )
    bounds = {}
    for name, width in widths.items():
        if width is None:
            keys = np.array([f"k{i}" for i in range(100)])[RANDOM.integers(0, 100, n)]
            bounds[name] = (keys, keys)
        else:
            lows = RANDOM.random(n) * (1 - width)
            bounds[name] = (lows, lows + width)
    queries.add_boxes(np.arange(n), bounds)
    return queries


@pytest.mark.parametrize(
    ("queries", "index"),
    [
        (boxes_on(500, x=0.001), "Lists"),
        (boxes_on(300, x=0.1), "Lists"),
        (boxes_on(10, x=0.1, y=0.1), "Scan"),
        (boxes_on(20_000, x=0.01), "Buckets"),
        (boxes_on(20_000, key=None, x=0.2), "Keyed"),
        (boxes_on(20_000, x=0.01, y=0.01), "Quadtree"),
        (boxes_on(20_000, key=None, x=0.3, y=0.3), "Verified"),
        (boxes_on(20_000, x=0.001, y=0.9, z=0.9), "Verified"),
        (boxes_on(5_000, a=0.6, b=0.6, c=0.6, d=0.6), "Bitmaps"),
    ],
    ids=[
        "narrow and few",
        "wide and few",
        "few flat",
        "many over each value",
        "keyed",
        "flat",
        "keyed and flat",
        "one narrow field",
        "wide in four",
    ],
)
def test_the_planner_takes_the_index_that_suits(queries, index):
    assert f": {index}," in queries.explain()


@pytest.mark.parametrize(
    ("conditions", "index"),
    [
        (["x < {}"], "KeyedRuns"),
        (["x >= {}"], "KeyedRuns"),
        (["x < {}", "x > {}"], "Keyed"),
        (["x BETWEEN {} AND 1"], "KeyedRuns"),
        (["x BETWEEN {} AND {}"], "Keyed"),
    ],
)
def test_a_key_and_a_bound_are_a_run_if_all_bounds_are_on_one_side(conditions, index):
    queries = vd.QuerySet("key string, x double")
    limits = RANDOM.random(20_000).tolist()
    conditions = [conditions[i % len(conditions)].format(limit, limit + 0.1) for i, limit in enumerate(limits)]
    queries.add_many(
        np.arange(20_000), [f"key = 'k{i % 1000}' AND {condition}" for i, condition in enumerate(conditions)]
    )

    assert f"20,000 boxes on key, x: {index}," in queries.explain()


@pytest.mark.parametrize("index", INDEXES)
@pytest.mark.parametrize(
    "widths", [{"x": 0.1}, {"x": 0.3, "y": 0.3}, {"key": None, "x": 0.3}, {"x": 0.5, "y": 0.5, "z": 0.5}]
)
def test_a_forced_index_changes_no_answer(index, widths):
    free = boxes_on(2_000, **widths)
    forced = vd.QuerySet(free.schema, index=index)
    lows_and_highs = {}
    group = free._compiled().compiled[0].groups[0]
    part = free._compiled().compiled[0]
    for number, name in enumerate(group.fields):
        cuts = part.axes[name].cuts
        lows_and_highs[name] = (cuts[group.firsts[number] // 2], cuts[group.lasts[number] // 2])
    forced.add_boxes(group.queries, lows_and_highs)
    rows = {
        name: ["k1", "k2", "none", None] * 50 if width is None else RANDOM.random(200) for name, width in widths.items()
    }

    pairs = [sorted(zip(hits.rows, hits.positions, strict=True)) for hits in (free.match(rows), forced.match(rows))]

    ids = forced.ids.to_numpy()
    assert pairs[0] == sorted((row, ids[position]) for row, position in pairs[1])
    assert len(pairs[0]) > 0


def test_queries_on_different_fields_get_indexes_of_their_own():
    queries = vd.QuerySet("key string, x double, y double")
    n = 5_000
    keys = np.array([f"k{i}" for i in range(50)])[RANDOM.integers(0, 50, n)]
    lows = RANDOM.random(n)
    queries.add_boxes(np.arange(n), {"x": (lows, lows + 0.001)})
    queries.add_boxes(np.arange(n, 2 * n), {"key": (keys, keys), "y": (lows, lows + 0.1)})
    queries.add(2 * n, "x > 0.5")
    queries.add(2 * n + 1, "key LIKE 'k1%' OR y < 0.1")

    reported = queries.explain()

    assert "boxes on x: Buckets" in reported
    assert "5,000 boxes on key, y: Keyed" in reported
    assert "2 boxes on key, y, several per query: Scan" in reported


def test_long_boxes_on_axes_of_very_many_cells_are_not_cut_into_leaves():
    n = 60_000
    queries = vd.QuerySet("x double, y double, z double")
    lows = RANDOM.random(n)
    queries.add_boxes(
        np.arange(n),
        {
            "x": (lows, lows + 0.00001),
            "y": (RANDOM.random(n), np.full(n, np.inf)),
            "z": (RANDOM.random(n), np.full(n, np.inf)),
        },
    )

    assert queries.nbytes / n < 400
    assert "Verified" in queries.explain()
