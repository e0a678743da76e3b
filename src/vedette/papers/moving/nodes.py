"""The nodes of a tree over moving rectangles, as columns.

A node is a moving rectangle that contains those of its entries from the time at which its bounds were computed (section
3.2 of Zhang et al.). Entry `k` of node `n` is slot `n * stride + k`, so nodes and objects are in the same columns, and
one kernel computes when two of them meet. Node 0 is not part of the tree: its only entry is the root.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vedette.native.kernels import kernel
from vedette.operators.moving_join.motions import Motions
from vedette.papers.moving.meet import meet
from vedette.papers.moving.swept_region import HIGH, HIGH_SPEED, LOW, LOW_SPEED

NONE = -1
# Rectangles of nodes are wider than their entries by more than all rounding errors, so that no touching pair is lost
# during the descent.
SLACK = 2.0**-48

FREE, USED, OBJECTS = 0, 1, 2  # in `state`: the first free node, nodes that were ever used, objects in the tree


class Slots(NamedTuple):
    """Moving rectangles for kernels: the columns of `Motions` in two arrays."""

    sides: NDArray[np.float64]  # (4, n_dims, n_slots): lows, highs and their speeds
    times: NDArray[np.float64]  # (n_slots,)


class Nodes(NamedTuple):
    """Slots, the node or object that each represents, and the columns by node."""

    slots: Slots
    children: NDArray[np.int32]  # the node below, or the object if the slot is in a leaf
    counts: NDArray[np.int32]  # (n_nodes,): entries
    levels: NDArray[np.int32]  # leaves are 0
    parents: NDArray[np.int32]  # the slot that represents a node; for a free node, the next free one
    state: NDArray[np.int64]


def as_slots(motions: Motions) -> Slots:
    """Motions in the one array type that kernels are compiled for."""
    sides = np.stack([motions.lows, motions.highs, motions.low_speeds, motions.high_speeds])
    return Slots(sides, np.require(motions.times, np.float64, ("C", "W")))


def make_nodes(n_dims: int, n_nodes: int, stride: int) -> Nodes:
    """An empty tree, with an empty leaf as its root and room for `n_nodes` nodes."""
    n_slots = n_nodes * stride
    counts, levels, parents = (np.empty(n_nodes, np.int32) for _ in range(3))
    slots, children = Slots(np.empty((4, n_dims, n_slots)), np.empty(n_slots)), np.empty(n_slots, np.int32)
    nodes = Nodes(slots, children, counts, levels, parents, np.array([NONE, 2, 0], np.int64))
    nodes.counts[:2], nodes.levels[:2], nodes.parents[:2] = (1, 0), (1, 0), (NONE, 0)
    nodes.children[0] = 1
    bound(nodes, 1, 0.0, 0)
    return nodes


def grow_nodes(nodes: Nodes, n_nodes: int) -> Nodes:
    """The same tree with room for `n_nodes` nodes."""
    stride = find_stride(nodes)
    larger = make_nodes(nodes.slots.sides.shape[1], n_nodes, stride)
    n_used = int(nodes.state[USED])
    for old, new in zip(nodes.slots, larger.slots, strict=True):
        new[..., : n_used * stride] = old[..., : n_used * stride]
    larger.children[: n_used * stride] = nodes.children[: n_used * stride]
    for old_node, new_node in zip(nodes[2:5], larger[2:5], strict=True):
        new_node[:n_used] = old_node[:n_used]
    larger.state[:] = nodes.state
    return larger


@kernel
def meet_slots(a: Slots, i: int, b: Slots, j: int, start: float, end: float) -> tuple[float, float]:
    """The first and the last moment within [start, end] at which two slots intersect; see `meet`."""
    return meet(a.sides, a.times, i, b.sides, b.times, j, start, end)


@kernel
def find_root(nodes: Nodes) -> int:
    return int(nodes.children[0])


@kernel
def find_stride(nodes: Nodes) -> int:
    return len(nodes.slots.times) // len(nodes.counts)


@kernel
def find_slack(low: float, speed: float, time: float, now: float) -> float:
    """An upper bound on the rounding error of a side's position from `now` on, as far as it does not grow with time."""
    return SLACK * (abs(low) + abs(speed) * (abs(time) + abs(now)))


