"""Region segments: which boxes a key enters and which it leaves when it moves from one row to the next.

The RS lists of BMQ-Index (Lee et al., sections 3 and 4). On each axis a box is listed twice, by the cell where it
starts and by the cell where it ends, and a move reads only the lists between its old and its new cell; what changes
on one axis is checked on the others. Wins where moves are shorter than boxes are wide. Costs 32 bytes a box on one
axis, and 40 a box and axis on several.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from vedette.indexes.index import as_boxes, count_bytes
from vedette.kernels import kernel

EXIT, ENTER, CROSS = 0, 1, 2  # what a move does with a box; in this order within a move


@dataclass(frozen=True)
class RegionSegments:
    """On axis `a`, side 0 lists boxes by their first cell and side 1 by their last.

    The boxes that start in the cells [c << shifts[a], (c + 1) << shifts[a]) are among
    `entries[0, a, places[0, axis_places[a] + c]:places[0, axis_places[a] + c + 1]]`, in the order of that cell. An
    entry is the cell by which it is listed, the cell of the box's other end, and the box: on one axis its id, on
    several its number, under which `ends` has the first and last cell on each axis.
    """

    shifts: NDArray[np.int64]
    axis_places: NDArray[np.int64]  # where each axis begins in `places`
    places: NDArray[np.int32]  # (2, places of all axes)
    entries: NDArray[np.int32]  # (2, axes, boxes, 3)
    ends: NDArray[np.int32]  # (boxes, axes, 2); empty on one axis
    ids: NDArray[np.int32]  # likewise

    @classmethod
    def build(
        cls, firsts: NDArray[np.int32], lasts: NDArray[np.int32], ids: NDArray[np.int32], n_cells: Sequence[int]
    ) -> Self:
        """List boxes on any number of axes."""
        firsts, lasts, ids = as_boxes(firsts, lasts, ids)
        n_axes, n_boxes = firsts.shape
        shifts = np.array([max(0, n // max(1, n_boxes)).bit_length() for n in n_cells], np.int64) - 1
        shifts = np.maximum(shifts, 0)  # about as many places as boxes
        lengths = [((n - 1) >> int(shift)) + 2 for n, shift in zip(n_cells, shifts, strict=True)]
        axis_places = np.cumsum([0, *lengths], dtype=np.int64)
        places = np.zeros((2, int(axis_places[-1])), np.int32)
        entries = np.empty((2, n_axes, n_boxes, 3), np.int32)
        names = ids if n_axes == 1 else np.arange(n_boxes, dtype=np.int32)
        for axis in range(n_axes):
            part = slice(axis_places[axis], axis_places[axis + 1])
            for side, (own, other) in enumerate(((firsts[axis], lasts[axis]), (lasts[axis], firsts[axis]))):
                order = np.argsort(own, kind="stable")
                for column, values in enumerate((own, other, names)):
                    entries[side, axis, :, column] = values[order]
                _tabulate(entries[side, axis], int(shifts[axis]), places[side, part])
        ends = np.empty((0, 1, 2), np.int32)
        if n_axes > 1:
            ends = np.ascontiguousarray(np.stack([firsts, lasts], axis=2).transpose(1, 0, 2))
        return cls(shifts, axis_places, places, entries, ends, ids if n_axes > 1 else ids[:0].copy())

    @property
    def nbytes(self) -> int:
        return count_bytes(self)

    def count_read(
        self, cells: NDArray[np.int32], before: NDArray[np.int64], after: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """How many entries each move would read at most; to tell that is a few look-ups.

        Move `i` goes from row `before[i]` to row `after[i]`, where row `r` lies at `cells[axis, r]`.
        """
        n_read = np.zeros(len(before), np.int64)
        _count_read(cells, before, after, self.shifts, self.axis_places, self.places, n_read)
        return n_read

    def changes(
        self, cells: NDArray[np.int32], before: NDArray[np.int64], after: NDArray[np.int64], n_read: int
    ) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int8]]:
        """What the moves change, as columns: the number of the move, the id, and EXIT or ENTER; in that order.

        `n_read` is the sum of what `count_read` tells.
        """
        moves, ids, kinds = np.empty(n_read, np.int32), np.empty(n_read, np.int32), np.empty(n_read, np.int8)
        tables = self.shifts, self.axis_places, self.places, self.entries, self.ends, self.ids
        n = _find_changes(cells, before, after, *tables, moves, ids, kinds)
        return moves[:n], ids[:n], kinds[:n]

    def passed(
        self, cells: NDArray[np.int32], before: NDArray[np.int64], after: NDArray[np.int64]
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The number of the move and of the box, for boxes that a move may have gone through.

        On each axis such a box reaches into what lies between the two cells, and on one it begins or ends in it. On one
        axis the box is given by its id.
        """
        n_read = int(self.count_read(cells, before, after).sum())
        moves, boxes = np.empty(n_read, np.int32), np.empty(n_read, np.int32)
        tables = self.shifts, self.axis_places, self.places, self.entries, self.ends
        n = _find_passed(cells, before, after, *tables, moves, boxes)
        return moves[:n], boxes[:n]


@kernel
def _tabulate(entries: NDArray[np.int32], shift: int, places: NDArray[np.int32]) -> None:
    """Where the entries of each place begin; `places` is zero before."""
    for i in range(len(entries)):
        places[(entries[i, 0] >> shift) + 1] += 1
    for place in range(len(places) - 1):
        places[place + 1] += places[place]


