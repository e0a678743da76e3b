"""The band join: how the answer changes when values or bands are added and removed.

A value of one side shifts the points of the other (see `papers/bands/rounding`). For a band that is added or removed,
all values of the smaller side are looked up.

Pairs are found before values change, in batches, so that a change with too many pairs can be refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vedette.operators.band_join.index.groups import Groups
from vedette.operators.band_join.index.lookup import find_affected, find_pair_batches
from vedette.operators.band_join.index.points import Points
from vedette.operators.band_join.side import Side

PAIR_BYTES = 13  # a sign, a query and two values


@dataclass(frozen=True)
class PairChanges:
    """Pairs that are added (sign 1) or retracted (-1), as columns: the query, and the slots of both values."""

    sign: int
    queries: NDArray[np.int32]
    lefts: NDArray[np.int32]
    rights: NDArray[np.int32]
    sees_new: bool = False  # whether the pairs are of the values after a change

    def __len__(self) -> int:
        return len(self.queries)

    @property
    def nbytes(self) -> int:
        return PAIR_BYTES * len(self)

    def take(self, places: NDArray[Any] | slice) -> PairChanges:
        return PairChanges(self.sign, self.queries[places], self.lefts[places], self.rights[places], self.sees_new)


@dataclass(frozen=True)
class NewValues:
    """Values that will be inserted on a side."""

    side: Side
    other: Side
    ids: Any  # NDArray[np.int64] or pa.LargeStringArray
    values: NDArray[np.float64]
    slots: NDArray[np.int32]
    rows: pa.Table | None = None  # the columns that answers carry

    @property
    def shifts(self) -> NDArray[np.float64]:
        return self.values * self.side.sign


@dataclass(frozen=True)
class Change:
    """Values to delete and values to insert, on one side or both. An id that is in both gets another value."""

    gone: Sequence[tuple[Side, Side, NDArray[np.int32]]] = ()  # a side, the other one, and slots of the first
    new: Sequence[NewValues] = ()
    unknown: Sequence[tuple[Side, Any]] = ()  # a side, and ids that have no value and were to be deleted
    same: Sequence[tuple[Side, NDArray[np.int32], pa.Table]] = ()  # values that stay, and columns of their new rows

    def find_pairs(self, groups: Groups, most: int) -> Iterator[PairChanges]:
        """The pairs of the values, each once, in batches of about `most` bytes. Call it before `apply`."""
        is_gone: dict[int, NDArray[np.bool_]] = {}  # by the sign of a side
        for side, other, slots in self.gone:
            for found in _find_pairs(groups, side, other.points, side.shifts(slots), slots, -1, most):
                yield _without(found, is_gone.get(other.sign), other)
            is_gone[side.sign] = np.zeros(len(side.ids), np.bool_)
            is_gone[side.sign][slots] = True
        for each in self.new:
            for found in _find_pairs(groups, each.side, each.other.points, each.shifts, each.slots, 1, most):
                yield _without(found, is_gone.get(each.other.sign), each.other)
        if len(self.new) == 2:
            first, second = self.new
            points = Points()
            points.add(first.shifts, first.slots)
            yield from _find_pairs(groups, second.side, points, second.shifts, second.slots, 1, most)

    def new_ids(self, side: Side) -> Any:
        """The ids that get a slot on a side, or None."""
        for each in self.new:
            if each.side is side:
                return side.new_ids(each.ids, each.slots)
        return None

    def apply(self) -> None:
        for side, _, slots in self.gone:
            side.free(slots)
        for each in self.new:
            each.side.put(each.ids, each.values, each.slots, each.rows)
        for side, slots, rows in self.same:
            side.put_rows(slots, rows)

    def rows_after(self, side: Side) -> tuple[NDArray[np.int32], list[pa.Table]]:
        """The slots of a side that get other rows, and these rows."""
        changed = [(each.slots, each.rows) for each in self.new if each.side is side and each.rows is not None]
        changed += [(slots, rows) for of, slots, rows in self.same if of is side]
        return np.concatenate([np.empty(0, np.int32), *(slots for slots, _ in changed)]), [rows for _, rows in changed]

    def apply_affected(self, groups: Groups) -> list[NDArray[Any]]:
        """Make the change; the queries that lose or get pairs, each once per array."""
        found = []
        for side, other, slots in self.gone:
            side.free(slots)
            found.append(find_affected(groups, other.points, side.shifts(slots)))
        for each in self.new:
            each.side.put(each.ids, each.values, each.slots)
            found.append(find_affected(groups, each.other.points, each.shifts))
        return found

    def tidy(self) -> None:
        """Pack the slots of deleted values; the slots of found pairs are invalid afterwards."""
        for side, _, _ in self.gone:
            side.pack()


def find_all_pairs(
    left: Side, right: Side, lows: NDArray[np.float64], highs: NDArray[np.float64], sign: int, most: int
) -> Iterator[PairChanges]:
    """All pairs of some bands, in batches of about `most` bytes; a query is the position of its band."""
    groups = Groups.build(lows, highs)
    side, other = (left, right) if len(left) < len(right) else (right, left)
    shifts, slots = side.points.in_order()  # in order, so that look-ups are close to each other
    for queries, others, own in find_pair_batches(groups, other.points, shifts, slots, most // PAIR_BYTES):
        yield _to_changes(side, queries, own, others, sign)


def change_bands(
    left: Side,
    right: Side,
    old: tuple[NDArray[np.float64], NDArray[np.float64]],
    new: tuple[NDArray[np.float64], NDArray[np.float64]],
    most: int,
) -> Iterator[PairChanges]:
    """The pairs that are retracted and added when bands change from old to new; NaN where a band does not exist.

    A query is the position of its band. Pairs of both the old and the new band are not reported. Batches have about
    `most` bytes.
    """
    for sign, (lows, highs), (other_lows, other_highs) in ((-1, old, new), (1, new, old)):
        there = np.flatnonzero(lows == lows)
        if not len(there) or not len(left) or not len(right):
            continue
        for found in find_all_pairs(left, right, lows[there], highs[there], sign, most):
            queries = there[found.queries]
            with np.errstate(over="ignore", invalid="ignore"):
                differences = left.values[found.lefts] - right.values[found.rights]
                stays = (other_lows[queries] <= differences) & (differences <= other_highs[queries])
            kept = np.flatnonzero(~stays)
            yield PairChanges(sign, queries[kept].astype(np.int32), found.lefts[kept], found.rights[kept])


def _find_pairs(
    groups: Groups,
    side: Side,
    points: Points,
    shifts: NDArray[np.float64],
    slots: NDArray[np.int32],
    sign: int,
    most: int,
) -> Iterator[PairChanges]:
    if not len(points):
        return
    n = 0
    for queries, others, own in find_pair_batches(
        groups, points, shifts, slots, most // PAIR_BYTES, side.expected * len(slots)
    ):
        n += len(queries)
        yield _to_changes(side, queries, own, others, sign, sees_new=sign == 1)
    side.expected = max(n // max(1, len(slots)), side.expected * 7 // 8)


def _without(found: PairChanges, is_gone: NDArray[np.bool_] | None, side: Side) -> PairChanges:
    """The pairs whose value on a side is not among those deleted."""
    if is_gone is None:
        return found
    return found.take(np.flatnonzero(~is_gone[found.lefts if side.sign == 1 else found.rights]))


def _to_changes(
    side: Side,
    queries: NDArray[np.int32],
    own: NDArray[np.int32],
    others: NDArray[np.int32],
    sign: int,
    *,
    sees_new: bool = False,
) -> PairChanges:
    lefts, rights = (own, others) if side.sign == 1 else (others, own)
    return PairChanges(sign, queries, lefts, rights, sees_new)
