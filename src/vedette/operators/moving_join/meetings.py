"""Meetings: which objects of two sets intersect, from when until when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vedette.native.buffers import empty_int32, empty_int64
from vedette.native.concatenation import concat_columns
from vedette.native.hashing import empty_slots, find_numbers, insert_numbers

MEETING_BYTES = 24
FEW = 4096  # up to this many moments are compared with each other first: mostly none are equal
MANY = 4096  # with more pairs, moments are compared first
CODE_BITS = 20


@dataclass(frozen=True)
class Meetings:
    """Pairs as columns: the slots of both objects, and the first and the last moment, both inclusive."""

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
        if n == 0:
            return _NO_MEETINGS
        return cls(empty_int32(n), empty_int32(n), empty_int64(n).view(np.float64), empty_int64(n).view(np.float64))

    @classmethod
    def concat(cls, many: Sequence[Meetings]) -> Meetings:
        if len(many) == 1:
            return many[0]
        if not many:
            return cls.empty()
        return cls(*concat_columns([(each.a, each.b, each.starts, each.ends) for each in many]))

    def take(self, places: NDArray[Any] | slice) -> Meetings:
        """Some meetings: by places, by a mask, or a slice."""
        return Meetings(self.a[places], self.b[places], self.starts[places], self.ends[places])

    def swapped(self) -> Meetings:
        """The same, seen from the other set."""
        return Meetings(self.b, self.a, self.starts, self.ends)


_NO_MEETINGS = Meetings(np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0), np.empty(0))


def differ(old: Meetings, new: Meetings, since: float = -np.inf) -> tuple[Meetings, Meetings]:
    """Both, without the pairs that are the same in both. Each has a pair at most once.

    No pair of `new` starts before `since`.
    """
    if not len(old) or not len(new):
        return old, new
    if len(old) * len(new) <= FEW:
        is_alike = (old.starts[:, None] == new.starts) & (old.ends[:, None] == new.ends)
        if not is_alike.any():
            return old, new
    old_places, new_places = np.flatnonzero(old.starts >= since), np.arange(len(new))
    if not len(old_places):
        return old, new
    if len(new) > MANY:  # few have moments that also occur in the other set of pairs
        old_codes, new_codes = _codes(old), _codes(new)
        old_places = old_places[_occurs(old_codes[old_places], new_codes)]
        new_places = np.flatnonzero(_occurs(new_codes, old_codes[old_places]))
    keys = old.keys[old_places]
    slots = empty_slots(len(keys))
    insert_numbers(keys, 0, len(keys), slots)
    twins = find_numbers(new.keys[new_places], keys, slots)
    found = new_places[twins >= 0]
    places = old_places[twins[twins >= 0]]
    is_same = (new.starts[found] == old.starts[places]) & (new.ends[found] == old.ends[places])
    if not is_same.any():
        return old, new
    is_old, is_new = np.ones(len(old), np.bool_), np.ones(len(new), np.bool_)
    is_old[places[is_same]] = is_new[found[is_same]] = False
    return old.take(is_old), new.take(is_new)


def _codes(pairs: Meetings) -> NDArray[np.int64]:
    """A number of CODE_BITS bits for each pair, equal for equal moments."""
    starts, ends = ((moments + 0.0).view(np.uint64) for moments in (pairs.starts, pairs.ends))  # -0.0 equals 0.0
    mixed = starts * np.uint64(0x9E3779B97F4A7C15) ^ ends * np.uint64(0xC2B2AE3D27D4EB4F)
    return (mixed >> np.uint64(64 - CODE_BITS)).astype(np.int64)


def _occurs(codes: NDArray[np.int64], others: NDArray[np.int64]) -> NDArray[np.bool_]:
    occurs = np.zeros(1 << CODE_BITS, np.bool_)
    occurs[others] = True
    return occurs[codes]


def net(changes: Sequence[tuple[int, Meetings]]) -> list[tuple[int, Meetings]]:
    """The sum of changes with signs: a pair that is emitted and retracted is left out. Retractions come first."""
    every = Meetings.concat([each for _, each in changes if len(each)])
    if not len(every):
        return []
    signs = np.concatenate([np.full(len(each), sign) for sign, each in changes])
    order = np.lexsort((every.ends, every.starts, every.keys))
    every, signs = every.take(order), signs[order]
    is_first = np.ones(len(every), np.bool_)
    for column in (every.keys, every.starts, every.ends):
        is_first[1:] &= column[1:] == column[:-1]
    is_first[1:] = ~is_first[1:]
    firsts = np.flatnonzero(is_first)
    sums = np.add.reduceat(signs, firsts)
    return [(sign, every.take(firsts[sums == sign])) for sign in (-1, 1)]
