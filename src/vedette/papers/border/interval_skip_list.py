"""An interval skip list: boxes on one axis, as markers on the edges and nodes of a skip list over their ends.

The IS-list of Hanson and Johnson ("Selection Predicate Indexing for Active Databases using Interval Skip Lists",
Information Systems 21(3), 1996), which the BMQ paper compares with in section 5. A box marks the longest edges that it
covers, ascending from its first end and descending to its last. A row walks down the list and collects the markers of
the edges that pass over it. Costs about 2 log n steps per row and about log n markers per box. Adding or removing a box
changes its own markers, and those on edges that its end nodes split or join. A marker is the number of a box, whose
ends must be known to move it. A list that never changed does not store the ends, because they follow from the nodes.
`Buckets` and `Lists` do the same work faster; this index exists for comparison.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from vedette.data.matches import Matches
from vedette.indexes.growth import collect
from vedette.indexes.index import ONE_FIELD, TooLargeError, as_boxes, as_cells
from vedette.native.kernels import kernel
from vedette.native.vectors import copy_eight
from vedette.papers.border.skip_list_changes import (
    HEADER,
    LEVELS,
    TAIL,
    TAKEN,
    TOP,
    Towers,
    find_path,
    insert_boxes,
    remove_boxes,
)
from vedette.papers.box_store import BoxStore, find_first_id
from vedette.papers.growing_lists import (
    SLACK,
    GrowingLists,
    close_lists,
    count_listed,
    make_lists,
    open_lists,
    pack_lists,
)

SEED = 1  # of the heights of towers: equal boxes give equal lists
END = np.iinfo(np.int32).max  # the key after the last node; no box reaches it


@dataclass
class ISList(BoxStore):
    """A node is a tower of slots, and is named by the first of them: `forward[node]` is its key, an end of a box.

    Its edge on level `l`, from 1 to `heights[node]`, is the slot `node + l` and leads to node `forward[node + l]`. Each
    slot lists the boxes that mark it; the first slot lists those that mark the node. `HEADER` is a node before all
    keys, and `TAIL` is one after them.
    """

    n_fields: ClassVar[range] = ONE_FIELD

    forward: NDArray[np.int32]
    heights: NDArray[np.int8]  # by the first slot
    free_towers: NDArray[np.int32]  # by height: a free tower, whose first slot leads to the next one; or -1
    limits: NDArray[np.int64]  # the levels and the slots that are in use
    starts: NDArray[np.int32]  # the lists, see `growing_lists`; closed until the first change
    sizes: NDArray[np.int32]
    listed: NDArray[np.int32]
    ends: NDArray[np.int64]
    n_inserts: int

    @classmethod
    def build(
        cls, firsts: NDArray[np.int32], lasts: NDArray[np.int32], ids: NDArray[np.int32], n_cells: Sequence[int]
    ) -> Self:
        """Index boxes on one axis."""
        firsts, lasts, ids = as_boxes(firsts, lasts, ids, n_cells)
        keys = np.unique(np.concatenate([firsts[0], lasts[0]]))
        drawn = _draw_heights(len(keys), 0)
        nodes = (np.cumsum(drawn + 1, dtype=np.int64) - drawn + TAIL).astype(np.int32)
        n_slots = TAIL + 1 + len(drawn) + int(drawn.sum(dtype=np.int64))
        heights = np.zeros(n_slots, np.int8)
        heights[nodes], heights[HEADER] = drawn, LEVELS
        forward = np.full(n_slots, TAIL, np.int32)
        forward[nodes], forward[HEADER], forward[TAIL] = keys, -1, END
        _link(nodes, heights, forward)
        first_nodes, last_nodes = (nodes[np.searchsorted(keys, cells[0])] for cells in (firsts, lasts))
        sizes = np.zeros(n_slots, np.int64)
        none = np.empty(0, np.int32)
        _mark_all(first_nodes, last_nodes, lasts[0], forward, heights, sizes, none, none, False)
        if sizes.sum() >= 1 << 31:
            raise TooLargeError(f"an interval skip list would have {sizes.sum()} markers; the limit is 2^31")
        starts, counts, listed, list_ends = make_lists(sizes)
        sizes[:] = 0
        _mark_all(first_nodes, last_nodes, lasts[0], forward, heights, sizes, starts, listed, True)
        limits = np.array([drawn.max(initial=1), n_slots], np.int64)
        untold, free_towers = np.empty((1, 0), np.int32), np.full(LEVELS + 1, -1, np.int32)
        return cls(
            untold, untold, ids.copy(), none, find_first_id(ids),
            forward, heights, free_towers, limits, *close_lists(starts, counts), listed, list_ends, 0,
        )  # fmt: skip

    def match(self, cells: NDArray[np.int32]) -> Matches:
        cells = as_cells(cells)
        most = len(self) + SLACK
        lists, forward, top = self._lists, self.forward, int(self.limits[TOP])
        matches = collect(
            cells.shape[1],
            most,
            lambda done, starts, positions: _fill(cells[0], done, starts, positions, most, top, forward, lists),
        )
        self.give_ids(matches.positions)
        return matches

    def insert(self, firsts: NDArray[np.int32], lasts: NDArray[np.int32], ids: NDArray[np.int32]) -> None:
        """Add boxes on the same axis."""
        self._open()
        numbers = self.keep(*as_boxes(firsts, lasts, ids, [END]))
        self.n_inserts += 1
        drawn = _draw_heights(2 * len(numbers), self.n_inserts)
        self._reserve_slots(len(drawn) + int(drawn.sum(dtype=np.int64)))
        self.listed = insert_boxes(numbers, drawn, self.firsts, self.lasts, self._towers, self._lists)
        self.starts, self.listed, self.ends = pack_lists(self.starts, self.sizes, self.listed, self.ends, len(numbers))

    def remove(self, ids: NDArray[np.int32]) -> None:
        """Remove all boxes with these ids."""
        self._open()
        numbers = self.find(ids)
        self.listed = remove_boxes(numbers, self.firsts, self.lasts, self._towers, self._lists)
        self.release(numbers)
        self.starts, self.listed, self.ends = pack_lists(self.starts, self.sizes, self.listed, self.ends, len(numbers))

    def _open(self) -> None:
        if len(self.sizes) == 0:
            self.starts, self.sizes = open_lists(self.starts)
            self.firsts, self.lasts = np.empty((2, 1, len(self.ids)), np.int32)
            _find_ends(self.forward, self.starts, self.sizes, self.listed, self.firsts, self.lasts)

    @property
    def _towers(self) -> Towers:
        return Towers(self.forward, self.heights, self.free_towers, self.limits)

    @property
    def _lists(self) -> GrowingLists:
        return GrowingLists(self.starts, self.sizes, self.listed, self.ends)

    def _reserve_slots(self, n_wanted: int) -> None:
        n_old = len(self.forward)
        n_more = int(self.limits[TAKEN]) + n_wanted - n_old
        if n_more <= 0:
            return
        n_more = max(n_more, n_old // 4)
        for name in ("forward", "heights", "starts", "sizes"):
            old = getattr(self, name)
            setattr(self, name, np.concatenate([old, np.zeros(n_more, old.dtype)]))


def _draw_heights(n: int, n_inserts: int) -> NDArray[np.int8]:
    """Heights of `n` towers: half of them are higher than one level, a quarter higher than two, and so on."""
    return np.minimum(np.random.default_rng([SEED, n_inserts]).geometric(0.5, n), LEVELS).astype(np.int8)


@kernel
def _link(nodes: NDArray[np.int32], heights: NDArray[np.int8], forward: NDArray[np.int32]) -> None:
    """Link each edge to the next node of at least its level, or to the end."""
    ahead = np.full(LEVELS + 1, TAIL, np.int32)
    for i in range(len(nodes) - 1, -2, -1):
        node = nodes[i] if i >= 0 else np.int32(HEADER)
        for level in range(1, heights[node] + 1):
            forward[node + level] = ahead[level]
            ahead[level] = node


@kernel
def _mark_all(
    first_nodes: NDArray[np.int32],
    last_nodes: NDArray[np.int32],
    lasts: NDArray[np.int32],
    forward: NDArray[np.int32],
    heights: NDArray[np.int8],
    sizes: NDArray[np.int64],
    starts: NDArray[np.int32],
    listed: NDArray[np.int32],
    fill: bool,
) -> None:
    """Count the markers of each slot, or write them."""
    path = np.empty(128, np.int32)
    for box in range(len(lasts)):
        path, n = find_path(first_nodes[box], last_nodes[box], lasts[box], forward, heights, path)
        for i in range(n):
            slot = path[i]
            if fill:
                listed[starts[slot] + sizes[slot]] = box
            sizes[slot] += 1


@kernel
def _find_ends(
    forward: NDArray[np.int32],
    starts: NDArray[np.int32],
    sizes: NDArray[np.int32],
    listed: NDArray[np.int32],
    firsts: NDArray[np.int32],
    lasts: NDArray[np.int32],
) -> None:
    """Write the keys of the first and the last node that each box marks."""
    firsts[:] = END
    node = np.int64(forward[HEADER + 1])
    while node != TAIL:
        for place in range(starts[node], starts[node] + sizes[node]):
            number = listed[place]
            firsts[0, number] = min(firsts[0, number], forward[node])
            lasts[0, number] = forward[node]
        node = np.int64(forward[node + 1])


@kernel
def _fill(
    cells: NDArray[np.int32],
    done: int,
    row_starts: NDArray[np.int64],
    positions: NDArray[np.int32],
    most: int,
    top: int,
    forward: NDArray[np.int32],
    lists: GrowingLists,
) -> int:
    """Write the numbers of the boxes that hold each row from `done` on while there is room; the row it stopped at."""
    starts, sizes, listed = lists.starts, lists.sizes, lists.listed
    out = row_starts[done]
    for row in range(done, len(cells)):
        if len(positions) - out < most:
            return row
        cell = cells[row]
        node = np.int64(HEADER)
        for level in range(top, 0, -1):
            ahead = np.int64(forward[node + level])
            while forward[ahead] <= cell:
                node = ahead
                ahead = np.int64(forward[node + level])
            is_key = forward[node] == cell
            slot = int(node if is_key else node + level)  # a box with a key marks its node, or an edge passed before
            at, size = starts[slot], count_listed(slot, starts, sizes)
            for i in range(0, size, 8):
                copy_eight(positions, out + i, listed, at + i)  # surplus entries are overwritten
            out += size
            if is_key:
                break
        row_starts[row + 1] = out
    return len(cells)
