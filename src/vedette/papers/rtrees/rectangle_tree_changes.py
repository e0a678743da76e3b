"""Changes of an R-tree: Guttman's algorithms, by his names (see `rectangle_tree`)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vedette.native.kernels import kernel

CAPACITY = 32  # M, the most entries of a node
LEAST = 12  # m, the fewest entries of a node other than the root
SPARE = 1024  # nodes that the removal of a box may need for entries that it inserts again
ROOT, N_NODES, N_FREE, N_BOXES = 0, 1, 2, 3  # in `counts`


class Nodes(NamedTuple):
    """The nodes of an `RTree`, for kernels."""

    bounds: NDArray[np.int32]
    children: NDArray[np.int32]
    sizes: NDArray[np.int32]
    levels: NDArray[np.int32]
    parents: NDArray[np.int32]
    free_nodes: NDArray[np.int32]
    counts: NDArray[np.int64]


@kernel
def insert_boxes(
    firsts: NDArray[np.int32],
    lasts: NDArray[np.int32],
    ids: NDArray[np.int32],
    done: int,
    nodes: Nodes,
) -> int:
    """Insert boxes from `done` on while there are free nodes; how many are done then."""
    bounds, children, sizes, levels = nodes.bounds, nodes.children, nodes.sizes, nodes.levels
    parents, free_nodes, counts = nodes.parents, nodes.free_nodes, nodes.counts
    n_axes, n_boxes = firsts.shape
    box = np.empty(2 * n_axes, np.int32)
    for i in range(done, n_boxes):
        if len(sizes) - counts[N_NODES] + counts[N_FREE] < levels[counts[ROOT]] + 2:
            return i
        for axis in range(n_axes):
            box[axis], box[n_axes + axis] = firsts[axis, i], lasts[axis, i]
        _insert(box, ids[i], 0, bounds, children, sizes, levels, parents, free_nodes, counts)
        counts[N_BOXES] += 1
    return int(n_boxes)


@kernel
def remove_entry(
    leaf: int,
    entry: int,
    nodes: Nodes,
) -> None:
    """Remove an entry from a leaf. CondenseTree: underfull nodes are dissolved, and their entries inserted again."""
    bounds, children, sizes, levels = nodes.bounds, nodes.children, nodes.sizes, nodes.levels
    parents, free_nodes, counts = nodes.parents, nodes.free_nodes, nodes.counts
    counts[N_BOXES] -= 1
    _drop(leaf, entry, bounds, children, sizes)
    n_dimensions = bounds.shape[2]
    room = (levels[counts[ROOT]] + 1) * CAPACITY
    boxes = np.empty((room, n_dimensions), np.int32)
    orphans, heights = np.empty(room, np.int32), np.empty(room, np.int32)
    n = 0
    node = leaf
    while parents[node] >= 0:
        parent = parents[node]
        own = _find_child(parent, node, children)
        if sizes[node] < LEAST:
            for i in range(sizes[node]):
                boxes[n], orphans[n], heights[n] = bounds[node, i], children[node, i], levels[node]
                n += 1
            _drop(parent, own, bounds, children, sizes)
            sizes[node] = 0
            free_nodes[counts[N_FREE]] = node
            counts[N_FREE] += 1
        else:
            _bound(node, bounds, sizes, bounds[parent, own])
        node = parent
    for i in range(n - 1, -1, -1):  # the highest first, while the tree still has that height
        _insert(boxes[i], orphans[i], heights[i], bounds, children, sizes, levels, parents, free_nodes, counts)
    root = counts[ROOT]
    while levels[root] > 0 and sizes[root] <= 1:
        if sizes[root] == 0:
            levels[root] = 0
            break
        child = np.int64(children[root, 0])
        sizes[root] = 0
        free_nodes[counts[N_FREE]] = root
        counts[N_FREE] += 1
        counts[ROOT], parents[child] = child, -1
        root = child


@kernel
def _insert(
    box: NDArray[np.int32],
    child: int,
    level: int,
    bounds: NDArray[np.int32],
    children: NDArray[np.int32],
    sizes: NDArray[np.int32],
    levels: NDArray[np.int32],
    parents: NDArray[np.int32],
    free_nodes: NDArray[np.int32],
    counts: NDArray[np.int64],
) -> None:
    """Insert an entry into a node of a level: ChooseLeaf, and AdjustTree upwards from there."""
    node = int(counts[ROOT])
    while levels[node] > level:
        entry = _choose_entry(node, box, bounds, sizes)
        _widen(bounds[node, entry], box)
        node = int(children[node, entry])
    _add(node, box, child, level, bounds, children, sizes, parents)
    while sizes[node] > CAPACITY:
        other = _split(node, bounds, children, sizes, levels, parents, free_nodes, counts)
        if parents[node] < 0:
            root = _take_node(sizes, free_nodes, counts)
            levels[root], parents[root], sizes[root] = levels[node] + 1, -1, 1
            children[root, 0], parents[node] = node, root
            counts[ROOT] = root
        parent = int(parents[node])
        _bound(node, bounds, sizes, bounds[parent, _find_child(parent, node, children)])
        whole = np.empty(bounds.shape[2], np.int32)
        _bound(other, bounds, sizes, whole)
        _add(parent, whole, other, levels[parent], bounds, children, sizes, parents)
        node = parent


@kernel
def _choose_entry(node: int, box: NDArray[np.int32], bounds: NDArray[np.int32], sizes: NDArray[np.int32]) -> int:
    """The entry whose bounds grow least; of several, the one with the smallest bounds."""
    best, least_growth, least_area = 0, np.inf, np.inf
    for entry in range(sizes[node]):
        area, joint = _measure(bounds[node, entry], bounds[node, entry]), _measure(bounds[node, entry], box)
        if joint - area < least_growth or (joint - area == least_growth and area < least_area):
            best, least_growth, least_area = entry, joint - area, area
    return best


@kernel
def _measure(one: NDArray[np.int32], other: NDArray[np.int32]) -> float:
    """The number of cells in the bounds of both."""
    n_axes = len(one) // 2
    area = 1.0
    for axis in range(n_axes):
        low, high = min(one[axis], other[axis]), max(one[n_axes + axis], other[n_axes + axis])
        area *= high - low + 1.0
    return area


@kernel
def _split(
    node: int,
    bounds: NDArray[np.int32],
    children: NDArray[np.int32],
    sizes: NDArray[np.int32],
    levels: NDArray[np.int32],
    parents: NDArray[np.int32],
    free_nodes: NDArray[np.int32],
    counts: NDArray[np.int64],
) -> int:
    """Quadratic split: start with the two entries that fit worst together, then place the one with the most to gain."""
    other = _take_node(sizes, free_nodes, counts)
    levels[other], parents[other], sizes[other] = levels[node], parents[node], 0
    n = sizes[node]
    own_bounds, own_children = bounds[node, :n].copy(), children[node, :n].copy()
    first, second = _pick_seeds(own_bounds)
    groups = np.empty((2, bounds.shape[2]), np.int32)
    groups[0], groups[1] = own_bounds[first], own_bounds[second]
    is_left = np.ones(n, np.bool_)
    is_left[first] = is_left[second] = False
    sizes[node] = 0
    level = levels[node]
    _add(node, own_bounds[first], own_children[first], level, bounds, children, sizes, parents)
    _add(other, own_bounds[second], own_children[second], level, bounds, children, sizes, parents)
    for n_left in range(n - 2, 0, -1):
        chosen, side = -1, 0
        most = -1.0
        for i in range(n):
            if is_left[i]:
                one = _measure(groups[0], own_bounds[i]) - _measure(groups[0], groups[0])
                two = _measure(groups[1], own_bounds[i]) - _measure(groups[1], groups[1])
                if abs(one - two) > most:
                    chosen, most = i, abs(one - two)
                    side = 0 if one < two or (one == two and sizes[node] <= sizes[other]) else 1
        if sizes[node] + n_left <= LEAST:
            side = 0
        elif sizes[other] + n_left <= LEAST:
            side = 1
        is_left[chosen] = False
        _widen(groups[side], own_bounds[chosen])
        target = node if side == 0 else other
        _add(target, own_bounds[chosen], own_children[chosen], level, bounds, children, sizes, parents)
    return other


@kernel
def _pick_seeds(boxes: NDArray[np.int32]) -> tuple[int, int]:
    first, second, most = 0, 1, -np.inf
    for i in range(len(boxes)):
        own = _measure(boxes[i], boxes[i])
        for j in range(i + 1, len(boxes)):
            wasted = _measure(boxes[i], boxes[j]) - own - _measure(boxes[j], boxes[j])
            if wasted > most:
                first, second, most = i, j, wasted
    return first, second


@kernel
def _add(
    node: int,
    box: NDArray[np.int32],
    child: int,
    level: int,
    bounds: NDArray[np.int32],
    children: NDArray[np.int32],
    sizes: NDArray[np.int32],
    parents: NDArray[np.int32],
) -> None:
    bounds[node, sizes[node]] = box
    children[node, sizes[node]] = child
    sizes[node] += 1
    if level > 0:
        parents[child] = node


@kernel
def _drop(
    node: int, entry: int, bounds: NDArray[np.int32], children: NDArray[np.int32], sizes: NDArray[np.int32]
) -> None:
    last = sizes[node] - 1
    bounds[node, entry], children[node, entry] = bounds[node, last], children[node, last]
    sizes[node] = last


@kernel
def _find_child(node: int, child: int, children: NDArray[np.int32]) -> int:
    entry = 0
    while children[node, entry] != child:
        entry += 1
    return entry


@kernel
def _widen(bound: NDArray[np.int32], box: NDArray[np.int32]) -> None:
    n_axes = len(bound) // 2
    for axis in range(n_axes):
        bound[axis] = min(bound[axis], box[axis])
        bound[n_axes + axis] = max(bound[n_axes + axis], box[n_axes + axis])


@kernel
def _bound(node: int, bounds: NDArray[np.int32], sizes: NDArray[np.int32], bound: NDArray[np.int32]) -> None:
    """Write the bounds of a node."""
    bound[:] = bounds[node, 0]
    for entry in range(1, sizes[node]):
        _widen(bound, bounds[node, entry])


@kernel
def _take_node(sizes: NDArray[np.int32], free_nodes: NDArray[np.int32], counts: NDArray[np.int64]) -> int:
    if counts[N_FREE] > 0:
        counts[N_FREE] -= 1
        return int(free_nodes[counts[N_FREE]])
    counts[N_NODES] += 1
    return int(counts[N_NODES] - 1)
