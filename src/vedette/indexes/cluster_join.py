"""Spatial join of data clusters and the boxes of a multilevel grid file: SJ-Batch (Lim et al., section 5.5).

The boxes in the spatial join window of a cluster are found once; then, for each box, the rows that it contains. For
that, the rows of a cluster are ranked on every axis, and for every rank there is a bitmap of the rows up to it: a box
contains the rows in which two such bitmaps differ on every axis. The bits are transposed from boxes to rows, 64 by 64.
When all rows are counted, they are written to each row's list.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vedette.indexes.grid_file_directory import NOWHERE, Directory
from vedette.indexes.grid_file_pages import PAGE, Pages
from vedette.indexes.spatial_join import find_pages, meet_page
from vedette.indexes.wide_bits import begin_between, keep_between, transpose_square, write_ones
from vedette.native.bits import count_ones, lowest_one, without_lowest
from vedette.native.kernels import kernel

STEPS = 2048  # into which the rows of a cluster are sorted
LINE = 8  # rows whose words are adjacent: one cache line


class ClusteredRows(NamedTuple):
    """Rows in the order of their data clusters of `n_dc` rows; cluster `c` is in `lows[:, c]` to `highs[:, c]`."""

    cells: NDArray[np.int32]
    order: NDArray[np.int64]
    lows: NDArray[np.int32]
    highs: NDArray[np.int32]
    n_dc: int


class FoundBoxes(NamedTuple):
    """The boxes that each cluster overlaps, and which of them contain each row.

    Cluster `c` has the boxes of the ids `met[first_met[c]:first_met[c + 1]]`, padded to a multiple of 64. From
    `bits[n_words * first_met[c]]` on there are as many bits for each row that a cluster may have: for every eight rows,
    for every 64 boxes, eight words. The number of boxes of row `r` is in `row_starts[r + 1]`.
    """

    row_starts: NDArray[np.int64]
    first_met: NDArray[np.int64]
    met: NDArray[np.int32]
    bits: NDArray[np.int64]


class _RankedRows(NamedTuple):
    """The rows of a cluster, sorted on every axis.

    `ranked[axis]` are their cells in order, followed by a cell above all rows. `up_to[axis, r]` has the bits of the
    first `r` of them. If cell `c` occurs, it is between `steps[axis, s]` and `steps[axis, s + 1]`, where `s` is
    `(c - low) >> shifts[axis]`.
    """

    shifts: NDArray[np.int64]
    steps: NDArray[np.uint16]
    ranked: NDArray[np.int32]
    rows: NDArray[np.int32]  # of the axis that was sorted last
    up_to: NDArray[np.int64]


class _PageRoom(NamedTuple):
    """Buffers for the boxes of a page."""

    ranks: NDArray[np.uint16]
    places: NDArray[np.int64]
    masks: NDArray[np.int64]


@kernel
def join_clusters(
    clusters: ClusteredRows,
    done: int,
    found: FoundBoxes,
    own_pages: Pages,
    directory: Directory,
) -> tuple[int, int]:
    """Find the boxes that contain a row of each cluster, from cluster `done` on.

    Stops if the next cluster needs more room than there is. Returns this cluster, and how many boxes it needs room for.
    """
    cells, order, lows, highs, n_dc = clusters.cells, clusters.order, clusters.lows, clusters.highs, clusters.n_dc
    row_starts, first_met, met, bits = found.row_starts, found.first_met, found.met, found.bits
    points, page_ids, nexts = own_pages.points, own_pages.page_ids, own_pages.nexts
    n_axes, n_rows = cells.shape
    n_words = count_words(n_dc)
    stack, pages = np.empty(len(directory.children) + 1, np.int32), np.empty(len(points), np.int32)
    low, high = np.empty(n_axes, np.int32), np.empty(n_axes, np.int32)
    shifts, steps = np.empty(n_axes, np.int64), np.empty((n_axes, STEPS + 2), np.uint16)
    ranked, rows = np.empty((n_axes, n_dc + 1), np.int32), np.empty(n_dc, np.int32)
    ranks, places = np.empty((PAGE, 2, n_axes), np.uint16), np.empty(PAGE, np.int64)
    up_to = np.empty((n_axes, n_dc + 1, n_words), np.int64)
    masks, square = np.empty((1024, n_words), np.int64), np.empty(64, np.int64)
    n_found = np.empty(LINE, np.int64)
    ranked_rows = _RankedRows(shifts, steps, ranked, rows, up_to)
    for cluster in range(done, lows.shape[1]):
        first = cluster * n_dc
        n = min(n_rows - first, n_dc)
        for axis in range(n_axes):
            low[axis], high[axis] = lows[axis, cluster], highs[axis, cluster]
            _rank_rows(cells, order, first, n, axis, low[axis], high[axis], ranked_rows)
        n_pages = find_pages(low, high, nexts, directory, stack, pages)
        start = first_met[cluster]
        if start + n_pages * PAGE > len(met):
            return cluster, start + n_pages * PAGE
        if n_pages * PAGE > len(masks):
            masks = np.empty((2 * n_pages * PAGE, n_words), np.int64)
        end = start
        for i in range(n_pages):
            room = _PageRoom(ranks, places, masks)
            end = _find_rows(pages[i], low, high, ranked_rows, points, page_ids, room, start, met, end)
        while (end - start) & 63:
            masks[end - start] = 0
            met[end] = -1
            end += 1
        first_met[cluster + 1] = end
        n_blocks = (end - start) >> 6
        for block in range(n_blocks):
            _transpose_block(masks, block, square, bits, n_words * start + LINE * block, n_blocks)
        for i in range(0, n, LINE):
            _count_ones(bits, n_words * start + i * n_blocks, n_blocks, n_found)
            for j in range(min(n - i, LINE)):
                row_starts[order[first + i + j] + 1] = n_found[j]
    return int(lows.shape[1]), first_met[-1]


@kernel
def count_words(n_dc: int) -> int:
    """The number of words of a bitmap of a cluster's rows, a multiple of four."""
    return (n_dc + 255) // 256 * 4


