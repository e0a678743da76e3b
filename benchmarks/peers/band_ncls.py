"""ncls: nested containment lists over the bands, searched for all differences of each new value.

It supports only half-open intervals of integers, and loses those with negative coordinates: everything is moved up.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from ncls import NCLS

from benchmarks.peers.band_join import DOMAIN, BandPeer, BandWorkload

UP = 2 * DOMAIN


class NclsBands(BandPeer):
    name = "ncls"

    def __init__(self, workload: BandWorkload, report: str) -> None:
        super().__init__(workload, report)
        lows, highs = (ends.astype(np.int64) + UP for ends in (workload.lows, workload.highs))
        assert lows.min() >= 0
        self.lists = NCLS(lows, highs + 1, np.arange(len(lows)))
        self.numbers = np.argsort(workload.values)  # sorted, because the lists are fastest then
        self.values = workload.values[self.numbers].astype(np.int64) + UP

    def find_pairs(self, value: float) -> Any:
        differences = self.values - int(value)
        lefts, bands = self.lists.all_overlaps_both(differences, differences + 1, self.numbers)
        return bands, lefts

    def find_queries(self, value: float) -> Any:
        return (np.unique(self.find_pairs(value)[0]),)
