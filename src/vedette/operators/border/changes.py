"""Changes: the queries of a part that a key enters and leaves when it moves from one row to the next.

There are two ways. Region segments read the boundaries between the two rows (BMQ-Index, Lee et al., sections 3 and 4).
Or both rows are matched and the difference is computed (DiffRMQ, section 5), which is cheaper for long moves, and the
only way if a query is more than a box. For every group of boxes and every move the cheaper way is used.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from vedette.data.axes import Cells
from vedette.data.columns import Column
from vedette.data.list_axes import ListCells
from vedette.data.matches import Matches
from vedette.data.views import has_several_values, is_computed, source_of
from vedette.indexes.dual import Dual
from vedette.indexes.index import sample_boxes
from vedette.native.kernels import kernel
from vedette.operators.border.crossing import find_crossings, list_boundaries
from vedette.operators.border.differences import MOVES_AT_ONCE, DiffRMQ, find_differences
from vedette.operators.border.region_line import RSList
from vedette.operators.border.region_segments import RSLists
from vedette.operators.border.runs import Runs
from vedette.operators.border.stamps import keep_stamps, take_stamps
from vedette.queries.match import Group, Part, stack_cells

SAMPLE = 4096  # boxes, and moves, that estimates examine
# Nanoseconds on one core of the machine of docs/benchmarks.md; only their ratios matter.
READ_COST, WALK_COST = 0.9, 15.0  # an entry of a region segment, and a move along them
MATCH_COST, COMPARE_COST = 3.5, 25.0  # a match of a row in the difference of two, and a row
SPLIT_COST = 80.0  # a move, if some moves are followed and others compared

_NO_ROW, _ROW_0, _ROW_1 = np.full(1, -1, np.int64), np.zeros(1, np.int64), np.ones(1, np.int64)


class BorderIndex:
    """The boundaries of a part's queries. Region segments are built when a move first needs them."""

    def __init__(self, part: Part) -> None:
        self.part = part
        self.follows = True  # else every move is compared, as DiffRMQ does
        self._lines = [_Line.of(group, part) for group in part.groups if _has_line(group)]
        self._compared = sorted({(g.repeats, g.has_residuals) for g in part.groups if not _has_line(g)})
        self._crossed: dict[int, RSList | RSLists] = {}
        self._is_plain = not self._compared and not any(map(is_computed, part.axes))
        self.has_dual = any(isinstance(group.index, Dual) for group in part.groups)

    @property
    def nbytes(self) -> int:
        """The memory of the region segments."""
        made = [line.segments for line in self._lines if line.segments is not None]
        return sum(segments.nbytes for segments in (*made, *self._crossed.values()))

    def choose_ways(
        self,
        columns: dict[str, Column],
        n_rows: int,
        before: NDArray[np.int64],
        after: NDArray[np.int64],
        first_rows: dict[str, Column],
    ) -> Ways:
        """How to process the moves of a batch, of which these are `sample_moves`.

        `first_rows` are those of `find_first_rows`, if `has_dual`. Region segments are built here if moves will be
        followed.
        """
        cells = self.part.locate(columns)
        return self._choose_ways(self._stack(cells, n_rows), before, after, first_rows)

    def find_changes(
        self,
        columns: dict[str, Column],
        n_rows: int,
        before: NDArray[np.int64],
        after: NDArray[np.int64],
        ways: Ways | None,
    ) -> tuple[Runs, Ways, int]:
        """The changes of moves from row `before[i]` to row `after[i]`, -1 for no row.

        The moves are a piece of a batch with known ways, or a whole batch. Also returns the ways, and the number of
        failed comparisons.
        """
        cells, failures = self.part.locate_counted(columns, n_rows)
        stacked = self._stack(cells, n_rows)
        if ways is None:
            chosen = sample_moves(len(before))
            first_rows = {}
            if self.has_dual:
                rows = find_first_rows(before, after)
                first_rows = {name: columns[name].take(rows) for name in self.part.fields}
            ways = self._choose_ways(stacked, before[chosen], after[chosen], first_rows)
        part = ways.part
        found = []
        n_failed = 0 if failures is None else int(failures[after[after >= 0]].sum())
        stamps = take_stamps(part.n_queries)
        for line, own_cells, way, index in zip(self._lines, stacked, ways.lines, ways.indexes, strict=True):
            found += line.find_changes(own_cells, before, after, stamps, part, way, index)
        for kind in self._compared:
            groups = [g for g in part.groups if not _has_line(g) and (g.repeats, g.has_residuals) == kind]

            def match(rows: NDArray[np.int64], groups: list[Group] = groups) -> Matches:
                chosen = {name: each[rows] for name, each in cells.items()}
                if groups[0].has_residuals:
                    names = {name for residual in part.residuals for name in residual.fields}
                    values = {name: columns[name].take(rows) for name in names}
                    return part.filter_candidates(groups, chosen, values, len(rows))
                return part.find_candidates(groups, chosen, len(rows))

            runs, failed = find_differences(match, before, after, n_rows, stamps, part.first_query)
            found.append(runs)
            n_failed += failed
        keep_stamps(stamps)
        return Runs.merge(found, len(before)), ways, n_failed

    def find_change(self, columns: dict[str, Column], *, is_first: bool) -> tuple[list[int], list[int], int]:
        """The queries that the move from row 0 to row 1 leaves and enters, and the number of failed comparisons.

        With `is_first`, there is only row 0, the first of its key. The same as `find_changes`, in the same order, for
        one move.
        """
        n_rows = 1 if is_first else 2
        if not self._is_plain:
            move = (_NO_ROW, _ROW_0) if is_first else (_ROW_0, _ROW_1)
            runs, _, n_failed = self.find_changes(columns, n_rows, *move, None)
            return *runs.of_only_move(), n_failed
        cells = {name: axis.locate(columns[source_of(name)]) for name, axis in self.part.axes.items()}
        exits: list[int] = []
        enters: list[int] = []
        for line, own_cells in zip(self._lines, self._stack(cells, n_rows), strict=True):
            if is_first:
                enters += line.group.index.match(own_cells).positions.tolist()
                continue
            left, entered = line.find_change(own_cells, self.part, self.follows)
            exits += left
            enters += entered
        return exits, enters, 0

    def _stack(self, cells: dict[str, Cells | ListCells], n_rows: int) -> list[Cells]:
        """The cells of each line's fields."""
        return [stack_cells(cells, line.group.fields, n_rows)[0] for line in self._lines]

    def _choose_ways(
        self,
        stacked: list[Cells],
        before: NDArray[np.int64],
        after: NDArray[np.int64],
        first_rows: dict[str, Column],
    ) -> Ways:
        part = self.part
        if self.has_dual:
            part = part.decide(first_rows, max(map(len, first_rows.values()), default=0))
        ways = [
            line.choose_way(own_cells, before, after, part, self.follows)
            for line, own_cells in zip(self._lines, stacked, strict=True)
        ]
        return Ways(part, tuple(ways), tuple(group.index for group in part.groups if _has_line(group)))

    def find_crossings(
        self, columns: dict[str, Column], n_rows: int, before: NDArray[np.int64], after: NDArray[np.int64]
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The queries that each move jumps over: columns of moves and queries. Call `list_boundaries` first."""
        return find_crossings(self.part, self._crossed, columns, n_rows, before, after)

    def list_boundaries(self) -> None:
        """Build the region segments for crossings, if they do not exist."""
        list_boundaries(self.part, self._crossed)


@dataclass(frozen=True)
class Way:
    """A move is followed if it reads at most `max_read` entries; -1: every move is compared."""

    max_read: float
    n_read: float = 0.0  # entries that a move is expected to read, on average


@dataclass(frozen=True)
class Ways:
    """How the moves of a batch are processed. The order of changes within a move depends on it, but not on pieces."""

    part: Part  # with the indexes that answer about this batch
    lines: tuple[Way, ...]  # of each group that can be followed
    indexes: tuple[Any, ...]  # of the same groups


def sample_moves(n: int) -> slice:
    """Some of `n` moves, at equal distances."""
    return slice(None, None, max(1, n // SAMPLE))


def find_first_rows(before: NDArray[np.int64], after: NDArray[np.int64]) -> NDArray[np.int64]:
    """The rows of the first moves of a batch, as many as are compared together."""
    rows = np.concatenate([before[:MOVES_AT_ONCE], after[:MOVES_AT_ONCE]])
    return rows[rows >= 0]


def _has_line(group: Group) -> bool:
    """Whether a row is one point, in at most one box per query, and boxes are all that matters."""
    return not (group.repeats or group.has_residuals or any(map(has_several_values, group.fields)))


@dataclass
class _Line:
    """A group in which a row is in at most one box per query, with what is needed to follow a move."""

    group: Group
    n_met: float  # the approximate number of boxes that contain a row
    density: NDArray[np.float64]  # by axis: entries per cell
    has_several: bool  # a query may have several boxes
    segments: RSList | RSLists | None = None

    @classmethod
    def of(cls, group: Group, part: Part) -> Self:
        chosen = sample_boxes(len(group), SAMPLE)
        n_cells = np.array([part.axes[name].n_cells for name in group.fields], np.float64)
        widths = (group.lasts[:, chosen] - group.firsts[:, chosen] + 1) / n_cells[:, None]
        n_met = len(group) * float(np.mean(np.prod(np.minimum(widths, 1.0), axis=0))) if len(chosen) else 0.0
        queries = group.listed_queries
        has_several = len(queries) > 0 and len(np.unique(queries)) < len(queries)
        return cls(group, n_met, 2 * len(group) / n_cells, has_several)

    def choose_way(
        self, cells: Cells, before: NDArray[np.int64], after: NDArray[np.int64], part: Part, follows: bool
    ) -> Way:
        """How to process the moves of a batch, of which these are some."""
        n_moves = len(before)
        if n_moves == 0 or not self.group.fields or not follows:
            return Way(-1.0)
        compare_cost = COMPARE_COST + 2 * MATCH_COST * self.n_met
        if self.segments is None:  # a first estimate, as if boundaries were distributed evenly
            before, after = np.ascontiguousarray(before), np.ascontiguousarray(after)
            n_walks = _count_walks(cells, before, after, READ_COST * self.density, compare_cost - WALK_COST)
            if 16 * n_walks < n_moves:
                return Way(-1.0)
            queries = self.group.queries
            n_cells = [part.axes[name].n_cells for name in self.group.fields]
            made = RSList if len(n_cells) == 1 else RSLists
            self.segments = made.build(self.group.firsts, self.group.lasts, queries, n_cells)
        n_read = self.segments.count_read(cells, before, after)
        max_read, n_expected = _choose(n_read, compare_cost, WALK_COST, READ_COST, SPLIT_COST)
        return Way(max_read, 1.2 * n_expected / n_moves)

    def find_changes(
        self,
        cells: Cells,
        before: NDArray[np.int64],
        after: NDArray[np.int64],
        stamps: NDArray[np.int32],
        part: Part,
        way: Way,
        index: Any,
    ) -> list[Runs]:
        n_moves = len(before)
        if n_moves == 0:
            return []
        differences = DiffRMQ(index, part.first_query, part.n_queries)
        if not self.group.fields:  # every row is in these boxes, so only first and last rows cause changes
            chosen = np.flatnonzero((before < 0) | (after < 0))
            return [differences.changes(cells, before[chosen], after[chosen], stamps).of_moves(chosen, n_moves)]
        if way.max_read < 0 or self.segments is None:
            return [differences.changes(cells, before, after, stamps)]
        runs, rest = self.segments.changes(cells, before, after, way.max_read, int(way.n_read * n_moves))
        found = [runs.without_returns(stamps, part.first_query) if self.has_several else runs]
        if len(rest):
            compared = differences.changes(cells, before[rest], after[rest], stamps)
            found.append(compared.of_moves(rest, n_moves))
        return found

    def find_change(self, cells: Cells, part: Part, follows: bool) -> tuple[list[int], list[int]]:
        """The queries that the move from row 0 to row 1 leaves and enters."""
        if not self.group.fields:
            return [], []
        if self.segments is None:
            self.choose_way(cells, _ROW_0, _ROW_1, part, follows)
        if self.segments is not None and follows:
            runs, rest = self.segments.changes(cells, _ROW_0, _ROW_1, self._max_read)
            if not len(rest):
                left, entered = runs.of_only_move()
                return (_without(left, entered), _without(entered, left)) if self.has_several else (left, entered)
        matches = self.group.index.match(cells)
        middle = int(matches.starts[1])
        left, entered = matches.positions[:middle].tolist(), matches.positions[middle:].tolist()
        return _without(left, entered), _without(entered, left)

    @cached_property
    def _max_read(self) -> int:
        """How many entries a single move may read to be followed."""
        compare_cost = COMPARE_COST + 2 * MATCH_COST * self.n_met
        most = int((compare_cost - WALK_COST) / READ_COST) + 1
        while WALK_COST + READ_COST * most > compare_cost:
            most -= 1
        return most


def _without(queries: list[int], others: list[int]) -> list[int]:
    if not queries or not others:
        return queries
    dropped = set(others)
    return [query for query in queries if query not in dropped]


@kernel
def _choose(
    n_read: NDArray[np.int64], compare_cost: float, walk_cost: float, read_cost: float, split_cost: float
) -> tuple[float, int]:
    """How many entries a move may read to be followed: any number, none (-1), or as many as are worth it.

    Also returns how many entries those moves read that are followed.
    """
    walked = split = 0.0
    for n in n_read:
        cost = compare_cost if n < 0 else walk_cost + read_cost * n
        walked += cost
        split += min(cost, compare_cost) + split_cost
    most = (compare_cost - walk_cost) / read_cost
    if walked <= min(compare_cost * len(n_read), split):
        most = np.inf
    elif split > compare_cost * len(n_read):
        most = -1.0
    n_expected = 0
    for n in n_read:
        if 0 <= n <= most:
            n_expected += n
    return most, n_expected


@kernel
def _count_walks(
    cells: Cells, before: NDArray[np.int64], after: NDArray[np.int64], cell_costs: NDArray[np.float64], most: float
) -> int:
    """How many moves cost at most `most`, with a cost for each cell that they move on each axis."""
    n = 0
    for move in range(len(before)):
        if before[move] >= 0 and after[move] >= 0:
            cost = 0.0
            for axis in range(len(cells)):
                cost += cell_costs[axis] * abs(cells[axis, after[move]] - cells[axis, before[move]])
            n += cost <= most
    return n
