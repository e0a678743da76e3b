"""Indexes over cells, without reading rows and looking up values, as the papers measure them.

Over the cells of an axis whose cuts are the ends of the boxes; or, if ends are integers and rows lie between them, over
the units of that grid.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.answers import Answer
from benchmarks.peers import Peer
from benchmarks.workloads import Workload
from vedette.indexes.grid_file import MLGF
from vedette.indexes.names import INDEXES
from vedette.queries.planner.choice import Boxes, choose_index

Cells = NDArray[np.int32]


class OnCells(Peer):
    """The index with a name, by default the planner's choice, or the index that a function builds.

    A peer that is `like` another shares its index.
    """

    def __init__(
        self,
        workload: Workload,
        name: str = "our index",
        build: Callable[..., Any] | None = None,
        *,
        units: bool = False,
        shown: str | None = None,
        like: OnCells | None = None,
    ) -> None:
        super().__init__(workload)
        self.units = units
        self.name = shown or name  # type: ignore[misc]
        if like is not None:  # over the same boxes: nothing to build
            self.cuts, self.index = like.cuts, like.index
            return
        self.cuts = [_find_cuts(workload, axis) for axis in range(len(workload.rows))]
        firsts, lasts, n_cells = self._boxes()
        ids = np.arange(workload.n_queries, dtype=np.int32)
        if build is not None:
            self.index = build(firsts, lasts, ids, n_cells)
        elif name in INDEXES:
            self.index = INDEXES[name].build(firsts, lasts, ids, n_cells)
        else:
            boxes = Boxes(tuple(workload.fields), firsts, lasts, ids, tuple(n_cells), False, False)
            group = choose_index(boxes)
            self.index, self.axes = group.index, [workload.fields.index(field) for field in group.fields]

    def load(self, rows: Workload) -> None:
        cells = np.stack([self._locate(axis, rows.rows[axis]) for axis in range(len(rows.rows))])
        self.cells = np.ascontiguousarray(cells[self.axes] if hasattr(self, "axes") else cells)

    def match(self) -> Any:
        return self.index.match(self.cells)

    def answer(self, result: Any) -> Answer:
        return Answer(result.positions, starts=result.starts)

    def _boxes(self) -> tuple[Cells, Cells, list[int]]:
        firsts, lasts, n_cells = [], [], []
        for axis, cuts in enumerate(self.cuts):
            lows, highs = self.workload.lows[axis], self.workload.highs[axis]
            if self.units:
                firsts.append(lows)
                lasts.append(highs - 1)
                n_cells.append(int(highs.max()) + 2)
                continue
            null = 2 * len(cuts) + 1
            is_whole = np.isinf(lows) & np.isinf(highs)  # not constrained: null, too
            firsts.append(np.where(np.isinf(lows), 0, self._locate(axis, lows)))
            lasts.append(np.where(np.isinf(highs), np.where(is_whole, null, null - 1), self._locate(axis, highs)))
            n_cells.append(null + 1)
        return np.array(firsts, np.int32), np.array(lasts, np.int32), n_cells

    def _locate(self, axis: int, values: NDArray[np.float64]) -> Cells:
        if self.units:
            return np.floor(values).astype(np.int32)
        cuts = self.cuts[axis]
        at = np.searchsorted(cuts, values)
        is_cut = cuts[np.minimum(at, len(cuts) - 1)] == values
        return (2 * at + is_cut).astype(np.int32)


class SJBatch(OnCells):
    """Spatial Join CQ in batches, with data clusters of a given size, or of the chosen size."""

    index: MLGF

    def __init__(self, workload: Workload, n_dc: int | None = None, like: OnCells | None = None) -> None:
        shown = "SJ-Batch" if n_dc is None else f"SJ-Batch, N_dc = {n_dc}"
        super().__init__(workload, "MLGF", shown=shown, like=like)
        self.n_dc = n_dc

    def match(self) -> Any:
        return self.index.match_batch(self.cells, self.n_dc)


class SJImmediate(OnCells):
    """Spatial Join CQ, each row by itself."""

    index: MLGF

    def __init__(self, workload: Workload, like: OnCells | None = None) -> None:
        super().__init__(workload, "MLGF", shown="SJ-Immediate", like=like)

    def match(self) -> Any:
        return self.index.match_immediately(self.cells)


def _find_cuts(workload: Workload, axis: int) -> NDArray[np.float64]:
    ends = np.concatenate([workload.lows[axis], workload.highs[axis]])
    cuts = np.unique(ends[np.isfinite(ends)])
    return cuts if len(cuts) else np.zeros(1)
