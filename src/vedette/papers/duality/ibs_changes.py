"""Listing ranges in interval binary search trees, and changing the trees (see `ibs_tree`).

A node represents an open range between two constants above it in the tree, or the ends of the axis. Its constant
divides that range into the part below, the constant, and the part above. A range is listed for each of the three that
it covers, unless it covers the whole range of the node: then it is listed further up. So the lists depend on the shape
of the tree only, and a rotation changes only the lists of the two rotated nodes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vedette.native.kernels import kernel
from vedette.papers.growing_lists import append_to_list, remove_from_list

MOST_DEEP = 512  # a treap of a billion nodes has a depth of less than 100


class Boxes(NamedTuple):
    """Ranges of cells by axis and box, and the number of cells by axis."""

    firsts: NDArray[np.int32]
    lasts: NDArray[np.int32]
    n_cells: NDArray[np.int64]


class Tree(NamedTuple):
    """A tree for each axis: its root, and the constant and the children of each node."""

    roots: NDArray[np.int32]
    values: NDArray[np.int32]
    children: NDArray[np.int32]


class ChangingNodes(NamedTuple):
    """The trees, and what is needed to change them."""

    tree: Tree
    priorities: NDArray[np.int32]
    uses: NDArray[np.int32]
    free_nodes: NDArray[np.int32]
    n_free: NDArray[np.int64]  # one number


class Lists(NamedTuple):
    """Where the lists are (see `growing_lists`). Listed values are separate, since they may be copied as they grow."""

    starts: NDArray[np.int32]
    sizes: NDArray[np.int32]
    ends: NDArray[np.int64]


@kernel
def mark_all(
    boxes: Boxes,
    tree: Tree,
    sizes: NDArray[np.int64],
    starts: NDArray[np.int32],
    listed: NDArray[np.int32],
    fill: bool,
) -> None:
    """Count the listings of each list, or write them."""
    firsts, lasts, n_cells = boxes.firsts, boxes.lasts, boxes.n_cells
    roots, values, children = tree.roots, tree.values, tree.children
    found = np.empty(4 * MOST_DEEP, np.int32)
    stack = np.empty((8, 3), np.int64)
    for axis in range(len(roots)):
        for box in range(firsts.shape[1]):
            low, high = find_ends(firsts[axis, box], lasts[axis, box], n_cells[axis])
            n = find_lists(low, high, roots[axis], n_cells[axis], values, children, stack, found)
            for i in range(n):
                if fill:
                    listed[starts[found[i]] + sizes[found[i]]] = box
                sizes[found[i]] += 1


@kernel
def find_ends(first: int, last: int, n_cells: int) -> tuple[int, int]:
    """The ends of a range; outside of the axis where the range is unbounded."""
    return (first if first > 0 else -1), (last if last < n_cells - 1 else n_cells)


@kernel
def find_lists(
    low: int,
    high: int,
    root: int,
    n_cells: int,
    values: NDArray[np.int32],
    children: NDArray[np.int32],
    stack: NDArray[np.int64],
    found: NDArray[np.int32],
) -> int:
    """Write the lists that a range belongs to, whose ends are constants of the tree; how many."""
    n = 0
    if root < 0 or (low < 0 and high == n_cells):
        return 0
    stack[0, 0], stack[0, 1], stack[0, 2] = root, -1, n_cells
    top = 1
    while top > 0:
        top -= 1
        node, below, above = stack[top, 0], stack[top, 1], stack[top, 2]
        value = values[node]
        if low <= value <= high:
            found[n] = 3 * node + 1
            n += 1
        for side in range(2):
            start, end = (below, np.int64(value)) if side == 0 else (np.int64(value), above)
            if low <= start and end <= high:
                found[n] = 3 * node + 2 * side
                n += 1
            elif low < end and start < high and children[side, node] >= 0:
                stack[top, 0], stack[top, 1], stack[top, 2] = children[side, node], start, end
                top += 1
    return n


@kernel
def insert_boxes(
    numbers: NDArray[np.int32],
    boxes: Boxes,
    nodes: ChangingNodes,
    lists: Lists,
    listed: NDArray[np.int32],
    stamps: NDArray[np.int8],
) -> NDArray[np.int32]:
    """Add the constants of boxes that lack a node, and list the boxes; `listed`, or a larger copy of it."""
    firsts, lasts, n_cells = boxes.firsts, boxes.lasts, boxes.n_cells
    roots, values, children = nodes.tree.roots, nodes.tree.values, nodes.tree.children
    starts, sizes, ends = lists.starts, lists.sizes, lists.ends
    path = np.empty(MOST_DEEP, np.int32)
    found = np.empty(4 * MOST_DEEP, np.int32)
    stack = np.empty((8, 3), np.int64)
    for axis in range(len(roots)):
        for number in numbers:
            low, high = find_ends(firsts[axis, number], lasts[axis, number], n_cells[axis])
            for value in (low, high):
                if 0 <= value < n_cells[axis]:
                    listed = _use_constant(value, axis, nodes, path, lists, listed, stamps)
            n = find_lists(low, high, roots[axis], n_cells[axis], values, children, stack, found)
            for i in range(n):
                listed = append_to_list(found[i], number, starts, sizes, listed, ends)
    return listed


@kernel
def remove_boxes(
    numbers: NDArray[np.int32],
    boxes: Boxes,
    nodes: ChangingNodes,
    lists: Lists,
    listed: NDArray[np.int32],
    stamps: NDArray[np.int8],
) -> NDArray[np.int32]:
    """Remove boxes from their lists, and constants that no box has from the trees; `listed`, or a larger copy of it."""
    firsts, lasts, n_cells = boxes.firsts, boxes.lasts, boxes.n_cells
    roots, values, children = nodes.tree.roots, nodes.tree.values, nodes.tree.children
    starts, sizes = lists.starts, lists.sizes
    found = np.empty(4 * MOST_DEEP, np.int32)
    stack = np.empty((8, 3), np.int64)
    for axis in range(len(roots)):
        for number in numbers:
            low, high = find_ends(firsts[axis, number], lasts[axis, number], n_cells[axis])
            n = find_lists(low, high, roots[axis], n_cells[axis], values, children, stack, found)
            for i in range(n):
                remove_from_list(found[i], number, starts, sizes, listed)
            for value in (low, high):
                if 0 <= value < n_cells[axis]:
                    listed = _leave_constant(value, axis, nodes, lists, listed, stamps)
    return listed


@kernel
def _use_constant(
    value: int,
    axis: int,
    nodes: ChangingNodes,
    path: NDArray[np.int32],
    lists: Lists,
    listed: NDArray[np.int32],
    stamps: NDArray[np.int8],
) -> NDArray[np.int32]:
    """Count one more use of a constant. A new one becomes a leaf, where no range ends, and is rotated upwards."""
    roots, values, children = nodes.tree.roots, nodes.tree.values, nodes.tree.children
    priorities, uses, free_nodes, n_free = nodes.priorities, nodes.uses, nodes.free_nodes, nodes.n_free
    depth = 0
    node = roots[axis]
    while node >= 0 and values[node] != value:
        path[depth] = node
        depth += 1
        node = children[0 if value < values[node] else 1, node]
    if node >= 0:
        uses[node] += 1
        return listed
    n_free[0] -= 1
    node = free_nodes[n_free[0]]
    values[node], uses[node] = value, 1
    children[0, node] = children[1, node] = -1
    if depth == 0:
        roots[axis] = node
    else:
        children[0 if value < values[path[depth - 1]] else 1, path[depth - 1]] = node
    while depth > 0 and priorities[path[depth - 1]] < priorities[node]:
        above = path[depth - 2] if depth > 1 else -1
        listed = _turn_up(path[depth - 1], node, above, axis, nodes.tree, lists, listed, stamps)
        depth -= 1
    return listed


@kernel
def _leave_constant(
    value: int,
    axis: int,
    nodes: ChangingNodes,
    lists: Lists,
    listed: NDArray[np.int32],
    stamps: NDArray[np.int8],
) -> NDArray[np.int32]:
    """Count one use of a constant less. An unused one is rotated down until it is a leaf, and removed."""
    roots, values, children = nodes.tree.roots, nodes.tree.values, nodes.tree.children
    priorities, uses, free_nodes, n_free = nodes.priorities, nodes.uses, nodes.free_nodes, nodes.n_free
    above, node = -1, int(roots[axis])
    while values[node] != value:
        above, node = node, int(children[0 if value < values[node] else 1, node])
    uses[node] -= 1
    if uses[node] > 0:
        return listed
    while children[0, node] >= 0 or children[1, node] >= 0:
        left, right = int(children[0, node]), int(children[1, node])
        child = left if right < 0 or (left >= 0 and priorities[left] >= priorities[right]) else right
        listed = _turn_up(node, child, above, axis, nodes.tree, lists, listed, stamps)
        above = child
    if above < 0:
        roots[axis] = -1
    else:
        children[0 if children[0, above] == node else 1, above] = -1
    free_nodes[n_free[0]] = node
    n_free[0] += 1
    return listed


@kernel
def _turn_up(
    parent: int,
    child: int,
    above: int,
    axis: int,
    tree: Tree,
    lists: Lists,
    listed: NDArray[np.int32],
    stamps: NDArray[np.int8],
) -> NDArray[np.int32]:
    """Rotate a child to the place of its parent, and update the lists of both.

    The ranges that the parent listed on the child's side cover the whole child. The ranges that cover the child's inner
    side, the parent and the parent's other side now cover the whole inner side of the child, and are listed there.
    """
    roots, children = tree.roots, tree.children
    starts, sizes, ends = lists.starts, lists.sizes, lists.ends
    side = 0 if children[0, parent] == child else 1
    near, far = 3 * parent + 2 * side, 3 * parent + 2 - 2 * side
    outer, inner = 3 * child + 2 * side, 3 * child + 2 - 2 * side
    for place in range(starts[near], starts[near] + sizes[near]):
        stamps[listed[place]] += 1
    for place in range(starts[inner], starts[inner] + sizes[inner]):
        stamps[listed[place]] += 1
    reaching = np.concatenate(
        (listed[starts[near] : starts[near] + sizes[near]], listed[starts[inner] : starts[inner] + sizes[inner]])
    )
    for one in (3 * parent + 1, far):
        for place in range(starts[one], starts[one] + sizes[one]):
            stamps[listed[place]] += 1
    for i in range(sizes[near]):
        for one in (outer, 3 * child + 1):
            listed = append_to_list(one, reaching[i], starts, sizes, listed, ends)
    for one in (3 * parent + 1, far):
        kept = 0
        for place in range(starts[one], starts[one] + sizes[one]):
            number = listed[place]
            listed[starts[one] + kept] = number
            kept += stamps[number] != 3
            if stamps[number] < 3:
                stamps[number] = 0
        sizes[one] = kept
    sizes[near] = sizes[inner] = 0
    for number in reaching:
        one = inner if stamps[number] == 3 else near
        listed = append_to_list(one, number, starts, sizes, listed, ends)
        stamps[number] = 0
    children[side, parent] = children[1 - side, child]
    children[1 - side, child] = parent
    if above < 0:
        roots[axis] = child
    else:
        children[0 if children[0, above] == parent else 1, above] = child
    return listed
