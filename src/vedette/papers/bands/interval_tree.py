"""An interval tree: which of fixed closed intervals contain a number.

Edelsbrunner's, as in de Berg et al., chapter 10: O(n) size, O(n log n) to build, O(log n + k) per query. An interval is
at the highest node whose centre it contains; a node lists its intervals by their first numbers and by their last.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from vedette.indexes.index import TooLargeError, count_bytes
from vedette.native.kernels import kernel

MOST = 1 << 31  # intervals
DEPTH = 64  # of a tree at most: each side of a node has at most half of its intervals


class TreeNodes(NamedTuple):
    """Nodes by number. Intervals below the centre of node `v` are in node `lefts[v]`, those above in `rights[v]`."""

    centres: NDArray[np.float64]
    lefts: NDArray[np.int32]  # -1 where there is no node
    rights: NDArray[np.int32]
    starts: NDArray[np.int64]  # where the list of a node starts


class NodeLists(NamedTuple):
    """The intervals of all nodes: node `v` lists `by_first[starts[v]:starts[v + 1]]`, ascending.

    `by_last` has the same intervals by their last numbers, descending.
    """

    by_first: NDArray[np.int32]
    firsts: NDArray[np.float64]
    by_last: NDArray[np.int32]
    lasts: NDArray[np.float64]


@dataclass(frozen=True)
class IntervalTree:
    """Intervals are named by their position."""

    nodes: TreeNodes
    lists: NodeLists

    @classmethod
    def build(cls, firsts: NDArray[np.float64], lasts: NDArray[np.float64]) -> Self:
        """The closed intervals [firsts[i], lasts[i]]; one whose first is above its last contains nothing."""
        if len(firsts) >= MOST:
            raise TooLargeError(f"an interval tree can hold 2^31 intervals; got {len(firsts):,}")
        order = np.argsort(firsts, kind="stable").astype(np.int32)
        order = order[(firsts <= lasts)[order]]
        n = len(order)
        lefts, rights = np.full(n, -1, np.int32), np.full(n, -1, np.int32)
        room, by_first = TreeNodes(np.empty(n), lefts, rights, np.zeros(n + 1, np.int64)), np.empty(n, np.int32)
        n_nodes = _place(firsts, lasts, order, room, by_first)
        by_last = by_first.copy()
        _sort_by_last(lasts, room.starts[: n_nodes + 1], by_last)
        lefts, rights = lefts[:n_nodes].copy(), rights[:n_nodes].copy()
        nodes = TreeNodes(room.centres[:n_nodes].copy(), lefts, rights, room.starts[: n_nodes + 1].copy())
        return cls(nodes, NodeLists(by_first, firsts[by_first], by_last, lasts[by_last]))

    def stab(self, number: float) -> NDArray[np.int32]:
        """The intervals that contain the number."""
        found = np.empty(_stab(number, self.nodes, self.lists, np.empty(0, np.int32)), np.int32)
        _stab(number, self.nodes, self.lists, found)
        return found

    def __len__(self) -> int:
        return len(self.lists.by_first)

    @property
    def nbytes(self) -> int:
        return count_bytes(self)


@kernel
def _place(
    firsts: NDArray[np.float64],
    lasts: NDArray[np.float64],
    order: NDArray[np.int32],
    nodes: TreeNodes,
    by_first: NDArray[np.int32],
) -> int:
    """Assign intervals, in the order of their firsts, to nodes; the number of nodes."""
    centres, lefts, rights, starts = nodes.centres, nodes.lefts, nodes.rights, nodes.starts
    stack = np.empty((2 * DEPTH, 3), np.int64)  # where in `order` a subtree begins and ends, and its parent
    stack[0] = 0, len(order), 0
    n_stack, n_nodes, n_placed = 1, 0, 0
    while n_stack > 0:
        n_stack -= 1
        begin, end, above = stack[n_stack]
        if begin == end:
            continue
        node, n_nodes = n_nodes, n_nodes + 1
        if above > 0:
            rights[above - 1] = node
        elif above < 0:
            lefts[-above - 1] = node
        cut = (begin + end) // 2
        centre = firsts[order[cut]]
        while cut < end and firsts[order[cut]] <= centre:
            cut += 1
        n_below = begin
        for i in range(begin, cut):
            if lasts[order[i]] < centre:
                order[n_below] = order[i]
                n_below += 1
            else:
                by_first[n_placed] = order[i]
                n_placed += 1
        centres[node], starts[n_nodes] = centre, n_placed
        stack[n_stack] = begin, n_below, -node - 1
        stack[n_stack + 1] = cut, end, node + 1
        n_stack += 2
    return n_nodes


@kernel
def _sort_by_last(lasts: NDArray[np.float64], starts: NDArray[np.int64], by_last: NDArray[np.int32]) -> None:
    for node in range(len(starts) - 1):
        listed = by_last[starts[node] : starts[node + 1]].copy()
        order = np.argsort(-lasts[listed])
        for i in range(len(listed)):
            by_last[starts[node] + i] = listed[order[i]]


@kernel
def _stab(number: float, nodes: TreeNodes, lists: NodeLists, found: NDArray[np.int32]) -> int:
    """Write as many of the intervals as there is room for; how many there are."""
    centres, lefts, rights, starts = nodes.centres, nodes.lefts, nodes.rights, nodes.starts
    by_first, firsts, by_last, lasts = lists.by_first, lists.firsts, lists.by_last, lists.lasts
    n, node = 0, 0 if len(centres) else -1
    while node >= 0:
        is_below = number < centres[node]
        for i in range(starts[node], starts[node + 1]):
            if firsts[i] > number if is_below else lasts[i] < number:
                break
            if n < len(found):
                found[n] = by_first[i] if is_below else by_last[i]
            n += 1
        node = lefts[node] if is_below else rights[node]
    return n
