"""The state of a border monitor before a step, so that a refused or unfinished step can be undone."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vedette.operators.border.deadlines import Deadline
from vedette.operators.border.silent_keys import Silent

if TYPE_CHECKING:
    from vedette.operators.border.monitor import BorderMonitor

_ATTRIBUTES = (
    "clock",
    "lingering",
    "pending",
    "cooling",
    "n_held_back",
    "n_late",
    "n_null_keys",
    "n_failed",
    "changes",
    "deadlines",
    "silent",
)


@dataclass
class Undo:
    """The parts of the state that a step changes, as they were before.

    Keys that got a slot keep it, without a row, until the slots are packed.
    """

    is_first: bool  # the types of keys and times were not known, or only from the schema
    kept: dict[str, Any]
    slots: NDArray[np.int32] | None = None
    rows: Any = None  # of those slots: whether they have a row, times, versions, columns, details
    reached: Deadline | None = None  # of those slots, if time is followed
    silent: Silent | None = None  # of those slots, if queries differ in `expire_after`

    @classmethod
    def of(cls, monitor: BorderMonitor) -> Undo:
        # Tables of pairs never change their arrays in place, so a shallow copy is enough.
        is_first = not monitor.time_type or monitor.keys.keys.kind is None
        return cls(is_first, {name: copy.copy(getattr(monitor, name)) for name in _ATTRIBUTES})

    def keep_rows(self, monitor: BorderMonitor, slots: NDArray[np.int32]) -> None:
        """Keep the last rows of some keys, which are about to change."""
        keys, self.slots = monitor.keys, slots
        self.reached = monitor.deadlines.read(slots) if monitor.deadlines else None
        self.silent = None if monitor.silent is None else monitor.silent.read(slots)
        details = monitor.details.at(slots)
        self.rows = keys.has_row[slots], keys.times[slots], keys.versions[slots], keys.rows(slots), details

    def apply(self, monitor: BorderMonitor) -> None:
        if self.is_first:
            monitor.clear()
        elif self.slots is not None:
            had_row, times, versions, columns, details = self.rows
            old = np.flatnonzero(had_row)
            rows = {name: column.take(old) for name, column in columns.items()}
            monitor.keys.free(self.slots[~had_row])
            monitor.keys.put_some(self.slots[old], times[old], versions[old], rows)
            monitor.details.put(self.slots[old], details.take(old))
        for name, value in self.kept.items():
            setattr(monitor, name, value)
        if self.slots is not None and self.reached is not None:
            monitor.deadlines.restore(self.slots, self.reached)
        if self.slots is not None and self.silent is not None and monitor.silent is not None:
            monitor.silent.restore(self.slots, self.silent)
        monitor.pack()
