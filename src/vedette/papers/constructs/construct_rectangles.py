"""Virtual construct rectangles: boxes on two axes, listed under predefined rectangles that they are cut into.

VCR of Wu, Chen and Yu, section 3. At every point of the grid there start rectangles whose sides are powers of two up to
L. A box is cut into strips and these into rectangles: as many of side L as fit, and for the remainder smaller ones
(simple decomposition), or one more of the same size that overlaps the one before (overlapped decomposition), which
makes fewer listings and finds some boxes more than once. The rectangles over a point have the same numbers relative to
the first of them for every point, so one difference table serves all rows: (2L - 1) ** 2 look-ups, and one copy per
match. It is faster than R-trees if many boxes overlap. Costs 8 bytes per rectangle, with or without boxes, and 4 per
listing. L and the places are chosen again after many insertions, which is not in the paper: there they are given.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from vedette.data.matches import Matches
from vedette.indexes.growth import collect
from vedette.indexes.index import TWO_FIELDS, TooLargeError, as_boxes, as_cells, check_given, sample_boxes
from vedette.native.kernels import kernel
from vedette.native.vectors import copy_eight
from vedette.papers.box_store import find_first_id
from vedette.papers.constructs.construct_choice import SAMPLE, Model, Shape, choose_shape, count_logarithmic_parts
from vedette.papers.constructs.places import ExactBoxes, find_borders, find_misfits, make_places
from vedette.papers.constructs.rectangle_cutting import change_lists, list_all
from vedette.papers.growing_lists import SLACK, GrowingLists, make_lists, pack_lists
from vedette.papers.rebuilt_boxes import RebuiltBoxes

DECOMPOSITIONS = ("simple", "overlapped")


class _Rectangles(NamedTuple):
    """How the rectangles over a point are numbered (see `VCR`), for kernels."""

    x_places: NDArray[np.int32]
    y_places: NDArray[np.int32]
    width: int
    n_kinds: int
    differences: NDArray[np.int32]


@dataclass
class VCR(RebuiltBoxes):
    """Rectangles of sides `2 ** i` and `2 ** j` that start at (x, y) have the numbers of equation (1).

    That is `n_kinds * (x + y * width) + j * n_lengths + i`, where x and y are counted from the first start whose
    rectangles may cover the point (0, 0), and `width` is the number of such starts on a line.
    """

    n_fields: ClassVar[range] = TWO_FIELDS

    given: NDArray[np.int64]  # L and the numbers of places as given; 0 if they are chosen
    x_places: NDArray[np.int32]  # by cell
    y_places: NDArray[np.int32]
    n_misfits: int  # boxes that begin or end within a place; if there are any, matches are compared with the boxes
    overlapped: bool  # the decomposition
    longest: int  # L
    width: int
    differences: NDArray[np.int32]  # from the pivot on
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
        n_places: Sequence[int] | None = None,
        decomposition: str = "simple",
        with_room: bool = False,
    ) -> Self:
        """Index boxes on two axes.

        The greatest side L, rounded to a power of two, and the number of places on each axis are chosen from the widths
        of the boxes unless they are given. With `with_room` there are also places for later boxes.
        """
        if decomposition not in DECOMPOSITIONS:
            raise ValueError(f"decomposition must be one of {', '.join(DECOMPOSITIONS)}; got {decomposition!r}")
        check_given(longest=longest, n_places=None if n_places is None else min(n_places))
        given = np.array([longest or 0, *(n_places or (0, 0))])
        firsts, lasts, ids = as_boxes(firsts, lasts, ids, n_cells)
        borders = [find_borders(firsts[axis], lasts[axis], n_cells[axis], with_room) for axis in range(2)]
        is_overlapped = decomposition == "overlapped"
        if longest is None:
            shape = cls.choose(firsts, lasts, borders, is_overlapped, n_places)
            longest, n_places = shape.longest, n_places or shape.n_places
        longest = 1 << (longest - 1).bit_length()
        n_places = n_places or [len(each) for each in borders]
        places = [make_places(borders[axis], n_cells[axis], n_places[axis]) for axis in range(2)]
        width, height = (int(each[-1]) + longest for each in places)
        n_lists = longest.bit_length() ** 2 * width * height
        if n_lists >= 1 << 31:
            raise TooLargeError(f"there would be {n_lists} virtual construct rectangles; the limit is 2^31")
        first_places, last_places = _to_places(places, firsts, lasts)
        sizes = np.zeros(n_lists, np.int64)
        none = np.empty(0, np.int32)
        list_all(first_places, last_places, longest, is_overlapped, width, sizes, none, none, False)
        if sizes.sum() >= 1 << 31:
            raise TooLargeError(f"virtual construct rectangles would list {sizes.sum()} boxes; the limit is 2^31")
        starts, counts, listed, list_ends = make_lists(sizes)
        sizes[:] = 0
        list_all(first_places, last_places, longest, is_overlapped, width, sizes, starts, listed, True)
        kept = firsts.copy(), lasts.copy(), ids.copy(), none, find_first_id(ids)
        differences = find_differences(longest, width)
        index = cls(
            *kept, 0, given, places[0], places[1], 0, is_overlapped, longest, width, differences,
            starts, counts, listed, list_ends,
        )  # fmt: skip
        index.n_misfits = index.count_misfits(slice(None))
        return index

    @classmethod
    def choose(
        cls,
        firsts: NDArray[np.int32],
        lasts: NDArray[np.int32],
        borders: Sequence[NDArray[np.int64]],
        is_overlapped: bool = False,
        n_places: Sequence[int] | None = None,
    ) -> Shape:
        """L and the numbers of places."""
        chosen = sample_boxes(firsts.shape[1], SAMPLE)
        if len(chosen) == 0:
            return Shape(1, (1, 1), 0.0, 0.0)
        widths = np.empty((2, len(chosen)))
        n_borders = []
        for axis, own in enumerate(borders):
            after, before = (np.searchsorted(own, ends[axis, chosen], "right") for ends in (lasts, firsts))
            n = len(own) if n_places is None else min(len(own), n_places[axis])
            widths[axis] = np.ceil((after - before + 1) * (n / len(own)))
            n_borders.append(n)
        return choose_shape(cls.model(is_overlapped), n_borders, widths, firsts.shape[1])

    @staticmethod
    def model(is_overlapped: bool = False) -> Model:
        """The model behind the choice of L."""
        count_parts = count_overlapped_parts if is_overlapped else count_logarithmic_parts
        return Model(count_parts, int.bit_length, lambda longest: 2 * longest - 1)

    def match(self, cells: NDArray[np.int32]) -> Matches:
        cells = as_cells(cells)
        most = self._most_found + SLACK
        n_kinds = self.longest.bit_length() ** 2
        seen = np.zeros(len(self.ids) if self.overlapped else 0, np.int32)
        rectangles = _Rectangles(self.x_places, self.y_places, self.width, n_kinds, self.differences)
        boxes = ExactBoxes(self.n_misfits == 0, self.firsts, self.lasts)
        lists, overlapped = self._lists, self.overlapped
        matches = collect(
            cells.shape[1],
            most,
            lambda done, starts, positions: _fill(
                cells, done, starts, positions, most, rectangles, lists, boxes, overlapped, seen
            ),
        )
        self.give_ids(matches.positions)
        return matches

    @property
    def _lists(self) -> GrowingLists:
        return GrowingLists(self.starts, self.sizes, self.listed, self.ends)

    @property
    def _most_found(self) -> int:
        """The most listings of a box that one row can find: up to four overlapped rectangles of a box intersect."""
        return len(self) * (4 if self.overlapped else 1)

    def count_cells(self) -> Sequence[int]:
        return [len(self.x_places), len(self.y_places)]

    def list_boxes(self, numbers: NDArray[np.int32]) -> None:
        self.n_misfits += self.count_misfits(numbers)
        self._change(numbers, True)

    def unlist_boxes(self, numbers: NDArray[np.int32]) -> None:
        self.n_misfits -= self.count_misfits(numbers)
        self._change(numbers, False)

    def rebuild(self, firsts: NDArray[np.int32], lasts: NDArray[np.int32], ids: NDArray[np.int32]) -> None:
        longest, *n_places = self.given.tolist()
        decomposition = DECOMPOSITIONS[self.overlapped]
        n_places = n_places if all(n_places) else None
        new = self.build(firsts, lasts, ids, self.count_cells(), longest or None, n_places, decomposition, True)
        self.__dict__.update(new.__dict__)

    def count_misfits(self, numbers: NDArray[np.int32] | slice) -> int:
        firsts, lasts = self.firsts[:, numbers], self.lasts[:, numbers]
        on_x = find_misfits(self.x_places, firsts[0], lasts[0])
        return int(np.count_nonzero(on_x | find_misfits(self.y_places, firsts[1], lasts[1])))

    def _change(self, numbers: NDArray[np.int32], is_added: bool) -> None:
        firsts, lasts = _to_places([self.x_places, self.y_places], self.firsts[:, numbers], self.lasts[:, numbers])
        self.listed = change_lists(
            numbers, firsts, lasts, self.longest, self.overlapped, self.width, is_added, self._lists
        )
        self.starts, self.listed, self.ends = pack_lists(self.starts, self.sizes, self.listed, self.ends, len(numbers))


def find_differences(longest: int, width: int) -> NDArray[np.int32]:
    """The numbers of the rectangles over a point, minus that of the pivot's first (section 3.4)."""
    n_lengths = longest.bit_length()
    x, i = (each.ravel() for each in np.meshgrid(np.arange(longest), np.arange(n_lengths), indexing="ij"))
    reaches = 1 << i >= longest - x  # whether it covers the point from the x-th start
    x, i = x[reaches], i[reaches]
    starts = x[None, :] + width * x[:, None]
    kinds = i[None, :] + n_lengths * i[:, None]
    return np.sort((n_lengths**2 * starts + kinds).ravel()).astype(np.int32)


