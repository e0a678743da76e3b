"""SJ-Join: the pairs of a new row and the other window, in data clusters, spatially joined with all queries at once.

Lim et al., section 6. A pair is a point in the space of the attributes of both streams and of their windows; a query is
a region of it. A query's join condition is cut into pieces, and the regions are in one multilevel grid file. The pairs
of a row are read in Hilbert order of the window's rows. Each data cluster of N_dc pairs is looked up once, to find the
regions that intersect it, its spatial join window. Its pairs are compared with these regions, and the remaining
conditions are checked. The larger the window, the greater the advantage over IBS-JS. Costs a look-up per cluster and
row, and a comparison per region found. The file is rebuilt when queries change, and when windows have four times the
rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vedette.data.columns import Column
from vedette.data.matches import Matches
from vedette.errors import count
from vedette.indexes.grid_file import MLGF
from vedette.language import Residual
from vedette.language.links import show
from vedette.native.buffers import empty_int32
from vedette.operators.window_join.branches import Branches, Edge
from vedette.operators.window_join.group import JoinGroup
from vedette.operators.window_join.join import WindowJoin
from vedette.operators.window_join.stream_selections import BoxesOf
from vedette.papers.duality.window_joins.cluster_pairs import FoundPairs, compare_pairs
from vedette.papers.duality.window_joins.data_index import Clusters, DataIndex
from vedette.papers.duality.window_joins.query_regions import AGES, LAG, QueryRegions, find_regions
from vedette.papers.duality.window_joins.refinement import KeptRows, NewRows, find_linked, keep_selected
from vedette.papers.duality.window_joins.row_cells import RowCells
from vedette.papers.duality.window_joins.selection_boxes import active_groups

N_DC = 512  # pairs per data cluster: half and twice as many take about as long, 128 up to a third longer
N_PIECES = 4  # of a join condition, as in section 7.4
GROWTH = 4  # with this many times the rows, the cuts of pieces are out of date
FEW_ROWS = 16
CLUSTERS_AT_ONCE = 1 << 16
MET_AT_ONCE = 1 << 20  # about this many regions of clusters
PAIRS_AT_ONCE = 1 << 20

Found = tuple[JoinGroup, NDArray[np.int32], list[NDArray[np.int32]]]


class SJJoin:
    """The query index, and the data indexes of both windows."""

    summary = (
        f"the pairs that a new row makes with the other window, in data clusters of {N_DC} in Hilbert order, look "
        f"once a cluster into one multilevel grid file of all branches, windows included"
    )

    @staticmethod
    def describe(edge: Edge, branches: Branches) -> str:
        """What becomes of a join condition, in words."""
        link = edge.equalities[0] if edge.equalities else edge.link
        if link is None:
            return "no join condition"
        rest = len(edge.equalities) + (edge.link is not None) - 1
        refined = f"; {count(rest, 'more link')} checked on pairs" if rest else ""
        return f"{link.name}: in {N_PIECES} pieces, cut along {show(link.sides[0])}{refined}"

    def __init__(self, boxes_of: BoxesOf, n_dc: int = N_DC, n_pieces: int = N_PIECES) -> None:
        self._boxes_of = boxes_of
        self._n_dc = n_dc
        self._n_pieces = n_pieces
        self._regions: QueryRegions | None = None
        self._index: MLGF | None = None
        self._boxes: list[NDArray[np.int32]] = []  # by stream, (regions, first and last, its attributes)
        self._data: list[DataIndex] = []
        self._residuals: list[list[Residual]] = []
        self._n_rows = 0  # when it was made

    @property
    def nbytes(self) -> int:
        parts: list[Any] = [*self._data, *(each for each in (self._index, self._regions) if each is not None)]
        return sum(each.nbytes for each in parts)

    def follow(self) -> None:
        self._regions = None

    def find(
        self, join: WindowJoin, firsts: Sequence[int], limits: Sequence[Sequence[NDArray[np.int64]]]
    ) -> Iterator[Found]:
        regions = self._regions
        if regions is None or join.n_rows > GROWTH * max(self._n_rows, FEW_ROWS):
            regions = self._regions = self._build(join)
        if regions is None:
            return
        for data in self._data:
            data.update()
        for origin, other in ((0, 1), (1, 0)):
            if firsts[origin] < join.streams[origin].end and len(join.streams[other]):
                yield from self._join(join, regions, origin, firsts[origin], limits[origin][other])

    def _build(self, join: WindowJoin) -> QueryRegions | None:
        """The query index; None if it would be empty."""
        if not active_groups(join):
            return None
        selected = [self._boxes_of(stream) for stream in range(2)]
        regions = find_regions(join, selected, self._n_pieces)
        self._residuals = [each.residuals for each in selected]
        ids = np.arange(len(regions), dtype=np.int32)
        self._index = MLGF.build(regions.firsts, regions.lasts, ids, regions.n_cells)
        cells = [
            RowCells(attributes, join.time_zone, stream)
            for attributes, stream in zip(regions.attributes, join.streams, strict=True)
        ]
        self._n_rows = join.n_rows
        n_expected = GROWTH * max(self._n_rows, FEW_ROWS)
        self._data = [DataIndex(own, stream, n_expected) for own, stream in zip(cells, join.streams, strict=True)]
        self._boxes = [
            np.ascontiguousarray(np.stack([regions.firsts[axes], regions.lasts[axes]], axis=1).T)
            for axes in map(regions.axes_of, range(2))
        ]
        return regions

    def _join(
        self, join: WindowJoin, regions: QueryRegions, origin: int, first: int, limits: NDArray[np.int64]
    ) -> Iterator[Found]:
        """The pairs of new rows of a stream, in batches."""
        assert self._index is not None
        own = join.streams[origin]
        clusters = self._data[1 - origin].cut(self._n_dc)
        times = own.times.values[first - own.first :]
        cells = self._data[origin].cells.stack(slice(first - own.first, None))
        start, n_next = 0, 1
        while start < len(times):
            some = slice(start, min(start + n_next, len(times)))
            lows, highs = _bound(regions, origin, cells[:, some], times[some], limits[some], clusters)
            met = self._index.find(lows, highs)
            for found, arrivals, rows in self._compare(join, regions, origin, met, times[some], limits[some], clusters):
                yield from self._refine(join, regions, origin, found, arrivals + np.int32(first + start), rows)
            fitting = MET_AT_ONCE // 2 * (some.stop - start) // max(1, len(met.positions))
            start, n_next = some.stop, max(1, min(fitting, 16 * n_next, CLUSTERS_AT_ONCE // clusters.n))

    def _compare(
        self,
        join: WindowJoin,
        regions: QueryRegions,
        origin: int,
        met: Matches,
        times: NDArray[Any],
        limits: NDArray[np.int64],
        clusters: Clusters,
    ) -> Iterator[tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]]:
        """The pairs in the regions of their clusters: the region, the new row, and the row of the window."""
        other = join.streams[1 - origin]
        new, kept = NewRows(times, limits), KeptRows(other.times.values, other.first)
        boxes, bounds = self._boxes[1 - origin], regions.bounds[origin].arrays
        room = max(PAIRS_AT_ONCE, self._n_dc)
        region, place = 0, 0
        while region < len(met):
            out = FoundPairs(empty_int32(room), empty_int32(room), empty_int32(room))
            region, place, n = compare_pairs(
                met.starts, met.positions, (region, place), clusters, boxes, new, kept, bounds, out
            )
            yield out.regions[:n], out.arrivals[:n], out.rows[:n]

    def _refine(
        self,
        join: WindowJoin,
        regions: QueryRegions,
        origin: int,
        found: NDArray[np.int32],
        own: NDArray[np.int32],
        other: NDArray[np.int32],
    ) -> Iterator[Found]:
        """The pairs and regions whose branch is true."""
        branches, group_of = regions.branches[found], regions.group_of[found]
        for number, group in enumerate(regions.groups):
            chosen = np.flatnonzero(group_of == number)
            pair = [own[chosen], other[chosen]] if origin == 0 else [other[chosen], own[chosen]]
            of_group = branches[chosen]
            kept = find_linked(join, group, of_group, pair)
            of_group, pair = of_group[kept], [each[kept] for each in pair]
            of_group, pair = keep_selected(join, group, self._residuals, of_group, pair)
            if len(of_group):
                yield group, of_group, pair


def _bound(
    regions: QueryRegions,
    origin: int,
    cells: NDArray[np.int32],
    times: NDArray[Any],
    limits: NDArray[np.int64],
    clusters: Clusters,
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The regions of data clusters: all clusters with each new row, which is at `cells`."""
    n_rows, n_clusters = len(times), clusters.n
    lows = np.empty((len(regions.n_cells), n_rows * n_clusters), np.int32)
    highs = np.empty_like(lows)
    own, other = regions.axes_of(origin), regions.axes_of(1 - origin)
    lows[own] = highs[own] = np.repeat(cells, n_clusters, axis=1)
    lows[other], highs[other] = np.tile(clusters.lows, n_rows), np.tile(clusters.highs, n_rows)
    first_ages = limits[:, None] - clusters.last_rows, limits[:, None] - clusters.first_rows
    lags = times[:, None] - clusters.last_times, times[:, None] - clusters.first_times
    if origin == 1:
        lags = -lags[1], -lags[0]
    one = np.ones((n_rows, n_clusters), np.int64)
    known = {LAG: lags, AGES[origin]: (one, one), AGES[1 - origin]: first_ages}
    place = lows.shape[0] - len(regions.windows)
    for key, axis in regions.windows.items():
        for ends, values in zip((lows, highs), known[key], strict=True):
            ends[place] = axis.locate(Column(np.ascontiguousarray(values).reshape(-1)))
        place += 1
    return lows, highs
