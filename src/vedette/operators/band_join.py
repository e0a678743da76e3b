"""The band join: how the answer changes when values come and go, and when bands do.

A value that comes or goes on one side shifts the points of the other (see `indexes/bands/rounding`). Bands that come
or go meet the values of the smaller side one by one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vedette.indexes.bands import Groups, find_affected, find_pairs
from vedette.operators.band_join_side import Side


@dataclass(frozen=True)
class PairChanges:
    """Pairs that are new (sign 1) or gone (-1), as columns: the query, and the slots of both values."""

    sign: int
    queries: NDArray[np.int32]
    lefts: NDArray[np.int32]
    rights: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.queries)


def insert_pairs(groups: Groups, side: Side, other: Side, ids: Any, values: NDArray[np.float64]) -> PairChanges:
    """Put new values on a side; the pairs they make."""
    slots = side.put(ids, values)
    return _pairs_of(groups, side, other, slots, 1)


def delete_pairs(groups: Groups, side: Side, other: Side, slots: NDArray[np.int32]) -> PairChanges:
    """Free values of a side; the pairs that go with them."""
    side.free(slots)
    return _pairs_of(groups, side, other, slots, -1)


def insert_affected(groups: Groups, side: Side, other: Side, ids: Any, values: NDArray[np.float64]) -> NDArray[Any]:
    """Put new values on a side; the queries that get pairs, each once."""
    return find_affected(groups, other.points, side.shifts(side.put(ids, values)))


def delete_affected(groups: Groups, side: Side, other: Side, slots: NDArray[np.int32]) -> NDArray[Any]:
    """Free values of a side; the queries that lose pairs, each once."""
    side.free(slots)
    return find_affected(groups, other.points, side.shifts(slots))


def find_all_pairs(
    left: Side, right: Side, lows: NDArray[np.float64], highs: NDArray[np.float64], sign: int
) -> PairChanges:
    """All pairs of some bands; a query is the place of its band."""
    groups = Groups.build(lows, highs)
    side, other = (left, right) if len(left) < len(right) else (right, left)
    shifts, slots = side.points.in_order()  # in order, so that look-ups lie close to each other
    queries, others, own = find_pairs(groups, other.points, shifts, slots)
    return _to_changes(side, queries, own, others, sign)


def change_bands(
    left: Side,
    right: Side,
    old: tuple[NDArray[np.float64], NDArray[np.float64]],
    new: tuple[NDArray[np.float64], NDArray[np.float64]],
) -> list[PairChanges]:
    """What pairs go and come when bands change from old to new; NaN where there was none, or is none any more.

    A query is the place of its band. Pairs of both the old and the new band are not told.
    """
    changes = []
    for sign, (lows, highs), (other_lows, other_highs) in ((-1, old, new), (1, new, old)):
        there = np.flatnonzero(lows == lows)
        if not len(there) or not len(left) or not len(right):
            continue
        found = find_all_pairs(left, right, lows[there], highs[there], sign)
        queries = there[found.queries]
        with np.errstate(over="ignore", invalid="ignore"):
            differences = left.values[found.lefts] - right.values[found.rights]
            stays = (other_lows[queries] <= differences) & (differences <= other_highs[queries])
        kept = np.flatnonzero(~stays)
        changes.append(PairChanges(sign, queries[kept].astype(np.int32), found.lefts[kept], found.rights[kept]))
    return changes


def _pairs_of(groups: Groups, side: Side, other: Side, slots: NDArray[np.int32], sign: int) -> PairChanges:
    queries, others, own = find_pairs(groups, other.points, side.shifts(slots), slots, side.expected * len(slots))
    if len(slots):
        side.expected = max(len(queries) // len(slots), side.expected * 7 // 8)
    return _to_changes(side, queries, own, others, sign)


def _to_changes(
    side: Side, queries: NDArray[np.int32], own: NDArray[np.int32], others: NDArray[np.int32], sign: int
) -> PairChanges:
    return PairChanges(sign, queries, own, others) if side.sign == 1 else PairChanges(sign, queries, others, own)
