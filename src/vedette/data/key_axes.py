"""Axes of the values that maps have at one key: a condition such as `m['price'] < 40` is a range on such an axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vedette.data.axes import Axis, Cells, build_axis
from vedette.data.boxes import Nulls, Ranges
from vedette.data.columns import Column
from vedette.data.list_axes import element_values, flatten
from vedette.data.schema import Type
from vedette.data.wrapped_axis import WrappedAxis


@dataclass(frozen=True)
class KeyAxis(WrappedAxis):
    """The axis of the values at a key: that of their type. A map without the key is null there."""

    inner: Axis
    key: str

    @classmethod
    def build(cls, value: Type, key: str, ranges: Sequence[Ranges | Nulls]) -> KeyAxis:
        return cls(build_axis(value, ranges), key)

    def locate(self, column: Column) -> Cells:
        return self.inner.locate(values_at(column, self.key))


def values_at(maps: Column, key: str | pa.Array) -> Column:
    """The value of each map at a key, or at a key of its own; null if it has none. Of equal keys the first counts."""
    starts, entries = flatten(maps)
    rows = np.repeat(np.arange(len(maps)), np.diff(starts))
    wanted = key if isinstance(key, str) else key.take(pa.array(rows))
    hits = np.flatnonzero(pc.equal(entries.field(0), wanted).fill_null(False).to_numpy(zero_copy_only=False))
    places = np.full(len(maps), -1, np.int64)
    places[rows[hits[::-1]]] = hits[::-1]
    values = entries.field(1).take(pa.array(places, mask=places < 0))
    valid = pc.is_valid(values).to_numpy(zero_copy_only=False)
    if pa.types.is_large_string(values.type):
        return Column(values.fill_null(""), valid)
    return Column(element_values(values), valid)
