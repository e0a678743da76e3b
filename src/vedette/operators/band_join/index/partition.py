"""The smallest stabbing partition: bands in groups that share a point, in as few groups as possible.

The greedy algorithm of section 2.2: bands in the order of their lower ends, in one group while they have a point in
common. The band of a group that ends first is its *witness*. Witnesses are disjoint, so no partition has fewer groups
than witnesses. The bound also holds for the witnesses that are left after changes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vedette.native.kernels import kernel


@dataclass(frozen=True)
class Partition:
    """Group `g` has the bands `order[starts[g]:starts[g + 1]]`, by lower end; all of them contain `points[g]`."""

    order: NDArray[np.int32]
    starts: NDArray[np.int64]
    points: NDArray[np.float64]
    witnesses: NDArray[np.int32]  # one band per group; they are disjoint

    def __len__(self) -> int:
        return len(self.points)


def find_partition(lows: NDArray[np.float64], highs: NDArray[np.float64]) -> Partition:
    """The bands [lows[q], highs[q]] in as few groups as possible; O(n log n)."""
    order = np.argsort(lows, kind="stable").astype(np.int32)
    starts, points, witnesses = np.empty(len(order) + 1, np.int64), np.empty(len(order)), np.empty(len(order), np.int32)
    n = _find_groups(lows, highs, order, starts, points, witnesses)
    return Partition(order, starts[: n + 1].copy(), points[:n].copy(), witnesses[:n].copy())


@kernel
def _find_groups(
    lows: NDArray[np.float64],
    highs: NDArray[np.float64],
    order: NDArray[np.int32],
    starts: NDArray[np.int64],
    points: NDArray[np.float64],
    witnesses: NDArray[np.int32],
) -> int:
    """Write where groups start, their points and witnesses; the number of groups."""
    n = 0
    starts[0] = 0
    for i in range(len(order)):
        band = order[i]
        if n > 0 and lows[band] <= highs[witnesses[n - 1]]:
            if highs[band] < highs[witnesses[n - 1]]:
                witnesses[n - 1] = band
        else:
            starts[n] = i
            witnesses[n] = band
            n += 1
    starts[n] = len(order)
    for group in range(n):
        points[group] = find_middle(lows[order[starts[group + 1] - 1]], highs[witnesses[group]])
    return n


@kernel
def find_middle(low: float, high: float) -> float:
    """A point of a band: its middle if both ends are finite, otherwise a finite point if there is one."""
    if low == -np.inf or high == np.inf:
        return 0.0 if low < high and low == -high else (low if low > -np.inf else high)
    return min(max(low, 0.5 * low + 0.5 * high), high)
