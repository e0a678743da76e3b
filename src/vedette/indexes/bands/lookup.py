"""Look-ups of shifts in stabbing groups over points: which values come into which bands, and which bands get any.

Every group is looked at once a shift: the table over the values tells whether one may lie in the group's cover, and
where. From there on the work follows the output, for a value in the cover is in at least one band of the group, and the
bands it is in are the beginning of a list. O(groups + output) a shift with nothing stored beyond values and bands,
where the structure of Lemma 5 is O(log + output) but stores values x groups.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vedette.buffers import empty_int32
from vedette.indexes.bands.groups import PAD, Groups
from vedette.indexes.bands.points import Points, find_cell, find_first, find_last
from vedette.kernels import kernel
from vedette.vectors import copy_eight

FIRST_ROOM = 1 << 14
Triples = tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]


def find_pairs(
    groups: Groups, points: Points, shifts: NDArray[np.float64], names: NDArray[np.int32], expected: int = 0
) -> Triples:
    """All bands, points and shifts that meet, as columns of their names, in the order of the shifts.

    `expected` is how many there may be; a good guess spares moving them.
    """
    n_room = max(FIRST_ROOM, expected + expected // 8)
    columns = empty_int32(n_room + PAD), empty_int32(n_room + PAD), empty_int32(n_room + PAD)
    row = group = n = 0
    while True:
        row, group, n = _find_pairs(shifts, names, row, group, n, *columns, *groups.arrays, *points.arrays)
        if row == len(shifts):
            break
        n_room = 2 * n_room
        larger = empty_int32(n_room + PAD), empty_int32(n_room + PAD), empty_int32(n_room + PAD)
        for column, new in zip(columns, larger, strict=True):
            new[:n] = column[:n]
        columns = larger
    if 2 * n < n_room:
        return columns[0][:n].copy(), columns[1][:n].copy(), columns[2][:n].copy()
    return columns[0][:n], columns[1][:n], columns[2][:n]


def find_affected(groups: Groups, points: Points, shifts: NDArray[np.float64]) -> NDArray[np.int32]:
    """The names of the bands into which at least one of the shifts brings a point, each once."""
    names = empty_int32(len(groups) + PAD)
    n = _find_affected(shifts, names, groups.lows, *groups.arrays, *points.arrays)
    return names[:n] if 4 * n > len(groups) else names[:n].copy()


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

    A cover is wider by one double than its bands: no value beyond `cover - shift` comes into a band when shifted.
    """
    if n_blocks == 0:
        return 0
    least, greatest = firsts[0], find_last(values, order, n_blocks)
    n = 0
    for group in range(n_groups):
        low, high = cover_lows[group] - shift, cover_highs[group] - shift
        low_cell, high_cell = find_cell(low, grid, words), find_cell(high, grid, words)
        word, at = low_cell >> 6, np.uint64(low_cell & 63)
        seen = (words[word] >> at) | ((words[word + 1] << np.uint64(1)) << (np.uint64(63) - at))
        more = high_cell - low_cell
        held = (seen << (np.uint64(63) - np.uint64(min(max(more, 0), 63)))) != 0
        kept[n] = group
        n += (high >= least) & (low <= greatest) & (held | (more > 63))
    return n


