"""Margins in metres: geofences over longitudes and latitudes, and the boxes around them, widened by a distance."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vedette.data.boxes import CLOSED, UNBOUNDED, BoxBlock, Nulls, Ranges
from vedette.data.schema import Schema
from vedette.language import Residual, fences_on_earth, widen_fences_on_earth
from vedette.language.earth import widen_boxes

METRES = ""  # stands for a field among margins
_SLACK = 1.01  # distances to polygons, and on the sphere, differ by less from those on the spheroid


def widen_by_metres(
    blocks: list[BoxBlock], residuals: list[Residual], metres: float, schema: Schema
) -> tuple[list[BoxBlock], list[Residual]]:
    """Boxes and residuals in which a point is inside up to so many metres outside a geofence.

    A negated geofence is not widened, nor are conditions on other fields.
    """
    for residual in residuals:
        for x, y in dict.fromkeys(fences_on_earth(residual)):
            blocks = [each for block in blocks for each in _widen(block, x, y, residual.queries, metres, schema)]
    return blocks, [widen_fences_on_earth(each, metres) for each in residuals]


def _widen(
    block: BoxBlock, x: str, y: str, queries: NDArray[np.int64], metres: float, schema: Schema
) -> Iterator[BoxBlock]:
    chosen = np.isin(block.queries, queries)
    if not chosen.any() or isinstance(block.ranges.get(x), Nulls) or isinstance(block.ranges.get(y), Nulls):
        yield block
        return
    if not chosen.all():
        yield block.take(~chosen)
    some = block.take(chosen)
    lons, lats = _ends(some, x, 180.0, schema), _ends(some, y, 90.0, schema)
    boxes = widen_boxes(*lons, *lats, np.full(len(some), metres * _SLACK), on_sphere=False)
    wide = {x: (boxes.lon_lows, boxes.lon_highs), y: (boxes.lat_lows, boxes.lat_highs)}
    named = {name: ends for name, ends in wide.items() if name in some.ranges}
    made = BoxBlock(some.queries, some.ranges | {name: _range(name, *ends, schema) for name, ends in named.items()})
    yield made
    if x in named and boxes.crosses.any():
        beyond = made.ranges | {x: _range(x, boxes.more_lows, boxes.more_highs, schema)}
        yield BoxBlock(made.queries, beyond).take(boxes.crosses)


def _ends(block: BoxBlock, name: str, limit: float, schema: Schema) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The ends of the ranges of a field, within the limit; the limit itself where they are not known as doubles."""
    ranges, n = block.ranges.get(name), len(block)
    if not isinstance(ranges, Ranges) or not _is_floating(name, schema):
        return np.full(n, -limit), np.full(n, limit)
    lows = np.where(ranges.low_ends == UNBOUNDED, -limit, ranges.lows)
    highs = np.where(ranges.high_ends == UNBOUNDED, limit, ranges.highs)
    return np.clip(lows, -limit, limit), np.clip(highs, -limit, limit)


def _range(name: str, lows: NDArray[np.float64], highs: NDArray[np.float64], schema: Schema) -> Ranges:
    closed = np.full(len(lows), CLOSED if _is_floating(name, schema) else UNBOUNDED, np.int8)
    if _is_floating(name, schema):
        return Ranges(lows, highs, closed, closed)
    zeros: Any = np.zeros(len(lows), np.int64)
    return Ranges(zeros, zeros, closed, closed)


def _is_floating(name: str, schema: Schema) -> bool:
    field = schema.find(name)
    return field is not None and field.type.is_floating
