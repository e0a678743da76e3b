"""Look-ups group by group: the table over the values tells whether one may lie in a group's cover, and where.

From there on the work follows the output, for a value in the cover is in at least one band of the group. O(groups +
output) a shift, at a few nanoseconds a group, where the structure of Lemma 5 is O(log + output) but stores values x
groups.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vedette.native.kernels import kernel
from vedette.operators.band_join.index.cell_screen import is_near, screen_cells
from vedette.operators.band_join.index.group_lists import count_holding, write_affected, write_list
from vedette.operators.band_join.index.point_blocks import fetch_block, find_cell, find_first, find_last, find_last_cell

AHEAD = 8  # groups ahead for which values are fetched


@kernel
def find_pairs_by_groups(
    shifts: NDArray[np.float64],
    shift_names: NDArray[np.int32],
    row: int,
    first_group: int,
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
    cells: NDArray[np.int32],
    spans: NDArray[np.uint8],
) -> tuple[int, int, int]:
    """Write what is met from a row and group on, until room runs out: the row and group to go on with, and the end."""
    kept, blocks, places = np.empty(n_groups + 1, np.int32), np.empty(n_groups, np.int32), np.empty(n_groups, np.int8)
    while row < len(shifts):
        shift, name = shifts[row], shift_names[row]
        if len(cells) and is_near(shift, values, order, firsts, grid, n_blocks):
            n_kept = screen_cells(shift, cells, spans, values, order, firsts, grid, words, n_blocks, kept)
        else:
            n_kept = _screen(
                shift, cover_lows, cover_highs, n_groups, values, order, firsts, grid, words, n_blocks, kept
            )  # fmt: skip
        n_kept = _locate(
            shift, cover_lows, cover_highs, n_kept, values, order, firsts, grid, words, begun, n_blocks, kept, blocks,
            places,
        )  # fmt: skip
        for i in range(n_kept):
            group, block, place = kept[i], blocks[i], int(places[i])
            if group < first_group:
                continue
            begin, single, beyond = out, singles[group], cover_highs[group]
            start = end = 0
            stab = np.inf
            if single < 0:
                start, end, stab = starts[group], starts[group] + sizes[group], stabs[group]
            at = order[block]
            shifted = values[at, place] + shift
            while True:
                n = 1
                if single < 0:
                    n = count_holding(shifted, stab, list_lows, list_highs, start, end)
                if out + n > len(bands_out) - 8:
                    return row, group, begin
                if single >= 0:
                    bands_out[out], points_out[out], names_out[out] = single, names[at, place], name
                elif shifted <= stab:
                    write_list(low_names, start, n, names[at, place], name, bands_out, points_out, names_out, out)
                else:
                    write_list(high_names, start, n, names[at, place], name, bands_out, points_out, names_out, out)
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
        first_group = 0
        row += 1
    return row, 0, out


@kernel
def find_affected_by_groups(
    shifts: NDArray[np.float64],
    names_out: NDArray[np.int32],
    lows: NDArray[np.float64],
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
    cells: NDArray[np.int32],
    spans: NDArray[np.uint8],
) -> int:
    """Of each group only the shifted values next to its point matter, on either side, and of all shifts the nearest.

    Of a group of one band any value in its cover does.
    """
    # Groups that may still get a value nearer to their point, and where it would have to be: at first in their covers.
    groups, n_left = np.arange(n_groups, dtype=np.int32), n_groups
    lows_left, highs_left = cover_lows, cover_highs
    if len(shifts) > 1:
        lows_left, highs_left = cover_lows.copy(), cover_highs.copy()
    # The nearest shifted values so far, NaN where there is none, of groups that have any.
    left, right, is_met = np.empty(n_groups), np.empty(n_groups), np.zeros(n_groups, np.bool_)
    met, n_met = np.empty(n_groups, np.int32), 0
    kept, blocks, places = np.empty(n_groups + 1, np.int32), np.empty(n_groups, np.int32), np.empty(n_groups, np.int8)
    others = np.empty(n_groups + 1, np.int32)
    out = n_done = 0
    for row in range(len(shifts)):
        shift = shifts[row]
        if row == 0 and len(cells) and is_near(shift, values, order, firsts, grid, n_blocks):
            n_kept = screen_cells(shift, cells, spans, values, order, firsts, grid, words, n_blocks, kept)
        else:
            n_kept = _screen(
                shift, lows_left, highs_left, n_left, values, order, firsts, grid, words, n_blocks, kept
            )  # fmt: skip
        n_singles = n_others = 0
        for i in range(n_kept):
            is_single = singles[groups[kept[i]]] >= 0
            others[n_others] = kept[i]
            kept[n_singles] = kept[i]
            n_singles += is_single
            n_others += not is_single
        n_singles = _locate(
            shift, lows_left, highs_left, n_singles, values, order, firsts, grid, words, begun, n_blocks, kept, blocks,
            places,
        )  # fmt: skip
        for i in range(n_singles):
            names_out[out] = singles[groups[kept[i]]]
            out += 1
            if len(shifts) > 1:
                lows_left[kept[i]], highs_left[kept[i]] = np.inf, -np.inf
                n_done += 1
        for i in range(n_others):
            stab = stabs[groups[others[i]]]
            cell = find_cell(stab - shift, grid, words)
            blocks[i], places[i] = find_first(shift, stab, cell, values, order, firsts, begun, n_blocks)
        for i in range(n_others):
            group = groups[others[i]]
            nearest, next_ = _read_nearest(
                shift, stabs[group], blocks[i], places[i], values, order, firsts, n_blocks
            )  # fmt: skip
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
            if left[group] >= list_lows[end] or right[group] <= list_highs[end]:  # all its bands are affected
                lows_left[others[i]], highs_left[others[i]] = np.inf, -np.inf
                n_done += 1
        if n_done * 8 > n_left:
            n_left, n_done = _drop_done(groups, lows_left, highs_left, n_left), 0
    return write_affected(
        met, n_met, left, right, out, names_out, lows, starts, sizes, list_lows, low_names, list_highs, high_names
    )  # fmt: skip


@kernel
def _screen(
    shift: float,
    cover_lows: NDArray[np.float64],
    cover_highs: NDArray[np.float64],
    n_groups: int,
    values: NDArray[np.float64],
    order: NDArray[np.int32],
    firsts: NDArray[np.float64],
    grid: NDArray[np.float64],
    words: NDArray[np.uint64],
    n_blocks: int,
    kept: NDArray[np.int32],
) -> int:
    """The groups whose cover may hold a shifted value; how many. One look each, and no branch to guess wrong.

    A cover is wider by one double than its bands: no value beyond `cover - shift` comes into a band when shifted. Where
    it is NaN, there is no end: comparisons say so, being false.
    """
    if n_blocks == 0:
        return 0
    least, greatest = firsts[0], find_last(values, order, n_blocks)
    n = 0
    for group in range(n_groups):
        low, high = cover_lows[group] - shift, cover_highs[group] - shift
        low_cell, high_cell = find_cell(low, grid, words), find_last_cell(high, grid, words)
        word, at = low_cell >> 6, np.uint64(low_cell & 63)
        seen = (words[word] >> at) | ((words[word + 1] << np.uint64(1)) << (np.uint64(63) - at))
        more = high_cell - low_cell
        held = (seen << (np.uint64(63) - np.uint64(min(max(more, 0), 63)))) != 0
        kept[n] = group
        n += (not high < least) & (not low > greatest) & (held | (more > 63))
    return n


@kernel
def _locate(
    shift: float,
    cover_lows: NDArray[np.float64],
    cover_highs: NDArray[np.float64],
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
    """Of the screened groups those whose cover does hold a shifted value, and where the first is; how many.

    A loop of its own: what to do with a value depends on it, and guessing that wrong would wait for the search.
    """
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
        kept[n], blocks[n], places[n] = group, block, place
        n += not values[order[block], place] + shift >= cover_highs[group]
    return n


@kernel
def _read_nearest(
    shift: float,
    stab: float,
    block: int,
    place: int,
    values: NDArray[np.float64],
    order: NDArray[np.int32],
    firsts: NDArray[np.float64],
    n_blocks: int,
) -> tuple[float, float]:
    """The greatest shifted value up to a group's point, and the least beyond, which is here; NaN where none is."""
    if stab == np.inf:  # nothing is beyond
        return find_last(values, order, n_blocks) + shift, np.nan
    row = order[block]
    nearest = values[row, place - 1] + shift if place > 0 else np.nan
    if place < values.shape[1] and values[row, place] < np.inf:
        return nearest, values[row, place] + shift
    return nearest, firsts[block + 1] + shift if block + 1 < n_blocks else np.nan


@kernel
def _drop_done(groups: NDArray[np.int32], lows: NDArray[np.float64], highs: NDArray[np.float64], n_groups: int) -> int:
    """Close up the groups that have not been given an empty cover; how many."""
    n = 0
    for i in range(n_groups):
        groups[n], lows[n], highs[n] = groups[i], lows[i], highs[i]
        n += not lows[i] > highs[i]
    return n
