"""The TPR*-tree: an R*-tree of moving rectangles, optimised for the regions that its nodes will sweep.

Tao, Papadias and Sun, "The TPR*-tree: An Optimized Spatio-Temporal Access Method for Predictive Queries" (2003), the
tree of all joins of Zhang et al. (section 3.2). An insertion costs a search for the best path (`choose_path`), and
sometimes a split or the reinsertion of the worst entries (`node_split`). The bounds of nodes on the path of a change
are recomputed as of now, which keeps them small. A deletion finds the object's leaf in a table; the paper searches the
nodes that cover the object.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from vedette.native.buffers import grown
from vedette.native.kernels import kernel
from vedette.operators.moving_join.motions import Motions
from vedette.papers.moving.choose_path import choose_path
from vedette.papers.moving.node_split import split_node, take_worst
from vedette.papers.moving.nodes import (
    NONE,
    OBJECTS,
    USED,
    Nodes,
    add_entry,
    bound,
    drop_slot,
    find_root,
    find_stride,
    free_node,
    grow_nodes,
    make_node,
    make_nodes,
    point,
    read_entry,
    tighten,
)

CAPACITY = 113  # entries per node: a page of 4 kB in the paper (table 2)
LEAST_FULL = 0.4  # as in the R*-tree
WORST = 0.3  # the share of a node's entries that is inserted again
MOST_LEVELS = 32


class Rules(NamedTuple):
    """Parameters of the tree: how full nodes are, and the query that it is optimised for."""

    capacity: int
    minimum: int
    n_worst: int
    horizon: float
    sides: NDArray[np.float64]


class Waiting(NamedTuple):
    """Entries to insert, with their levels, and the levels from which entries were already removed."""

    entries: NDArray[np.float64]
    children: NDArray[np.int32]
    levels: NDArray[np.int32]
    is_reinserted: NDArray[np.bool_]


@dataclass
class TPRStarTree:
    """Objects, numbered from 0, in nodes; object `i` is in slot `slot_of[i]`, or -1."""

    nodes: Nodes
    slot_of: NDArray[np.int32]
    rules: Rules
    number: int = 0  # separates the pages of different trees

    @classmethod
    def make(
        cls,
        n_dims: int,
        horizon: float,
        sides: NDArray[np.float64] | None = None,
        capacity: int = CAPACITY,
        number: int = 0,
    ) -> Self:
        """An empty tree, optimised for queries with these sides that look `horizon` ahead."""
        if capacity < 4:
            raise ValueError(f"a node must have room for at least 4 entries; got capacity={capacity}")
        minimum, n_worst = max(2, int(LEAST_FULL * capacity)), max(1, int(WORST * capacity))
        sides = np.zeros(n_dims) if sides is None else np.ascontiguousarray(sides, np.float64)
        rules = Rules(capacity, minimum, n_worst, float(horizon), sides)
        return cls(make_nodes(n_dims, 4, capacity + 1), np.empty(0, np.int32), rules, number)

    def insert(self, places: NDArray[np.int32], motions: Motions, time: float) -> None:
        """Insert objects that are not in the tree, at a time that is not before the last change."""
        if not len(places):
            return
        n_known = len(self.slot_of)
        n_named = int(places.max()) + 1
        self.slot_of = grown(self.slot_of, n_known, n_named)
        self.slot_of[n_known:] = NONE
        if self.holds(places).any():
            known = int(places[self.holds(places)][0])
            raise ValueError(f"object {known} is already in the tree; delete it before you insert it again")
        self._change(places, _as_entries(motions), time)

    def delete(self, places: NDArray[np.int32], time: float) -> None:
        """Delete objects that are in the tree."""
        is_held = self.holds(places)
        if not is_held.all():
            raise ValueError(f"object {places[~is_held][0]} is not in the tree; it holds {len(self):,} objects")
        self._change(places, np.empty((0, 1 + 4 * self.nodes.slots.sides.shape[1])), time)

    def holds(self, places: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Which of the objects are in the tree."""
        is_held = np.zeros(len(places), np.bool_)
        is_known = places < len(self.slot_of)
        is_held[is_known] = self.slot_of[places[is_known]] != NONE
        return is_held

    def __len__(self) -> int:
        return int(self.nodes.state[OBJECTS])

    @property
    def height(self) -> int:
        """The number of levels; a tree of one leaf has one."""
        return int(self.nodes.levels[find_root(self.nodes)]) + 1

    @property
    def nbytes(self) -> int:
        """The memory of all nodes that were ever in use."""
        n_bytes = sum(array.nbytes for array in (*self.nodes.slots, *self.nodes[1:]))
        return round(n_bytes * int(self.nodes.state[USED]) / len(self.nodes.counts)) + self.slot_of.nbytes

    def _change(self, places: NDArray[np.int32], entries: NDArray[np.float64], time: float) -> None:
        places, done = np.require(places, np.int32, ("C", "W")), 0
        while done < len(places):
            waiting = self._make_room()
            done = _change_objects(self.nodes, self.slot_of, waiting, self.rules, places, entries, done, float(time))

    def _make_room(self) -> Waiting:
        """Make room for everything that one insertion or deletion may cause."""
        n_levels, n_dims = self.height + 1, self.nodes.slots.sides.shape[1]
        n_waiting = _most_waiting(self.rules, n_levels)
        n_nodes = int(self.nodes.state[USED]) + _most_new_nodes(self.rules, n_levels)
        if n_nodes > len(self.nodes.counts):
            self.nodes = grow_nodes(self.nodes, n_nodes + n_nodes // 2)
        entries, children = np.empty((n_waiting, 4 * n_dims + 1)), np.empty(n_waiting, np.int32)
        return Waiting(entries, children, np.empty(n_waiting, np.int32), np.zeros(MOST_LEVELS, np.bool_))


def _as_entries(motions: Motions) -> NDArray[np.float64]:
    """One row per object: its time, then all lows, all highs, and all their speeds."""
    columns = motions.times[None], motions.lows, motions.highs, motions.low_speeds, motions.high_speeds
    return np.ascontiguousarray(np.concatenate(columns).T)


@kernel
def _most_waiting(rules: Rules, n_levels: int) -> int:
    """The most entries that may wait in one change: per level, those of an underfull node and the worst of one."""
    return (rules.minimum + rules.n_worst) * n_levels + 2


@kernel
def _most_new_nodes(rules: Rules, n_levels: int) -> int:
    return _most_waiting(rules, n_levels) * (n_levels + 1)


@kernel
def _has_room(nodes: Nodes, waiting: Waiting, rules: Rules) -> bool:
    n_levels = nodes.levels[find_root(nodes)] + 2
    is_short = len(waiting.levels) < _most_waiting(rules, n_levels)
    return not is_short and len(nodes.counts) - nodes.state[USED] >= _most_new_nodes(rules, n_levels)


@kernel
def _change_objects(
    nodes: Nodes,
    slot_of: NDArray[np.int32],
    waiting: Waiting,
    rules: Rules,
    places: NDArray[np.int32],
    entries: NDArray[np.float64],
    first: int,
    now: float,
) -> int:
    """Insert objects, or delete them if there are no entries, from `first` on while there is room; the first not done.

    One kernel does both, since each would take as long to compile.
    """
    stride = find_stride(nodes)
    for i in range(first, len(places)):
        if not _has_room(nodes, waiting, rules):
            return i
        if len(entries) > 0:
            waiting.entries[0], waiting.children[0], waiting.levels[0] = entries[i], places[i], 0
            n_waiting = 1
            nodes.state[OBJECTS] += 1
        else:
            slot = slot_of[places[i]]
            slot_of[places[i]] = NONE
            nodes.state[OBJECTS] -= 1
            drop_slot(nodes, slot_of, slot)
            n_waiting = _condense(nodes, slot_of, waiting, slot // stride, rules, now)
        _insert_waiting(nodes, slot_of, waiting, n_waiting, rules, now)
        _shrink_root(nodes, slot_of, now)
    return len(places)


@kernel
def _shrink_root(nodes: Nodes, slot_of: NDArray[np.int32], now: float) -> None:
    """Drop the root while it has only one node below it."""
    root, is_shrunk = find_root(nodes), False
    while nodes.levels[root] > 0 and nodes.counts[root] == 1:
        point(nodes, slot_of, 0, nodes.children[root * find_stride(nodes)])
        free_node(nodes, root)
        root, is_shrunk = find_root(nodes), True
    if is_shrunk:
        bound(nodes, root, now, 0)


@kernel
def _insert_waiting(
    nodes: Nodes,
    slot_of: NDArray[np.int32],
    waiting: Waiting,
    n_waiting: int,
    rules: Rules,
    now: float,
) -> None:
    """Insert all waiting entries; a node that overflows may add more of its entries to them."""
    waiting.is_reinserted[:] = False
    i = 0
    while i < n_waiting:
        entry, level = waiting.entries[i], waiting.levels[i]
        node = choose_path(nodes, entry, level, now, rules.sides, rules.horizon)
        n_waiting += _add_to_node(nodes, slot_of, waiting, n_waiting, node, i, rules, now)
        i += 1


@kernel
def _add_to_node(
    nodes: Nodes,
    slot_of: NDArray[np.int32],
    waiting: Waiting,
    n_waiting: int,
    node: int,
    which: int,
    rules: Rules,
    now: float,
) -> int:
    """Add a waiting entry to a node; split nodes upwards, or remove the worst entries; how many more wait then."""
    stride, entry, child = find_stride(nodes), waiting.entries[which].copy(), waiting.children[which]
    while True:
        add_entry(nodes, slot_of, node, entry, child)
        level, root = nodes.levels[node], find_root(nodes)
        if nodes.counts[node] <= rules.capacity:
            tighten(nodes, node, now)
            return 0
        if node != root and not waiting.is_reinserted[level]:
            waiting.is_reinserted[level] = True
            end = n_waiting + rules.n_worst
            waiting.levels[n_waiting:end] = level
            entries_out, children_out = waiting.entries[n_waiting:end], waiting.children[n_waiting:end]
            take_worst(nodes, slot_of, node, rules.n_worst, now, rules.sides, rules.horizon, entries_out, children_out)
            tighten(nodes, node, now)
            return rules.n_worst
        new = split_node(nodes, slot_of, node, rules.minimum, now, rules.sides, rules.horizon)
        if node == root:
            above = make_node(nodes, level + 1)
            point(nodes, slot_of, 0, above)
            for half in (node, new):
                slot = above * stride + nodes.counts[above]
                nodes.counts[above] += 1
                point(nodes, slot_of, slot, half)
                bound(nodes, half, now, slot)
            tighten(nodes, above, now)
            return 0
        bound(nodes, node, now, nodes.parents[node])
        # The new node's rectangle is computed in a free slot: the one after the node's own entries.
        spare = new * stride + nodes.counts[new]
        bound(nodes, new, now, spare)
        read_entry(nodes, spare, entry)
        child, node = new, nodes.parents[node] // stride


@kernel
def _condense(
    nodes: Nodes,
    slot_of: NDArray[np.int32],
    waiting: Waiting,
    node: int,
    rules: Rules,
    now: float,
) -> int:
    """Dissolve underfull nodes from this one upwards, and recompute the bounds of the others; how many entries wait."""
    stride, n_waiting = find_stride(nodes), 0
    while node != find_root(nodes):
        above = nodes.parents[node]
        if nodes.counts[node] < rules.minimum:
            for slot in range(node * stride, node * stride + nodes.counts[node]):
                read_entry(nodes, slot, waiting.entries[n_waiting])
                waiting.children[n_waiting], waiting.levels[n_waiting] = nodes.children[slot], nodes.levels[node]
                n_waiting += 1
            drop_slot(nodes, slot_of, above)
            free_node(nodes, node)
        else:
            bound(nodes, node, now, above)
        node = above // stride
    bound(nodes, node, now, 0)
    return n_waiting
