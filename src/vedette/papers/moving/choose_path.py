"""Where the TPR*-tree puts a new entry: on the path whose swept regions grow least in total.

Tao, Papadias and Sun (2003), section 4.1. A TPR-tree takes the best child on each level, which may be wrong at the
first level already. Here paths are searched best first, in a queue ordered by their cost so far, until one reaches the
level.
"""

from __future__ import annotations

import heapq

import numpy as np
from numpy.typing import NDArray

from vedette.native.kernels import kernel
from vedette.papers.moving.node_split import read_box
from vedette.papers.moving.nodes import Nodes, find_root, find_stride
from vedette.papers.moving.swept_region import HIGH, HIGH_SPEED, LOW, LOW_SPEED, extend_box, measure_swept


@kernel
def choose_path(
    nodes: Nodes,
    entry: NDArray[np.float64],
    level: int,
    now: float,
    sides: NDArray[np.float64],
    horizon: float,
) -> int:
    """The node of the level that the entry is added to."""
    stride, n_dims = find_stride(nodes), nodes.slots.sides.shape[1]
    new, box = np.empty((4, n_dims)), np.empty((4, n_dims))
    for d in range(n_dims):
        new[LOW_SPEED, d], new[HIGH_SPEED, d] = entry[1 + 2 * n_dims + d], entry[1 + 3 * n_dims + d]
        new[LOW, d] = entry[1 + d] + new[LOW_SPEED, d] * (now - entry[0])
        new[HIGH, d] = entry[1 + n_dims + d] + new[HIGH_SPEED, d] * (now - entry[0])
    queue = [(0.0, find_root(nodes))]
    while True:
        cost, node = heapq.heappop(queue)
        if nodes.levels[node] == level:
            return node
        for slot in range(node * stride, node * stride + nodes.counts[node]):
            read_box(nodes, slot, now, box)
            before = measure_swept(box, sides, horizon)
            extend_box(box, new)
            more = measure_swept(box, sides, horizon) - before
            heapq.heappush(queue, (cost + more, int(nodes.children[slot])))
