"""Changes: the queries of a part that a key enters and leaves when it moves from one row to the next.

There are two ways. Region segments read the boundaries between the two rows (BMQ-Index, Lee et al., sections 3 and 4).
Or both rows are matched and the difference is computed (DiffRMQ, section 5), which is cheaper for long moves, and the
only way if a query is more than a box. For every group of boxes and every move the cheaper way is used.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from vedette.data.axes import Cells
from vedette.data.columns import Column
from vedette.data.matches import Matches
from vedette.indexes.index import sample_boxes
from vedette.native.kernels import kernel
from vedette.operators.border.crossing import find_crossings
from vedette.operators.border.differences import DiffRMQ, find_differences
from vedette.operators.border.region_line import RSList
from vedette.operators.border.region_segments import RSLists
from vedette.operators.border.runs import Runs
from vedette.queries.match import Group, Part, stack_cells

SAMPLE = 4096  # boxes, and moves, that estimates examine
# Nanoseconds on one core of the machine of docs/benchmarks.md; only their ratios matter.
READ_COST, WALK_COST = 0.9, 15.0  # an entry of a region segment, and a move along them
MATCH_COST, COMPARE_COST = 3.5, 25.0  # a match of a row in the difference of two, and a row
SPLIT_COST = 80.0  # a move, if some moves are followed and others compared


class BorderIndex:
    """The boundaries of a part's queries. Region segments are built when a move first needs them."""

    def __init__(self, part: Part) -> None:
        self.part = part
        self.follows = True  # else every move is compared, as DiffRMQ does
        self._lines = [_Line.of(group, part) for group in part.groups if not (group.repeats or group.has_residuals)]
        kinds = sorted({(g.repeats, g.has_residuals) for g in part.groups if g.repeats or g.has_residuals})
        self._crossed: dict[int, RSList | RSLists] = {}
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
    ) -> tuple[Runs, int]:
        """The changes of moves from row `before[i]` to row `after[i]`, -1 for no row; and the failed comparisons."""
        part = self.part
        cells = {name: axis.locate(columns[name]) for name, axis in part.axes.items()}
        found = []
        n_failed = 0
        stamps = np.zeros(part.n_queries, np.int32)
        for line in self._lines:
            stacked = stack_cells(cells, line.group.fields, n_rows)
            found += line.find_changes(stacked, before, after, stamps, part, self.follows)
        for groups in self._compared:

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
        return Runs.merge(found, len(before)), n_failed

    def find_crossings(
        self, columns: dict[str, Column], n_rows: int, before: NDArray[np.int64], after: NDArray[np.int64]
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The queries that each move jumps over: columns of moves and queries."""
        return find_crossings(self.part, self._crossed, columns, n_rows, before, after)


@dataclass
class _Line:
    """A group in which a row is in at most one box per query, with what is needed to follow a move."""

    group: Group
    n_met: float  # the approximate number of boxes that contain a row
    density: NDArray[np.float64]  # by axis: entries per cell
    has_several: bool  # a query may have several boxes
    differences: DiffRMQ
    segments: RSList | RSLists | None = None

    @classmethod
    def of(cls, group: Group, part: Part) -> Self:
        chosen = sample_boxes(len(group), SAMPLE)
        n_cells = np.array([part.axes[name].n_cells for name in group.fields], np.float64)
        widths = (group.lasts[:, chosen] - group.firsts[:, chosen] + 1) / n_cells[:, None]
        n_met = len(group) * float(np.mean(np.prod(np.minimum(widths, 1.0), axis=0))) if len(chosen) else 0.0
        queries = group.listed_queries
        has_several = len(queries) > 0 and len(np.unique(queries)) < len(queries)
        differences = DiffRMQ(group.index, part.first_query, part.n_queries)
        return cls(group, n_met, 2 * len(group) / n_cells, has_several, differences)

    def find_changes(
        self,
        cells: Cells,
        before: NDArray[np.int64],
        after: NDArray[np.int64],
        stamps: NDArray[np.int32],
        part: Part,
        follows: bool,
    ) -> list[Runs]:
        n_moves = len(before)
        if n_moves == 0:
            return []
        if not self.group.fields:  # every row is in these boxes, so only first and last rows cause changes
            chosen = np.flatnonzero((before < 0) | (after < 0))
            return [self.differences.changes(cells, before[chosen], after[chosen], stamps).of_moves(chosen, n_moves)]
        if not follows:
            return [self.differences.changes(cells, before, after, stamps)]
        compare_cost = COMPARE_COST + 2 * MATCH_COST * self.n_met
        if self.segments is None:  # a first estimate, as if boundaries were distributed evenly
            n_walks = _count_walks(cells, before, after, READ_COST * self.density, compare_cost - WALK_COST)
            if 16 * n_walks < n_moves:
                return [self.differences.changes(cells, before, after, stamps)]
            queries = self.group.queries
            n_cells = [part.axes[name].n_cells for name in self.group.fields]
            made = RSList if len(n_cells) == 1 else RSLists
            self.segments = made.build(self.group.firsts, self.group.lasts, queries, n_cells)
        sample = slice(None, None, max(1, n_moves // SAMPLE))
        n_read = self.segments.count_read(cells, before[sample], after[sample])
        max_read = _choose(n_read, compare_cost)
        if max_read < 0:
            return [self.differences.changes(cells, before, after, stamps)]
        n_expected = int(1.2 * sample.step * n_read[n_read <= max_read].clip(0).sum())
        runs, rest = self.segments.changes(cells, before, after, max_read, n_expected)
        found = [runs.without_returns(stamps, part.first_query) if self.has_several else runs]
        if len(rest):
            compared = self.differences.changes(cells, before[rest], after[rest], stamps)
            found.append(compared.of_moves(rest, n_moves))
        return found


def _choose(n_read: NDArray[np.int64], compare_cost: float) -> float:
    """How many entries a move may read to be followed: any number, none (-1), or as many as are worth it."""
    walked = np.where(n_read < 0, compare_cost, WALK_COST + READ_COST * n_read)
    split = np.minimum(walked, compare_cost).sum() + SPLIT_COST * len(n_read)
    best = min(walked.sum(), compare_cost * len(n_read), split)
    if best == walked.sum():
        return np.inf
    return (compare_cost - WALK_COST) / READ_COST if best == split else -1.0


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