@kernel
def read_clusters(
    order: NDArray[np.int64],
    n_dc: int,
    row_starts: NDArray[np.int64],
    first_met: NDArray[np.int64],
    met: NDArray[np.int32],
    bits: NDArray[np.int64],
    positions: NDArray[np.int32],
) -> None:
    """Write the list of each row. `row_starts` has lengths before the call and starts after it."""
    n_rows, n_words = len(order), count_words(n_dc)
    for row in range(n_rows):
        row_starts[row + 1] += row_starts[row]
    for cluster in range(len(first_met) - 1):
        first, start = cluster * n_dc, first_met[cluster]
        n_blocks = (first_met[cluster + 1] - start) >> 6
        for i in range(min(n_rows - first, n_dc)):
            row = order[first + i]
            out, end = row_starts[row], row_starts[row + 1]
            at = n_words * start + i // LINE * LINE * n_blocks + i % LINE
            for block in range(n_blocks):
                word = bits[at + LINE * block]
                if word != 0:
                    out = write_ones(word, met, start + 64 * block, positions, out, end)


@kernel
def _rank_rows(
    cells: NDArray[np.int32],
    order: NDArray[np.int64],
    first: int,
    n: int,
    axis: int,
    low: int,
    high: int,
    ranked_rows: _RankedRows,
) -> None:
    """Sort the rows of a cluster on one axis."""
    steps, ranked, rows, up_to = ranked_rows.steps, ranked_rows.ranked, ranked_rows.rows, ranked_rows.up_to
    shift = 0
    while (np.int64(high) - low + 1) >> shift >= STEPS:
        shift += 1
    steps[axis] = 0
    for i in range(n):  # step s is counted at s + 2; filling then moves each start to its final value
        steps[axis, ((cells[axis, order[first + i]] - low) >> shift) + 2] += 1
    for step in range(2, STEPS + 2):
        steps[axis, step] += steps[axis, step - 1]
    for i in range(n):
        step = (cells[axis, order[first + i]] - low) >> shift
        at = steps[axis, step + 1]
        rows[at], ranked[axis, at] = i, cells[axis, order[first + i]]
        steps[axis, step + 1] += 1
    for i in range(1, n):  # only rows that share a step are not in order yet
        cell, row = ranked[axis, i], rows[i]
        at = i
        while at > 0 and ranked[axis, at - 1] > cell:
            ranked[axis, at], rows[at] = ranked[axis, at - 1], rows[at - 1]
            at -= 1
        ranked[axis, at], rows[at] = cell, row
    ranked[axis, n] = NOWHERE
    n_words = up_to.shape[2]
    for word in range(n_words):
        up_to[axis, 0, word] = 0
    for rank in range(n):
        for word in range(n_words):
            up_to[axis, rank + 1, word] = up_to[axis, rank, word]
        up_to[axis, rank + 1, rows[rank] >> 6] |= np.int64(1) << np.int64(rows[rank] & 63)
    ranked_rows.shifts[axis] = shift


