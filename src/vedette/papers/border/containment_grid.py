"""Containment-encoded intervals: boxes on one axis, cut at powers of two within segments of equal length.

The CEI-based query index of Wu, Chen and Yu ("Interval Query Indexing for Efficient Stream Processing", CIKM 2004), the
grid that the BMQ paper compares with in section 5: virtual constructs as in "Indexing Continual Range Queries", section
2, but nested. A segment of `2 ** shift` cells has one interval of its whole length, two of half of it, and so on down
to single cells. Their numbers encode which contains which, so a row finds all intervals that contain it by shifting the
number of its cell to the right. Costs one look-up per level and row, up to twice as many listings per box, and 8 bytes
per cell, or 16 after the first change. Adding or removing a box changes the lists of its intervals. After many
additions the segments are rebuilt with another length, which is not in the paper. `Buckets` and `Lists` take half the
time if a row matches few boxes; this index exists for comparison.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from vedette.data.matches import Matches
from vedette.indexes.index import ONE_FIELD, TooLargeError, as_boxes, as_cells, check_given
from vedette.native.buffers import empty_int64, output_int32
from vedette.native.kernels import kernel
from vedette.native.vectors import copy_eight
from vedette.papers.box_store import find_first_id
from vedette.papers.growing_lists import (
    SLACK,
    GrowingLists,
    append_to_list,
    close_lists,
    count_listed,
    make_lists,
    open_lists,
    pack_lists,
    remove_from_list,
)
from vedette.papers.rebuilt_boxes import RebuiltBoxes


@dataclass
class CEI(RebuiltBoxes):
    """Each interval lists the numbers of boxes; the ends of the boxes are stored from the first change on.

    Within a segment, the whole has number 1, the halves of `m` have `2m` and `2m + 1`, and cell `c` has
    `2 ** shift + c`. The number of an interval is that plus `2 ** (shift + 1)` times the segment.
    """

    n_fields: ClassVar[range] = ONE_FIELD

    n_cells: int
    segment_cells: int  # as given; 0 if it is chosen
    shift: int
    starts: NDArray[np.int32]  # the lists, see `growing_lists`; closed until the first change
    sizes: NDArray[np.int32]
    listed: NDArray[np.int32]
    ends: NDArray[np.int64]

    @classmethod
    def build(
        cls,
        firsts: NDArray[np.int32],
        lasts: NDArray[np.int32],
        ids: NDArray[np.int32],
        n_cells: Sequence[int],
        segment_cells: int | None = None,
    ) -> Self:
        """Index boxes on one axis.

        Segments have the length of a mean box, or `segment_cells`, rounded to a power of two. Shorter segments need
        fewer look-ups and more listings: a box is listed in each segment that it covers.
        """
        firsts, lasts, ids = as_boxes(firsts, lasts, ids, n_cells)
        check_given(segment_cells=segment_cells)
        length = segment_cells or 1
        if segment_cells is None and len(ids):
            length = max(1, int((lasts[0].astype(np.int64) - firsts[0] + 1).mean()))
        shift = (min(length, n_cells[0]) - 1).bit_length()
        sizes = np.zeros(((n_cells[0] - 1 >> shift) + 1) << (shift + 1), np.int64)
        none = np.empty(0, np.int32)
        _list_all(firsts[0], lasts[0], shift, sizes, none, none, False)
        if sizes.sum() >= 1 << 31:
            raise TooLargeError(f"containment-encoded intervals would list {sizes.sum()} boxes; the limit is 2^31")
        starts, counts, listed, ends = make_lists(sizes)
        sizes[:] = 0
        _list_all(firsts[0], lasts[0], shift, sizes, starts, listed, True)
        untold = np.empty((1, 0), np.int32)
        kept = untold, untold, ids.copy(), none, find_first_id(ids)
        return cls(*kept, 0, n_cells[0], segment_cells or 0, shift, *close_lists(starts, counts), listed, ends)

    def match(self, cells: NDArray[np.int32]) -> Matches:
        cells = as_cells(cells)
        starts = empty_int64(cells.shape[1] + 1)
        _count(cells[0], starts, self.shift, self.starts, self.sizes)
        n_found = int(starts[-1])
        positions = output_int32(n_found + SLACK)
        _fill(cells[0], starts, positions, self.shift, self.starts, self.sizes, self.listed)
        return Matches(starts, self.give_ids(positions[:n_found]))

    def insert(self, firsts: NDArray[np.int32], lasts: NDArray[np.int32], ids: NDArray[np.int32]) -> None:
        self._open()
        super().insert(firsts, lasts, ids)

    def remove(self, ids: NDArray[np.int32]) -> None:
        self._open()
        super().remove(ids)

    def count_cells(self) -> Sequence[int]:
        return [self.n_cells]

    def list_boxes(self, numbers: NDArray[np.int32]) -> None:
        self._change(numbers, True)

    def unlist_boxes(self, numbers: NDArray[np.int32]) -> None:
        self._change(numbers, False)

    def rebuild(self, firsts: NDArray[np.int32], lasts: NDArray[np.int32], ids: NDArray[np.int32]) -> None:
        new = self.build(firsts, lasts, ids, self.count_cells(), self.segment_cells or None)
        self.__dict__.update(new.__dict__)

    def _open(self) -> None:
        if len(self.sizes) == 0:
            self.starts, self.sizes = open_lists(self.starts)
            self.firsts, self.lasts = np.empty((2, 1, len(self.ids)), np.int32)
            _find_ends(self.shift, self.starts, self.sizes, self.listed, self.firsts, self.lasts)

    def _change(self, numbers: NDArray[np.int32], is_added: bool) -> None:
        self.listed = _change_lists(
            numbers,
            self.firsts[0, numbers],
            self.lasts[0, numbers],
            self.shift,
            is_added,
            GrowingLists(self.starts, self.sizes, self.listed, self.ends),
        )
        self.starts, self.listed, self.ends = pack_lists(self.starts, self.sizes, self.listed, self.ends, len(numbers))


@kernel
def _cut_box(first: int, last: int, shift: int, numbers: NDArray[np.int64]) -> int:
    """Write the numbers of the fewest intervals that make up a range of cells; how many."""
    n = 0
    length = 1 << shift
    for segment in range(first >> shift, (last >> shift) + 1):
        before = segment << (shift + 1)
        low = length + max(first - (segment << shift), 0)
        high = length + min(last - (segment << shift), length - 1) + 1
        if high - low == length:
            low, high = 1, 2
        while low < high:
            # A right half at the low end, or a left half at the high end, is not in a longer interval of the box.
            if low & 1:
                numbers[n] = before + low
                n += 1
                low += 1
            if high & 1:
                high -= 1
                numbers[n] = before + high
                n += 1
            low >>= 1
            high >>= 1
    return n


@kernel
def _list_all(
    firsts: NDArray[np.int32],
    lasts: NDArray[np.int32],
    shift: int,
    sizes: NDArray[np.int64],
    starts: NDArray[np.int32],
    listed: NDArray[np.int32],
    fill: bool,
) -> None:
    """Count the listings of each interval, or write them."""
    numbers = np.empty((len(sizes) >> (shift + 1)) + 4 * shift + 2, np.int64)
    for box in range(len(firsts)):
        for i in range(_cut_box(firsts[box], lasts[box], shift, numbers)):
            if fill:
                listed[starts[numbers[i]] + sizes[numbers[i]]] = box
            sizes[numbers[i]] += 1


@kernel
def _change_lists(
    boxes: NDArray[np.int32],
    firsts: NDArray[np.int32],
    lasts: NDArray[np.int32],
    shift: int,
    is_added: bool,
    lists: GrowingLists,
) -> NDArray[np.int32]:
    """Add boxes to their lists, or remove them; `listed`, or a larger copy of it."""
    starts, sizes, listed, ends = lists
    numbers = np.empty((len(sizes) >> (shift + 1)) + 4 * shift + 2, np.int64)
    for box in range(len(firsts)):
        for i in range(_cut_box(firsts[box], lasts[box], shift, numbers)):
            if is_added:
                listed = append_to_list(numbers[i], boxes[box], starts, sizes, listed, ends)
            else:
                remove_from_list(numbers[i], boxes[box], starts, sizes, listed)
    return listed


@kernel
def _find_ends(
    shift: int,
    starts: NDArray[np.int32],
    sizes: NDArray[np.int32],
    listed: NDArray[np.int32],
    firsts: NDArray[np.int32],
    lasts: NDArray[np.int32],
) -> None:
    """Write the first and the last cell of the intervals that list each box."""
    firsts[:] = np.iinfo(np.int32).max
    lasts[:] = -1
    for number in range(len(sizes)):
        segment = number >> (shift + 1)
        low = number - (segment << (shift + 1))
        high = low + 1
        if low == 0:
            continue  # not an interval
        while low < 1 << shift:
            low, high = 2 * low, 2 * high
        first = (segment << shift) + low - (1 << shift)
        last = first + high - low - 1
        for place in range(starts[number], starts[number] + sizes[number]):
            box = listed[place]
            firsts[0, box] = min(firsts[0, box], first)
            lasts[0, box] = max(lasts[0, box], last)


@kernel
def _count(
    cells: NDArray[np.int32],
    row_starts: NDArray[np.int64],
    shift: int,
    starts: NDArray[np.int32],
    sizes: NDArray[np.int32],
) -> None:
    """Write where the matches of each row start."""
    length = 1 << shift
    row_starts[0] = 0
    for row in range(len(cells)):
        segment = cells[row] >> shift
        numbers = segment << (shift + 1)
        local = length + cells[row] - (segment << shift)
        found = np.int64(0)
        while local > 0:
            found += count_listed(numbers + local, starts, sizes)
            local >>= 1
        row_starts[row + 1] = row_starts[row] + found


@kernel
def _fill(
    cells: NDArray[np.int32],
    row_starts: NDArray[np.int64],
    positions: NDArray[np.int32],
    shift: int,
    starts: NDArray[np.int32],
    sizes: NDArray[np.int32],
    listed: NDArray[np.int32],
) -> None:
    """Copy the lists of each row's intervals; surplus entries are overwritten by the next list."""
    length = 1 << shift
    for row in range(len(cells)):
        segment = cells[row] >> shift
        numbers = segment << (shift + 1)
        local = length + cells[row] - (segment << shift)
        out = row_starts[row]
        while local > 0:
            at, size = starts[numbers + local], count_listed(numbers + local, starts, sizes)
            for j in range(0, size, 8):
                copy_eight(positions, out + j, listed, at + j)
            out += size
            local >>= 1
