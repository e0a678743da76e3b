"""Boxes on two axes, listed by leaf: those that only touch the leaf are tested, those that cover it are copied.

Wins at low selectivity on two axes, as fast as lists by cell at a tenth of their memory. Leaves form a grid, fine
enough to keep tests below a quarter of the matches or as fine as `BYTES_PER_BOX` allows; a crowded leaf splits in
4 x 4, again and again, like a quadtree. Covered leaves are the virtual construct rectangles of Wu, Chen and Yu,
section 3. Rows come as they are, with leaves fetched ahead: sorting them first (Lim et al., section 5) costs more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from vedette.indexes.growth import collect
from vedette.indexes.index import SMALL_BATCH, as_boxes, as_cells, count_bytes
from vedette.indexes.prefetch import prefetch
from vedette.indexes.vectors import copy_eight
from vedette.kernels import kernel
from vedette.matches import Matches

BYTES_PER_BOX = 240
FEW_TESTS = 8  # a leaf may always have so many tests
CROWDED = 32  # tests make a leaf split, if they are four times the copies and memory allows
MAX_SPLITS = 6
GROUPED = 2  # boxes to a word, on average, make blocks grouped
SPLIT = 2  # a split halves each side so many times
SAMPLE = 2048  # boxes that the choice of the leaf looks at
FAR, NEAR, NEXT = 24, 12, 4  # rows ahead for which a leaf's number, the begin of its block and the rest are fetched
SLACK = 16  # room for what is copied too much
MAX_SHIFT = 15  # offsets within a leaf have 15 bits

# A tested range of offsets lo..hi is a pair of fields, half - lo and half + hi. Adding an offset to the one and taking
# it from the other leaves both top bits set exactly when lo <= offset <= hi. In leaves of at most 128 x 128 cells one
# word holds the four fields of a rectangle, 8 bits each; else one word holds two of 16 bits for x, another for y.
_GUARD_8 = 0x80808080
_GUARD_16 = 0x80008000


@dataclass(frozen=True)
class Quadtree:
    """`table` names the block in `entries` of each leaf; where it is negative, minus it is the first of 4 x 4 children.

    A block holds its number of tests, the number of boxes that cover it, the words and the ids to test, and the ids of
    the boxes that cover it. Where many boxes share a word, as on a coarse grid, they are tested as one: a grouped block
    holds its number of groups, the number of boxes that cover it, the words and the sizes of the groups, the ids of the
    boxes that cover it, and the ids of the groups.
    """

    shift_x: int  # a leaf of the grid is 2 ** shift_x cells by 2 ** shift_y
    shift_y: int
    n_y: int  # leaf (x, y) of the grid stands at table[x * n_y + y]
    grouped: int  # 1 where blocks are grouped, else 0
    most: int  # the most ids of any block, and slack
    table: NDArray[np.int32]
    entries: NDArray[np.int32]

    @classmethod
    def build(
        cls, firsts: NDArray[np.int32], lasts: NDArray[np.int32], ids: NDArray[np.int32], n_cells: Sequence[int]
    ) -> Self:
        """Index boxes on two axes."""
        firsts, lasts, ids = as_boxes(firsts, lasts, ids)
        leaf = choose_leaf(firsts, lasts, n_cells)
        shift_x, shift_y = leaf.shift_x, leaf.shift_y
        n_x, n_y = ((n_cells[0] - 1) >> shift_x) + 1, ((n_cells[1] - 1) >> shift_y) + 1
        order = _order_boxes(firsts, shift_x, shift_y, n_x, n_y)
        table = np.zeros(n_x * n_y, np.int32)
        n_tests, n_covering = _count_by_slot(firsts, lasts, order, shift_x, shift_y, n_y, table)
        width = 2 if max(shift_x, shift_y) <= 7 else 3
        for splits in range(1, MAX_SPLITS + 1):
            crowded = np.flatnonzero((n_tests > CROWDED) & (n_tests > 4 * n_covering))
            if len(crowded) == 0 or min(shift_x, shift_y) < SPLIT * splits:
                break
            finer = np.concatenate([table, np.zeros(len(crowded) << 2 * SPLIT, np.int32)])
            finer[crowded] = -len(table) - (np.arange(len(crowded), dtype=np.int32) << 2 * SPLIT)
            counts = _count_by_slot(firsts, lasts, order, shift_x, shift_y, n_y, finer)
            if 4 * (width * counts[0].sum() + counts[1].sum() + 3 * len(finer)) > BYTES_PER_BOX * len(ids):
                break
            table, (n_tests, n_covering) = finer, counts
        used = n_tests + n_covering > 0
        entries = np.empty(2 + int((width * n_tests + n_covering + 2)[used].sum(dtype=np.int64)) + SLACK, np.int32)
        _fill_blocks(firsts, lasts, ids, order, shift_x, shift_y, n_y, table, n_tests, n_covering, entries)
        most = int((n_tests + n_covering).max()) + SLACK
        n_groups = _sort_tests(table, entries) if width == 2 else 0
        grouped = 0 < n_groups * GROUPED <= int(n_tests.sum())
        if grouped:
            smaller = np.empty(len(entries) - int(n_tests.sum(dtype=np.int64)) + 2 * n_groups, np.int32)
            _group_tests(table, entries, smaller)
            entries = smaller
        return cls(shift_x, shift_y, n_y, int(grouped), most, table, entries)

    def match(self, cells: NDArray[np.int32]) -> Matches:
        cells = as_cells(cells)
        tree = (self.shift_x, self.shift_y, self.n_y, self.grouped, self.most, self.table, self.entries)
        n_rows = cells.shape[1]
        if n_rows <= SMALL_BATCH:
            return Matches(*_match(cells, *tree))
        return collect(n_rows, self.most, lambda done, starts, positions: _fill(cells, done, starts, positions, *tree))

    @property
    def nbytes(self) -> int:
        return count_bytes(self)


@dataclass(frozen=True)
class Leaf:
    """The leaf of a grid and what it would cost."""

    shift_x: int
    shift_y: int
    bytes_per_box: float
    tests_per_row: float
    matches_per_row: float


def choose_leaf(firsts: NDArray[np.int32], lasts: NDArray[np.int32], n_cells: Sequence[int]) -> Leaf:
    """A leaf no finer than work asks for and memory allows, from a sample of the boxes and rows anywhere."""
    n = firsts.shape[1]
    widest = [min(MAX_SHIFT, (cells - 1).bit_length()) for cells in n_cells]
    if n == 0:
        return Leaf(widest[0], widest[1], 0, 0, 0)
    step = -(-n // SAMPLE)
    firsts, lasts = np.ascontiguousarray(firsts[:, ::step]), np.ascontiguousarray(lasts[:, ::step])
    sides = np.log2((lasts - firsts + 1.0).mean(axis=1))
    coarsest = max(widest - sides)
    matches = n * float(np.prod((lasts - firsts + 1.0) / np.array(n_cells)[:, None], axis=0).mean())
    best: Leaf | None = None
    for finer in range(40):
        shift_x, shift_y = (
            max(0, min(shift, round(side + coarsest - finer))) for shift, side in zip(widest, sides, strict=True)
        )
        n_touching, n_covering = (count * step for count in _count_entries(firsts, lasts, shift_x, shift_y))
        n_leaves = ((n_cells[0] >> shift_x) + 1) * ((n_cells[1] >> shift_y) + 1)
        touching_bytes = 8 if max(shift_x, shift_y) <= 7 else 12
        size = (touching_bytes * n_touching + 4 * n_covering + 12 * n_leaves) / n
        if best and size > BYTES_PER_BOX:
            break
        best = Leaf(shift_x, shift_y, size, n_touching / n_leaves, matches)
        if best.tests_per_row <= max(FEW_TESTS, matches / 4) or shift_x + shift_y == 0:
            break
    assert best
    return best


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
    _fill(cells, 0, starts, positions, shift_x, shift_y, n_y, grouped, 0, table, entries)
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
    shift_x: int,
    shift_y: int,
    n_y: int,
    grouped: int,
    most: int,
    table: NDArray[np.int32],
    entries: NDArray[np.int32],
) -> int:
    """Write the matches of rows from `done` on while there is room for `most`; how many rows are done then."""
    n_rows = cells.shape[1]
    inside_x, inside_y = (1 << shift_x) - 1, (1 << shift_y) - 1
    small = max(shift_x, shift_y) <= 7
    large = len(entries) > 32 * len(table)  # many blocks are longer than what is fetched of each
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
def _count_entries(firsts: NDArray[np.int32], lasts: NDArray[np.int32], shift_x: int, shift_y: int) -> tuple[int, int]:
    """How many leaves of the grid the boxes touch without covering them, and how many they cover."""
    n_touching, n_covering = 0, 0
    round_x, round_y = (1 << shift_x) - 1, (1 << shift_y) - 1
    for box in range(firsts.shape[1]):
        touched_x = (lasts[0, box] >> shift_x) - (firsts[0, box] >> shift_x) + 1
        touched_y = (lasts[1, box] >> shift_y) - (firsts[1, box] >> shift_y) + 1
        covered_x = max(0, ((lasts[0, box] + 1) >> shift_x) - ((firsts[0, box] + round_x) >> shift_x))
        covered_y = max(0, ((lasts[1, box] + 1) >> shift_y) - ((firsts[1, box] + round_y) >> shift_y))
        n_covering += covered_x * covered_y
        n_touching += touched_x * touched_y - covered_x * covered_y
    return n_touching, n_covering


@kernel
def _order_boxes(firsts: NDArray[np.int32], shift_x: int, shift_y: int, n_x: int, n_y: int) -> NDArray[np.int32]:
    """The boxes by the leaf of the grid they start in, so that lists are written close together."""
    n = firsts.shape[1]
    ends = np.zeros(n_x * n_y + 1, np.int32)
    for box in range(n):
        ends[(firsts[0, box] >> shift_x) * n_y + (firsts[1, box] >> shift_y) + 1] += 1
    for leaf in range(n_x * n_y):
        ends[leaf + 1] += ends[leaf]
    order = np.empty(n, np.int32)
    for box in range(n):
        leaf = (firsts[0, box] >> shift_x) * n_y + (firsts[1, box] >> shift_y)
        order[ends[leaf]] = box
        ends[leaf] += 1
    return order


@kernel
def _visit(
    first_x: int,
    last_x: int,
    first_y: int,
    last_y: int,
    shift_x: int,
    shift_y: int,
    n_y: int,
    table: NDArray[np.int32],
    slots: NDArray[np.int64],
) -> int:
    """Write the slots of `table` whose leaves a box meets, four numbers each: slot, its first cells, its splits.

    The splits are complemented where the box covers the leaf. How many slots there are.
    """
    n_slots = 0
    for leaf_x in range(first_x >> shift_x, (last_x >> shift_x) + 1):
        for leaf_y in range(first_y >> shift_y, (last_y >> shift_y) + 1):
            pushed = n_slots
            slots[n_slots, 0] = leaf_x * n_y + leaf_y
            slots[n_slots, 1] = leaf_x << shift_x
            slots[n_slots, 2] = leaf_y << shift_y
            slots[n_slots, 3] = 0
            n_slots += 1
            while pushed < n_slots:
                slot, x, y, splits = slots[pushed, 0], slots[pushed, 1], slots[pushed, 2], slots[pushed, 3]
                side_x, side_y = 1 << (shift_x - SPLIT * splits), 1 << (shift_y - SPLIT * splits)
                if table[slot] >= 0:
                    covers = first_x <= x and x + side_x - 1 <= last_x and first_y <= y and y + side_y - 1 <= last_y
                    slots[pushed, 3] = ~splits if covers else splits
                    pushed += 1
                    continue
                # The children take the place of their parent at the end of the list.
                n_slots -= 1
                slots[pushed, 0] = slots[n_slots, 0]
                slots[pushed, 1] = slots[n_slots, 1]
                slots[pushed, 2] = slots[n_slots, 2]
                slots[pushed, 3] = slots[n_slots, 3]
                side_x >>= SPLIT
                side_y >>= SPLIT
                for child in range(1 << 2 * SPLIT):
                    low_x, low_y = x + (child >> SPLIT) * side_x, y + (child & 3) * side_y
                    if low_x <= last_x and first_x < low_x + side_x and low_y <= last_y and first_y < low_y + side_y:
                        slots[n_slots, 0] = child - table[slot]
                        slots[n_slots, 1] = low_x
                        slots[n_slots, 2] = low_y
                        slots[n_slots, 3] = splits + 1
                        n_slots += 1
    return n_slots


@kernel
def _count_by_slot(
    firsts: NDArray[np.int32],
    lasts: NDArray[np.int32],
    order: NDArray[np.int32],
    shift_x: int,
    shift_y: int,
    n_y: int,
    table: NDArray[np.int32],
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """How many boxes touch the leaf of each slot without covering it, and how many cover it."""
    n_tests = np.zeros(len(table), np.int32)
    n_covering = np.zeros(len(table), np.int32)
    slots = np.empty((len(table) + 1, 4), np.int64)
    for i in range(len(order)):
        box = order[i]
        n_slots = _visit(
            firsts[0, box], lasts[0, box], firsts[1, box], lasts[1, box], shift_x, shift_y, n_y, table, slots
        )
        for j in range(n_slots):
            if slots[j, 3] < 0:
                n_covering[slots[j, 0]] += 1
            else:
                n_tests[slots[j, 0]] += 1
    return n_tests, n_covering


@kernel
def _fill_blocks(
    firsts: NDArray[np.int32],
    lasts: NDArray[np.int32],
    ids: NDArray[np.int32],
    order: NDArray[np.int32],
    shift_x: int,
    shift_y: int,
    n_y: int,
    table: NDArray[np.int32],
    n_tests: NDArray[np.int32],
    n_covering: NDArray[np.int32],
    entries: NDArray[np.int32],
) -> None:
    """Lay out the blocks and name them in `table`; empty leaves share one."""
    small = max(shift_x, shift_y) <= 7
    width = 2 if small else 3
    entries[:2] = 0
    entries[len(entries) - SLACK :] = 0
    total = np.int64(2)
    for slot in range(len(table)):
        if n_tests[slot] + n_covering[slot] > 0:
            table[slot] = total
            entries[total] = n_tests[slot]
            entries[total + 1] = n_covering[slot]
            total += 2 + width * n_tests[slot] + n_covering[slot]

    tests_left, covering_left = n_tests.copy(), n_covering.copy()
    slots = np.empty((len(table) + 1, 4), np.int64)
    for i in range(len(order)):
        box = order[i]
        first_x, last_x, first_y, last_y = firsts[0, box], lasts[0, box], firsts[1, box], lasts[1, box]
        n_slots = _visit(first_x, last_x, first_y, last_y, shift_x, shift_y, n_y, table, slots)
        for j in range(n_slots):
            slot = slots[j, 0]
            at = np.int64(table[slot]) + 2
            n = n_tests[slot]
            if slots[j, 3] < 0:
                covering_left[slot] -= 1
                entries[at + width * n + covering_left[slot]] = ids[box]
                continue
            tests_left[slot] -= 1
            at += tests_left[slot]
            # Offsets count from the corner of the grid's leaf, however often that is split.
            corner_x, corner_y = (slots[j, 1] >> shift_x) << shift_x, (slots[j, 2] >> shift_y) << shift_y
            low_x, high_x = max(0, first_x - corner_x), min((1 << shift_x) - 1, last_x - corner_x)
            low_y, high_y = max(0, first_y - corner_y), min((1 << shift_y) - 1, last_y - corner_y)
            if small:
                words = (0x80 - low_x) + ((0x80 + high_x) << 8) + ((0x80 - low_y) << 16) + ((high_y - 0x80) << 24)
                entries[at] = words
                entries[at + n] = ids[box]
            else:
                entries[at] = (0x8000 - low_x) + ((high_x - 0x8000) << 16)
                entries[at + n] = (0x8000 - low_y) + ((high_y - 0x8000) << 16)
                entries[at + 2 * n] = ids[box]


@kernel
def _sort_tests(table: NDArray[np.int32], entries: NDArray[np.int32]) -> int:
    """Sort the tests of each block by their words; how many different words the blocks have in all."""
    n_groups = 0
    for slot in range(len(table)):
        at = table[slot]
        if at <= 0 or entries[at] == 0:
            continue
        n = entries[at]
        words, ids = entries[at + 2 : at + 2 + n], entries[at + 2 + n : at + 2 + 2 * n]
        order = np.argsort(words)
        words[:] = words[order]
        ids[:] = ids[order]
        n_groups += 1
        for j in range(1, n):
            n_groups += words[j] != words[j - 1]
    return n_groups


@kernel
def _group_tests(table: NDArray[np.int32], entries: NDArray[np.int32], grouped: NDArray[np.int32]) -> None:
    """Write the blocks of `entries`, sorted by word, as grouped blocks, and name those in `table`."""
    grouped[:2] = 0
    out = 2
    for slot in range(len(table)):
        at = table[slot]
        if at <= 0:
            continue
        n_tests, n_covering = entries[at], entries[at + 1]
        words = entries[at + 2 : at + 2 + n_tests]
        n_groups = 0
        for j in range(n_tests):
            n_groups += j == 0 or words[j] != words[j - 1]
        table[slot] = out
        grouped[out] = n_groups
        grouped[out + 1] = n_covering
        out += 2
        group = out - 1
        for j in range(n_tests):
            if j == 0 or words[j] != words[j - 1]:
                group += 1
                grouped[group] = words[j]
                grouped[group + n_groups] = 0
            grouped[group + n_groups] += 1
        out += 2 * n_groups
        covering = at + 2 + 2 * n_tests
        for j in range(n_covering):
            grouped[out + j] = entries[covering + j]
        out += n_covering
        for j in range(n_tests):
            grouped[out + j] = entries[at + 2 + n_tests + j]
        out += n_tests
    grouped[out:] = 0
