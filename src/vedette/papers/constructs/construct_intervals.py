"""Virtual construct intervals: boxes on one axis, listed under predefined intervals that they are cut into.

SCI and LCI of Wu, Chen and Yu, section 2. At every place there start intervals of the lengths 1 to L (SCI), or of the
powers of two up to L (LCI). A box is listed under the fewest intervals that make it up: as many of length L as fit, and
for the remainder one (SCI) or one for each set bit of its length (LCI). The intervals over a place have the same
numbers relative to the first of them for every place, so one difference table serves all rows. A row costs L * (L + 1)
/ 2 look-ups (SCI) or 2L - 1 (LCI), and one copy per match. Memory is 8 bytes per interval, with or without boxes, and 4
per listing. LCI is smaller; `LCIBV` reads only intervals with boxes. L and the places are chosen again after many
insertions, which is not in the paper: there they are given.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from vedette.data.matches import Matches
from vedette.indexes.growth import collect
from vedette.indexes.index import ONE_FIELD, TooLargeError, as_boxes, as_cells, check_given, sample_boxes
from vedette.native.kernels import kernel
from vedette.native.vectors import copy_eight
from vedette.papers.box_store import find_first_id
from vedette.papers.constructs.construct_choice import (
    SAMPLE,
    Model,
    choose_shape,
    count_logarithmic_parts,
    count_simple_parts,
)
from vedette.papers.constructs.places import ExactBoxes, find_borders, find_misfits, make_places
from vedette.papers.growing_lists import SLACK, GrowingLists, append_to_list, make_lists, pack_lists, remove_from_list
from vedette.papers.rebuilt_boxes import RebuiltBoxes


@dataclass
class ConstructIntervals(RebuiltBoxes):
    """The intervals that start at place `p` have the numbers from `(p + longest - 1) * n_lengths` on, by length.

    Those that cover `p` have the numbers `differences + p * n_lengths + n_lengths - 1`; those that start before the
    first place are empty.
    """

    n_fields: ClassVar[range] = ONE_FIELD

    given: NDArray[np.int64]  # L and the number of places as given; 0 if they are chosen
    places: NDArray[np.int32]  # by cell
    n_misfits: int  # boxes that begin or end within a place; if there are any, matches are compared with the boxes
    longest: int  # L
    differences: NDArray[np.int32]
    starts: NDArray[np.int32]  # the lists, see `growing_lists`
    sizes: NDArray[np.int32]
    listed: NDArray[np.int32]
    ends: NDArray[np.int64]

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
        """Index boxes on one axis.

        The greatest length L, rounded to a power of two, and the number of places are chosen from the widths of the
        boxes unless they are given. With `with_room` there are also places for later boxes.
        """
        check_given(longest=longest, n_places=n_places)
        firsts, lasts, ids = as_boxes(firsts, lasts, ids, n_cells)
        given = np.array([longest or 0, n_places or 0])
        borders = find_borders(firsts[0], lasts[0], n_cells[0], with_room)
        if longest is None:
            longest, n_places = cls.choose(firsts[0], lasts[0], borders, n_places)
        longest = 1 << (longest - 1).bit_length()
        places = make_places(borders, n_cells[0], n_places or len(borders))
        n_lengths = cls.count_lengths(longest)
        first_places, last_places = places[firsts[0]], places[lasts[0]]
        sizes = np.zeros((int(places[-1]) + longest) * n_lengths, np.int64)
        none = np.empty(0, np.int32)
        is_logarithmic = cls.is_logarithmic()
        _list_all(first_places, last_places, longest, is_logarithmic, sizes, none, none, False)
        if sizes.sum() >= 1 << 31:
            raise TooLargeError(f"virtual construct intervals would list {sizes.sum()} boxes; the limit is 2^31")
        starts, counts, listed, ends = make_lists(sizes)
        sizes[:] = 0
        _list_all(first_places, last_places, longest, is_logarithmic, sizes, starts, listed, True)
        kept = firsts.copy(), lasts.copy(), ids.copy(), none, find_first_id(ids)
        index = cls(*kept, 0, given, places, 0, longest, cls.find_differences(longest), starts, counts, listed, ends)
        index.n_misfits = index.count_misfits(slice(None))
        return index

    @classmethod
    def choose(
        cls,
        firsts: NDArray[np.int32],
        lasts: NDArray[np.int32],
        borders: NDArray[np.int64],
        n_places: int | None = None,
    ) -> tuple[int, int]:
        """L and the number of places for boxes on one axis."""
        chosen = sample_boxes(len(firsts), SAMPLE)
        if len(chosen) == 0:
            return 1, 1
        before, after = (np.searchsorted(borders, ends[chosen], "right") for ends in (firsts, lasts))
        widths = after - before + 1
        n_borders = len(borders)
        if n_places is not None and n_places < n_borders:
            widths, n_borders = np.ceil(widths * n_places / n_borders), n_places
        shape = choose_shape(cls.model(), [n_borders], widths[None, :].astype(np.float64), len(firsts))
        return shape.longest, n_places or shape.n_places[0]

    @classmethod
    def model(cls) -> Model:
        """The model behind the choice of L."""
        count_parts = count_logarithmic_parts if cls.is_logarithmic() else count_simple_parts
        return Model(count_parts, cls.count_lengths, lambda longest: len(cls.find_differences(longest)))

    @staticmethod
    @abstractmethod
    def is_logarithmic() -> bool:
        """Whether all lengths are powers of two."""

    @classmethod
    def count_lengths(cls, longest: int) -> int:
        """How many intervals start at a place."""
        return longest.bit_length() if cls.is_logarithmic() else longest

    @classmethod
    def find_differences(cls, longest: int) -> NDArray[np.int32]:
        """The numbers of the intervals over a place, minus the lowest of them (section 2.4)."""
        n_lengths = cls.count_lengths(longest)
        lengths = 1 << np.arange(n_lengths) if cls.is_logarithmic() else np.arange(1, longest + 1)
        ahead = np.arange(longest)[:, None]  # places after the first start that can cover the place
        numbers = ahead * n_lengths + np.arange(n_lengths) - (n_lengths - 1)
        return numbers[lengths >= longest - ahead].astype(np.int32)

    def match(self, cells: NDArray[np.int32]) -> Matches:
        cells = as_cells(cells)
        most = len(self) + SLACK
        boxes = ExactBoxes(self.n_misfits == 0, self.firsts, self.lasts)
        lists, places, differences = self.lists, self.places, self.differences
        n_lengths = self.count_lengths(self.longest)
        matches = collect(
            cells.shape[1],
            most,
            lambda done, starts, positions: _fill(
                cells[0], done, starts, positions, most, n_lengths, places, differences, lists, boxes
            ),
        )
        self.give_ids(matches.positions)
        return matches

    @property
    def lists(self) -> GrowingLists:
        return GrowingLists(self.starts, self.sizes, self.listed, self.ends)

    def count_cells(self) -> Sequence[int]:
        return [len(self.places)]

    def list_boxes(self, numbers: NDArray[np.int32]) -> None:
        self.n_misfits += self.count_misfits(numbers)
        self._change(numbers, True)

    def unlist_boxes(self, numbers: NDArray[np.int32]) -> None:
        self.n_misfits -= self.count_misfits(numbers)
        self._change(numbers, False)

    def rebuild(self, firsts: NDArray[np.int32], lasts: NDArray[np.int32], ids: NDArray[np.int32]) -> None:
        longest, n_places = (int(each) or None for each in self.given)
        self.__dict__.update(self.build(firsts, lasts, ids, self.count_cells(), longest, n_places, True).__dict__)

    def count_misfits(self, numbers: NDArray[np.int32] | slice) -> int:
        return int(np.count_nonzero(find_misfits(self.places, self.firsts[0, numbers], self.lasts[0, numbers])))

    def _change(self, numbers: NDArray[np.int32], is_added: bool) -> None:
        first_places, last_places = self.places[self.firsts[0, numbers]], self.places[self.lasts[0, numbers]]
        self.listed = _change_lists(
            numbers, first_places, last_places, self.longest, self.is_logarithmic(), is_added, self.lists
        )
        self.starts, self.listed, self.ends = pack_lists(self.starts, self.sizes, self.listed, self.ends, len(numbers))


@dataclass
class SCI(ConstructIntervals):
    """Simple construct intervals: of every length up to L."""

    @staticmethod
    def is_logarithmic() -> bool:
        return False


@dataclass
class LCI(ConstructIntervals):
    """Logarithmic construct intervals: of the powers of two up to L."""

    @staticmethod
    def is_logarithmic() -> bool:
        return True


@kernel
def cut_interval(first: int, last: int, longest: int, is_logarithmic: bool, numbers: NDArray[Any]) -> int:
    """Write the numbers of the intervals that make up a range of places; how many (section 2.3)."""
    n = 0
    n_lengths = longest
    if is_logarithmic:
        n_lengths = 1
        while 1 << (n_lengths - 1) < longest:
            n_lengths += 1
    start, left = first, last - first + 1
    while left >= longest:
        numbers[n] = (start + longest) * n_lengths - 1
        n += 1
        start += longest
        left -= longest
    if not is_logarithmic:
        if left > 0:
            numbers[n] = (start + longest - 1) * n_lengths + left - 1
            n += 1
        return n
    for power in range(n_lengths - 2, -1, -1):
        if left & (1 << power):
            numbers[n] = (start + longest - 1) * n_lengths + power
            n += 1
            start += 1 << power
    return n


@kernel
def _list_all(
    firsts: NDArray[np.int32],
    lasts: NDArray[np.int32],
    longest: int,
    is_logarithmic: bool,
    sizes: NDArray[np.int64],
    starts: NDArray[np.int32],
    listed: NDArray[np.int32],
    fill: bool,
) -> None:
    """Count the listings of each interval, or write them."""
    numbers = np.empty(len(sizes) // longest + 64, np.int64)
    for box in range(len(firsts)):
        for i in range(cut_interval(firsts[box], lasts[box], longest, is_logarithmic, numbers)):
            if fill:
                listed[starts[numbers[i]] + sizes[numbers[i]]] = box
            sizes[numbers[i]] += 1


@kernel
def _change_lists(
    boxes: NDArray[np.int32],
    firsts: NDArray[np.int32],
    lasts: NDArray[np.int32],
    longest: int,
    is_logarithmic: bool,
    is_added: bool,
    lists: GrowingLists,
) -> NDArray[np.int32]:
    """Add boxes to their lists, or remove them; `listed`, or a larger copy of it."""
    starts, sizes, listed, ends = lists
    numbers = np.empty(len(sizes) // longest + 64, np.int64)
    for i in range(len(boxes)):
        for j in range(cut_interval(firsts[i], lasts[i], longest, is_logarithmic, numbers)):
            if is_added:
                listed = append_to_list(numbers[j], boxes[i], starts, sizes, listed, ends)
            else:
                remove_from_list(numbers[j], boxes[i], starts, sizes, listed)
    return listed


@kernel
def _fill(
    cells: NDArray[np.int32],
    done: int,
    row_starts: NDArray[np.int64],
    positions: NDArray[np.int32],
    most: int,
    n_lengths: int,
    places: NDArray[np.int32],
    differences: NDArray[np.int32],
    lists: GrowingLists,
    boxes: ExactBoxes,
) -> int:
    """Write the numbers of the boxes that contain each row, from `done` on while there is room; where it stopped."""
    starts, sizes, listed = lists.starts, lists.sizes, lists.listed
    exact, firsts, lasts = boxes.fit_places, boxes.firsts, boxes.lasts
    out = row_starts[done]
    for row in range(done, len(cells)):
        if len(positions) - out < most:
            return row
        first = out
        least = places[cells[row]] * n_lengths + n_lengths - 1
        for difference in differences:
            number = least + difference
            at, size = starts[number], sizes[number]
            copy_eight(positions, out, listed, at)  # most lists are short; surplus entries are overwritten
            for j in range(8, size, 8):
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
