"""Deadlines: up to when each key was followed, and when time next changes something for it.

Keys are ordered by deadline in runs, each sorted, of which a new one is merged with older ones that are not much
larger. An entry whose key has another deadline by now is skipped. So a batch costs its own size and a logarithm, and
finding the keys that are due costs their number.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vedette.data.moments import NEVER
from vedette.native.kernels import kernel


class Deadline(NamedTuple):
    """Moments of some keys."""

    seen: NDArray[np.int64]  # when the key was last compared with all queries of its version
    passed: NDArray[np.int64]  # the last move that time made
    checked: NDArray[np.int64]  # up to here, time makes no other move
    nexts: NDArray[np.int64]  # time makes no move before


class Deadlines:
    """By slot of a key. Slots that were never set have no deadline."""

    def __init__(self) -> None:
        self._all = Deadline(*(np.empty(0, np.int64) for _ in Deadline._fields))
        self.reached: int | None = None  # the greatest time to which all keys advanced
        self._runs: list[tuple[NDArray[np.int64], NDArray[np.int32]]] = []

    def __copy__(self) -> Deadlines:
        """A copy with other runs and the same arrays by slot; runs never change in place."""
        made = Deadlines()
        made.__dict__.update(self.__dict__, _runs=list(self._runs))
        return made

    def __len__(self) -> int:
        """The number of slots, 0 if no key has a deadline."""
        return len(self._all.nexts)

    @property
    def nbytes(self) -> int:
        runs = sum(times.nbytes + slots.nbytes for times, slots in self._runs)
        return runs + sum(each.nbytes for each in self._all)

    def read(self, slots: NDArray[np.int32]) -> Deadline:
        self._grow(slots)
        return Deadline(*(each[slots] for each in self._all))

    def at(self, slots: NDArray[np.int32]) -> Deadline:
        """The moments by slot, which include these slots. Do not change them."""
        self._grow(slots)
        return self._all

    def read_seen(self, slots: NDArray[np.int32]) -> NDArray[np.int64]:
        self._grow(slots)
        return self._all.seen[slots]

    def read_passed(self, slots: NDArray[np.int32]) -> NDArray[np.int64]:
        self._grow(slots)
        return self._all.passed[slots]

    def put(
        self,
        slots: NDArray[np.int32],
        seen: NDArray[np.int64],
        passed: NDArray[np.int64],
        checked: NDArray[np.int64],
    ) -> None:
        """Set what was reached, for slots that occur once."""
        self._grow(slots)
        _put(slots, self._all.seen, self._all.passed, self._all.checked, seen, passed, checked)

    def put_nexts(self, slots: NDArray[np.int32], nexts: NDArray[np.int64]) -> None:
        """Set the next moments of slots that occur once."""
        self._grow(slots)
        self._all.nexts[slots] = nexts
        times, slots = _list_valid(nexts, slots, self._all.nexts)
        while self._runs and len(self._runs[-1][0]) <= 2 * len(times):
            more_times, more_slots = self._runs.pop()
            more_times, more_slots = _list_valid(more_times, more_slots, self._all.nexts)
            times, slots = np.concatenate([times, more_times]), np.concatenate([slots, more_slots])
        if (times[1:] < times[:-1]).any():
            order = np.argsort(times, kind="stable")
            times, slots = times[order], slots[order]
        if len(times):
            self._runs.append((times, slots))

    def advance(self, time: int) -> None:
        """All keys have reached a time."""
        self.reached = time if self.reached is None else max(self.reached, time)

    def restore(self, slots: NDArray[np.int32], old: Deadline) -> None:
        """Set slots as they were when the runs were copied."""
        self._grow(slots)
        for values, own in zip(self._all, old, strict=True):
            values[slots] = own

    def save(self, slots: NDArray[np.int32]) -> list[NDArray[np.int64]] | None:
        """What a state saves for some slots, or None if no key has a deadline."""
        if not len(self):
            return None
        found = self.read(slots)
        return [found.seen, found.passed, found.nexts]

    def load(self, slots: NDArray[np.int32], saved: list[NDArray[np.int64]] | None) -> None:
        """Set what `save` returned."""
        if saved is not None or len(self):
            seen, passed, nexts = saved or no_deadlines(len(slots))
            self.put(slots, seen, passed, passed)
            self.put_nexts(slots, nexts)

    def take_until(self, time: int) -> NDArray[np.int32]:
        """Remove and return the slots whose next moment is at a time or before, each once."""
        due, kept = [np.empty(0, np.int32)], []
        for times, slots in self._runs:
            n = int(np.searchsorted(times, time, side="right"))
            due.append(slots[:n][self._all.nexts[slots[:n]] == times[:n]])
            if n < len(times):
                kept.append((times[n:], slots[n:]))
        self._runs = kept
        return np.unique(np.concatenate(due))

    def move_slots(self, moved: NDArray[np.int32]) -> None:
        """Update the slots of the keys; -1: the key is gone."""
        if not len(self):
            return
        kept = np.flatnonzero(moved >= 0).astype(np.int32)
        values, runs, reached = self.read(kept), self._runs, self.reached
        self.__init__()  # type: ignore[misc]
        self.reached = reached
        self.restore(moved[kept], values)
        for times, slots in runs:
            stays = moved[slots] >= 0
            self._runs.append((times[stays], moved[slots][stays]))

    def _grow(self, slots: NDArray[np.int32]) -> None:
        n_old, n = len(self), int(slots.max(initial=-1)) + 1
        if n > n_old:
            seen, passed, nexts = no_deadlines(max(n, n_old + n_old // 2) - n_old)
            more = Deadline(seen, passed, passed, nexts)
            self._all = Deadline(*(np.append(old, new) for old, new in zip(self._all, more, strict=True)))


def no_deadlines(n: int) -> list[NDArray[np.int64]]:
    """What a state saves for `n` keys without a deadline."""
    past = np.full(n, np.iinfo(np.int64).min)
    return [past, past, np.full(n, NEVER)]


@kernel
def _put(
    slots: NDArray[np.int32],
    all_seen: NDArray[np.int64],
    all_passed: NDArray[np.int64],
    all_checked: NDArray[np.int64],
    seen: NDArray[np.int64],
    passed: NDArray[np.int64],
    checked: NDArray[np.int64],
) -> None:
    for i in range(len(slots)):
        all_seen[slots[i]], all_passed[slots[i]], all_checked[slots[i]] = seen[i], passed[i], checked[i]


@kernel
def _list_valid(
    times: NDArray[np.int64], slots: NDArray[np.int32], nexts: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """The times that are still the next moments of their slots, with these."""
    kept_times, kept_slots = np.empty_like(times), np.empty_like(slots)
    n = 0
    for i in range(len(slots)):
        kept_times[n], kept_slots[n] = times[i], slots[i]
        n += times[i] < NEVER and nexts[slots[i]] == times[i]
    return kept_times[:n].copy(), kept_slots[:n].copy()
