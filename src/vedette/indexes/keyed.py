"""Boxes of one cell on axis 0 and a range on axis 1: `symbol = 'IBM' AND price < 40`.

Best if queries name a key: a row meets only the boxes of its own key, for the cost of one lookup. The ends of each key
are ranked by themselves and placed one key after another on a single axis, on which `Lists` or `Buckets` answers; about
70 bytes per box.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from vedette.data.matches import Matches
from vedette.indexes import lists
from vedette.indexes.buckets import Buckets
from vedette.indexes.counted import Counted
from vedette.indexes.estimates import BoxFacts, Estimate, miss_cost
from vedette.indexes.index import TWO_FIELDS, as_boxes, as_cells, count_bytes
from vedette.indexes.lists import Lists
from vedette.native.buffers import empty_int32
from vedette.native.damage import check, check_fields, check_shape, check_starts, check_within
from vedette.native.kernels import kernel
from vedette.native.prefetch import prefetch

FIRST, FAR, NEAR = 24, 16, 8  # rows ahead for which a key, a slot and its ends are prefetched


@dataclass(frozen=True)
class Keyed:
    """`keys` has four numbers for each cell of axis 0: its first end, its shift, its first slot, its number of slots.

    An end is the first cell of a segment of axis 1. Slots of `2 ** shift` cells, from the key's first end on, count the
    ends of this key and all lower keys below them.
    """

    n_fields: ClassVar[range] = TWO_FIELDS
    wins_for: ClassVar[str] = "a key and a range"
    needs: ClassVar[str] = "a selective field with one value in every box"
    needs_points: ClassVar[bool] = True

    keys: NDArray[np.int32]
    slot_ends: NDArray[np.int32]
    ends: NDArray[np.int32]
    inner: Buckets | Lists  # over the segments of all keys; segment 0 is for rows that match nothing

    @classmethod
    def build(
        cls, firsts: NDArray[np.int32], lasts: NDArray[np.int32], ids: NDArray[np.int32], n_cells: Sequence[int]
    ) -> Self:
        """Index boxes on two axes that have one cell each on axis 0."""
        firsts, lasts, ids = as_boxes(firsts, lasts, ids, n_cells)
        if (firsts[0] != lasts[0]).any():
            raise ValueError("a keyed index needs boxes of one cell on axis 0; these have more")
        keyed_ends = np.concatenate([_join(firsts[0], firsts[1]), _join(firsts[0], lasts[1] + 1)])
        keyed_ends.sort()
        keys, slot_ends, ends = _rank(keyed_ends, n_cells[0])
        first_segments, last_segments = empty_int32(len(ids)), empty_int32(len(ids))
        _find_segments(firsts, keys, slot_ends, ends, first_segments)
        _find_segments(np.stack([lasts[0], lasts[1] + 1]), keys, slot_ends, ends, last_segments)
        last_segments -= 1
        n_segments = 1 + len(ends)
        inner_class = Lists if lists.fits(first_segments, last_segments, n_segments) else Buckets
        inner = inner_class.build(first_segments[None], last_segments[None], ids, [n_segments])
        return cls(keys, slot_ends, ends, inner)

    @classmethod
    def estimate(cls, facts: BoxFacts) -> list[Estimate]:
        (axes,) = facts.pairs()
        if not facts.is_point[axes[0]]:
            return []
        met = facts.matches
        cost = 26 + 0.65 * met + 2 * miss_cost(facts.n, 60)
        return [Estimate(axes, cost, f"a row meets about {met:,.1f} of {facts.n:,} boxes")]

    def match(self, cells: NDArray[np.int32]) -> Matches:
        return self.inner.match_axis(self._find_segments(cells))

    def count(self, cells: NDArray[np.int32]) -> Counted:
        return self.inner.count_axis(self._find_segments(cells))

    def _find_segments(self, cells: NDArray[np.int32]) -> NDArray[np.int32]:
        segments = empty_int32(cells.shape[1])
        _find_segments(as_cells(cells), self.keys, self.slot_ends, self.ends, segments)
        return segments

    def validate(self, n_cells: Sequence[int], ids: range) -> None:
        check_fields(self)
        check(len(n_cells) == 2, "a keyed index is on two axes")
        check_shape(self.keys, (n_cells[0], 4), "the keys")
        check(self.slot_ends.ndim == self.ends.ndim == 1, "the ends of keys have a wrong shape")
        lows, shifts, firsts, n_slots = self.keys.T
        used = np.flatnonzero(n_slots)
        check_within(shifts[used], 0, 31, "the shifts of keys")
        check_within(lows[used], 0, n_cells[1], "the first ends of keys")
        check_within(n_slots, 0, len(self.slot_ends), "the slots of keys")
        starts = np.append(firsts[used], len(self.slot_ends))
        check((np.diff(starts) == n_slots[used] + 1).all() and starts[0] == 0, "the slots of keys overlap")
        if len(used):
            check_starts(self.slot_ends, len(self.ends), "the ends of slots")
        check_within(self.ends, 0, n_cells[1], "the ends of keys")
        self.inner.validate([1 + len(self.ends)], ids)

    @property
    def nbytes(self) -> int:
        return count_bytes(self)


def _join(keys: NDArray[np.int32], cells: NDArray[np.int32]) -> NDArray[np.int64]:
    return keys.astype(np.int64) << 32 | cells


@kernel
def _rank(keyed_ends: NDArray[np.int64], n_keys: int) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    """The distinct ends of each key, with a table of about as many slots."""
    key_ends = np.zeros(n_keys + 1, np.int32)
    ends = np.empty(len(keyed_ends), np.int32)
    n_ends = 0
    for i in range(len(keyed_ends)):
        if i == 0 or keyed_ends[i] != keyed_ends[i - 1]:
            ends[n_ends] = keyed_ends[i] & 0xFFFFFFFF
            n_ends += 1
            key_ends[(keyed_ends[i] >> 32) + 1] += 1
    ends = ends[:n_ends].copy()

    keys = np.zeros((n_keys, 4), np.int32)
    n_slots = 0
    for key in range(n_keys):
        n_ends = key_ends[key + 1]
        key_ends[key + 1] += key_ends[key]
        keys[key, 2] = n_slots
        if n_ends > 0:
            keys[key, 0] = ends[key_ends[key]]
            spread = ends[key_ends[key + 1] - 1] - ends[key_ends[key]]
            while (spread >> keys[key, 1]) > n_ends:
                keys[key, 1] += 1
            keys[key, 3] = (spread >> keys[key, 1]) + 1
            n_slots += keys[key, 3] + 1  # the last one is where the ends stop

    slot_ends = np.empty(n_slots, np.int32)
    for key in range(n_keys):
        at = key_ends[key]
        if key_ends[key + 1] > at:
            for slot in range(keys[key, 3] + 1):
                low = keys[key, 0] + (np.int64(slot) << keys[key, 1])
                while at < key_ends[key + 1] and ends[at] < low:
                    at += 1
                slot_ends[keys[key, 2] + slot] = at
    return keys, slot_ends, ends


@kernel
def _find_segments(
    cells: NDArray[np.int32],
    keys: NDArray[np.int32],
    slot_ends: NDArray[np.int32],
    ends: NDArray[np.int32],
    segments: NDArray[np.int32],
) -> None:
    """Write the segment of each row: the number of ends of its key and lower keys up to it; 0 if no box matches."""
    n_rows = cells.shape[1]
    for row in range(n_rows):
        if row + FIRST < n_rows:
            prefetch(keys, 4 * cells[0, row + FIRST])
            slot = _find_slot(cells, row + FAR, keys)
            if slot >= 0:
                prefetch(slot_ends, slot)
            slot = _find_slot(cells, row + NEAR, keys)
            if slot >= 0:
                prefetch(ends, slot_ends[slot])
        slot = _find_slot(cells, row, keys)
        if slot < 0:
            segments[row] = 0
            continue
        cell = cells[1, row]
        low, high = slot_ends[slot], slot_ends[slot + 1]
        while high - low > 8:
            middle = (low + high) >> 1
            if ends[middle] <= cell:
                low = middle + 1
            else:
                high = middle
        segment = low
        for i in range(low, high):
            segment += ends[i] <= cell
        segments[row] = segment


@kernel
def _find_slot(cells: NDArray[np.int32], row: int, keys: NDArray[np.int32]) -> int:
    """The slot of a row's cell on axis 1 among those of its key; -1 if no box of the key can contain it."""
    key, cell = cells[0, row], cells[1, row]
    if cell < keys[key, 0] or keys[key, 3] == 0:
        return -1
    slot = (cell - keys[key, 0]) >> keys[key, 1]
    return int(keys[key, 2] + slot) if slot < keys[key, 3] else -1
