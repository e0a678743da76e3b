"""Data clusters: rows in Hilbert order, cut into clusters of equal size, each with the bounding region of its rows.

Lim et al., sections 5.3 and 5.5. Rows of a cluster are close to each other, so they share most of their boxes, and one
lookup in the index serves all. The paper leaves the number of rows per cluster, N_dc, to experiments. Here it is chosen
for each batch: a sample of the boxes is compared with the regions of some clusters of each size to estimate the cost.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vedette.indexes.hilbert import hilbert_order
from vedette.indexes.index import as_cells
from vedette.native.kernels import kernel

SIZES = (256, 512, 768, 1024)  # bitmaps of rows are handled in four words of 64
N_REGIONS = 6  # examined for each size
# Nanoseconds on one core of the machine of docs/benchmarks.md; only their ratios matter.
PAGE_COST, PAGE_AXIS_COST = 20.0, 7.5  # a page compared with a region, and each axis of it
RANK_COST = 6.0  # an axis of a box that overlaps the region: the ranks of its ends
WORD_COST = 1.0  # 64 rows of a cluster on an axis of such a box
TRANSPOSE_COST = 3.5  # 64 rows of a cluster and such a box, transposed into lists by row
SORT_COST = 14.0  # an axis of a row: ranks within its cluster
TABLE_COST = 0.6  # 64 rows of a cluster and an axis of a row: the bitmap of all rows that are not above it
ORDER_COST = 80.0  # a row, sorted into Hilbert order
BATCH_COST = 100_000.0  # a batch of any number of rows

# Returns how many pages must be read for each of some regions.
CountPages = Callable[[NDArray[np.int32], NDArray[np.int32]], NDArray[np.int64]]


@dataclass(frozen=True)
class DataClusters:
    """Cluster `c` has the rows `order[c * n_dc:(c + 1) * n_dc]`, between `lows[axis, c]` and `highs[axis, c]`."""

    n_dc: int
    order: NDArray[np.int64]
    lows: NDArray[np.int32]
    highs: NDArray[np.int32]

    @classmethod
    def of(cls, cells: NDArray[np.int32], n_dc: int, order: NDArray[np.int64] | None = None) -> DataClusters:
        """Cluster rows that lie at `cells[axis, row]`. `order` is their Hilbert order, if it is known."""
        cells = as_cells(cells)
        if order is None:
            order = hilbert_order(cells)
        lows, highs = bound_some(cells, order, n_dc, np.arange(-(-len(order) // n_dc)))
        return cls(n_dc, order, lows, highs)

    def __len__(self) -> int:
        return int(self.lows.shape[1])


def choose_cluster_size(
    cells: NDArray[np.int32],
    order: NDArray[np.int64],
    firsts: NDArray[np.int32],
    lasts: NDArray[np.int32],
    n_boxes: int,
    count_pages: CountPages,
    every: int = 1,
) -> tuple[int, float]:
    """The number of rows per cluster, N_dc, with the least cost, for rows in Hilbert order; and nanoseconds per row.

    `firsts` and `lasts`, (axes, boxes), are a sample of the `n_boxes` boxes. The rows may be a sample, one in `every`
    rows of the batch, which gives nearly the same result.
    """
    sizes = [size for size in SIZES if size == SIZES[0] or size < 2 * every * len(order)]
    costs = [estimate_row_cost(cells, order, size, firsts, lasts, n_boxes, count_pages, every) for size in sizes]
    return min(zip(sizes, costs, strict=True), key=lambda each: each[1])


def estimate_row_cost(
    cells: NDArray[np.int32],
    order: NDArray[np.int64],
    n_dc: int,
    firsts: NDArray[np.int32],
    lasts: NDArray[np.int32],
    n_boxes: int,
    count_pages: CountPages,
    every: int = 1,
) -> float:
    """Nanoseconds per row, in clusters of this size."""
    n_axes, n_rows = cells.shape[0], cells.shape[1] * every
    n_clusters = max(1, n_rows // n_dc)  # full ones: the last may have few rows in a small region
    chosen = np.unique(np.linspace(0, n_clusters - 1, N_REGIONS).astype(np.int64))
    lows, highs = bound_some(cells, order, n_dc // every, chosen)
    n_met = n_boxes * count_met(lows, highs, firsts, lasts) / (len(chosen) * max(1, firsts.shape[1]))
    n_words = n_dc / 64
    candidate = n_axes * (RANK_COST + WORD_COST * n_words) + TRANSPOSE_COST * n_words
    cluster = n_met * candidate + estimate_scan_cost(lows, highs, count_pages)
    row = n_axes * (SORT_COST + TABLE_COST * n_words) + ORDER_COST
    return float(cluster / min(n_dc, n_rows) + row + BATCH_COST / n_rows)


def estimate_scan_cost(lows: NDArray[np.int32], highs: NDArray[np.int32], count_pages: CountPages) -> float:
    """Average nanoseconds to read all pages of a region."""
    return float(count_pages(lows, highs).mean()) * (PAGE_COST + PAGE_AXIS_COST * len(lows))


@kernel
def bound_some(
    cells: NDArray[np.int32], order: NDArray[np.int64], n_dc: int, clusters: NDArray[np.int64]
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The least and the greatest cell of some clusters on each axis."""
    n_axes, n_rows = cells.shape
    lows = np.empty((n_axes, len(clusters)), np.int32)
    highs = np.empty((n_axes, len(clusters)), np.int32)
    for i in range(len(clusters)):
        first = clusters[i] * n_dc
        for axis in range(n_axes):
            low = high = cells[axis, order[first]]
            for j in range(first + 1, min(first + n_dc, n_rows)):
                low, high = min(low, cells[axis, order[j]]), max(high, cells[axis, order[j]])
            lows[axis, i], highs[axis, i] = low, high
    return lows, highs


@kernel
def count_met(
    lows: NDArray[np.int32], highs: NDArray[np.int32], firsts: NDArray[np.int32], lasts: NDArray[np.int32]
) -> int:
    """The number of pairs of a box and a region that overlap."""
    n_axes, n_regions = lows.shape
    n_met = 0
    for region in range(n_regions):
        for box in range(firsts.shape[1]):
            meets = 1
            for axis in range(n_axes):
                meets &= (firsts[axis, box] <= highs[axis, region]) & (lows[axis, region] <= lasts[axis, box])
            n_met += meets
    return n_met
