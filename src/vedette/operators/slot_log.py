"""Which rows by slot changed since the state was last saved."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vedette.native.buffers import grown


class SlotLog:
    """A mark per slot. Nothing is noted before `begin`, nor after `forget`: then all slots may have changed."""

    def __init__(self) -> None:
        self._is_changed: NDArray[np.bool_] | None = None

    @property
    def nbytes(self) -> int:
        return 0 if self._is_changed is None else self._is_changed.nbytes

    def begin(self) -> None:
        """Note changes from here on."""
        self._is_changed = np.zeros(0, np.bool_)

    def forget(self) -> None:
        """Note nothing any more, because slots have moved."""
        self._is_changed = None

    def note(self, slots: NDArray[np.int32]) -> None:
        """These slots have changed."""
        if self._is_changed is not None and len(slots):
            self._is_changed = grown(self._is_changed, len(self._is_changed), int(slots.max()) + 1)
            self._is_changed[slots] = True

    def take(self, lives: NDArray[np.bool_]) -> tuple[NDArray[np.int32], NDArray[np.int32]] | None:
        """The slots that changed since the last call, each once: those that live, and the others.

        None if they are not known: slots have moved, or this is the first call.
        """
        if self._is_changed is None:
            self.begin()
            return None
        slots = np.flatnonzero(self._is_changed).astype(np.int32)
        self._is_changed[slots] = False
        is_alive = lives[slots]
        return slots[is_alive], slots[~is_alive]

    def keep(self, slots: NDArray[np.int32]) -> Any:
        """The marks of these slots, for `restore`."""
        if self._is_changed is None:
            return None
        self._is_changed = grown(self._is_changed, len(self._is_changed), int(slots.max(initial=-1)) + 1)
        return self._is_changed[slots]

    def restore(self, slots: NDArray[np.int32], kept: Any) -> None:
        """Undo what was noted since `keep`."""
        if self._is_changed is not None:
            self._is_changed[slots] = kept

    def drop_from(self, n: int) -> None:
        """Slots from `n` on do not exist any more."""
        if self._is_changed is not None:
            self._is_changed[n:] = False
