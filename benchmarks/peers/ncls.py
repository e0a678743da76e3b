"""ncls: nested containment lists in C, integers only, pairs out.

Its intervals are half-open, so an inclusive end moves up by one. It loses intervals with negative coordinates.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from ncls import NCLS

from benchmarks.answers import Answer
from benchmarks.peers import Peer
from benchmarks.workloads import Workload


class Ncls(Peer):
    name = "ncls"

    def __init__(self, workload: Workload) -> None:
        super().__init__(workload)
        lows, highs = workload.lows[0].astype(np.int32), workload.highs[0].astype(np.int32)
        assert lows.min() >= 0
        self.lists = NCLS(lows, highs + 1, np.arange(workload.n_queries))

    def load(self, rows: Workload) -> None:
        self.values = rows.rows[0].astype(np.int32)
        self.numbers = np.arange(rows.n_rows)

    def match(self) -> Any:
        return self.lists.all_overlaps_both(self.values, self.values + 1, self.numbers)

    def answer(self, result: Any) -> Answer:
        rows, queries = result
        return Answer(queries, rows)


class NclsSorted(Ncls):
    """The values sorted first, which is part of the time."""

    name = "ncls, values sorted first"

    def match(self) -> Any:
        order = np.argsort(self.values)
        values = self.values[order]
        return self.lists.all_overlaps_both(values, values + 1, order)
