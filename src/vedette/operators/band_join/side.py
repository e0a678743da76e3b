"""The values of one side of a band join, by their owners' ids and in order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vedette.data.ids import Ids, take_ids
from vedette.native.buffers import grown
from vedette.operators.band_join.index.points import Points
from vedette.operators.carried_rows import CarriedRows
from vedette.operators.slot_log import SlotLog

FEW_FREED = 1024  # up to this many freed slots are always kept


class Side:
    """Values by slot. An id keeps its slot after its value is removed, until slots are packed.

    `sign` is 1 for the left side and -1 for the right: a value times it, plus another's, is the difference of the two.
    """

    def __init__(self, sign: int, columns: Sequence[str] = ()) -> None:
        self.sign = sign
        self.ids = Ids()
        self.values = np.empty(0)
        self.lives = np.zeros(0, np.bool_)
        self.points = Points()
        self.n_calls = 0  # of `put` and `free`
        self.expected = 0  # recent number of pairs per value of this side
        self.log = SlotLog()
        self.carried = CarriedRows(columns)  # of the last row of each id that has a value

    def __len__(self) -> int:
        return len(self.points)

    @property
    def nbytes(self) -> int:
        own = self.ids.nbytes + self.values.nbytes + self.lives.nbytes + self.points.nbytes
        return own + self.carried.nbytes

    @property
    def living(self) -> NDArray[np.int32]:
        """The slots that have a value."""
        return np.flatnonzero(self.lives[: len(self.ids)]).astype(np.int32)

    def find(self, ids: NDArray[np.int64] | Any) -> NDArray[np.int32]:
        """The slot of each id, or -1 where it has no value."""
        slots = self.ids.find(ids)
        if len(self.ids):
            slots[~self.lives[slots]] = -1  # -1 stays -1, whatever the last slot is
        return slots

    def shifts(self, slots: NDArray[np.int32]) -> NDArray[np.float64]:
        """By how much the values at these slots shift the points of the other side."""
        return self.values[slots] * self.sign

    def slots_for(self, ids: NDArray[np.int64] | Any) -> NDArray[np.int32]:
        """The slots that ids have, or will have once `put` is called."""
        slots = self.ids.find(ids)
        unknown = np.flatnonzero(slots < 0)
        slots[unknown] = np.arange(len(self.ids), len(self.ids) + len(unknown), dtype=np.int32)
        return slots

    def new_ids(self, ids: NDArray[np.int64] | Any, slots: NDArray[np.int32]) -> NDArray[np.int64] | Any:
        """Those of the ids, with slots from `slots_for`, that have no slot yet."""
        unknown = np.flatnonzero(slots >= len(self.ids))
        return ids if len(unknown) == len(slots) else take_ids(ids, unknown)

    def put(
        self,
        ids: NDArray[np.int64] | Any,
        values: NDArray[np.float64],
        slots: NDArray[np.int32],
        rows: pa.Table | None = None,
    ) -> None:
        """Set the values of ids that have none, at slots from `slots_for`, and the columns of their rows."""
        self.n_calls += 1
        n_before = len(self.ids)
        new = self.new_ids(ids, slots)
        if len(new):
            self.ids.append(new)
            self.values = grown(self.values, n_before, len(self.ids))
            self.lives = grown(self.lives, n_before, len(self.ids))
        self.values[slots] = values
        self.lives[slots] = True
        self.points.add(values * self.sign, slots)
        self.log.note(slots)
        if rows is not None:
            self.carried.put(slots, rows)

    def put_rows(self, slots: NDArray[np.int32], rows: pa.Table) -> None:
        """Set the columns of rows whose values stay."""
        self.carried.put(slots, rows)
        self.log.note(slots)

    def free(self, slots: NDArray[np.int32]) -> None:
        """Remove the values at these slots."""
        self.n_calls += 1
        self.points.remove(self.shifts(slots), slots)
        self.lives[slots] = False
        self.log.note(slots)
        self.carried.free(slots)

    def pack(self) -> None:
        """Drop the slots of removed values when most slots are of such."""
        if len(self.ids) <= 2 * len(self) + FEW_FREED:
            return
        living = self.living
        ids = Ids()
        ids.kind = self.ids.kind
        ids.append(self.ids.take(living))
        moved = np.full(len(self.ids), -1, np.int32)
        moved[living] = np.arange(len(living), dtype=np.int32)
        self.points.rename(moved)
        self.carried.move_slots(moved)
        self.ids, self.values, self.lives = ids, self.values[living], np.ones(len(living), np.bool_)
        self.log.forget()
