"""Look-ups of more shifts than there are groups: as in `by_groups`, but group by group."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vedette.native.kernels import kernel
from vedette.operators.band_join.index.group_arrays import BandLists, GroupTable, Progress
from vedette.operators.band_join.index.group_lists import count_holding, write_list
from vedette.operators.band_join.index.point_blocks import Blocks, find_cell, find_first, find_last, may_hold


@kernel
def find_pairs_by_shifts(
    shifts: NDArray[np.float64],
    shift_names: NDArray[np.int32],
    progress: Progress,
    out: NDArray[np.int32],
    table: GroupTable,
    lists: BandLists,
    n_groups: int,
    blocks: Blocks,
    n_blocks: int,
) -> Progress:
    """Write pairs from a group and shift on, until room runs out; the shift and group to continue with, and the end.

    After the last group the shift is the number of shifts.
    """
    first_row, group, n_out = progress
    if n_blocks == 0:
        return len(shifts), n_groups, n_out
    values, names, order, firsts, _, grid, words, _ = blocks
    points, cover_lows, cover_highs, _, starts, sizes, _ = table
    lows, low_names, highs, high_names = lists
    bands_out, points_out, shifts_out = out[0], out[1], out[2]
    least, greatest = firsts[0], find_last(values, order, n_blocks)
    kept, found_blocks = np.empty(len(shifts) + 1, np.int32), np.empty(len(shifts), np.int32)
    places = np.empty(len(shifts), np.int8)
    while group < n_groups:
        below, beyond, point = cover_lows[group], cover_highs[group], points[group]
        start, end = starts[group], starts[group] + sizes[group]
        n_kept = _screen(shifts, below, beyond, least, greatest, grid, words, kept)
        n_kept = _locate(shifts, below, beyond, n_kept, blocks, n_blocks, kept, found_blocks, places)
        for i in range(n_kept):
            row, block, place = kept[i], found_blocks[i], int(places[i])
            if row < first_row:
                continue
            begin, shift, name = n_out, shifts[row], shift_names[row]
            at = order[block]
            shifted = values[at, place] + shift
            while True:
                n = count_holding(shifted, point, lows, highs, start, end)
                if n_out + n > len(bands_out) - 8:
                    return row, group, begin
                listed = low_names if shifted <= point else high_names
                write_list(listed, start, n, names[at, place], name, bands_out, points_out, shifts_out, n_out)
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
        first_row = 0
        group += 1
    return len(shifts), group, n_out


@kernel
def _screen(
    shifts: NDArray[np.float64],
    below: float,
    beyond: float,
    least: float,
    greatest: float,
    grid: NDArray[np.float64],
    words: NDArray[np.uint64],
    kept: NDArray[np.int32],
) -> int:
    """Write the shifts that may bring a value into a cover; how many. See `by_groups`."""
    n = 0
    for row in range(len(shifts)):
        kept[n] = row
        n += may_hold(below - shifts[row], beyond - shifts[row], least, greatest, grid, words)
    return n


@kernel
def _locate(
    shifts: NDArray[np.float64],
    below: float,
    beyond: float,
    n_kept: int,
    blocks: Blocks,
    n_blocks: int,
    kept: NDArray[np.int32],
    found_blocks: NDArray[np.int32],
    places: NDArray[np.int8],
) -> int:
    """Of the screened shifts keep those that do bring a value into the cover, and find the first value; how many."""
    values, _, order, firsts, _, grid, words, begun = blocks
    n = 0
    for i in range(n_kept):
        row = kept[i]
        cell = find_cell(below - shifts[row], grid, words)
        block, place = find_first(shifts[row], below, cell, values, order, firsts, begun, n_blocks)
        if place == values.shape[1] or values[order[block], place] == np.inf:
            block, place = block + 1, 0
            if block == n_blocks:
                continue
        kept[n], found_blocks[n], places[n] = row, block, place
        n += not values[order[block], place] + shifts[row] >= beyond
    return n
