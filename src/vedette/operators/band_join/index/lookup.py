"""Look-ups of shifts in stabbing groups: which shifted values are in which bands, and which bands hold any.

There are three ways through groups, values and shifts. The one that is the least work is chosen. The rest of the work
follows the output, and only values and bands are stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from vedette.native.budget import UNBOUNDED, OverBudgetError
from vedette.native.buffers import empty_int32
from vedette.native.concatenation import concat_columns
from vedette.native.kernels import plain_tuple
from vedette.native.threads import count_pieces, cut, run_pieces
from vedette.operators.band_join.index.by_groups import find_affected_by_groups, find_pairs_by_groups
from vedette.operators.band_join.index.by_points import find_affected_by_points, find_pairs_by_points
from vedette.operators.band_join.index.by_shifts import find_pairs_by_shifts
from vedette.operators.band_join.index.group_arrays import Progress
from vedette.operators.band_join.index.group_changes import PAD
from vedette.operators.band_join.index.groups import Groups
from vedette.operators.band_join.index.points import Points

FIRST_ROOM, MOST_ROOM = 1 << 14, 1 << 24  # pairs that there is room for at first; there is more once it is needed
STEP = 8  # room grows at most by this factor: the first shifts may not be like the others
SMALL = 1 << 18  # up to this many pairs are copied out of the room, which stays in the CPU cache for the next look-up
BY_GROUPS, BY_SHIFTS, BY_POINTS = "by groups", "by shifts", "by points"

# Costs in nanoseconds.
LOOK = 4  # a look with one shift into one group
TURN = 60  # in addition, per shift that is looked up in all groups, or per group in which all shifts are
VALUE = 200  # by points: per value and shift
TREE = 16  # and per group, if the tree has to be built
PAIR = 1  # a pair that is written
PIECE = 500_000  # at least, of a piece that a thread looks up

Triples = tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]
# Takes shifts, their names, progress, the room for pairs, and the group after the last.
Writer = Callable[[NDArray[np.float64], NDArray[np.int32], Progress, NDArray[np.int32], int], Progress]


def find_pairs(
    groups: Groups, points: Points, shifts: NDArray[np.float64], names: NDArray[np.int32], expected: int = 0
) -> Triples:
    """All bands, points and shifts where the shifted point is in the band, as columns of names, in any order.

    `expected` is the probable number of them; a good guess avoids copies.
    """
    return next(find_pair_batches(groups, points, shifts, names, UNBOUNDED, expected))


def find_pair_batches(
    groups: Groups, points: Points, shifts: NDArray[np.float64], names: NDArray[np.int32], most: int, expected: int = 0
) -> Iterator[Triples]:
    """The pairs of `find_pairs` in batches of at most `most`, or of the number of bands if that is more.

    Nothing that is passed may change until the last batch. There is at least one, which may be empty.
    """
    way = choose_way(groups, points, len(shifts))
    write = _make_writer(way, groups, points, len(shifts))
    most = max(most, len(groups))  # a shift brings a point into no more bands
    found = _find_by_threads(write, way, groups.n_groups, shifts, names, most, expected)
    if found is not None:
        yield found
        return
    n_room = min(max(FIRST_ROOM, expected + expected // 8), MOST_ROOM, most)
    out = _make_room(n_room)
    row = other = n = 0
    while True:
        row, other, n = write(shifts, names, (row, other, n), out, groups.n_groups)
        if row == len(shifts):
            break
        if n_room == most and n:
            yield _first(out, n)
            out, n = _make_room(n_room), 0
            continue
        if n_room == most:  # one shift brings too many points into one group
            yield from _find_in_parts(groups, points, shifts[row : row + 1], names[row : row + 1], other, most)
            row, other = (row + 1, other) if way == BY_SHIFTS else (row, other + 1)
            continue
        done = other / groups.n_groups if way == BY_SHIFTS else row / len(shifts)
        n_room = min(max(2 * n_room, int(1.1 * n / done) if done else 0), STEP * n_room, most)
        larger = _make_room(n_room)
        larger[:, :n] = out[:, :n]
        out = larger
    yield _first(out[:, :n].copy() if n < SMALL or 2 * n < n_room else out, n)


def _make_writer(way: str, groups: Groups, points: Points, n_shifts: int) -> Writer:
    """A function that writes pairs from some progress on until room runs out, and returns how far it got."""
    table, lists = plain_tuple(groups.table), plain_tuple(groups.lists)
    if way == BY_POINTS:
        order, tree, ordered = plain_tuple(groups.order), groups.make_tree(), points.in_order()
        return lambda shifts, names, progress, out, n_groups: find_pairs_by_points(
            shifts, names, progress, out, table, lists, n_groups, order, tree, ordered
        )
    blocks, n_blocks = points.arrays, points.n_blocks
    if way == BY_SHIFTS:
        return lambda shifts, names, progress, out, n_groups: find_pairs_by_shifts(
            shifts, names, progress, out, table, lists, n_groups, blocks, n_blocks
        )
    cells = plain_tuple(points.cells_of(groups, n_shifts))
    return lambda shifts, names, progress, out, n_groups: find_pairs_by_groups(
        shifts, names, progress, out, table, lists, n_groups, blocks, n_blocks, cells
    )


def _find_by_threads(
    write: Writer,
    way: str,
    n_groups: int,
    shifts: NDArray[np.float64],
    names: NDArray[np.int32],
    most: int,
    expected: int,
) -> Triples | None:
    """The pairs in the order of one thread; None if there are too few, or too many for one batch.

    Shifts are cut into pieces, or groups if the look-up goes group by group.
    """
    n_parts = n_groups if way == BY_SHIFTS else len(shifts)
    n_pieces = min(n_parts, count_pieces(LOOK * len(shifts) * n_groups + PAIR * expected, PIECE))
    if n_pieces < 2 or way == BY_POINTS:
        return None
    cuts, share = cut(n_parts, n_pieces), most // n_pieces

    def find(piece: int) -> Triples:
        first, last = cuts[piece], cuts[piece + 1]
        some, some_names, progress, end = shifts[first:last], names[first:last], (0, 0, 0), n_groups
        if way == BY_SHIFTS:
            some, some_names, progress, end = shifts, names, (0, first, 0), last
        n_room = min(max(FIRST_ROOM, expected // n_pieces), share)
        out = _make_room(n_room)
        while True:
            progress = write(some, some_names, progress, out, end)
            n = progress[2]
            if progress[0] == len(some):
                return _first(out, n)
            if n_room == share:
                raise OverBudgetError(n)
            n_room = min(STEP * n_room, share)
            larger = _make_room(n_room)
            larger[:, :n] = out[:, :n]
            out = larger

    try:
        bands, others, own = concat_columns(run_pieces(find, n_pieces))
    except OverBudgetError:
        return None
    return bands, others, own


def _find_in_parts(
    groups: Groups, points: Points, shift: NDArray[np.float64], name: NDArray[np.int32], group: int, most: int
) -> Iterator[Triples]:
    """The pairs of one shift in one group, some points at a time."""
    values, names = points.in_order()
    low, high, size = groups.table.cover_lows[group], groups.table.cover_highs[group], int(groups.table.sizes[group])
    table, lists = plain_tuple(groups.table), plain_tuple(groups.lists)
    with np.errstate(over="ignore"):
        shifted = values + shift
    # A cover that is NaN is unbounded: comparisons with it are false.
    near, n_at_once = np.flatnonzero(~(shifted < low) & ~(shifted > high)), max(1, most // size)
    for start in range(0, len(near), n_at_once):
        some, part = near[start : start + n_at_once], Points()
        part.add(values[some], names[some])
        progress, out = (0, group, 0), _make_room(most)
        _, _, n = find_pairs_by_shifts(shift, name, progress, out, table, lists, group + 1, part.arrays, part.n_blocks)
        yield _first(out, n)


def find_affected(groups: Groups, points: Points, shifts: NDArray[np.float64]) -> NDArray[np.int32]:
    """The names of the bands into which at least one of the shifts brings a point, each once."""
    names, lows, n_groups = empty_int32(len(groups) + PAD), groups.bands.lows, groups.n_groups
    table, lists = plain_tuple(groups.table), plain_tuple(groups.lists)
    if choose_way(groups, points, len(shifts)) == BY_POINTS:
        order, tree, (values, _) = plain_tuple(groups.order), groups.make_tree(), points.in_order()
        n = find_affected_by_points(shifts, names, lows, table, lists, n_groups, order, tree, values)
    else:
        cells = plain_tuple(points.cells_of(groups, 1))
        n = find_affected_by_groups(shifts, names, lows, table, lists, n_groups, points.arrays, points.n_blocks, cells)
    return names[:n] if 4 * n > len(groups) else names[:n].copy()


def choose_way(groups: Groups, points: Points, n_shifts: int) -> str:
    """The way that is the least work for this many shifts, apart from the output."""
    n_groups, n_values = groups.n_groups, len(points)
    by_groups_or_shifts = LOOK * n_shifts * n_groups + TURN * min(n_shifts, n_groups)
    by_points = VALUE * n_shifts * n_values + (0 if groups.has_tree else TREE * n_groups)
    if by_points < by_groups_or_shifts:
        return BY_POINTS
    return BY_GROUPS if n_shifts <= n_groups else BY_SHIFTS


def _make_room(n: int) -> NDArray[np.int32]:
    """Room for `n` pairs: rows of bands, points and shifts, by name."""
    return empty_int32(3 * (n + PAD)).reshape(3, n + PAD)


def _first(out: NDArray[np.int32], n: int) -> Triples:
    return out[0, :n], out[1, :n], out[2, :n]
