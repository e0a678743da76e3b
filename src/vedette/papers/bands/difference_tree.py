"""An interval tree over all differences of bands and values: quadratic size, logarithmic time.

Lemma 1 of the paper: O(mn) size, O(mn log(mn)) to build, O(log(mn) + k) time for m values, n bands and k answers. The
shifts that bring a value into a band are one interval, and a tree holds all these intervals. For (Q2) a second tree
holds the union of each band's intervals, so that each band is found once. Fast if values x bands fits into memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from vedette.indexes.index import count_bytes
from vedette.native.kernels import kernel
from vedette.papers.bands.index import Pairs
from vedette.papers.bands.interval_tree import IntervalTree
from vedette.papers.bands.rounding import spans_of_shifts


class Spans(NamedTuple):
    """Disjoint intervals of shifts, and the band of each."""

    firsts: NDArray[np.float64]
    lasts: NDArray[np.float64]
    bands: NDArray[np.int32]


@dataclass(frozen=True)
class DifferenceTree:
    """Interval `i` of `pairs_tree` belongs to value `i // n_bands` and band `i % n_bands`."""

    n_bands: int
    pairs_tree: IntervalTree
    bands_tree: IntervalTree
    bands: NDArray[np.int32]  # of the intervals of `bands_tree`

    @classmethod
    def build(cls, values: NDArray[np.float64], lows: NDArray[np.float64], highs: NDArray[np.float64]) -> Self:
        firsts, lasts = spans_of_shifts(values, lows, highs)
        downwards = np.argsort(-values)  # greater values have lower shifts
        united = Spans(np.empty(firsts.size), np.empty(firsts.size), np.empty(firsts.size, np.int32))
        n = _unite(firsts[downwards], lasts[downwards], united)
        return cls(
            len(lows),
            IntervalTree.build(firsts.reshape(-1), lasts.reshape(-1)),
            IntervalTree.build(united.firsts[:n], united.lasts[:n]),
            united.bands[:n].copy(),
        )

    def pairs(self, shift: float) -> Pairs:
        found = self.pairs_tree.stab(shift)
        return found // np.int32(max(1, self.n_bands)), found % np.int32(max(1, self.n_bands))

    def affected(self, shift: float) -> NDArray[np.int32]:
        return np.asarray(self.bands[self.bands_tree.stab(shift)])

    @property
    def n_entries(self) -> int:
        return len(self.pairs_tree) + len(self.bands_tree)

    @property
    def nbytes(self) -> int:
        return count_bytes(self)


@kernel
def _unite(firsts: NDArray[np.float64], lasts: NDArray[np.float64], united: Spans) -> int:
    """Write the intervals of each band, given in ascending order, as disjoint ones; how many there are."""
    united_firsts, united_lasts, bands = united.firsts, united.lasts, united.bands
    n = 0
    for band in range(firsts.shape[1]):
        begin = n
        for i in range(len(firsts)):
            first, last = firsts[i, band], lasts[i, band]
            if first > last:
                continue
            if n > begin and first <= united_lasts[n - 1]:
                united_lasts[n - 1] = max(last, united_lasts[n - 1])
            else:
                united_firsts[n], united_lasts[n], bands[n] = first, last, band
                n += 1
    return n
