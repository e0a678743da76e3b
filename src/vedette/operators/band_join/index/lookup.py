"""Look-ups of shifts in stabbing groups: which values come into which bands, and which bands get any.

There are three ways through groups, values and shifts, and the one that is the least work is taken; beyond that the
work follows the output, and nothing is stored but values and bands.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vedette.native.budget import UNBOUNDED
from vedette.native.buffers import empty_int32
from vedette.operators.band_join.index.by_groups import find_affected_by_groups, find_pairs_by_groups
from vedette.operators.band_join.index.by_points import find_affected_by_points, find_pairs_by_points
from vedette.operators.band_join.index.by_shifts import find_pairs_by_shifts
from vedette.operators.band_join.index.group_changes import PAD
from vedette.operators.band_join.index.groups import Groups
from vedette.operators.band_join.index.points import Points

FIRST_ROOM, MOST_ROOM = 1 << 14, 1 << 24  # pairs that there is room for at first; more only once they are there
STEP = 8  # by how much room grows at most: what the first shifts make need not be what all make
SMALL = 1 << 18  # so many pairs are copied out of the room, which stays warm for the next look-up
BY_GROUPS, BY_SHIFTS, BY_POINTS = "by groups", "by shifts", "by points"

# What things take, in nanoseconds.
LOOK = 4  # a look with one shift into one group
TURN = 60  # besides, a shift that is looked up in all groups, or a group in which all shifts are
VALUE = 200  # by points: a value under a shift
TREE = 16  # and, where it has to be made, the tree, a group

Triples = tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]


def find_pairs(
    groups: Groups, points: Points, shifts: NDArray[np.float64], names: NDArray[np.int32], expected: int = 0
) -> Triples:
    """All bands, points and shifts that meet, as columns of their names, in no particular order.

    `expected` is how many there may be; a good guess spares moving them.
    """
    return next(find_pair_batches(groups, points, shifts, names, UNBOUNDED, expected))


def find_pair_batches(
    groups: Groups, points: Points, shifts: NDArray[np.float64], names: NDArray[np.int32], most: int, expected: int = 0
) -> Iterator[Triples]:
    """The pairs of `find_pairs` in pieces of at most `most`, or of as many as there are bands.

    Nothing that is passed may change until the last piece. There is at least one, which may be empty.
    """
    way = choose_way(groups, points, len(shifts))
    find: Any = find_pairs_by_shifts
    held = (*groups.arrays, *points.arrays)
    if way == BY_GROUPS:
        find, held = find_pairs_by_groups, (*held, *points.cells_of(groups, len(shifts)))
    elif way == BY_POINTS:
        find, held = find_pairs_by_points, (*groups.tree_arrays, *points.in_order())
    most = max(most, len(groups))  # a shift brings a point into no more bands
    n_room = min(max(FIRST_ROOM, expected + expected // 8), MOST_ROOM, most)
    columns = _make_room(n_room)
    row = other = n = 0
    while True:
        row, other, n = find(shifts, names, row, other, n, *columns, *held)
        if row == len(shifts):
            break
        if n_room == most and n:
            yield columns[0][:n], columns[1][:n], columns[2][:n]
            columns, n = _make_room(n_room), 0
            continue
        if n_room == most:  # one shift brings too many points into one group
            yield from _find_in_parts(groups, points, shifts[row : row + 1], names[row : row + 1], other, most)
            row, other = (row + 1, other) if way == BY_SHIFTS else (row, other + 1)
            continue
        done = other / groups.n_groups if way == BY_SHIFTS else row / len(shifts)
        n_room = min(max(2 * n_room, int(1.1 * n / done) if done else 0), STEP * n_room, most)
        larger = _make_room(n_room)
        for column, new in zip(columns, larger, strict=True):
            new[:n] = column[:n]
        columns = larger
    if n < SMALL or 2 * n < n_room:
        yield columns[0][:n].copy(), columns[1][:n].copy(), columns[2][:n].copy()
    else:
        yield columns[0][:n], columns[1][:n], columns[2][:n]


def _find_in_parts(
    groups: Groups, points: Points, shift: NDArray[np.float64], name: NDArray[np.int32], group: int, most: int
) -> Iterator[Triples]:
    """The pairs of one shift in one group, some points at a time."""
    values, names = points.in_order()
    with np.errstate(over="ignore"):
        shifted = values + shift
    near = np.flatnonzero((shifted >= groups.cover_lows[group]) & (shifted <= groups.cover_highs[group]))
    n_at_once = max(1, most // int(groups.sizes[group]))
    held = (*groups.arrays[:-1], group + 1)
    for start in range(0, len(near), n_at_once):
        some, part = near[start : start + n_at_once], Points()
        part.add(values[some], names[some])
        columns = _make_room(most)
        _, _, n = find_pairs_by_shifts(shift, name, 0, group, 0, *columns, *held, *part.arrays)
        yield columns[0][:n], columns[1][:n], columns[2][:n]


def find_affected(groups: Groups, points: Points, shifts: NDArray[np.float64]) -> NDArray[np.int32]:
    """The names of the bands into which at least one of the shifts brings a point, each once."""
    names = empty_int32(len(groups) + PAD)
    if choose_way(groups, points, len(shifts)) == BY_POINTS:
        held = (*groups.tree_arrays, points.in_order()[0])
        n = find_affected_by_points(shifts, names, groups.lows, *held)
    else:
        held = (*groups.arrays, *points.arrays, *points.cells_of(groups, 1))
        n = find_affected_by_groups(shifts, names, groups.lows, *held)
    return names[:n] if 4 * n > len(groups) else names[:n].copy()


def choose_way(groups: Groups, points: Points, n_shifts: int) -> str:
    """The way that is the least work for so many shifts, beyond what is found."""
    n_groups, n_values = groups.n_groups, len(points)
    looks = LOOK * n_shifts * n_groups
    costs = {
        BY_GROUPS: looks + TURN * n_shifts,
        BY_SHIFTS: looks + TURN * n_groups,
        BY_POINTS: n_shifts * VALUE * n_values + (0 if groups.has_tree else TREE * n_groups),
    }
    return min(costs, key=costs.__getitem__)


def _make_room(n: int) -> Triples:
    return empty_int32(n + PAD), empty_int32(n + PAD), empty_int32(n + PAD)
