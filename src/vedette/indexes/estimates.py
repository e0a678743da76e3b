"""Estimates of the cost of a row in an index, and the facts they are based on.

Costs are nanoseconds on one core of the machine of docs/benchmarks.md. Only their ratios matter; `python -m benchmarks
run planner` shows where they are wrong.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Self

import numpy as np
from numpy.typing import NDArray

from vedette.indexes.index import sample_boxes

SAMPLE = 4096  # boxes that an estimate examines
SELECTIVE_AXES = 4  # whose pairs are considered


@dataclass(frozen=True)
class Estimate:
    """A way in which an index can answer, and the cost of a row.

    `axes` is the order of all axes for the index. An index that looks up only some of them names these, and
    `build` gets them as `axes=`. `inner` is the name of the index that it uses for them.
    """

    axes: tuple[int, ...]
    nanoseconds: float
    reason: str
    inner: str = ""


@dataclass(frozen=True)
class BoxFacts:
    """Boxes in cell space, and the part of the axes that a sample of them covers."""

    firsts: NDArray[np.int32]  # (axes, boxes)
    lasts: NDArray[np.int32]
    n_cells: tuple[int, ...]
    is_consecutive: bool  # the ids of the boxes are consecutive, in order
    is_point: tuple[bool, ...]  # by axis: every box has one cell
    shares: NDArray[np.float64]  # (axes, sampled boxes): the part of the axis that a box covers

    @classmethod
    def of(
        cls, firsts: NDArray[np.int32], lasts: NDArray[np.int32], n_cells: Sequence[int], *, is_consecutive: bool
    ) -> Self:
        chosen = sample_boxes(firsts.shape[1], SAMPLE)
        some_firsts, some_lasts = firsts[:, chosen].astype(np.float64), lasts[:, chosen].astype(np.float64)
        n_cuts = np.maximum(1.0, (np.array(n_cells, np.float64)[:, None] - 2) / 2)
        # Half a cell range is its number of cuts; one cell has at least a cut's share of the rows.
        shares = np.clip(np.maximum((some_lasts - some_firsts) / 2, 1.0) / n_cuts, 0.0, 1.0)
        is_point = tuple(bool((first == last).all()) for first, last in zip(firsts, lasts, strict=True))
        return cls(firsts, lasts, tuple(n_cells), is_consecutive, is_point, shares)

    @property
    def n(self) -> int:
        """The number of boxes."""
        return int(self.firsts.shape[1])

    @property
    def axes(self) -> tuple[int, ...]:
        return tuple(range(len(self.n_cells)))

    @property
    def matches(self) -> float:
        """The average number of boxes that contain a row."""
        return self.n * float(np.mean(np.prod(self.shares, axis=0)))

    def on(self, axes: tuple[int, ...]) -> BoxFacts:
        """The same boxes on some of the axes."""
        chosen = list(axes)
        n_cells, is_point = tuple(self.n_cells[a] for a in axes), tuple(self.is_point[a] for a in axes)
        return BoxFacts(
            self.firsts[chosen], self.lasts[chosen], n_cells, self.is_consecutive, is_point, self.shares[chosen]
        )

    def pairs(self) -> list[tuple[int, int]]:
        """Pairs of axes to look up together, an axis of points first; of many axes, the most selective ones."""
        ranked = sorted(self.axes, key=lambda axis: float(np.mean(self.shares[axis])))[:SELECTIVE_AXES]
        return [(a, b) if self.is_point[a] >= self.is_point[b] else (b, a) for a, b in combinations(ranked, 2)]


def miss_cost(n: int, bytes_each: float) -> float:
    """The cost of cache misses: nothing while the index fits into the L2 cache, about 15 ns beyond all caches."""
    return 2.5 * max(0.0, math.log2(max(1.0, n * bytes_each / (1 << 20))))
