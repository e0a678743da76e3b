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

from vedette.buffers import empty_int8, empty_int32
from vedette.indexes.index import as_boxes, count_bytes
from vedette.kernels import kernel
from vedette.prefetch import prefetch

EXIT, ENTER, CROSS = 0, 1, 2  # what a move does with a box; in this order within a move
AHEAD = 4  # moves ahead for which entries are fetched
SAMPLED = 16  # one move in so many tells how much room all will take


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

    def changes(
        self, cells: NDArray[np.int32], before: NDArray[np.int64], after: NDArray[np.int64], max_read: float = np.inf
    ) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int8], NDArray[np.int32]]:
        """What the moves change, as columns: the number of the move, the id, and EXIT or ENTER; in that order.

        Move `i` goes from row `before[i]` to row `after[i]`, where row `r` lies at `cells[axis, r]`. Moves that lack a
        row, or would read more than `max_read` entries, are left out; their numbers come last.
        """
        tables = (self.shifts, self.axis_places, self.places, self.entries, self.ends, self.ids)
        walk = _walk_line if len(cells) == 1 else _walk_boxes
        rest = empty_int32(len(before))
        both = np.flatnonzero((before[::SAMPLED] >= 0) & (after[::SAMPLED] >= 0)) * SAMPLED
        n_sampled = _count_read(cells, before[both], after[both], max_read, self.shifts, self.axis_places, self.places)
        n_room = int(1.2 * SAMPLED * n_sampled) + 1024
        pieces: list[tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int8]]] = []
        move = n_rest = 0
        while move < len(before) or not pieces:
            out = empty_int32(n_room), empty_int32(n_room), empty_int8(n_room)
            move, n, n_rest = walk(cells, before, after, move, max_read, *tables, *out, rest, n_rest)
            pieces.append((out[0][:n], out[1][:n], out[2][:n]))
            n_room *= 2
        if len(pieces) == 1:
            return *pieces[0], rest[:n_rest]
        moves, ids, kinds = (np.concatenate(columns) for columns in zip(*pieces, strict=True))
        return moves, ids, kinds, rest[:n_rest]

    def passed(
        self, cells: NDArray[np.int32], before: NDArray[np.int64], after: NDArray[np.int64]
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The number of the move and of the box, for boxes that a move may have gone through.

        On each axis such a box reaches into what lies between the two cells, and on one it begins or ends in it. On one
        axis the box is given by its id.
        """
        n_read = _count_read(cells, before, after, np.inf, self.shifts, self.axis_places, self.places)
        moves, boxes = empty_int32(n_read), empty_int32(n_read)
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
    max_read: float,
    shifts: NDArray[np.int64],
    axis_places: NDArray[np.int64],
    places: NDArray[np.int32],
) -> int:
    """How many entries the moves read, less those that would read too many."""
    n_all = np.int64(0)
    for move in range(len(before)):
        n_read = np.int64(0)
        for axis in range(len(cells)):
            old, new = cells[axis, before[move]], cells[axis, after[move]]
            if old != new:
                low = axis_places[axis] + (min(old, new) >> shifts[axis])
                high = axis_places[axis] + (max(old, new) >> shifts[axis])
                n_read += places[0, high + 1] - places[0, low] + places[1, high + 1] - places[1, low]
        if n_read <= max_read:
            n_all += n_read
    return n_all  # type: ignore[return-value]


@kernel
def _walk_line(
    cells: NDArray[np.int32],
    before: NDArray[np.int64],
    after: NDArray[np.int64],
    first_move: int,
    max_read: float,
    shifts: NDArray[np.int64],
    axis_places: NDArray[np.int64],
    places: NDArray[np.int32],
    entries: NDArray[np.int32],
    ends: NDArray[np.int32],
    ids: NDArray[np.int32],
    out_moves: NDArray[np.int32],
    out_ids: NDArray[np.int32],
    out_kinds: NDArray[np.int8],
    rest: NDArray[np.int32],
    n_rest: int,
) -> tuple[int, int, int]:
    """Follow moves on one axis while there is room; the next move, and how many changes and moves left out there are.

    Upwards, boxes that end below the new cell are left and boxes that start above the old one are entered; downwards it
    is the other way round. First what is left, then what is entered.
    """
    n = np.int64(0)
    shift = shifts[0]
    n_moves = len(before)
    for move in range(first_move, n_moves):
        if move + AHEAD < n_moves and before[move + AHEAD] >= 0:
            place = cells[0, before[move + AHEAD]] >> shift
            prefetch(entries, 3 * places[0, place])
            prefetch(entries, 3 * (places[1, place] + np.int64(entries.shape[2])))
        if before[move] < 0 or after[move] < 0:
            rest[n_rest] = move
            n_rest += 1
            continue
        old, new = cells[0, before[move]], cells[0, after[move]]
        if old == new:
            continue
        low, high = min(old, new), max(old, new)
        start_0, end_0 = np.int64(places[0, low >> shift]), np.int64(places[0, (high >> shift) + 1])
        start_1, end_1 = np.int64(places[1, low >> shift]), np.int64(places[1, (high >> shift) + 1])
        n_read = end_0 - start_0 + end_1 - start_1
        if n_read > max_read:
            rest[n_rest] = move
            n_rest += 1
            continue
        if n + n_read > len(out_moves):
            return move, n, n_rest  # type: ignore[return-value]
        if old > new:
            for place in range(start_0, end_0):
                own, other = entries[0, 0, place, 0], entries[0, 0, place, 1]
                out_moves[n] = move
                out_ids[n] = entries[0, 0, place, 2]
                out_kinds[n] = EXIT
                n += (own > low) & (own <= high) & (other >= high)
        for place in range(start_1, end_1):
            own, other = entries[1, 0, place, 0], entries[1, 0, place, 1]
            out_moves[n] = move
            out_ids[n] = entries[1, 0, place, 2]
            out_kinds[n] = EXIT if old < new else ENTER
            n += (own < high) & (own >= low) & (other <= low)
        if old < new:
            for place in range(start_0, end_0):
                own, other = entries[0, 0, place, 0], entries[0, 0, place, 1]
                out_moves[n] = move
                out_ids[n] = entries[0, 0, place, 2]
                out_kinds[n] = ENTER
                n += (own > low) & (own <= high) & (other >= high)
    return n_moves, n, n_rest  # type: ignore[return-value]


@kernel
def _walk_boxes(
    cells: NDArray[np.int32],
    before: NDArray[np.int64],
    after: NDArray[np.int64],
    first_move: int,
    max_read: float,
    shifts: NDArray[np.int64],
    axis_places: NDArray[np.int64],
    places: NDArray[np.int32],
    entries: NDArray[np.int32],
    ends: NDArray[np.int32],
    ids: NDArray[np.int32],
    out_moves: NDArray[np.int32],
    out_ids: NDArray[np.int32],
    out_kinds: NDArray[np.int8],
    rest: NDArray[np.int32],
    n_rest: int,
) -> tuple[int, int, int]:
    """As `_walk_line`, on several axes: what changes on one is checked on the others (Lee et al., section 4.3)."""
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
        if n + n_read > len(out_moves):
            return move, n, n_rest  # type: ignore[return-value]
        for kind in range(2):
            for axis in range(n_axes):
                old, new = cells[axis, before[move]], cells[axis, after[move]]
                if old == new:
                    continue
                side = int((kind == ENTER) == (old > new))  # by which end the box is listed
                low, high = min(old, new), max(old, new)
                start = np.int64(places[side, axis_places[axis] + (low >> shifts[axis])])
                end = np.int64(places[side, axis_places[axis] + (high >> shifts[axis]) + 1])
                for place in range(start, end):
                    own, other = entries[side, axis, place, 0], entries[side, axis, place, 1]
                    # Listed by its first cell a box holds the upper cell alone, by its last the lower one alone.
                    if side == 0:
                        changes = (own > low) & (own <= high) & (other >= high)
                    else:
                        changes = (own < high) & (own >= low) & (other <= low)
                    box = entries[side, axis, place, 2]
                    if changes and _changes_first(box, axis, kind, cells, before[move], after[move], ends):
                        out_moves[n] = move
                        out_ids[n] = ids[box]
                        out_kinds[n] = kind
                        n += 1
    return len(before), n, n_rest  # type: ignore[return-value]


@kernel
def _changes_first(
    box: int, axis: int, kind: int, cells: NDArray[np.int32], old_row: int, new_row: int, ends: NDArray[np.int32]
) -> bool:
    """Whether the box holds the inner end on the other axes too, and the outer end on all axes before this one.

    The latter, so that a box is found once: on the first axis that leaves its outer end outside.
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
                        continue
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
