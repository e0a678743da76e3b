"""Region segments: which boxes a key enters and which it leaves when it moves from one row to the next.

The RS lists of BMQ-Index (Lee et al., sections 3 and 4). A box is listed twice on each axis, by the cell where it
starts and by the cell where it ends, and a move reads only the lists between its old and its new cell; what changes
on one axis is checked on the others. Wins where moves are shorter than boxes are wide. Costs 16 bytes a box and axis,
and 8 a cell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from vedette.buffers import empty_int32
from vedette.indexes.index import as_boxes, as_cells, count_bytes
from vedette.kernels import kernel
from vedette.matches import Matches


@dataclass(frozen=True)
class RegionSegments:
    """On axis `a`, side 0 lists boxes by their first cell and side 1 by their last.

    The boxes that start in cell `c` are `listed[0, a, places[0, axis_places[a] + c]:places[0, axis_places[a] + c +
    1]]`.
    """

    firsts: NDArray[np.int32]  # (axes, boxes)
    lasts: NDArray[np.int32]
    ids: NDArray[np.int32]
    axis_places: NDArray[np.int64]  # where each axis begins in `places`
    places: NDArray[np.int32]  # (2, cells of all axes, and one more for each)
    listed: NDArray[np.int32]  # (2, axes, boxes)

    @classmethod
    def build(
        cls, firsts: NDArray[np.int32], lasts: NDArray[np.int32], ids: NDArray[np.int32], n_cells: Sequence[int]
    ) -> Self:
        """List boxes on any number of axes."""
        firsts, lasts, ids = as_boxes(firsts, lasts, ids)
        axis_places = np.cumsum([0, *(n + 1 for n in n_cells)], dtype=np.int64)
        places = np.zeros((2, int(axis_places[-1])), np.int32)
        listed = np.empty((2, *firsts.shape), np.int32)
        for side, ends in enumerate((firsts, lasts)):
            for axis in range(len(n_cells)):
                _list_by_cell(ends[axis], places[side, axis_places[axis] : axis_places[axis + 1]], listed[side, axis])
        return cls(firsts, lasts, ids, axis_places, places, listed)

    @property
    def nbytes(self) -> int:
        return count_bytes(self)

    def count_read(self, before: NDArray[np.int32], after: NDArray[np.int32]) -> NDArray[np.int64]:
        """How many listings `changes` would read for each move; to tell that is a few look-ups."""
        return _count_read(as_cells(before), as_cells(after), self.axis_places, self.places)

    def changes(self, before: NDArray[np.int32], after: NDArray[np.int32]) -> tuple[Matches, Matches]:
        """The ids of boxes that move `i`, from `before[:, i]` to `after[:, i]`, enters, and of those that it leaves."""
        before, after = as_cells(before), as_cells(after)
        tables = self.firsts, self.lasts, self.ids, self.axis_places, self.places, self.listed
        none = empty_int32(0)
        starts = np.zeros((2, before.shape[1] + 1), np.int64)
        _find_changes(before, after, *tables, starts, none, none, False)
        np.cumsum(starts, axis=1, out=starts)
        entered, left = empty_int32(int(starts[0, -1])), empty_int32(int(starts[1, -1]))
        _find_changes(before, after, *tables, starts, entered, left, True)
        return Matches(starts[0], entered), Matches(starts[1], left)


@kernel
def _list_by_cell(ends: NDArray[np.int32], places: NDArray[np.int32], listed: NDArray[np.int32]) -> None:
    """Order boxes by the cell of one end; `places`, zero before, tells where the boxes of each cell begin."""
    for box in range(len(ends)):
        places[ends[box] + 1] += 1
    for cell in range(len(places) - 1):
        places[cell + 1] += places[cell]
    cursors = places.copy()
    for box in range(len(ends)):
        listed[cursors[ends[box]]] = box
        cursors[ends[box]] += 1


@kernel
def _count_read(
    before: NDArray[np.int32], after: NDArray[np.int32], axis_places: NDArray[np.int64], places: NDArray[np.int32]
) -> NDArray[np.int64]:
    n_read = np.zeros(before.shape[1], np.int64)
    for axis in range(before.shape[0]):
        origin = axis_places[axis]
        for move in range(before.shape[1]):
            low = origin + min(before[axis, move], after[axis, move])
            high = origin + max(before[axis, move], after[axis, move])
            n_read[move] += places[0, high + 1] - places[0, low + 1] + places[1, high] - places[1, low]
    return n_read


@kernel
def _find_changes(
    before: NDArray[np.int32],
    after: NDArray[np.int32],
    firsts: NDArray[np.int32],
    lasts: NDArray[np.int32],
    ids: NDArray[np.int32],
    axis_places: NDArray[np.int64],
    places: NDArray[np.int32],
    listed: NDArray[np.int32],
    starts: NDArray[np.int64],
    entered: NDArray[np.int32],
    left: NDArray[np.int32],
    fill: bool,
) -> None:
    """Count what each move enters and leaves into `starts[:, move + 1]`, or write it from `starts[:, move]` on.

    Upwards, boxes that start after the old cell may be entered and boxes that end before the new one may be left;
    downwards it is the other way round. One end is known from the list; `_holds` checks the rest.
    """
    for move in range(before.shape[1]):
        n_entered = n_left = 0
        for axis in range(before.shape[0]):
            old, new = before[axis, move], after[axis, move]
            if old == new:
                continue
            low, high = axis_places[axis] + min(old, new), axis_places[axis] + max(old, new)
            for side in range(2):
                is_entering = (side == 0) == (old < new)
                if side == 0:  # boxes that start in (low, high]
                    start, end = places[0, low + 1], places[0, high + 1]
                else:  # boxes that end in [low, high)
                    start, end = places[1, low], places[1, high]
                for place in range(start, end):
                    box = listed[side, axis, place]
                    if not _changes_first(box, axis, is_entering, before, after, move, firsts, lasts):
                        continue
                    if is_entering:
                        if fill:
                            entered[starts[0, move] + n_entered] = ids[box]
                        n_entered += 1
                    else:
                        if fill:
                            left[starts[1, move] + n_left] = ids[box]
                        n_left += 1
        if not fill:
            starts[0, move + 1] = n_entered
            starts[1, move + 1] = n_left


@kernel
def _changes_first(
    box: int,
    axis: int,
    is_entering: bool,
    before: NDArray[np.int32],
    after: NDArray[np.int32],
    move: int,
    firsts: NDArray[np.int32],
    lasts: NDArray[np.int32],
) -> bool:
    """Whether the box holds the inner end on all axes, and `axis` is the first on which the outer end is outside."""
    for other in range(before.shape[0]):
        old, new = before[other, move], after[other, move]
        inner, outer = (new, old) if is_entering else (old, new)
        if not (firsts[other, box] <= inner <= lasts[other, box]):
            return False
        if other < axis and not (firsts[other, box] <= outer <= lasts[other, box]):
            return False
    return True
