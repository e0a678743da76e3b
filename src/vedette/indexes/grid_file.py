"""A multilevel grid file over the corners of boxes, joined with rows by spatial join windows.

The query index of Spatial Join CQ (Lim et al., sections 5.2 to 5.5), after Whang and Krishnamurthy, "The Multilevel
Grid File" (1991). A box on n axes is a point in the transform space of 2n axes: its first and its last cells. So large
boxes that overlap do not make regions of the directory overlap. A batch of rows is cut into data clusters in Hilbert
order, and each cluster reads the file once. Faster than trees if boxes are wide on many axes; costs about 12 bytes per
box and axis. Departures from the paper: a region is halved on the axis that divides it most evenly, not on each in
turn; entries have the bounds of their points; removed boxes leave gaps, and once half are removed, it is rebuilt.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from vedette.data.matches import Matches
from vedette.indexes.cluster_join import ClusteredRows, FoundBoxes, count_words, join_clusters, read_clusters
from vedette.indexes.data_clusters import (
    BATCH_COST,
    N_REGIONS,
    ORDER_COST,
    SORT_COST,
    DataClusters,
    choose_cluster_size,
    estimate_scan_cost,
)
from vedette.indexes.grid_file_directory import (
    FANOUT,
    HIGH,
    LOW,
    N_DIRECTORIES,
    N_PAGES,
    N_POINTS,
    N_REMOVED,
    NOWHERE,
    Directory,
)
from vedette.indexes.grid_file_pages import PAGE, Pages, insert_points, remove_places
from vedette.indexes.growth import collect
from vedette.indexes.hilbert import hilbert_order
from vedette.indexes.index import ANY_FIELDS, as_boxes, as_cells, check_given, count_bytes, sample_boxes
from vedette.indexes.spatial_join import count_pages, fill_windows
from vedette.native.buffers import empty_int32, empty_int64, output_int32
from vedette.native.damage import check, check_fields, check_shape, check_within

MAX_AXES = 10  # of the directory, the most selective ones; on the others, boxes are compared in their pages
IMMEDIATE_ROWS = 96  # up to this number, each row reads the file by itself
SAMPLED_PAGES = 4  # whose boxes are used to choose the size of data clusters
MAX_ROWS = (1 << 16) - 1  # of a data cluster
MAX_BYTES = 1 << 28  # for the bits of a batch; a batch that needs more is cut in two


@dataclass
class MLGF:
    """Page `p` has the points `points[p, :, i]`: first cells, then last cells. It may link to a page with equal points.

    Entry `e` of directory page `d` is the region `regions[d, LOW, :, e]` to `regions[d, HIGH, :, e]` of the transform
    space, of which the directory has the `axes`. The bounds of its points have the same layout.
    """

    n_fields: ClassVar[range] = ANY_FIELDS

    n_cells: NDArray[np.int64]
    axes: NDArray[np.int64]
    points: NDArray[np.int32]  # (pages, 2 * axes, PAGE)
    page_ids: NDArray[np.int32]
    sizes: NDArray[np.int32]
    nexts: NDArray[np.int32]
    regions: NDArray[np.int32]  # (directory pages, 2, 2 * known axes, FANOUT)
    bounds: NDArray[np.int32]
    children: NDArray[np.int32]
    n_entries: NDArray[np.int32]
    levels: NDArray[np.int32]  # above the pages with points
    counts: NDArray[np.int64]

    @classmethod
    def build(
        cls, firsts: NDArray[np.int32], lasts: NDArray[np.int32], ids: NDArray[np.int32], n_cells: Sequence[int]
    ) -> Self:
        """Index boxes on any number of axes."""
        firsts, lasts, ids = as_boxes(firsts, lasts, ids, n_cells)
        cells = np.array(n_cells, np.int64)
        axes = _choose_axes(firsts, lasts, cells)
        n_pages, n_directories = 2 + 3 * len(ids) // (2 * PAGE), 8 + 3 * len(ids) // (PAGE * FANOUT)
        index = cls(cells, axes, *_new_pages(n_pages, len(cells)), *_new_directories(n_directories, len(axes)))
        highs = np.concatenate([cells[axes], cells[axes]]) - 1
        index.regions[0, LOW, :, 0], index.regions[0, HIGH, :, 0] = 0, highs
        index.n_entries[0], index.children[0, 0] = 1, 0
        index.counts[N_PAGES] = index.counts[N_DIRECTORIES] = 1
        index._insert(firsts, lasts, ids)
        return index._without_spare()

    def match(self, cells: NDArray[np.int32]) -> Matches:
        """SJ-Batch, or SJ-Immediate if rows are few or match few boxes."""
        n_rows = cells.shape[1]
        if n_rows <= IMMEDIATE_ROWS:
            return self.match_immediately(cells)
        cells = as_cells(cells)
        some = as_cells(cells[:, np.linspace(0, n_rows - 1, N_REGIONS).astype(np.int64)])
        alone = estimate_scan_cost(some, some, self._count_pages)
        if alone < ORDER_COST + SORT_COST * len(cells) + BATCH_COST / n_rows:
            return self.match_immediately(cells)
        order = hilbert_order(cells)
        n_dc, together = self.choose_cluster_size(cells, order)
        if alone < together:
            return self.match_immediately(cells)
        return self._join(cells, order, n_dc)

    def match_immediately(self, cells: NDArray[np.int32]) -> Matches:
        """SJ-Immediate: each row is a data cluster of its own."""
        cells = as_cells(cells)
        return self.find(cells, cells)

    def match_batch(self, cells: NDArray[np.int32], n_dc: int | None = None) -> Matches:
        """SJ-Batch in data clusters of `n_dc` rows; by default, the size is chosen for the batch."""
        check_given(n_dc=n_dc)
        if n_dc is not None and n_dc > MAX_ROWS:
            raise ValueError(f"n_dc must be at most {MAX_ROWS}, as ranks of rows have 16 bits; got {n_dc}")
        cells = as_cells(cells)
        if cells.shape[1] == 0:
            return Matches.none(0)
        order = hilbert_order(cells)
        return self._join(cells, order, n_dc or self.choose_cluster_size(cells, order)[0])

    def _join(self, cells: NDArray[np.int32], order: NDArray[np.int64], n_dc: int) -> Matches:
        n_rows = cells.shape[1]
        clusters = DataClusters.of(cells, min(n_dc, n_rows), order)
        row_starts, first_met = np.zeros(n_rows + 1, np.int64), np.zeros(len(clusters) + 1, np.int64)
        n_words = count_words(clusters.n_dc)
        met, bits = empty_int32(0), empty_int64(0)
        done = 0
        rows = ClusteredRows(cells, order, clusters.lows, clusters.highs, clusters.n_dc)
        while True:
            found = FoundBoxes(row_starts, first_met, met, bits)
            done, needed = join_clusters(rows, done, found, self._pages, self._directory)
            if done == len(clusters):
                break
            n_met = int(first_met[done])
            room = -(-max(needed + needed // 4, n_met * len(clusters) // max(1, done)) // 64) * 64
            if room * n_words * 8 > MAX_BYTES and len(clusters) > 1:
                halves = (as_cells(half) for half in np.array_split(cells, 2, axis=1))
                return _concat([self._join(half, hilbert_order(half), n_dc) for half in halves])
            more_met, more_bits = empty_int32(room), empty_int64(room * n_words)
            more_met[:n_met], more_bits[: n_met * n_words] = met[:n_met], bits[: n_met * n_words]
            met, bits = more_met, more_bits
        positions = output_int32(int(row_starts.sum()))
        read_clusters(order, clusters.n_dc, row_starts, first_met, met, bits, positions)
        return Matches(row_starts, positions)

    def choose_cluster_size(
        self, cells: NDArray[np.int32], order: NDArray[np.int64], every: int = 1
    ) -> tuple[int, float]:
        """N_dc for a sample of one in `every` rows, in Hilbert order; and nanoseconds per row."""
        return choose_cluster_size(cells, order, *self._sample, len(self), self._count_pages, every)

    def find(self, lows: NDArray[np.int32], highs: NDArray[np.int32]) -> Matches:
        """The ids in the spatial join window of each region, from `lows[axis, i]` to `highs[axis, i]`.

        These are the boxes that overlap the region: candidates for the rows in it.
        """
        lows, highs = as_cells(lows), as_cells(highs)
        most, pages, directory = len(self), self._pages, self._directory
        return collect(
            lows.shape[1],
            most + 1,
            lambda done, starts, positions: fill_windows(lows, highs, done, starts, positions, most, pages, directory),
        )

    def insert(self, firsts: NDArray[np.int32], lasts: NDArray[np.int32], ids: NDArray[np.int32]) -> None:
        """Add boxes on the same axes."""
        self._insert(*as_boxes(firsts, lasts, ids, self.n_cells))

    def remove(self, ids: NDArray[np.int32]) -> None:
        """Remove all boxes with these ids."""
        taken = np.arange(PAGE) < self.sizes[:, None]
        places = np.flatnonzero(taken & np.isin(self.page_ids, ids))
        remove_places(places, self.points, self.page_ids, self.sizes, self.counts)
        if self.counts[N_REMOVED] > self.counts[N_POINTS] + PAGE:
            firsts, lasts, left = self.boxes()
            rebuilt = type(self).build(firsts, lasts, left, self.n_cells.tolist())
            self.__dict__.update(rebuilt.__dict__)

    def boxes(self) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
        """First cells, last cells and ids of all boxes."""
        taken = np.arange(PAGE) < self.sizes[:, None]
        corners = self.points.transpose(1, 0, 2)[:, taken]
        n_axes = len(self.n_cells)
        return corners[:n_axes], corners[n_axes:], self.page_ids[taken]

    def __len__(self) -> int:
        return int(self.counts[N_POINTS])

    def validate(self, n_cells: Sequence[int], ids: range) -> None:
        check_fields(self)
        check(np.array_equal(self.n_cells, n_cells), "the cells of a grid file are not those of its axes")
        check(self.axes.ndim == 1, "a grid file has invalid axes")
        known = self.axes.tolist()
        check(known and known == sorted(set(known) & set(range(len(n_cells)))), "a grid file has invalid axes")
        check_shape(self.counts, (5,), "the counts of a grid file")
        root, n_pages, n_directories, n_points, n_removed = self.counts.tolist()
        check(0 <= root < n_directories and n_pages > 0 and n_removed >= 0, "a grid file has no root")
        self._check_shapes(n_pages, n_directories)
        self._check_points(n_points, ids)
        self._check_directory(root)

    def has_boxes(self, firsts: NDArray[np.int32], lasts: NDArray[np.int32], ids: NDArray[np.int32]) -> bool:
        """Whether these boxes, of distinct ids or not, are the ones in the pages."""
        own_firsts, own_lasts, own_ids = self.boxes()
        own = np.concatenate([own_firsts, own_lasts, own_ids[None]])
        given = np.concatenate([firsts, lasts, ids[None]])
        if own.shape != given.shape:
            return False
        return np.array_equal(own[:, np.lexsort(own)], given[:, np.lexsort(given)])

    def _check_shapes(self, n_pages: int, n_directories: int) -> None:
        check_shape(self.points, (n_pages, 2 * len(self.n_cells), PAGE), "the points of a grid file")
        check_shape(self.page_ids, (n_pages, PAGE), "the ids of a grid file")
        check_shape(self.sizes, (n_pages,), "the sizes of pages")
        check_shape(self.nexts, (n_pages,), "the links of pages")
        for directory in (self.regions, self.bounds):
            check_shape(directory, (n_directories, 2, 2 * len(self.axes), FANOUT), "the regions of a grid file")
        check_shape(self.children, (n_directories, FANOUT), "the entries of a grid file")
        check_shape(self.n_entries, (n_directories,), "the numbers of entries")
        check_shape(self.levels, (n_directories,), "the levels of a grid file")

    def _check_points(self, n_points: int, ids: range) -> None:
        """Check that used places have boxes within their axes, and that the others are empty."""
        check_within(self.sizes, 0, PAGE, "the sizes of pages")
        check(int(self.sizes.sum()) == n_points, "points of a grid file are missing")
        taken = np.arange(PAGE) < self.sizes[:, None]
        check_within(self.page_ids[taken], ids.start, ids.stop - 1, "the ids of a grid file")
        for axis, n in enumerate(self.n_cells.tolist()):
            firsts, lasts = self.points[:, axis], self.points[:, len(self.n_cells) + axis]
            check((firsts[~taken] == NOWHERE).all(), "a page of a grid file has points beyond its size")
            check_within(firsts[taken], 0, n - 1, "the points of a grid file")
            check_within(lasts[taken], 0, n - 1, "the points of a grid file")

    def _check_directory(self, root: int) -> None:
        """Check that it is a tree: every entry leads one level down, and no page has two parents."""
        check_within(self.n_entries, 0, FANOUT, "the numbers of entries")
        check_within(self.levels, 0, len(self.levels), "the levels of a grid file")
        used = np.arange(FANOUT) < self.n_entries[:, None]
        unused_bounds = self.bounds.transpose(1, 0, 3, 2)[:, ~used]
        check((unused_bounds[LOW] == NOWHERE).all() and (unused_bounds[HIGH] == -1).all(), "entries have no region")
        inner = used & (self.levels > 0)[:, None]
        pages, directories = self.children[used & ~inner], self.children[inner]
        check_within(pages, 0, len(self.points) - 1, "the entries of a grid file")
        check_within(directories, 0, len(self.levels) - 1, "the entries of a grid file")
        levels = np.broadcast_to(self.levels[:, None], inner.shape)[inner]
        check((self.levels[directories] == levels - 1).all(), "an entry of a grid file skips a level")
        led_to = np.append(directories, root)
        check(np.bincount(led_to, minlength=1).max() <= 1, "two entries of a grid file lead to one page")
        check(
            (self.nexts >= -1).all() and (self.nexts < np.arange(len(self.nexts))).all(), "links of pages have a cycle"
        )
        led_to = np.concatenate([pages, self.nexts[self.nexts >= 0]])
        check(np.bincount(led_to, minlength=1).max() <= 1, "two entries of a grid file lead to one page")

    @property
    def nbytes(self) -> int:
        return count_bytes(self)

    @property
    def n_levels(self) -> int:
        """The number of levels of the directory."""
        return int(self.levels[self.counts[0]]) + 1

    @property
    def _pages(self) -> Pages:
        return Pages(self.points, self.page_ids, self.sizes, self.nexts)

    @property
    def _directory(self) -> Directory:
        return Directory(self.axes, self.regions, self.bounds, self.children, self.n_entries, self.levels, self.counts)

    def _count_pages(self, lows: NDArray[np.int32], highs: NDArray[np.int32]) -> NDArray[np.int64]:
        """How many pages are read for each region."""
        return count_pages(lows, highs, self.nexts, self._directory)

    @property
    def _sample(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """All boxes of some pages."""
        pages = sample_boxes(int(self.counts[N_PAGES]), SAMPLED_PAGES)
        taken = np.arange(PAGE) < self.sizes[pages][:, None]
        corners = np.ascontiguousarray(self.points[pages].transpose(1, 0, 2)[:, taken])
        n_axes = len(self.n_cells)
        return corners[:n_axes], corners[n_axes:]

    def _insert(self, firsts: NDArray[np.int32], lasts: NDArray[np.int32], ids: NDArray[np.int32]) -> None:
        done = 0
        while True:
            done = insert_points(firsts, lasts, ids, done, self._pages, self._directory)
            if done == len(ids):
                return
            if self.counts[N_PAGES] == len(self.points):
                more = dict(zip(_PAGES, _new_pages(1 + len(self.points) // 2, len(self.n_cells)), strict=True))
            else:
                new = _new_directories(4 + len(self.children) // 2, len(self.axes))
                more = dict(zip(_DIRECTORIES, new[:-1], strict=True))
            for name, array in more.items():
                setattr(self, name, np.concatenate([getattr(self, name), array]))

    def _without_spare(self) -> Self:
        """The same without spare room."""
        for names, n in ((_PAGES, self.counts[N_PAGES]), (_DIRECTORIES, self.counts[N_DIRECTORIES])):
            for name in names:
                setattr(self, name, getattr(self, name)[:n].copy())
        return self


_PAGES = "points", "page_ids", "sizes", "nexts"
_DIRECTORIES = "regions", "bounds", "children", "n_entries", "levels"


def _concat(found: Sequence[Matches]) -> Matches:
    counts = np.concatenate([np.zeros(1, np.int64), *(matches.counts for matches in found)])
    positions = output_int32(int(counts.sum()))
    np.concatenate([matches.positions for matches in found], out=positions)
    return Matches(np.cumsum(counts), positions)


def _new_pages(n: int, n_axes: int) -> tuple[Any, ...]:
    points = np.full((n, 2 * n_axes, PAGE), NOWHERE, np.int32)
    return points, np.full((n, PAGE), -1, np.int32), np.zeros(n, np.int32), np.full(n, -1, np.int32)


def _new_directories(n: int, n_known: int) -> tuple[Any, ...]:
    bounds = np.empty((n, 2, 2 * n_known, FANOUT), np.int32)
    bounds[:, LOW], bounds[:, HIGH] = NOWHERE, -1
    regions, children = np.zeros((n, 2, 2 * n_known, FANOUT), np.int32), np.zeros((n, FANOUT), np.int32)
    return regions, bounds, children, np.zeros(n, np.int32), np.zeros(n, np.int32), np.zeros(5, np.int64)


def _choose_axes(firsts: NDArray[np.int32], lasts: NDArray[np.int32], n_cells: NDArray[np.int64]) -> NDArray[np.int64]:
    """All axes, or if they are many, those on which boxes are narrowest."""
    if len(n_cells) <= MAX_AXES or firsts.shape[1] == 0:
        return np.arange(min(len(n_cells), MAX_AXES))
    shares = (lasts.astype(np.float64) - firsts + 1).mean(axis=1) / n_cells
    return np.sort(np.argsort(shares, kind="stable")[:MAX_AXES])
