"""One of the two sets of moving objects: by their owners' ids, with their motions as rows, under a grid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vedette.data.ids import Ids, take_ids
from vedette.operators.carried_rows import CarriedRows
from vedette.operators.moving_join import motion_rows
from vedette.operators.moving_join.grid import SweptGrid
from vedette.operators.moving_join.meetings import Meetings
from vedette.operators.moving_join.motion_rows import FARTHEST, SIDES, TIME, UNTIL, vanishing_times
from vedette.operators.slot_log import SlotLog

FEW_FREED = 1024  # this many freed slots are always kept
SLICES = 16  # of the interval; rows that end in the next slice are listed in advance
MANY = 4  # the grid is rebuilt if one in this many objects changes at once


@dataclass
class SetUndo:
    """The set before a change: sizes, and the old values of rows that have changed since, in order."""

    n_ids: int
    kind: str | None
    n: int
    soon: NDArray[np.int32]
    soon_until: float
    carried: Any  # the mark of carried rows
    kept: list[tuple[NDArray[np.int32], NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_], Any, Any]] = field(
        default_factory=list
    )


class MovingSet:
    """Objects by slot. An id keeps its slot, also after its object is removed, until slots are packed.

    `reported` has, by slot, the time of the last row, so that an older row that arrives later is recognised. It is
    before the time in `rows` if that row was late, and it is kept for a while after an object is removed.

    A row is used for `interval` from its time on; then it has ended. If the set `renews`, rows are extended by further
    intervals. Rows of a static set need not update. They last at least an interval from now, so that the end of a pair
    depends only on the other set; a static row that does not move has no end.
    """

    def __init__(
        self, n_dims: int, interval: float, *, is_static: bool, renews: bool, columns: Sequence[str] = ()
    ) -> None:
        self.interval = interval
        self.is_static = is_static
        self.renews = renews or is_static
        self._ahead = interval if is_static else 0.0
        self.ids = Ids()
        self.rows = np.zeros((0, SIDES + 4 * n_dims))
        self.lives = np.zeros(0, np.bool_)
        self.reported = np.zeros(0)
        self._n = 0
        self._pack_above = FEW_FREED  # slots
        self._soon = np.empty(0, np.int32)  # slots of rows that renew; all that end before `_soon_until` are here
        self._soon_until = -np.inf
        self._is_left_out = np.zeros(0, np.bool_)  # for one look-up
        self._grid: SweptGrid | None = None
        self._grid_time = 0.0
        self._n_lookups = 0  # in the grid
        self.n_rebuilt = 0  # how often the grid was built because there was none
        self.log = SlotLog()
        self.carried = CarriedRows(columns)  # of the last row of each object
        self._undo: SetUndo | None = None

    def __len__(self) -> int:
        return self._n

    @property
    def n_dims(self) -> int:
        return (self.rows.shape[1] - SIDES) // 4

    @property
    def grid(self) -> SweptGrid | None:
        """The index of the objects; None before the first look-up."""
        return self._grid

    @property
    def nbytes(self) -> int:
        own = self.ids.nbytes + self.rows.nbytes + self.lives.nbytes + self.reported.nbytes + self._is_left_out.nbytes
        return own + self.carried.nbytes + self.log.nbytes + (0 if self._grid is None else self._grid.nbytes)

    @property
    def living(self) -> NDArray[np.int32]:
        """The slots of all objects."""
        return np.flatnonzero(self.lives[: len(self.ids)]).astype(np.int32)

    def find(self, ids: NDArray[np.int64] | Any) -> NDArray[np.int32]:
        """The slot of each id, or -1 if the object does not exist."""
        slots = self.ids.find(ids)
        if len(self.ids):
            slots[~self.lives[slots]] = -1  # -1 stays -1, whatever the last slot is
        return slots

    def find_reported(self, ids: NDArray[np.int64] | Any) -> NDArray[np.float64]:
        """The time of the last row of each id, also of removed objects; -inf if it is unknown."""
        slots = self.ids.find(ids)
        reported = np.full(len(slots), -np.inf)
        reported[slots >= 0] = self.reported[slots[slots >= 0]]
        return reported

    def put(
        self,
        ids: NDArray[np.int64] | Any,
        rows: NDArray[np.float64],
        reported: NDArray[np.float64],
        now: float,
        carried: pa.Table | None = None,
    ) -> NDArray[np.int32]:
        """Set the rows of distinct ids, new or known, and their ends; the slots."""
        slots = self._write(ids, rows, reported, carried)
        self._set_ends(slots, now, now)
        return slots

    def remove(self, ids: NDArray[np.int64] | Any, reported: NDArray[np.float64]) -> None:
        """Remove the objects of distinct ids, and remember when. Unknown ids are remembered, too."""
        slots = self._find_or_add(ids)
        self._keep(slots)
        self.free(slots[self.lives[slots]])
        self.reported[slots] = reported
        self.log.note(slots)

    def restore(
        self,
        ids: NDArray[np.int64] | Any,
        rows: NDArray[np.float64],
        reported: NDArray[np.float64],
        now: float,
        carried: pa.Table | None = None,
    ) -> None:
        """Set rows as they were saved, with their ends. They will be looked up from `now` on."""
        slots = self._write(ids, rows, reported, carried)
        if rows[:, UNTIL].min(initial=np.inf) < self._soon_until:
            self._soon = np.concatenate([self._soon, slots])
        self._index(slots, now)
        self.log.note(slots)

    def set_ends(self, slots: NDArray[np.int32], now: float, since: float) -> None:
        """Set the ends of rows: not before `now` if they renew, but never after they vanish.

        They will be looked up from `since` on.
        """
        self._keep(slots)
        self._set_ends(slots, now, since)

    def _set_ends(self, slots: NDArray[np.int32], now: float, since: float) -> None:
        earliest = motion_rows.set_ends(self.rows, slots, self.interval, now + self._ahead, self.renews, self.is_static)
        if earliest < self._soon_until:
            self._soon = np.concatenate([self._soon, slots])
        self._index(slots, since)
        self.log.note(slots)

    def free(self, slots: NDArray[np.int32]) -> None:
        """Remove the objects at these slots. Undoing a change restores only what was kept before."""
        self.lives[slots] = False
        self._n -= len(slots)
        self.carried.free(slots)
        if self._grid is not None:
            self._grid.remove(slots)
        self.log.note(slots)

    def find_ended(self, time: float) -> NDArray[np.int32]:
        """The slots of objects that renew and have ended before a time, which never decreases."""
        if not self.renews:
            return np.empty(0, np.int32)
        time += self._ahead
        if time > self._soon_until:
            self._soon_until = time + self.interval / SLICES
            n = len(self.ids)
            self._soon = np.flatnonzero(self.lives[:n] & (self.rows[:n, UNTIL] < self._soon_until)).astype(np.int32)
        if not len(self._soon):
            return self._soon
        has_ended = self.lives[self._soon] & (self.rows[self._soon, UNTIL] < time)
        if not has_ended.any():
            return np.empty(0, np.int32)
        slots: NDArray[np.int32] = np.unique(self._soon[has_ended])
        exists: NDArray[np.bool_] = vanishing_times(self.rows[slots]) > self.rows[slots, UNTIL]
        return slots[exists]

    def ending_before(self, time: float) -> NDArray[np.int32]:
        """The slots of objects that renew, whose rows end before a time, and that have not vanished then."""
        if not self.renews:
            return np.empty(0, np.int32)
        n = len(self.ids)
        slots = np.flatnonzero(self.lives[:n] & (self.rows[:n, UNTIL] < time)).astype(np.int32)
        exists: NDArray[np.bool_] = vanishing_times(self.rows[slots]) >= time
        return slots[exists]

    def rows_until(self, time: float, extended: NDArray[np.int32]) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
        """Rows that all end at a time, and the slots of objects that exist then, also those that are `extended`."""
        exists = self.lives[: len(self.ids)] & (self.rows[: len(self.ids), UNTIL] >= time)
        exists[extended] = True
        rows = self.rows[: len(self.ids)].copy()
        rows[:, UNTIL] = time
        return rows, np.flatnonzero(exists).astype(np.int32)

    def meet(
        self, others: MovingSet, slots: NDArray[np.int32], since: float, left_out: NDArray[np.int32] | None = None
    ) -> Meetings:
        """The pairs of some objects with others, except those `left_out`, that end at `since` or later."""
        if not len(slots) or not len(others):
            return Meetings.empty()
        grid = others._ready_grid(since, len(slots))
        if left_out is not None:
            others._is_left_out[left_out] = True
        found = grid.find(self.rows, slots, others.rows[: len(others.ids)], others._is_left_out, since)
        if left_out is not None:
            others._is_left_out[left_out] = False
        return found

    def overdue(self, time: float) -> NDArray[np.int32]:
        """The slots of objects that should have updated before a time."""
        if self.is_static:
            return np.empty(0, np.int32)
        slots = self.living
        is_overdue: NDArray[np.bool_] = self.rows[slots, TIME] + self.interval < time
        return slots[is_overdue]

    def removed(self, now: float) -> NDArray[np.int32]:
        """The slots of removed objects whose time must be remembered: an older row of them may still arrive."""
        n = len(self.ids)
        since = -FARTHEST if self.is_static else now - self.interval
        return np.flatnonzero(~self.lives[:n] & (self.reported[:n] >= since)).astype(np.int32)

    def pack(self, now: float) -> NDArray[np.int32] | None:
        """Drop the slots of removed objects if they are the majority; the new slot of each (-1: dropped), or None."""
        if self.carried:
            self.carried.tidy()
        if len(self.ids) <= max(2 * len(self) + FEW_FREED, self._pack_above):
            return None
        kept = np.union1d(self.living, self.removed(now))
        self._pack_above = 2 * len(kept) + FEW_FREED
        if len(self.ids) <= self._pack_above:
            return None
        ids = Ids()
        ids.kind = self.ids.kind
        ids.append(self.ids.take(kept))
        moved = np.full(len(self.ids), -1, np.int32)
        moved[kept] = np.arange(len(kept), dtype=np.int32)
        self.ids, self.rows, self.lives, self.reported = ids, self.rows[kept], self.lives[kept], self.reported[kept]
        self._is_left_out = np.zeros(len(kept), np.bool_)
        self.carried.move_slots(moved)
        self._grid = None
        self.log.forget()
        self._soon_until = -np.inf
        return moved

    # Changes that can be undone.

    def begin_change(self) -> None:
        """Changes can be undone from now on, until `end_change`. Slots must not be packed in between."""
        carried = self.carried.mark()
        self._undo = SetUndo(len(self.ids), self.ids.kind, self._n, self._soon, self._soon_until, carried)

    def end_change(self) -> None:
        self._undo = None

    def undo(self) -> None:
        """Restore the state before `begin_change`. The grid is rebuilt, and so are the ids if there are new ones."""
        undo, self._undo = self._undo, None
        assert undo is not None, "begin_change comes first"
        for slots, rows, reported, lives, is_changed, places in reversed(undo.kept):
            self.rows[slots], self.reported[slots], self.lives[slots] = rows, reported, lives
            self.log.restore(slots, is_changed)
            if places is not None:
                self.carried.set_places(slots, places)
        self.carried.go_back(undo.carried)
        if len(self.ids) > undo.n_ids:
            self.lives[undo.n_ids :] = False
            self.log.drop_from(undo.n_ids)
            ids = Ids()
            ids.append(self.ids.take(np.arange(undo.n_ids)))
            ids.kind = undo.kind
            self.ids = ids
        self._n, self._soon, self._soon_until = undo.n, undo.soon, undo.soon_until
        self._grid = None
        self._is_left_out[:] = False

    def _keep(self, slots: NDArray[np.int32]) -> None:
        """Keep the old values of rows that are about to change."""
        if self._undo is not None and len(slots):
            kept = self.rows[slots], self.reported[slots], self.lives[slots], self.log.keep(slots)
            self._undo.kept.append((slots, *kept, self.carried.places(slots) if self.carried else None))

    # Inside.

    def _write(
        self,
        ids: NDArray[np.int64] | Any,
        rows: NDArray[np.float64],
        reported: NDArray[np.float64],
        carried: pa.Table | None,
    ) -> NDArray[np.int32]:
        slots = self._find_or_add(ids)
        self._keep(slots)
        self._n += len(slots) - int(np.count_nonzero(self.lives[slots]))
        self.rows[slots] = rows
        self.reported[slots] = reported
        self.lives[slots] = True
        if carried is not None:
            self.carried.append(slots, carried)
        else:
            self.carried.free(slots)
        return slots

    def _find_or_add(self, ids: NDArray[np.int64] | Any) -> NDArray[np.int32]:
        """The slots of distinct ids; a new id gets one, without an object."""
        slots = self.ids.find(ids)
        unknown = np.flatnonzero(slots < 0)
        if len(unknown):
            n_before = len(self.ids)
            self.ids.append(ids if len(unknown) == len(slots) else take_ids(ids, unknown))
            slots[unknown] = np.arange(n_before, len(self.ids), dtype=np.int32)
            self._make_room(n_before, len(self.ids))
        return slots

    def _make_room(self, n_before: int, n: int) -> None:
        if n <= len(self.rows):
            return
        room = max(n, n_before + n_before // 2)
        self.rows, self.reported = _grown(self.rows, n_before, room), _grown(self.reported, n_before, room)
        self.lives, self._is_left_out = _grown(self.lives, n_before, room), np.zeros(room, np.bool_)

    def _index(self, slots: NDArray[np.int32], since: float) -> None:
        if self._grid is None:
            return
        if len(slots) * MANY > len(self):
            self._grid = None
            return
        self._grid.remove(slots)
        if not self._grid.insert(self.rows[: len(self.ids)], slots, since):
            self._grid = None

    def _ready_grid(self, now: float, n_lookups: int) -> SweptGrid:
        if self._grid is None or (self._n_lookups > len(self) + FEW_FREED and now > self._grid_time):
            self.n_rebuilt += self._grid is None
            slots = self.living
            slots = slots[self.rows[slots, UNTIL] >= now]
            old, self._grid = self._grid, None
            self._grid = SweptGrid.build(self.rows[: len(self.ids)], slots, now, old)
            self._grid_time, self._n_lookups = now, 0
        self._n_lookups += n_lookups
        return self._grid


def _grown(array: NDArray[Any], n: int, room: int) -> NDArray[Any]:
    """The first `n` entries, with room for more, which are zero."""
    grown = np.zeros((room, *array.shape[1:]), array.dtype)
    grown[:n] = array[:n]
    return grown
