"""Reading the lists of stabbing groups: the bands that hold a number begin the one list or the other."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vedette.native.kernels import kernel
from vedette.native.vectors import copy_eight


@kernel
def count_up_to(number: float, lows: NDArray[np.float64], start: int, end: int) -> int:
    """How many of the rising lows are at most the number, which the first is."""
    n, left = start, end - start
    while left > 1:  # no branch to guess wrong
        half = left >> 1
        n += half if lows[n + half] <= number else 0
        left -= half
    return n + 1 - start


@kernel
def count_down_to(number: float, highs: NDArray[np.float64], start: int, end: int) -> int:
    """How many of the falling highs are at least the number, which the first is."""
    n, left = start, end - start
    while left > 1:
        half = left >> 1
        n += half if highs[n + half] >= number else 0
        left -= half
    return n + 1 - start


@kernel
def count_holding(
    number: float, stab: float, lows: NDArray[np.float64], highs: NDArray[np.float64], start: int, end: int
) -> int:
    """How many bands of a group hold a number of its cover: so many begin the one list, or the other."""
    return count_up_to(number, lows, start, end) if number <= stab else count_down_to(number, highs, start, end)


@kernel
def write_list(
    listed: NDArray[np.int32],
    start: int,
    n: int,
    point: int,
    name: int,
    bands_out: NDArray[np.int32],
    points_out: NDArray[np.int32],
    names_out: NDArray[np.int32],
    out: int,
) -> None:
    for i in range(0, n, 8):  # eight at a time, whatever stands behind: most lists are short
        copy_eight(bands_out, out + i, listed, start + i)
        for j in range(8):
            points_out[out + i + j] = point
        for j in range(8):
            names_out[out + i + j] = name


@kernel
def write_affected(
    met: NDArray[np.int32],
    n_met: int,
    left: NDArray[np.float64],
    right: NDArray[np.float64],
    out: int,
    names_out: NDArray[np.int32],
    lows: NDArray[np.float64],
    starts: NDArray[np.int32],
    sizes: NDArray[np.int32],
    list_lows: NDArray[np.float64],
    low_names: NDArray[np.int32],
    list_highs: NDArray[np.float64],
    high_names: NDArray[np.int32],
) -> int:
    """Write the bands that hold the nearest value up to their group's point, or the nearest beyond; where that ends."""
    for i in range(n_met):
        group = met[i]
        start, end = starts[group], starts[group] + sizes[group]
        place = start
        while place < end and list_lows[place] <= left[group]:
            names_out[out] = low_names[place]
            out += 1
            place += 1
        place = start
        while place < end and list_highs[place] >= right[group]:
            if not lows[high_names[place]] <= left[group]:
                names_out[out] = high_names[place]
                out += 1
            place += 1
    return out
