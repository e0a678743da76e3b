"""Region segments on several axes: the boxes that a key enters and leaves when it moves.

The RS lists of BMQ-Index (Lee et al., section 4). On each axis a box is listed twice, by its first cell and by its last
cell, and a move reads only the lists between its old and its new cell. Changes on one axis are checked on the others.
Best if moves cross few boundaries, including those of boxes elsewhere. Boxes are inserted and removed in place, which
moves the entries after them. Takes 40 bytes per box and axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from vedette.indexes.index import as_boxes, count_bytes
from vedette.native.buffers import empty_int32
from vedette.native.kernels import kernel
from vedette.operators.border.gaps import fit, move_places, open_gaps
from vedette.operators.border.runs import ENTER, Runs, collect_runs

OWN, BOX, OTHER = 0, 1, 2  # of an entry: its cell, its box, and the cell of the box's other end


class _Segments(NamedTuple):
    """The fields of `RegionSegments` that kernels read."""

    shifts: NDArray[np.int64]
    axis_places: NDArray[np.int64]
    places: NDArray[np.int32]
    entries: NDArray[np.int32]
    ends: NDArray[np.int32]
    ids: NDArray[np.int32]


@dataclass
class RSLists:
    """On axis `a`, side 0 lists boxes by their first cell and side 1 by their last.

    The boxes that start in the cells [c << shifts[a], (c + 1) << shifts[a]) are those of the entries
    `places[0, axis_places[a] + c]` to `places[0, axis_places[a] + c + 1]`, ordered by cell. An entry has the cell by
    which it is listed, the number of the box, and the cell of the box's other end. Boxes are numbered in the order of
    insertion; `ends` and `ids` are the query table of section 4.1.
    """

    n_cells: NDArray[np.int64]  # by axis
    shifts: NDArray[np.int64]
    axis_places: NDArray[np.int64]  # where each axis begins in `places`
    places: NDArray[np.int32]  # (2, places of all axes)
    entries: NDArray[np.int32]  # (2, axes, 3, boxes), with spare room
    ends: NDArray[np.int32]  # (boxes, axes, 2): the first and the last cell
    ids: NDArray[np.int32]

    @classmethod
    def build(
        cls, firsts: NDArray[np.int32], lasts: NDArray[np.int32], ids: NDArray[np.int32], n_cells: Sequence[int]
    ) -> Self:
        """List boxes on any number of axes."""
        n_axes = len(n_cells)
        counts = np.array(n_cells, np.int64)
        entries, ends = np.empty((2, n_axes, 3, 0), np.int32), np.empty((0, n_axes, 2), np.int32)
        made = cls(counts, *_make_places(counts, 0), entries, ends, np.empty(0, np.int32))
        made.insert(firsts, lasts, ids)
        return made

    def __len__(self) -> int:
        """The number of boxes."""
        return int(self.places[0, self.axis_places[1] - 1])

    @property
    def nbytes(self) -> int:
        return count_bytes(self)

    def insert(self, firsts: NDArray[np.int32], lasts: NDArray[np.int32], ids: NDArray[np.int32]) -> None:
        """Register boxes on the same axes, on each of them by itself (section 4.2).

        Their ends are sorted and inserted; entries after the first of them move up.
        """
        firsts, lasts, ids = as_boxes(firsts, lasts, ids, self.n_cells)
        n, n_after = len(self), len(self) + len(ids)
        self.entries = fit(self.entries, 3, n, n_after)
        self.ends, self.ids = fit(self.ends, 0, n, n_after), fit(self.ids, 0, n, n_after)
        self.ends[n:n_after] = np.stack([firsts, lasts], axis=2).transpose(1, 0, 2)
        self.ids[n:n_after] = ids
        numbers = np.arange(n, n_after, dtype=np.int32)
        for axis in range(len(self.n_cells)):
            for side, (own, other) in enumerate(((firsts[axis], lasts[axis]), (lasts[axis], firsts[axis]))):
                order = np.argsort(own, kind="stable")
                entries = self.entries[side, axis]
                at = np.searchsorted(entries[OWN, :n], own[order], "right")
                for column, values in enumerate((own, numbers, other)):
                    open_gaps(entries[column], n, at, values[order])
        self._move_places(firsts, lasts, 1, n_after)

    def remove(self, ids: NDArray[np.int32]) -> None:
        """Deregister all boxes of these ids, on each axis by itself (section 4.2).

        All entries are read once, because the remaining boxes get new numbers.
        """
        n = len(self)
        removed = np.isin(self.ids[:n], ids)
        if not removed.any():
            return
        ends = self.ends[:n][removed]
        numbers = np.cumsum(~removed, dtype=np.int32) - np.int32(1)
        numbers[removed] = -1
        for axis in range(len(self.n_cells)):
            for side in range(2):
                _drop(self.entries[side, axis], n, numbers)
        n_left = n - len(ends)
        self.ends[:n_left], self.ids[:n_left] = self.ends[:n][~removed], self.ids[:n][~removed]
        self.entries = fit(self.entries, 3, n_left, n_left)
        self.ends, self.ids = fit(self.ends, 0, n_left, n_left), fit(self.ids, 0, n_left, n_left)
        self._move_places(ends[:, :, 0].T, ends[:, :, 1].T, -1, n_left)

    def _move_places(self, firsts: NDArray[np.int32], lasts: NDArray[np.int32], sign: int, n: int) -> None:
        """Update the places for inserted (1) or removed (-1) boxes; `n` boxes are listed afterwards."""
        shifts, axis_places, places = _make_places(self.n_cells, n)
        is_new = bool((shifts != self.shifts).any())
        if is_new:
            self.shifts, self.axis_places, self.places = shifts, axis_places, places
        for axis, shift in enumerate(shifts):
            part = slice(axis_places[axis], axis_places[axis + 1])
            for side, ends in enumerate((firsts, lasts)):
                if is_new:
                    _tabulate(self.entries[side, axis, OWN, :n], int(shift), self.places[side, part])
                else:
                    keys = np.sort(ends[axis]).astype(np.int64) >> shift
                    move_places(self.places[side, part], keys, sign, 0)

    def count_read(
        self, cells: NDArray[np.int32], before: NDArray[np.int64], after: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """The maximum number of entries that each move would read, with a few lookups. -1: it cannot be followed."""
        n_read = np.empty(len(before), np.int64)
        _count_read(cells, before, after, self.shifts, self.axis_places, self.places, n_read)
        return n_read

    def changes(
        self,
        cells: NDArray[np.int32],
        before: NDArray[np.int64],
        after: NDArray[np.int64],
        max_read: float = np.inf,
        n_expected: int = 0,
    ) -> tuple[Runs, NDArray[np.int32]]:
        """The changes of the moves, by the ids of boxes, and the numbers of skipped moves.

        Move `i` goes from row `before[i]` to row `after[i]`, where row `r` lies at `cells[axis, r]`. Moves that lack a
        row, or would read more than `max_read` entries, are skipped. `n_expected` is the total number of entries that
        the moves may read.
        """
        segments = self._segments

        def walk(
            move: int, out: NDArray[np.int32], counts: NDArray[np.int32], rest: NDArray[np.int32], n_rest: int
        ) -> tuple[int, int, int]:
            return _walk(cells, before, after, move, max_read, segments, out, counts, rest, n_rest)

        return collect_runs(walk, len(before), n_expected)

    def passed(
        self, cells: NDArray[np.int32], before: NDArray[np.int64], after: NDArray[np.int64]
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The number of the move and the id, for each box that a move may have crossed.

        On each axis such a box overlaps the cells between the two rows, and on one it begins or ends among them.
        """
        n_read = int(self.count_read(cells, before, after).clip(0).sum())
        moves, boxes = empty_int32(n_read), empty_int32(n_read)
        n = _find_passed(cells, before, after, self._segments, moves, boxes)
        return moves[:n], self.ids[boxes[:n]]

    @property
    def _segments(self) -> _Segments:
        return _Segments(self.shifts, self.axis_places, self.places, self.entries, self.ends, self.ids)


