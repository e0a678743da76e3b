"""Meetings: which objects of two sets intersect, from when until when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vedette.buffers import empty_int32, empty_int64


@dataclass(frozen=True)
class Meetings:
    """Pairs as columns: the slots of both objects, and the first and the last moment, which both belong to it."""

    a: NDArray[np.int32]
    b: NDArray[np.int32]
    starts: NDArray[np.float64]
    ends: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.a)

    @classmethod
    def empty(cls, n: int = 0) -> Meetings:
        """Room for `n` pairs."""
        return cls(empty_int32(n), empty_int32(n), empty_int64(n).view(np.float64), empty_int64(n).view(np.float64))

    @classmethod
    def concat(cls, many: Sequence[Meetings]) -> Meetings:
        if len(many) == 1:
            return many[0]
        if not many:
            return cls.empty()
        return cls(
            np.concatenate([each.a for each in many]),
            np.concatenate([each.b for each in many]),
            np.concatenate([each.starts for each in many]),
            np.concatenate([each.ends for each in many]),
        )

    def take(self, places: NDArray[Any] | slice) -> Meetings:
        """Some of them: by places, by a mask, or a stretch."""
        return Meetings(self.a[places], self.b[places], self.starts[places], self.ends[places])

    def swapped(self) -> Meetings:
        """The same, seen from the other set."""
        return Meetings(self.b, self.a, self.starts, self.ends)

    def without(self, others: Meetings) -> Meetings:
        """Less those that stand among the others, equal in all columns. Each stands here once."""
        if not len(self) or not len(others):
            return self
        mine, theirs = (
            np.stack([each.a, each.b, each.starts.view(np.int64), each.ends.view(np.int64)], axis=1)
            for each in (self, others)
        )
        _, codes = np.unique(np.concatenate([mine, theirs]), axis=0, return_inverse=True)
        return self.take(~np.isin(codes.reshape(-1)[: len(self)], codes.reshape(-1)[len(self) :]))