@kernel
def bound(nodes: Nodes, node: int, now: float, slot: int) -> None:
    """Set the slot to the smallest moving rectangle that contains all entries of the node from `now` on."""
    first = node * find_stride(nodes)
    for d in range(nodes.slots.sides.shape[1]):
        low, high, low_speed, high_speed = np.inf, -np.inf, np.inf, -np.inf
        for s in range(first, first + nodes.counts[node]):
            at, speed, time = nodes.slots.sides[LOW, d, s], nodes.slots.sides[LOW_SPEED, d, s], nodes.slots.times[s]
            low = min(low, at + speed * (now - time) - find_slack(at, speed, time, now))
            low_speed = min(low_speed, speed)
            at, speed = nodes.slots.sides[HIGH, d, s], nodes.slots.sides[HIGH_SPEED, d, s]
            high = max(high, at + speed * (now - time) + find_slack(at, speed, time, now))
            high_speed = max(high_speed, speed)
        if nodes.counts[node] == 0:
            low_speed = high_speed = 0.0
        nodes.slots.sides[LOW, d, slot], nodes.slots.sides[LOW_SPEED, d, slot] = low, low_speed - SLACK * abs(low_speed)
        nodes.slots.sides[HIGH, d, slot], nodes.slots.sides[HIGH_SPEED, d, slot] = (
            high,
            high_speed + SLACK * abs(high_speed),
        )
    nodes.slots.times[slot] = now


@kernel
def tighten(nodes: Nodes, node: int, now: float) -> None:
    """Recompute the bounds of a node and of all nodes above it as of now."""
    stride = find_stride(nodes)
    while node > 0:
        bound(nodes, node, now, nodes.parents[node])
        node = nodes.parents[node] // stride


@kernel
def make_node(nodes: Nodes, level: int) -> int:
    """A node without entries. The caller makes sure that there is room."""
    node = nodes.state[FREE]
    if node == NONE:
        node = nodes.state[USED]
        nodes.state[USED] += 1
    else:
        nodes.state[FREE] = nodes.parents[node]
    nodes.counts[node], nodes.levels[node], nodes.parents[node] = 0, level, NONE
    return int(node)


@kernel
def free_node(nodes: Nodes, node: int) -> None:
    nodes.counts[node] = 0
    nodes.parents[node] = nodes.state[FREE]
    nodes.state[FREE] = node


@kernel
def add_entry(nodes: Nodes, slot_of: NDArray[np.int32], node: int, entry: NDArray[np.float64], child: int) -> int:
    """Add an entry, as `read_entry` writes it, to a node; the slot."""
    slot, n_dims = node * find_stride(nodes) + nodes.counts[node], nodes.slots.sides.shape[1]
    nodes.slots.times[slot] = entry[0]
    for k in range(4):
        for d in range(n_dims):
            nodes.slots.sides[k, d, slot] = entry[1 + k * n_dims + d]
    nodes.counts[node] += 1
    point(nodes, slot_of, slot, child)
    return int(slot)


@kernel
def point(nodes: Nodes, slot_of: NDArray[np.int32], slot: int, child: int) -> None:
    """Link a slot and the node or object that it represents, in both directions."""
    nodes.children[slot] = child
    if nodes.levels[slot // find_stride(nodes)] == 0:
        slot_of[child] = slot
    else:
        nodes.parents[child] = slot


@kernel
def read_entry(nodes: Nodes, slot: int, entry: NDArray[np.float64]) -> None:
    """Write the time of a slot, then all lows, all highs, and all their speeds."""
    n_dims = nodes.slots.sides.shape[1]
    entry[0] = nodes.slots.times[slot]
    for k in range(4):
        for d in range(n_dims):
            entry[1 + k * n_dims + d] = nodes.slots.sides[k, d, slot]


@kernel
def drop_slot(nodes: Nodes, slot_of: NDArray[np.int32], slot: int) -> None:
    """Remove an entry from its node; the node's last entry takes its place."""
    node = slot // find_stride(nodes)
    nodes.counts[node] -= 1
    last = node * find_stride(nodes) + nodes.counts[node]
    if slot != last:
        nodes.slots.sides[:, :, slot] = nodes.slots.sides[:, :, last]
        nodes.slots.times[slot] = nodes.slots.times[last]
        point(nodes, slot_of, slot, nodes.children[last])
