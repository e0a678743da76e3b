"""An index of ranges of numbers, chosen as for queries over one field."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vedette.data.boxes import BoxBlock, Ranges
from vedette.data.columns import Column
from vedette.data.matches import Matches
from vedette.data.schema import Field, Schema, Type
from vedette.queries.match import Part
from vedette.queries.match_pieces import match_pieces
from vedette.queries.planner.compilation import compile_part


@dataclass(frozen=True)
class IndexedRanges:
    """Ranges by place."""

    part: Part

    @property
    def nbytes(self) -> int:
        return self.part.nbytes

    def match(self, values: Column) -> Matches:
        """The places of the ranges that contain each value. Null is in no range."""
        part = self.part.decide({"value": values}, len(values))
        return match_pieces(
            lambda start, end: part.match({"value": values.slice(start, end)}, end - start), len(values)
        )


def index_ranges(ranges: Ranges) -> IndexedRanges:
    """An index of ranges of doubles or of integers."""
    type_ = Type("double" if ranges.lows.dtype == np.float64 else "bigint")
    block = BoxBlock(np.arange(len(ranges), dtype=np.int64), {"value": ranges})
    return IndexedRanges(compile_part([block], [], Schema((Field("value", type_),)), 0, len(ranges)))
