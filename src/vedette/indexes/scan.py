"""Every row compared with every box, on any number of axes.

Best for boxes that change too fast to be worth an index, because building it is a copy; as fast as the others for some
tens of boxes. A row costs the number of boxes times the number of axes, in vector instructions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from vedette.data.matches import Matches
from vedette.indexes.estimates import BoxFacts, Estimate
from vedette.indexes.growth import collect
from vedette.indexes.index import ANY_FIELDS, as_boxes, as_cells, count_bytes
from vedette.native.bits import lowest_one, without_lowest
from vedette.native.damage import check_fields, check_shape, check_within
from vedette.native.kernels import kernel

ONE_CALL = 1 << 20  # rows times boxes up to which one kernel call does everything
SLACK = 8


@dataclass(frozen=True)
class Scan:
    """The boxes themselves."""

    n_fields: ClassVar[range] = ANY_FIELDS
    wins_for: ClassVar[str] = "a few boxes"
    needs: ClassVar[str] = ""
    needs_points: ClassVar[bool] = False

    firsts: NDArray[np.int32]
    lasts: NDArray[np.int32]
    ids: NDArray[np.int32]

    @classmethod
    def build(
        cls, firsts: NDArray[np.int32], lasts: NDArray[np.int32], ids: NDArray[np.int32], n_cells: Sequence[int]
    ) -> Self:
        """Index boxes on any number of axes."""
        return cls(*as_boxes(firsts, lasts, ids, n_cells))

    @classmethod
    def estimate(cls, facts: BoxFacts) -> list[Estimate]:
        cost = 10 + 0.12 * facts.n * len(facts.axes) + 1.2 * facts.matches
        return [Estimate(facts.axes, cost, f"{facts.n:,} boxes are few enough to try each")]

    def match(self, cells: NDArray[np.int32]) -> Matches:
        cells = as_cells(cells)
        n_rows = cells.shape[1]
        if n_rows * len(self.ids) <= ONE_CALL:
            return Matches(*_match(cells, self.firsts, self.lasts, self.ids))
        return collect(
            n_rows,
            len(self.ids) + SLACK,
            lambda done, starts, positions: _fill(cells, done, starts, positions, self.firsts, self.lasts, self.ids),
        )

    def validate(self, n_cells: Sequence[int], ids: range) -> None:
        check_fields(self)
        for cells in (self.firsts, self.lasts):
            check_shape(cells, (len(n_cells), len(self.ids)), "the cells of a scan")
            for axis, n in enumerate(n_cells):
                check_within(cells[axis], 0, n - 1, "the cells of a scan")
        check_shape(self.ids, (len(self.ids),), "the ids of a scan")
        check_within(self.ids, ids.start, ids.stop - 1, "the ids of a scan")

    def has_boxes(self, firsts: NDArray[np.int32], lasts: NDArray[np.int32], ids: NDArray[np.int32]) -> bool:
        """Whether the index has exactly these boxes."""
        same = (self.firsts, firsts), (self.lasts, lasts), (self.ids, ids)
        return all(np.array_equal(own, given) for own, given in same)

    @property
    def nbytes(self) -> int:
        return count_bytes(self)


@kernel
def _match(
    cells: NDArray[np.int32], firsts: NDArray[np.int32], lasts: NDArray[np.int32], ids: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    starts = np.zeros(cells.shape[1] + 1, np.int64)
    positions = np.empty((cells.shape[1] + 1) * len(ids) + SLACK, np.int32)
    _fill(cells, 0, starts, positions, firsts, lasts, ids)
    return starts, positions[: starts[-1]].copy()


@kernel
def _fill(
    cells: NDArray[np.int32],
    done: int,
    starts: NDArray[np.int64],
    positions: NDArray[np.int32],
    firsts: NDArray[np.int32],
    lasts: NDArray[np.int32],
    ids: NDArray[np.int32],
) -> int:
    """Write the matches of rows from `done` on while there is room. Returns how many rows are done."""
    n_axes, n = firsts.shape
    is_inside = np.zeros((n + 7) // 8 * 8, np.uint8)
    eights = is_inside.view(np.int64)
    out = starts[done]
    for row in range(done, cells.shape[1]):
        if len(positions) - out < n + SLACK:
            return row
        cell = cells[0, row]
        for box in range(n):
            is_inside[box] = (firsts[0, box] <= cell) & (cell <= lasts[0, box])
        for axis in range(1, n_axes):
            cell = cells[axis, row]
            for box in range(n):
                is_inside[box] &= (firsts[axis, box] <= cell) & (cell <= lasts[axis, box])
        for i in range(len(eights)):
            eight = eights[i]
            while eight != 0:
                positions[out] = ids[8 * i + (lowest_one(eight) >> 3)]
                out += 1
                eight = without_lowest(eight)
        starts[row + 1] = out
    return int(cells.shape[1])
