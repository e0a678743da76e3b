"""rtree: libspatialindex, bulk-loaded from arrays and searched for all points in one call."""

from __future__ import annotations

from typing import Any

import numpy as np
from rtree import index

from benchmarks.answers import Answer
from benchmarks.peers import Peer
from benchmarks.workloads import Workload


class Rtree(Peer):
    name = "rtree"

    def __init__(self, workload: Workload) -> None:
        super().__init__(workload)
        numbers = np.arange(workload.n_queries)
        lows, highs = np.ascontiguousarray(workload.lows.T), np.ascontiguousarray(workload.highs.T)
        properties = index.Property(dimension=lows.shape[1], leaf_capacity=100, index_capacity=100)
        self.tree = index.Index((numbers, lows, highs), properties=properties)

    def load(self, rows: Workload) -> None:
        self.points = np.ascontiguousarray(rows.rows.T)

    def match(self) -> Any:
        return self.tree.intersection_v(self.points, self.points)

    def answer(self, result: Any) -> Answer:
        queries, counts = result
        return Answer(queries, starts=np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]))

    def close(self) -> None:
        self.tree.close()
