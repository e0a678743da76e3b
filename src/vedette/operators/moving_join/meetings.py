"""Meetings: which objects of two sets intersect, from when until when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vedette.native.buffers import empty_int32, empty_int64

MEETING_BYTES = 24


@dataclass(frozen=True)
class Meetings:
    """Pairs as columns: the slots of both objects, and the first and the last moment, which both belong to it."""

    a: NDArray[np.int32]
    b: NDArray[np.int32]
    starts: NDArray[np.float64]
    ends: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.a)

    @property
    def nbytes(self) -> int:
        return MEETING_BYTES * len(self)

    @property
    def keys(self) -> NDArray[np.int64]:
        """One number for each pair of objects."""
        return (self.a.astype(np.int64) << 32) | self.b

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


def differ(gone: Meetings, come: Meetings) -> tuple[Meetings, Meetings]:
    """Both, less the pairs that go and come at the same moments. Each has a pair once at most."""
    if not len(gone) or not len(come):
        return gone, come
    order = np.argsort(come.keys)
    keys, places = come.keys[order], np.searchsorted(come.keys[order], gone.keys)
    twins = order[np.minimum(places, len(keys) - 1)]
    is_same = (come.keys[twins] == gone.keys) & (come.starts[twins] == gone.starts) & (come.ends[twins] == gone.ends)
    is_new = np.ones(len(come), np.bool_)
    is_new[twins[is_same]] = False
    return gone.take(~is_same), come.take(is_new)


def net(changes: Sequence[tuple[int, Meetings]]) -> list[tuple[int, Meetings]]:
    """What changes with signs come to, all in all: what is told and taken back is left out. First what goes."""
    every = Meetings.concat([each for _, each in changes if len(each)])
    if not len(every):
        return []
    signs = np.concatenate([np.full(len(each), sign) for sign, each in changes])
    places = find_net(signs, every)
    return [(sign, every.take(places[signs[places] == sign])) for sign in (-1, 1)]


def find_net(signs: NDArray[Any], every: Meetings) -> NDArray[np.int64]:
    """The places of what changes come to, by objects and moments. A meeting is told and taken back in turn."""
    order = np.lexsort((every.ends, every.starts, every.keys))
    every, signs = every.take(order), signs[order]
    is_first = np.ones(len(every), np.bool_)
    for column in (every.keys, every.starts, every.ends):
        is_first[1:] &= column[1:] == column[:-1]
    is_first[1:] = ~is_first[1:]
    firsts = np.flatnonzero(is_first)
    left: NDArray[np.int64] = order[firsts[np.add.reduceat(signs, firsts) != 0]]
    return left
