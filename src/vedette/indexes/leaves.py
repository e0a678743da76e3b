"""The leaves of a quadtree: their size, the boxes that overlap or cover each, and the layout of their blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vedette.indexes.index import sample_boxes
from vedette.native.kernels import kernel

BYTES_PER_BOX = 240
FEW_TESTS = 8  # a leaf may always have this many tests
SAMPLE = 2048  # boxes that are examined to choose the leaf
MAX_SHIFT = 15  # offsets within a leaf have 15 bits
SPLIT = 2  # a split halves each side this many times
SLACK = 16  # room for excess copies


class SlotCounts(NamedTuple):
    """By slot: how many boxes overlap its leaf without covering it, and how many cover it."""

    n_tests: NDArray[np.int32]
    n_covering: NDArray[np.int32]


@dataclass(frozen=True)
class Leaf:
    """The size of a leaf of the grid, and its cost."""

    shift_x: int
    shift_y: int
    bytes_per_box: float
    tests_per_row: float


def choose_leaf(firsts: NDArray[np.int32], lasts: NDArray[np.int32], n_cells: Sequence[int]) -> Leaf:
    """The largest leaf with few enough tests, or the smallest that memory allows, from a sample of the boxes."""
    n = firsts.shape[1]
    widest = [min(MAX_SHIFT, (cells - 1).bit_length()) for cells in n_cells]
    if n == 0:
        return Leaf(widest[0], widest[1], 0, 0)
    chosen = sample_boxes(n, SAMPLE)
    step = n / len(chosen)
    firsts, lasts = np.ascontiguousarray(firsts[:, chosen]), np.ascontiguousarray(lasts[:, chosen])
    sides = np.log2((lasts - firsts + 1.0).mean(axis=1))
    coarsest = max(widest - sides)
    matches = n * float(np.prod((lasts - firsts + 1.0) / np.array(n_cells)[:, None], axis=0).mean())
    best: Leaf | None = None
    for finer in range(40):
        shift_x, shift_y = (
            max(0, min(shift, round(side + coarsest - finer))) for shift, side in zip(widest, sides, strict=True)
        )
        n_touching, n_covering = (count * step for count in count_entries(firsts, lasts, shift_x, shift_y))
        n_leaves = ((n_cells[0] >> shift_x) + 1) * ((n_cells[1] >> shift_y) + 1)
        touching_bytes = 8 if max(shift_x, shift_y) <= 7 else 12
        size = (touching_bytes * n_touching + 4 * n_covering + 12 * n_leaves) / n
        if best and size > BYTES_PER_BOX:
            break
        best = Leaf(shift_x, shift_y, size, n_touching / n_leaves)
        if best.tests_per_row <= max(FEW_TESTS, matches / 4) or shift_x + shift_y == 0:
            break
    assert best
    return best


@kernel
def count_entries(firsts: NDArray[np.int32], lasts: NDArray[np.int32], shift_x: int, shift_y: int) -> tuple[int, int]:
    """How many leaves of the grid the boxes overlap without covering them, and how many they cover."""
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
def order_boxes(firsts: NDArray[np.int32], shift_x: int, shift_y: int, n_x: int, n_y: int) -> NDArray[np.int32]:
    """The boxes ordered by their first leaf of the grid, so that writes to lists stay close together."""
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
    """Write the slots of `table` whose leaves a box overlaps, four numbers each: slot, its first cells, its splits.

    The splits are complemented if the box covers the leaf. Returns the number of slots.
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
                # The children replace their parent at the end of the list.
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
def count_by_slot(
    firsts: NDArray[np.int32],
    lasts: NDArray[np.int32],
    order: NDArray[np.int32],
    shift_x: int,
    shift_y: int,
    n_y: int,
    table: NDArray[np.int32],
) -> SlotCounts:
    """How many boxes overlap the leaf of each slot without covering it, and how many cover it."""
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
    return SlotCounts(n_tests, n_covering)


@kernel
def fill_blocks(
    firsts: NDArray[np.int32],
    lasts: NDArray[np.int32],
    ids: NDArray[np.int32],
    order: NDArray[np.int32],
    shift_x: int,
    shift_y: int,
    n_y: int,
    table: NDArray[np.int32],
    by_slot: SlotCounts,
    entries: NDArray[np.int32],
) -> None:
    """Write the blocks and their places in `table`. Empty leaves share one block."""
    n_tests, n_covering = by_slot.n_tests, by_slot.n_covering
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
            # Offsets count from the corner of the grid's leaf, even if that is split.
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
def sort_tests(table: NDArray[np.int32], entries: NDArray[np.int32]) -> int:
    """Sort the tests of each block by their words. Returns the total number of different words of the blocks."""
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
def group_tests(table: NDArray[np.int32], entries: NDArray[np.int32], grouped: NDArray[np.int32]) -> None:
    """Write the blocks of `entries`, sorted by word, as grouped blocks, and their places in `table`."""
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