@kernel
def _find_rank(
    cell: int, low: int, axis: int, shift: int, steps: NDArray[np.uint16], ranked: NDArray[np.int32]
) -> np.uint16:
    """How many rows lie below a cell, which is at most one above the last cell."""
    rank = steps[axis, ((cell - low) >> shift) & 0xFFFF]  # an index that cannot be negative is faster
    rank = np.uint16(rank + (ranked[axis, rank] < cell))
    while ranked[axis, rank] < cell:  # rarely: most steps have at most one row
        rank = np.uint16(rank + 1)
    return rank


@kernel
def _find_rows(
    page: int,
    lows: NDArray[np.int32],
    highs: NDArray[np.int32],
    ranked_rows: _RankedRows,
    points: NDArray[np.int32],
    page_ids: NDArray[np.int32],
    room: _PageRoom,
    start: np.int64,
    met: NDArray[np.int32],
    end: np.int64,
) -> np.int64:
    """Add the boxes of a page that contain a row, and the bits of the rows, after those from `start` to `end`.

    Returns the new end.
    """
    shifts, steps, ranked, up_to = ranked_rows.shifts, ranked_rows.steps, ranked_rows.ranked, ranked_rows.up_to
    ranks, places, masks = room.ranks, room.places, room.masks
    n_axes, n_ranks, n_words = len(lows), up_to.shape[1], up_to.shape[2]
    word = meet_page(page, lows, highs, points)
    n = 0
    while word != 0:
        places[n] = lowest_one(word)
        word = without_lowest(word)
        n += 1
    for axis in range(n_axes):
        low, high, shift = int(lows[axis]), int(highs[axis]), shifts[axis]
        for i in range(n):
            first, last = int(points[page, axis, places[i]]), int(points[page, n_axes + axis, places[i]])
            ranks[i, 0, axis] = _find_rank(max(first, low), low, axis, shift, steps, ranked)
            ranks[i, 1, axis] = _find_rank(min(last, high) + 1, low, axis, shift, steps, ranked)
    for i in range(n):
        holds_any = np.int64(0)
        for at in range(0, n_words, 4):
            place = n_words * (end - start) + at
            begin_between(masks, place, up_to, n_words * int(ranks[i, 1, 0]) + at, n_words * int(ranks[i, 0, 0]) + at)
            for axis in range(1, n_axes):
                least, most = axis * n_ranks + int(ranks[i, 0, axis]), axis * n_ranks + int(ranks[i, 1, axis])
                keep_between(masks, place, up_to, n_words * most + at, n_words * least + at)
            for i_word in range(at, at + 4):
                holds_any |= masks[end - start, i_word]
        met[end] = page_ids[page, places[i]]
        end += holds_any != 0
    return end


@kernel
def _transpose_block(
    masks: NDArray[np.int64],
    block: int,
    square: NDArray[np.int64],
    bits: NDArray[np.int64],
    at: np.int64,
    n_blocks: np.int64,
) -> None:
    """Transpose 64 boxes with the bits of their rows to rows with the bits of their boxes."""
    for word in range(masks.shape[1]):
        for i in range(64):
            square[i] = masks[64 * block + i, word]
        transpose_square(square, bits, at + 64 * word * n_blocks, LINE * n_blocks)


@kernel
def _count_ones(bits: NDArray[np.int64], at: np.int64, n_blocks: np.int64, n_found: NDArray[np.int64]) -> None:
    """Count the boxes that contain each row of a line."""
    for j in range(LINE):
        n_found[j] = 0
    for block in range(n_blocks):
        for j in range(LINE):
            n_found[j] += count_ones(bits[at + LINE * block + j])