def _make_places(
    n_cells: NDArray[np.int64], n_boxes: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]:
    """Shifts, where each axis begins, and about as many places as boxes, all 0."""
    shifts = np.array([max(0, (int(n) // max(1, n_boxes)).bit_length() - 1) for n in n_cells], np.int64)
    lengths = ((n_cells - 1) >> shifts) + 2
    axis_places = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    return shifts, axis_places, np.zeros((2, int(axis_places[-1])), np.int32)


@kernel
def _tabulate(own_cells: NDArray[np.int32], shift: int, places: NDArray[np.int32]) -> None:
    """Write where the entries of each place begin. `places` must be zero before."""
    for i in range(len(own_cells)):
        places[(own_cells[i] >> shift) + 1] += 1
    for place in range(len(places) - 1):
        places[place + 1] += places[place]


@kernel
def _drop(entries: NDArray[np.int32], n: int, numbers: NDArray[np.int32]) -> None:
    """Keep the entries whose box has a new number, in their order, with that number."""
    out = 0
    for place in range(n):
        number = numbers[entries[BOX, place]]
        if number >= 0:
            entries[OWN, out] = entries[OWN, place]
            entries[BOX, out] = number
            entries[OTHER, out] = entries[OTHER, place]
            out += 1


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
    for move in range(len(before)):
        n_read[move] = -1
        if before[move] < 0 or after[move] < 0:
            continue
        n_read[move] = 0
        for axis in range(len(cells)):
            old, new = cells[axis, before[move]], cells[axis, after[move]]
            if old != new:
                low = axis_places[axis] + (min(old, new) >> shifts[axis])
                high = axis_places[axis] + (max(old, new) >> shifts[axis])
                n_read[move] += places[0, high + 1] - places[0, low] + places[1, high + 1] - places[1, low]


@kernel
def _walk(
    cells: NDArray[np.int32],
    before: NDArray[np.int64],
    after: NDArray[np.int64],
    first_move: int,
    max_read: float,
    segments: _Segments,
    out: NDArray[np.int32],
    counts: NDArray[np.int32],
    rest: NDArray[np.int32],
    n_rest: int,
) -> tuple[int, int, int]:
    """Follow moves while there is room. Returns the next move, and the numbers of changes and of skipped moves.

    Changes on one axis are checked on the others (Lee et al., section 4.3). Exits come first, then enters.
    """
    shifts, axis_places, places = segments.shifts, segments.axis_places, segments.places
    entries, ends, ids = segments.entries, segments.ends, segments.ids
    n_axes = len(cells)
    n = np.int64(0)
    for move in range(first_move, len(before)):
        n_read = np.int64(0)
        if before[move] >= 0 and after[move] >= 0:
            for axis in range(n_axes):
                old, new = cells[axis, before[move]], cells[axis, after[move]]
                if old != new:
                    low = axis_places[axis] + (min(old, new) >> shifts[axis])
                    high = axis_places[axis] + (max(old, new) >> shifts[axis])
                    n_read += places[0, high + 1] - places[0, low] + places[1, high + 1] - places[1, low]
        if before[move] < 0 or after[move] < 0 or n_read > max_read:
            rest[n_rest] = move
            n_rest += 1
            continue
        if n + n_read > len(out):
            return move, n, n_rest  # type: ignore[return-value]
        for kind in range(2):
            begin = n
            for axis in range(n_axes):
                old, new = cells[axis, before[move]], cells[axis, after[move]]
                if old == new:
                    continue
                side = int((kind == ENTER) == (old > new))  # the end by which the box is listed
                low, high = min(old, new), max(old, new)
                start = np.int64(places[side, axis_places[axis] + (low >> shifts[axis])])
                end = np.int64(places[side, axis_places[axis] + (high >> shifts[axis]) + 1])
                for place in range(start, end):
                    own, other = entries[side, axis, OWN, place], entries[side, axis, OTHER, place]
                    # A box found by its first cell contains only the upper cell; by its last, only the lower one.
                    if side == 0:
                        changes = (own > low) & (own <= high) & (other >= high)
                    else:
                        changes = (own < high) & (own >= low) & (other <= low)
                    box = entries[side, axis, BOX, place]
                    if changes and _changes_first(box, axis, kind, cells, before[move], after[move], ends):
                        out[n] = ids[box]
                        n += 1
            counts[kind, move] = n - begin
    return len(before), n, n_rest  # type: ignore[return-value]


@kernel
def _changes_first(
    box: int, axis: int, kind: int, cells: NDArray[np.int32], old_row: int, new_row: int, ends: NDArray[np.int32]
) -> bool:
    """Whether the box contains the inner row on the other axes, too, and the outer row on all axes before this one.

    The second condition ensures that a box is found once: on the first axis on which the outer row is outside.
    """
    inner, outer = (new_row, old_row) if kind == ENTER else (old_row, new_row)
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
    segments: _Segments,
    out_moves: NDArray[np.int32],
    out_boxes: NDArray[np.int32],
) -> int:
    shifts, axis_places, places = segments.shifts, segments.axis_places, segments.places
    entries, ends = segments.entries, segments.ends
    n_axes = len(cells)
    n = np.int64(0)
    for move in range(len(before)):
        for axis in range(n_axes):
            old, new = cells[axis, before[move]], cells[axis, after[move]]
            if old == new:
                continue
            low, high = min(old, new), max(old, new)
            for side in range(2):
                start = np.int64(places[side, axis_places[axis] + (low >> shifts[axis])])
                end = np.int64(places[side, axis_places[axis] + (high >> shifts[axis]) + 1])
                for place in range(start, end):
                    own, other = entries[side, axis, OWN, place], entries[side, axis, OTHER, place]
                    box = entries[side, axis, BOX, place]
                    is_listed = low <= own <= high and not (side == 1 and low <= other <= high)
                    if is_listed and _reaches_first(box, axis, cells, before[move], after[move], ends):
                        out_moves[n] = move
                        out_boxes[n] = box
                        n += 1
    return n  # type: ignore[return-value]


@kernel
def _reaches_first(
    box: int, axis: int, cells: NDArray[np.int32], old_row: int, new_row: int, ends: NDArray[np.int32]
) -> bool:
    """Whether the box overlaps the move on all axes, and does not begin or end in it on an axis before this one."""
    for other in range(len(cells)):
        low = min(cells[other, old_row], cells[other, new_row])
        high = max(cells[other, old_row], cells[other, new_row])
        first, last = ends[box, other, 0], ends[box, other, 1]
        if last < low or first > high:
            return False
        if other < axis and low < high and (low <= first <= high or low <= last <= high):
            return False
    return True
