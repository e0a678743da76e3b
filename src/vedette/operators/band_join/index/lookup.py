"""Look-ups of shifts in stabbing groups: which shifted values are in which bands, and which bands hold any.

There are three ways through groups, values and shifts. The one that is the least work is chosen. The rest of the work
follows the output, and only values and bands are stored.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from vedette.native.budget import UNBOUNDED
from vedette.native.buffers import empty_int32
from vedette.operators.band_join.index.by_groups import find_affected_by_groups, find_pairs_by_groups
from vedette.operators.band_join.index.by_points import find_affected_by_points, find_pairs_by_points
from vedette.operators.band_join.index.by_shifts import find_pairs_by_shifts
from vedette.operators.band_join.index.group_arrays import PairColumns, Progress, Shifts
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

Triples = tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]


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
    find = _Finder(groups, points, shifts, names)
    most = max(most, len(groups))  # a shift brings a point into no more bands
    n_room = min(max(FIRST_ROOM, expected + expected // 8), MOST_ROOM, most)
    columns = _make_room(n_room)
    row = other = n = 0
    while True:
        row, other, n = find.write((row, other, n), columns)
        if row == len(shifts):
            break
        if n_room == most and n:
            yield _first(columns, n)
            columns, n = _make_room(n_room), 0
            continue
        if n_room == most:  # one shift brings too many points into one group
            yield from _find_in_parts(groups, points, shifts[row : row + 1], names[row : row + 1], other, most)
            row, other = (row + 1, other) if find.way == BY_SHIFTS else (row, other + 1)
            continue
        done = other / groups.n_groups if find.way == BY_SHIFTS else row / len(shifts)
        n_room = min(max(2 * n_room, int(1.1 * n / done) if done else 0), STEP * n_room, most)
        larger = _make_room(n_room)
        for column, new in zip(columns, larger, strict=True):
            new[:n] = column[:n]
        columns = larger
    if n < SMALL or 2 * n < n_room:
        yield columns.bands[:n].copy(), columns.points[:n].copy(), columns.shifts[:n].copy()
    else:
        yield _first(columns, n)


class _Finder:
    """Writes the pairs of all shifts, in the way that is the least work."""

    def __init__(self, groups: Groups, points: Points, shifts: NDArray[np.float64], names: NDArray[np.int32]) -> None:
        self.way = choose_way(groups, points, len(shifts))
        self._groups, self._points, self._shifts = groups, points, Shifts(shifts, names)
        if self.way == BY_GROUPS:
            self._cells = points.cells_of(groups, len(shifts))
        elif self.way == BY_POINTS:
            self._tree, self._values = groups.make_tree(), points.in_order()

    def write(self, progress: Progress, out: PairColumns) -> Progress:
        """Write pairs from here on until room runs out; how far it got."""
        groups, points, shifts, n_groups = self._groups, self._points, self._shifts, self._groups.n_groups
        table, lists = groups.table, groups.lists
        if self.way == BY_GROUPS:
            return find_pairs_by_groups(
                shifts, progress, out, table, lists, n_groups, points.blocks, points.n_blocks, self._cells
            )
        if self.way == BY_SHIFTS:
            return find_pairs_by_shifts(shifts, progress, out, table, lists, n_groups, points.blocks, points.n_blocks)
        values, names = self._values
        return find_pairs_by_points(
            shifts, progress, out, table, lists, n_groups, groups.order, self._tree, values, names
        )


def _find_in_parts(
    groups: Groups, points: Points, shift: NDArray[np.float64], name: NDArray[np.int32], group: int, most: int
) -> Iterator[Triples]:
    """The pairs of one shift in one group, some points at a time."""
    table, lists, (values, names) = groups.table, groups.lists, points.in_order()
    with np.errstate(over="ignore"):
        shifted = values + shift
    # A cover that is NaN is unbounded: comparisons with it are false.
    near = np.flatnonzero(~(shifted < table.cover_lows[group]) & ~(shifted > table.cover_highs[group]))
    n_at_once = max(1, most // int(table.sizes[group]))
    shifts = Shifts(shift, name)
    for start in range(0, len(near), n_at_once):
        some, part = near[start : start + n_at_once], Points()
        part.add(values[some], names[some])
        columns = _make_room(most)
        _, _, n = find_pairs_by_shifts(
            shifts, (0, group, 0), columns, table, lists, group + 1, part.blocks, part.n_blocks
        )
        yield _first(columns, n)


def find_affected(groups: Groups, points: Points, shifts: NDArray[np.float64]) -> NDArray[np.int32]:
    """The names of the bands into which at least one of the shifts brings a point, each once."""
    names, lows, n_groups = empty_int32(len(groups) + PAD), groups.bands.lows, groups.n_groups
    if choose_way(groups, points, len(shifts)) == BY_POINTS:
        tree, (values, _) = groups.make_tree(), points.in_order()
        n = find_affected_by_points(
            shifts, names, lows, groups.table, groups.lists, n_groups, groups.order, tree, values
        )
    else:
        blocks, cells = points.blocks, points.cells_of(groups, 1)
        n = find_affected_by_groups(
            shifts, names, lows, groups.table, groups.lists, n_groups, blocks, points.n_blocks, cells
        )
    return names[:n] if 4 * n > len(groups) else names[:n].copy()


def choose_way(groups: Groups, points: Points, n_shifts: int) -> str:
    """The way that is the least work for this many shifts, apart from the output."""
    n_groups, n_values = groups.n_groups, len(points)
    looks = LOOK * n_shifts * n_groups
    costs = {
        BY_GROUPS: looks + TURN * n_shifts,
        BY_SHIFTS: looks + TURN * n_groups,
        BY_POINTS: n_shifts * VALUE * n_values + (0 if groups.has_tree else TREE * n_groups),
    }
    return min(costs, key=costs.__getitem__)


def _make_room(n: int) -> PairColumns:
    return PairColumns(empty_int32(n + PAD), empty_int32(n + PAD), empty_int32(n + PAD))


def _first(columns: PairColumns, n: int) -> Triples:
    return columns.bands[:n], columns.points[:n], columns.shifts[:n]
