"""Boxes on two axes, listed by leaf: boxes that overlap a leaf are tested, boxes that cover it are copied.

Best at low selectivity on two axes, as fast as lists by cell with a tenth of their memory. Leaves form a grid, fine
enough to keep tests below a quarter of the matches or as fine as `BYTES_PER_BOX` allows. A crowded leaf splits into
4 x 4 leaves, repeatedly, like a quadtree. Covered leaves are the virtual construct rectangles of Wu, Chen and Yu,
section 3. Rows are not sorted but prefetched: sorting them first (Lim et al., section 5) costs more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from vedette.data.matches import Matches
from vedette.indexes.estimates import BoxFacts, Estimate, miss_cost
from vedette.indexes.growth import collect
from vedette.indexes.index import (
    MAX_IN_ONE_CALL,
    SMALL_BATCH,
    TWO_FIELDS,
    TooLargeError,
    as_boxes,
    as_cells,
    count_bytes,
)
from vedette.indexes.leaves import (
    BYTES_PER_BOX,
    SLACK,
    SPLIT,
    choose_leaf,
    count_by_slot,
    count_entries,
    fill_blocks,
    group_tests,
    order_boxes,
    sort_tests,
)
from vedette.native.damage import check, check_fields, check_shape
from vedette.native.kernels import kernel
from vedette.native.prefetch import prefetch
from vedette.native.vectors import copy_eight

MAX_BYTES_PER_BOX = 400  # boxes that are long on an axis of very many cells would take far more
MAX_ENTRIES_PER_BOX = 256  # before leaves are split; far beyond what any memory limit allows
CROWDED = 32  # a leaf with more tests is split, if they are four times the copies and memory allows
MAX_SPLITS = 6
GROUPED = 2  # blocks are grouped if they have more boxes per word on average
FAR, NEAR, NEXT = 24, 12, 4  # rows ahead for which a leaf's number, the start of its block and the rest are prefetched

# A tested range of offsets lo..hi is a pair of fields, half - lo and half + hi. Adding an offset to the first and
# subtracting it from the second leaves both top bits set exactly if lo <= offset <= hi. In leaves of at most 128 x 128
# cells, one word has the four fields of a rectangle, 8 bits each; else one word has two of 16 bits for x, one for y.
_GUARD_8 = 0x80808080
_GUARD_16 = 0x80008000


class _Tree(NamedTuple):
    """The fields of a `Quadtree`, for kernels."""

    shift_x: int
    shift_y: int
    n_y: int
    grouped: int
    table: NDArray[np.int32]
    entries: NDArray[np.int32]


@dataclass(frozen=True)
class Quadtree:
    """`table` has the place of each leaf's block in `entries`; an entry -c means that c is the first of 16 children.

    A block has its number of tests, the number of boxes that cover it, the words and the ids to test, and the ids of
    the boxes that cover it. If many boxes share a word, as on a coarse grid, they are tested as one: a grouped block
    has its number of groups, the number of boxes that cover it, the words and the sizes of the groups, the ids of the
    boxes that cover it, and the ids of the groups.
    """

    n_fields: ClassVar[range] = TWO_FIELDS
    wins_for: ClassVar[str] = "ranges on two fields"
    needs: ClassVar[str] = "two fields on which boxes are ranges, and not too long ones"
    needs_points: ClassVar[bool] = False

    shift_x: int  # a leaf of the grid is 2 ** shift_x cells by 2 ** shift_y
    shift_y: int
    n_y: int  # leaf (x, y) of the grid is at table[x * n_y + y]
    grouped: int  # 1 if blocks are grouped, else 0
    most: int  # the most ids of any block, and slack
    table: NDArray[np.int32]
    entries: NDArray[np.int32]

    @classmethod
    def build(
        cls, firsts: NDArray[np.int32], lasts: NDArray[np.int32], ids: NDArray[np.int32], n_cells: Sequence[int]
    ) -> Self:
        """Index boxes on two axes."""
        firsts, lasts, ids = as_boxes(firsts, lasts, ids, n_cells)
        leaf = choose_leaf(firsts, lasts, n_cells)
        shift_x, shift_y = leaf.shift_x, leaf.shift_y
        if sum(count_entries(firsts, lasts, shift_x, shift_y)) > MAX_ENTRIES_PER_BOX * (len(ids) + 1000):
            raise TooLargeError("a quadtree would list these boxes in too many leaves")
        n_x, n_y = ((n_cells[0] - 1) >> shift_x) + 1, ((n_cells[1] - 1) >> shift_y) + 1
        order = order_boxes(firsts, shift_x, shift_y, n_x, n_y)
        table = np.zeros(n_x * n_y, np.int32)
        n_tests, n_covering = by_slot = count_by_slot(firsts, lasts, order, shift_x, shift_y, n_y, table)
        width = 2 if max(shift_x, shift_y) <= 7 else 3
        for splits in range(1, MAX_SPLITS + 1):
            crowded = np.flatnonzero((n_tests > CROWDED) & (n_tests > 4 * n_covering))
            if len(crowded) == 0 or min(shift_x, shift_y) < SPLIT * splits:
                break
            finer = np.concatenate([table, np.zeros(len(crowded) << 2 * SPLIT, np.int32)])
            finer[crowded] = -len(table) - (np.arange(len(crowded), dtype=np.int32) << 2 * SPLIT)
            counts = count_by_slot(firsts, lasts, order, shift_x, shift_y, n_y, finer)
            if 4 * (width * counts[0].sum() + counts[1].sum() + 3 * len(finer)) > BYTES_PER_BOX * len(ids):
                break
            table, by_slot = finer, counts
            n_tests, n_covering = by_slot
        used = n_tests + n_covering > 0
        entries = np.empty(2 + int((width * n_tests + n_covering + 2)[used].sum(dtype=np.int64)) + SLACK, np.int32)
        fill_blocks(firsts, lasts, ids, order, shift_x, shift_y, n_y, table, by_slot, entries)
        most = int((n_tests + n_covering).max()) + SLACK
        n_groups = sort_tests(table, entries) if width == 2 else 0
        grouped = 0 < n_groups * GROUPED <= int(n_tests.sum())
        if grouped:
            smaller = np.empty(len(entries) - int(n_tests.sum(dtype=np.int64)) + 2 * n_groups, np.int32)
            group_tests(table, entries, smaller)
            entries = smaller
        return cls(shift_x, shift_y, n_y, int(grouped), most, table, entries)

    @classmethod
    def estimate(cls, facts: BoxFacts) -> list[Estimate]:
        (axes,) = facts.pairs()
        if facts.is_point[axes[0]]:  # a keyed index is better
            return []
        ordered = facts.on(axes)
        leaf = choose_leaf(ordered.firsts, ordered.lasts, ordered.n_cells)
        if leaf.bytes_per_box > MAX_BYTES_PER_BOX:
            return []
        met = facts.matches
        tests = min(leaf.tests_per_row, met + 8)
        cost = 22 + 0.7 * tests + 0.5 * met + 3 * miss_cost(facts.n, 150)
        return [Estimate(axes, cost, f"a row meets about {met:,.1f} of {facts.n:,} boxes")]

    def match(self, cells: NDArray[np.int32]) -> Matches:
        cells = as_cells(cells)
        n_rows, most = cells.shape[1], self.most
        if n_rows == 1 or (n_rows <= SMALL_BATCH and n_rows * most <= MAX_IN_ONE_CALL):
            # Plain arguments: a tuple would make the call of a single row slower.
            return Matches(
                *_match(cells, self.shift_x, self.shift_y, self.n_y, self.grouped, most, self.table, self.entries)
            )
        tree = _Tree(self.shift_x, self.shift_y, self.n_y, self.grouped, self.table, self.entries)
        return collect(n_rows, most, lambda done, starts, positions: _fill(cells, done, starts, positions, most, tree))

    def validate(self, n_cells: Sequence[int], ids: range) -> None:
        check_fields(self)
        check(len(n_cells) == 2 and self.grouped in (0, 1), "a quadtree is on two axes")
        check(0 <= self.shift_x < 16 and 0 <= self.shift_y < 16, "the leaves of a quadtree are too large")
        n_x, n_y = ((n_cells[0] - 1) >> self.shift_x) + 1, ((n_cells[1] - 1) >> self.shift_y) + 1
        check(not self.grouped or max(self.shift_x, self.shift_y) <= 7, "the leaves of a quadtree are too large")
        check_shape(self.table, (len(self.table),), "the table of a quadtree")
        check_shape(self.entries, (len(self.entries),), "the blocks of a quadtree")
        n_splits = min(self.shift_x, self.shift_y) // SPLIT
        check(
            self.n_y == n_y and _validate_table(self.table, n_x * n_y, n_splits), "the table of a quadtree is invalid"
        )
        width = 2 if max(self.shift_x, self.shift_y) <= 7 else 3
        most = _validate_blocks(self.table, self.entries, self.grouped, width, ids.start, ids.stop)
        check(most >= 0 and self.most == most + SLACK, "the blocks of a quadtree are invalid")

    @property
    def nbytes(self) -> int:
        return count_bytes(self)


@kernel
def _match(
    cells: NDArray[np.int32],
    shift_x: int,
    shift_y: int,
    n_y: int,
    grouped: int,
    most: int,
    table: NDArray[np.int32],
    entries: NDArray[np.int32],
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    room = np.int64(SLACK)
    for row in range(cells.shape[1]):
        at = _find(cells[0, row], cells[1, row], shift_x, shift_y, n_y, table)
        room += most if grouped else entries[at] + entries[at + 1]
    starts = np.zeros(cells.shape[1] + 1, np.int64)
    positions = np.empty(room, np.int32)
    _fill(cells, 0, starts, positions, 0, _Tree(shift_x, shift_y, n_y, grouped, table, entries))
    return starts, positions[: starts[-1]].copy()


@kernel
def _find(x: int, y: int, shift_x: int, shift_y: int, n_y: int, table: NDArray[np.int32]) -> int:
    """The block of the leaf around a cell."""
    at = np.int64(table[(x >> shift_x) * n_y + (y >> shift_y)])
    while at < 0:
        shift_x -= SPLIT
        shift_y -= SPLIT
        at = np.int64(table[(((x >> shift_x) & 3) << SPLIT) + ((y >> shift_y) & 3) - at])
    return int(at)


@kernel
def _fill(
    cells: NDArray[np.int32],
    done: int,
    starts: NDArray[np.int64],
    positions: NDArray[np.int32],
    most: int,
    tree: _Tree,
) -> int:
    """Write the matches of rows from `done` on while there is room for `most`. Returns how many rows are done."""
    shift_x, shift_y, n_y, grouped = tree.shift_x, tree.shift_y, tree.n_y, tree.grouped
    table, entries = tree.table, tree.entries
    n_rows = cells.shape[1]
    inside_x, inside_y = (1 << shift_x) - 1, (1 << shift_y) - 1
    small = max(shift_x, shift_y) <= 7
    large = len(entries) > 32 * len(table)  # many blocks are longer than their prefetched part
    out = starts[done]
    for row in range(done, n_rows):
        if len(positions) - out < most:
            return int(row)
        if row + FAR < n_rows:
            prefetch(table, (cells[0, row + FAR] >> shift_x) * n_y + (cells[1, row + FAR] >> shift_y))
            ahead = table[(cells[0, row + NEAR] >> shift_x) * n_y + (cells[1, row + NEAR] >> shift_y)]
            if ahead >= 0:
                prefetch(entries, ahead)
                prefetch(entries, ahead + 16)
                prefetch(entries, ahead + 32)
            if large:
                ahead = table[(cells[0, row + NEXT] >> shift_x) * n_y + (cells[1, row + NEXT] >> shift_y)]
                if ahead >= 0:
                    size = 2 + (2 if small else 3) * entries[ahead] + entries[ahead + 1]
                    for place in range(48, size, 16):
                        prefetch(entries, ahead + place)
        at = _find(cells[0, row], cells[1, row], shift_x, shift_y, n_y, table)
        n_tests = entries[at]
        n_covering = entries[at + 1]
        x, y = np.int64(cells[0, row] & inside_x), np.int64(cells[1, row] & inside_y)
        word = at + 2
        covering = word + (2 if small else 3) * n_tests
        copy_eight(positions, out, entries, covering)
        for j in range(8, n_covering, 8):
            copy_eight(positions, out + j, entries, covering + j)
        out += n_covering
        if grouped:
            moved = x - (x << 8) + ((y - (y << 8)) << 16)
            listed = covering + n_covering
            for j in range(word, word + n_tests):
                size = entries[j + n_tests]
                held = ((entries[j] + moved) & _GUARD_8) == _GUARD_8
                copy_eight(positions, out, entries, listed)
                if held and size > 8:
                    for i in range(8, size, 8):
                        copy_eight(positions, out + i, entries, listed + i)
                listed += size
                out += size * held
        elif small:
            moved = x - (x << 8) + ((y - (y << 8)) << 16)
            for j in range(word, word + n_tests):
                positions[out] = entries[j + n_tests]
                out += ((entries[j] + moved) & _GUARD_8) == _GUARD_8
        else:
            moved_x = x - (x << 16)
            moved_y = y - (y << 16)
            for j in range(word, word + n_tests):
                positions[out] = entries[j + 2 * n_tests]
                out += ((entries[j] + moved_x) & (entries[j + n_tests] + moved_y) & _GUARD_16) == _GUARD_16
        starts[row + 1] = out
    return int(n_rows)


@kernel
def _validate_table(table: NDArray[np.int32], n_leaves: int, n_splits: int) -> bool:
    """Whether children of split leaves come after them, and no leaf is split too often."""
    if len(table) < n_leaves:
        return False
    depths = np.full(len(table), -1, np.int8)
    depths[:n_leaves] = 0
    for slot in range(len(table)):
        if depths[slot] < 0:
            return False
        if table[slot] < 0:
            first = -np.int64(table[slot])
            if first <= slot or first + (1 << 2 * SPLIT) > len(table) or depths[slot] >= n_splits:
                return False
            for child in range(first, first + (1 << 2 * SPLIT)):
                if depths[child] >= 0:
                    return False
                depths[child] = depths[slot] + 1
    return True


@kernel
def _validate_blocks(
    table: NDArray[np.int32], entries: NDArray[np.int32], grouped: int, width: int, first_id: int, end_id: int
) -> int:
    """The most ids of a block, or -1 if blocks are not contiguous or a leaf has no block."""
    end = len(entries) - SLACK
    if end < 2 or entries[0] != 0 or entries[1] != 0:
        return -1
    is_block = np.zeros(end, np.bool_)
    is_block[0] = True
    at, most = np.int64(2), np.int64(0)
    while at < end:
        if end - at < 2:
            return -1
        is_block[at] = True
        n_tests, n_covering = np.int64(entries[at]), np.int64(entries[at + 1])
        if n_tests < 0 or n_covering < 0 or at + 2 + width * n_tests + n_covering > end:
            return -1
        listed = at + 2 + (2 if grouped else width - 1) * n_tests
        after = at + 2 + width * n_tests + n_covering
        n_listed = n_tests
        if grouped:
            n_listed = np.int64(0)
            for i in range(at + 2 + n_tests, listed):
                if entries[i] < 1:
                    return -1
                n_listed += entries[i]
            after += n_listed
            if after > end:
                return -1
        for i in range(listed, after):
            if not first_id <= entries[i] < end_id:
                return -1
        most = max(most, n_listed + n_covering)
        at = after
    for slot in range(len(table)):
        if table[slot] >= end or (table[slot] >= 0 and not is_block[table[slot]]):
            return -1
    return int(most)
