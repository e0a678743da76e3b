"""Kernels over sorted blocks of values, with a directory of the blocks and a table of cells that leads to them.

Kernels that are called in inner loops take arrays: reading an array from a tuple there costs about a tenth of the time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vedette.native.kernels import kernel
from vedette.native.prefetch import prefetch

BLOCK = 32
FILL = 24  # values in a block that is made anew
STRETCH = 8  # 2 to the power of this is the number of cells in a stretch


class Blocks(NamedTuple):
    """Block `b` in order is row `order[b]`; the other rows of `order` are free. Unused places of a block are infinite.

    Equal values are in the order of their names. The tuple is replaced only when an array grows.
    """

    values: NDArray[np.float64]  # (n_rows, BLOCK)
    names: NDArray[np.int32]  # (n_rows, BLOCK)
    order: NDArray[np.int32]
    firsts: NDArray[np.float64]  # the first value of each block, in order
    sizes: NDArray[np.int32]  # of each block, in order
    grid: NDArray[np.float64]  # where cells begin, and cells per unit
    words: NDArray[np.uint64]  # one bit per cell: it held a value at some time; the last word has no cells
    begun: NDArray[np.int32]  # by stretch of cells, the blocks that begin below it


@kernel
def find_cell(value: float, grid: NDArray[np.float64], words: NDArray[np.uint64]) -> int:
    """The cell of a value, 64 to a word: the greater the value, the greater the cell. NaN is in the first cell."""
    cell, last = (value - grid[0]) * grid[1], 64.0 * (len(words) - 1) - 1.0
    cell = cell if cell > 0.0 else 0.0
    return np.int64(cell if cell < last else last)  # type: ignore[return-value]


@kernel
def find_last_cell(value: float, grid: NDArray[np.float64], words: NDArray[np.uint64]) -> int:
    """The same, but NaN is in the last cell."""
    cell, last = (value - grid[0]) * grid[1], 64.0 * (len(words) - 1) - 1.0
    cell = cell if cell < last else last
    return np.int64(cell if cell > 0.0 else 0.0)  # type: ignore[return-value]


@kernel
def find_last(values: NDArray[np.float64], order: NDArray[np.int32], n_blocks: int) -> float:
    """The greatest value of all blocks."""
    row, place = order[n_blocks - 1], values.shape[1] - 1
    while values[row, place] == np.inf:
        place -= 1
    return values[row, place]  # type: ignore[no-any-return]


@kernel
def may_hold(
    low: float, high: float, least: float, greatest: float, grid: NDArray[np.float64], words: NDArray[np.uint64]
) -> bool:
    """Whether a value may be between two numbers, by one look into the table, without a branch.

    `least` and `greatest` are the ends of all values. NaN means unbounded: comparisons with it are false.
    """
    low_cell, high_cell = find_cell(low, grid, words), find_last_cell(high, grid, words)
    word, at = low_cell >> 6, np.uint64(low_cell & 63)
    seen = (words[word] >> at) | ((words[word + 1] << np.uint64(1)) << (np.uint64(63) - at))
    more = high_cell - low_cell
    held = (seen << (np.uint64(63) - np.uint64(min(max(more, 0), 63)))) != 0
    return (not high < least) & (not low > greatest) & (held | (more > 63))  # type: ignore[no-any-return]


@kernel
def find_first(
    shift: float,
    below: float,
    cell: int,
    values: NDArray[np.float64],
    order: NDArray[np.int32],
    firsts: NDArray[np.float64],
    begun: NDArray[np.int32],
    n_blocks: int,
) -> tuple[int, int]:
    """A block, in order, and how many of its shifted values are at most `below`; all values before it are, too.

    `cell` is that of a value that is not above the first greater one. There is at least one block. No value is at most
    NaN.
    """
    stretch = cell >> STRETCH
    block = max(begun[stretch] - 1, 0)
    last = min(begun[stretch + 1], n_blocks - 1)
    while last - block > 8:
        middle = (block + last) >> 1
        if firsts[middle] + shift <= below:
            block = middle
        else:
            last = middle
    while block + 1 < n_blocks and firsts[block + 1] + shift <= below:
        block += 1
    row = order[block]
    place = 0
    for half in (16, 8, 4, 2, 1):  # no branch to mispredict; twice as fast as counting
        place += half if values[row, place + half - 1] + shift <= below else 0
    return block, place + (1 if values[row, place] + shift <= below else 0)


@kernel
def fetch_block(cell: int, values: NDArray[np.float64], order: NDArray[np.int32], begun: NDArray[np.int32]) -> None:
    """Prefetch what `find_first` reads for a cell."""
    row = order[max(begun[cell >> STRETCH] - 1, 0)]
    for place in range(0, BLOCK, 8):
        prefetch(values, row * BLOCK + place)


@kernel
def fill_blocks(ordered: NDArray[np.float64], ordered_names: NDArray[np.int32], blocks: Blocks) -> None:
    """Write ordered values into empty blocks."""
    values, names, _, firsts, sizes, grid, words, begun = blocks
    for i in range(len(ordered)):
        block, place = i // FILL, i % FILL
        values[block, place], names[block, place] = ordered[i], ordered_names[i]
        cell = find_cell(ordered[i], grid, words)
        words[cell >> 6] |= np.uint64(1) << np.uint64(cell & 63)
        if place == 0:
            firsts[block] = ordered[i]
            begun[(cell >> STRETCH) + 1] += 1
        sizes[block] = place + 1
    for stretch in range(len(begun) - 1):
        begun[stretch + 1] += begun[stretch]


@kernel
def flatten_blocks(
    blocks: Blocks, n_blocks: int, ordered: NDArray[np.float64], ordered_names: NDArray[np.int32]
) -> None:
    """Write the values of all blocks, in order."""
    values, names, order, _, sizes, _, _, _ = blocks
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
    names: NDArray[np.int32],
    order: NDArray[np.int32],
    firsts: NDArray[np.float64],
    n_blocks: int,
) -> int:
    """The last block that begins with this value and name or a lower one; otherwise the first."""
    low, high = 0, n_blocks
    while high - low > 1:
        middle = (low + high) >> 1
        if firsts[middle] < value or (firsts[middle] == value and names[order[middle], 0] <= name):
            low = middle
        else:
            high = middle
    return low


@kernel
def _count(change: int, begun: NDArray[np.int32], first: int, last: int) -> None:
    """Add a number to `begun[first:last]`. It is a loop because changing a slice takes a second to compile."""
    for stretch in range(first, last):
        begun[stretch] += change


@kernel
def add_to_blocks(new_values: NDArray[np.float64], new_names: NDArray[np.int32], blocks: Blocks, n_blocks: int) -> int:
    """Insert each value into its block; the number of blocks then."""
    values, names, order, firsts, sizes, grid, words, begun = blocks
    for i in range(len(new_values)):
        value, name = new_values[i], new_names[i]
        block = _find_block(value, name, names, order, firsts, n_blocks)
        if sizes[block] == BLOCK:
            _split(block, values, names, order, firsts, sizes, n_blocks)
            n_blocks += 1
            _count(1, begun, (find_cell(firsts[block + 1], grid, words) >> STRETCH) + 1, len(begun))
            block = _find_block(value, name, names, order, firsts, n_blocks)
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
            _count(1, begun, (cell >> STRETCH) + 1, (find_cell(firsts[block], grid, words) >> STRETCH) + 1)
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
def remove_from_blocks(
    gone_values: NDArray[np.float64], gone_names: NDArray[np.int32], blocks: Blocks, n_blocks: int
) -> int:
    """Remove each value from its block; the number of blocks then."""
    values, names, order, firsts, sizes, grid, words, begun = blocks
    for i in range(len(gone_values)):
        block = _find_block(gone_values[i], gone_names[i], names, order, firsts, n_blocks)
        row, place = order[block], 0
        while names[row, place] != gone_names[i]:
            place += 1
        sizes[block] -= 1
        for later in range(place, sizes[block]):
            values[row, later], names[row, later] = values[row, later + 1], names[row, later + 1]
        values[row, sizes[block]] = np.inf
        if place > 0:
            continue
        stretch = find_cell(firsts[block], grid, words) >> STRETCH
        if sizes[block] > 0:
            firsts[block] = values[row, 0]
            _count(-1, begun, stretch + 1, (find_cell(firsts[block], grid, words) >> STRETCH) + 1)
            continue
        _count(-1, begun, stretch + 1, len(begun))
        n_blocks -= 1
        for later in range(block, n_blocks):
            order[later], firsts[later], sizes[later] = order[later + 1], firsts[later + 1], sizes[later + 1]
        order[n_blocks] = row
    return n_blocks
