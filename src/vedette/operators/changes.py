"""Changes: which queries of a part a key enters and which it leaves, when it moves from one row to the next.

Two ways lead to the answer. Region segments read the borders between the two rows (BMQ-Index, Lee et al., sections 3
and 4); or both rows are matched and the difference is taken (DiffRMQ, section 5), which is cheaper for long moves, and
the only way where a query is more than a box. For every group of boxes and every move the cheaper one is taken.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from vedette.axes import Cells
from vedette.buffers import empty_int8, empty_int32
from vedette.columns import Column
from vedette.indexes.index import sample_boxes
from vedette.indexes.region_segments import ENTER, EXIT, RegionSegments
from vedette.kernels import kernel
from vedette.matches import Matches
from vedette.operators.crossing import find_crossings
from vedette.operators.match import Group, Part, stack_cells

MOVES_AT_ONCE = 1 << 15  # whose rows are matched together, so that the answers stay in the cache
SAMPLE = 4096  # boxes that the estimate looks at
# Nanoseconds on one core of the machine of docs/benchmarks.md; only their ratios matter.
READ_COST, WALK_COST = 1.5, 15.0  # an entry of a region segment, and a move along them
MATCH_COST, COMPARE_COST = 4.0, 60.0  # a match of the row in the difference of two, and a row


@dataclass(frozen=True)
class Changes:
    """Columns of one length: the number of a move, the position of a query, and EXIT or ENTER."""

    moves: NDArray[np.int32]
    queries: NDArray[np.int32]
    kinds: NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.moves)

    def take(self, chosen: NDArray[np.bool_] | NDArray[np.int64]) -> Changes:
        return Changes(self.moves[chosen], self.queries[chosen], self.kinds[chosen])


class Borders:
    """The borders of a part's queries. Region segments are made when a move first calls for them."""

    def __init__(self, part: Part) -> None:
        self.part = part
        self._lines = [_Line.of(group, part) for group in part.groups if not (group.repeats or group.has_residuals)]
        kinds = sorted({(g.repeats, g.has_residuals) for g in part.groups if g.repeats or g.has_residuals})
        self._crossed: dict[int, RegionSegments] = {}
        self._compared = [
            [group for group in part.groups if (group.repeats, group.has_residuals) == kind] for kind in kinds
        ]

    @property
    def nbytes(self) -> int:
        """The memory of the region segments."""
        made = [line.segments for line in self._lines if line.segments is not None]
        return sum(segments.nbytes for segments in (*made, *self._crossed.values()))

    def find_changes(
        self,
        columns: dict[str, Column],
        n_rows: int,
        before: NDArray[np.int64],
        after: NDArray[np.int64],
    ) -> tuple[list[Changes], int]:
        """What moves from row `before[i]` to row `after[i]` change, where -1 is no row.

        Each of the answers is in the order of the moves, exits before enters; the number is that of failed comparisons.
        """
        part = self.part
        cells = {name: axis.locate(columns[name]) for name, axis in part.axes.items()}
        found = []
        n_failed = 0
        stamps = np.zeros(part.n_queries, np.int32)
        for line in self._lines:
            found += line.find_changes(stack_cells(cells, line.group.fields, n_rows), before, after, stamps, part)
        for groups in self._compared:

            def match(rows: NDArray[np.int64], groups: list[Group] = groups) -> Matches:
                chosen = {name: each[rows] for name, each in cells.items()}
                if groups[0].has_residuals:
                    names = {name for residual in part.residuals for name in residual.fields}
                    values = {name: columns[name].take(rows) for name in names}
                    return part.filter_candidates(groups, chosen, values, len(rows))
                return part.find_candidates(groups, chosen, len(rows))

            changes, failed = _compare(match, before, after, n_rows, stamps, part.first_query)
            found += changes
            n_failed += failed
        return found, n_failed

    def find_crossings(
        self, columns: dict[str, Column], n_rows: int, before: NDArray[np.int64], after: NDArray[np.int64]
    ) -> Changes:
        """The queries that each move goes clean through."""
        return Changes(*find_crossings(self.part, self._crossed, columns, n_rows, before, after))


@dataclass
class _Line:
    """A group of boxes of which a row is in one of each query at most, and the means to follow a move along them."""

    group: Group
    n_met: float  # how many boxes hold a row, about
    density: NDArray[np.float64]  # by axis: entries a cell
    has_several: bool  # a query may have several boxes
    segments: RegionSegments | None = None

    @classmethod
    def of(cls, group: Group, part: Part) -> Self:
        chosen = sample_boxes(len(group), SAMPLE)
        n_cells = np.array([part.axes[name].n_cells for name in group.fields], np.float64)
        widths = (group.lasts[:, chosen] - group.firsts[:, chosen] + 1) / n_cells[:, None]
        n_met = len(group) * float(np.mean(np.prod(np.minimum(widths, 1.0), axis=0))) if len(chosen) else 0.0
        queries = group.listed_queries
        has_several = len(queries) > 0 and len(np.unique(queries)) < len(queries)
        return cls(group, n_met, 2 * len(group) / n_cells, has_several)

    def find_changes(
        self,
        cells: Cells,
        before: NDArray[np.int64],
        after: NDArray[np.int64],
        stamps: NDArray[np.int32],
        part: Part,
    ) -> list[Changes]:
        if not self.group.fields:  # every row is in these boxes, so only a first and a last row change something
            chosen = np.flatnonzero((before < 0) | (after < 0))
            return _renumbered(self._compare(cells, before[chosen], after[chosen], stamps, part), chosen)
        compare_cost = COMPARE_COST + 2 * MATCH_COST * self.n_met
        if self.segments is None:  # a first estimate, as if borders were spread evenly
            n_walks = _count_walks(cells, before, after, READ_COST * self.density, compare_cost - WALK_COST)
            if 16 * n_walks < len(before):
                return self._compare(cells, before, after, stamps, part)
            queries = self.group.queries
            n_cells = [part.axes[name].n_cells for name in self.group.fields]
            self.segments = RegionSegments.build(self.group.firsts, self.group.lasts, queries, n_cells)
        max_read = (compare_cost - WALK_COST) / READ_COST
        moves, queries, kinds, rest = self.segments.changes(cells, before, after, max_read)
        if self.has_several:
            keep = _keep_single(moves, queries, kinds)
            moves, queries, kinds = moves[keep], queries[keep], kinds[keep]
        found = [Changes(moves, queries, kinds)]
        if len(rest):
            found += _renumbered(self._compare(cells, before[rest], after[rest], stamps, part), rest)
        return found

    def _compare(
        self,
        cells: Cells,
        before: NDArray[np.int64],
        after: NDArray[np.int64],
        stamps: NDArray[np.int32],
        part: Part,
    ) -> list[Changes]:
        def match(rows: NDArray[np.int64]) -> Matches:
            return self.group.index.match(np.ascontiguousarray(cells[:, rows]))

        return _compare(match, before, after, cells.shape[1], stamps, part.first_query)[0]


