"""Data clusters: rows in Hilbert order, cut into clusters of equal size, each with the region that its rows fill.

Lim et al., sections 5.3 and 5.5. Rows of a cluster lie close to each other, so most boxes that one of them meets,
others meet as well, and one look at the index serves all. The paper leaves the number of rows in a cluster, N_dc, to
experiments; here it is chosen for each batch: for some clusters of each size a sample of the boxes is compared with
their regions, which tells what all would cost.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vedette.indexes.hilbert import hilbert_order
from vedette.indexes.index import as_cells
from vedette.kernels import kernel

SIZES = (256, 512, 768, 1024)  # bitmaps of rows are handled in four words of 64
N_CLUSTERS = 6  # looked at for each size
# Nanoseconds on one core of the machine of docs/benchmarks.md; only their ratios matter.
SCAN_COST = 0.12  # a box and axis, compared with the region of a cluster
RANK_COST = 5.0  # an axis of a box that meets the region: which rows its ends lie between
WORD_COST = 1.0  # 64 rows of a cluster on an axis of such a box
TURN_COST = 3.5  # 64 rows of a cluster and such a box, turned into lists by row
SORT_COST = 14.0  # an axis of a row: ranks within its cluster
TABLE_COST = 0.6  # 64 rows of a cluster and an axis of a row: the bitmap of all rows that are not above it


@dataclass(frozen=True)
class DataClusters:
    """Cluster `c` has the rows `order[c * n_dc:(c + 1) * n_dc]`, between `lows[axis, c]` and `highs[axis, c]`."""

    n_dc: int
    order: NDArray[np.int64]
    lows: NDArray[np.int32]
    highs: NDArray[np.int32]

    @classmethod
    def of(cls, cells: NDArray[np.int32], n_dc: int, order: NDArray[np.int64] | None = None) -> DataClusters:
        """Cluster rows that lie at `cells[axis, row]`, which may be given in Hilbert order already."""
        cells = as_cells(cells)
        if order is None:
            order = hilbert_order(cells)
        lows, highs = bound_clusters(cells, order, n_dc)
        return cls(n_dc, order, lows, highs)

    def __len__(self) -> int:
        return int(self.lows.shape[1])


def choose_cluster_size(
    cells: NDArray[np.int32],
    order: NDArray[np.int64],
    firsts: NDArray[np.int32],
    lasts: NDArray[np.int32],
    n_boxes: int,
) -> int:
    """The number of rows in a cluster, N_dc, that makes a row cheapest, for rows in Hilbert order.

    `firsts` and `lasts` are a sample of the boxes, (axes, boxes), of which there are `n_boxes`.
    """
    n_rows = len(order)
    sizes = [size for size in SIZES if size == SIZES[0] or size < 2 * n_rows]
    costs = [estimate_row_cost(cells, order, size, firsts, lasts, n_boxes) for size in sizes]
    return sizes[int(np.argmin(costs))]


def estimate_row_cost(
    cells: NDArray[np.int32],
    order: NDArray[np.int64],
    n_dc: int,
    firsts: NDArray[np.int32],
    lasts: NDArray[np.int32],
    n_boxes: int,
) -> float:
    """Nanoseconds a row, in clusters of this size."""
    n_axes, n_rows = cells.shape
    n_clusters = max(1, n_rows // n_dc)  # full ones: the rest may be a few rows in a small region
    chosen = np.unique(np.linspace(0, n_clusters - 1, N_CLUSTERS).astype(np.int64))
    n_met = count_met(cells, order, n_dc, chosen, firsts, lasts)
    share = n_met / (len(chosen) * max(1, firsts.shape[1]))
    n_words = n_dc / 64
    candidate = n_axes * (RANK_COST + WORD_COST * n_words) + TURN_COST * n_words
    # Few pages have no box that meets the region, unless hardly any does.
    scanned = min(1.0, 4 * share + 0.02)
    cluster = n_boxes * (share * candidate + scanned * SCAN_COST * n_axes)
    return float(cluster / min(n_dc, n_rows) + n_axes * (SORT_COST + TABLE_COST * n_words))


@kernel
def bound_clusters(
    cells: NDArray[np.int32], order: NDArray[np.int64], n_dc: int
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The least and the greatest cell of each cluster on each axis."""
    n_axes, n_rows = cells.shape
    n_clusters = -(-n_rows // n_dc)
    lows = np.empty((n_axes, n_clusters), np.int32)
    highs = np.empty((n_axes, n_clusters), np.int32)
    for cluster in range(n_clusters):
        _bound(cells, order, cluster * n_dc, min((cluster + 1) * n_dc, n_rows), lows, highs, cluster)
    return lows, highs


@kernel
def _bound(
    cells: NDArray[np.int32],
    order: NDArray[np.int64],
    start: int,
    end: int,
    lows: NDArray[np.int32],
    highs: NDArray[np.int32],
    at: int,
) -> None:
    for axis in range(cells.shape[0]):
        low = high = cells[axis, order[start]]
        for i in range(start + 1, end):
            low, high = min(low, cells[axis, order[i]]), max(high, cells[axis, order[i]])
        lows[axis, at], highs[axis, at] = low, high


@kernel
def count_met(
    cells: NDArray[np.int32],
    order: NDArray[np.int64],
    n_dc: int,
    clusters: NDArray[np.int64],
    firsts: NDArray[np.int32],
    lasts: NDArray[np.int32],
) -> int:
    """How often one of these boxes meets the region of one of these clusters."""
    n_axes, n_rows = cells.shape
    lows, highs = np.empty((n_axes, 1), np.int32), np.empty((n_axes, 1), np.int32)
    n_met = 0
    for cluster in clusters:
        _bound(cells, order, cluster * n_dc, min((cluster + 1) * n_dc, n_rows), lows, highs, 0)
        for box in range(firsts.shape[1]):
            meets = 1
            for axis in range(n_axes):
                meets &= (firsts[axis, box] <= highs[axis, 0]) & (lows[axis, 0] <= lasts[axis, box])
            n_met += meets
    return n_met
