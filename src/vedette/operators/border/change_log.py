"""Which keys of a border monitor changed since its state was last saved."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

MANY_FREED = 1 << 16  # freed keys that are always recorded


class ChangeLog:
    """The slots of keys that changed, and the keys that were freed.

    Nothing is recorded before the first save, nor after more keys were freed than a whole state has: then the next
    delta is a whole state.
    """

    def __init__(self) -> None:
        self._is_on = False
        self._slots: list[NDArray[np.int32]] = []
        self._n_slots = 0  # of these arrays; a copy shares the list, so there may be later ones
        self._n_noted = self._n_distinct = 0
        self._freed: list[Any] = []
        self._n_freed = 0

    def __copy__(self) -> ChangeLog:
        """The log as it is now. If the copy is used again, this log must not be."""
        made = ChangeLog.__new__(ChangeLog)
        made.__dict__.update(self.__dict__, _freed=list(self._freed))
        return made

    def note(self, slots: NDArray[np.int32]) -> None:
        if self._is_on and len(slots):
            del self._slots[self._n_slots :]
            self._slots.append(slots)
            self._n_slots += 1
            self._n_noted += len(slots)
            if self._n_noted > 4 * self._n_distinct + 65_536:  # the last save was long ago
                self._set([np.unique(np.concatenate(self._slots))])
                self._n_noted = self._n_distinct = len(self._slots[0])

    def note_freed(self, keys: Any, n_left: int) -> None:
        """These keys were freed, and so many are left."""
        if self._is_on:
            self._freed.append(keys)
            self._n_freed += len(keys)
            if self._n_freed > n_left + MANY_FREED:
                self.__init__()  # type: ignore[misc]

    def move_slots(self, moved: NDArray[np.int32]) -> None:
        noted = [moved[slots] for slots in self._slots[: self._n_slots]]
        self._set([slots[slots >= 0] for slots in noted])

    def _set(self, slots: list[NDArray[np.int32]]) -> None:
        self._slots, self._n_slots = slots, len(slots)

    def take(self) -> tuple[NDArray[np.int32] | None, list[Any]]:
        """The distinct slots of keys that changed, and the keys that were freed; None if nothing was saved before."""
        slots = (
            np.unique(np.concatenate([np.empty(0, np.int32), *self._slots[: self._n_slots]])) if self._is_on else None
        )
        freed = self._freed
        self.__init__()  # type: ignore[misc]
        self._is_on = True
        return slots, freed