def _renumbered(found: list[Changes], numbers: NDArray[Any]) -> list[Changes]:
    return [Changes(numbers[each.moves].astype(np.int32), each.queries, each.kinds) for each in found]


def _compare(
    match: Callable[[NDArray[np.int64]], Matches],
    before: NDArray[np.int64],
    after: NDArray[np.int64],
    n_rows: int,
    stamps: NDArray[np.int32],
    first_query: int,
) -> tuple[list[Changes], int]:
    """Match the rows of the moves, some at a time, and take the difference of what follows upon each other."""
    found = []
    n_failed = 0
    places = np.full(n_rows, -1, np.int32)
    for start in range(0, len(before), MOVES_AT_ONCE):
        olds, news = before[start : start + MOVES_AT_ONCE], after[start : start + MOVES_AT_ONCE]
        rows = _number_rows(olds, news, places)
        matches = match(rows)
        n_failed += matches.n_failed
        n_most = _count_most(olds, news, places, matches.starts)
        moves, queries, kinds = empty_int32(n_most), empty_int32(n_most), empty_int8(n_most)
        stamps[:] = 0
        lists = matches.starts, matches.positions
        n = _difference(olds, news, places, *lists, first_query, stamps, start, moves, queries, kinds)
        found.append(Changes(moves[:n], queries[:n], kinds[:n]))
        places[rows] = -1
    return found, n_failed


@kernel
def _count_walks(
    cells: Cells, before: NDArray[np.int64], after: NDArray[np.int64], cell_costs: NDArray[np.float64], most: float
) -> int:
    """How many moves cost so much at most, at so much for each cell that they go on each axis."""
    n = 0
    for move in range(len(before)):
        if before[move] >= 0 and after[move] >= 0:
            cost = 0.0
            for axis in range(len(cells)):
                cost += cell_costs[axis] * abs(cells[axis, after[move]] - cells[axis, before[move]])
            n += cost <= most
    return n


@kernel
def _keep_single(moves: NDArray[np.int32], queries: NDArray[np.int32], kinds: NDArray[np.int8]) -> NDArray[np.bool_]:
    """All but the pairs of an exit and an enter of one query in one move: it went from one box to another."""
    keep = np.ones(len(moves), np.bool_)
    start = 0
    for end in range(1, len(moves) + 1):
        if end < len(moves) and moves[end] == moves[start]:
            continue
        enters = start
        while enters < end and kinds[enters] == EXIT:
            enters += 1
        for i in range(start, enters):
            for j in range(enters, end):
                if queries[i] == queries[j]:
                    keep[i] = keep[j] = False
        start = end
    return keep


@kernel
def _number_rows(before: NDArray[np.int64], after: NDArray[np.int64], places: NDArray[np.int32]) -> NDArray[np.int64]:
    """The rows that the moves name, each once; `places`, -1 before, leads from a row to its place among them."""
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
    out_moves: NDArray[np.int32],
    out_queries: NDArray[np.int32],
    out_kinds: NDArray[np.int8],
) -> int:
    """A query bears the move's stamp when the old row matches it, and the negated one when both rows do."""
    n = np.int64(0)
    for move in range(len(before)):
        stamp = np.int32(move + 1)
        old_start = old_end = new_start = new_end = np.int64(0)
        if before[move] >= 0:
            old_start, old_end = starts[places[before[move]]], starts[places[before[move]] + 1]
        if after[move] >= 0:
            new_start, new_end = starts[places[after[move]]], starts[places[after[move]] + 1]
        for i in range(old_start, old_end):
            stamps[positions[i] - first_query] = stamp
        for i in range(new_start, new_end):
            if stamps[positions[i] - first_query] == stamp:
                stamps[positions[i] - first_query] = -stamp
        for i in range(old_start, old_end):
            out_moves[n] = first_move + move
            out_queries[n] = positions[i]
            out_kinds[n] = EXIT
            n += stamps[positions[i] - first_query] == stamp
        for i in range(new_start, new_end):
            out_moves[n] = first_move + move
            out_queries[n] = positions[i]
            out_kinds[n] = ENTER
            n += stamps[positions[i] - first_query] != -stamp
    return n  # type: ignore[return-value]
