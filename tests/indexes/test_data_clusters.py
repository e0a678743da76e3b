from __future__ import annotations

import numpy as np
import pytest
from numba import config

from vedette.indexes.data_clusters import SIZES, DataClusters, estimate_row_cost
from vedette.indexes.grid_file import MLGF
from vedette.indexes.hilbert import hilbert_order

SLOW = bool(config.DISABLE_JIT)
N_CELLS = 4000


def conjunctions(n_axes, n_boxes, seed=1):
    """Conditions bounded on the left, on the right or on both sides, as in Lim et al., section 7.1."""
    random = np.random.default_rng(seed)
    ends = np.sort(random.integers(0, N_CELLS, (2, n_axes, n_boxes)), axis=0)
    kind = random.integers(0, 3, (n_axes, n_boxes))
    firsts, lasts = np.where(kind == 0, 0, ends[0]), np.where(kind == 1, N_CELLS - 1, ends[1])
    return firsts.astype(np.int32), lasts.astype(np.int32)


def some_rows(n_axes, n_rows, skew=0.0, seed=2):
    """Uniform rows; a part of them lies in a tenth of each axis."""
    random = np.random.default_rng(seed)
    rows = random.integers(0, N_CELLS, (n_axes, n_rows))
    dense = random.random(n_rows) < skew
    rows[:, dense] = random.integers(N_CELLS // 2, N_CELLS // 2 + N_CELLS // 10, (n_axes, int(dense.sum())))
    return rows.astype(np.int32)


@pytest.mark.parametrize(("n_rows", "n_dc"), [(1, 64), (64, 64), (300, 64), (500, 1000)])
def test_clusters_have_all_rows_and_the_regions_that_these_fill(n_rows, n_dc):
    cells = some_rows(3, n_rows)
    clusters = DataClusters.of(cells, n_dc)

    assert sorted(clusters.order.tolist()) == list(range(n_rows))
    assert len(clusters) == -(-n_rows // n_dc)
    for cluster in range(len(clusters)):
        own = cells[:, clusters.order[cluster * n_dc : (cluster + 1) * n_dc]]
        assert clusters.lows[:, cluster].tolist() == own.min(axis=1).tolist()
        assert clusters.highs[:, cluster].tolist() == own.max(axis=1).tolist()


def test_clusters_in_hilbert_order_are_smaller_than_those_of_unsorted_rows():
    cells = some_rows(2, 2_000)
    by_curve, as_they_come = DataClusters.of(cells, 100), DataClusters.of(cells, 100, np.arange(2_000))

    areas = [np.prod((each.highs - each.lows).astype(float), axis=0).sum() for each in (by_curve, as_they_come)]
    assert areas[0] < 0.2 * areas[1]


@pytest.mark.parametrize("n_axes", [2, 4, 8])
@pytest.mark.parametrize("skew", [0.0, 0.8])
def test_the_chosen_size_is_near_the_best_of_a_sweep(n_axes, skew):
    n_boxes, n_rows = (300, 600) if SLOW else (5_000, 6_000)
    firsts, lasts = conjunctions(n_axes, n_boxes)
    cells = some_rows(n_axes, n_rows, skew)
    order = hilbert_order(cells)
    index = MLGF.build(firsts, lasts, np.arange(n_boxes, dtype=np.int32), [N_CELLS] * n_axes)
    chosen, _ = index.choose_cluster_size(cells, order)

    # What each size costs if all boxes are looked at, and not a sample of them.
    boxes = firsts, lasts, n_boxes, index._count_pages
    costs = {size: estimate_row_cost(cells, order, size, *boxes) for size in SIZES}
    assert costs[chosen] <= 1.2 * min(costs.values())


def test_few_rows_make_one_cluster():
    firsts, lasts = conjunctions(2, 100)
    cells = some_rows(2, 50)
    index = MLGF.build(firsts, lasts, np.arange(100, dtype=np.int32), [N_CELLS] * 2)

    assert index.choose_cluster_size(cells, hilbert_order(cells))[0] == SIZES[0]


def test_rows_that_meet_few_boxes_look_for_themselves(monkeypatch):
    firsts = np.random.default_rng(4).integers(0, N_CELLS - 30, (2, 2_000)).astype(np.int32)
    narrow = MLGF.build(firsts, firsts + 20, np.arange(2_000, dtype=np.int32), [N_CELLS] * 2)
    n = 6_000 if SLOW else 20_000
    wide = MLGF.build(*conjunctions(4, n), np.arange(n, dtype=np.int32), [N_CELLS] * 4)
    asked = []
    monkeypatch.setattr(MLGF, "match_immediately", lambda self, cells: asked.append("immediately"))
    monkeypatch.setattr(MLGF, "_join", lambda self, cells, order, n_dc: asked.append("batch"))
    narrow.match(some_rows(2, 1_000))
    wide.match(some_rows(4, 10_000))

    assert asked == ["immediately", "batch"]
