"""An interval skip list: boxes on one axis, as markers on the edges and nodes of a skip list over their ends.

The IS-list of Hanson and Johnson ("Selection Predicate Indexing for Active Databases using Interval Skip Lists",
Information Systems 21(3), 1996), which the BMQ paper compares with in section 5. A box marks the
longest edges that it covers, from its first end up and down again to its last. A row walks down the list and collects
the markers of the edges that pass over it. Costs a walk of about 2 log n steps a row, and about log n markers a box.
What comes or goes has the list built anew from the boxes, which it keeps: nodes are arrays here, not chained in memory.
`Buckets` and `Lists` do the same work faster; it is there to be compared with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from vedette.buffers import empty_int32
from vedette.indexes.growth import collect
from vedette.indexes.index import TooLargeError, as_boxes, as_cells, count_bytes
from vedette.kernels import kernel
from vedette.matches import Matches

SEED = 1  # of the heights of towers: equal boxes make equal lists
END = np.iinfo(np.int32).max  # the key behind the last node; no box reaches it


@dataclass
class ISList:
    """Node 0 is the header, and the last one, of key `END`, stands behind all; between them are the ends in order.

    The edge of node `n` on level `l` is `e = towers[n] + l` and leads to node `forward[e]`. Its markers are
    `markers[starts[e]:starts[e + 1]]`, and those of node `n` itself are found so under `len(forward) + n`.
    """

    firsts: NDArray[np.int32]  # of the boxes, (1, boxes)
    lasts: NDArray[np.int32]
    ids: NDArray[np.int32]
    keys: NDArray[np.int32]
    towers: NDArray[np.int32]
    forward: NDArray[np.int32]
    starts: NDArray[np.int32]
    markers: NDArray[np.int32]
    most: int  # boxes that hold one row

    @classmethod
    def build(
        cls, firsts: NDArray[np.int32], lasts: NDArray[np.int32], ids: NDArray[np.int32], n_cells: Sequence[int]
    ) -> Self:
        """Index boxes on one axis."""
        firsts, lasts, ids = as_boxes(firsts, lasts, ids)
        ends = np.unique(np.concatenate([firsts[0], lasts[0]]))
        keys = np.concatenate([[-1], ends, [END]]).astype(np.int32)
        n_levels = max(1, len(ends).bit_length())
        heights = np.minimum(np.random.default_rng(SEED).geometric(0.5, len(keys)), n_levels)
        heights[0], heights[-1] = n_levels, 0
        towers = np.concatenate([[0], np.cumsum(heights)]).astype(np.int32)
        forward = np.empty(int(towers[-1]), np.int32)
        _link(towers, forward, n_levels)
        first_nodes, last_nodes = (np.searchsorted(keys, cells[0]).astype(np.int32) for cells in (firsts, lasts))
        starts = np.zeros(len(forward) + len(keys) + 2, np.int64)
        _mark_boxes(first_nodes, last_nodes, ids, towers, forward, starts, empty_int32(0), False)
        np.cumsum(starts, out=starts)
        if starts[-1] >= 1 << 31:
            raise TooLargeError(f"an interval skip list would hold {starts[-1]} markers and can hold 2^31")
        markers = np.zeros(int(starts[-1]), np.int32)
        _mark_boxes(first_nodes, last_nodes, ids, towers, forward, starts, markers, True)
        most = _count_most(first_nodes, last_nodes)
        boxes = firsts.copy(), lasts.copy(), ids.copy()
        return cls(*boxes, keys, towers, forward, starts[:-1].astype(np.int32), markers, most)

    def match(self, cells: NDArray[np.int32]) -> Matches:
        cells = as_cells(cells)
        return collect(
            cells.shape[1],
            self.most,
            lambda done, starts, positions: _fill(
                cells[0], done, starts, positions, self.keys, self.towers, self.forward, self.starts, self.markers,
                self.most,
            ),
        )  # fmt: skip

    def insert(self, firsts: NDArray[np.int32], lasts: NDArray[np.int32], ids: NDArray[np.int32]) -> None:
        """Take in boxes of the same axis."""
        self._build_anew(
            np.concatenate([self.firsts, firsts], axis=1),
            np.concatenate([self.lasts, lasts], axis=1),
            np.concatenate([self.ids, ids]),
        )

    def remove(self, ids: NDArray[np.int32]) -> None:
        """Let all boxes of these ids go."""
        kept = ~np.isin(self.ids, ids)
        self._build_anew(self.firsts[:, kept], self.lasts[:, kept], self.ids[kept])

    def _build_anew(self, firsts: NDArray[np.int32], lasts: NDArray[np.int32], ids: NDArray[np.int32]) -> None:
        self.__dict__.update(type(self).build(firsts, lasts, ids, []).__dict__)

    @property
    def nbytes(self) -> int:
        return count_bytes(self)


def _count_most(first_nodes: NDArray[np.int32], last_nodes: NDArray[np.int32]) -> int:
    """The most boxes over one node, where most are over any cell: a box holds both its ends."""
    if len(first_nodes) == 0:
        return 0
    begun = np.bincount(first_nodes, minlength=int(last_nodes.max()) + 2)
    begun[1:] -= np.bincount(last_nodes, minlength=len(begun))[:-1]
    return int(np.cumsum(begun).max())


@kernel
def _link(towers: NDArray[np.int32], forward: NDArray[np.int32], n_levels: int) -> None:
    """Lead each edge to the next node that is so high, or behind all."""
    n_nodes = len(towers) - 1
    ahead = np.full(n_levels, n_nodes - 1, np.int32)
    for node in range(n_nodes - 2, -1, -1):
        for level in range(towers[node + 1] - towers[node]):
            forward[towers[node] + level] = ahead[level]
            ahead[level] = node


@kernel
def _mark_boxes(
    first_nodes: NDArray[np.int32],
    last_nodes: NDArray[np.int32],
    ids: NDArray[np.int32],
    towers: NDArray[np.int32],
    forward: NDArray[np.int32],
    starts: NDArray[np.int64],
    markers: NDArray[np.int32],
    fill: bool,
) -> None:
    """Count the markers of each box in `starts`, or write them: one an edge of its path, and one a node.

    Those of edge or node `i` are counted at `i + 2`, so that filling moves each start to where it belongs.
    """
    for box in range(len(ids)):
        node, last = first_nodes[box], last_nodes[box]
        _mark_one(len(forward) + node, ids[box], starts, markers, fill)
        while node < last:
            # The longest edge that stays within the box; on the lowest level there is one.
            level = towers[node + 1] - towers[node] - 1
            while forward[towers[node] + level] > last:
                level -= 1
            _mark_one(towers[node] + level, ids[box], starts, markers, fill)
            node = forward[towers[node] + level]
            _mark_one(len(forward) + node, ids[box], starts, markers, fill)


@kernel
def _mark_one(place: int, box_id: int, starts: NDArray[np.int64], markers: NDArray[np.int32], fill: bool) -> None:
    if fill:
        markers[starts[place + 1]] = box_id
        starts[place + 1] += 1
    else:
        starts[place + 2] += 1


@kernel
def _fill(
    cells: NDArray[np.int32],
    done: int,
    row_starts: NDArray[np.int64],
    positions: NDArray[np.int32],
    keys: NDArray[np.int32],
    towers: NDArray[np.int32],
    forward: NDArray[np.int32],
    starts: NDArray[np.int32],
    markers: NDArray[np.int32],
    most: int,
) -> int:
    """Write the matches of rows from `done` on while there is room; how many rows are done then."""
    out = row_starts[done]
    for row in range(done, len(cells)):
        if len(positions) - out < most:
            return row
        cell = cells[row]
        node = 0
        for level in range(towers[1] - 1, -1, -1):
            while keys[forward[towers[node] + level]] <= cell:
                node = forward[towers[node] + level]
            place = towers[node] + level
            if keys[node] == cell:  # what holds it marks an edge passed before, or the node
                place = len(forward) + node
            for marker in range(starts[place], starts[place + 1]):
                positions[out] = markers[marker]
                out += 1
            if keys[node] == cell:
                break
        row_starts[row + 1] = out
    return len(cells)
