"""An interval tree over all differences of bands and values: quadratic size, logarithmic time.

Lemma 1 of the paper: O(mn) size, O(mn log(mn)) to build, O(log(mn) + k) time for m values, n bands and k answers. A
value comes into a band under the shifts of one interval, and all these intervals are in a tree; for (Q2) the union of
a band's intervals is, so that each band is found once. Wins where values and bands are so few that their product fits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from vedette.indexes.index import count_bytes
from vedette.native.kernels import kernel
from vedette.papers.bands.index import Pairs
from vedette.papers.bands.interval_tree import IntervalTree
from vedette.papers.bands.rounding import spans_of_shifts


@dataclass(frozen=True)
class DifferenceTree:
    """Interval `i` of `pairs_tree` is of value `i // n_bands` and band `i % n_bands`."""

    n_bands: int
    pairs_tree: IntervalTree
    bands_tree: IntervalTree
    bands: NDArray[np.int32]  # of the intervals of `bands_tree`

    @classmethod
    def build(cls, values: NDArray[np.float64], lows: NDArray[np.float64], highs: NDArray[np.float64]) -> Self:
        firsts, lasts = spans_of_shifts(values, lows, highs)
        downwards = np.argsort(-values)  # of greater values the shifts are lower
        union = np.empty(firsts.size), np.empty(firsts.size), np.empty(firsts.size, np.int32)
        n = _unite(firsts[downwards], lasts[downwards], *union)
        return cls(
            len(lows),
            IntervalTree.build(firsts.reshape(-1), lasts.reshape(-1)),
            IntervalTree.build(union[0][:n], union[1][:n]),
            union[2][:n].copy(),
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
def _unite(
    firsts: NDArray[np.float64],
    lasts: NDArray[np.float64],
    united_firsts: NDArray[np.float64],
    united_lasts: NDArray[np.float64],
    bands: NDArray[np.int32],
) -> int:
    """The intervals of each band, which come upwards, as disjoint ones; how many."""
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