@kernel
def _find_pairs(
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
    """Write what is met from a row and group on, until room runs out: the row and group to go on with, and the end."""
    kept, blocks, places = np.empty(n_groups + 1, np.int32), np.empty(n_groups, np.int32), np.empty(n_groups, np.int8)
    while row < len(shifts):
        shift, name = shifts[row], shift_names[row]
        n_kept = _screen(
            shift, cover_lows, cover_highs, n_groups, values, order, firsts, grid, words, n_blocks, kept
        )  # fmt: skip
        n_kept = _locate(
            shift, cover_lows, n_kept, starts, list_lows, list_highs, values, order, firsts, grid, words, begun,
            n_blocks, kept, blocks, places,
        )  # fmt: skip
        for i in range(n_kept):
            group, block, place = kept[i], blocks[i], int(places[i])
            if group < first_group:
                continue
            begin = out
            start, end = starts[group], starts[group] + sizes[group]
            most, stab = list_highs[start], stabs[group]
            at = order[block]
            shifted = values[at, place] + shift
            while True:
                if shifted <= stab:
                    n = _count_up_to(shifted, list_lows, start, end)
                    if out + n > len(bands_out) - 8:
                        return row, group, begin
                    _write(low_names, start, n, names[at, place], name, bands_out, points_out, names_out, out)
                else:
                    n = _count_down_to(shifted, list_highs, start, end)
                    if out + n > len(bands_out) - 8:
                        return row, group, begin
                    _write(high_names, start, n, names[at, place], name, bands_out, points_out, names_out, out)
                out += n
                place += 1
                if place == values.shape[1] or values[at, place] == np.inf:
                    block, place = block + 1, 0
                    if block == n_blocks:
                        break
                    at = order[block]
                shifted = values[at, place] + shift
                if shifted > most:
                    break
        first_group = 0
        row += 1
    return row, 0, out


@kernel
def _locate(
    shift: float,
    cover_lows: NDArray[np.float64],
    n_kept: int,
    starts: NDArray[np.int32],
    list_lows: NDArray[np.float64],
    list_highs: NDArray[np.float64],
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
        group = kept[i]
        start = starts[group]
        word = find_cell(cover_lows[group] - shift, grid, words) >> 6
        block, place = find_first(shift, list_lows[start], word, values, order, firsts, begun, n_blocks)
        if place == values.shape[1] or values[order[block], place] == np.inf:
            block, place = block + 1, 0
            if block == n_blocks:
                continue
        kept[n], blocks[n], places[n] = group, block, place
        n += values[order[block], place] + shift <= list_highs[start]
    return n


@kernel
def _count_up_to(number: float, lows: NDArray[np.float64], start: int, end: int) -> int:
    """How many of the rising lows are at most the number, which the first is."""
    below, above = start, end
    while above - below > 1:
        middle = (below + above) >> 1
        if lows[middle] <= number:
            below = middle
        else:
            above = middle
    return above - start


@kernel
def _count_down_to(number: float, highs: NDArray[np.float64], start: int, end: int) -> int:
    """How many of the falling highs are at least the number, which the first is."""
    above, below = start, end
    while below - above > 1:
        middle = (below + above) >> 1
        if highs[middle] >= number:
            above = middle
        else:
            below = middle
    return below - start


@kernel
def _write(
    listed: NDArray[np.int32],
    start: int,
    n: int,
    point: int,
    name: int,
    bands_out: NDArray[np.int32],
    points_out: NDArray[np.int32],
    names_out: NDArray[np.int32],
    out: int,
) -> None:
    for i in range(0, n, 8):  # eight at a time, whatever stands behind: most lists are short
        copy_eight(bands_out, out + i, listed, start + i)
        for j in range(8):
            points_out[out + i + j] = point
        for j in range(8):
            names_out[out + i + j] = name


@kernel
def _find_affected(
    shifts: NDArray[np.float64],
    names_out: NDArray[np.int32],
    lows: NDArray[np.float64],
    stabs: NDArray[np.float64],
    cover_lows: NDArray[np.float64],
    cover_highs: NDArray[np.float64],
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
) -> int:
    """Of each group only the shifted values next to its point matter, on either side, and of all shifts the nearest."""
    # Groups that may still get a value nearer to their point, and their covers.
    groups, n_left = np.arange(n_groups, dtype=np.int32), n_groups
    lows_left, highs_left = cover_lows, cover_highs
    if len(shifts) > 1:
        lows_left, highs_left = cover_lows.copy(), cover_highs.copy()
    # The nearest shifted values so far, NaN where there is none, of groups that have any.
    left, right, is_met = np.empty(n_groups), np.empty(n_groups), np.zeros(n_groups, np.bool_)
    met, n_met = np.empty(n_groups, np.int32), 0
    kept, blocks, places = np.empty(n_groups + 1, np.int32), np.empty(n_groups, np.int32), np.empty(n_groups, np.int8)
    for row in range(len(shifts)):
        shift = shifts[row]
        n_kept = _screen(
            shift, lows_left, highs_left, n_left, values, order, firsts, grid, words, n_blocks, kept
        )  # fmt: skip
        for i in range(n_kept):
            stab = stabs[groups[kept[i]]]
            word = find_cell(stab - shift, grid, words) >> 6
            above = np.nextafter(stab, np.inf)
            blocks[i], places[i] = find_first(shift, above, word, values, order, firsts, begun, n_blocks)
        n_done = 0
        for i in range(n_kept):
            group = groups[kept[i]]
            end = starts[group] + sizes[group] - 1
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
            if len(shifts) > 1 and (left[group] >= list_lows[end] or right[group] <= list_highs[end]):
                lows_left[kept[i]], highs_left[kept[i]] = np.inf, -np.inf  # all its bands are affected
                n_done += 1
        if n_done * 8 > n_left:
            n_left = _drop_done(groups, lows_left, highs_left, n_left)
    return _write_affected(
        met, n_met, left, right, names_out, lows, starts, sizes, list_lows, low_names, list_highs, high_names
    )  # fmt: skip


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
        n += lows[i] <= highs[i]
    return n


@kernel
def _write_affected(
    met: NDArray[np.int32],
    n_met: int,
    left: NDArray[np.float64],
    right: NDArray[np.float64],
    names_out: NDArray[np.int32],
    lows: NDArray[np.float64],
    starts: NDArray[np.int32],
    sizes: NDArray[np.int32],
    list_lows: NDArray[np.float64],
    low_names: NDArray[np.int32],
    list_highs: NDArray[np.float64],
    high_names: NDArray[np.int32],
) -> int:
    """The bands that hold the nearest value up to their group's point, or the nearest beyond."""
    out = 0
    for i in range(n_met):
        group = met[i]
        start, end = starts[group], starts[group] + sizes[group]
        place = start
        while place < end and list_lows[place] <= left[group]:
            names_out[out] = low_names[place]
            out += 1
            place += 1
        place = start
        while place < end and list_highs[place] >= right[group]:
            if not lows[high_names[place]] <= left[group]:
                names_out[out] = high_names[place]
                out += 1
            place += 1
    return out
