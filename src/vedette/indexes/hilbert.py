"""Hilbert order: points of any number of dimensions on a line, so that neighbours on the line are neighbours in space.

Spatial Join CQ reads data elements in this order (Lim et al., section 5.3): from one key to the next, one axis changes
by one. Keys are computed as in Skilling, "Programming the Hilbert curve" (2004): about a nanosecond per bit and axis.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vedette.indexes.index import as_cells
from vedette.native.kernels import kernel

KEY_BITS = 63  # of all axes together; axes beyond this number are ignored
SPARE_BITS = 2  # four times as many places as points: more would only sort rows within a cluster


def hilbert_order(cells: NDArray[np.int32]) -> NDArray[np.int64]:
    """The rows in Hilbert order over their bounding box. Row `i` lies at `cells[axis, i]`."""
    n_axes, n_rows = cells.shape
    if n_rows == 0 or n_axes == 0:
        return np.arange(n_rows, dtype=np.int64)
    n_bits = choose_bits(n_axes, n_rows)
    keys = np.empty(n_rows, np.int64)
    cells = as_cells(cells)
    lows, highs = cells.min(axis=1), cells.max(axis=1)
    _find_cell_keys(cells[:KEY_BITS], lows, highs, n_bits, keys)
    # Short keys are sorted by radix.
    return np.argsort(keys.astype(np.uint16) if n_axes * n_bits <= 16 else keys, kind="stable")


def hilbert_keys(places: NDArray[np.int32], n_bits: int) -> NDArray[np.int64]:
    """The key of each point `places[:, i]`, whose coordinates are below `2 ** n_bits`.

    >>> hilbert_keys(np.array([[0, 0, 1, 1], [0, 1, 1, 0]], np.int32), 1).tolist()
    [0, 1, 2, 3]
    """
    n_axes, n_points = places.shape
    if n_axes * n_bits > KEY_BITS:
        raise ValueError(f"a Hilbert key has {KEY_BITS} bits; {n_axes} axes of {n_bits} bits need more")
    keys = np.empty(n_points, np.int64)
    _find_keys(as_cells(places), n_bits, keys)
    return keys


def choose_bits(n_axes: int, n_points: int) -> int:
    """Bits of each axis, enough to distinguish `n_points` points."""
    n_axes = max(1, min(n_axes, KEY_BITS))
    wanted = -(-(n_points.bit_length() + SPARE_BITS) // n_axes)
    return max(1, min(wanted, KEY_BITS // n_axes, 31))


@kernel
def _find_cell_keys(
    cells: NDArray[np.int32],
    lows: NDArray[np.int32],
    highs: NDArray[np.int32],
    n_bits: int,
    keys: NDArray[np.int64],
) -> None:
    n_axes, n_points = cells.shape
    places = np.empty((n_axes, n_points), np.int32)
    for axis in range(n_axes):
        n_cells = np.int64(highs[axis]) - lows[axis] + 1
        for i in range(n_points):
            places[axis, i] = ((np.int64(cells[axis, i]) - lows[axis]) << n_bits) // n_cells
    _find_keys(places, n_bits, keys)


@kernel
def _find_keys(places: NDArray[np.int32], n_bits: int, keys: NDArray[np.int64]) -> None:
    """Undo the rotations and reflections of each cube, down to the last bit; then interleave the bits."""
    n_axes, n_points = places.shape
    at = np.empty(n_axes, np.int64)
    top = 1 << (n_bits - 1)
    for point in range(n_points):
        for axis in range(n_axes):
            at[axis] = places[axis, point]
        bit = top
        while bit > 1:
            below = bit - 1
            for axis in range(n_axes):
                if at[axis] & bit:
                    at[0] ^= below
                else:
                    swapped = (at[0] ^ at[axis]) & below
                    at[0] ^= swapped
                    at[axis] ^= swapped
            bit >>= 1
        for axis in range(1, n_axes):
            at[axis] ^= at[axis - 1]
        turned = np.int64(0)
        bit = top
        while bit > 1:
            if at[n_axes - 1] & bit:
                turned ^= bit - 1
            bit >>= 1
        key = np.int64(0)
        for place in range(n_bits - 1, -1, -1):
            for axis in range(n_axes):
                key = (key << 1) | (((at[axis] ^ turned) >> place) & 1)
        keys[point] = key
