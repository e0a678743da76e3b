"""Boxes on two axes, cut at a grid of leaves: boxes that only touch a leaf are tested there, those that cover leaves are
listed at the largest squares they cover, as in a quadtree, and copied.

Wins at low selectivity on two axes, as fast as lists per cell at a tenth of their memory. A leaf is about as large as a box,
or smaller while memory stays within `BYTES_PER_BOX`. The squares are the virtual construct rectangles of Wu, Chen and
Yu, section 3; a large batch is put in leaf order first, as in Lim et al., section 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from vedette.buffers import empty_int32
from vedette.indexes.index import SMALL_BATCH, as_boxes, as_cells, count_bytes
from vedette.indexes.order import order_rows
from vedette.kernels import kernel
from vedette.matches import Matches

BYTES_PER_BOX = 240
SAMPLE = 2048  # boxes that the choice of the leaf looks at
MAX_LEVELS = 12
ORDER_FROM_ROWS = 1024

# A tested rectangle is one word of four fields: 0x80 - lo and 0x80 + hi for x and for y, of 8 bits each while a leaf's
# sides are at most 128 cells, else 0x4000 - lo and so on, of 15 bits. Adding the offsets of a row to the first and taking
# them from the second of each pair leaves all four top bits set exactly when the rectangle holds the row.
_GUARD_8 = 0x80808080
_GUARD_15 = 0x4000 | 0x4000 << 15 | 0x4000 << 30 | 0x4000 << 45
_MAX_SHIFT = 14


@dataclass(frozen=True)
class Quadtree:
    """Leaf (x, y) tests `touch_ids[touch_starts[leaf]:touch_starts[leaf + 1]]` and copies what its squares list."""

    shift_x: int  # a leaf is 2 ** shift_x cells by 2 ** shift_y
    shift_y: int
    n_y: int  # leaf number = x * n_y + y
    field: int  # bits of a field of a word
    level_nodes: NDArray[np.int64]  # the first node of each level; level 0 has a node for each leaf
    touch_starts: NDArray[np.int32]
    touch_words: NDArray[np.int32] | NDArray[np.int64]
    touch_ids: NDArray[np.int32]
    cover_starts: NDArray[np.int32]
    cover_ids: NDArray[np.int32]

    @classmethod
    def build(
        cls, firsts: NDArray[np.int32], lasts: NDArray[np.int32], ids: NDArray[np.int32], n_cells: Sequence[int]
    ) -> Self:
        """Index boxes on two axes."""
        firsts, lasts, ids = as_boxes(firsts, lasts, ids)
        shift_x, shift_y = choose_leaf(firsts, lasts, n_cells)
        n_levels = _count_levels(firsts, lasts, shift_x, shift_y)
        n_x, n_y = (
            -(-(((n - 1) >> shift) + 1) // (1 << n_levels - 1)) << n_levels - 1
            for n, shift in zip(n_cells, (shift_x, shift_y), strict=True)
        )
        field = 8 if max(shift_x, shift_y) <= 7 else 15
        level_nodes = np.cumsum([0] + [(n_x >> level) * (n_y >> level) for level in range(n_levels)])
        touch_starts, cover_starts = _count_lists(firsts, lasts, shift_x, shift_y, n_y, level_nodes)
        touch_words = np.empty(touch_starts[-1], np.int32 if field == 8 else np.int64)
        touch_ids = np.empty(touch_starts[-1], np.int32)
        cover_ids = np.empty(cover_starts[-1], np.int32)
        _fill_lists(
            firsts, lasts, ids, shift_x, shift_y, n_y, field, level_nodes,
            touch_starts, touch_words, touch_ids, cover_starts, cover_ids,
        )  # fmt: skip
        return cls(
            shift_x, shift_y, n_y, field, level_nodes, touch_starts, touch_words, touch_ids, cover_starts, cover_ids
        )

    def match(self, cells: NDArray[np.int32]) -> Matches:
        cells = as_cells(cells)
        tree = (
            self.shift_x, self.shift_y, self.n_y, self.field, self.level_nodes,
            self.touch_starts, self.touch_words, self.touch_ids, self.cover_starts, self.cover_ids,
        )  # fmt: skip
        if cells.shape[1] <= SMALL_BATCH:
            return Matches(*_match(cells, *tree))
        order = np.empty(0, np.int32)
        if cells.shape[1] >= ORDER_FROM_ROWS:
            leaves = _find_leaves(cells, self.shift_x, self.shift_y, self.n_y)
            order = order_rows(leaves, len(self.touch_starts) - 1)
        starts = np.empty(cells.shape[1] + 1, np.int64)
        _count(cells, order, starts, *tree)
        positions = empty_int32(int(starts[-1]))
        _fill(cells, order, starts, positions, *tree)
        return Matches(starts, positions)

    @property
    def nbytes(self) -> int:
        return count_bytes(self)


def choose_leaf(firsts: NDArray[np.int32], lasts: NDArray[np.int32], n_cells: Sequence[int]) -> tuple[int, int]:
    """The powers of two of a leaf's sides: the finest leaf that the memory allows."""
    n = firsts.shape[1]
    if n == 0:
        return tuple(min(_MAX_SHIFT, max(0, (cells - 1).bit_length() - 1)) for cells in n_cells)  # type: ignore[return-value]
    chosen = slice(None, None, -(-n // SAMPLE))
    firsts, lasts = np.ascontiguousarray(firsts[:, chosen]), np.ascontiguousarray(lasts[:, chosen])
    sides = (lasts - firsts + 1).mean(axis=1)
    shifts = [min(_MAX_SHIFT, max(0, int(np.log2(side)) - 3)) for side in sides]
    while min(shifts) < _MAX_SHIFT:
        n_touching, n_covering = _count_entries(firsts, lasts, shifts[0], shifts[1])
        n_leaves = (n_cells[0] >> shifts[0]) * (n_cells[1] >> shifts[1])
        entry = 8 if max(shifts) <= 7 else 12
        if (n_touching * entry + 4 * n_covering) / firsts.shape[1] + 9 * n_leaves / n <= BYTES_PER_BOX:
            break
        shifts = [min(_MAX_SHIFT, shift + 1) for shift in shifts]
    return shifts[0], shifts[1]


@kernel
def _find_leaves(cells: NDArray[np.int32], shift_x: int, shift_y: int, n_y: int) -> NDArray[np.int32]:
    leaves = np.empty(cells.shape[1], np.int32)
    for row in range(cells.shape[1]):
        leaves[row] = (cells[0, row] >> shift_x) * n_y + (cells[1, row] >> shift_y)
    return leaves


@kernel
def _match(
    cells, shift_x, shift_y, n_y, field, level_nodes, touch_starts, touch_words, touch_ids, cover_starts, cover_ids
):  # type: ignore[no-untyped-def]
    order = np.empty(0, np.int32)
    starts = np.empty(cells.shape[1] + 1, np.int64)
    _count(
        cells, order, starts, shift_x, shift_y, n_y, field, level_nodes,
        touch_starts, touch_words, touch_ids, cover_starts, cover_ids,
    )  # fmt: skip
    positions = np.empty(starts[-1], np.int32)
    _fill(
        cells, order, starts, positions, shift_x, shift_y, n_y, field, level_nodes,
        touch_starts, touch_words, touch_ids, cover_starts, cover_ids,
    )  # fmt: skip
    return starts, positions


@kernel
def _count(
    cells, order, starts, shift_x, shift_y, n_y, field, level_nodes,
    touch_starts, touch_words, touch_ids, cover_starts, cover_ids,
):  # type: ignore[no-untyped-def] # fmt: skip
    guard = np.int64(_GUARD_8) if field == 8 else np.int64(_GUARD_15)
    n_levels = len(level_nodes) - 1
    previous = -1
    n_covering = np.int64(0)
    starts[0] = 0
    for i in range(cells.shape[1]):
        row = order[i] if len(order) > 0 else i
        x, y = np.int64(cells[0, row]), np.int64(cells[1, row])
        leaf_x, leaf_y = x >> shift_x, y >> shift_y
        leaf = leaf_x * n_y + leaf_y
        if leaf != previous:
            previous = leaf
            n_covering = np.int64(0)
            for level in range(n_levels):
                node = level_nodes[level] + (leaf_x >> level) * (n_y >> level) + (leaf_y >> level)
                n_covering += cover_starts[node + 1] - cover_starts[node]
        moved = _move(x - (leaf_x << shift_x), y - (leaf_y << shift_y), field)
        found = n_covering
        for j in range(touch_starts[leaf], touch_starts[leaf + 1]):
            found += ((touch_words[j] + moved) & guard) == guard
        starts[row + 1] = found
    for row in range(cells.shape[1]):
        starts[row + 1] += starts[row]


@kernel
def _fill(
    cells, order, starts, positions, shift_x, shift_y, n_y, field, level_nodes,
    touch_starts, touch_words, touch_ids, cover_starts, cover_ids,
):  # type: ignore[no-untyped-def] # fmt: skip
    guard = np.int64(_GUARD_8) if field == 8 else np.int64(_GUARD_15)
    n_levels = len(level_nodes) - 1
    previous = -1
    covering = np.int64(0)  # where the covering boxes of the previous row stand in the output, and how many
    n_covering = np.int64(0)
    for i in range(cells.shape[1]):
        row = order[i] if len(order) > 0 else i
        x, y = np.int64(cells[0, row]), np.int64(cells[1, row])
        leaf_x, leaf_y = x >> shift_x, y >> shift_y
        leaf = leaf_x * n_y + leaf_y
        out = starts[row]
        end = starts[row + 1]
        if leaf == previous:
            for j in range(n_covering):
                positions[out + j] = positions[covering + j]
            covering = out
            out += n_covering
        else:
            previous = leaf
            covering = out
            for level in range(n_levels):
                node = level_nodes[level] + (leaf_x >> level) * (n_y >> level) + (leaf_y >> level)
                first = cover_starts[node]
                n_listed = cover_starts[node + 1] - first
                for j in range(n_listed):
                    positions[out + j] = cover_ids[first + j]
                out += n_listed
            n_covering = out - covering
        moved = _move(x - (leaf_x << shift_x), y - (leaf_y << shift_y), field)
        j = touch_starts[leaf]
        while out < end:
            positions[out] = touch_ids[j]
            out += ((touch_words[j] + moved) & guard) == guard
            j += 1


@kernel
def _move(x: int, y: int, field: int) -> int:
    """What the place of a row within its leaf adds to each word."""
    return x - (x << field) + ((y - (y << field)) << (2 * field))


@kernel
def _make_word(low_x: int, high_x: int, low_y: int, high_y: int, field: int) -> int:
    half = np.int64(1) << (field - 1)
    word = half - low_x + ((half + high_x) << field) + ((half - low_y) << (2 * field))
    word += (half + high_y) << (3 * field)
    return word - (np.int64(1) << 32) if field == 8 else word  # as 32 signed bits, of which the top one is always set


@kernel
def _covered(firsts: NDArray[np.int32], lasts: NDArray[np.int32], box: int, shift_x: int, shift_y: int):  # type: ignore[no-untyped-def]
    """The leaves a box touches and, second, those it covers: first and last on each axis."""
    round_x, round_y = (1 << shift_x) - 1, (1 << shift_y) - 1
    return (
        (firsts[0, box] >> shift_x, lasts[0, box] >> shift_x, firsts[1, box] >> shift_y, lasts[1, box] >> shift_y),
        (
            (firsts[0, box] + round_x) >> shift_x,
            ((lasts[0, box] + 1) >> shift_x) - 1,
            (firsts[1, box] + round_y) >> shift_y,
            ((lasts[1, box] + 1) >> shift_y) - 1,
        ),
    )


@kernel
def _count_levels(firsts: NDArray[np.int32], lasts: NDArray[np.int32], shift_x: int, shift_y: int) -> int:
    """One more than the level of the largest square that a box could cover."""
    widest = 1
    for box in range(firsts.shape[1]):
        _, (a, b, c, d) = _covered(firsts, lasts, box, shift_x, shift_y)
        widest = max(widest, min(b - a, d - c) + 1)
    n_levels = 1
    while n_levels < MAX_LEVELS and (2 << (n_levels - 1)) <= widest:
        n_levels += 1
    return n_levels


@kernel
def _count_entries(firsts: NDArray[np.int32], lasts: NDArray[np.int32], shift_x: int, shift_y: int) -> tuple[int, int]:
    """How many tests and how many squares the boxes become."""
    n_touching, n_covering = 0, 0
    for box in range(firsts.shape[1]):
        (ta, tb, tc, td), (a, b, c, d) = _covered(firsts, lasts, box, shift_x, shift_y)
        n_touching += (tb - ta + 1) * (td - tc + 1)
        if a > b or c > d:
            continue
        n_touching -= (b - a + 1) * (d - c + 1)
        while True:
            n_covering += (b - a + 1) * (d - c + 1)
            a, b, c, d = (a + 1) >> 1, ((b + 1) >> 1) - 1, (c + 1) >> 1, ((d + 1) >> 1) - 1
            if a > b or c > d:
                break
            n_covering -= 4 * (b - a + 1) * (d - c + 1)
    return n_touching, n_covering


@kernel
def _count_lists(firsts, lasts, shift_x, shift_y, n_y, level_nodes):  # type: ignore[no-untyped-def]
    touch_starts = np.zeros(level_nodes[1] + 1, np.int32)
    cover_starts = np.zeros(level_nodes[-1] + 1, np.int32)
    none = np.empty(0, np.int32)
    for box in range(firsts.shape[1]):
        _walk(firsts, lasts, box, shift_x, shift_y, n_y, 8, level_nodes, touch_starts, none, none, cover_starts, none, 0)
    for leaf in range(len(touch_starts) - 1):
        touch_starts[leaf + 1] += touch_starts[leaf]
    for node in range(len(cover_starts) - 1):
        cover_starts[node + 1] += cover_starts[node]
    return touch_starts, cover_starts


@kernel
def _fill_lists(
    firsts, lasts, ids, shift_x, shift_y, n_y, field, level_nodes,
    touch_starts, touch_words, touch_ids, cover_starts, cover_ids,
):  # type: ignore[no-untyped-def] # fmt: skip
    touch_ends, cover_ends = touch_starts.copy(), cover_starts.copy()
    for box in range(firsts.shape[1]):
        _walk(
            firsts, lasts, box, shift_x, shift_y, n_y, field, level_nodes,
            touch_ends, touch_words, touch_ids, cover_ends, cover_ids, ids[box],
        )  # fmt: skip


@kernel
def _walk(
    firsts, lasts, box, shift_x, shift_y, n_y, field, level_nodes,
    touch_ends, touch_words, touch_ids, cover_ends, cover_ids, box_id,
):  # type: ignore[no-untyped-def] # fmt: skip
    """Visit the leaves a box touches and the squares it covers.

    With lists to fill, write the box at each one's end and move that on; without, count it one place further.
    """
    (ta, tb, tc, td), (a, b, c, d) = _covered(firsts, lasts, box, shift_x, shift_y)
    counting = len(touch_ids) == 0 and len(cover_ids) == 0
    for x in range(ta, tb + 1):
        for y in range(tc, td + 1):
            if a <= x <= b and c <= y <= d:
                continue
            leaf = x * n_y + y
            if counting:
                touch_ends[leaf + 1] += 1
                continue
            at = touch_ends[leaf]
            low_x, low_y = x << shift_x, y << shift_y
            touch_words[at] = _make_word(
                max(0, firsts[0, box] - low_x),
                min((1 << shift_x) - 1, lasts[0, box] - low_x),
                max(0, firsts[1, box] - low_y),
                min((1 << shift_y) - 1, lasts[1, box] - low_y),
                field,
            )
            touch_ids[at] = box_id
            touch_ends[leaf] += 1
    level = 0
    n_levels = len(level_nodes) - 1
    while a <= b and c <= d:
        # The squares of the next level lie over those of this one from 2 * up_a to 2 * up_b + 1.
        up_a, up_b, up_c, up_d = (a + 1) >> 1, ((b + 1) >> 1) - 1, (c + 1) >> 1, ((d + 1) >> 1) - 1
        if level + 1 == n_levels or up_a > up_b or up_c > up_d:
            up_a, up_b, up_c, up_d = 1, 0, 1, 0
        for x in range(a, b + 1):
            for y in range(c, d + 1):
                if 2 * up_a <= x <= 2 * up_b + 1 and 2 * up_c <= y <= 2 * up_d + 1:
                    continue
                node = level_nodes[level] + x * (n_y >> level) + y
                if counting:
                    cover_ends[node + 1] += 1
                    continue
                cover_ids[cover_ends[node]] = box_id
                cover_ends[node] += 1
        a, b, c, d = up_a, up_b, up_c, up_d
        level += 1
