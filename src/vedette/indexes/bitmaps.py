"""Boxes as bits, on any number of axes: per axis and bucket of cells a bitmap of the boxes that may hold a row there.

Wins where a row matches a percent of all boxes or more, and on many axes. A row ANDs one bitmap per axis, clears the boxes
that end inside its buckets on the wrong side of it, and reads out the bits. Costs a bit per box, axis and bucket: about
130 bytes a box and axis at 1,024 buckets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from vedette.buffers import empty_int32
from vedette.indexes.bits import lowest_one, without_lowest
from vedette.indexes.index import as_boxes, as_cells, count_bytes
from vedette.kernels import kernel
from vedette.matches import Matches

MAX_BUCKETS = 1024
MIN_BUCKETS = 256
PROBED_ROWS = 64  # the first rows tell how much room the answer needs


@dataclass(frozen=True)
class Bitmaps:
    """Axis `a` has the buckets from `axis_buckets[a]` on, each of `2 ** shifts[a]` cells."""

    ids: NDArray[np.int32]
    shifts: NDArray[np.int64]
    axis_buckets: NDArray[np.int64]
    bitmaps: NDArray[np.int64]  # (buckets, words): bit b of word w stands for box 64 w + b
    touch_starts: NDArray[np.int32]  # per bucket, the boxes that end inside it
    touch_boxes: NDArray[np.int32]
    touch_ends: NDArray[np.int32]  # two each: first and last cell

    @classmethod
    def build(
        cls, firsts: NDArray[np.int32], lasts: NDArray[np.int32], ids: NDArray[np.int32], n_cells: Sequence[int]
    ) -> Self:
        """Index boxes on any number of axes."""
        firsts, lasts, ids = as_boxes(firsts, lasts, ids)
        most = max(MIN_BUCKETS, min(MAX_BUCKETS, len(ids) // 32))
        shifts = np.array([max(0, (n - 1).bit_length() - most.bit_length() + 1) for n in n_cells], np.int64)
        n_buckets = [((n - 1) >> int(shift)) + 1 for n, shift in zip(n_cells, shifts, strict=True)]
        axis_buckets = np.cumsum([0, *n_buckets], dtype=np.int64)
        bitmaps = np.zeros((int(axis_buckets[-1]), (len(ids) + 63) // 64), np.int64)
        touching = _build(firsts, lasts, shifts, axis_buckets, bitmaps)
        return cls(ids, shifts, axis_buckets, bitmaps, *touching)

    def match(self, cells: NDArray[np.int32]) -> Matches:
        cells = as_cells(cells)
        n_rows = cells.shape[1]
        starts = np.empty(n_rows + 1, np.int64)
        starts[0] = 0
        positions = empty_int32(min(len(self.ids), 1 << 14) * min(n_rows, PROBED_ROWS) + len(self.ids))
        done = 0
        while True:
            done = _fill(
                cells, done, starts, positions, self.ids, self.shifts, self.axis_buckets, self.bitmaps,
                self.touch_starts, self.touch_boxes, self.touch_ends,
            )  # fmt: skip
            if done == n_rows:
                return Matches(starts, positions[: int(starts[-1])])
            found = int(starts[done])
            larger = empty_int32(int(found / done * n_rows * 1.1) + 2 * len(self.ids))
            larger[:found] = positions[:found]
            positions = larger

    @property
    def nbytes(self) -> int:
        return count_bytes(self)


@kernel
def _fill(
    cells: NDArray[np.int32],
    done: int,
    starts: NDArray[np.int64],
    positions: NDArray[np.int32],
    ids: NDArray[np.int32],
    shifts: NDArray[np.int64],
    axis_buckets: NDArray[np.int64],
    bitmaps: NDArray[np.int64],
    touch_starts: NDArray[np.int32],
    touch_boxes: NDArray[np.int32],
    touch_ends: NDArray[np.int32],
) -> int:
    """Write the matches of rows from `done` on while there is room; how many rows are done then."""
    n_words = bitmaps.shape[1]
    words = np.empty(n_words, np.int64)
    out = starts[done]
    for row in range(done, cells.shape[1]):
        if len(positions) - out < len(ids):
            return row
        bucket = axis_buckets[0] + (cells[0, row] >> shifts[0])
        for w in range(n_words):
            words[w] = bitmaps[bucket, w]
        for axis in range(1, len(shifts)):
            bucket = axis_buckets[axis] + (cells[axis, row] >> shifts[axis])
            for w in range(n_words):
                words[w] &= bitmaps[bucket, w]
        for axis in range(len(shifts)):
            cell = cells[axis, row]
            bucket = axis_buckets[axis] + (cell >> shifts[axis])
            for j in range(touch_starts[bucket], touch_starts[bucket + 1]):
                box = touch_boxes[j]
                fails = np.int64((cell < touch_ends[2 * j]) | (cell > touch_ends[2 * j + 1]))
                words[box >> 6] &= ~(fails << (box & 63))
        for w in range(n_words):
            word = words[w]
            base = w << 6
            while word != 0:
                positions[out] = ids[base + lowest_one(word)]
                word = without_lowest(word)
                out += 1
        starts[row + 1] = out
    return cells.shape[1]


@kernel
def _build(
    firsts: NDArray[np.int32],
    lasts: NDArray[np.int32],
    shifts: NDArray[np.int64],
    axis_buckets: NDArray[np.int64],
    bitmaps: NDArray[np.int64],
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    """Set the bits and list the boxes that end inside each bucket."""
    touch_starts = np.zeros(len(bitmaps) + 1, np.int32)
    for filling in (False, True):
        if filling:
            for bucket in range(len(bitmaps)):
                touch_starts[bucket + 1] += touch_starts[bucket]
            touch_boxes = np.empty(touch_starts[-1], np.int32)
            touch_ends = np.empty(2 * touch_starts[-1], np.int32)
            ends = touch_starts.copy()
        for axis in range(len(shifts)):
            inside = (1 << shifts[axis]) - 1
            for box in range(firsts.shape[1]):
                first, last = firsts[axis, box], lasts[axis, box]
                low, high = axis_buckets[axis] + (first >> shifts[axis]), axis_buckets[axis] + (last >> shifts[axis])
                touches_low = (first & inside) != 0
                touches_high = (last & inside) != inside and not (low == high and touches_low)
                if not filling:
                    touch_starts[low + 1] += touches_low
                    touch_starts[high + 1] += touches_high
                    bit = np.int64(1) << (box & 63)
                    for bucket in range(low, high + 1):
                        bitmaps[bucket, box >> 6] |= bit
                    continue
                for bucket, touches in ((low, touches_low), (high, touches_high)):
                    if touches:
                        touch_boxes[ends[bucket]] = box
                        touch_ends[2 * ends[bucket]] = first
                        touch_ends[2 * ends[bucket] + 1] = last
                        ends[bucket] += 1
    return touch_starts, touch_boxes, touch_ends
