"""An R-tree: boxes on any number of axes in nested bounding boxes, added and removed one by one.

Guttman, "R-trees: A Dynamic Index Structure for Spatial Searching" (SIGMOD 1984), with quadratic splits, which Wu, Chen
and Yu compare VCR with in section 3.6. A row descends into every node whose bounds contain it; if boxes overlap, so do
the bounds, and it visits many nodes. Costs about 16 bytes per box and axis. `Quadtree` does the same work faster; this
index exists for comparison.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from vedette.data.matches import Matches
from vedette.indexes.growth import collect
from vedette.indexes.index import ANY_FIELDS, as_boxes, as_cells, count_bytes
from vedette.native.kernels import kernel
from vedette.papers.rtrees.rectangle_tree_changes import (
    CAPACITY,
    N_BOXES,
    N_FREE,
    N_NODES,
    ROOT,
    SPARE,
    Nodes,
    insert_boxes,
    remove_entry,
)


@dataclass
class RTree:
    """Entry `e` of node `n` has the bounds `bounds[n, e]`, first cells and then last ones, and a child.

    The children of a leaf, a node of level 0, are ids; those of other nodes are nodes of the next lower level.
    """

    n_fields: ClassVar[range] = ANY_FIELDS

    bounds: NDArray[np.int32]  # (nodes, CAPACITY + 1, 2 * axes): the last place is for an entry that causes a split
    children: NDArray[np.int32]
    sizes: NDArray[np.int32]
    levels: NDArray[np.int32]
    parents: NDArray[np.int32]
    free_nodes: NDArray[np.int32]
    counts: NDArray[np.int64]

    @classmethod
    def build(
        cls, firsts: NDArray[np.int32], lasts: NDArray[np.int32], ids: NDArray[np.int32], n_cells: Sequence[int]
    ) -> Self:
        """Index boxes on any number of axes, one after the other."""
        firsts, lasts, ids = as_boxes(firsts, lasts, ids, n_cells)
        n_nodes = 1 + 2 * len(ids) // CAPACITY
        index = cls(*_new_nodes(n_nodes, len(n_cells)), np.zeros(n_nodes, np.int32), np.zeros(4, np.int64))
        index.counts[N_NODES], index.parents[0] = 1, -1
        index._insert(firsts, lasts, ids)
        return index._without_spare()

    def match(self, cells: NDArray[np.int32]) -> Matches:
        cells = as_cells(cells)
        most = len(self) + 1
        nodes = self._nodes
        return collect(
            cells.shape[1], most, lambda done, starts, positions: _fill(cells, done, starts, positions, most, nodes)
        )

    def insert(self, firsts: NDArray[np.int32], lasts: NDArray[np.int32], ids: NDArray[np.int32]) -> None:
        """Add boxes on the same axes."""
        self._insert(*as_boxes(firsts, lasts, ids))

    def remove(self, ids: NDArray[np.int32]) -> None:
        """Remove all boxes with these ids."""
        while True:
            taken = (self.levels == 0)[:, None] & (np.arange(CAPACITY + 1) < self.sizes[:, None])
            found = np.argwhere(taken & np.isin(self.children, ids))
            if len(found) == 0:
                break
            # From the last on: an entry that fills a gap comes from a later place. Moved entries are found next time.
            for leaf, entry in found[::-1].tolist():
                if self.levels[leaf] == 0 and entry < self.sizes[leaf] and self.children[leaf, entry] in ids:
                    self._reserve(SPARE)
                    remove_entry(leaf, entry, self._nodes)
        self._without_spare()

    def __len__(self) -> int:
        return int(self.counts[N_BOXES])

    @property
    def nbytes(self) -> int:
        return count_bytes(self)

    @property
    def _nodes(self) -> Nodes:
        return Nodes(self.bounds, self.children, self.sizes, self.levels, self.parents, self.free_nodes, self.counts)

    def _insert(self, firsts: NDArray[np.int32], lasts: NDArray[np.int32], ids: NDArray[np.int32]) -> None:
        done = 0
        while True:
            done = insert_boxes(firsts, lasts, ids, done, self._nodes)
            if done == len(ids):
                return
            self._reserve(8 + len(self.sizes) // 2)

    def _reserve(self, n_wanted: int) -> None:
        n_more = n_wanted - int(len(self.sizes) - self.counts[N_NODES] + self.counts[N_FREE])
        if n_more > 0:
            more = _new_nodes(n_more, self.bounds.shape[2] // 2)
            for name, array in zip(_BY_NODE, more, strict=True):
                setattr(self, name, np.concatenate([getattr(self, name), array]))
            self.free_nodes = np.concatenate([self.free_nodes, np.zeros(n_more, np.int32)])

    def _without_spare(self) -> Self:
        n = int(self.counts[N_NODES])
        for name in (*_BY_NODE, "free_nodes"):
            setattr(self, name, getattr(self, name)[:n].copy())
        return self


_BY_NODE = "bounds", "children", "sizes", "levels", "parents"


def _new_nodes(n: int, n_axes: int) -> tuple[Any, Any, Any, Any, Any]:
    bounds, children = np.zeros((n, CAPACITY + 1, 2 * n_axes), np.int32), np.full((n, CAPACITY + 1), -1, np.int32)
    return bounds, children, np.zeros(n, np.int32), np.zeros(n, np.int32), np.full(n, -1, np.int32)


@kernel
def _fill(
    cells: NDArray[np.int32],
    done: int,
    starts: NDArray[np.int64],
    positions: NDArray[np.int32],
    most: int,
    nodes: Nodes,
) -> int:
    """Write the matches of rows from `done` on while there is room; how many rows are done then."""
    bounds, children, sizes, levels, counts = nodes.bounds, nodes.children, nodes.sizes, nodes.levels, nodes.counts
    n_axes, n_rows = cells.shape
    stack = np.empty((levels[counts[ROOT]] + 1) * CAPACITY + 1, np.int32)
    out = starts[done]
    for row in range(done, n_rows):
        if len(positions) - out < most:
            return row
        stack[0] = counts[ROOT]
        top = 1
        while top > 0:
            top -= 1
            node = stack[top]
            is_leaf = levels[node] == 0
            for entry in range(sizes[node]):  # written whether it matches or not: no branch to mispredict
                holds = 1
                for axis in range(n_axes):
                    cell = cells[axis, row]
                    holds &= (bounds[node, entry, axis] <= cell) & (cell <= bounds[node, entry, n_axes + axis])
                if is_leaf:
                    positions[out] = children[node, entry]
                    out += holds
                else:
                    stack[top] = children[node, entry]
                    top += holds
        starts[row + 1] = out
    return int(n_rows)
