"""Values in order, that come and go: short sorted blocks under a directory, with a table that leads to them.

A block holds up to 32 values; one that is full is cut in two. The table divides the range of values into cells, 64 to
a word: a bit tells whether a cell has ever held a value, which puts most narrow bands aside at one look, and for each
word is kept how many blocks begin below it. Adding or removing a value moves one block, and now and then the
directory. About 25 bytes a value.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vedette.buffers import grown
from vedette.kernels import kernel

BLOCK = 32
FILL = 24  # values in a block that is made anew
CELLS = 16  # cells a value
TAIL = 200  # where one in so many values at either end lies far out, the table ends before: it would be thin
FAR = 4  # times the range without them
MANY = 4  # so many-th part of the values, added or removed at once, is a reason to make all blocks anew
FEW_BLOCKS = 16


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
    words: NDArray[np.uint64] = field(default_factory=lambda: np.zeros(2, np.uint64))  # one of no cells behind them
    begun: NDArray[np.int32] = field(default_factory=lambda: np.zeros(2, np.int32))  # blocks that begin below each word
    n_blocks: int = 0
    n: int = 0
    n_changes: int = 0  # since the blocks were made

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
        self.n_blocks = _add(
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
        self.n_blocks = _remove(
            values, names, self.values, self.names, self.order, self.firsts, self.sizes, self.grid, self.words,
            self.begun, self.n_blocks,
        )  # fmt: skip
        self.n -= len(values)
        self._note(len(values))

    def in_order(self) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
        """All values and their names, in order."""
        values, names = np.empty(self.n), np.empty(self.n, np.int32)
        _flatten(self.values, self.names, self.order, self.sizes, self.n_blocks, values, names)
        return values, names

    def rename(self, new_names: NDArray[np.int32]) -> None:
        """Names become `new_names[name]`, in the same order."""
        values, names = self.in_order()
        self._make(values, new_names[names])

    def _note(self, n_changes: int) -> None:
        """Make the blocks anew once the table no longer fits, or blocks are mostly empty."""
        self.n_changes += n_changes
        if self.n_changes > self.n + FEW_BLOCKS * BLOCK or self.n_blocks * FILL > 4 * self.n + FEW_BLOCKS * FILL:
            self._make(*self.in_order())

    def _make(self, values: NDArray[np.float64], names: NDArray[np.int32]) -> None:
        order = np.lexsort((names, values))
        values, names = values[order], names[order]
        self.n, self.n_changes = len(values), 0
        self.n_blocks = -(-self.n // FILL)
        n_rows = self.n_blocks + self.n_blocks // 4 + 1
        self.values, self.names = np.full((n_rows, BLOCK), np.inf), np.zeros((n_rows, BLOCK), np.int32)
        self.order = np.arange(n_rows, dtype=np.int32)
        self.firsts, self.sizes = np.zeros(n_rows), np.zeros(n_rows, np.int32)
        n_words = max(1, self.n * CELLS // 64)
        self.words, self.begun = np.zeros(n_words + 1, np.uint64), np.zeros(n_words + 1, np.int32)
        if self.n:
            low, span = _find_range(values)
            with np.errstate(over="ignore"):
                self.grid = np.array([low, 64 * n_words / span if 0 < span < np.inf else np.finfo(np.float64).tiny])
        _fill(values, names, self.values, self.names, self.firsts, self.sizes, self.grid, self.words, self.begun)

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


@kernel
def find_cell(value: float, grid: NDArray[np.float64], words: NDArray[np.uint64]) -> int:
    """The cell of a value, 64 to a word: the greater the value, the greater the cell."""
    cell, last = (value - grid[0]) * grid[1], 64.0 * (len(words) - 1) - 1.0
    cell = cell if cell > 0.0 else 0.0
    return np.int64(cell if cell < last else last)  # type: ignore[return-value]


@kernel
def find_last(values: NDArray[np.float64], order: NDArray[np.int32], n_blocks: int) -> float:
    """The greatest value of all blocks."""
    row, place = order[n_blocks - 1], values.shape[1] - 1
    while values[row, place] == np.inf:
        place -= 1
    return values[row, place]  # type: ignore[no-any-return]


@kernel
def find_first(
    shift: float,
    bound: float,
    word: int,
    values: NDArray[np.float64],
    order: NDArray[np.int32],
    firsts: NDArray[np.float64],
    begun: NDArray[np.int32],
    n_blocks: int,
) -> tuple[int, int]:
    """A block, in order, and how many of its values, shifted, are below the bound: those before all are, too.

    `word` is that of a value not above the first that is not below; there is a block at least.
    """
    block = max(begun[word] - 1, 0)
    last = min(begun[word + 1], n_blocks - 1)
    while last - block > 8:
        middle = (block + last) >> 1
        if firsts[middle] + shift < bound:
            block = middle
        else:
            last = middle
    while block + 1 < n_blocks and firsts[block + 1] + shift < bound:
        block += 1
    row = order[block]
    place = 0
    for half in (16, 8, 4, 2, 1):  # no branch to guess wrong; twice as fast as counting
        place += half if values[row, place + half - 1] + shift < bound else 0
    return block, place + (1 if values[row, place] + shift < bound else 0)


@kernel
def _fill(
    ordered: NDArray[np.float64],
    ordered_names: NDArray[np.int32],
    values: NDArray[np.float64],
    names: NDArray[np.int32],
    firsts: NDArray[np.float64],
    sizes: NDArray[np.int32],
    grid: NDArray[np.float64],
    words: NDArray[np.uint64],
    begun: NDArray[np.int32],
) -> None:
    for i in range(len(ordered)):
        block, place = i // FILL, i % FILL
        values[block, place], names[block, place] = ordered[i], ordered_names[i]
        cell = find_cell(ordered[i], grid, words)
        words[cell >> 6] |= np.uint64(1) << np.uint64(cell & 63)
        if place == 0:
            firsts[block] = ordered[i]
            begun[(cell >> 6) + 1] += 1
        sizes[block] = place + 1
    for word in range(len(begun) - 1):
        begun[word + 1] += begun[word]


@kernel
def _flatten(
    values: NDArray[np.float64],
    names: NDArray[np.int32],
    order: NDArray[np.int32],
    sizes: NDArray[np.int32],
    n_blocks: int,
    ordered: NDArray[np.float64],
    ordered_names: NDArray[np.int32],
) -> None:
    n = 0
    for block in range(n_blocks):
        row = order[block]
        for place in range(sizes[block]):
            ordered[n], ordered_names[n] = values[row, place], names[row, place]
            n += 1


@kernel
def _find_block(
    value: float,
    name: int,
    values: NDArray[np.float64],
    names: NDArray[np.int32],
    order: NDArray[np.int32],
    firsts: NDArray[np.float64],
    n_blocks: int,
) -> int:
    """The last block that begins with this or something lower; the first, if none does."""
    low, high = 0, n_blocks
    while high - low > 1:
        middle = (low + high) >> 1
        if firsts[middle] < value or (firsts[middle] == value and names[order[middle], 0] <= name):
            low = middle
        else:
            high = middle
    return low


@kernel
def _add(
    new_values: NDArray[np.float64],
    new_names: NDArray[np.int32],
    values: NDArray[np.float64],
    names: NDArray[np.int32],
    order: NDArray[np.int32],
    firsts: NDArray[np.float64],
    sizes: NDArray[np.int32],
    grid: NDArray[np.float64],
    words: NDArray[np.uint64],
    begun: NDArray[np.int32],
    n_blocks: int,
) -> int:
    """Put each value into its block; the number of blocks then."""
    for i in range(len(new_values)):
        value, name = new_values[i], new_names[i]
        block = _find_block(value, name, values, names, order, firsts, n_blocks)
        if sizes[block] == BLOCK:
            _split(block, values, names, order, firsts, sizes, n_blocks)
            n_blocks += 1
            begun[(find_cell(firsts[block + 1], grid, words) >> 6) + 1 :] += 1
            block = _find_block(value, name, values, names, order, firsts, n_blocks)
        row, place = order[block], sizes[block]
        while place > 0 and (
            values[row, place - 1] > value or (values[row, place - 1] == value and names[row, place - 1] > name)
        ):
            values[row, place], names[row, place] = values[row, place - 1], names[row, place - 1]
            place -= 1
        values[row, place], names[row, place] = value, name
        sizes[block] += 1
        cell = find_cell(value, grid, words)
        words[cell >> 6] |= np.uint64(1) << np.uint64(cell & 63)
        if place == 0:  # of the first block
            begun[(cell >> 6) + 1 : (find_cell(firsts[block], grid, words) >> 6) + 1] += 1
            firsts[block] = value
    return n_blocks


@kernel
def _split(
    block: int,
    values: NDArray[np.float64],
    names: NDArray[np.int32],
    order: NDArray[np.int32],
    firsts: NDArray[np.float64],
    sizes: NDArray[np.int32],
    n_blocks: int,
) -> None:
    """Move the upper half of a full block to a free row, which becomes the next block."""
    row, free = order[block], order[n_blocks]
    half = BLOCK // 2
    for place in range(half, BLOCK):
        values[free, place - half], names[free, place - half] = values[row, place], names[row, place]
        values[row, place] = np.inf
    for i in range(n_blocks, block + 1, -1):
        order[i], firsts[i], sizes[i] = order[i - 1], firsts[i - 1], sizes[i - 1]
    order[block + 1], firsts[block + 1], sizes[block + 1] = free, values[free, 0], BLOCK - half
    sizes[block] = half


@kernel
def _remove(
    gone_values: NDArray[np.float64],
    gone_names: NDArray[np.int32],
    values: NDArray[np.float64],
    names: NDArray[np.int32],
    order: NDArray[np.int32],
    firsts: NDArray[np.float64],
    sizes: NDArray[np.int32],
    grid: NDArray[np.float64],
    words: NDArray[np.uint64],
    begun: NDArray[np.int32],
    n_blocks: int,
) -> int:
    """Take each value out of its block; the number of blocks then."""
    for i in range(len(gone_values)):
        block = _find_block(gone_values[i], gone_names[i], values, names, order, firsts, n_blocks)
        row, place = order[block], 0
        while names[row, place] != gone_names[i]:
            place += 1
        sizes[block] -= 1
        for later in range(place, sizes[block]):
            values[row, later], names[row, later] = values[row, later + 1], names[row, later + 1]
        values[row, sizes[block]] = np.inf
        if place > 0:
            continue
        old_word = find_cell(firsts[block], grid, words) >> 6
        if sizes[block] > 0:
            firsts[block] = values[row, 0]
            begun[old_word + 1 : (find_cell(firsts[block], grid, words) >> 6) + 1] -= 1
            continue
        begun[old_word + 1 :] -= 1
        n_blocks -= 1
        for later in range(block, n_blocks):
            order[later], firsts[later], sizes[later] = order[later + 1], firsts[later + 1], sizes[later + 1]
        order[n_blocks] = row
    return n_blocks
