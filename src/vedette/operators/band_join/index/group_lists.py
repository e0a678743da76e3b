"""Reading the lists of stabbing groups: the bands that hold a number are the first of one of the two lists."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vedette.native.kernels import kernel
from vedette.native.vectors import copy_eight
from vedette.operators.band_join.index.group_arrays import BandLists


@kernel
def count_below(number: float, numbers: NDArray[np.float64], n: int) -> int:
    """How many of the first `n` rising numbers are below a number.

    In the place of np.searchsorted, which takes a second to compile.
    """
    first = 0
    while n > 0:
        half = n >> 1
        if numbers[first + half] < number:
            first += half + 1
            n -= half + 1
        else:
            n = half
    return first


@kernel
def count_up_to(number: float, lows: NDArray[np.float64], start: int, end: int) -> int:
    """How many of the rising lows are at most the number, which the first is."""
    n, left = start, end - start
    while left > 1:  # no branch to mispredict
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
    number: float, point: float, lows: NDArray[np.float64], highs: NDArray[np.float64], start: int, end: int
) -> int:
    """How many bands of a group hold a number of its cover: they are the first of the one list, or of the other."""
    return count_up_to(number, lows, start, end) if number <= point else count_down_to(number, highs, start, end)


@kernel
def write_list(
    listed: NDArray[np.int32],
    start: int,
    n: int,
    point: int,
    shift: int,
    bands: NDArray[np.int32],
    points: NDArray[np.int32],
    shifts: NDArray[np.int32],
    at: int,
) -> None:
    """Write `n` listed bands with a point and a shift."""
    for i in range(0, n, 8):  # eight at a time, whatever follows: most lists are short
        copy_eight(bands, at + i, listed, start + i)
        for j in range(8):
            points[at + i + j] = point
        for j in range(8):
            shifts[at + i + j] = shift


@kernel
def write_affected(
    met: NDArray[np.int32],
    n_met: int,
    left: NDArray[np.float64],
    right: NDArray[np.float64],
    out: int,
    names_out: NDArray[np.int32],
    band_lows: NDArray[np.float64],
    starts: NDArray[np.int32],
    sizes: NDArray[np.int32],
    lists: BandLists,
) -> int:
    """Write the bands that hold the nearest value up to their group's point, or the nearest above; where that ends."""
    lows, low_names, highs, high_names = lists
    for i in range(n_met):
        group = met[i]
        start, end = starts[group], starts[group] + sizes[group]
        place = start
        while place < end and lows[place] <= left[group]:
            names_out[out] = low_names[place]
            out += 1
            place += 1
        place = start
        while place < end and highs[place] >= right[group]:
            if not band_lows[high_names[place]] <= left[group]:
                names_out[out] = high_names[place]
                out += 1
            place += 1
    return out
