"""The result calendar of Zhang et al. (VLDB Journal 2012), section 3.1: pairs by start time and by object.

By start time: pairs are in buckets, one for pairs that have begun and one for each future slice of time. A snapshot
reads the pairs that it reports, those that ended or were removed since the last slice, and those that begin in its own
slice. By object: an object has the stamp of its last update, and a pair the stamp of the step that found it. A pair is
valid while neither of its objects has a later stamp. So an update removes all its pairs at once; their memory is freed
when they are a large enough part. A pair takes 28 bytes, and less than 48 with removed and free places.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vedette.native.buffers import empty_int32
from vedette.native.kernels import plain_tuple
from vedette.operators.moving_join import calendar_buckets as kernels
from vedette.operators.moving_join.meetings import Meetings

SLICES = 32  # of the horizon
SPARSE = 4  # removed pairs are dropped once one in this many pairs was added or removed
ROOM = 16  # room grows by one part in this many, and shrinks if twice that is free
FEW = 8  # chunks
LAST_STAMP = 2**31 - 1


class PairCalendar:
    """Pairs that are neither ended nor removed. Time never goes back."""

    def __init__(self, now: float, horizon: float) -> None:
        """Pairs begin no later than `horizon` after the moment at which they are added."""
        self.now = now
        self.n_added = 0  # pairs in total
        self._origin, self._width = now, horizon / SLICES
        self._stamp = 0
        self._stamps = kernels.Stamps(np.zeros(0, np.int32), np.zeros(0, np.int32))
        self._places = kernels.empty_places()
        self._n_settled = 0  # pairs after the last cleanup
        self._n_changes = 0  # pairs added or removed since then

    def __len__(self) -> int:
        """The number of pairs."""
        return len(self.all())

    @property
    def n_kept(self) -> int:
        """The number of pairs, and of removed ones that still take room."""
        return int(self._places.buckets[:, kernels.PAIRS].sum())

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in (*self._stamps, *self._places))

    def advance(self, now: float) -> None:
        """Advance time: move pairs that begin, and drop those that have ended."""
        self.now = now
        if kernels.slice_of(now, self._origin, self._width) > self._places.counts[kernels.SLICE]:
            self._reserve(FEW)
            kernels.advance(self._slices, plain_tuple(self._stamps), plain_tuple(self._places))

    def begin_step(self, n_a: int, n_b: int) -> None:
        """Start a step with a new stamp. Slots of objects are below `n_a` and `n_b`."""
        if n_a > len(self._stamps.a) or n_b > len(self._stamps.b):
            self._stamps = kernels.Stamps(_grown(self._stamps.a, n_a), _grown(self._stamps.b, n_b))
        if self._stamp == LAST_STAMP:
            self._tidy()
            for stamps in self._stamps:
                stamps[:] = 0
            self._places.marks[:, 2] = self._stamp = 0
        self._stamp += 1

    def remove(self, slots: tuple[NDArray[np.int32], NDArray[np.int32]], n_pairs: int) -> None:
        """Remove the pairs of some objects of a and b: `n_pairs`, without ended ones."""
        for side in range(2):
            self._stamps[side][slots[side]] = self._stamp
        self._n_changes += n_pairs

    def add(self, pairs: Meetings) -> None:
        """Add pairs, except ended ones."""
        at, columns = 0, (pairs.a, pairs.b, pairs.starts, pairs.ends)
        while True:
            at = kernels.add(columns, at, self._stamp, self._slices, plain_tuple(self._places))
            if at == len(pairs):
                break
            self._reserve((len(pairs) - at) // kernels.CHUNK + FEW)
        self.n_added += len(pairs)
        self._n_changes += len(pairs)

    def end_step(self) -> None:
        """Drop removed pairs if there are many."""
        if self._n_changes * SPARSE > self._n_settled + kernels.BUCKETS * kernels.CHUNK:
            self._tidy()

    def at(self, time: float) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The slots of all pairs that intersect at one time, not before now."""
        until = kernels.slice_of(time, self._origin, self._width)
        n = kernels.count(until, plain_tuple(self._places))
        a, b = empty_int32(n + 1), empty_int32(n + 1)
        n = kernels.snapshot(time, until, a, b, plain_tuple(self._stamps), plain_tuple(self._places))
        return a[:n], b[:n]

    def all(self) -> Meetings:
        """All pairs, in no order."""
        pairs = Meetings.empty(self.n_kept + 1)
        columns = pairs.a, pairs.b, pairs.starts, pairs.ends
        n = kernels.list_all(self.now, columns, plain_tuple(self._stamps), plain_tuple(self._places))
        return pairs.take(slice(n))

    def rename(self, moved: list[NDArray[np.int32]]) -> None:
        """Follow objects to their new slots, `moved[side][old]`; slots of removed objects are dropped."""
        self._tidy()
        renamed = []
        for stamps, new_slots in zip(self._stamps, moved, strict=True):
            living = np.flatnonzero(new_slots >= 0)
            renamed.append(np.zeros(len(living), np.int32))
            renamed[-1][new_slots[living]] = stamps[living]
        self._stamps = kernels.Stamps(*renamed)
        kernels.rename(moved[0], moved[1], plain_tuple(self._places))

    @property
    def _slices(self) -> kernels.Slices:
        return self.now, self._origin, self._width

    def _tidy(self) -> None:
        kernels.tidy(self.now, plain_tuple(self._stamps), plain_tuple(self._places))
        n_chunks, n_used = len(self._places.chain), self._n_used
        if (n_chunks - n_used) * ROOM > 2 * n_used + ROOM * FEW:
            kernels.compact(n_used, plain_tuple(self._places))
            self._resize(n_used + n_used // ROOM)
        self._n_settled, self._n_changes = self.n_kept, 0

    @property
    def _n_used(self) -> int:
        """Chunks in use."""
        return int(self._places.buckets[:, kernels.CHUNKS].sum())

    def _reserve(self, n_more: int) -> None:
        """Make room for more chunks."""
        n_chunks = len(self._places.chain)
        n_free = n_chunks - self._n_used
        if n_free < n_more:
            self._resize(n_chunks + max(n_more - n_free, n_chunks // ROOM))

    def _resize(self, n_chunks: int) -> None:
        marks, spans, chain, buckets, counts = self._places
        n = n_chunks * kernels.CHUNK
        self._places = kernels.Places(
            _resized(marks, n), _resized(spans, n), _resized(chain, n_chunks), buckets, counts
        )


def _grown(stamps: NDArray[np.int32], n: int) -> NDArray[np.int32]:
    """Stamps of at least `n` objects; those of new ones are 0."""
    if n <= len(stamps):
        return stamps
    grown = np.zeros(n + n // ROOM, np.int32)
    grown[: len(stamps)] = stamps
    return grown


def _resized(array: NDArray[Any], n: int) -> NDArray[Any]:
    """The array with `n` entries, resized in place if possible, because a large array is not copied then."""
    if not array.flags.owndata:  # after unpickling
        array = array.copy()
    array.resize((n, *array.shape[1:]), refcheck=False)
    return array