def count_overlapped_parts(widths: NDArray[np.float64], longest: int) -> NDArray[np.float64]:
    """The number of intervals of one length, the greatest power of two that fits, that cover each width."""
    lengths = np.minimum(np.exp2(np.floor(np.log2(widths))), longest)
    return np.ceil(widths / lengths)


def _to_places(
    places: Sequence[NDArray[np.int32]], firsts: NDArray[np.int32], lasts: NDArray[np.int32]
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The places of the first and of the last cells, (2, boxes)."""
    return np.stack([places[0][firsts[0]], places[1][firsts[1]]]), np.stack([places[0][lasts[0]], places[1][lasts[1]]])


@kernel
def _fill(
    cells: NDArray[np.int32],
    done: int,
    row_starts: NDArray[np.int64],
    positions: NDArray[np.int32],
    most: int,
    rectangles: _Rectangles,
    lists: GrowingLists,
    boxes: ExactBoxes,
    overlapped: bool,
    seen: NDArray[np.int32],
) -> int:
    """Write the numbers of the boxes that contain each row, from `done` on while there is room; where it stopped."""
    x_places, y_places, width = rectangles.x_places, rectangles.y_places, rectangles.width
    n_kinds, differences = rectangles.n_kinds, rectangles.differences
    starts, sizes, listed = lists.starts, lists.sizes, lists.listed
    exact, firsts, lasts = boxes.fit_places, boxes.firsts, boxes.lasts
    out = row_starts[done]
    for row in range(done, cells.shape[1]):
        if len(positions) - out < most:
            return row
        first = out
        x, y = cells[0, row], cells[1, row]
        pivot = n_kinds * (x_places[x] + np.int64(y_places[y]) * width)
        for difference in differences:
            number = pivot + difference
            at, size = starts[number], sizes[number]
            copy_eight(positions, out, listed, at)  # most lists are short; surplus entries are overwritten
            for j in range(8, size, 8):
                copy_eight(positions, out + j, listed, at + j)
            out += size
        end = out
        if not exact:
            out = first
            for i in range(first, end):
                box = positions[i]
                positions[out] = box
                holds_x = (firsts[0, box] <= x) & (x <= lasts[0, box])
                out += holds_x & (firsts[1, box] <= y) & (y <= lasts[1, box])
            end = out
        if overlapped:
            out = first
            for i in range(first, end):
                box = positions[i]
                positions[out] = box
                out += seen[box] != row + 1
                seen[box] = row + 1
        row_starts[row + 1] = out
    return int(cells.shape[1])
