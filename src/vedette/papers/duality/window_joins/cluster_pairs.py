"""Which pairs of a data cluster are in which of the regions that it intersects (Lim et al., figure 11, line 10)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vedette.native.bits import lowest_one, without_lowest
from vedette.native.compared import find_at_least, find_at_most
from vedette.native.kernels import kernel
from vedette.papers.duality.window_joins.data_index import WORD, Clusters
from vedette.papers.duality.window_joins.refinement import BoundArrays, KeptRows, NewRows


class FoundPairs(NamedTuple):
    """Room for pairs: the region, the new row, and the row of the window."""

    regions: NDArray[np.int32]
    arrivals: NDArray[np.int32]
    rows: NDArray[np.int32]


@kernel
def compare_pairs(
    met_starts: NDArray[np.int64],
    met: NDArray[np.int32],
    start_at: tuple[int, int],
    clusters: Clusters,
    boxes: NDArray[np.int32],
    new: NewRows,
    kept: KeptRows,
    bounds: BoundArrays,
    out: FoundPairs,
) -> tuple[int, int, int]:
    """Write the pairs of clusters that are in the regions of their cluster, while there is room for a cluster.

    `met_starts` has the clusters of each new row, row after row. Continues from a cluster and a position in its
    regions; returns where it stopped, and how many pairs were written.
    """
    cluster_row, place = start_at
    n_dc, n_rows, ordered, cells, lows, highs, first_rows, last_rows, first_times, last_times = clusters
    arrival_times, limits = new
    times, shift = kept
    most, longest, own = bounds
    out_regions, out_arrivals, out_rows = out
    n, n_clusters, n_axes = 0, lows.shape[1], len(cells)
    width = cells.shape[1]
    partial = np.empty(n_axes, np.int64)
    for at in range(cluster_row, len(met_starts) - 1):
        arrival, cluster = at // n_clusters, at % n_clusters
        first = cluster * n_dc
        size = min(n_dc, n_rows - first)
        limit, time = limits[arrival], arrival_times[arrival]
        youngest, oldest = time - last_times[cluster], time - first_times[cluster]
        for i in range(max(place, met_starts[at]), met_starts[at + 1]):
            if len(out_rows) - n < size:
                return at, i, n
            region = met[i]
            least = limit - most[region]
            if last_rows[cluster] < least or first_rows[cluster] >= limit:
                continue
            if oldest < -own[region] or youngest > longest[region]:
                continue
            all_rows = first_rows[cluster] >= least and last_rows[cluster] < limit
            all_times = youngest >= -own[region] and oldest <= longest[region]
            n_partial = 0
            for axis in range(n_axes):
                if boxes[region, 0, axis] > lows[axis, cluster] or boxes[region, 1, axis] < highs[axis, cluster]:
                    partial[n_partial] = axis
                    n_partial += 1
            for start in range(0, size, WORD):
                word = np.int64(-1)
                if size - start < WORD:
                    word = (np.int64(1) << np.int64(size - start)) - np.int64(1)
                if not all_rows:
                    word &= find_at_least(ordered, first + start, np.int32(max(least, 0)))
                    word &= find_at_most(ordered, first + start, np.int32(limit - 1))
                for k in range(n_partial):
                    axis = partial[k]
                    word &= find_at_least(cells, axis * width + first + start, boxes[region, 0, axis])
                    word &= find_at_most(cells, axis * width + first + start, boxes[region, 1, axis])
                while word != 0:
                    row = ordered[first + start + lowest_one(word)]
                    word = without_lowest(word)
                    out_regions[n], out_arrivals[n], out_rows[n] = region, arrival, row
                    n += all_times or -own[region] <= time - times[row - shift] <= longest[region]
    return len(met_starts) - 1, 0, n
