"""Interval binary search trees: one for each axis, whose answers are merged by counting.

The predicate index of Hanson et al. ("A Predicate Matching Algorithm for Database Rule Systems", SIGMOD 1990), which
Lim et al. describe in section 3 and compare with as IBS. A node is a constant. It lists the predicates that are true
for all smaller values down to the next constant above it in the tree (`<`), for the constant (`=`), and for all greater
values (`>`), unless a node above already lists them. A row walks down each tree and counts the listed predicates; a box
matches if all its predicates are counted. Costs a step per true predicate and axis, and about 100 bytes per predicate.
The trees are balanced as treaps; a rotation changes the lists of two nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from vedette.data.matches import Matches
from vedette.indexes.growth import collect
from vedette.indexes.index import ANY_FIELDS, TooLargeError, as_boxes, as_cells
from vedette.native.bits import lowest_one, without_lowest
from vedette.native.kernels import kernel
from vedette.papers.box_store import BoxStore, find_first_id
from vedette.papers.duality.ibs_changes import (
    Boxes,
    ChangingNodes,
    Lists,
    Tree,
    insert_boxes,
    mark_all,
    remove_boxes,
)
from vedette.papers.growing_lists import make_lists, pack_lists

SEED = 1  # of the priorities: equal boxes give equal trees
ROOM = 8  # numbers written at once
SPARSE = 4  # a row reads the counts of all boxes if it finds at least 1 / 2^4 as many predicates


class Predicates(NamedTuple):
    """The number of axes on which each box has a predicate, and the boxes without predicates."""

    needed: NDArray[np.int16]
    always: NDArray[np.int32]


class ListedBoxes(NamedTuple):
    """List `i` has the boxes `listed[starts[i] : starts[i] + sizes[i]]`."""

    starts: NDArray[np.int32]
    sizes: NDArray[np.int32]
    listed: NDArray[np.int32]


@dataclass
class IBS(BoxStore):
    """Node `n` has the constant `values[n]`; its three lists, `<`, `=` and `>`, are `3n`, `3n + 1` and `3n + 2`.

    A range that starts or ends with the axis has no constant there.
    """

    n_fields: ClassVar[range] = ANY_FIELDS

    n_cells: NDArray[np.int64]
    needed: NDArray[np.int16]  # by box: the axes on which it has a predicate; -1 for a free number
    always: NDArray[np.int32]  # boxes without predicates
    roots: NDArray[np.int32]  # by axis; -1 if there is no node
    values: NDArray[np.int32]
    children: NDArray[np.int32]  # (2, nodes): below and above
    priorities: NDArray[np.int32]  # not greater than that of the parent
    uses: NDArray[np.int32]  # the number of ends of ranges that equal the constant
    free_nodes: NDArray[np.int32]
    starts: NDArray[np.int32]  # the lists, see `growing_lists`
    sizes: NDArray[np.int32]
    listed: NDArray[np.int32]
    ends: NDArray[np.int64]

    @classmethod
    def build(
        cls, firsts: NDArray[np.int32], lasts: NDArray[np.int32], ids: NDArray[np.int32], n_cells: Sequence[int]
    ) -> Self:
        """Index boxes on any number of axes."""
        firsts, lasts, ids = as_boxes(firsts, lasts, ids, n_cells)
        cells = np.array(n_cells, np.int64)
        values, uses, roots, children, depths = [], [], [], [], []
        n_nodes = 0
        for axis, n in enumerate(n_cells):
            ends = np.concatenate([firsts[axis][firsts[axis] > 0], lasts[axis][lasts[axis] < n - 1]])
            constants, times = np.unique(ends, return_counts=True)
            links, levels, root = _link_evenly(len(constants), n_nodes)
            values.append(constants.astype(np.int32))
            uses.append(times.astype(np.int32))
            children.append(links)
            depths.append(levels)
            roots.append(root)
            n_nodes += len(constants)
        boxes = Boxes(firsts, lasts, cells)
        tree = Tree(np.array(roots, np.int32), np.concatenate(values), np.concatenate(children, axis=1))
        sizes = np.zeros(3 * n_nodes, np.int64)
        none = np.empty(0, np.int32)
        mark_all(boxes, tree, sizes, none, none, False)
        if sizes.sum() >= 1 << 31:
            raise TooLargeError(f"interval binary search trees would list {sizes.sum()} predicates; the limit is 2^31")
        starts, counts, listed, list_ends = make_lists(sizes)
        sizes[:] = 0
        mark_all(boxes, tree, sizes, starts, listed, True)
        needed = _count_needed(firsts, lasts, cells)
        return cls(
            firsts.copy(), lasts.copy(), ids.copy(), none, find_first_id(ids),
            cells, needed, np.flatnonzero(needed == 0).astype(np.int32),
            *tree, _draw_priorities(np.concatenate(depths)), np.concatenate(uses), none,
            starts, counts, listed, list_ends,
        )  # fmt: skip

    def match(self, cells: NDArray[np.int32]) -> Matches:
        cells = as_cells(cells)
        most = len(self) + ROOM
        tree, boxes = Tree(self.roots, self.values, self.children), Predicates(self.needed, self.always)
        lists = ListedBoxes(self.starts, self.sizes, self.listed)
        matches = collect(
            cells.shape[1],
            most,
            lambda done, starts, positions: _fill(cells, done, starts, positions, most, boxes, tree, lists),
        )
        self.give_ids(matches.positions)
        return matches

    def insert(self, firsts: NDArray[np.int32], lasts: NDArray[np.int32], ids: NDArray[np.int32]) -> None:
        """Add boxes on the same axes."""
        firsts, lasts, ids = as_boxes(firsts, lasts, ids, self.n_cells)
        numbers = self.keep(firsts, lasts, ids)
        self.needed = np.concatenate([self.needed, np.full(len(self.ids) - len(self.needed), -1, np.int16)])
        self.needed[numbers] = _count_needed(firsts, lasts, self.n_cells)
        self.always = np.concatenate([self.always, numbers[self.needed[numbers] == 0]])
        self._reserve_nodes(2 * firsts.size)
        n_free = np.array([len(self.free_nodes)])
        boxes, nodes, lists, marks = self._changing(n_free)
        self.listed = insert_boxes(numbers, boxes, nodes, lists, self.listed, marks)
        self.free_nodes = self.free_nodes[: n_free[0]].copy()
        self.starts, self.listed, self.ends = pack_lists(self.starts, self.sizes, self.listed, self.ends)

    def remove(self, ids: NDArray[np.int32]) -> None:
        """Remove all boxes with these ids."""
        numbers = self.find(ids)
        self.free_nodes = np.concatenate([self.free_nodes, np.zeros(2 * len(self.firsts) * len(numbers), np.int32)])
        n_free = np.array([len(self.free_nodes) - 2 * len(self.firsts) * len(numbers)])
        boxes, nodes, lists, marks = self._changing(n_free)
        self.listed = remove_boxes(numbers, boxes, nodes, lists, self.listed, marks)
        self.free_nodes = self.free_nodes[: n_free[0]].copy()
        self.release(numbers)
        self.needed[numbers] = -1
        self.always = self.always[~np.isin(self.always, numbers)]
        self.starts, self.listed, self.ends = pack_lists(self.starts, self.sizes, self.listed, self.ends)

    def _changing(self, n_free: NDArray[np.int64]) -> tuple[Boxes, ChangingNodes, Lists, NDArray[np.int8]]:
        boxes = Boxes(self.firsts, self.lasts, self.n_cells)
        tree, lists = Tree(self.roots, self.values, self.children), Lists(self.starts, self.sizes, self.ends)
        nodes = ChangingNodes(tree, self.priorities, self.uses, self.free_nodes, n_free)
        return boxes, nodes, lists, np.zeros(len(self.ids), np.int8)

    def _reserve_nodes(self, n_wanted: int) -> None:
        n_more = n_wanted - len(self.free_nodes)
        if n_more <= 0:
            return
        n_old = len(self.values)
        n_more = max(n_more, n_old // 4)
        zeros = np.zeros(n_more, np.int32)
        self.values, self.uses = np.concatenate([self.values, zeros]), np.concatenate([self.uses, zeros])
        random = np.random.default_rng([SEED, n_old])
        new = random.integers(0, np.iinfo(np.int32).max, n_more, np.int32)
        self.priorities = np.concatenate([self.priorities, new])
        self.children = np.concatenate([self.children, np.full((2, n_more), -1, np.int32)], axis=1)
        self.starts = np.concatenate([self.starts, np.zeros(3 * n_more, np.int32)])
        self.sizes = np.concatenate([self.sizes, np.zeros(3 * n_more, np.int32)])
        self.free_nodes = np.concatenate([np.arange(n_old + n_more, n_old, -1, dtype=np.int32) - 1, self.free_nodes])


def _count_needed(firsts: NDArray[np.int32], lasts: NDArray[np.int32], n_cells: NDArray[np.int64]) -> NDArray[np.int16]:
    is_bounded: NDArray[np.bool_] = (firsts > 0) | (lasts < n_cells[:, None] - 1)
    needed: NDArray[np.int16] = np.count_nonzero(is_bounded, axis=0).astype(np.int16)
    return needed


def _draw_priorities(depths: NDArray[np.int32]) -> NDArray[np.int32]:
    """Random priorities, none greater than that of the parent: the greatest are for the nodes of least depth."""
    random = np.random.default_rng(SEED)
    priorities = np.empty(len(depths), np.int32)
    drawn = random.integers(0, np.iinfo(np.int32).max, len(depths), np.int32)
    priorities[np.argsort(depths, kind="stable")] = np.sort(drawn)[::-1]
    return priorities


@kernel
def _link_evenly(n: int, first_node: int) -> tuple[NDArray[np.int32], NDArray[np.int32], int]:
    """A balanced tree over `n` constants in order: links, the depth of each node, and the root."""
    children = np.full((2, n), -1, np.int32)
    depths = np.zeros(n, np.int32)
    if n == 0:
        return children, depths, -1
    stack = np.empty((64, 2), np.int64)
    stack[0, 0], stack[0, 1] = 0, n
    top = 1
    while top > 0:
        top -= 1
        low, high = stack[top, 0], stack[top, 1]
        middle = (low + high) >> 1
        for side in range(2):
            start, end = (low, middle) if side == 0 else (middle + 1, high)
            if start < end:
                child = (start + end) >> 1
                children[side, middle] = first_node + child
                depths[child] = depths[middle] + 1
                stack[top, 0], stack[top, 1] = start, end
                top += 1
    return children, depths, first_node + (n >> 1)


@kernel
def _fill(
    cells: NDArray[np.int32],
    done: int,
    row_starts: NDArray[np.int64],
    positions: NDArray[np.int32],
    most: int,
    boxes: Predicates,
    tree: Tree,
    lists: ListedBoxes,
) -> int:
    """Write the numbers of the boxes that contain each row, from `done` on while there is room; where it stopped."""
    needed, always, sizes = boxes.needed, boxes.always, lists.sizes
    roots, values, children = tree.roots, tree.values, tree.children
    counts = np.zeros((len(needed) + 7) // 8 * 8, np.int16)
    met = np.empty(64, np.int32)  # the lists that a row finds
    holds = np.zeros(len(counts), np.uint8)
    eights = holds.view(np.int64)
    out = row_starts[done]
    for row in range(done, cells.shape[1]):
        if len(positions) - out < most:
            return row
        n_met = n_listed = 0
        for axis in range(len(roots)):
            node, cell = roots[axis], cells[axis, row]
            while node >= 0:
                value = values[node]
                if n_met == len(met):
                    met = np.concatenate((met, met))
                met[n_met] = 3 * node + (0 if cell < value else 1 if cell == value else 2)
                n_listed += sizes[met[n_met]]
                n_met += 1
                node = np.int32(-1) if cell == value else children[0 if cell < value else 1, node]
        if n_listed > len(needed) >> SPARSE:
            out = _count_all(met, n_met, needed, lists, counts, holds, eights, positions, out)
        else:
            for i in range(len(always)):
                positions[out + i] = always[i]
            out = _count_some(met, n_met, needed, lists, counts, positions, out + len(always))
        row_starts[row + 1] = out
    return int(cells.shape[1])


@kernel
def _count_some(
    met: NDArray[np.int32],
    n_met: int,
    needed: NDArray[np.int16],
    lists: ListedBoxes,
    counts: NDArray[np.int16],
    positions: NDArray[np.int32],
    out: np.int64,
) -> np.int64:
    """Write a box when its last predicate is counted, and reset all counts."""
    starts, sizes, listed = lists.starts, lists.sizes, lists.listed
    for i in range(n_met):
        for place in range(starts[met[i]], starts[met[i]] + sizes[met[i]]):
            box = listed[place]
            counts[box] += np.int16(1)
            positions[out] = box
            out += counts[box] == needed[box]
    for i in range(n_met):
        for place in range(starts[met[i]], starts[met[i]] + sizes[met[i]]):
            counts[listed[place]] = 0
    return out


@kernel
def _count_all(
    met: NDArray[np.int32],
    n_met: int,
    needed: NDArray[np.int16],
    lists: ListedBoxes,
    counts: NDArray[np.int16],
    holds: NDArray[np.uint8],
    eights: NDArray[np.int64],
    positions: NDArray[np.int32],
    out: np.int64,
) -> np.int64:
    """Count all predicates, then read the counts of all boxes, eight or more at a time."""
    starts, sizes, listed = lists.starts, lists.sizes, lists.listed
    for i in range(n_met):
        for place in range(starts[met[i]], starts[met[i]] + sizes[met[i]]):
            counts[listed[place]] += np.int16(1)
    for box in range(len(needed)):
        holds[box] = counts[box] == needed[box]
    counts[:] = 0
    for i in range(len(eights)):
        eight = eights[i]
        while eight != 0:
            positions[out] = 8 * i + (lowest_one(eight) >> 3)
            out += 1
            eight = without_lowest(eight)
    return out
