"""Containment-encoded intervals: boxes on one axis, cut at powers of two within segments of equal length.

The CEI-based query index of Wu, Chen and Yu ("Interval Query Indexing for Efficient Stream Processing", CIKM 2004),
the grid that the BMQ paper compares with in section 5: virtual constructs as in "Indexing Continual Range Queries",
section 2, but nested. A segment of `2 ** shift` cells has one interval of its whole length, two of
half of it, and so on down to single cells. Their numbers tell which contains which, so a row finds all that hold it by
shifting the number of its cell to the right. Costs a look-up a level for each row, up to twice as many listings a box,
and 8 bytes a cell; a change writes all lists anew. `Buckets` and `Lists` take half the time where a row meets few
boxes; it is there to be compared with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from vedette.buffers import empty_int32, empty_int64
from vedette.indexes.index import TooLargeError, as_boxes, as_cells, count_bytes
from vedette.kernels import kernel
from vedette.matches import Matches
from vedette.vectors import copy_eight

SLACK = 8  # eight boxes are copied without asking whether there are so many


@dataclass
class CEI:
    """Interval `i` lists `listed[starts[i]:starts[i + 1]]`.

    In its segment the whole has number 1, the halves of `m` have `2m` and `2m + 1`, and cell `c` has `2 ** shift + c`;
    to this comes `2 ** (shift + 1)` times the segment.
    """

    shift: int
    starts: NDArray[np.int32]
    listed: NDArray[np.int32]

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

        Segments have the length of a mean box, or `segment_cells`, made a power of two. Shorter ones save look-ups and
        cost listings: a box is listed in each that it covers.
        """
        firsts, lasts, ids = as_boxes(firsts, lasts, ids)
        if segment_cells is None:
            segment_cells = max(1, int((lasts[0].astype(np.int64) - firsts[0] + 1).mean())) if len(ids) else 1
        shift = (min(segment_cells, n_cells[0]) - 1).bit_length()
        index = cls(shift, np.zeros((((n_cells[0] - 1 >> shift) + 1) << (shift + 1)) + 1, np.int32), empty_int32(0))
        index.insert(firsts, lasts, ids)
        return index

    def match(self, cells: NDArray[np.int32]) -> Matches:
        cells = as_cells(cells)
        starts = empty_int64(cells.shape[1] + 1)
        _count(cells[0], starts, self.shift, self.starts)
        n_found = int(starts[-1])
        positions = empty_int32(n_found + SLACK)
        _fill(cells[0], starts, positions, self.shift, self.starts, self.listed)
        return Matches(starts, positions[:n_found])

    def insert(self, firsts: NDArray[np.int32], lasts: NDArray[np.int32], ids: NDArray[np.int32]) -> None:
        """Take in boxes of the same axis; segments stay as they are."""
        firsts, lasts, ids = as_boxes(firsts, lasts, ids)
        starts = np.zeros(len(self.starts) + 1, np.int64)
        _list_boxes(firsts[0], lasts[0], ids, self.shift, starts, empty_int32(0), False)
        starts[2:] += np.diff(self.starts)
        np.cumsum(starts, out=starts)
        if starts[-1] >= 1 << 31:
            raise TooLargeError(f"containment-encoded intervals would list {starts[-1]} boxes and can list 2^31")
        listed = np.zeros(int(starts[-1]) + SLACK, np.int32)
        _copy_lists(self.starts, self.listed, starts, listed)
        _list_boxes(firsts[0], lasts[0], ids, self.shift, starts, listed, True)
        self.starts, self.listed = starts[:-1].astype(np.int32), listed

    def remove(self, ids: NDArray[np.int32]) -> None:
        """Let all boxes of these ids go."""
        kept = ~np.isin(self.listed[: self.starts[-1]], ids)
        before = np.concatenate([[0], np.cumsum(kept)])
        self.listed = np.append(self.listed[: self.starts[-1]][kept], np.zeros(SLACK, np.int32))
        self.starts = before[self.starts].astype(np.int32)

    @property
    def nbytes(self) -> int:
        return count_bytes(self)


@kernel
def _list_boxes(
    firsts: NDArray[np.int32],
    lasts: NDArray[np.int32],
    ids: NDArray[np.int32],
    shift: int,
    starts: NDArray[np.int64],
    listed: NDArray[np.int32],
    fill: bool,
) -> None:
    """Decompose each box into the fewest intervals; count them in `starts`, or list the box in each.

    The boxes of interval `i` are counted at `i + 2`, so that filling moves each start to where it belongs.
    """
    length = 1 << shift
    for box in range(len(firsts)):
        for segment in range(firsts[box] >> shift, (lasts[box] >> shift) + 1):
            numbers = segment << (shift + 1)
            low = length + max(firsts[box] - (segment << shift), 0)
            high = length + min(lasts[box] - (segment << shift), length - 1) + 1
            if high - low == length:
                low, high = 1, 2
            while low < high:
                # A right half at the low end, or a left half at the high end, is not in a longer interval of the box.
                if low & 1:
                    _list_one(numbers + low, ids[box], starts, listed, fill)
                    low += 1
                if high & 1:
                    high -= 1
                    _list_one(numbers + high, ids[box], starts, listed, fill)
                low >>= 1
                high >>= 1


@kernel
def _list_one(number: int, box_id: int, starts: NDArray[np.int64], listed: NDArray[np.int32], fill: bool) -> None:
    if fill:
        listed[starts[number + 1]] = box_id
        starts[number + 1] += 1
    else:
        starts[number + 2] += 1


@kernel
def _copy_lists(
    starts: NDArray[np.int32], listed: NDArray[np.int32], new_starts: NDArray[np.int64], new_listed: NDArray[np.int32]
) -> None:
    """Begin the new list of each interval with the old one, as though `_list_boxes` had listed it."""
    for number in range(len(starts) - 1):
        at = new_starts[number + 1]
        for i in range(starts[number], starts[number + 1]):
            new_listed[at] = listed[i]
            at += 1
        new_starts[number + 1] = at


@kernel
def _count(cells: NDArray[np.int32], row_starts: NDArray[np.int64], shift: int, starts: NDArray[np.int32]) -> None:
    """Write where the matches of each row start."""
    length = 1 << shift
    row_starts[0] = 0
    for row in range(len(cells)):
        segment = cells[row] >> shift
        numbers = segment << (shift + 1)
        local = length + cells[row] - (segment << shift)
        found = np.int64(0)
        while local > 0:
            found += starts[numbers + local + 1] - starts[numbers + local]
            local >>= 1
        row_starts[row + 1] = row_starts[row] + found


@kernel
def _fill(
    cells: NDArray[np.int32],
    row_starts: NDArray[np.int64],
    positions: NDArray[np.int32],
    shift: int,
    starts: NDArray[np.int32],
    listed: NDArray[np.int32],
) -> None:
    """Copy the lists of each row's intervals; what is copied too much, the next list overwrites."""
    length = 1 << shift
    for row in range(len(cells)):
        segment = cells[row] >> shift
        numbers = segment << (shift + 1)
        local = length + cells[row] - (segment << shift)
        out = row_starts[row]
        while local > 0:
            at, end = starts[numbers + local], starts[numbers + local + 1]
            for j in range(0, end - at, 8):
                copy_eight(positions, out + j, listed, at + j)
            out += end - at
            local >>= 1
