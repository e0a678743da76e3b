"""Look-ups group by group: the table over the values tells whether one may be in a group's cover, and where.

After that the work follows the output, because a value in the cover is in at least one band of the group. O(groups +
output) per shift, at a few nanoseconds per group; the structure of Lemma 5 is O(log + output) but stores values x
groups.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vedette.native.kernels import kernel
from vedette.operators.band_join.index.cell_screen import CoverCells, is_near, screen_cells
from vedette.operators.band_join.index.group_arrays import BandLists, GroupTable, Progress
from vedette.operators.band_join.index.group_lists import count_holding, write_affected, write_list
from vedette.operators.band_join.index.point_blocks import (
    Blocks,
    fetch_block,
    find_cell,
    find_first,
    find_last,
    may_hold,
)

AHEAD = 8  # groups ahead for which values are prefetched


@kernel
def find_pairs_by_groups(
    shifts: NDArray[np.float64],
    shift_names: NDArray[np.int32],
    progress: Progress,
    out: NDArray[np.int32],
    table: GroupTable,
    lists: BandLists,
    n_groups: int,
    blocks: Blocks,
    n_blocks: int,
    cells: CoverCells,
) -> Progress:
    """Write pairs from a shift and group on, until room runs out; the shift and group to continue with, and the end."""
    row, first_group, n_out = progress
    if n_blocks == 0:
        return len(shifts), 0, n_out
    values, names, order, firsts, _, grid, words, _ = blocks
    points, cover_lows, cover_highs, singles, starts, sizes, _ = table
    lows, low_names, highs, high_names = lists
    bands_out, points_out, shifts_out = out[0], out[1], out[2]
    least, greatest, has_cells = firsts[0], find_last(values, order, n_blocks), len(cells[0]) > 0
    kept, found_blocks = np.empty(n_groups + 1, np.int32), np.empty(n_groups, np.int32)
    places = np.empty(n_groups, np.int8)
    while row < len(shifts):
        shift, name = shifts[row], shift_names[row]
        if has_cells and is_near(shift, least, greatest, grid):
            n_kept = screen_cells(shift, least, greatest, cells, grid, words, kept)
        else:
            n_kept = _screen(shift, least, greatest, cover_lows, cover_highs, n_groups, grid, words, kept)
        n_kept = _locate(shift, cover_lows, cover_highs, n_kept, blocks, n_blocks, kept, found_blocks, places)
        for i in range(n_kept):
            group, block, place = kept[i], found_blocks[i], int(places[i])
            if group < first_group:
                continue
            begin, single, beyond = n_out, singles[group], cover_highs[group]
            start = end = 0
            point = np.inf
            if single < 0:
                start, end, point = starts[group], starts[group] + sizes[group], points[group]
            at = order[block]
            shifted = values[at, place] + shift
            while True:
                n = 1
                if single < 0:
                    n = count_holding(shifted, point, lows, highs, start, end)
                if n_out + n > len(bands_out) - 8:
                    return row, group, begin
                if single >= 0:
                    bands_out[n_out], points_out[n_out], shifts_out[n_out] = single, names[at, place], name
                elif shifted <= point:
                    write_list(low_names, start, n, names[at, place], name, bands_out, points_out, shifts_out, n_out)
                else:
                    write_list(high_names, start, n, names[at, place], name, bands_out, points_out, shifts_out, n_out)
                n_out += n
                place += 1
                if place == values.shape[1] or values[at, place] == np.inf:
                    block, place = block + 1, 0
                    if block == n_blocks:
                        break
                    at = order[block]
                shifted = values[at, place] + shift
                if shifted >= beyond:
                    break
        first_group = 0
        row += 1
    return row, 0, n_out


@kernel
def find_affected_by_groups(
    shifts: NDArray[np.float64],
    names_out: NDArray[np.int32],
    band_lows: NDArray[np.float64],
    table: GroupTable,
    lists: BandLists,
    n_groups: int,
    blocks: Blocks,
    n_blocks: int,
    cells: CoverCells,
) -> int:
    """Write the bands that hold a shifted value: in each group, only the values next to its point matter.

    In a group of one band any value in its cover will do.
    """
    if n_blocks == 0:
        return 0
    values, _, order, firsts, _, grid, words, begun = blocks
    points, lows_left, highs_left, singles, starts, sizes, _ = table
    lows, _, highs, _ = lists
    least, greatest = firsts[0], find_last(values, order, n_blocks)
    # Groups that may still get a value nearer to their point, and where it would have to be: at first in their covers.
    groups, n_left = np.arange(n_groups, dtype=np.int32), n_groups
    if len(shifts) > 1:
        lows_left, highs_left = lows_left.copy(), highs_left.copy()
    # The nearest shifted values so far, NaN where there is none, of groups that have any.
    left, right, is_met = np.empty(n_groups), np.empty(n_groups), np.zeros(n_groups, np.bool_)
    met, n_met = np.empty(n_groups, np.int32), 0
    kept, found_blocks = np.empty(n_groups + 1, np.int32), np.empty(n_groups, np.int32)
    places, others = np.empty(n_groups, np.int8), np.empty(n_groups + 1, np.int32)
    out = n_done = 0
    for row in range(len(shifts)):
        shift = shifts[row]
        if row == 0 and len(cells[0]) and is_near(shift, least, greatest, grid):
            n_kept = screen_cells(shift, least, greatest, cells, grid, words, kept)
        else:
            n_kept = _screen(shift, least, greatest, lows_left, highs_left, n_left, grid, words, kept)
        n_singles = n_others = 0
        for i in range(n_kept):
            is_single = singles[groups[kept[i]]] >= 0
            others[n_others] = kept[i]
            kept[n_singles] = kept[i]
            n_singles += is_single
            n_others += not is_single
        n_singles = _locate(shift, lows_left, highs_left, n_singles, blocks, n_blocks, kept, found_blocks, places)
        for i in range(n_singles):
            names_out[out] = singles[groups[kept[i]]]
            out += 1
            if len(shifts) > 1:
                lows_left[kept[i]], highs_left[kept[i]] = np.inf, -np.inf
                n_done += 1
        for i in range(n_others):
            point = points[groups[others[i]]]
            cell = find_cell(point - shift, grid, words)
            found_blocks[i], places[i] = find_first(shift, point, cell, values, order, firsts, begun, n_blocks)
        for i in range(n_others):
            group = groups[others[i]]
            nearest, next_ = _read_nearest(
                shift, points[group], found_blocks[i], places[i], values, order, firsts, n_blocks
            )
            if not is_met[group]:
                is_met[group], met[n_met] = True, group
                left[group], right[group] = nearest, next_
                n_met += 1
            if nearest > left[group] or left[group] != left[group]:
                left[group] = nearest
            if next_ < right[group] or right[group] != right[group]:
                right[group] = next_
            if len(shifts) == 1:
                continue
            if left[group] == left[group]:
                lows_left[others[i]] = left[group]
            if right[group] == right[group]:
                highs_left[others[i]] = right[group]
            end = starts[group] + sizes[group] - 1
            if left[group] >= lows[end] or right[group] <= highs[end]:  # all its bands are affected
                lows_left[others[i]], highs_left[others[i]] = np.inf, -np.inf
                n_done += 1
        if n_done * 8 > n_left:
            n_left, n_done = _drop_done(groups, lows_left, highs_left, n_left), 0
    return write_affected(met, n_met, left, right, out, names_out, band_lows, starts, sizes, lists)


@kernel
def _screen(
    shift: float,
    least: float,
    greatest: float,
    cover_lows: NDArray[np.float64],
    cover_highs: NDArray[np.float64],
    n_groups: int,
    grid: NDArray[np.float64],
    words: NDArray[np.uint64],
    kept: NDArray[np.int32],
) -> int:
    """Write the groups whose cover may hold a shifted value; how many. One look each, without a branch.

    A cover is wider by one double than its bands: no value outside `cover - shift` is in a band when shifted.
    """
    n = 0
    for group in range(n_groups):
        kept[n] = group
        n += may_hold(cover_lows[group] - shift, cover_highs[group] - shift, least, greatest, grid, words)
    return n


@kernel
def _locate(
    shift: float,
    cover_lows: NDArray[np.float64],
    cover_highs: NDArray[np.float64],
    n_kept: int,
    blocks: Blocks,
    n_blocks: int,
    kept: NDArray[np.int32],
    found_blocks: NDArray[np.int32],
    places: NDArray[np.int8],
) -> int:
    """Of the screened groups keep those whose cover does hold a shifted value, and find the first value; how many.

    This is a separate loop, so that a mispredicted branch on a value does not wait for the search.
    """
    values, _, order, firsts, _, grid, words, begun = blocks
    n = 0
    for i in range(n_kept):
        if i + AHEAD < n_kept:
            fetch_block(find_cell(cover_lows[kept[i + AHEAD]] - shift, grid, words), values, order, begun)
        group = kept[i]
        low = cover_lows[group]
        cell = find_cell(low - shift, grid, words)
        block, place = find_first(shift, low, cell, values, order, firsts, begun, n_blocks)
        if place == values.shape[1] or values[order[block], place] == np.inf:
            block, place = block + 1, 0
            if block == n_blocks:
                continue
        kept[n], found_blocks[n], places[n] = group, block, place
        n += not values[order[block], place] + shift >= cover_highs[group]
    return n


@kernel
def _read_nearest(
    shift: float,
    point: float,
    block: int,
    place: int,
    values: NDArray[np.float64],
    order: NDArray[np.int32],
    firsts: NDArray[np.float64],
    n_blocks: int,
) -> tuple[float, float]:
    """The greatest shifted value up to a group's point, and the least above it, which is here; NaN if there is none."""
    if point == np.inf:  # nothing is above
        return find_last(values, order, n_blocks) + shift, np.nan
    row = order[block]
    nearest = values[row, place - 1] + shift if place > 0 else np.nan
    if place < values.shape[1] and values[row, place] < np.inf:
        return nearest, values[row, place] + shift
    return nearest, firsts[block + 1] + shift if block + 1 < n_blocks else np.nan


@kernel
def _drop_done(groups: NDArray[np.int32], lows: NDArray[np.float64], highs: NDArray[np.float64], n_groups: int) -> int:
    """Close the gaps of groups that were given an empty cover; how many are left."""
    n = 0
    for i in range(n_groups):
        groups[n], lows[n], highs[n] = groups[i], lows[i], highs[i]
        n += not lows[i] > highs[i]
    return n
