"""How the TPR*-tree splits an overfull node, and which entries it removes and inserts again.

Tao, Papadias and Sun (2003), section 4. Entries are ordered by the positions and the speeds of their sides: 4 orders
per dimension. The best order is the one with the smallest swept regions within the horizon.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vedette.native.kernels import kernel
from vedette.papers.moving.nodes import Nodes, add_entry, find_stride, make_node, read_entry
from vedette.papers.moving.swept_region import (
    HIGH,
    HIGH_SPEED,
    LOW,
    LOW_SPEED,
    clear_box,
    extend_box,
    measure_swept,
)


@kernel
def read_box(nodes: Nodes, slot: int, now: float, box: NDArray[np.float64]) -> None:
    """Where a slot is now, and how it moves."""
    age = now - nodes.slots.times[slot]
    for d in range(nodes.slots.sides.shape[1]):
        box[LOW, d] = nodes.slots.sides[LOW, d, slot] + nodes.slots.sides[LOW_SPEED, d, slot] * age
        box[HIGH, d] = nodes.slots.sides[HIGH, d, slot] + nodes.slots.sides[HIGH_SPEED, d, slot] * age
        box[LOW_SPEED, d], box[HIGH_SPEED, d] = (
            nodes.slots.sides[LOW_SPEED, d, slot],
            nodes.slots.sides[HIGH_SPEED, d, slot],
        )


@kernel
def split_node(
    nodes: Nodes,
    slot_of: NDArray[np.int32],
    node: int,
    minimum: int,
    now: float,
    sides: NDArray[np.float64],
    horizon: float,
) -> int:
    """Move some entries to a new node so that both nodes together sweep the least; the new node."""
    boxes = _read_boxes(nodes, node, now)
    order, cut = _find_cut(boxes, minimum, sides, horizon)
    new = make_node(nodes, nodes.levels[node])
    entries, children = _take_all(nodes, node)
    for k in range(len(order)):
        add_entry(nodes, slot_of, node if k < cut else new, entries[order[k]], children[order[k]])
    return new


@kernel
def take_worst(
    nodes: Nodes,
    slot_of: NDArray[np.int32],
    node: int,
    n_worst: int,
    now: float,
    sides: NDArray[np.float64],
    horizon: float,
    entries_out: NDArray[np.float64],
    children_out: NDArray[np.int32],
) -> None:
    """Remove the entries at one end of one order without which the node sweeps the least."""
    order = _find_worst(_read_boxes(nodes, node, now), n_worst, sides, horizon)
    entries, children = _take_all(nodes, node)
    for k in range(len(order)):
        if k < n_worst:
            entries_out[k], children_out[k] = entries[order[k]], children[order[k]]
        else:
            add_entry(nodes, slot_of, node, entries[order[k]], children[order[k]])


@kernel
def _read_boxes(nodes: Nodes, node: int, now: float) -> NDArray[np.float64]:
    first = node * find_stride(nodes)
    boxes = np.empty((nodes.counts[node], 4, nodes.slots.sides.shape[1]))
    for k in range(len(boxes)):
        read_box(nodes, first + k, now, boxes[k])
    return boxes


@kernel
def _take_all(nodes: Nodes, node: int) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
    """All entries of a node, which is empty then."""
    first, n = node * find_stride(nodes), nodes.counts[node]
    entries = np.empty((n, 4 * nodes.slots.sides.shape[1] + 1))
    for k in range(n):
        read_entry(nodes, first + k, entries[k])
    nodes.counts[node] = 0
    return entries, nodes.children[first : first + n].copy()


@kernel
def _find_cut(
    boxes: NDArray[np.float64], minimum: int, sides: NDArray[np.float64], horizon: float
) -> tuple[NDArray[np.int64], int]:
    """The order, and how many of it make the one node, with the least sum of swept regions."""
    n, _, n_dims = boxes.shape
    best, best_cut, best_order = np.inf, minimum, np.arange(n)
    box, rest = np.empty((4, n_dims)), np.empty(n)
    for side in range(4):
        for d in range(n_dims):
            order = np.argsort(boxes[:, side, d].copy(), kind="mergesort")
            clear_box(box)
            for k in range(n - 1, minimum - 1, -1):
                extend_box(box, boxes[order[k]])
                rest[k] = measure_swept(box, sides, horizon)
            clear_box(box)
            for k in range(n - minimum):
                extend_box(box, boxes[order[k]])
                if k + 1 >= minimum:
                    total = measure_swept(box, sides, horizon) + rest[k + 1]
                    if total < best:
                        best, best_cut, best_order = total, k + 1, order
    return best_order, best_cut


@kernel
def _find_worst(
    boxes: NDArray[np.float64], n_worst: int, sides: NDArray[np.float64], horizon: float
) -> NDArray[np.int64]:
    """An order that starts with the worst entries: the lowest lows, the highest highs, or the same by speed."""
    n, _, n_dims = boxes.shape
    best, best_order, box = np.inf, np.arange(n), np.empty((4, n_dims))
    for side in range(4):
        sign = 1.0 if side in (LOW, LOW_SPEED) else -1.0
        for d in range(n_dims):
            order = np.argsort(sign * boxes[:, side, d], kind="mergesort")
            clear_box(box)
            for k in range(n_worst, n):
                extend_box(box, boxes[order[k]])
            swept = measure_swept(box, sides, horizon)
            if swept < best:
                best, best_order = swept, order
    return best_order
