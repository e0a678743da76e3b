"""What silent keys have left: kept by slot, only if queries differ in how long a key may be silent."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vedette.operators.border.key_state import KeyState
from vedette.operators.border.silences import Silences, elapsed

NOT_SILENT = (0, 0, -1)  # what a state has for a key that was not judged yet: its default is that of the monitor


class Silent(NamedTuple):
    """Of some keys."""

    judged: NDArray[Any]  # the silence up to which the key was judged: it has left all queries with a shorter one
    nexts: NDArray[Any]  # it leaves no query before this silence is over
    defaults: NDArray[Any]  # the silence of queries without their own, when the key had its last row


class SilentKeys:
    """By slot of a key."""

    def __init__(self, silences: Silences) -> None:
        self._new = Silent(
            *(np.array([each], silences.kind) for each in (0, silences.shortest, silences.default))
        )  # for keys from before
        self._all = Silent(*(each[:0] for each in self._new))
        self.least_default = silences.top  # of keys that were loaded

    @property
    def nbytes(self) -> int:
        return sum(each.nbytes for each in self._all)

    def read(self, slots: NDArray[np.int32]) -> Silent:
        self._grow(int(slots.max(initial=-1)) + 1)
        return Silent(*(each[slots] for each in self._all))

    def restore(self, slots: NDArray[np.int32], values: Silent) -> None:
        """Set what `read` returned."""
        self._grow(int(slots.max(initial=-1)) + 1)
        for own, given in zip(self._all, values, strict=True):
            own[slots] = given

    def load(self, slots: NDArray[np.int32], saved: list[NDArray[Any]] | None, silences: Silences) -> None:
        """Set what a state has saved."""
        self.begin(slots, silences)
        if saved is not None:
            judged, nexts, defaults = saved
            defaults = np.where(defaults < 0, silences.default, defaults)
            self.restore(slots, Silent(judged, nexts, defaults))
            self.least_default = min(self.least_default, defaults.min(initial=self.least_default))

    def begin(self, slots: NDArray[np.int32], silences: Silences) -> None:
        """These keys have a new row."""
        self._grow(int(slots.max(initial=-1)) + 1)
        judged, nexts, defaults = self._all
        judged[slots], nexts[slots], defaults[slots] = 0, silences.shortest, silences.default

    def judge(self, slots: NDArray[np.int32], judged: NDArray[Any], nexts: NDArray[Any]) -> None:
        """These keys were judged up to a silence, and leave the next query after another one."""
        self._all.judged[slots], self._all.nexts[slots] = judged, nexts

    def find_due(self, keys: KeyState, now: Any) -> NDArray[np.int32]:
        """The keys that may have left a query."""
        n = len(keys)
        self._grow(n)
        return np.flatnonzero(keys.has_row[:n] & (elapsed(now, keys.times[:n]) > self._all.nexts[:n])).astype(np.int32)

    def move_slots(self, moved: NDArray[np.int32]) -> None:
        """Update the slots of the keys; -1: the key is gone."""
        kept = np.flatnonzero(moved >= 0).astype(np.int32)
        values = self.read(kept)
        self._all = Silent(*(each[:0] for each in self._all))
        self.restore(moved[kept], values)

    def _grow(self, n: int) -> None:
        n_old = len(self._all.judged)
        if n > n_old:
            n_more = max(n, n_old + n_old // 2) - n_old
            self._all = Silent(
                *(np.append(old, np.repeat(new, n_more)) for old, new in zip(self._all, self._new, strict=True))
            )


class Upcoming:
    """The next silence after which each of some keys leaves a query, as far as it is found."""

    def __init__(self, slots: NDArray[np.int32], judged: NDArray[Any], silences: Silences) -> None:
        self.slots, self.judged = slots, judged  # slots are sorted
        self.nexts = np.full(len(slots), silences.top)

    def note(self, slots: NDArray[np.int32], silences: NDArray[Any]) -> None:
        """Keys that are inside queries with these silences."""
        places = np.searchsorted(self.slots, slots)
        is_later = silences >= self.judged[places]
        np.minimum.at(self.nexts, places[is_later], silences[is_later])
