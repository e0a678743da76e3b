"""Two indexes over the same boxes: which of them answers a batch, and that it does not matter."""

from __future__ import annotations

import numpy as np
import oracles
import pytest
from numba import config

import vedette as vd
from vedette.indexes.bitmaps import Bitmaps
from vedette.indexes.dual import Dual
from vedette.indexes.verified import Verified

SLOW = bool(config.DISABLE_JIT)
N_CELLS = 400
RANDOM = np.random.default_rng(3)


def wide_boxes(n_axes, n):
    ends = np.sort(RANDOM.integers(0, N_CELLS, (2, n_axes, n)), axis=0).astype(np.int32)
    return *ends, np.arange(n, dtype=np.int32), [N_CELLS] * n_axes


def rows(n_axes, n, highest=N_CELLS):
    return RANDOM.integers(0, highest, (n_axes, n)).astype(np.int32)


def found(index, cells):
    matches = index.match(cells)
    return [sorted(each.tolist()) for each in np.split(matches.positions, matches.starts[1:-1])]


@pytest.mark.parametrize("by_row", [Bitmaps, Verified])
@pytest.mark.parametrize("nanoseconds", [0.0, 1e9], ids=["by row", "by batch"])
def test_both_indexes_match_what_brute_force_matches(monkeypatch, by_row, nanoseconds):
    monkeypatch.setattr("vedette.indexes.dual.MIN_ROWS", 1)
    boxes, cells = wide_boxes(3, 60), rows(3, 150)
    index = Dual.build(*boxes, by_row.build(*boxes), nanoseconds)

    assert (index.find_cluster_size(cells) is not None) == (nanoseconds > 0)
    assert found(index, cells) == oracles.match_boxes(*boxes[:3], cells)


def test_a_few_rows_are_matched_one_by_one():
    index = Dual.build(*wide_boxes(3, 60), nanoseconds=1e9)

    assert index.find_cluster_size(rows(3, 1023)) is None
    assert index.find_cluster_size(rows(3, 1024)) is not None


@pytest.mark.skipif(SLOW, reason="thousands of boxes and rows, of which kernels are the same as above")
def test_rows_that_lie_close_together_are_joined_where_rows_far_apart_are_not():
    index = Dual.build(*wide_boxes(8, 10_000))

    assert index.find_cluster_size(rows(8, 4_000)) is None
    assert index.find_cluster_size(rows(8, 4_000, N_CELLS // 10)) is not None


@pytest.mark.skipif(SLOW, reason="thousands of boxes, over which no kernel differs")
def test_many_wide_boxes_on_many_fields_get_a_dual_and_explain_shows_it(tmp_path):
    n, fields = 9_000, [f"x{i}" for i in range(6)]
    schema = ", ".join(f"{field} double" for field in fields)
    bounds = {field: tuple(np.sort(RANDOM.random((2, n)), axis=0)) for field in fields}
    queries, by_row = vd.QuerySet(schema), vd.QuerySet(schema, index="Bitmaps")
    for each in (queries, by_row):
        each.add_boxes(np.arange(n), bounds)
    queries.save(tmp_path / "set")
    saved = vd.QuerySet.load(tmp_path / "set")
    batch = {field: RANDOM.random(20_000) for field in fields}

    assert ": Dual, " in queries.explain()
    assert "Bitmaps for a few rows, and MLGF for a batch" in queries.explain()
    [group] = saved._compiled().compiled[0].groups
    assert isinstance(group.index, Dual)
    assert pairs(saved, batch) == pairs(by_row, batch)


def pairs(queries, batch):
    found = queries.match(batch)
    order = np.lexsort([found.positions, np.repeat(np.arange(len(found.starts) - 1), np.diff(found.starts))])
    return found.starts.tolist(), found.positions[order].tolist()
