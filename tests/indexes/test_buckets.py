"""Buckets where widths, counts and cells are out of the ordinary."""

from __future__ import annotations

import numpy as np
from numba.core import config

from vedette.indexes.buckets import Buckets

N = 400 if config.DISABLE_JIT else 70_000  # compiled: more boxes in one cell than a 16-bit count holds


def build(firsts, lasts, n_cells):
    firsts, lasts = np.array([firsts], np.int32), np.array([lasts], np.int32)
    return Buckets.build(firsts, lasts, np.arange(firsts.shape[1], dtype=np.int32), [n_cells])


def counts(firsts, lasts, cells):
    return np.searchsorted(np.sort(firsts), cells, side="right") - np.searchsorted(np.sort(lasts), cells, side="left")


def test_nested_boxes_cost_memory_for_each_box_alone():
    # Alerts such as price < c: all start with the axis.
    lasts = 2 * np.arange(N)
    index = build(np.zeros(N), lasts, 2 * N + 2)
    cells = np.array([[0, 1, N, 2 * N - 40, 2 * N - 3, 2 * N - 2, 2 * N - 1, 2 * N + 1]], np.int32)
    matches = index.match(cells)

    assert np.diff(matches.starts).tolist() == counts(np.zeros(N), lasts, cells[0]).tolist()
    assert sorted(matches.positions[: matches.starts[1]]) == list(range(N))
    assert index.nbytes <= 100 * N + 4096


def test_boxes_that_all_cover_everything_are_all_matched():
    matches = build(np.zeros(N), np.full(N, 9), 10).match(np.array([[0, 9]], np.int32))

    assert matches.starts.tolist() == [0, N, 2 * N]
    assert sorted(matches.positions[N:]) == list(range(N))


def test_few_boxes_on_an_axis_of_many_cells_stay_small():
    n_cells = 2_000 if config.DISABLE_JIT else 4_000_002
    random = np.random.default_rng(1)
    firsts = random.integers(0, n_cells - 60, 300)
    lasts = firsts + random.integers(0, 50, 300)
    index = build(firsts, lasts, n_cells)
    cells = np.concatenate([firsts, lasts, random.integers(0, n_cells, 400)]).astype(np.int32)

    assert np.diff(index.match(cells[None]).starts).tolist() == counts(firsts, lasts, cells).tolist()
    assert index.nbytes <= 40_000


def test_points_at_one_cell_are_not_tested():
    index = build(np.repeat([1, 3, 5], 100), np.repeat([1, 3, 5], 100), 8)

    assert np.diff(index.match(np.array([[0, 1, 2, 3, 4, 5, 6, 7]], np.int32)).starts).tolist() == [0, 100] * 3 + [0, 0]
    assert index.nbytes <= 8 * 300
