"""Every row compared with every box, on any number of axes.

Wins up to a few hundred boxes, and where boxes come and go too fast to be worth an index: building it is a copy. A row costs
the number of boxes times the number of axes, in vector instructions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from vedette.buffers import empty_int32
from vedette.indexes.bits import lowest_one, without_lowest
from vedette.indexes.index import SMALL_BATCH, as_boxes, as_cells, count_bytes
from vedette.kernels import kernel
from vedette.matches import Matches


@dataclass(frozen=True)
class Scan:
    """The boxes themselves."""

    firsts: NDArray[np.int32]
    lasts: NDArray[np.int32]
    ids: NDArray[np.int32]

    @classmethod
    def build(
        cls, firsts: NDArray[np.int32], lasts: NDArray[np.int32], ids: NDArray[np.int32], n_cells: Sequence[int]
    ) -> Self:
        """Index boxes on any number of axes."""
        return cls(*as_boxes(firsts, lasts, ids))

    def match(self, cells: NDArray[np.int32]) -> Matches:
        cells = as_cells(cells)
        if cells.shape[1] <= SMALL_BATCH:
            return Matches(*_match(cells, self.firsts, self.lasts, self.ids))
        starts = np.empty(cells.shape[1] + 1, np.int64)
        starts[0] = 0
        _count(cells, self.firsts, self.lasts, starts)
        positions = empty_int32(int(starts[-1]))
        _fill(cells, self.firsts, self.lasts, self.ids, starts, positions)
        return Matches(starts, positions)

    @property
    def nbytes(self) -> int:
        return count_bytes(self)


@kernel
def _match(
    cells: NDArray[np.int32], firsts: NDArray[np.int32], lasts: NDArray[np.int32], ids: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    starts = np.zeros(cells.shape[1] + 1, np.int64)
    _count(cells, firsts, lasts, starts)
    positions = np.empty(starts[-1], np.int32)
    _fill(cells, firsts, lasts, ids, starts, positions)
    return starts, positions


@kernel
def _test(
    cells: NDArray[np.int32], row: int, firsts: NDArray[np.int32], lasts: NDArray[np.int32], holds: NDArray[np.uint8]
) -> None:
    """Set `holds[box]` to 1 where the box holds the row, else to 0."""
    n = firsts.shape[1]
    cell = cells[0, row]
    for box in range(n):
        holds[box] = (firsts[0, box] <= cell) & (cell <= lasts[0, box])
    for axis in range(1, firsts.shape[0]):
        cell = cells[axis, row]
        for box in range(n):
            holds[box] &= (firsts[axis, box] <= cell) & (cell <= lasts[axis, box])


@kernel
def _count(
    cells: NDArray[np.int32], firsts: NDArray[np.int32], lasts: NDArray[np.int32], starts: NDArray[np.int64]
) -> None:
    n = firsts.shape[1]
    holds = np.zeros((n + 7) // 8 * 8, np.uint8)
    for row in range(cells.shape[1]):
        _test(cells, row, firsts, lasts, holds)
        found = 0
        for box in range(n):
            found += holds[box]
        starts[row + 1] = starts[row] + found


@kernel
def _fill(
    cells: NDArray[np.int32],
    firsts: NDArray[np.int32],
    lasts: NDArray[np.int32],
    ids: NDArray[np.int32],
    starts: NDArray[np.int64],
    positions: NDArray[np.int32],
) -> None:
    holds = np.zeros((firsts.shape[1] + 7) // 8 * 8, np.uint8)
    eights = holds.view(np.int64)
    for row in range(cells.shape[1]):
        if starts[row] == starts[row + 1]:
            continue
        _test(cells, row, firsts, lasts, holds)
        out = starts[row]
        for i in range(len(eights)):
            eight = eights[i]
            while eight != 0:
                positions[out] = ids[8 * i + (lowest_one(eight) >> 3)]
                out += 1
                eight = without_lowest(eight)
