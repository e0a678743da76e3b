"""Look-ups of more shifts than there are groups: as in `by_groups`, but group by group."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vedette.native.kernels import kernel
from vedette.operators.band_join.index.group_arrays import BandLists, GroupTable, PairColumns, Progress, Shifts
from vedette.operators.band_join.index.group_lists import count_holding, write_list
from vedette.operators.band_join.index.point_blocks import Blocks, find_cell, find_first, find_last, find_last_cell


@kernel
def find_pairs_by_shifts(
    shifts: Shifts,
    progress: Progress,
    out: PairColumns,
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
    bands_out, points_out, shifts_out = out.bands, out.points, out.shifts
    lows, low_names, highs, high_names = lists.lows, lists.low_names, lists.highs, lists.high_names
    numbers, values, names, order = shifts.values, blocks.values, blocks.names, blocks.order
    kept, found_blocks = np.empty(len(numbers) + 1, np.int32), np.empty(len(numbers), np.int32)
    places = np.empty(len(numbers), np.int8)
    while group < n_groups:
        below, beyond, point = table.cover_lows[group], table.cover_highs[group], table.points[group]
        start, end = table.starts[group], table.starts[group] + table.sizes[group]
        n_kept = _screen(numbers, below, beyond, blocks, n_blocks, kept)
        n_kept = _locate(numbers, below, beyond, n_kept, blocks, n_blocks, kept, found_blocks, places)
        for i in range(n_kept):
            row, block, place = kept[i], found_blocks[i], int(places[i])
            if row < first_row:
                continue
            begin, shift, name = n_out, numbers[row], shifts.names[row]
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
    return len(numbers), group, n_out


@kernel
def _screen(
    shifts: NDArray[np.float64],
    below: float,
    beyond: float,
    blocks: Blocks,
    n_blocks: int,
    kept: NDArray[np.int32],
) -> int:
    """Write the shifts that may bring a value into a cover; how many. See `by_groups`."""
    if n_blocks == 0:
        return 0
    grid, words = blocks.grid, blocks.words
    least, greatest = blocks.firsts[0], find_last(blocks.values, blocks.order, n_blocks)
    n = 0
    for row in range(len(shifts)):
        low, high = below - shifts[row], beyond - shifts[row]
        low_cell, high_cell = find_cell(low, grid, words), find_last_cell(high, grid, words)
        word, at = low_cell >> 6, np.uint64(low_cell & 63)
        seen = (words[word] >> at) | ((words[word + 1] << np.uint64(1)) << (np.uint64(63) - at))
        more = high_cell - low_cell
        held = (seen << (np.uint64(63) - np.uint64(min(max(more, 0), 63)))) != 0
        kept[n] = row
        n += (not high < least) & (not low > greatest) & (held | (more > 63))
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
    values, order, firsts, begun = blocks.values, blocks.order, blocks.firsts, blocks.begun
    grid, words = blocks.grid, blocks.words
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
