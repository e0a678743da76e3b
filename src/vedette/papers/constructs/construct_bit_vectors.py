"""Logarithmic construct intervals with bit vectors: only intervals with boxes are stored and read.

The LCI-BV(DT) of Wu, Chen and Yu, figures 6 and 7; their report only gives the name and the result. Every interval has
a bit, and the lists of each 64 intervals are stored together for the bits that are set. The difference table is a
pattern of bits, so a row reads its intervals 64 at a time: the pattern and the bits from its first interval on. Costs
one word per 64 intervals and one step per list, a quarter of a byte per interval, and 4 bytes per list and per listing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from vedette.data.matches import Matches
from vedette.indexes.growth import collect
from vedette.indexes.index import as_boxes, as_cells, check_given
from vedette.native.bits import count_ones, lowest_one, without_lowest
from vedette.native.kernels import kernel
from vedette.native.vectors import copy_eight
from vedette.papers.constructs.construct_choice import Model, count_logarithmic_parts
from vedette.papers.constructs.construct_intervals import LCI, cut_interval
from vedette.papers.constructs.places import ExactBoxes, find_borders
from vedette.papers.growing_lists import SLACK, GrowingLists, append_to_list, make_lists, pack_lists


class _Bits(NamedTuple):
    """Which intervals have boxes, and their lists, for kernels."""

    words: NDArray[np.int64]
    pattern: NDArray[np.int64]
    starts: NDArray[np.int32]
    listed: NDArray[np.int32]


@dataclass
class LCIBV(LCI):
    """Bit `i` of all words is set if interval `i`, numbered as in `LCI`, has boxes.

    Word `w` has the part `listed[starts[w]:starts[w] + sizes[w]]`: for each set bit the end of its list, relative to
    the start of the part, and then the lists.
    """

    words: NDArray[np.int64]
    pattern: NDArray[np.int64]  # the bits of the intervals over a place, from the lowest on

    @classmethod
    def build(
        cls,
        firsts: NDArray[np.int32],
        lasts: NDArray[np.int32],
        ids: NDArray[np.int32],
        n_cells: Sequence[int],
        longest: int | None = None,
        n_places: int | None = None,
        with_room: bool = False,
    ) -> Self:
        """Index boxes on one axis; L and the number of places are chosen unless they are given."""
        check_given(longest=longest, n_places=n_places)
        firsts, lasts, ids = as_boxes(firsts, lasts, ids, n_cells)
        given = np.array([longest or 0, n_places or 0])
        if longest is None:
            some = firsts[0], lasts[0]
            longest, n_places = cls.choose(*some, find_borders(*some, n_cells[0], with_room), n_places)
        whole = LCI.build(firsts, lasts, ids, n_cells, longest, n_places, with_room)
        reach = int(whole.differences.max()) // 64 + 1  # words of a pattern, which may extend past the last interval
        words = np.zeros(len(whole.sizes) // 64 + reach + 2, np.int64)
        packed = np.packbits(whole.sizes > 0, bitorder="little")
        words.view(np.uint8)[: len(packed)] = packed
        pattern = np.zeros(reach, np.int64)
        for difference in whole.differences.tolist():
            pattern[difference // 64] |= np.uint64(1 << difference % 64).view(np.int64)
        by_word = np.pad(whole.sizes, (0, 64 * len(words) - len(whole.sizes))).reshape(-1, 64)
        lists = make_lists(by_word.sum(axis=1) + np.count_nonzero(by_word, axis=1))
        _put_together(whole.starts, whole.sizes, whole.listed, lists[0], lists[2])
        kept = whole.firsts, whole.lasts, whole.ids, whole.free, whole.first_id
        layout = given, whole.places, whole.n_misfits, whole.longest, whole.differences
        return cls(*kept, 0, *layout, *lists, words, pattern)

    @classmethod
    def model(cls) -> Model:
        def count_covering(longest: int) -> int:
            return len(cls.find_differences(longest))

        return Model(count_logarithmic_parts, cls.count_lengths, count_covering, has_bits=True)

    def match(self, cells: NDArray[np.int32]) -> Matches:
        cells = as_cells(cells)
        most = len(self) + SLACK
        boxes = ExactBoxes(self.n_misfits == 0, self.firsts, self.lasts)
        bits = _Bits(self.words, self.pattern, self.starts, self.listed)
        places, n_lengths = self.places, self.count_lengths(self.longest)
        matches = collect(
            cells.shape[1],
            most,
            lambda done, starts, positions: _fill(
                cells[0], done, starts, positions, most, n_lengths, places, bits, boxes
            ),
        )
        self.give_ids(matches.positions)
        return matches

    def _change(self, numbers: NDArray[np.int32], is_added: bool) -> None:
        first_places, last_places = self.places[self.firsts[0, numbers]], self.places[self.lasts[0, numbers]]
        self.listed = _change_lists(numbers, first_places, last_places, self.longest, is_added, self.words, self.lists)
        self.starts, self.listed, self.ends = pack_lists(self.starts, self.sizes, self.listed, self.ends, len(numbers))


@kernel
def _put_together(
    old_starts: NDArray[np.int32],
    old_sizes: NDArray[np.int32],
    old_listed: NDArray[np.int32],
    starts: NDArray[np.int32],
    listed: NDArray[np.int32],
) -> None:
    """Write the part of each word, from lists by interval."""
    for word in range((len(old_starts) + 63) // 64):
        end = min(64 * word + 64, len(old_starts))
        n_lists = 0
        for number in range(64 * word, end):
            n_lists += old_sizes[number] > 0
        place, n = starts[word], 0
        for number in range(64 * word, end):
            if old_sizes[number] > 0:
                for i in range(old_sizes[number]):
                    listed[starts[word] + n_lists + n + i] = old_listed[old_starts[number] + i]
                n += old_sizes[number]
                listed[place] = n
                place += 1


@kernel
def _read_bits(words: NDArray[np.int64], first: int) -> Any:
    """The 64 bits from a position on."""
    word, shift = first >> 6, first & 63
    if shift == 0:
        return words[word]
    low = (words[word] >> shift) & ((np.int64(1) << np.int64(64 - shift)) - 1)
    return low | (words[word + 1] << np.int64(64 - shift))


@kernel
def _find_list(
    number: int, words: NDArray[np.int64], starts: NDArray[np.int32], listed: NDArray[np.int32]
) -> tuple[int, int, int]:
    """The number of lists before that of an interval in its word, and where its own begins and ends in `listed`.

    For an interval without a list: where it would be, with length zero.
    """
    word = words[number >> 6]
    bit = np.int64(1) << np.int64(number & 63)
    place = count_ones(word & (bit - 1))
    start = int(starts[number >> 6])
    first = start + count_ones(word)
    begin = int(listed[start + place - 1]) if place > 0 else 0
    end = int(listed[start + place]) if word & bit else begin
    return place, first + begin, first + end


@kernel
def _fill(
    cells: NDArray[np.int32],
    done: int,
    row_starts: NDArray[np.int64],
    positions: NDArray[np.int32],
    most: int,
    n_lengths: int,
    places: NDArray[np.int32],
    listed_bits: _Bits,
    boxes: ExactBoxes,
) -> int:
    """Write the numbers of the boxes that contain each row, from `done` on while there is room; where it stopped."""
    words, pattern, starts, listed = listed_bits.words, listed_bits.pattern, listed_bits.starts, listed_bits.listed
    exact, firsts, lasts = boxes.fit_places, boxes.firsts, boxes.lasts
    out = row_starts[done]
    for row in range(done, len(cells)):
        if len(positions) - out < most:
            return row
        first = out
        least = int(places[cells[row]]) * n_lengths + n_lengths - 1
        for i in range(len(pattern)):
            bits = _read_bits(words, least + 64 * i) & pattern[i]
            while bits != 0:
                _, begin, end = _find_list(least + 64 * i + lowest_one(bits), words, starts, listed)
                bits = without_lowest(bits)
                for j in range(0, end - begin, 8):
                    copy_eight(positions, out + j, listed, begin + j)
                out += end - begin
        if not exact:
            cell, found = cells[row], out
            out = first
            for i in range(first, found):
                box = positions[i]
                positions[out] = box
                out += (firsts[0, box] <= cell) & (cell <= lasts[0, box])
        row_starts[row + 1] = out
    return len(cells)


@kernel
def _change_lists(
    boxes: NDArray[np.int32],
    first_places: NDArray[np.int32],
    last_places: NDArray[np.int32],
    longest: int,
    is_added: bool,
    words: NDArray[np.int64],
    lists: GrowingLists,
) -> NDArray[np.int32]:
    """Add boxes to their lists, or remove them; `listed`, or a larger copy of it."""
    starts, sizes, listed, ends = lists
    numbers = np.empty(64 * len(words) // longest + 64, np.int64)
    for i in range(len(boxes)):
        for j in range(cut_interval(first_places[i], last_places[i], longest, True, numbers)):
            if is_added:
                listed = _add_to_list(numbers[j], boxes[i], words, starts, sizes, listed, ends)
            else:
                _remove_from_list(numbers[j], boxes[i], words, starts, sizes, listed)
    return listed


@kernel
def _add_to_list(
    number: int,
    box: int,
    words: NDArray[np.int64],
    starts: NDArray[np.int32],
    sizes: NDArray[np.int32],
    listed: NDArray[np.int32],
    ends: NDArray[np.int64],
) -> NDArray[np.int32]:
    word, bit = number >> 6, np.int64(1) << np.int64(number & 63)
    if words[word] & bit == 0:
        place, begin, _ = _find_list(number, words, starts, listed)
        begin -= starts[word] + count_ones(words[word])
        listed = append_to_list(word, 0, starts, sizes, listed, ends)
        _shift_up(starts[word] + place, starts[word] + sizes[word] - 1, listed)
        listed[starts[word] + place] = begin
        words[word] |= bit
    place, _, end = _find_list(number, words, starts, listed)
    offset = end - starts[word]
    listed = append_to_list(word, 0, starts, sizes, listed, ends)
    _shift_up(starts[word] + offset, starts[word] + sizes[word] - 1, listed)
    listed[starts[word] + offset] = box
    for i in range(starts[word] + place, starts[word] + count_ones(words[word])):
        listed[i] += 1
    return listed


@kernel
def _remove_from_list(
    number: int,
    box: int,
    words: NDArray[np.int64],
    starts: NDArray[np.int32],
    sizes: NDArray[np.int32],
    listed: NDArray[np.int32],
) -> None:
    word = number >> 6
    place, begin, end = _find_list(number, words, starts, listed)
    at = begin
    while listed[at] != box:
        at += 1
    _shift_down(at, starts[word] + sizes[word] - 1, listed)
    sizes[word] -= 1
    for i in range(starts[word] + place, starts[word] + count_ones(words[word])):
        listed[i] -= 1
    if end - begin == 1:
        _shift_down(starts[word] + place, starts[word] + sizes[word] - 1, listed)
        sizes[word] -= 1
        words[word] &= ~(np.int64(1) << np.int64(number & 63))


@kernel
def _shift_up(first: int, last: int, listed: NDArray[np.int32]) -> None:
    for i in range(last, first, -1):
        listed[i] = listed[i - 1]


@kernel
def _shift_down(first: int, last: int, listed: NDArray[np.int32]) -> None:
    for i in range(first, last):
        listed[i] = listed[i + 1]
