"""Boxes before they meet an axis: one range of values per constrained field, in columns.

A query is one or more boxes. Boxes that constrain the same fields are kept together in a `BoxBlock`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

# How a range ends. A closed end belongs to the range; an unbounded one has no value.
CLOSED, OPEN, UNBOUNDED = 0, 1, 2


@dataclass(frozen=True)
class Ranges:
    """Box `i` holds the values between `lows[i]` and `highs[i]`; none of these ranges holds null.

    Values are in the physical form of the field's type (see `columns`); those of strings are `str` objects.
    """

    lows: NDArray[Any]
    highs: NDArray[Any]
    low_ends: NDArray[np.int8]  # CLOSED, OPEN or UNBOUNDED
    high_ends: NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.lows)

    def take(self, chosen: NDArray[Any]) -> Ranges:
        return Ranges(self.lows[chosen], self.highs[chosen], self.low_ends[chosen], self.high_ends[chosen])


@dataclass(frozen=True)
class Nulls:
    """Ranges of `n` boxes that hold null and nothing else."""

    n: int

    def __len__(self) -> int:
        return self.n

    def take(self, chosen: NDArray[Any]) -> Nulls:
        return Nulls(len(np.arange(self.n)[chosen]))


@dataclass(frozen=True)
class BoxBlock:
    """Boxes that constrain the same fields. A field that is not named is not constrained: any value and null."""

    queries: NDArray[np.int64]  # the query of each box; a query may have several, which may overlap
    ranges: dict[str, Ranges | Nulls]  # by the schema's field name

    def __len__(self) -> int:
        return len(self.queries)

    def take(self, chosen: NDArray[Any]) -> BoxBlock:
        return BoxBlock(self.queries[chosen], {name: ranges.take(chosen) for name, ranges in self.ranges.items()})
