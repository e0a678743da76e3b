"""Cutting boxes into virtual construct rectangles, and listing them there (Wu, Chen and Yu, section 3.3).

A box is cut on each axis as an interval is, and the rectangles are all pairs of the two sets of intervals: strips, and
the rectangles of the strips.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vedette.native.kernels import kernel
from vedette.papers.growing_lists import GrowingLists, append_to_list, remove_from_list


@kernel
def list_all(
    firsts: NDArray[np.int32],
    lasts: NDArray[np.int32],
    longest: int,
    overlapped: bool,
    width: int,
    sizes: NDArray[np.int64],
    starts: NDArray[np.int32],
    listed: NDArray[np.int32],
    fill: bool,
) -> None:
    """Count the listings of each rectangle, or write them."""
    numbers = np.empty(64, np.int64)
    for box in range(firsts.shape[1]):
        numbers, n = cut_box(firsts, lasts, box, longest, overlapped, width, numbers)
        for i in range(n):
            if fill:
                listed[starts[numbers[i]] + sizes[numbers[i]]] = box
            sizes[numbers[i]] += 1


@kernel
def change_lists(
    boxes: NDArray[np.int32],
    firsts: NDArray[np.int32],
    lasts: NDArray[np.int32],
    longest: int,
    overlapped: bool,
    width: int,
    is_added: bool,
    lists: GrowingLists,
) -> NDArray[np.int32]:
    """Add boxes to their lists, or remove them; `listed`, or a larger copy of it."""
    starts, sizes, listed, ends = lists.starts, lists.sizes, lists.listed, lists.ends
    numbers = np.empty(64, np.int64)
    for i in range(len(boxes)):
        numbers, n = cut_box(firsts, lasts, i, longest, overlapped, width, numbers)
        for j in range(n):
            if is_added:
                listed = append_to_list(numbers[j], boxes[i], starts, sizes, listed, ends)
            else:
                remove_from_list(numbers[j], boxes[i], starts, sizes, listed)
    return listed


@kernel
def cut_box(
    firsts: NDArray[np.int32],
    lasts: NDArray[np.int32],
    box: int,
    longest: int,
    overlapped: bool,
    width: int,
    numbers: NDArray[np.int64],
) -> tuple[NDArray[np.int64], int]:
    """Write the numbers of the rectangles that make up a box; `numbers`, or a larger array, and how many."""
    n_lengths = 1
    while 1 << (n_lengths - 1) < longest:
        n_lengths += 1
    room = (max(lasts[0, box] - firsts[0, box], lasts[1, box] - firsts[1, box]) + 1) // longest + n_lengths + 1
    starts, powers = np.empty((2, room), np.int64), np.empty((2, room), np.int64)
    n_x = cut_side(firsts[0, box], lasts[0, box], longest, overlapped, starts[0], powers[0])
    n_y = cut_side(firsts[1, box], lasts[1, box], longest, overlapped, starts[1], powers[1])
    if n_x * n_y > len(numbers):
        numbers = np.empty(2 * n_x * n_y, np.int64)
    n = 0
    for j in range(n_y):
        for i in range(n_x):
            at = starts[0, i] + longest - 1 + (starts[1, j] + longest - 1) * width
            numbers[n] = n_lengths * n_lengths * at + powers[1, j] * n_lengths + powers[0, i]
            n += 1
    return numbers, n


@kernel
def cut_side(first: int, last: int, longest: int, overlapped: bool, starts: NDArray[Any], powers: NDArray[Any]) -> int:
    """Write the intervals that a side is cut into: their starts, and the logarithms of their lengths; how many."""
    n = 0
    start, left = first, last - first + 1
    power = 0
    while 2 << power <= min(left, longest):
        power += 1
    while left >> power > 0:
        starts[n], powers[n] = start, power
        n += 1
        start += 1 << power
        left -= 1 << power
    if left > 0 and overlapped:
        starts[n], powers[n] = last + 1 - (1 << power), power
        return n + 1
    while left > 0:
        power -= 1
        if left >> power > 0:
            starts[n], powers[n] = start, power
            n += 1
            start += 1 << power
            left -= 1 << power
    return n
