"""Logarithmic construct intervals with bit vectors: only those that a box is listed under are stored and looked at.

The LCI-BV(DT) of Wu, Chen and Yu, figures 6 and 7, of which their report tells the name and the result. Every interval
has a bit; those of 64 intervals together lead to the lists of the ones that are set. The difference table is a pattern
of bits, so a row takes its intervals 64 at a time: the pattern over the bits from its first one on. Costs a word for 64
intervals and a step for each list that is there, a quarter of a byte an interval, and 12 bytes a list.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from vedette.indexes.bits import count_ones, lowest_one, without_lowest
from vedette.indexes.construct_choice import Model, count_logarithmic_parts
from vedette.indexes.construct_intervals import LCI, cut_interval
from vedette.indexes.growing_lists import SLACK, append_to_list, make_lists, pack_lists, remove_from_list
from vedette.indexes.growth import collect
from vedette.indexes.index import as_cells
from vedette.indexes.places import find_borders
from vedette.kernels import kernel
from vedette.matches import Matches
from vedette.vectors import copy_eight


@dataclass
class LCIBV(LCI):
    """Bit `i` of all words tells whether interval `i`, numbered as in `LCI`, is listed under.

    The lists of word `w` are the numbers `word_listed[word_starts[w]:word_starts[w] + word_sizes[w]]`, one for each set
    bit, in their order; what is in them, as in `LCI`.
    """

    words: NDArray[np.int64]
    pattern: NDArray[np.int64]  # the bits of the intervals over a place, from the least of them on
    word_starts: NDArray[np.int32]
    word_sizes: NDArray[np.int32]
    word_listed: NDArray[np.int32]
    word_ends: NDArray[np.int64]
    free_lists: NDArray[np.int32]

    @classmethod
    def build(
        cls,
        firsts: NDArray[np.int32],
        lasts: NDArray[np.int32],
        ids: NDArray[np.int32],
        n_cells: Sequence[int],
        longest: int | None = None,
        n_places: int | None = None,
    ) -> Self:
        """Index boxes on one axis; L and the number of places are chosen unless they are given."""
        if longest is None:
            alive = (firsts <= lasts).all(axis=0)
            some = firsts[0, alive], lasts[0, alive]
            longest, n_places = cls.choose(*some, find_borders(*some, n_cells[0]), n_places)
        whole = LCI.build(firsts, lasts, ids, n_cells, longest, n_places)
        is_set = whole.sizes > 0
        reach = int(whole.differences.max()) // 64 + 1  # of a pattern, which may lie beyond the last interval
        words = np.zeros(len(is_set) // 64 + reach + 2, np.int64)
        packed = np.packbits(is_set, bitorder="little")
        words.view(np.uint8)[: len(packed)] = packed
        starts, sizes, listed, ends = make_lists(whole.sizes[is_set])
        listed[: ends[0] - 1] = whole.listed[: ends[0] - 1]  # empty lists have taken no room
        word_starts, word_sizes, word_listed, word_ends = make_lists(np.bitwise_count(words.view(np.uint64)))
        word_listed[: len(sizes)] = np.arange(len(sizes))
        pattern = np.zeros(reach, np.int64)
        for difference in whole.differences.tolist():
            pattern[difference // 64] |= np.int64(np.uint64(1 << difference % 64).view(np.int64))
        kept = whole.firsts, whole.lasts, whole.ids, whole.free, whole.first_id
        layout = whole.places, whole.exact, whole.longest, whole.differences
        return cls(
            *kept, *layout, starts, sizes, listed, ends,
            words, pattern, word_starts, word_sizes, word_listed, word_ends, np.empty(0, np.int32),
        )  # fmt: skip

    @classmethod
    def model(cls) -> Model:
        covering = lambda longest: len(cls.find_differences(longest))  # noqa: E731
        return Model(count_logarithmic_parts, cls.count_lengths, covering, has_bits=True)

    def match(self, cells: NDArray[np.int32]) -> Matches:
        cells = as_cells(cells)
        most = len(self) + SLACK
        tables = (
            self.places, self.words, self.pattern, self.word_starts, self.word_listed,
            self.starts, self.sizes, self.listed, self.exact, self.firsts, self.lasts,
        )  # fmt: skip
        n_lengths = self.count_lengths(self.longest)
        matches = collect(
            cells.shape[1],
            most,
            lambda done, starts, positions: _fill(cells[0], done, starts, positions, most, n_lengths, *tables),
        )
        self.give_ids(matches.positions)
        return matches

    def _change(self, numbers: NDArray[np.int32], come: bool) -> None:
        places = self.places[self.firsts[0, numbers]], self.places[self.lasts[0, numbers]]
        if come:
            n_whole = int((places[1] - places[0] + 1).sum()) // self.longest
            self._reserve_lists(n_whole + self.longest.bit_length() * len(numbers))
        n_free = np.array([len(self.free_lists)])
        self.free_lists = np.concatenate([self.free_lists, np.zeros(0 if come else len(self.sizes), np.int32)])
        self.listed, self.word_listed = _change_lists(
            numbers, *places, self.longest, come, self.words, self.word_starts, self.word_sizes, self.word_listed,
            self.word_ends, self.starts, self.sizes, self.listed, self.ends, self.free_lists, n_free,
        )  # fmt: skip
        self.free_lists = self.free_lists[: n_free[0]].copy()
        self.starts, self.listed, self.ends = pack_lists(self.starts, self.sizes, self.listed, self.ends)
        packed = pack_lists(self.word_starts, self.word_sizes, self.word_listed, self.word_ends)
        self.word_starts, self.word_listed, self.word_ends = packed

    def _reserve_lists(self, n_wanted: int) -> None:
        n_more = n_wanted - len(self.free_lists)
        if n_more > 0:
            n_old = len(self.sizes)
            self.starts = np.concatenate([self.starts, np.zeros(n_more, np.int32)])
            self.sizes = np.concatenate([self.sizes, np.zeros(n_more, np.int32)])
            new = np.arange(n_old + n_more, n_old, -1, dtype=np.int32) - 1
            self.free_lists = np.concatenate([new, self.free_lists])


@kernel
def _read_bits(words: NDArray[np.int64], first: int) -> Any:
    """64 bits from any one on."""
    word, shift = first >> 6, first & 63
    if shift == 0:
        return words[word]
    low = (words[word] >> shift) & ((np.int64(1) << np.int64(64 - shift)) - 1)
    return low | (words[word + 1] << np.int64(64 - shift))


@kernel
def _find_place(number: int, words: NDArray[np.int64]) -> int:
    """How many intervals of the same word before this one are listed under."""
    return count_ones(words[number >> 6] & ((np.int64(1) << np.int64(number & 63)) - 1))


@kernel
def _fill(
    cells: NDArray[np.int32],
    done: int,
    row_starts: NDArray[np.int64],
    positions: NDArray[np.int32],
    most: int,
    n_lengths: int,
    places: NDArray[np.int32],
    words: NDArray[np.int64],
    pattern: NDArray[np.int64],
    word_starts: NDArray[np.int32],
    word_listed: NDArray[np.int32],
    starts: NDArray[np.int32],
    sizes: NDArray[np.int32],
    listed: NDArray[np.int32],
    exact: bool,
    firsts: NDArray[np.int32],
    lasts: NDArray[np.int32],
) -> int:
    """Write the numbers of the boxes that hold each row from `done` on while there is room; the row it stopped at."""
    out = row_starts[done]
    for row in range(done, len(cells)):
        if len(positions) - out < most:
            return row
        first = out
        least = int(places[cells[row]]) * n_lengths + n_lengths - 1
        for i in range(len(pattern)):
            bits = _read_bits(words, least + 64 * i) & pattern[i]
            while bits != 0:
                number = least + 64 * i + lowest_one(bits)
                bits = without_lowest(bits)
                one = word_listed[word_starts[number >> 6] + _find_place(number, words)]
                at, size = starts[one], sizes[one]
                for j in range(0, size, 8):
                    copy_eight(positions, out + j, listed, at + j)
                out += size
        if not exact:
            cell, end = cells[row], out
            out = first
            for i in range(first, end):
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
    come: bool,
    words: NDArray[np.int64],
    word_starts: NDArray[np.int32],
    word_sizes: NDArray[np.int32],
    word_listed: NDArray[np.int32],
    word_ends: NDArray[np.int64],
    starts: NDArray[np.int32],
    sizes: NDArray[np.int32],
    listed: NDArray[np.int32],
    ends: NDArray[np.int64],
    free_lists: NDArray[np.int32],
    n_free: NDArray[np.int64],
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """List boxes that come, or take those that go out of their lists; `listed` and `word_listed`, or larger copies."""
    numbers = np.empty(64 * len(words) // longest + 64, np.int64)
    for i in range(len(boxes)):
        for j in range(cut_interval(first_places[i], last_places[i], longest, True, numbers)):
            number = numbers[j]
            word, bit = number >> 6, np.int64(1) << np.int64(number & 63)
            place = _find_place(number, words)
            if come:
                if words[word] & bit == 0:
                    words[word] |= bit
                    n_free[0] -= 1
                    new = free_lists[n_free[0]]
                    word_listed = append_to_list(word, new, word_starts, word_sizes, word_listed, word_ends)
                    start = word_starts[word]
                    for k in range(start + word_sizes[word] - 1, start + place, -1):
                        word_listed[k] = word_listed[k - 1]
                    word_listed[start + place] = new
                one = word_listed[word_starts[word] + place]
                listed = append_to_list(one, boxes[i], starts, sizes, listed, ends)
                continue
            one = word_listed[word_starts[word] + place]
            remove_from_list(one, boxes[i], starts, sizes, listed)
            if sizes[one] == 0:
                words[word] &= ~bit
                start = word_starts[word]
                word_sizes[word] -= 1
                for k in range(start + place, start + word_sizes[word]):
                    word_listed[k] = word_listed[k + 1]
                free_lists[n_free[0]] = one
                n_free[0] += 1
    return listed, word_listed
