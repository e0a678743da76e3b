"""Stabbing groups over a table of the values: the structure that band joins use.

Not in the paper: the groups of Lemma 3, and instead of a tree over values and groups, of O(m tau) size, one look into
a table over the values for each group (see `lookup`). O(m + n) size, O(tau + k) time for m values, n bands, tau points
and k answers; a look takes a few nanoseconds, so it is the fastest until tau is large. All of it can change.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from vedette.operators.band_join.index.groups import Groups
from vedette.operators.band_join.index.lookup import find_affected, find_pairs
from vedette.operators.band_join.index.points import Points
from vedette.papers.bands.index import Pairs


@dataclass(frozen=True)
class StabbingGroups:
    points: Points
    groups: Groups

    @classmethod
    def build(cls, values: NDArray[np.float64], lows: NDArray[np.float64], highs: NDArray[np.float64]) -> Self:
        points = Points()
        points.add(values, np.arange(len(values), dtype=np.int32))
        return cls(points, Groups.build(lows, highs))

    def pairs(self, shift: float) -> Pairs:
        bands, values, _ = find_pairs(self.groups, self.points, np.array([shift]), np.zeros(1, np.int32))
        return values, bands

    def affected(self, shift: float) -> NDArray[np.int32]:
        return find_affected(self.groups, self.points, np.array([shift]))

    @property
    def n_entries(self) -> int:
        return len(self.points) + 2 * len(self.groups)

    @property
    def nbytes(self) -> int:
        return self.points.nbytes + self.groups.nbytes
