"""Whether a group's cover may hold a shifted value, in integers: the cells of the cover minus the cells of the shift.

The cells of covers in the table over some values are computed once and are used for every shift until bands or the
table change. A look is a subtraction and a test of a few bits: two thirds of the time with doubles (see `by_groups`). A
margin covers rounding errors; where numbers are too large for it, doubles are used.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import config
from numba.extending import intrinsic
from numpy.typing import NDArray

from vedette.native.kernels import kernel

MARGIN = 2.0**-10  # of a cell; rounding errors are less while values and covers are within FAR cells
FAR = 2.0**40
FAR_SHIFT = 2.0**30  # cells; cells of covers are kept up to twice as far
WIDE = 200  # more cells than are looked at; such covers are always kept
SEEN = 56  # cells that are looked at at once


class CoverCells(NamedTuple):
    """The first cell of each group's cover under no shift, and how many cells follow, at most WIDE."""

    firsts: NDArray[np.int32]
    spans: NDArray[np.uint8]


if config.DISABLE_JIT:  # type: ignore[attr-defined]

    def read_bits(words: Any, byte: Any) -> Any:
        """The 64 bits from a byte on."""
        word, at = byte >> 3, np.uint64(8 * (byte & 7))
        return (words[word] >> at) | ((words[word + 1] << np.uint64(1)) << (np.uint64(63) - at))

else:

    @intrinsic
    def read_bits(typing_context: Any, words: Any, byte: Any) -> Any:
        """The 64 bits from a byte on."""

        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            data = context.make_array(words)(context, builder, arguments[0]).data
            first = builder.gep(builder.bitcast(data, ir.IntType(8).as_pointer()), [arguments[1]])
            return builder.load(builder.bitcast(first, ir.IntType(64).as_pointer()), align=1)

        return types.uint64(words, types.int64), emit


@kernel
def find_cells(
    cover_lows: NDArray[np.float64], cover_highs: NDArray[np.float64], n_groups: int, grid: NDArray[np.float64]
) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
    """The fields of `CoverCells`."""
    cells, spans = np.empty(n_groups, np.int32), np.empty(n_groups, np.uint8)
    origin, farthest = grid[0] * grid[1], 2 * FAR_SHIFT - 1
    for group in range(n_groups):
        first = np.floor(cover_lows[group] * grid[1] - origin - MARGIN)  # the difference of ends might overflow
        last = np.floor(cover_highs[group] * grid[1] - origin + MARGIN)
        first = min(first if first > -farthest else -farthest, farthest)  # NaN, unbounded, is as far as possible
        last = max(last if last < farthest else farthest, -farthest)
        cells[group], spans[group] = np.int32(first), np.uint8(min(last - first, float(WIDE)))
    return cells, spans


@kernel
def is_near(shift: float, least: float, greatest: float, grid: NDArray[np.float64]) -> bool:
    """Whether the margin covers all rounding errors, for values from `least` to `greatest`."""
    if not abs(shift) * grid[1] < FAR_SHIFT:
        return False
    farthest = max(max(abs(least), abs(greatest)), max(abs(least - grid[0]), abs(greatest - grid[0])))
    return bool(farthest * grid[1] < FAR)


@kernel
def screen_cells(
    shift: float,
    least: float,
    greatest: float,
    cells: CoverCells,
    grid: NDArray[np.float64],
    words: NDArray[np.uint64],
    kept: NDArray[np.int32],
) -> int:
    """Write the groups whose cover may hold a shifted value; how many. One look each, without a branch."""
    firsts, spans = cells
    last = np.int64(64 * (len(words) - 1) - 1)
    moved = shift * grid[1]
    down = np.int64(np.ceil(moved + MARGIN))
    wider = down - np.int64(np.floor(moved - MARGIN))
    least_cell = np.int64(np.floor((least - grid[0]) * grid[1])) - 1
    greatest_cell = np.int64(np.ceil((greatest - grid[0]) * grid[1])) + 1
    n = 0
    for group in range(len(firsts)):
        cell, more = np.int64(firsts[group]) - down, np.int64(spans[group]) + wider
        at = np.int64(min(max(cell, np.int64(0)), last))
        bits = read_bits(words, at >> 3) >> np.uint64(at & 7)
        is_held = (bits << np.uint64((63 - more) & 63)) != 0
        kept[n] = group
        n += ((cell + more >= least_cell) & (cell <= greatest_cell) & is_held) | (more > SEEN)
    return n
