"""NumPy: sorted stored values, and for each new value the place of every end among the differences.

The ends are looked up in ascending order, which is three times faster than another order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.peers.band_join import BandPeer, BandWorkload


class NumpyBands(BandPeer):
    name = "NumPy, sorted ends looked up among sorted differences"

    def __init__(self, workload: BandWorkload, report: str) -> None:
        super().__init__(workload, report)
        self.order = np.argsort(workload.values)
        self.values = workload.values[self.order]
        self.by_low, self.by_high = np.argsort(workload.lows), np.argsort(workload.highs)
        self.lows, self.highs = workload.lows[self.by_low], workload.highs[self.by_high]

    def _find_ranges(self, value: float) -> tuple[Any, Any]:
        differences = self.values - value
        firsts, lasts = np.empty(len(self.lows), np.int64), np.empty(len(self.lows), np.int64)
        firsts[self.by_low] = np.searchsorted(differences, self.lows, "left")
        lasts[self.by_high] = np.searchsorted(differences, self.highs, "right")
        return firsts, lasts - firsts

    def find_pairs(self, value: float) -> Any:
        firsts, counts = self._find_ranges(value)
        bands = np.flatnonzero(counts)
        counts = counts[bands]
        ends = np.cumsum(counts)
        places = np.arange(ends[-1] if len(ends) else 0) + np.repeat(firsts[bands] - (ends - counts), counts)
        return np.repeat(bands, counts), self.order[places]

    def find_queries(self, value: float) -> Any:
        _, counts = self._find_ranges(value)
        return (np.flatnonzero(counts),)
