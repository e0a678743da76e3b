"""The buckets in which the calendar keeps pairs, as kernels.

A bucket is a chain of chunks of 32 places, filled in order. The chunks of a bucket are anywhere in memory, so the next
but one is prefetched while a chunk is read.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vedette.native.kernels import kernel
from vedette.native.prefetch import prefetch

CHUNK = 32
RING = 64  # buckets for slices ahead
BEGUN = RING  # the bucket of pairs that have begun
BUCKETS = RING + 1
FIRST, LAST, PAIRS, CHUNKS = 0, 1, 2, 3  # columns of a bucket: its first and last chunk, how many pairs and chunks
FREE, MADE, SLICE = 0, 1, 2  # counts: the first free chunk, chunks used or chained up as free, the slice of now
INTS, DOUBLES = 16, 8  # numbers in a cache line

Int32s = NDArray[np.int32]
Int64s = NDArray[np.int64]
Doubles = NDArray[np.float64]


class Places(NamedTuple):
    """Where pairs are stored: 32 places in each chunk, and the chunks of each bucket as a chain."""

    marks: Int32s  # (places, 3): the slots of a and b, and the stamp
    spans: Doubles  # (places, 2): the first and the last moment
    chain: Int32s  # by chunk: the next chunk of the same bucket
    buckets: Int64s  # (buckets, 4)
    counts: Int64s


class Stamps(NamedTuple):
    """By object: the stamp of its last update. Older pairs of the object are removed."""

    a: Int32s
    b: Int32s


# Pairs, as columns of `Meetings`: a, b, starts and ends.
Pairs = tuple[Int32s, Int32s, Doubles, Doubles]
# The time, and how time is cut into slices: now, origin and width.
Slices = tuple[float, float, float]


def empty_places() -> Places:
    buckets = np.zeros((BUCKETS, 4), np.int64)
    buckets[:, FIRST] = buckets[:, LAST] = -1
    none = np.empty(0, np.int32)
    return Places(np.empty((0, 3), np.int32), np.empty((0, 2)), none, buckets, np.array([-1, 0, 0], np.int64))


@kernel
def slice_of(time: float, origin: float, width: float) -> int:
    return int(min(max((time - origin) / width, -1e18), 1e18))


@kernel
def add(pairs: Pairs, at: int, stamp: int, slices: Slices, places: Places) -> int:
    """Store the pairs from `at` on that have not ended; returns where room ran out, or the number of pairs."""
    a, b, starts, ends = pairs
    now, origin, width = slices
    marks, spans, chain, buckets, counts = places
    for i in range(at, len(a)):
        if ends[i] < now:
            continue
        bucket = BEGUN
        if starts[i] > now:
            ahead = min(slice_of(starts[i], origin, width) - counts[SLICE], RING - 1)
            bucket = (counts[SLICE] + ahead) % RING
        place = _append(bucket, chain, buckets, counts)
        if place < 0:
            return i
        marks[place, 0], marks[place, 1], marks[place, 2] = a[i], b[i], stamp
        spans[place, 0], spans[place, 1] = starts[i], ends[i]
    return len(a)


@kernel
def advance(slices: Slices, stamps: Stamps, places: Places) -> None:
    """Go to the slice of `now`, and move pairs that begin in earlier slices into the bucket of begun pairs."""
    now, origin, width = slices
    marks, spans, chain, buckets, counts = places
    reached = slice_of(now, origin, width)
    _tidy_bucket(BEGUN, now, stamps, places)
    for k in range(counts[SLICE], min(reached, counts[SLICE] + RING)):
        bucket = k % RING
        chunk, left = buckets[bucket, FIRST], buckets[bucket, PAIRS]
        while chunk >= 0:
            _prefetch_next(chunk, marks, spans, chain)
            for place in range(chunk * CHUNK, chunk * CHUNK + min(left, CHUNK)):
                if _is_valid(place, now, stamps, marks, spans):
                    _copy(place, _append(BEGUN, chain, buckets, counts), marks, spans)
            left -= CHUNK
            after = chain[chunk]
            _free(chunk, chain, counts)
            chunk = after
        buckets[bucket, FIRST] = buckets[bucket, LAST] = -1
        buckets[bucket, PAIRS] = buckets[bucket, CHUNKS] = 0
    counts[SLICE] = reached


@kernel
def tidy(now: float, stamps: Stamps, places: Places) -> None:
    """Drop ended and removed pairs from all buckets."""
    for bucket in range(BUCKETS):
        _tidy_bucket(bucket, now, stamps, places)


@kernel
def count(until: int, places: Places) -> int:
    """How many pairs are in the buckets that a snapshot in the slice `until` reads."""
    _, _, _, buckets, counts = places
    n = buckets[BEGUN, PAIRS]
    for k in range(counts[SLICE], min(until + 1, counts[SLICE] + RING)):
        n += buckets[k % RING, PAIRS]
    return n  # type: ignore[no-any-return]


@kernel
def snapshot(time: float, until: int, a: Int32s, b: Int32s, stamps: Stamps, places: Places) -> int:
    """Write the pairs that intersect at a time, which is in the slice `until`; how many."""
    a_stamps, b_stamps = stamps
    marks, spans, chain, buckets, counts = places
    n = 0
    for k in range(counts[SLICE] - 1, min(until + 1, counts[SLICE] + RING)):
        bucket = BEGUN if k < counts[SLICE] else k % RING
        chunk, left = buckets[bucket, FIRST], buckets[bucket, PAIRS]
        while chunk >= 0:
            _prefetch_next(chunk, marks, spans, chain)
            for place in range(chunk * CHUNK, chunk * CHUNK + min(left, CHUNK)):
                own, other, stamp = marks[place, 0], marks[place, 1], marks[place, 2]
                a[n], b[n] = own, other
                n += (
                    (spans[place, 0] <= time)
                    & (time <= spans[place, 1])
                    & (a_stamps[own] <= stamp)
                    & (b_stamps[other] <= stamp)
                )
            left -= CHUNK
            chunk = chain[chunk]
    return n


@kernel
def list_all(now: float, pairs: Pairs, stamps: Stamps, places: Places) -> int:
    """Write all pairs that are neither ended nor removed; how many."""
    a, b, starts, ends = pairs
    marks, spans, chain, buckets, _ = places
    n = 0
    for bucket in range(BUCKETS):
        chunk, left = buckets[bucket, FIRST], buckets[bucket, PAIRS]
        while chunk >= 0:
            _prefetch_next(chunk, marks, spans, chain)
            for place in range(chunk * CHUNK, chunk * CHUNK + min(left, CHUNK)):
                if _is_valid(place, now, stamps, marks, spans):
                    a[n], b[n] = marks[place, 0], marks[place, 1]
                    starts[n], ends[n] = spans[place, 0], spans[place, 1]
                    n += 1
            left -= CHUNK
            chunk = chain[chunk]
    return n


@kernel
def rename(a_moved: Int32s, b_moved: Int32s, places: Places) -> None:
    """Follow objects to their new slots."""
    marks, _, chain, buckets, _ = places
    for bucket in range(BUCKETS):
        chunk, left = buckets[bucket, FIRST], buckets[bucket, PAIRS]
        while chunk >= 0:
            for place in range(chunk * CHUNK, chunk * CHUNK + min(left, CHUNK)):
                marks[place, 0], marks[place, 1] = a_moved[marks[place, 0]], b_moved[marks[place, 1]]
            left -= CHUNK
            chunk = chain[chunk]


@kernel
def compact(n_used: int, places: Places) -> None:
    """Move the chunks of all buckets, `n_used` in all, to the front."""
    marks, spans, chain, buckets, counts = places
    is_free = np.ones(n_used, np.bool_)
    for bucket in range(BUCKETS):
        chunk = buckets[bucket, FIRST]
        while chunk >= 0:
            if chunk < n_used:
                is_free[chunk] = False
            chunk = chain[chunk]
    hole = 0
    for bucket in range(BUCKETS):
        before, chunk = np.int64(-1), buckets[bucket, FIRST]
        while chunk >= 0:
            if chunk >= n_used:
                while not is_free[hole]:
                    hole += 1
                is_free[hole] = False
                for k in range(CHUNK):
                    _copy(chunk * CHUNK + k, hole * CHUNK + k, marks, spans)
                chain[hole] = chain[chunk]
                chunk = np.int64(hole)
                if before >= 0:
                    chain[before] = chunk
                else:
                    buckets[bucket, FIRST] = chunk
            before = chunk
            chunk = np.int64(chain[chunk])
        buckets[bucket, LAST] = before
    counts[FREE], counts[MADE] = -1, n_used


@kernel
def _tidy_bucket(bucket: int, now: float, stamps: Stamps, places: Places) -> None:
    """Move valid pairs to the front, and free the chunks after them."""
    marks, spans, chain, buckets, counts = places
    chunk, left = buckets[bucket, FIRST], buckets[bucket, PAIRS]
    last, n, n_chunks = chunk, 0, 0
    while chunk >= 0:
        _prefetch_next(chunk, marks, spans, chain)
        for place in range(chunk * CHUNK, chunk * CHUNK + min(left, CHUNK)):
            if _is_valid(place, now, stamps, marks, spans):
                if n % CHUNK == 0:
                    last = buckets[bucket, FIRST] if n == 0 else chain[last]
                    n_chunks += 1
                _copy(place, last * CHUNK + n % CHUNK, marks, spans)
                n += 1
        left -= CHUNK
        chunk = chain[chunk]
    chunk = buckets[bucket, FIRST]
    if n > 0:
        chunk = chain[last]
        chain[last] = -1
    else:
        buckets[bucket, FIRST] = last = -1
    while chunk >= 0:
        after = chain[chunk]
        _free(chunk, chain, counts)
        chunk = after
    buckets[bucket, LAST], buckets[bucket, PAIRS], buckets[bucket, CHUNKS] = last, n, n_chunks


@kernel
def _prefetch_next(chunk: int, marks: Int32s, spans: Doubles, chain: Int32s) -> None:
    """Prefetch the next chunk but one."""
    soon = chain[chunk]
    if soon >= 0:
        soon = chain[soon]
    if soon >= 0:
        for k in range(0, 3 * CHUNK, INTS):
            prefetch(marks, soon * 3 * CHUNK + k)
        for k in range(0, 2 * CHUNK, DOUBLES):
            prefetch(spans, soon * 2 * CHUNK + k)


@kernel
def _is_valid(place: int, now: float, stamps: Stamps, marks: Int32s, spans: Doubles) -> bool:
    stamp = marks[place, 2]
    is_valid = (spans[place, 1] >= now) & (stamps[0][marks[place, 0]] <= stamp) & (stamps[1][marks[place, 1]] <= stamp)
    return is_valid  # type: ignore[no-any-return]


@kernel
def _copy(place: int, to: int, marks: Int32s, spans: Doubles) -> None:
    marks[to, 0], marks[to, 1], marks[to, 2] = marks[place, 0], marks[place, 1], marks[place, 2]
    spans[to, 0], spans[to, 1] = spans[place, 0], spans[place, 1]


@kernel
def _append(bucket: int, chain: Int32s, buckets: Int64s, counts: Int64s) -> int:
    """The next place of a bucket; -1 if no chunk is left."""
    n = buckets[bucket, PAIRS]
    if n % CHUNK == 0:
        chunk = counts[FREE]
        if chunk >= 0:
            counts[FREE] = chain[chunk]
        elif counts[MADE] < len(chain):
            chunk = counts[MADE]
            counts[MADE] += 1
        else:
            return -1
        chain[chunk] = -1
        if n == 0:
            buckets[bucket, FIRST] = chunk
        else:
            chain[buckets[bucket, LAST]] = chunk
        buckets[bucket, LAST] = chunk
        buckets[bucket, CHUNKS] += 1
    buckets[bucket, PAIRS] += 1
    return buckets[bucket, LAST] * CHUNK + n % CHUNK  # type: ignore[no-any-return]


@kernel
def _free(chunk: int, chain: Int32s, counts: Int64s) -> None:
    chain[chunk] = counts[FREE]
    counts[FREE] = chunk
