"""Boxes in values, not yet in cells: one range of values per constrained field, in columns.

A query is one or more boxes. Boxes that constrain the same fields are kept together in a `BoxBlock`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Kinds of range ends. A closed end is inclusive; an unbounded end has no value.
CLOSED, OPEN, UNBOUNDED = 0, 1, 2


@dataclass(frozen=True)
class Ranges:
    """Box `i` contains the values between `lows[i]` and `highs[i]`. None of these ranges contains null.

    Values are in the physical form of the field's type (see `columns`); those of strings are `str` objects.
    """

    lows: NDArray[Any]
    highs: NDArray[Any]
    low_ends: NDArray[np.int8]  # CLOSED, OPEN or UNBOUNDED
    high_ends: NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.lows)

    @classmethod
    def concat(cls, many: Sequence[Ranges]) -> Ranges:
        return cls(*(np.concatenate([getattr(each, field.name) for each in many]) for field in fields(cls)))

    def take(self, chosen: NDArray[Any]) -> Ranges:
        return Ranges(self.lows[chosen], self.highs[chosen], self.low_ends[chosen], self.high_ends[chosen])


@dataclass(frozen=True)
class Nulls:
    """Ranges of `n` boxes that contain only null."""

    n: int

    def __len__(self) -> int:
        return self.n

    @classmethod
    def concat(cls, many: Sequence[Nulls]) -> Nulls:
        return cls(sum(each.n for each in many))

    def take(self, chosen: NDArray[Any]) -> Nulls:
        return Nulls(len(np.arange(self.n)[chosen]))


@dataclass(frozen=True)
class BoxBlock:
    """Boxes that constrain the same fields. Fields that are not named may have any value or null."""

    queries: NDArray[np.int64]  # the query of each box; a query may have several, which may overlap
    ranges: dict[str, Ranges | Nulls]  # by the schema's field name

    def __len__(self) -> int:
        return len(self.queries)

    @classmethod
    def concat(cls, many: Sequence[BoxBlock]) -> BoxBlock:
        """Blocks over the same fields, with ranges of the same kind, as one block."""
        ranges: dict[str, Any] = {}
        for name, first in many[0].ranges.items():
            same: list[Any] = [each.ranges[name] for each in many]
            ranges[name] = type(first).concat(same)
        return cls(np.concatenate([each.queries for each in many]), ranges)

    def take(self, chosen: NDArray[Any]) -> BoxBlock:
        return BoxBlock(self.queries[chosen], {name: ranges.take(chosen) for name, ranges in self.ranges.items()})
