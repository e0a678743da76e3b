"""Values in order, with insertions and deletions: short sorted blocks, a directory, and a table that leads to them.

A block holds up to 32 values; a full one is divided in two. The table divides the range of values into cells: a bit
tells whether a cell has ever held a value, which excludes most narrow bands at one look. For each stretch of cells it
has the number of blocks that begin below it. Adding or removing a value moves one block, and sometimes the directory.
About 25 bytes per value.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from vedette.native.buffers import grown
from vedette.native.kernels import plain_tuple
from vedette.operators.band_join.index.cell_screen import CoverCells, find_cells
from vedette.operators.band_join.index.group_arrays import OrderedValues
from vedette.operators.band_join.index.groups import Groups
from vedette.operators.band_join.index.point_blocks import (
    BLOCK,
    FILL,
    STRETCH,
    Blocks,
    add_to_blocks,
    fill_blocks,
    flatten_blocks,
    remove_from_blocks,
)

CELLS = 32  # cells per value
TAIL = 200  # one in this many values at either end may be outside the table, which would be too sparse otherwise,
FAR = 4  # if they make the range this many times as long
MANY = 4  # all blocks are rebuilt if one in this many values is added or removed at once
FEW_BLOCKS = 16
FEW_VALUES, FEW_FILLED = FEW_BLOCKS * BLOCK, FEW_BLOCKS * FILL  # as many as full blocks hold, and as rebuilt ones
FEW_SHIFTS = 4  # finding the cells of covers pays off for this many shifts, or at the second look-up


def _no_blocks() -> Blocks:
    values, names = np.full((1, BLOCK), np.inf), np.zeros((1, BLOCK), np.int32)
    order, firsts, sizes = np.zeros(1, np.int32), np.zeros(1), np.zeros(1, np.int32)
    return Blocks(values, names, order, firsts, sizes, np.ones(2), np.zeros(5, np.uint64), np.zeros(2, np.int32))


def _no_cells() -> CoverCells:
    return CoverCells(np.zeros(0, np.int32), np.zeros(0, np.uint8))


@dataclass
class Points:
    """Values by name, a small integer, in the first `n_blocks` blocks."""

    blocks: Blocks = field(default_factory=_no_blocks)
    arrays: Blocks = field(init=False)  # the blocks as a plain tuple, for kernels
    n_blocks: int = 0
    n: int = 0
    n_changes: int = 0  # since the blocks were built
    # The cells of the covers of some groups, and the stamp of these groups; the stamp of the last look-up.
    cells: CoverCells = field(default_factory=_no_cells)
    cells_stamp: object = None
    asked_stamp: object = None

    def __post_init__(self) -> None:
        self.arrays = plain_tuple(self.blocks)

    def __len__(self) -> int:
        return self.n

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in (*self.blocks, *self.cells))

    def add(self, values: NDArray[np.float64], names: NDArray[np.int32]) -> None:
        """Add finite values with new names."""
        n_new = len(values)
        if self.n == 0 or n_new * MANY > self.n + FEW_BLOCKS:
            old_values, old_names = self.in_order()
            self._make(np.concatenate([old_values, values]), np.concatenate([old_names, names]))
            return
        if self.n_blocks + n_new >= len(self.blocks.order):
            self._reserve(self.n_blocks + n_new + 1)
        self.n_blocks = add_to_blocks(values, names, self.arrays, self.n_blocks)
        self.n += n_new
        self._note(n_new)

    def remove(self, values: NDArray[np.float64], names: NDArray[np.int32]) -> None:
        """Remove values that are here under these names."""
        n_gone = len(values)
        if n_gone * MANY > self.n:
            old_values, old_names = self.in_order()
            kept = ~np.isin(old_names, names)
            self._make(old_values[kept], old_names[kept])
            return
        self.n_blocks = remove_from_blocks(values, names, self.arrays, self.n_blocks)
        self.n -= n_gone
        self._note(n_gone)

    def in_order(self) -> OrderedValues:
        """All values and their names, in order."""
        values, names = np.empty(self.n), np.empty(self.n, np.int32)
        flatten_blocks(self.arrays, self.n_blocks, values, names)
        return values, names

    def rename(self, new_names: NDArray[np.int32]) -> None:
        """Names become `new_names[name]`, in the same order."""
        values, names = self.in_order()
        self._make(values, new_names[names])

    def cells_of(self, groups: Groups, n_shifts: int) -> CoverCells:
        """The cells of the groups' covers where finding them pays off for this many shifts; otherwise none."""
        if self.cells_stamp is not groups.stamp:
            is_new, self.asked_stamp = self.asked_stamp is not groups.stamp, groups.stamp
            if is_new and n_shifts < FEW_SHIFTS:
                return _NO_CELLS
            table = groups.table
            found = find_cells(table.cover_lows, table.cover_highs, groups.n_groups, self.blocks.grid)
            self.cells = CoverCells(*found)
            self.cells_stamp = groups.stamp
        return self.cells

    def _note(self, n_changes: int) -> None:
        """Rebuild the blocks when the table is out of date, or blocks are mostly empty."""
        self.n_changes += n_changes
        n = self.n
        if self.n_changes > n + FEW_VALUES or self.n_blocks * FILL > 4 * n + FEW_FILLED:
            self._make(*self.in_order())

    def _make(self, values: NDArray[np.float64], names: NDArray[np.int32]) -> None:
        """Build all blocks from values."""
        by_value = np.lexsort((names, values))
        values, names = values[by_value], names[by_value]
        self.n, self.n_changes, self.cells_stamp = len(values), 0, None
        self.n_blocks = -(-self.n // FILL)
        n_rows = self.n_blocks + self.n_blocks // 4 + 1
        n_stretches = max(1, self.n * CELLS >> STRETCH)
        n_cells = n_stretches << STRETCH
        self.blocks = Blocks(
            values=np.full((n_rows, BLOCK), np.inf),
            names=np.zeros((n_rows, BLOCK), np.int32),
            order=np.arange(n_rows, dtype=np.int32),
            firsts=np.zeros(n_rows),
            sizes=np.zeros(n_rows, np.int32),
            grid=_find_grid(values, n_cells) if self.n else self.blocks.grid,
            words=np.zeros(n_cells // 64 + 1, np.uint64),
            begun=np.zeros(n_stretches + 1, np.int32),
        )
        self.arrays = plain_tuple(self.blocks)
        fill_blocks(values, names, self.arrays)

    def _reserve(self, n_rows: int) -> None:
        """Make room for more blocks than there are rows."""
        old = self.blocks
        n_before = len(old.order)
        order = grown(old.order, n_before, n_rows)
        n_after = len(order)
        order[n_before:] = np.arange(n_before, n_after)
        values, names = np.full((n_after, BLOCK), np.inf), np.zeros((n_after, BLOCK), np.int32)
        values[:n_before], names[:n_before] = old.values, old.names
        firsts, sizes = grown(old.firsts, n_before, n_after), grown(old.sizes, n_before, n_after)
        self.blocks = old._replace(values=values, names=names, order=order, firsts=firsts, sizes=sizes)
        self.arrays = plain_tuple(self.blocks)


_NO_CELLS = _no_cells()


def _find_grid(values: NDArray[np.float64], n_cells: int) -> NDArray[np.float64]:
    """Where cells begin, and cells per unit, for ordered values."""
    (low, span), limits = _find_range(values), np.finfo(np.float64)
    with np.errstate(over="ignore"):
        scale = min(n_cells / span, limits.max) if 0 < span < np.inf else limits.tiny
    return np.array([low, scale])


def _find_range(values: NDArray[np.float64]) -> tuple[float, float]:
    """The start and the length of the range of most of the values, which are in order."""
    n_out = len(values) // TAIL
    with np.errstate(over="ignore"):
        span, inner = values[-1] - values[0], values[-1 - n_out] - values[n_out]
    if span / FAR <= inner:
        return float(values[0]), float(span)
    return float(values[n_out]), float(inner)
