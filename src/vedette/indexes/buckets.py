"""Boxes on one axis, listed by bucket: boxes that overlap a bucket are tested, boxes that cover it are copied.

Best on one axis for any number of boxes. A bucket is as wide as possible while its tests stay below a twelfth of its
copies (or at `FEW_TESTS`), so the work is proportional to the output. Memory is about 50 bytes per box if a row matches
ten, and below 130 for any distribution of widths. Lists of covering boxes are the covering construct intervals of Wu,
Chen and Yu, section 2, with cuts chosen from the boxes. Lim et al., section 5, sort the rows of a batch for locality;
prefetching is faster: 40 ns per row instead of 170 with a million boxes and ten matches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from vedette.data.matches import Matches
from vedette.indexes.counted import Counted
from vedette.indexes.estimates import BoxFacts, Estimate, miss_cost
from vedette.indexes.index import MAX_IN_ONE_CALL, ONE_FIELD, SMALL_BATCH, as_boxes, as_cells, count_bytes
from vedette.native.buffers import empty_int32, empty_int64
from vedette.native.damage import check, check_fields, check_shape
from vedette.native.kernels import kernel
from vedette.native.prefetch import prefetch
from vedette.native.vectors import copy_eight

COPIES_PER_TEST = 12  # in a bucket; with 3, a hundred matches among a million boxes take twice as long
FEW_TESTS = 4  # a bucket may always have this many tests; they come in fours, padded with words that never match
MAX_BUCKET_CELLS = 1 << 15  # offsets within a bucket have 15 bits
FAR, NEAR, NEXT = 16, 8, 3  # rows ahead for which a slot, the start of a block and the rest of it are prefetched
FETCHED = 256  # words of a block that are prefetched at most; the processor prefetches the rest by itself
SLACK = 16  # room after the last row's matches, and after the last block, for excess copies and tests

# A tested range of offsets lo..hi is one word of two fields, 0x8000 - lo and 0x8000 + hi. Adding an offset to the first
# and subtracting it from the second leaves both top bits set exactly if lo <= offset <= hi.
_GUARD = 0x80008000


class _Layout(NamedTuple):
    """By bucket: how many boxes overlap it, how many cover it, and where its block begins."""

    n_touching: NDArray[np.int32]
    n_covering: NDArray[np.int32]
    blocks: NDArray[np.int64]


@dataclass(frozen=True)
class Buckets:
    """A slot of `2 ** shift` cells has the place of its bucket's block in `entries`.

    A block has its first cell, its number of tests, the number of boxes that cover it, the words and the ids to test,
    and the ids of the boxes that cover it.
    """

    n_fields: ClassVar[range] = ONE_FIELD
    wins_for: ClassVar[str] = "ranges on one field"
    needs: ClassVar[str] = ""
    needs_points: ClassVar[bool] = False

    shift: int
    slot_blocks: NDArray[np.int32]
    entries: NDArray[np.int32]
    cell_counts: NDArray[np.uint16]  # matches of each cell; empty if that were large: then tests count them

    @classmethod
    def build(
        cls, firsts: NDArray[np.int32], lasts: NDArray[np.int32], ids: NDArray[np.int32], n_cells: Sequence[int]
    ) -> Self:
        """Index boxes on one axis."""
        firsts, lasts, ids = as_boxes(firsts, lasts, ids, n_cells)
        cells_per_slot = max(1, 2 * n_cells[0] // max(1, len(ids)))
        shift = min(cells_per_slot.bit_length() - 1, MAX_BUCKET_CELLS.bit_length() - 2)
        n_slots = ((n_cells[0] - 1) >> shift) + 1
        counts = np.empty(n_cells[0] if n_cells[0] <= 8 * len(ids) + 1024 else 0, np.uint16)
        slot_buckets, bucket_cells = np.empty(n_slots, np.int32), np.empty(n_slots + 1, np.int32)
        n_begun, n_ended = empty_int32(n_cells[0]), empty_int32(n_cells[0])
        n_buckets, most = _cut(firsts[0], lasts[0], n_begun, n_ended, shift, counts, slot_buckets, bucket_cells)
        if most >= 1 << 16:
            counts = np.empty(0, np.uint16)
        bucket_cells = bucket_cells[: n_buckets + 1]
        order = empty_int32(len(ids))
        layout = _order(firsts[0], lasts[0], shift, slot_buckets, bucket_cells, order)
        entries = np.empty(int(layout.blocks[-1]) + SLACK, np.int32)
        _fill_blocks(firsts[0], lasts[0], ids, shift, slot_buckets, bucket_cells, order, layout, entries)
        return cls(shift, layout.blocks[slot_buckets].astype(np.int32), entries, counts)

    @classmethod
    def estimate(cls, facts: BoxFacts) -> list[Estimate]:
        met = facts.matches
        cost = 11 + 0.45 * met + miss_cost(facts.n, 50)
        return [Estimate(facts.axes, cost, f"a row meets about {met:,.1f} of {facts.n:,} boxes")]

    def match(self, cells: NDArray[np.int32]) -> Matches:
        return self.match_axis(as_cells(cells)[0])

    def match_axis(self, cells: NDArray[np.int32]) -> Matches:
        """Matches of rows given by their cells on the one axis."""
        if len(cells) <= SMALL_BATCH:
            found = _match(cells, self.cell_counts, self.shift, self.slot_blocks, self.entries)
            if len(found[1]) or found[0][-1] == 0:
                return Matches(*found)
        return self.count_axis(cells).to_matches()

    def count(self, cells: NDArray[np.int32]) -> Counted:
        return self.count_axis(as_cells(cells)[0])

    def count_axis(self, cells: NDArray[np.int32]) -> Counted:
        """As `match_axis`, but the matches are not written yet."""
        starts = empty_int64(len(cells) + 1)
        _count(cells, starts, self.cell_counts, self.shift, self.slot_blocks, self.entries)

        def fill(rows: slice, starts: NDArray[np.int64], positions: NDArray[np.int32]) -> None:
            _fill(cells[rows], starts, positions, self.shift, self.slot_blocks, self.entries)

        return Counted(starts, SLACK, fill)

    def validate(self, n_cells: Sequence[int], ids: range) -> None:
        check_fields(self)
        check(len(n_cells) == 1 and 0 <= self.shift < 16, "buckets are on one axis")
        check_shape(self.slot_blocks, (((n_cells[0] - 1) >> self.shift) + 1,), "the slots of buckets")
        check_shape(self.entries, (len(self.entries),), "the blocks of buckets")
        check(self.cell_counts.shape in ((0,), (n_cells[0],)), "the counts of buckets are not those of the cells")
        is_sound = _validate(
            self.shift, self.slot_blocks, self.entries, self.cell_counts, n_cells[0], ids.start, ids.stop
        )
        check(is_sound, "the blocks of buckets are invalid")

    @property
    def nbytes(self) -> int:
        return count_bytes(self)


@kernel
def _match(
    cells: NDArray[np.int32],
    cell_counts: NDArray[np.uint16],
    shift: int,
    slot_blocks: NDArray[np.int32],
    entries: NDArray[np.int32],
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    starts = np.empty(len(cells) + 1, np.int64)
    _count(cells, starts, cell_counts, shift, slot_blocks, entries)
    n_found = starts[-1]
    if n_found > MAX_IN_ONE_CALL:
        return starts, np.empty(0, np.int32)
    positions = np.empty(n_found + SLACK, np.int32)
    _fill(cells, starts, positions, shift, slot_blocks, entries)
    return starts, positions[:n_found]


@kernel
def _count(
    cells: NDArray[np.int32],
    starts: NDArray[np.int64],
    cell_counts: NDArray[np.uint16],
    shift: int,
    slot_blocks: NDArray[np.int32],
    entries: NDArray[np.int32],
) -> None:
    """Write where the matches of each row start."""
    n_rows = len(cells)
    starts[0] = 0
    if len(cell_counts) > 0:
        for row in range(n_rows):
            starts[row + 1] = starts[row] + cell_counts[cells[row]]
        return
    for row in range(n_rows):
        if row + FAR < n_rows:
            prefetch(slot_blocks, cells[row + FAR] >> shift)
            prefetch(entries, slot_blocks[cells[row + NEAR] >> shift])
        at = slot_blocks[cells[row] >> shift]
        offset = np.int64(cells[row]) - entries[at]
        moved = offset - (offset << 16)
        found = np.int64(entries[at + 2])
        for word in range(at + 3, at + 3 + entries[at + 1]):
            found += ((entries[word] + moved) & _GUARD) == _GUARD
        starts[row + 1] = starts[row] + found


@kernel
def _fill(
    cells: NDArray[np.int32],
    starts: NDArray[np.int64],
    positions: NDArray[np.int32],
    shift: int,
    slot_blocks: NDArray[np.int32],
    entries: NDArray[np.int32],
) -> None:
    """Write the matches row by row. The next row overwrites excess entries."""
    n_rows = len(cells)
    large = len(entries) > 22 * len(slot_blocks)  # many blocks are longer than their prefetched part
    for row in range(n_rows):
        if row + FAR < n_rows:
            prefetch(slot_blocks, cells[row + FAR] >> shift)
            ahead = slot_blocks[cells[row + NEAR] >> shift]
            prefetch(entries, ahead)
            prefetch(entries, ahead + 16)
            if large:
                ahead = slot_blocks[cells[row + NEXT] >> shift]
                for place in range(32, min(FETCHED, 3 + 2 * entries[ahead + 1] + entries[ahead + 2]), 16):
                    prefetch(entries, ahead + place)
        at = slot_blocks[cells[row] >> shift]
        offset = np.int64(cells[row]) - entries[at]
        moved = offset - (offset << 16)
        n_tests = entries[at + 1]
        n_covering = entries[at + 2]
        out = starts[row]
        covering = at + 3 + 2 * n_tests
        copy_eight(positions, out, entries, covering)
        for j in range(8, n_covering, 8):
            copy_eight(positions, out + j, entries, covering + j)
        out += n_covering
        word = at + 3
        for j in range(FEW_TESTS):
            positions[out] = entries[word + n_tests + j]
            out += ((entries[word + j] + moved) & _GUARD) == _GUARD
        if n_tests > FEW_TESTS:
            word += FEW_TESTS
            while out < starts[row + 1]:
                positions[out] = entries[word + n_tests]
                out += ((entries[word] + moved) & _GUARD) == _GUARD
                word += 1


@kernel
def _cut(
    firsts: NDArray[np.int32],
    lasts: NDArray[np.int32],
    n_begun: NDArray[np.int32],
    n_ended: NDArray[np.int32],
    shift: int,
    counts: NDArray[np.uint16],
    slot_buckets: NDArray[np.int32],
    bucket_cells: NDArray[np.int32],
) -> tuple[int, int]:
    """Cut the axis into buckets and count the matches of each cell. Returns how many buckets, and the most matches."""
    n_cells = len(n_begun)
    n_begun[:] = 0
    n_ended[:] = 0
    for box in range(len(firsts)):
        n_begun[firsts[box]] += 1
        n_ended[lasts[box]] += 1
    # A bucket grows by slots while its matches allow the number of ends inside it. A box that begins with the first
    # cell of the bucket does not begin inside it, and a box that ends with its last cell does not end inside it.
    n_buckets = 0
    bucket_cells[0] = 0
    matched = np.int64(0)
    most = np.int64(0)
    allowed = np.int64(max(FEW_TESTS, n_begun[0] // COPIES_PER_TEST))
    inside = np.int64(-n_begun[0])
    for slot in range(len(slot_buckets)):
        low = slot << shift
        high = min(n_cells, low + (1 << shift))
        at_low = matched + n_begun[low]
        more = np.int64(0)
        for cell in range(low, high):
            more += n_begun[cell] + n_ended[cell]
            matched += n_begun[cell]
            most = max(most, matched)
            if len(counts) > 0:
                counts[cell] = matched & 0xFFFF
            matched -= n_ended[cell]
        fits = inside + more - n_ended[high - 1] <= allowed and high - bucket_cells[n_buckets] <= MAX_BUCKET_CELLS
        if low > bucket_cells[n_buckets] and not fits:
            n_buckets += 1
            bucket_cells[n_buckets] = low
            allowed = max(np.int64(FEW_TESTS), at_low // COPIES_PER_TEST)
            inside = np.int64(-n_begun[low])
        inside += more
        slot_buckets[slot] = n_buckets
    bucket_cells[n_buckets + 1] = n_cells
    return n_buckets + 1, int(most)


@kernel
def _order(
    firsts: NDArray[np.int32],
    lasts: NDArray[np.int32],
    shift: int,
    slot_buckets: NDArray[np.int32],
    bucket_cells: NDArray[np.int32],
    order: NDArray[np.int32],
) -> _Layout:
    """Count per bucket the boxes that overlap it and those that cover it. Fills `order` with boxes by first bucket."""
    n = len(firsts)
    n_buckets = len(bucket_cells) - 1
    n_touching = np.zeros(n_buckets + 1, np.int32)
    n_covering = np.zeros(n_buckets + 2, np.int32)
    by_bucket = np.zeros(n_buckets + 1, np.int32)
    for q in range(n):
        b, d = slot_buckets[firsts[q] >> shift], slot_buckets[lasts[q] >> shift]
        by_bucket[b + 1] += 1
        from_start = firsts[q] == bucket_cells[b]
        to_end = lasts[q] + 1 == bucket_cells[d + 1]
        if b == d and not (from_start and to_end):
            n_touching[b] += 1
            continue
        if not from_start:
            n_touching[b] += 1
            b += 1
        if not to_end:
            n_touching[d] += 1
            d -= 1
        n_covering[b] += 1
        n_covering[d + 1] -= 1

    blocks = np.empty(n_buckets + 1, np.int64)
    blocks[0] = 0
    for b in range(n_buckets):
        n_covering[b + 1] += n_covering[b]
        n_tests = max(1, (n_touching[b] + FEW_TESTS - 1) // FEW_TESTS) * FEW_TESTS
        blocks[b + 1] = blocks[b] + 3 + 2 * n_tests + n_covering[b]
        by_bucket[b + 1] += by_bucket[b]
    # Boxes ordered by first bucket, so that writes stay close together.
    for q in range(n):
        b = slot_buckets[firsts[q] >> shift]
        order[by_bucket[b]] = q
        by_bucket[b] += 1
    return _Layout(n_touching, n_covering, blocks)


@kernel
def _fill_blocks(
    firsts: NDArray[np.int32],
    lasts: NDArray[np.int32],
    ids: NDArray[np.int32],
    shift: int,
    slot_buckets: NDArray[np.int32],
    bucket_cells: NDArray[np.int32],
    order: NDArray[np.int32],
    layout: _Layout,
    entries: NDArray[np.int32],
) -> None:
    """Write the blocks. This changes the counts of the layout."""
    n_touching, n_covering, blocks = layout.n_touching, layout.n_covering, layout.blocks
    n_buckets = len(bucket_cells) - 1
    entries[blocks[n_buckets] :] = 0
    for b in range(n_buckets):
        n_tests = max(1, (n_touching[b] + FEW_TESTS - 1) // FEW_TESTS) * FEW_TESTS
        for j in range(n_touching[b], n_tests):
            entries[blocks[b] + 3 + j] = 0  # matches nothing
            entries[blocks[b] + 3 + n_tests + j] = 0
        entries[blocks[b]] = bucket_cells[b]
        entries[blocks[b] + 1] = n_tests
        entries[blocks[b] + 2] = n_covering[b]
    for i in range(len(order)):
        q = order[i]
        b, d = slot_buckets[firsts[q] >> shift], slot_buckets[lasts[q] >> shift]
        first_low, last_low = bucket_cells[b], bucket_cells[d]
        from_start = firsts[q] == first_low
        to_end = lasts[q] + 1 == bucket_cells[d + 1]
        if b == d and not (from_start and to_end):
            n_touching[b] -= 1
            _touch(entries, blocks[b], n_touching[b], firsts[q] - first_low, lasts[q] - first_low, ids[q])
            continue
        if not from_start:
            n_touching[b] -= 1
            _touch(entries, blocks[b], n_touching[b], firsts[q] - first_low, MAX_BUCKET_CELLS - 1, ids[q])
            b += 1
        if not to_end:
            n_touching[d] -= 1
            _touch(entries, blocks[d], n_touching[d], 0, lasts[q] - last_low, ids[q])
            d -= 1
        for c in range(b, d + 1):
            n_covering[c] -= 1
            entries[blocks[c + 1] - 1 - n_covering[c]] = ids[q]


@kernel
def _validate(
    shift: int,
    slot_blocks: NDArray[np.int32],
    entries: NDArray[np.int32],
    cell_counts: NDArray[np.uint16],
    n_cells: int,
    first_id: int,
    end_id: int,
) -> bool:
    """Whether blocks are contiguous, have the cells of their slots, and find as many boxes as the counts say."""
    end = len(entries) - SLACK
    at, slot, n_slots = np.int64(0), 0, len(slot_blocks)
    changes = np.zeros(MAX_BUCKET_CELLS + 1, np.int64)  # where ranges of tests begin and end
    while at < end:
        if end - at < 3:
            return False
        low, n_tests, n_covering = np.int64(entries[at]), np.int64(entries[at + 1]), np.int64(entries[at + 2])
        words = at + 3
        after = words + 2 * n_tests + n_covering
        if n_tests < FEW_TESTS or n_covering < 0 or after > end or slot >= n_slots or low != slot << shift:
            return False
        for i in range(words + n_tests, after):
            # The id of a word that never matches is 0, even if 0 is not an id.
            is_spare = i < words + 2 * n_tests and entries[i - n_tests] == 0 and entries[i] == 0
            if not is_spare and not first_id <= entries[i] < end_id:
                return False
        while slot < n_slots and slot_blocks[slot] == at:
            slot += 1
        n_own = min(n_cells, slot << shift) - low
        if not 0 < n_own <= MAX_BUCKET_CELLS:
            return False
        changes[: n_own + 1] = 0
        for i in range(words, words + n_tests):
            first, last = 0x8000 - (entries[i] & 0xFFFF), ((entries[i] >> 16) & 0xFFFF) - 0x8000
            if entries[i] != 0:
                if not (0 <= first <= last < MAX_BUCKET_CELLS and first < n_own):
                    return False
                changes[first] += 1
                changes[min(last + 1, n_own)] -= 1
        if len(cell_counts) > 0:
            found = n_covering
            for i in range(n_own):
                found += changes[i]
                if cell_counts[low + i] != found:
                    return False
        at = after
    return at == end and slot == n_slots


@kernel
def _touch(entries: NDArray[np.int32], block: int, place: int, low: int, high: int, box_id: int) -> None:
    """Write one tested box into a block."""
    entries[block + 3 + place] = np.int32((0x8000 - low) + ((high - 0x8000) << 16))
    entries[block + 3 + entries[block + 1] + place] = box_id
