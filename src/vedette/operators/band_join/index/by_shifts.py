"""Look-ups of more shifts than there are groups: the same looks as in `by_groups`, group after group."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vedette.native.kernels import kernel
from vedette.operators.band_join.index.group_lists import count_holding, write_list
from vedette.operators.band_join.index.point_blocks import find_cell, find_first, find_last, find_last_cell


@kernel
def find_pairs_by_shifts(
    shifts: NDArray[np.float64],
    shift_names: NDArray[np.int32],
    first_row: int,
    group: int,
    out: int,
    bands_out: NDArray[np.int32],
    points_out: NDArray[np.int32],
    names_out: NDArray[np.int32],
    stabs: NDArray[np.float64],
    cover_lows: NDArray[np.float64],
    cover_highs: NDArray[np.float64],
    singles: NDArray[np.int32],
    starts: NDArray[np.int32],
    sizes: NDArray[np.int32],
    list_lows: NDArray[np.float64],
    low_names: NDArray[np.int32],
    list_highs: NDArray[np.float64],
    high_names: NDArray[np.int32],
    n_groups: int,
    values: NDArray[np.float64],
    names: NDArray[np.int32],
    order: NDArray[np.int32],
    firsts: NDArray[np.float64],
    grid: NDArray[np.float64],
    words: NDArray[np.uint64],
    begun: NDArray[np.int32],
    n_blocks: int,
) -> tuple[int, int, int]:
    """Write what is met from a group and row on, until room runs out: the row and group to go on with, and the end.

    Behind the last group the row is that behind the last.
    """
    kept, blocks = np.empty(len(shifts) + 1, np.int32), np.empty(len(shifts), np.int32)
    places = np.empty(len(shifts), np.int8)
    while group < n_groups:
        below, beyond, stab = cover_lows[group], cover_highs[group], stabs[group]
        start, end = starts[group], starts[group] + sizes[group]
        n_kept = _screen(shifts, below, beyond, values, order, firsts, grid, words, n_blocks, kept)
        n_kept = _locate(
            shifts, below, beyond, n_kept, values, order, firsts, grid, words, begun, n_blocks, kept, blocks, places
        )  # fmt: skip
        for i in range(n_kept):
            row, block, place = kept[i], blocks[i], int(places[i])
            if row < first_row:
                continue
            begin, shift, name = out, shifts[row], shift_names[row]
            at = order[block]
            shifted = values[at, place] + shift
            while True:
                n = count_holding(shifted, stab, list_lows, list_highs, start, end)
                if out + n > len(bands_out) - 8:
                    return row, group, begin
                listed = low_names if shifted <= stab else high_names
                write_list(listed, start, n, names[at, place], name, bands_out, points_out, names_out, out)
                out += n
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
    return len(shifts), group, out


@kernel
def _screen(
    shifts: NDArray[np.float64],
    below: float,
    beyond: float,
    values: NDArray[np.float64],
    order: NDArray[np.int32],
    firsts: NDArray[np.float64],
    grid: NDArray[np.float64],
    words: NDArray[np.uint64],
    n_blocks: int,
    kept: NDArray[np.int32],
) -> int:
    """The shifts that may bring a value into a cover; how many. See `by_groups`."""
    if n_blocks == 0:
        return 0
    least, greatest = firsts[0], find_last(values, order, n_blocks)
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
    values: NDArray[np.float64],
    order: NDArray[np.int32],
    firsts: NDArray[np.float64],
    grid: NDArray[np.float64],
    words: NDArray[np.uint64],
    begun: NDArray[np.int32],
    n_blocks: int,
    kept: NDArray[np.int32],
    blocks: NDArray[np.int32],
    places: NDArray[np.int8],
) -> int:
    """Of the screened shifts those that do bring a value into the cover, and where the first is; how many."""
    n = 0
    for i in range(n_kept):
        row = kept[i]
        cell = find_cell(below - shifts[row], grid, words)
        block, place = find_first(shifts[row], below, cell, values, order, firsts, begun, n_blocks)
        if place == values.shape[1] or values[order[block], place] == np.inf:
            block, place = block + 1, 0
            if block == n_blocks:
                continue
        kept[n], blocks[n], places[n] = row, block, place
        n += not values[order[block], place] + shifts[row] >= beyond
    return n
