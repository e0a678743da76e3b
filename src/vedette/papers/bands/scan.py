"""The scan: sorted values and sorted bands are merged for every query.

The structure known before the paper (its section 1, from PSoup): O(m + n) size, O(m + n + k) time for m values, n bands
and k answers. Only two sorted lists are stored. Fast if there are few bands, or if most bands hold a value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from vedette.indexes.index import count_bytes
from vedette.native.kernels import kernel
from vedette.papers.bands.index import Pairs


@dataclass(frozen=True)
class Scan:
    """Values in order, bands in the order of their lower ends, and the positions of both."""

    values: NDArray[np.float64]
    value_names: NDArray[np.int32]
    lows: NDArray[np.float64]
    highs: NDArray[np.float64]
    band_names: NDArray[np.int32]

    @classmethod
    def build(cls, values: NDArray[np.float64], lows: NDArray[np.float64], highs: NDArray[np.float64]) -> Self:
        by_value, by_low = np.argsort(values).astype(np.int32), np.argsort(lows).astype(np.int32)
        return cls(values[by_value], by_value, lows[by_low], highs[by_low], by_low)

    def pairs(self, shift: float) -> Pairs:
        counts = np.empty(len(self.lows), np.int64)
        firsts = np.empty(len(self.lows), np.int64)
        n = _count(shift, self.values, self.lows, self.highs, firsts, counts)
        values, bands = np.empty(n, np.int32), np.empty(n, np.int32)
        _write(firsts, counts, self.value_names, self.band_names, values, bands)
        return values, bands

    def affected(self, shift: float) -> NDArray[np.int32]:
        bands = np.empty(len(self.lows), np.int32)
        return bands[: _find_affected(shift, self.values, self.lows, self.highs, self.band_names, bands)].copy()

    @property
    def n_entries(self) -> int:
        return len(self.values) + len(self.lows)

    @property
    def nbytes(self) -> int:
        return count_bytes(self)


@kernel
def _count(
    shift: float,
    values: NDArray[np.float64],
    lows: NDArray[np.float64],
    highs: NDArray[np.float64],
    firsts: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> int:
    """The first value in each band and the number of values in it; the total number."""
    n, first = 0, 0
    for band in range(len(lows)):
        while first < len(values) and values[first] + shift < lows[band]:
            first += 1
        last = first
        while last < len(values) and values[last] + shift <= highs[band]:
            last += 1
        firsts[band], counts[band] = first, last - first
        n += last - first
    return n


@kernel
def _write(
    firsts: NDArray[np.int64],
    counts: NDArray[np.int64],
    value_names: NDArray[np.int32],
    band_names: NDArray[np.int32],
    values: NDArray[np.int32],
    bands: NDArray[np.int32],
) -> None:
    n = 0
    for band in range(len(firsts)):
        for i in range(firsts[band], firsts[band] + counts[band]):
            values[n], bands[n] = value_names[i], band_names[band]
            n += 1


@kernel
def _find_affected(
    shift: float,
    values: NDArray[np.float64],
    lows: NDArray[np.float64],
    highs: NDArray[np.float64],
    band_names: NDArray[np.int32],
    bands: NDArray[np.int32],
) -> int:
    n, first = 0, 0
    for band in range(len(lows)):
        while first < len(values) and values[first] + shift < lows[band]:
            first += 1
        if first < len(values) and values[first] + shift <= highs[band]:
            bands[n] = band_names[band]
            n += 1
    return n
