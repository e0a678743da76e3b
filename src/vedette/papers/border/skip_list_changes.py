"""Marking boxes in an interval skip list, and changing the list (see `interval_skip_list`).

A box marks a path from the node of its first end to that of its last: from each node the longest edge that stays within
the box, and the nodes between. So the markers depend on the nodes only. A new node splits one edge on each of its
levels. The boxes that mark one of these edges are marked via the node instead, from the farthest node before it that is
in the box and as high, to the farthest such node after it. When the node is removed, the same boxes, which mark it, get
their earlier edges back.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vedette.native.kernels import kernel
from vedette.papers.growing_lists import GrowingLists, append_to_list, remove_from_list

LEVELS = 32
HEADER, TAIL = 0, LEVELS + 1  # the nodes before and after all others
TOP, TAKEN = 0, 1  # in `limits`


class Towers(NamedTuple):
    """The nodes of an `ISList`, for kernels."""

    forward: NDArray[np.int32]
    heights: NDArray[np.int8]
    free_towers: NDArray[np.int32]
    limits: NDArray[np.int64]


@kernel
def find_path(
    node: int, stop: int, last: int, forward: NDArray[np.int32], heights: NDArray[np.int8], path: NDArray[np.int32]
) -> tuple[NDArray[np.int32], int]:
    """Write the slots that a box up to `last` marks from one node to another; `path`, or a larger one, and how many."""
    path[0] = node
    n = 1
    while node != stop:
        level = int(heights[node])
        while forward[forward[node + level]] > last:
            level -= 1
        if n + 2 > len(path):
            path = np.concatenate((path, path))
        path[n] = node + level
        node = int(forward[node + level])
        path[n + 1] = node
        n += 2
    return path, n


@kernel
def insert_boxes(
    numbers: NDArray[np.int32],
    drawn: NDArray[np.int8],
    firsts: NDArray[np.int32],
    lasts: NDArray[np.int32],
    towers: Towers,
    lists: GrowingLists,
) -> NDArray[np.int32]:
    """Add the ends of boxes that lack a node, and mark the boxes; `listed`, or a larger copy of it."""
    forward, heights, free_towers, limits = towers.forward, towers.heights, towers.free_towers, towers.limits
    starts, sizes, listed, ends = lists.starts, lists.sizes, lists.listed, lists.ends
    before = np.empty(LEVELS + 1, np.int64)
    nodes = np.empty(2, np.int64)
    path = np.empty(128, np.int32)
    for i in range(len(numbers)):
        number = numbers[i]
        for side in range(2):
            key = firsts[0, number] if side == 0 else lasts[0, number]
            nodes[side] = _find_node(key, forward, limits, before)
            if nodes[side] < 0:
                height = int(drawn[2 * i + side])
                nodes[side] = _take_tower(key, height, forward, heights, free_towers, limits)
                grown = GrowingLists(starts, sizes, listed, ends)
                listed = _link_node(nodes[side], height, before, firsts, lasts, towers, grown)
        path, n = find_path(nodes[0], nodes[1], lasts[0, number], forward, heights, path)
        for j in range(n):
            listed = append_to_list(path[j], number, starts, sizes, listed, ends)
    return listed


@kernel
def remove_boxes(
    numbers: NDArray[np.int32],
    firsts: NDArray[np.int32],
    lasts: NDArray[np.int32],
    towers: Towers,
    lists: GrowingLists,
) -> NDArray[np.int32]:
    """Remove the markers of boxes, and nodes that are no longer the end of a box; `listed`, or a larger copy of it."""
    forward, heights, free_towers, limits = towers.forward, towers.heights, towers.free_towers, towers.limits
    starts, sizes, listed, ends = lists.starts, lists.sizes, lists.listed, lists.ends
    before = np.empty(LEVELS + 1, np.int64)
    path = np.empty(128, np.int32)
    for number in numbers:
        first, last = firsts[0, number], lasts[0, number]
        start, stop = _find_node(first, forward, limits, before), _find_node(last, forward, limits, before)
        path, n = find_path(start, stop, last, forward, heights, path)
        for j in range(n):
            remove_from_list(path[j], number, starts, sizes, listed)
        for key in (first, last):
            node = _find_node(key, forward, limits, before)
            if node >= 0 and not _is_end(node, key, firsts, lasts, starts, sizes, listed):
                listed = _unlink_node(node, before, firsts, lasts, forward, heights, starts, sizes, listed, ends)
                forward[node] = free_towers[heights[node]]
                free_towers[heights[node]] = node
    return listed


@kernel
def _find_node(key: int, forward: NDArray[np.int32], limits: NDArray[np.int64], before: NDArray[np.int64]) -> int:
    """The node of a key, or -1; and in `before` the last node below it on each level."""
    node = HEADER
    for level in range(LEVELS, limits[TOP], -1):
        before[level] = node
    for level in range(limits[TOP], 0, -1):
        while forward[forward[node + level]] < key:
            node = int(forward[node + level])
        before[level] = node
    ahead = int(forward[node + 1])
    return ahead if forward[ahead] == key else -1


@kernel
def _take_tower(
    key: int,
    height: int,
    forward: NDArray[np.int32],
    heights: NDArray[np.int8],
    free_towers: NDArray[np.int32],
    limits: NDArray[np.int64],
) -> int:
    """A new node: a free one, or one after all that are used."""
    node = int(free_towers[height])
    if node >= 0:
        free_towers[height] = forward[node]
    else:
        node = int(limits[TAKEN])
        limits[TAKEN] += height + 1
    forward[node], heights[node] = key, height
    return node


@kernel
def _is_end(
    node: int,
    key: int,
    firsts: NDArray[np.int32],
    lasts: NDArray[np.int32],
    starts: NDArray[np.int32],
    sizes: NDArray[np.int32],
    listed: NDArray[np.int32],
) -> bool:
    """Whether a box begins or ends at the node; such a box marks it."""
    for place in range(starts[node], starts[node] + sizes[node]):
        number = listed[place]
        if firsts[0, number] == key or lasts[0, number] == key:
            return True
    return False


@kernel
def _find_reach(
    number: int,
    height: int,
    before: NDArray[np.int64],
    behind: NDArray[np.int64],
    firsts: NDArray[np.int32],
    lasts: NDArray[np.int32],
    forward: NDArray[np.int32],
) -> tuple[int, int]:
    """The highest levels of a node on which the node before it and the one after it are within the box."""
    low = high = height
    while forward[before[low]] < firsts[0, number]:
        low -= 1
    while forward[behind[high]] > lasts[0, number]:
        high -= 1
    return low, high


@kernel
def _link_node(
    node: int,
    height: int,
    before: NDArray[np.int64],
    firsts: NDArray[np.int32],
    lasts: NDArray[np.int32],
    towers: Towers,
    lists: GrowingLists,
) -> NDArray[np.int32]:
    """Add a node at which no box ends yet; `listed`, or a larger copy of it."""
    forward, heights, limits = towers.forward, towers.heights, towers.limits
    starts, sizes, listed, ends = lists.starts, lists.sizes, lists.listed, lists.ends
    path = np.empty(128, np.int32)
    behind = np.empty(height + 1, np.int64)
    n_crossing = 0
    for level in range(1, height + 1):
        behind[level] = forward[before[level] + level]
        n_crossing += sizes[before[level] + level]
    crossing: NDArray[np.int32] = np.empty(n_crossing, np.int32)
    n_crossing = 0
    for level in range(1, height + 1):
        cut = before[level] + level
        for i in range(sizes[cut]):
            crossing[n_crossing] = listed[starts[cut] + i]
            n_crossing += 1
        sizes[cut] = 0
    for number in crossing:
        low, high = _find_reach(number, height, before, behind, firsts, lasts, forward)
        path, n = find_path(before[low], behind[high], lasts[0, number], forward, heights, path)
        for i in range(1, n - 1):
            remove_from_list(path[i], number, starts, sizes, listed)
    for level in range(1, height + 1):
        forward[node + level] = behind[level]
        forward[before[level] + level] = node
    limits[TOP] = max(limits[TOP], height)
    for number in crossing:
        low, high = _find_reach(number, height, before, behind, firsts, lasts, forward)
        for slot in (before[low] + low, node, node + high):
            listed = append_to_list(slot, number, starts, sizes, listed, ends)
    return listed


@kernel
def _unlink_node(
    node: int,
    before: NDArray[np.int64],
    firsts: NDArray[np.int32],
    lasts: NDArray[np.int32],
    forward: NDArray[np.int32],
    heights: NDArray[np.int8],
    starts: NDArray[np.int32],
    sizes: NDArray[np.int32],
    listed: NDArray[np.int32],
    ends: NDArray[np.int64],
) -> NDArray[np.int32]:
    """Remove a node at which no box ends; `listed`, or a larger copy of it."""
    path = np.empty(128, np.int32)
    height = int(heights[node])
    crossing: NDArray[np.int32] = listed[starts[node] : starts[node] + sizes[node]].copy()
    behind = np.empty(height + 1, np.int64)
    for level in range(1, height + 1):
        # All boxes that mark an edge to or from the node mark the node.
        behind[level] = forward[node + level]
        forward[before[level] + level] = behind[level]
        sizes[before[level] + level] = sizes[node + level] = 0
    sizes[node] = 0
    for number in crossing:
        low, high = _find_reach(number, height, before, behind, firsts, lasts, forward)
        path, n = find_path(before[low], behind[high], lasts[0, number], forward, heights, path)
        for i in range(1, n - 1):
            listed = append_to_list(path[i], number, starts, sizes, listed, ends)
    return listed
