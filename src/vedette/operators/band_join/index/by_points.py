"""Look-ups value by value, for values that are few beside the groups: a tree over the groups finds their covers.

The groups in the order of their points, with the lowest lower end, and the highest upper end, of each stretch of them:
a shifted value is in the covers of groups beyond it that begin early enough, and of groups before it that end late
enough. O((values + output) log groups) a shift.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vedette.native.kernels import kernel
from vedette.operators.band_join.index.group_lists import count_down_to, count_up_to, write_affected, write_list


@kernel
def build_tree(
    ordered: NDArray[np.int32],
    n_groups: int,
    starts: NDArray[np.int32],
    list_lows: NDArray[np.float64],
    list_highs: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Two heaps: the least lower end, and the least negated upper end, of every stretch of groups.

    The leaves are the second half; the nodes below node `i` are `2 * i` and `2 * i + 1`.
    """
    size = 1
    while size < n_groups:
        size *= 2
    tree = np.full((2, 2 * size), np.inf)
    for i in range(n_groups):
        start = starts[ordered[i]]
        tree[0, size + i], tree[1, size + i] = list_lows[start], -list_highs[start]
    for node in range(size - 1, 0, -1):
        for side in range(2):
            tree[side, node] = min(tree[side, 2 * node], tree[side, 2 * node + 1])
    return tree


@kernel
def _find_next(heap: NDArray[np.float64], place: int | np.int64, bound: float) -> int:
    """The first leaf from a place on that is at most the bound; behind all leaves, if none is."""
    size = len(heap) // 2
    if place >= size:
        return size
    node = size + int(place)
    while heap[node] > bound:
        while node & 1:
            node >>= 1
        if node == 0:
            return size
        node += 1
    while node < size:
        node *= 2
        node += heap[node] > bound
    return node - size


@kernel
def find_pairs_by_points(
    shifts: NDArray[np.float64],
    shift_names: NDArray[np.int32],
    row: int,
    first_value: int,
    out: int,
    bands_out: NDArray[np.int32],
    points_out: NDArray[np.int32],
    names_out: NDArray[np.int32],
    starts: NDArray[np.int32],
    sizes: NDArray[np.int32],
    list_lows: NDArray[np.float64],
    low_names: NDArray[np.int32],
    list_highs: NDArray[np.float64],
    high_names: NDArray[np.int32],
    n_groups: int,
    ordered_points: NDArray[np.float64],
    ordered: NDArray[np.int32],
    tree: NDArray[np.float64],
    values: NDArray[np.float64],
    names: NDArray[np.int32],
) -> tuple[int, int, int]:
    """Write what is met from a row and value on, until room runs out: the row and value to go on with, and the end."""
    while row < len(shifts):
        shift, name = shifts[row], shift_names[row]
        for i in range(first_value, len(values)):
            begin = out
            shifted = values[i] + shift
            middle = np.searchsorted(ordered_points[:n_groups], shifted)
            place = _find_next(tree[0], middle, shifted)
            while place < n_groups:  # groups whose points are not below
                start, end = starts[ordered[place]], starts[ordered[place]] + sizes[ordered[place]]
                n = count_up_to(shifted, list_lows, start, end)
                if out + n > len(bands_out) - 8:
                    return row, i, begin
                write_list(low_names, start, n, names[i], name, bands_out, points_out, names_out, out)
                out += n
                place = _find_next(tree[0], place + 1, shifted)
            place = _find_next(tree[1], 0, -shifted)
            while place < middle:
                start, end = starts[ordered[place]], starts[ordered[place]] + sizes[ordered[place]]
                n = count_down_to(shifted, list_highs, start, end)
                if out + n > len(bands_out) - 8:
                    return row, i, begin
                write_list(high_names, start, n, names[i], name, bands_out, points_out, names_out, out)
                out += n
                place = _find_next(tree[1], place + 1, -shifted)
        first_value = 0
        row += 1
    return row, 0, out


@kernel
def find_affected_by_points(
    shifts: NDArray[np.float64],
    names_out: NDArray[np.int32],
    lows: NDArray[np.float64],
    starts: NDArray[np.int32],
    sizes: NDArray[np.int32],
    list_lows: NDArray[np.float64],
    low_names: NDArray[np.int32],
    list_highs: NDArray[np.float64],
    high_names: NDArray[np.int32],
    n_groups: int,
    ordered_points: NDArray[np.float64],
    ordered: NDArray[np.int32],
    tree: NDArray[np.float64],
    values: NDArray[np.float64],
) -> int:
    """Of the groups with their points between two shifted values, those that one of the two is in."""
    left, right, is_met = np.empty(n_groups), np.empty(n_groups), np.zeros(n_groups, np.bool_)
    met, n_met = np.empty(n_groups, np.int32), 0
    for row in range(len(shifts)):
        end = np.int64(0)
        for i in range(-1, len(values)):
            low = values[i] + shifts[row] if i >= 0 else np.nan
            high = values[i + 1] + shifts[row] if i + 1 < len(values) else np.nan
            place, end = end, np.int64(n_groups)
            if i + 1 < len(values):
                end = np.searchsorted(ordered_points[:n_groups], high)
            for side in range(2):
                bound = -high if side else low
                if bound != bound:
                    continue
                at = _find_next(tree[side], place, bound)
                while at < end:
                    group = ordered[at]
                    if not is_met[group]:
                        is_met[group], met[n_met] = True, group
                        left[group], right[group] = low, high
                        n_met += 1
                    if low > left[group] or left[group] != left[group]:
                        left[group] = low
                    if high < right[group] or right[group] != right[group]:
                        right[group] = high
                    at = _find_next(tree[side], at + 1, bound)
    return write_affected(
        met, n_met, left, right, 0, names_out, lows, starts, sizes, list_lows, low_names, list_highs, high_names
    )  # fmt: skip
