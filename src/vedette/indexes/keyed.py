"""Boxes of one cell on axis 0 and a range on axis 1: `symbol = 'IBM' AND price < 40`.

Wins wherever queries name a key: a row meets the boxes of its own key alone, at the price of a lookup. The ends of each key
are ranked by themselves and laid one key after another on a single axis, on which `Lists` or `Buckets` answers; about 70 bytes a
box.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from vedette.indexes import lists
from vedette.indexes.buckets import Buckets
from vedette.indexes.index import as_boxes, as_cells, count_bytes
from vedette.indexes.lists import Lists
from vedette.kernels import kernel
from vedette.matches import Matches


@dataclass(frozen=True)
class Keyed:
    """The ends of key `k` are `ends[key_ends[k]:key_ends[k + 1]]`, each the first cell of a segment of axis 1.

    Slots of `2 ** key_shifts[k]` cells from the key's first end on tell how many of all `ends` lie below them.
    """

    key_ends: NDArray[np.int32]
    key_slots: NDArray[np.int32]  # the first of the key's slots, which are one more than it needs
    key_shifts: NDArray[np.int32]
    slot_ends: NDArray[np.int32]
    ends: NDArray[np.int32]
    inner: Buckets | Lists  # over the segments of all keys; segment 0 is for rows that match nothing

    @classmethod
    def build(
        cls, firsts: NDArray[np.int32], lasts: NDArray[np.int32], ids: NDArray[np.int32], n_cells: Sequence[int]
    ) -> Self:
        """Index boxes on two axes that have one cell each on axis 0."""
        firsts, lasts, ids = as_boxes(firsts, lasts, ids)
        if (firsts[0] != lasts[0]).any():
            raise ValueError("a keyed index takes boxes of one cell on axis 0; these have more")
        keyed_ends = np.concatenate([_join(firsts[0], firsts[1]), _join(firsts[0], lasts[1] + 1)])
        keyed_ends.sort()
        table = _rank(keyed_ends, n_cells[0])
        first_segments = _find_segments(firsts, *table)
        last_segments = _find_segments(np.stack([lasts[0], lasts[1] + 1]), *table) - 1
        n_segments = 1 + len(table[-1])
        inner_class = Lists if lists.fits(first_segments, last_segments, n_segments) else Buckets
        inner = inner_class.build(first_segments[None], last_segments[None], ids, [n_segments])
        return cls(*table, inner)

    def match(self, cells: NDArray[np.int32]) -> Matches:
        segments = _find_segments(
            as_cells(cells), self.key_ends, self.key_slots, self.key_shifts, self.slot_ends, self.ends
        )
        return self.inner.match_axis(segments)

    @property
    def nbytes(self) -> int:
        return count_bytes(self)


def _join(keys: NDArray[np.int32], cells: NDArray[np.int32]) -> NDArray[np.int64]:
    return keys.astype(np.int64) << 32 | cells


@kernel
def _rank(
    keyed_ends: NDArray[np.int64], n_keys: int
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    """Lay out the distinct ends of each key with a table of about as many slots."""
    key_ends = np.zeros(n_keys + 1, np.int32)
    ends = np.empty(len(keyed_ends), np.int32)
    n_ends = 0
    for i in range(len(keyed_ends)):
        if i == 0 or keyed_ends[i] != keyed_ends[i - 1]:
            ends[n_ends] = keyed_ends[i] & 0xFFFFFFFF
            n_ends += 1
            key_ends[(keyed_ends[i] >> 32) + 1] += 1
    ends = ends[:n_ends].copy()

    key_slots = np.zeros(n_keys + 1, np.int32)
    key_shifts = np.zeros(n_keys, np.int32)
    for key in range(n_keys):
        n_ends = key_ends[key + 1]
        key_ends[key + 1] += key_ends[key]
        key_slots[key + 1] = key_slots[key]
        if n_ends > 0:
            spread = ends[key_ends[key + 1] - 1] - ends[key_ends[key]]
            while (spread >> key_shifts[key]) > n_ends:
                key_shifts[key] += 1
            key_slots[key + 1] += (spread >> key_shifts[key]) + 2

    slot_ends = np.empty(key_slots[n_keys], np.int32)
    for key in range(n_keys):
        at = key_ends[key]
        for slot in range(key_slots[key], key_slots[key + 1]):
            low = np.int64(slot - key_slots[key]) << key_shifts[key]
            while at < key_ends[key + 1] and ends[at] - ends[key_ends[key]] < low:
                at += 1
            slot_ends[slot] = at
    return key_ends, key_slots, key_shifts, slot_ends, ends


@kernel
def _find_segments(
    cells: NDArray[np.int32],
    key_ends: NDArray[np.int32],
    key_slots: NDArray[np.int32],
    key_shifts: NDArray[np.int32],
    slot_ends: NDArray[np.int32],
    ends: NDArray[np.int32],
) -> NDArray[np.int32]:
    """The segment of each row: how many ends lie at or below it, counting all those of lesser keys; 0 for no boxes."""
    segments = np.empty(cells.shape[1], np.int32)
    for row in range(cells.shape[1]):
        key, cell = cells[0, row], cells[1, row]
        segments[row] = 0
        low, high = key_ends[key], key_ends[key + 1]
        if low == high or cell < ends[low]:
            continue
        slot = key_slots[key] + ((cell - ends[low]) >> key_shifts[key])
        if slot + 1 < key_slots[key + 1]:
            low, high = slot_ends[slot], slot_ends[slot + 1]
            while low < high:
                middle = (low + high) >> 1
                if ends[middle] <= cell:
                    low = middle + 1
                else:
                    high = middle
        segments[row] = high
    return segments
