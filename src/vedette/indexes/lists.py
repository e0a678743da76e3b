"""Boxes on one axis, listed by cell: a row is one lookup and one copy, without a test.

Best if boxes span few cells: equality, or ranges that rarely overlap (one or two matches per row). Costs 4 bytes per
cell and per cell of each box; `fits` returns whether that is acceptable.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from vedette.data.matches import Matches
from vedette.indexes.counted import Counted
from vedette.indexes.estimates import BoxFacts, Estimate, miss_cost
from vedette.indexes.index import MAX_IN_ONE_CALL, ONE_FIELD, SMALL_BATCH, as_boxes, as_cells, count_bytes
from vedette.native.buffers import empty_int64
from vedette.native.damage import check, check_fields, check_shape, check_starts, check_within
from vedette.native.kernels import kernel
from vedette.native.prefetch import prefetch
from vedette.native.vectors import copy_eight

BYTES_PER_BOX = 60
SMALL_BYTES = 1 << 18  # lists of few boxes may be long: they stay in the L2 cache
FAR, NEAR = 16, 8  # rows ahead for which the start of a list and the list are prefetched
SLACK = 8  # eight boxes are copied at once, even if there are fewer


@dataclass(frozen=True)
class Lists:
    """Cell `c` lists `cell_ids[cell_starts[c]:cell_starts[c + 1]]`."""

    n_fields: ClassVar[range] = ONE_FIELD
    wins_for: ClassVar[str] = "equality, and ranges that seldom overlap"
    needs: ClassVar[str] = "a single field, and boxes short enough to be listed in every cell"
    needs_points: ClassVar[bool] = False

    cell_starts: NDArray[np.int32]
    cell_ids: NDArray[np.int32]

    @classmethod
    def build(
        cls, firsts: NDArray[np.int32], lasts: NDArray[np.int32], ids: NDArray[np.int32], n_cells: Sequence[int]
    ) -> Self:
        """Index boxes on one axis that together have fewer than 2^31 cells."""
        firsts, lasts, ids = as_boxes(firsts, lasts, ids, n_cells)
        n_listed = _count_listed(firsts[0], lasts[0])
        if n_listed >= 1 << 31:
            raise ValueError(f"lists by cell would have {n_listed} entries; the maximum is 2^31: use buckets")
        return cls(*_build(firsts[0], lasts[0], ids, n_cells[0]))

    @classmethod
    def estimate(cls, facts: BoxFacts) -> list[Estimate]:
        if not fits(facts.firsts[0], facts.lasts[0], facts.n_cells[0]):
            return []
        met = facts.matches
        cost = 5 + 0.5 * met + miss_cost(facts.n, 60)
        return [Estimate(facts.axes, cost, f"a row meets about {met:,.1f} of {facts.n:,} boxes")]

    def match(self, cells: NDArray[np.int32]) -> Matches:
        return self.match_axis(as_cells(cells)[0])

    def match_axis(self, cells: NDArray[np.int32]) -> Matches:
        """Matches of rows given by their cells on the one axis."""
        if len(cells) <= SMALL_BATCH:
            found = _match(cells, self.cell_starts, self.cell_ids)
            if len(found[1]) or found[0][-1] == 0:
                return Matches(*found)
        return self.count_axis(cells).to_matches()

    def count(self, cells: NDArray[np.int32]) -> Counted:
        return self.count_axis(as_cells(cells)[0])

    def count_axis(self, cells: NDArray[np.int32]) -> Counted:
        """As `match_axis`, but the matches are not written yet."""
        starts = empty_int64(len(cells) + 1)
        _count(cells, starts, self.cell_starts)

        def fill(rows: slice, starts: NDArray[np.int64], positions: NDArray[np.int32]) -> None:
            _fill(cells[rows], starts, positions, self.cell_starts, self.cell_ids)

        return Counted(starts, SLACK, fill)

    def validate(self, n_cells: Sequence[int], ids: range) -> None:
        check_fields(self)
        check(len(n_cells) == 1, "lists are on one axis")
        check_shape(self.cell_starts, (n_cells[0] + 1,), "the starts of lists")
        check_shape(self.cell_ids, (len(self.cell_ids),), "the ids of lists")
        check_starts(self.cell_starts, len(self.cell_ids) - SLACK, "the starts of lists")
        check_within(self.cell_ids[:-SLACK], ids.start, ids.stop - 1, "the ids of lists")

    def has_boxes(self, firsts: NDArray[np.int32], lasts: NDArray[np.int32], ids: NDArray[np.int32]) -> bool:
        """Whether exactly these boxes, which are valid, are listed."""
        if _count_listed(firsts[0], lasts[0]) != len(self.cell_ids) - SLACK:
            return False
        starts, listed = _build(firsts[0], lasts[0], ids, len(self.cell_starts) - 1)
        return np.array_equal(starts, self.cell_starts) and np.array_equal(listed, self.cell_ids)

    @property
    def nbytes(self) -> int:
        return count_bytes(self)


def fits(firsts: NDArray[np.int32], lasts: NDArray[np.int32], n_cells: int) -> bool:
    """Whether lists by cell of these ranges on one axis stay within `BYTES_PER_BOX`, or are small in total."""
    return 4 * (n_cells + _count_listed(firsts, lasts)) <= max(BYTES_PER_BOX * len(firsts), SMALL_BYTES)


def _count_listed(firsts: NDArray[np.int32], lasts: NDArray[np.int32]) -> int:
    return int(np.maximum(lasts - firsts + 1, 0).sum(dtype=np.int64))


@kernel
def _match(
    cells: NDArray[np.int32], cell_starts: NDArray[np.int32], cell_ids: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    starts = np.empty(len(cells) + 1, np.int64)
    _count(cells, starts, cell_starts)
    n_found = starts[-1]
    if n_found > MAX_IN_ONE_CALL:
        return starts, np.empty(0, np.int32)
    positions = np.empty(n_found + SLACK, np.int32)
    _fill(cells, starts, positions, cell_starts, cell_ids)
    return starts, positions[:n_found]


@kernel
def _count(cells: NDArray[np.int32], starts: NDArray[np.int64], cell_starts: NDArray[np.int32]) -> None:
    """Write where the matches of each row start."""
    starts[0] = 0
    for row in range(len(cells)):
        starts[row + 1] = starts[row] + (cell_starts[cells[row] + 1] - cell_starts[cells[row]])


@kernel
def _fill(
    cells: NDArray[np.int32],
    starts: NDArray[np.int64],
    positions: NDArray[np.int32],
    cell_starts: NDArray[np.int32],
    cell_ids: NDArray[np.int32],
) -> None:
    """Copy the lists row by row. The next row overwrites excess entries."""
    n_rows = len(cells)
    for row in range(n_rows):
        if row + FAR < n_rows:
            prefetch(cell_starts, cells[row + FAR])
            prefetch(cell_ids, cell_starts[cells[row + NEAR]])
        at = cell_starts[cells[row]]
        out = starts[row]
        copy_eight(positions, out, cell_ids, at)
        for j in range(8, starts[row + 1] - out, 8):
            copy_eight(positions, out + j, cell_ids, at + j)


@kernel
def _build(
    firsts: NDArray[np.int32], lasts: NDArray[np.int32], ids: NDArray[np.int32], n_cells: int
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    # The list of cell c is counted at c + 2; filling then moves each start to its final value.
    starts = np.zeros(n_cells + 3, np.int32)
    for box in range(len(firsts)):
        starts[firsts[box] + 2] += 1
        starts[lasts[box] + 3] -= 1
    alive = np.int64(0)
    for cell in range(n_cells):
        alive += starts[cell + 2]
        starts[cell + 2] = starts[cell + 1] + alive
    cell_ids = np.zeros(starts[n_cells + 1] + SLACK, np.int32)
    for box in range(len(firsts)):
        for cell in range(firsts[box], lasts[box] + 1):
            cell_ids[starts[cell + 1]] = ids[box]
            starts[cell + 1] += 1
    return starts[: n_cells + 1].copy(), cell_ids
