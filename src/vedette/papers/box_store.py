"""Boxes by number, for indexes that change.

A new box gets a free number; a removed box frees its number. Indexes list numbers, which stay small, and report ids,
which may repeat. 8 bytes per box and axis, and 4 per box.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vedette.indexes.index import count_bytes


@dataclass
class BoxStore:
    """Box `n` has the closed cell ranges `firsts[axis, n]` to `lasts[axis, n]`; a free number has an empty range."""

    firsts: NDArray[np.int32]  # (axes, numbers)
    lasts: NDArray[np.int32]
    ids: NDArray[np.int32]
    free: NDArray[np.int32]  # numbers, the next one last
    first_id: int  # the id of a number is the number plus this; -1 if ids must be looked up

    @property
    def nbytes(self) -> int:
        return count_bytes(self)

    def __len__(self) -> int:
        return len(self.ids) - len(self.free)

    def give_ids(self, positions: NDArray[np.int32]) -> NDArray[np.int32]:
        """Replace the numbers in an array by their ids; the same array."""
        if self.first_id < 0:
            return np.take(self.ids, positions, out=positions, mode="clip") if len(positions) else positions
        if self.first_id > 0:
            positions += np.int32(self.first_id)
        return positions

    def keep(self, firsts: NDArray[np.int32], lasts: NDArray[np.int32], ids: NDArray[np.int32]) -> NDArray[np.int32]:
        """Add boxes that are not empty; their numbers."""
        n_missing = len(ids) - len(self.free)
        if n_missing > 0:
            n_old = len(self.ids)
            n_more = max(n_missing, n_old // 4)
            none = np.zeros((len(self.firsts), n_more), np.int32)
            self.firsts = np.concatenate([self.firsts, none + 1], axis=1)
            self.lasts = np.concatenate([self.lasts, none], axis=1)
            self.ids = np.concatenate([self.ids, np.full(n_more, -1, np.int32)])
            self.free = np.concatenate([np.arange(n_old + n_more, n_old, -1, dtype=np.int32) - 1, self.free])
        numbers = self.free[len(self.free) - len(ids) :][::-1].copy()
        self.free = self.free[: len(self.free) - len(ids)].copy()
        self.firsts[:, numbers], self.lasts[:, numbers], self.ids[numbers] = firsts, lasts, ids
        self.first_id = find_first_id(self.ids)
        return numbers

    def find(self, ids: NDArray[Any]) -> NDArray[np.int32]:
        """The numbers of all boxes with one of these ids."""
        held = np.isin(self.ids, ids)
        held[self.free] = False
        return np.flatnonzero(held).astype(np.int32)

    def release(self, numbers: NDArray[np.int32]) -> None:
        """Remove boxes."""
        self.firsts[:, numbers], self.lasts[:, numbers], self.ids[numbers] = 1, 0, -1
        self.free = np.concatenate([self.free, numbers[::-1]])
        self.first_id = find_first_id(self.ids)


def find_first_id(ids: NDArray[np.int32]) -> int:
    """The first id if ids rise by one from box to box; otherwise -1."""
    n = len(ids)
    is_run = n > 0 and ids[0] >= 0 and int(ids[-1]) - int(ids[0]) == n - 1 and bool((np.diff(ids) == 1).all())
    return int(ids[0]) if is_run else -1
