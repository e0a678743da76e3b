"""shapely's STRtree: a packed R-tree over the boxes, searched for all points in one call.

Points are geometry objects made before the clock starts. Ordering them along a Z-curve is part of the time and is worth
it if the tree is larger than the cache. Boxes and points need no predicate besides bounding boxes, so none is used.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray

from benchmarks.answers import Answer
from benchmarks.peers import Peer
from benchmarks.workloads import Workload


class STRtree(Peer):
    name = "STRtree"

    def __init__(self, workload: Workload) -> None:
        super().__init__(workload)
        (x_lows, y_lows), (x_highs, y_highs) = workload.lows, workload.highs
        self.tree = shapely.STRtree(shapely.box(x_lows, y_lows, x_highs, y_highs))  # node capacity 5 and 20 are slower
        self.tree.query(shapely.points(0.0, 0.0))  # the tree is packed at its first use

    def load(self, rows: Workload) -> None:
        self.rows = rows.rows
        self.points = shapely.points(*rows.rows)

    def match(self) -> Any:
        points, queries = self.tree.query(self.points)
        return points, queries, None

    def answer(self, result: Any) -> Answer:
        points, queries, row_order = result
        return Answer(queries, points if row_order is None else row_order[points])


class STRtreeSorted(STRtree):
    """The points are ordered along a Z-curve first; the pairs stay in that order."""

    name = "STRtree, points sorted first"

    def match(self) -> Any:
        row_order = _z_order(self.rows)
        points, queries = self.tree.query(self.points[row_order])
        return points, queries, row_order


def _z_order(points: NDArray[np.float64]) -> NDArray[np.intp]:
    """By the interleaved bits of 16-bit coordinates."""
    lowest, highest = points.min(axis=1, keepdims=True), points.max(axis=1, keepdims=True)
    scaled = ((points - lowest) * (65535 / np.maximum(highest - lowest, 1e-9))).astype(np.uint32)
    return np.argsort(_spread(scaled[0]) | _spread(scaled[1]) << np.uint32(1))


def _spread(numbers: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """A zero bit after each of 16 bits."""
    for shift, mask in ((8, 0x00FF00FF), (4, 0x0F0F0F0F), (2, 0x33333333), (1, 0x55555555)):
        numbers = (numbers | numbers << np.uint32(shift)) & np.uint32(mask)
    return numbers
