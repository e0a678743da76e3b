"""Boxes as bits, on any number of axes: per axis and bucket of cells, a bitmap of the boxes that overlap it.

Best if a row matches one percent of all boxes or more, on many axes, and for a few hundred boxes. A row ANDs one bitmap
per axis, clears the boxes that begin above it or end below it inside its buckets, and reads the bits. Costs one bit per
box, axis and bucket: about 140 bytes per box and axis for many boxes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from vedette.data.matches import Matches
from vedette.indexes.estimates import BoxFacts, Estimate
from vedette.indexes.growth import collect
from vedette.indexes.index import ANY_FIELDS, as_boxes, as_cells, count_bytes
from vedette.native.bits import count_ones, lowest_one, without_lowest
from vedette.native.damage import check, check_fields, check_shape, check_starts, check_within
from vedette.native.kernels import kernel
from vedette.native.vectors import add_eight

MIN_BUCKETS = 512  # per axis; the actual number is between half of the limit and the limit
MAX_BUCKETS = 1024
BOXES_PER_BUCKET = 64
ONE_CALL = 1 << 20  # rows times boxes up to which one kernel call does everything
CELL, BOX = 0, 1  # rows of the arrays of ends
SLACK = 64  # bits of a word that may be read in excess

# The places of the set bits of each byte, eight to a byte.
_PLACES = np.array([place for byte in range(256) for place in ([i for i in range(8) if byte >> i & 1] + [0] * 8)[:8]])
_PLACES = _PLACES.astype(np.int32)


class _Bits(NamedTuple):
    """The fields of `Bitmaps`, for kernels."""

    ids: NDArray[np.int32]
    offset: int
    shifts: NDArray[np.int64]
    axis_buckets: NDArray[np.int64]
    bitmaps: NDArray[np.int64]
    first_starts: NDArray[np.int64]
    firsts: NDArray[np.int32]
    last_starts: NDArray[np.int64]
    lasts: NDArray[np.int32]


@dataclass(frozen=True)
class Bitmaps:
    """Axis `a` has the buckets from `axis_buckets[a]` on, each of `2 ** shifts[a]` cells.

    The boxes that begin inside bucket `b`, after its first cell, are
    `firsts[BOX, first_starts[b]:first_starts[b + 1]]`, ordered by their first cells, which are in `firsts[CELL]`. The
    boxes that end inside it are listed in the same way.
    """

    n_fields: ClassVar[range] = ANY_FIELDS
    wins_for: ClassVar[str] = "rows that match a large part of all boxes"
    needs: ClassVar[str] = ""
    needs_points: ClassVar[bool] = False

    ids: NDArray[np.int32]
    offset: int  # the id of box 0 if ids are consecutive, else -1
    shifts: NDArray[np.int64]
    axis_buckets: NDArray[np.int64]
    bitmaps: NDArray[np.int64]  # (buckets, words): bit b of word w is for box 64 w + b
    first_starts: NDArray[np.int64]
    firsts: NDArray[np.int32]
    last_starts: NDArray[np.int64]
    lasts: NDArray[np.int32]

    @classmethod
    def build(
        cls, firsts: NDArray[np.int32], lasts: NDArray[np.int32], ids: NDArray[np.int32], n_cells: Sequence[int]
    ) -> Self:
        """Index boxes on any number of axes."""
        firsts, lasts, ids = as_boxes(firsts, lasts, ids, n_cells)
        most = max(MIN_BUCKETS, min(MAX_BUCKETS, len(ids) // BOXES_PER_BUCKET))
        shifts = np.array([max(0, (n - 1).bit_length() - most.bit_length() + 1) for n in n_cells], np.int64)
        n_buckets = [((n - 1) >> int(shift)) + 1 for n, shift in zip(n_cells, shifts, strict=True)]
        axis_buckets = np.cumsum([0, *n_buckets], dtype=np.int64)
        bitmaps = np.zeros((int(axis_buckets[-1]), (len(ids) + 63) // 64), np.int64)
        _set_bits(firsts, lasts, shifts, axis_buckets, bitmaps)
        begins = _list_ends(firsts, (firsts & ((1 << shifts) - 1)[:, None]) != 0, shifts, axis_buckets)
        ends = _list_ends(lasts, ((lasts + 1) & ((1 << shifts) - 1)[:, None]) != 0, shifts, axis_buckets)
        offset = int(ids[0]) if len(ids) and (np.diff(ids) == 1).all() and ids[0] >= 0 else -1
        return cls(np.pad(ids, (0, SLACK)), offset, shifts, axis_buckets, bitmaps, *begins, *ends)

    @classmethod
    def estimate(cls, facts: BoxFacts) -> list[Estimate]:
        n, n_axes, matches = facts.n, len(facts.axes), facts.matches
        fits_cache = 130 * n * n_axes < 1 << 20
        words = n / 64 * (1.5 + 0.6 * n_axes) * (1.0 if fits_cache else 1.6)
        cost = 14 + words + (0.4 if facts.is_consecutive else 1.25) * matches
        reason = f"a row meets about {matches:,.0f} of {n:,} boxes, too many for lists to skip the rest"
        return [Estimate(facts.axes, cost, reason)]

    def match(self, cells: NDArray[np.int32]) -> Matches:
        cells = as_cells(cells)
        n_rows = cells.shape[1]
        if n_rows * len(self.ids) <= ONE_CALL:
            # Plain arguments: a tuple would make the call of a single row slower.
            found = _match(
                cells,
                self.ids,
                self.offset,
                self.shifts,
                self.axis_buckets,
                self.bitmaps,
                self.first_starts,
                self.firsts,
                self.last_starts,
                self.lasts,
            )
            return Matches(*found)
        bits = _Bits(
            self.ids,
            self.offset,
            self.shifts,
            self.axis_buckets,
            self.bitmaps,
            self.first_starts,
            self.firsts,
            self.last_starts,
            self.lasts,
        )
        most = len(self.ids) + SLACK
        return collect(n_rows, most, lambda done, starts, positions: _fill(cells, done, starts, positions, bits))

    def validate(self, n_cells: Sequence[int], ids: range) -> None:
        check_fields(self)
        check_shape(self.ids, (len(self.ids),), "the ids of bitmaps")
        check_shape(self.shifts, (len(n_cells),), "the shifts of bitmaps")
        check_within(self.shifts, 0, 31, "the shifts of bitmaps")
        n = len(self.ids) - SLACK
        own = self.ids[:n]
        check(n >= 0 and not self.ids[n:].any(), "ids of bitmaps are missing")
        check_within(own, ids.start, ids.stop - 1, "the ids of bitmaps")
        is_run = self.offset >= 0 and np.array_equal(own, np.arange(self.offset, self.offset + n))
        check(is_run or self.offset == -1, "the ids of bitmaps do not start at their offset")
        n_buckets = [((n - 1) >> int(shift)) + 1 for n, shift in zip(n_cells, self.shifts, strict=True)]
        check(np.array_equal(self.axis_buckets, np.cumsum([0, *n_buckets])), "the buckets are not those of the axes")
        n_words = (n + 63) // 64
        check_shape(self.bitmaps, (sum(n_buckets), n_words), "the bitmaps")
        if n % 64:
            check(not (self.bitmaps[:, -1] >> np.int64(n % 64)).any(), "bitmaps have bits of boxes that do not exist")
        for starts, ends in ((self.first_starts, self.firsts), (self.last_starts, self.lasts)):
            check_shape(starts, (sum(n_buckets) + 1,), "the starts of ends")
            check(ends.ndim == 2 and len(ends) == 2, "the ends of boxes have a wrong shape")
            check_starts(starts, ends.shape[1], "the starts of ends")
            check_within(ends[BOX], 0, n - 1, "the boxes of ends")

    def has_boxes(self, firsts: NDArray[np.int32], lasts: NDArray[np.int32], ids: NDArray[np.int32]) -> bool:
        """Whether the bits, and the lists of ends, of a valid index are those of these boxes."""
        if not np.array_equal(ids, self.ids[: len(self.ids) - SLACK]):
            return False
        bitmaps = np.zeros_like(self.bitmaps)
        _set_bits(as_cells(firsts), as_cells(lasts), self.shifts, self.axis_buckets, bitmaps)
        masks = ((1 << self.shifts) - 1)[:, None]
        begins = _list_ends(firsts, (firsts & masks) != 0, self.shifts, self.axis_buckets)
        ends = _list_ends(lasts, ((lasts + 1) & masks) != 0, self.shifts, self.axis_buckets)
        own = (self.first_starts, self.firsts), (self.last_starts, self.lasts)
        return np.array_equal(bitmaps, self.bitmaps) and all(map(_are_same_ends, own, (begins, ends)))

    @property
    def nbytes(self) -> int:
        return count_bytes(self)


_Ends = tuple[NDArray[np.int64], NDArray[np.int32]]


def _are_same_ends(own: _Ends, given: _Ends) -> bool:
    """Whether two lists of ends are equal. Boxes with the same end may be in any order."""
    (starts, (cells, boxes)), (given_starts, (given_cells, given_boxes)) = own, given
    if not np.array_equal(starts, given_starts) or not np.array_equal(cells, given_cells):
        return False
    buckets = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    orders = [np.lexsort((each, cells, buckets)) for each in (boxes, given_boxes)]
    return np.array_equal(boxes[orders[0]], given_boxes[orders[1]])


def _list_ends(
    cells: NDArray[np.int32], inside: NDArray[np.bool_], shifts: NDArray[np.int64], axis_buckets: NDArray[np.int64]
) -> _Ends:
    """Per bucket, the boxes with an end inside it, ordered by that end: starts, and cells and boxes."""
    n_listed = np.zeros(int(axis_buckets[-1]) + 1, np.int64)
    listed_cells, listed_boxes = [], []
    for axis, shift in enumerate(shifts):
        boxes = np.flatnonzero(inside[axis]).astype(np.int32)
        boxes = boxes[np.argsort(cells[axis, boxes])]
        listed_cells.append(cells[axis, boxes])
        listed_boxes.append(boxes)
        n_buckets = int(axis_buckets[axis + 1] - axis_buckets[axis])
        counts = np.bincount(listed_cells[-1] >> shift, minlength=n_buckets)
        n_listed[axis_buckets[axis] + 1 : axis_buckets[axis + 1] + 1] = counts
    return np.cumsum(n_listed), np.stack([np.concatenate(listed_cells), np.concatenate(listed_boxes)])


@kernel
def _set_bits(
    firsts: NDArray[np.int32],
    lasts: NDArray[np.int32],
    shifts: NDArray[np.int64],
    axis_buckets: NDArray[np.int64],
    bitmaps: NDArray[np.int64],
) -> None:
    """Make each bitmap from the previous one: set the boxes that begin, clear those that have ended."""
    n = firsts.shape[1]
    order = np.empty(n, np.int32)
    for axis in range(len(shifts)):
        low, high, shift = axis_buckets[axis], axis_buckets[axis + 1], shifts[axis]
        starts = _order_by_bucket(firsts[axis], shift, high - low, order)
        for bucket in range(low, high):
            if bucket > low:
                bitmaps[bucket] = bitmaps[bucket - 1]
            for i in range(starts[bucket - low], starts[bucket - low + 1]):
                bitmaps[bucket, order[i] >> 6] |= np.int64(1) << np.int64(order[i] & 63)
        starts = _order_by_bucket(lasts[axis], shift, high - low, order)
        words = np.zeros(bitmaps.shape[1], np.int64)
        for bucket in range(low, high):
            for w in range(len(words)):
                bitmaps[bucket, w] &= ~words[w]
            for i in range(starts[bucket - low], starts[bucket - low + 1]):
                words[order[i] >> 6] |= np.int64(1) << np.int64(order[i] & 63)


@kernel
def _order_by_bucket(
    cells: NDArray[np.int32], shift: int, n_buckets: int, order: NDArray[np.int32]
) -> NDArray[np.int64]:
    """Write the boxes into `order` by the bucket of their cell. Returns where each bucket starts in it."""
    starts = np.zeros(n_buckets + 2, np.int64)
    for box in range(len(cells)):
        starts[(cells[box] >> shift) + 2] += 1
    for bucket in range(n_buckets):
        starts[bucket + 2] += starts[bucket + 1]
    for box in range(len(cells)):
        bucket = cells[box] >> shift
        order[starts[bucket + 1]] = box
        starts[bucket + 1] += 1
    return starts


@kernel
def _match(
    cells: NDArray[np.int32],
    ids: NDArray[np.int32],
    offset: int,
    shifts: NDArray[np.int64],
    axis_buckets: NDArray[np.int64],
    bitmaps: NDArray[np.int64],
    first_starts: NDArray[np.int64],
    firsts: NDArray[np.int32],
    last_starts: NDArray[np.int64],
    lasts: NDArray[np.int32],
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    starts = np.zeros(cells.shape[1] + 1, np.int64)
    positions = np.empty(cells.shape[1] * len(ids) + SLACK, np.int32)
    bits = _Bits(ids, offset, shifts, axis_buckets, bitmaps, first_starts, firsts, last_starts, lasts)
    _fill(cells, 0, starts, positions, bits)
    return starts, positions[: starts[-1]].copy()


@kernel
def _fill(
    cells: NDArray[np.int32],
    done: int,
    starts: NDArray[np.int64],
    positions: NDArray[np.int32],
    bits: _Bits,
) -> int:
    """Write the matches of rows from `done` on while there is room. Returns how many rows are done."""
    ids, offset, shifts, axis_buckets, bitmaps = bits.ids, bits.offset, bits.shifts, bits.axis_buckets, bits.bitmaps
    first_starts, firsts, last_starts, lasts = bits.first_starts, bits.firsts, bits.last_starts, bits.lasts
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
            j = first_starts[bucket + 1] - 1
            while j >= first_starts[bucket] and firsts[CELL, j] > cell:
                box = np.int64(firsts[BOX, j])
                words[box >> 6] &= ~(np.int64(1) << (box & 63))
                j -= 1
            j = last_starts[bucket]
            while j < last_starts[bucket + 1] and lasts[CELL, j] < cell:
                box = np.int64(lasts[BOX, j])
                words[box >> 6] &= ~(np.int64(1) << (box & 63))
                j += 1
        for w in range(n_words):
            word = words[w]
            if word == 0:
                continue
            n_ones = count_ones(word)
            base = w << 6
            if offset >= 0 and n_ones > 4:
                for byte in range(8):
                    ones = (word >> (8 * byte)) & 0xFF
                    add_eight(positions, out, _PLACES, 8 * ones, offset + base + 8 * byte)
                    out += count_ones(ones)
                continue
            # To avoid branches on the number of bits, 4, 8 or 16 entries are written, even if there are fewer.
            for j in range(4):
                positions[out + j] = ids[base + lowest_one(word)]
                word = without_lowest(word)
            if n_ones > 4:
                for j in range(4, 8):
                    positions[out + j] = ids[base + lowest_one(word)]
                    word = without_lowest(word)
                if n_ones > 8:
                    for j in range(8, 16):
                        positions[out + j] = ids[base + lowest_one(word)]
                        word = without_lowest(word)
                    for j in range(16, n_ones):
                        positions[out + j] = ids[base + lowest_one(word)]
                        word = without_lowest(word)
            out += n_ones
        starts[row + 1] = out
    return int(cells.shape[1])
