"""A grid over the boxes that moving objects sweep from now until their rows end.

Two layers, after Tsitsigkos and Mamoulis: an object is listed in every cell that its box touches, and the objects of a
cell are grouped by whether their box begins there, along each axis. So a look-up reads every candidate once, without a
list of those seen before. Cells have free room, and objects are inserted and removed one by one. Entries are copied to
other places when the room is used up. The grid is rebuilt from time to time, because boxes get shorter as time passes.
Boxes are in single precision, rounded outwards.

Two axes are enough for three dimensions: those along which boxes are shortest.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vedette.native.budget import BOUND, OverBudgetError, bounded, check_bytes
from vedette.native.kernels import plain_tuple
from vedette.native.threads import count_pieces, cut, run_pieces
from vedette.operators.moving_join import cells
from vedette.operators.moving_join.cells import Cells
from vedette.operators.moving_join.meetings import MEETING_BYTES, Meetings
from vedette.operators.moving_join.motion_rows import SIDES, TIME, UNTIL

SAMPLE = 500  # the size of cells is chosen from this many objects
TAIL = 0.01  # this share of the objects may be outside at each end; they are in the outermost cells
WIDE = 1.25  # the width of cells in mean widths of boxes; between 1 and 2 it hardly matters
FEW = 1000  # more look-ups than this are ordered by cell
NARROWEST = 1e-100  # an axis with a smaller extent has one cell
GROWN = 2  # with more entries than this many times those of the build, cells of another size are chosen
CROWD = 8  # the most entries per object, on average
PIECE_OBJECTS = 1 << 11  # at least, of those that a thread looks up


@dataclass
class SweptGrid:
    """Objects by the cells of the boxes that they sweep."""

    cells: Cells
    n_used: int  # places in use
    n_built: int  # entries when the grid was built
    expected: float = 4.0  # pairs per object in recent look-ups

    @property
    def shape(self) -> NDArray[np.int64]:
        """The number of cells along each of two axes, and the column of each axis in the rows."""
        return self.cells.shape

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self.cells)

    @classmethod
    def build(
        cls, rows: NDArray[np.float64], slots: NDArray[np.int32], since: float, old: SweptGrid | None = None
    ) -> SweptGrid:
        """A grid over the rows at some slots, for times from `since` on, in the memory of an old one if that fits."""
        geometry, shape = _choose_cells(rows, slots, since)
        is_old_fit = old is not None and len(old.cells.spans) == len(rows)
        spans = old.cells.spans if old is not None and is_old_fit else np.empty((len(rows), 4), np.int32)
        spans[:] = -1
        while True:
            n_cells = int(shape[0] * shape[1])
            bounds, limits = np.zeros((n_cells, 5), np.int32), np.zeros(n_cells, np.int32)
            n_entries = cells.measure(rows, slots, since, geometry, shape, spans, bounds)
            if n_entries <= CROWD * len(slots) or n_cells == 1:
                break
            shape[:2] = (shape[:2] + 1) // 2
            geometry[2:4] /= 2
        n_used = cells.leave_room(bounds, limits)
        room = n_used + n_used // 4 + 64
        if old is not None and n_used + n_used // 8 < len(old.cells.entries) < 2 * room:
            entries, boxes = old.cells.entries, old.cells.boxes
        else:
            entries, boxes = np.empty(room, np.int32), np.empty((room, 5), np.float32)
        slots = slots[cells.order_by_cell(spans[slots], shape)]
        cells.fill(rows, slots, since, geometry, shape, bounds, entries, boxes)
        expected = cls.expected if old is None else old.expected
        return cls(Cells(geometry, shape, bounds, limits, entries, boxes, spans), n_used, n_entries, expected)

    def insert(self, rows: NDArray[np.float64], slots: NDArray[np.int32], since: float) -> bool:
        """Insert new objects. Returns False if the grid must be built again, because its cells have become crowded."""
        n = len(self.cells.spans)
        if n < len(rows):
            spans = np.full((len(rows), 4), -1, np.int32)
            spans[:n] = self.cells.spans
            self.cells = self.cells._replace(spans=spans)
        done = 0
        while True:
            self.n_used, done = cells.insert(rows, slots, since, plain_tuple(self.cells), self.n_used, done)
            if done == len(slots):
                return True
            if not self._spread():
                return False

    def _spread(self) -> bool:
        """Make free room in every cell. Returns False if there are many more entries than when the grid was built."""
        old = self.cells
        bounds, limits = np.zeros_like(old.bounds), np.zeros_like(old.limits)
        bounds[:, 1:] = np.diff(old.bounds, axis=1)
        if bounds.sum() > GROWN * self.n_built + 64:
            return False
        n_used = cells.leave_room(bounds, limits)
        room = n_used + n_used // 4 + 64
        entries, boxes = np.empty(room, np.int32), np.empty((room, 5), np.float32)
        cells.copy_entries(plain_tuple(old), bounds, entries, boxes)
        self.cells, self.n_used = old._replace(bounds=bounds, limits=limits, entries=entries, boxes=boxes), n_used
        return True

    def remove(self, slots: NDArray[np.int32]) -> None:
        """Remove objects; unknown ones are ignored."""
        cells.remove(slots[slots < len(self.cells.spans)], plain_tuple(self.cells))

    def find(
        self,
        rows: NDArray[np.float64],
        slots: NDArray[np.int32],
        others: NDArray[np.float64],
        is_left_out: NDArray[np.bool_],
        since: float,
    ) -> Meetings:
        """The meetings of the rows at some slots with the others, which the grid has, that end at `since` or later.

        Column `a` has the slots of the former. Raises OverBudgetError if the meetings exceed the bound.
        """
        spans = cells.find_cells(rows, slots, since, self.cells.geometry, self.shape)
        if len(slots) > FEW:
            order = cells.order_by_cell(spans, self.shape)
            slots, spans = slots[order], spans[order]
        n_pieces = count_pieces(len(slots), PIECE_OBJECTS)
        cuts, most = cut(len(slots), n_pieces), BOUND.n_bytes // n_pieces

        def find(piece: int) -> Meetings:
            part = slice(cuts[piece], cuts[piece + 1])
            with bounded(most):
                return self._find(rows, slots[part], spans[part], others, is_left_out, since)

        if n_pieces == 1:
            meetings = self._find(rows, slots, spans, others, is_left_out, since)
        else:
            try:
                meetings = Meetings.concat(run_pieces(find, n_pieces))
            except OverBudgetError:  # if no piece exceeds its share, all meetings are within the bound
                meetings = self._find(rows, slots, spans, others, is_left_out, since)
        self.expected = max(len(meetings) / max(len(slots), 1), 0.9 * self.expected)
        return meetings

    def _find(
        self,
        rows: NDArray[np.float64],
        slots: NDArray[np.int32],
        spans: NDArray[np.int32],
        others: NDArray[np.float64],
        is_left_out: NDArray[np.bool_],
        since: float,
    ) -> Meetings:
        """The meetings of the rows at some slots, whose cells are `spans`, in the order of the slots."""
        grid, candidates = plain_tuple(self.cells), np.empty(max(1, len(others)), np.int32)
        parts, at, done, room = [], 0, 0, 1024 + int(1.25 * self.expected * len(slots))
        most = BOUND.n_bytes // MEETING_BYTES
        while True:
            found = Meetings.empty(min(room, most - done + len(others)))  # always enough for one object
            out = found.a, found.b, found.starts, found.ends
            n, at = cells.find(rows, slots, spans, at, others, is_left_out, since, grid, candidates, out)
            parts.append(found.take(slice(n)))
            done += n
            check_bytes(MEETING_BYTES * done)
            if at == len(slots):
                break
            room = len(others) + max(1024, done // 2, int(1.25 * done / max(at, 1) * (len(slots) - at)))
        return Meetings.concat(parts)


def _choose_cells(
    rows: NDArray[np.float64], slots: NDArray[np.int32], since: float
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The start of the grid and its cells per unit along each axis; then the number of cells, and the axes."""
    if not len(slots):
        return np.array([0.0, 0.0, 1.0, 1.0, since]), np.array([1, 1, SIDES, SIDES + 4])
    some = rows[slots[:: -(-len(slots) // SAMPLE)]]
    passed = (since - some[:, TIME])[:, None]
    left = np.where(np.isfinite(some[:, UNTIL]), some[:, UNTIL] - some[:, TIME], 0.0)[:, None]
    lows, highs, low_speeds, high_speeds = (some[:, SIDES + k :: 4] for k in range(4))
    lows = lows + np.minimum(low_speeds * passed, low_speeds * left)
    highs = highs + np.maximum(high_speeds * passed, high_speeds * left)
    n_outside = int(TAIL * len(some))
    begins, ends = np.sort(lows, axis=0)[n_outside], np.sort(highs, axis=0)[-1 - n_outside]
    is_wide = ends - begins > NARROWEST
    extents = np.where(is_wide, ends - begins, 1.0)
    shares = np.where(is_wide, (highs - lows).mean(axis=0) / extents, 1.0)  # the share of an axis that a box covers
    axes = np.sort(np.argsort(shares, kind="stable")[:2])
    counts = 1 / np.maximum(shares[axes] * WIDE, 1 / len(slots))
    counts *= min(1.0, np.sqrt(len(slots) / counts.prod()))
    counts = np.maximum(counts, 1).astype(np.int64)
    return np.concatenate([begins[axes], counts / extents[axes], [since]]), np.concatenate([counts, SIDES + 4 * axes])
