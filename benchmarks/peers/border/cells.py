"""The indexes without rows and keys: BMQ and DiffRMQ over paths of cells, as in section 5 of Lee et al.

Readings are given as cells, key by key, so cells and previous readings need not be looked up.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.peers.border import BorderPeer, Events
from benchmarks.workloads import Moves, Workload
from vedette.operators.border.differences import DiffRMQ
from vedette.operators.border.region_line import RSList
from vedette.operators.border.region_segments import RSLists
from vedette.operators.border.runs import EXIT, Runs
from vedette.queries.planner.choice import Boxes, choose_index

Cells = NDArray[np.int32]


@dataclass(frozen=True)
class Paths:
    """Readings of some keys, one key after the other, each in time order."""

    rows: NDArray[np.int32]
    cells: Cells  # (axes, readings and origins): each key's origin precedes its first reading
    places: NDArray[np.int64]  # of the readings in `cells`; the previous reading is one place before


class CellPeer(BorderPeer):
    """A peer over the axes of the boxes."""

    index: Any
    axes: list[int]  # in the order of the index

    def __init__(self, workload: Workload) -> None:
        super().__init__(workload)
        self.axes = list(range(len(workload.lows)))
        self.cuts = [np.unique(ends) for ends in np.concatenate([workload.lows, workload.highs], axis=1)]

    @property
    def boxes(self) -> Boxes:
        firsts, lasts = self.locate(self.workload.lows), self.locate(self.workload.highs)
        queries = np.arange(self.workload.n_queries, dtype=np.int32)
        n_cells = tuple(2 * len(cuts) + 2 for cuts in self.cuts)
        return Boxes(tuple(self.workload.fields), firsts, lasts, queries, n_cells, False, False)

    def locate(self, values: NDArray[np.float64]) -> Cells:
        """The cells of values, one row per axis."""
        cells = np.empty(values.shape, np.int32)
        for axis, cuts in enumerate(self.cuts):
            at = np.searchsorted(cuts, values[axis])
            cells[axis] = 2 * at + (cuts[np.minimum(at, len(cuts) - 1)] == values[axis])
        return cells

    def cut(self, moves: Moves) -> Iterator[Paths]:
        order = np.argsort(moves.keys, kind="stable").astype(np.int32)
        before, after = self.locate(moves.before[:, order]), self.locate(moves.rows[:, order])
        begins = np.flatnonzero(np.diff(moves.keys[order], prepend=-1))
        n_batches = max(1, round(moves.n_rows / moves.batch_rows))
        for some in np.array_split(begins, min(n_batches, len(begins))):
            following = begins[begins > some[-1]]
            part = slice(some[0], following[0] if len(following) else moves.n_rows)
            at = some - part.start
            cells = np.insert(after[:, part], at, before[:, some], axis=1)
            places = np.delete(np.arange(cells.shape[1]), at + np.arange(len(at)))
            yield Paths(order[part], np.ascontiguousarray(cells[self.axes]), places)

    def reset(self) -> None:
        """Nothing: a path begins with its origin."""

    def events(self, paths: Paths, result: Runs) -> Events:
        moves, _, kinds = result.columns(np.arange(len(paths.places), dtype=np.int32), paths.places)
        return paths.rows[moves], result.queries, kinds == EXIT

    def count_read(self) -> int:
        """How many queries are read for all readings: the size of the intermediate result of section 5.2."""
        return sum(self.count_read_in(paths) for paths in self.batches)

    def count_read_in(self, paths: Paths) -> int:
        raise NotImplementedError


class BmqOnAxes(CellPeer):
    """The RS lists of section 4, on any number of axes."""

    name = "BMQ"
    lists: type[RSList] | type[RSLists] = RSLists

    def __init__(self, workload: Workload) -> None:
        super().__init__(workload)
        boxes = self.boxes
        self.index = self.lists.build(boxes.firsts, boxes.lasts, boxes.queries, boxes.n_cells)

    def step(self, paths: Paths) -> Runs:
        runs, left_out = self.index.changes(paths.cells, paths.places - 1, paths.places)
        assert len(left_out) == 0
        return runs  # type: ignore[no-any-return]

    def count_read_in(self, paths: Paths) -> int:
        """Entries between the cells of two readings on all axes, before the cross-check."""
        return int(self.index.count_read(paths.cells, paths.places - 1, paths.places).sum())


class Bmq(BmqOnAxes):
    """The RS list of section 3, on one axis."""

    lists = RSList

    def __init__(self, workload: Workload) -> None:
        super().__init__(workload)
        boxes = self.boxes
        self.firsts, self.lasts = np.sort(boxes.firsts[0]), np.sort(boxes.lasts[0])

    def count_read_in(self, paths: Paths) -> int:
        """Delta queries: the ends between the cells of two readings."""
        started, ended = (
            np.searchsorted(self.firsts, paths.cells[0], "right"),
            np.searchsorted(self.lasts, paths.cells[0]),
        )
        return int(sum(np.abs(at[paths.places] - at[paths.places - 1]).sum() for at in (started, ended)))


class DiffRmqOnCells(CellPeer):
    """DiffRMQ over the index of that name, or over the planner's choice."""

    def __init__(self, workload: Workload, index: str | None = None) -> None:
        super().__init__(workload)
        group = choose_index(self.boxes, index)
        self.index, self.axes = group.index, [workload.fields.index(field) for field in group.fields]
        self.name = f"DiffRMQ over {index or 'our index'}"  # type: ignore[misc]
        self.diff_rmq = DiffRMQ(self.index, 0, workload.n_queries)
        self.stamps = np.zeros(workload.n_queries, np.int32)

    def step(self, paths: Paths) -> Runs:
        return self.diff_rmq.changes(paths.cells, paths.places - 1, paths.places, self.stamps)

    def count_read_in(self, paths: Paths) -> int:
        counts = self.index.match(paths.cells).counts
        return int(counts[paths.places].sum() + counts[paths.places - 1].sum())
