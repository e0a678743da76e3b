"""A packed R-tree: boxes on any number of axes in Hilbert order, a fixed number per node, up to one root.

Packing after Roussopoulos and Leifker ("Direct Spatial Search on Pictorial Databases Using Packed R-trees", SIGMOD
1985), in the order of Kamel and Faloutsos ("On Packing R-trees", CIKM 1993): by the position of a box's centre on the
Hilbert curve. Nodes are full and need no links. It is built ten times as fast as an R-tree with insertions, and matches
about as fast. Costs a little more than 8 bytes per box and axis. A change packs all boxes again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from vedette.data.matches import Matches
from vedette.indexes.growth import collect
from vedette.indexes.hilbert import hilbert_order
from vedette.indexes.index import ANY_FIELDS, as_boxes, as_cells, count_bytes
from vedette.native.kernels import kernel

CAPACITY = 16  # entries per node


@dataclass
class PackedRTree:
    """Level `l` has the entries from `level_starts[l]` on; entry `i` of a level holds the 16 from `16 * i` on below it.

    The entries of level 0 are the boxes.
    """

    n_fields: ClassVar[range] = ANY_FIELDS

    level_starts: NDArray[np.int64]
    bounds: NDArray[np.int32]  # (entries, 2 * axes): first cells, then last ones
    ids: NDArray[np.int32]

    @classmethod
    def build(
        cls, firsts: NDArray[np.int32], lasts: NDArray[np.int32], ids: NDArray[np.int32], n_cells: Sequence[int]
    ) -> Self:
        """Index boxes on any number of axes."""
        return cls._pack(*as_boxes(firsts, lasts, ids, n_cells))

    @classmethod
    def _pack(cls, firsts: NDArray[np.int32], lasts: NDArray[np.int32], ids: NDArray[np.int32]) -> Self:
        middles = firsts + (lasts - firsts) // 2
        order = hilbert_order(middles)
        sizes = [len(ids)]
        while sizes[-1] > CAPACITY:
            sizes.append(-(-sizes[-1] // CAPACITY))
        level_starts = np.cumsum([0, *sizes], dtype=np.int64)
        bounds = np.empty((int(level_starts[-1]), 2 * len(firsts)), np.int32)
        bounds[: len(ids)] = np.concatenate([firsts, lasts])[:, order].T
        _bound_levels(level_starts, bounds)
        return cls(level_starts, bounds, ids[order])

    def match(self, cells: NDArray[np.int32]) -> Matches:
        cells = as_cells(cells)
        most = len(self) + 1
        return collect(
            cells.shape[1],
            most,
            lambda done, starts, positions: _fill(
                cells, done, starts, positions, most, self.level_starts, self.bounds, self.ids
            ),
        )

    def insert(self, firsts: NDArray[np.int32], lasts: NDArray[np.int32], ids: NDArray[np.int32]) -> None:
        """Add boxes on the same axes."""
        firsts, lasts, ids = as_boxes(firsts, lasts, ids)
        own_firsts, own_lasts = self._boxes
        self._become(
            np.concatenate([own_firsts, firsts], axis=1),
            np.concatenate([own_lasts, lasts], axis=1),
            np.concatenate([self.ids, ids]),
        )

    def remove(self, ids: NDArray[np.int32]) -> None:
        """Remove all boxes with these ids."""
        firsts, lasts = self._boxes
        kept = ~np.isin(self.ids, ids)
        self._become(firsts[:, kept], lasts[:, kept], self.ids[kept])

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def nbytes(self) -> int:
        return count_bytes(self)

    @property
    def _boxes(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        corners = self.bounds[: len(self.ids)].T
        n_axes = len(corners) // 2
        return corners[:n_axes], corners[n_axes:]

    def _become(self, firsts: NDArray[np.int32], lasts: NDArray[np.int32], ids: NDArray[np.int32]) -> None:
        self.__dict__.update(self._pack(as_cells(firsts), as_cells(lasts), ids).__dict__)


@kernel
def _bound_levels(level_starts: NDArray[np.int64], bounds: NDArray[np.int32]) -> None:
    """Write the bounds of all entries above the boxes."""
    n_axes = bounds.shape[1] // 2
    for level in range(1, len(level_starts) - 1):
        below, end = level_starts[level - 1], level_starts[level]
        for entry in range(level_starts[level + 1] - end):
            first, last = below + CAPACITY * entry, min(below + CAPACITY * (entry + 1), end)
            for axis in range(n_axes):
                low, high = bounds[first, axis], bounds[first, n_axes + axis]
                for i in range(first + 1, last):
                    low, high = min(low, bounds[i, axis]), max(high, bounds[i, n_axes + axis])
                bounds[end + entry, axis], bounds[end + entry, n_axes + axis] = low, high


@kernel
def _fill(
    cells: NDArray[np.int32],
    done: int,
    starts: NDArray[np.int64],
    positions: NDArray[np.int32],
    most: int,
    level_starts: NDArray[np.int64],
    bounds: NDArray[np.int32],
    ids: NDArray[np.int32],
) -> int:
    """Write the matches of rows from `done` on while there is room; how many rows are done then."""
    n_axes, n_rows = cells.shape
    n_levels = len(level_starts) - 1
    stack = np.empty((n_levels * CAPACITY + 1, 2), np.int64)  # a level, and the first of some entries of it
    out = starts[done]
    for row in range(done, n_rows):
        if len(positions) - out < most:
            return row
        stack[0, 0], stack[0, 1] = n_levels - 1, 0
        top = 1
        while top > 0:
            top -= 1
            level, first = stack[top, 0], stack[top, 1]
            start = level_starts[level]
            for entry in range(first, min(first + CAPACITY, level_starts[level + 1] - start)):
                holds = 1  # written whether it matches or not: no branch to mispredict
                for axis in range(n_axes):
                    cell = cells[axis, row]
                    holds &= (bounds[start + entry, axis] <= cell) & (cell <= bounds[start + entry, n_axes + axis])
                if level == 0:
                    positions[out] = ids[entry]
                    out += holds
                else:
                    stack[top, 0], stack[top, 1] = level - 1, CAPACITY * entry
                    top += holds
        starts[row + 1] = out
    return int(n_rows)
