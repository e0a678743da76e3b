"""Values in order, that come and go: short sorted blocks under a directory, with a table that leads to them.

A block holds up to 32 values; one that is full is cut in two. The table divides the range of values into cells: a bit
tells whether a cell has ever held a value, which puts most narrow bands aside at one look, and for each stretch of
cells is kept how many blocks begin below it. Adding or removing a value moves one block, and now and then the
directory. About 25 bytes a value.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vedette.native.buffers import grown
from vedette.operators.band_join.index.cell_screen import find_cells
from vedette.operators.band_join.index.groups import Groups
from vedette.operators.band_join.index.point_blocks import (
    BLOCK,
    FILL,
    STRETCH,
    add_to_blocks,
    fill_blocks,
    flatten_blocks,
    remove_from_blocks,
)

CELLS = 32  # cells a value
TAIL = 200  # where one in so many values at either end lies far out, the table ends before: it would be thin
FAR = 4  # times the range without them
MANY = 4  # so many-th part of the values, added or removed at once, is a reason to make all blocks anew
FEW_BLOCKS = 16
FEW_SHIFTS = 4  # so many at once, or asked for again, make the cells of covers worth finding


@dataclass
class Points:
    """Block `b` in order is row `order[b]`; the rows at `order[n_blocks:]` are free. Values of equal size are in the
    order of their names. Behind the values of a block stand infinities.
    """

    values: NDArray[np.float64] = field(default_factory=lambda: np.full((1, BLOCK), np.inf))
    names: NDArray[np.int32] = field(default_factory=lambda: np.zeros((1, BLOCK), np.int32))
    order: NDArray[np.int32] = field(default_factory=lambda: np.zeros(1, np.int32))
    firsts: NDArray[np.float64] = field(default_factory=lambda: np.zeros(1))  # of each block in order
    sizes: NDArray[np.int32] = field(default_factory=lambda: np.zeros(1, np.int32))
    grid: NDArray[np.float64] = field(default_factory=lambda: np.ones(2))  # where cells begin, and cells a unit
    words: NDArray[np.uint64] = field(default_factory=lambda: np.zeros(5, np.uint64))  # one of no cells behind them
    begun: NDArray[np.int32] = field(default_factory=lambda: np.zeros(2, np.int32))  # blocks that begin below a stretch
    n_blocks: int = 0
    n: int = 0
    n_changes: int = 0  # since the blocks were made
    # The cells of the covers of some groups, and their stamp; that of the groups asked for last.
    cells: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))
    spans: NDArray[np.uint8] = field(default_factory=lambda: np.zeros(0, np.uint8))
    cells_stamp: object = None
    asked_stamp: object = None

    def __len__(self) -> int:
        return self.n

    @property
    def nbytes(self) -> int:
        arrays = (getattr(self, each.name) for each in fields(self))
        return sum(array.nbytes for array in arrays if isinstance(array, np.ndarray))

    @property
    def arrays(self) -> tuple[Any, ...]:
        """What the kernels of look-ups take."""
        return (
            self.values, self.names, self.order, self.firsts, self.grid, self.words, self.begun, self.n_blocks
        )  # fmt: skip

    def add(self, values: NDArray[np.float64], names: NDArray[np.int32]) -> None:
        """Finite values, whose names are not here yet."""
        if self.n == 0 or len(values) * MANY > self.n + FEW_BLOCKS:
            old_values, old_names = self.in_order()
            self._make(np.concatenate([old_values, values]), np.concatenate([old_names, names]))
            return
        self._reserve(self.n_blocks + len(values) + 1)
        self.n_blocks = add_to_blocks(
            values, names, self.values, self.names, self.order, self.firsts, self.sizes, self.grid, self.words,
            self.begun, self.n_blocks,
        )  # fmt: skip
        self.n += len(values)
        self._note(len(values))

    def remove(self, values: NDArray[np.float64], names: NDArray[np.int32]) -> None:
        """Values that are here under these names."""
        if len(values) * MANY > self.n:
            old_values, old_names = self.in_order()
            kept = ~np.isin(old_names, names)
            self._make(old_values[kept], old_names[kept])
            return
        self.n_blocks = remove_from_blocks(
            values, names, self.values, self.names, self.order, self.firsts, self.sizes, self.grid, self.words,
            self.begun, self.n_blocks,
        )  # fmt: skip
        self.n -= len(values)
        self._note(len(values))

    def in_order(self) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
        """All values and their names, in order."""
        values, names = np.empty(self.n), np.empty(self.n, np.int32)
        flatten_blocks(self.values, self.names, self.order, self.sizes, self.n_blocks, values, names)
        return values, names

    def rename(self, new_names: NDArray[np.int32]) -> None:
        """Names become `new_names[name]`, in the same order."""
        values, names = self.in_order()
        self._make(values, new_names[names])

    def cells_of(self, groups: Groups, n_shifts: int) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
        """The cells of the groups' covers, where they are worth finding for so many shifts; else none."""
        if self.cells_stamp is not groups.stamp:
            is_new, self.asked_stamp = self.asked_stamp is not groups.stamp, groups.stamp
            if is_new and n_shifts < FEW_SHIFTS:
                return self.cells[:0], self.spans[:0]
            self.cells, self.spans = find_cells(groups.cover_lows, groups.cover_highs, groups.n_groups, self.grid)
            self.cells_stamp = groups.stamp
        return self.cells, self.spans

    def _note(self, n_changes: int) -> None:
        """Make the blocks anew once the table no longer fits, or blocks are mostly empty."""
        self.n_changes += n_changes
        if self.n_changes > self.n + FEW_BLOCKS * BLOCK or self.n_blocks * FILL > 4 * self.n + FEW_BLOCKS * FILL:
            self._make(*self.in_order())

    def _make(self, values: NDArray[np.float64], names: NDArray[np.int32]) -> None:
        order = np.lexsort((names, values))
        values, names = values[order], names[order]
        self.n, self.n_changes, self.cells_stamp = len(values), 0, None
        self.n_blocks = -(-self.n // FILL)
        n_rows = self.n_blocks + self.n_blocks // 4 + 1
        self.values, self.names = np.full((n_rows, BLOCK), np.inf), np.zeros((n_rows, BLOCK), np.int32)
        self.order = np.arange(n_rows, dtype=np.int32)
        self.firsts, self.sizes = np.zeros(n_rows), np.zeros(n_rows, np.int32)
        n_stretches = max(1, self.n * CELLS >> STRETCH)
        n_cells = n_stretches << STRETCH
        self.words, self.begun = np.zeros(n_cells // 64 + 1, np.uint64), np.zeros(n_stretches + 1, np.int32)
        if self.n:
            (low, span), limits = _find_range(values), np.finfo(np.float64)
            with np.errstate(over="ignore"):
                scale = min(n_cells / span, limits.max) if 0 < span < np.inf else limits.tiny
            self.grid = np.array([low, scale])
        fill_blocks(values, names, self.values, self.names, self.firsts, self.sizes, self.grid, self.words, self.begun)

    def _reserve(self, n_rows: int) -> None:
        n_before = len(self.order)
        if n_rows <= n_before:
            return
        self.order = grown(self.order, n_before, n_rows)
        n_after = len(self.order)
        self.order[n_before:] = np.arange(n_before, n_after)
        self.firsts, self.sizes = grown(self.firsts, n_before, n_after), grown(self.sizes, n_before, n_after)
        values, names = np.full((n_after, BLOCK), np.inf), np.zeros((n_after, BLOCK), np.int32)
        values[:n_before], names[:n_before] = self.values, self.names
        self.values, self.names = values, names


def _find_range(values: NDArray[np.float64]) -> tuple[float, float]:
    """Where most of the values, which are in order, begin, and how far they reach."""
    n_out = len(values) // TAIL
    with np.errstate(over="ignore"):
        span, inner = values[-1] - values[0], values[-1 - n_out] - values[n_out]
    if span / FAR <= inner:
        return float(values[0]), float(span)
    return float(values[n_out]), float(inner)
