"""Look-ups value by value, for far fewer values than groups: a tree over the groups finds their covers.

The tree has the groups in the order of their points, with the lowest lower end and the highest upper end of each
stretch of them. A shifted value is in the covers of groups above it that begin low enough, and of groups below it that
end high enough. O((values + output) log groups) per shift.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vedette.native.kernels import kernel
from vedette.operators.band_join.index.group_arrays import (
    BandLists,
    GroupTable,
    OrderedValues,
    PointOrder,
    Progress,
)
from vedette.operators.band_join.index.group_lists import (
    count_below,
    count_down_to,
    count_up_to,
    write_affected,
    write_list,
)


@kernel
def build_tree(order: PointOrder, n_groups: int, table: GroupTable, lists: BandLists) -> NDArray[np.float64]:
    """Two heaps: the lowest lower end, and the least negated upper end, of every stretch of groups.

    The leaves are the second half; the children of node `i` are `2 * i` and `2 * i + 1`.
    """
    _, groups = order
    _, _, _, _, starts, _, _ = table
    lows, _, highs, _ = lists
    size = 1
    while size < n_groups:
        size *= 2
    tree = np.full((2, 2 * size), np.inf)
    for i in range(n_groups):
        start = starts[groups[i]]
        tree[0, size + i], tree[1, size + i] = lows[start], -highs[start]
    for node in range(size - 1, 0, -1):
        for side in range(2):
            tree[side, node] = min(tree[side, 2 * node], tree[side, 2 * node + 1])
    return tree


@kernel
def _find_next(heap: NDArray[np.float64], place: int, bound: float) -> int:
    """The first leaf from a place on that is at most the bound; the number of leaves if there is none."""
    size = len(heap) // 2
    if place >= size:
        return size
    node = size + place
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
    progress: Progress,
    out: NDArray[np.int32],
    table: GroupTable,
    lists: BandLists,
    n_groups: int,
    order: PointOrder,
    tree: NDArray[np.float64],
    ordered: OrderedValues,
) -> Progress:
    """Write pairs from a shift and value on, until room runs out; the shift and value to continue with, and the end."""
    row, first_value, at = progress
    values, names = ordered
    points, groups = order
    _, _, _, _, starts, sizes, _ = table
    lows, low_names, highs, high_names = lists
    bands_out, points_out, shifts_out = out[0], out[1], out[2]
    while row < len(shifts):
        shift, name = shifts[row], shift_names[row]
        for i in range(first_value, len(values)):
            begin = at
            shifted = values[i] + shift
            middle = count_below(shifted, points, n_groups)
            place = _find_next(tree[0], middle, shifted)
            while place < n_groups:  # groups whose points are not below
                start, end = starts[groups[place]], starts[groups[place]] + sizes[groups[place]]
                n = count_up_to(shifted, lows, start, end)
                if at + n > len(bands_out) - 8:
                    return row, i, begin
                write_list(low_names, start, n, names[i], name, bands_out, points_out, shifts_out, at)
                at += n
                place = _find_next(tree[0], place + 1, shifted)
            place = _find_next(tree[1], 0, -shifted)
            while place < middle:
                start, end = starts[groups[place]], starts[groups[place]] + sizes[groups[place]]
                n = count_down_to(shifted, highs, start, end)
                if at + n > len(bands_out) - 8:
                    return row, i, begin
                write_list(high_names, start, n, names[i], name, bands_out, points_out, shifts_out, at)
                at += n
                place = _find_next(tree[1], place + 1, -shifted)
        first_value = 0
        row += 1
    return row, 0, at


@kernel
def find_affected_by_points(
    shifts: NDArray[np.float64],
    names_out: NDArray[np.int32],
    band_lows: NDArray[np.float64],
    table: GroupTable,
    lists: BandLists,
    n_groups: int,
    order: PointOrder,
    tree: NDArray[np.float64],
    values: NDArray[np.float64],
) -> int:
    """Of the groups whose points are between two shifted values, find those whose cover holds one of the two."""
    points, groups = order
    _, _, _, _, starts, sizes, _ = table
    left, right, is_met = np.empty(n_groups), np.empty(n_groups), np.zeros(n_groups, np.bool_)
    met, n_met = np.empty(n_groups, np.int32), 0
    for row in range(len(shifts)):
        end = 0
        for i in range(-1, len(values)):
            low = values[i] + shifts[row] if i >= 0 else np.nan
            high = values[i + 1] + shifts[row] if i + 1 < len(values) else np.nan
            place, end = end, n_groups
            if i + 1 < len(values):
                end = count_below(high, points, n_groups)
            for side in range(2):
                bound = -high if side else low
                if bound != bound:
                    continue
                at = _find_next(tree[side], place, bound)
                while at < end:
                    group = groups[at]
                    if not is_met[group]:
                        is_met[group], met[n_met] = True, group
                        left[group], right[group] = low, high
                        n_met += 1
                    if low > left[group] or left[group] != left[group]:
                        left[group] = low
                    if high < right[group] or right[group] != right[group]:
                        right[group] = high
                    at = _find_next(tree[side], at + 1, bound)
    return write_affected(met, n_met, left, right, 0, names_out, band_lows, starts, sizes, lists)
