"""DiffRMQ: the queries that a key enters and leaves, as the difference of the matches before and after a move.

Lee et al., section 5, compare BMQ-Index with it. Any index matches the old row and the new one, and queries that match
both are dropped. A row that ends one move and begins the next is matched once. The cost is all matches of both rows,
even if few of them change; the length of the move does not matter. So it is best for long moves, and the only way if a
query is more than a box.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from vedette.data.matches import Matches
from vedette.indexes.index import Index
from vedette.native.budget import check_bytes
from vedette.native.buffers import empty_int32, output_int32
from vedette.native.kernels import kernel
from vedette.operators.border.runs import ENTER, EXIT, Runs
from vedette.operators.border.stamps import clear_stamps

MOVES_AT_ONCE = 1 << 15  # whose rows are matched together, so that the answers stay in the cache


class Matching(Protocol):
    """The methods of an index that DiffRMQ needs; also `insert` and `remove`, if it changes."""

    def match(self, cells: NDArray[np.int32]) -> Matches: ...

    @property
    def nbytes(self) -> int: ...


@dataclass
class DiffRMQ:
    """Differences of the matches of an index. An id may have several boxes if no row is in two of them."""

    index: Matching
    first_id: int  # the least id
    n_ids: int

    @classmethod
    def build(
        cls,
        index_class: type[Index],
        firsts: NDArray[np.int32],
        lasts: NDArray[np.int32],
        ids: NDArray[np.int32],
        n_cells: Sequence[int],
    ) -> Self:
        """Build the index over the boxes."""
        made = cls(index_class.build(firsts, lasts, ids, n_cells), 0, int(ids.max(initial=-1)) + 1)
        made._check_ids(ids)
        return made

    @property
    def nbytes(self) -> int:
        """The memory of the index. A comparison frees its memory afterwards."""
        return self.index.nbytes

    def changes(
        self,
        cells: NDArray[np.int32],
        before: NDArray[np.int64],
        after: NDArray[np.int64],
        stamps: NDArray[np.int32] | None = None,
    ) -> Runs:
        """The changes of the moves, by the ids of boxes.

        Move `i` goes from row `before[i]` to row `after[i]`, where row `r` lies at `cells[axis, r]` and -1 is no row,
        which is in no box. `stamps` are zeros for every id, as they are again afterwards.
        """

        def match(rows: NDArray[np.int64]) -> Matches:
            return self.index.match(np.take(cells, rows, axis=1, mode="clip"))

        stamps = np.zeros(self.n_ids, np.int32) if stamps is None else stamps
        return find_differences(match, before, after, cells.shape[1], stamps, self.first_id)[0]

    def insert(self, firsts: NDArray[np.int32], lasts: NDArray[np.int32], ids: NDArray[np.int32]) -> None:
        """Insert boxes on the same axes, as the index does."""
        self._check_ids(ids)
        _as_changing(self.index).insert(firsts, lasts, ids)
        self.n_ids = max(self.n_ids, int(ids.max(initial=-1)) + 1 - self.first_id)

    def remove(self, ids: NDArray[np.int32]) -> None:
        """Remove all boxes of these ids, as the index does."""
        _as_changing(self.index).remove(ids)

    def _check_ids(self, ids: NDArray[np.int32]) -> None:
        least = int(ids.min(initial=self.first_id))
        if least < self.first_id:
            raise ValueError(f"ids must be {self.first_id} or more here; got {least}")


def _as_changing(index: Matching) -> Any:
    if not hasattr(index, "insert"):
        name = type(index).__name__
        raise TypeError(
            f"{name} cannot change after it is built; build it again, or use an index with insert and remove"
        )
    return index


def find_differences(
    match: Callable[[NDArray[np.int64]], Matches],
    before: NDArray[np.int64],
    after: NDArray[np.int64],
    n_rows: int,
    stamps: NDArray[np.int32],
    first_query: int,
) -> tuple[Runs, int]:
    """Match the rows of the moves, some at a time, and compare consecutive answers.

    Also returns the number of failed comparisons. Those of a row count once, in the move that leads to it. `stamps`
    are zeros for every query, as they are again afterwards.
    """
    found = [empty_int32(0)]
    n_failed = n_found = 0
    counts = np.zeros((2, len(before)), np.int32)
    places = np.full(n_rows, -1, np.int32)
    for start in range(0, len(before), MOVES_AT_ONCE):
        olds, news = before[start : start + MOVES_AT_ONCE], after[start : start + MOVES_AT_ONCE]
        rows = _number_rows(olds, news, places)
        matches = match(rows)
        if matches.n_failed:
            left = np.setdiff1d(olds[olds >= 0], news)
            n_failed += matches.n_failed - (match(left).n_failed if len(left) else 0)
        queries = output_int32(_count_most(olds, news, places, matches.starts))
        starts, positions = matches.starts, matches.positions
        n = _difference(olds, news, places, starts, positions, first_query, stamps, start, queries, counts)
        clear_stamps(stamps, positions, first_query)
        found.append(queries[:n] if 2 * n >= len(queries) else queries[:n].copy())
        n_found += n
        check_bytes(4 * n_found)
        if start + MOVES_AT_ONCE < len(before):
            places[rows] = -1
    return Runs(found[1] if len(found) == 2 else np.concatenate(found), counts), n_failed


@kernel
def _number_rows(before: NDArray[np.int64], after: NDArray[np.int64], places: NDArray[np.int32]) -> NDArray[np.int64]:
    """The distinct rows of the moves. `places`, filled with -1 before, gets the place of each row among them."""
    rows = np.empty(2 * len(before), np.int64)
    n = 0
    for move in range(len(before)):
        if before[move] >= 0 and places[before[move]] < 0:
            places[before[move]] = n
            rows[n] = before[move]
            n += 1
        if after[move] >= 0 and places[after[move]] < 0:
            places[after[move]] = n
            rows[n] = after[move]
            n += 1
    return rows[:n]


@kernel
def _count_most(
    before: NDArray[np.int64], after: NDArray[np.int64], places: NDArray[np.int32], starts: NDArray[np.int64]
) -> int:
    n = 0
    for move in range(len(before)):
        if before[move] >= 0:
            n += starts[places[before[move]] + 1] - starts[places[before[move]]]
        if after[move] >= 0:
            n += starts[places[after[move]] + 1] - starts[places[after[move]]]
    return n


@kernel
def _difference(
    before: NDArray[np.int64],
    after: NDArray[np.int64],
    places: NDArray[np.int32],
    starts: NDArray[np.int64],
    positions: NDArray[np.int32],
    first_query: int,
    stamps: NDArray[np.int32],
    first_move: int,
    out: NDArray[np.int32],
    counts: NDArray[np.int32],
) -> int:
    """A query has the move's stamp if the new row matches it, and the negated stamp if both rows do."""
    n = np.int64(0)
    for move in range(len(before)):
        stamp = np.int32(move + 1)
        old_start = old_end = new_start = new_end = np.int64(0)
        if before[move] >= 0:
            old_start, old_end = starts[places[before[move]]], starts[places[before[move]] + 1]
        if after[move] >= 0:
            new_start, new_end = starts[places[after[move]]], starts[places[after[move]] + 1]
        for i in range(new_start, new_end):
            stamps[positions[i] - first_query] = stamp
        begin = n
        for i in range(old_start, old_end):
            query = positions[i] - first_query
            is_left = (stamps[query] != stamp) & (stamps[query] != -stamp)
            out[n] = positions[i]
            n += is_left
            stamps[query] = np.int32(0) if is_left else -stamp
        counts[EXIT, first_move + move] = n - begin
        begin = n
        for i in range(new_start, new_end):
            out[n] = positions[i]
            n += stamps[positions[i] - first_query] == stamp
        counts[ENTER, first_move + move] = n - begin
    return n  # type: ignore[return-value]
