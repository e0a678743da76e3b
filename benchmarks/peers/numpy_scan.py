"""A NumPy scan: every row against all boxes, or every box against all rows, whichever are fewer."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.answers import Answer
from benchmarks.peers import Peer
from benchmarks.workloads import Workload


class NumpyScan(Peer):
    name = "NumPy scan"

    def load(self, rows: Workload) -> None:
        self.rows = rows.rows

    def match(self) -> Any:
        lows, highs, rows = self.workload.lows, self.workload.highs, self.rows
        if rows.shape[1] <= lows.shape[1]:
            found = [_inside(lows, highs, rows[:, row : row + 1]) for row in range(rows.shape[1])]
        else:
            boxes = range(lows.shape[1])
            found = [_inside(lows[:, box : box + 1], highs[:, box : box + 1], rows) for box in boxes]
        numbers = np.repeat(np.arange(len(found)), [len(places) for places in found])
        return numbers, np.concatenate(found)

    def answer(self, result: Any) -> Answer:
        outer, inner = result
        by_row = self.rows.shape[1] <= self.workload.lows.shape[1]
        return Answer(inner, outer) if by_row else Answer(outer, inner)


def _inside(lows: Any, highs: Any, rows: Any) -> Any:
    inside = (lows[0] <= rows[0]) & (rows[0] <= highs[0])
    for axis in range(1, len(lows)):
        inside &= lows[axis] <= rows[axis]
        inside &= rows[axis] <= highs[axis]
    return np.flatnonzero(inside)