@kernel
def _count_read(
    cells: NDArray[np.int32],
    before: NDArray[np.int64],
    after: NDArray[np.int64],
    shifts: NDArray[np.int64],
    axis_places: NDArray[np.int64],
    places: NDArray[np.int32],
    n_read: NDArray[np.int64],
) -> None:
    for axis in range(len(cells)):
        for move in range(len(before)):
            old, new = cells[axis, before[move]], cells[axis, after[move]]
            if old != new:
                low = axis_places[axis] + (min(old, new) >> shifts[axis])
                high = axis_places[axis] + (max(old, new) >> shifts[axis])
                n_read[move] += places[0, high + 1] - places[0, low] + places[1, high + 1] - places[1, low]


@kernel
def _find_changes(
    cells: NDArray[np.int32],
    before: NDArray[np.int64],
    after: NDArray[np.int64],
    shifts: NDArray[np.int64],
    axis_places: NDArray[np.int64],
    places: NDArray[np.int32],
    entries: NDArray[np.int32],
    ends: NDArray[np.int32],
    ids: NDArray[np.int32],
    out_moves: NDArray[np.int32],
    out_ids: NDArray[np.int32],
    out_kinds: NDArray[np.int8],
) -> int:
    """Upwards, boxes that end below the new cell are left and boxes that start above the old one are entered.

    Downwards it is the other way round. First what is left, then what is entered.
    """
    n_axes = len(cells)
    n = np.int64(0)
    for move in range(len(before)):
        for kind in range(2):
            for axis in range(n_axes):
                old, new = cells[axis, before[move]], cells[axis, after[move]]
                if old == new:
                    continue
                side = int((kind == 1) == (old > new))  # by which end the box is listed
                inner = new if kind == 1 else old  # the cell that the box holds
                low = axis_places[axis] + (min(old, new) >> shifts[axis])
                high = axis_places[axis] + (max(old, new) >> shifts[axis])
                start, end = np.int64(places[side, low]), np.int64(places[side, high + 1])
                # Listed by its first cell a box holds the upper cell alone, by its last the lower one alone.
                outer = old + new - inner
                for place in range(start, end):
                    own, other = entries[side, axis, place, 0], entries[side, axis, place, 1]
                    if side == 0:
                        changes = (own > outer) & (own <= inner) & (other >= inner)
                    else:
                        changes = (own < outer) & (own >= inner) & (other <= inner)
                    box = entries[side, axis, place, 2]
                    if n_axes == 1:
                        out_moves[n] = move
                        out_ids[n] = box
                        out_kinds[n] = kind
                        n += changes
                    elif changes and _changes_first(box, axis, kind, cells, before[move], after[move], ends):
                        out_moves[n] = move
                        out_ids[n] = ids[box]
                        out_kinds[n] = kind
                        n += 1
    return n  # type: ignore[return-value]


@kernel
def _changes_first(
    box: int, axis: int, kind: int, cells: NDArray[np.int32], old_row: int, new_row: int, ends: NDArray[np.int32]
) -> bool:
    """Whether the box holds the inner end on the other axes too, and the outer end on all axes before this one.

    The latter, so that a box is found once: on the first axis that leaves its outer end outside.
    """
    inner, outer = (new_row, old_row) if kind == 1 else (old_row, new_row)
    for other in range(len(cells)):
        if other == axis:
            continue
        first, last = ends[box, other, 0], ends[box, other, 1]
        if not (first <= cells[other, inner] <= last):
            return False
        if other < axis and not (first <= cells[other, outer] <= last):
            return False
    return True


@kernel
def _find_passed(
    cells: NDArray[np.int32],
    before: NDArray[np.int64],
    after: NDArray[np.int64],
    shifts: NDArray[np.int64],
    axis_places: NDArray[np.int64],
    places: NDArray[np.int32],
    entries: NDArray[np.int32],
    ends: NDArray[np.int32],
    out_moves: NDArray[np.int32],
    out_boxes: NDArray[np.int32],
) -> int:
    """A box that lies between the two cells on some axis is listed by its first cell there; the others by either."""
    n_axes = len(cells)
    n = np.int64(0)
    for move in range(len(before)):
        for axis in range(n_axes):
            old, new = cells[axis, before[move]], cells[axis, after[move]]
            if old == new:
                continue
            low, high = min(old, new), max(old, new)
            for side in range(1 if n_axes == 1 else 2):
                start = np.int64(places[side, axis_places[axis] + (low >> shifts[axis])])
                end = np.int64(places[side, axis_places[axis] + (high >> shifts[axis]) + 1])
                for place in range(start, end):
                    own, other = entries[side, axis, place, 0], entries[side, axis, place, 1]
                    box = entries[side, axis, place, 2]
                    if n_axes == 1:
                        out_moves[n] = move
                        out_boxes[n] = box
                        n += (own > low) & (other < high)
                    elif low <= own <= high and not (side == 1 and low <= other <= high):
                        if _reaches_first(box, axis, cells, before[move], after[move], ends):
                            out_moves[n] = move
                            out_boxes[n] = box
                            n += 1
    return n  # type: ignore[return-value]


@kernel
def _reaches_first(
    box: int, axis: int, cells: NDArray[np.int32], old_row: int, new_row: int, ends: NDArray[np.int32]
) -> bool:
    """Whether the box reaches into the move on all axes, and neither begins nor ends in it on one before this."""
    for other in range(len(cells)):
        low = min(cells[other, old_row], cells[other, new_row])
        high = max(cells[other, old_row], cells[other, new_row])
        first, last = ends[box, other, 0], ends[box, other, 1]
        if last < low or first > high:
            return False
        if other < axis and low < high and (low <= first <= high or low <= last <= high):
            return False
    return True
