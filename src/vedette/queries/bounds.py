"""Reads arrays of bounds into boxes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vedette.data.boxes import CLOSED, OPEN, UNBOUNDED, BoxBlock, Nulls, Ranges
from vedette.data.rows import read_values
from vedette.data.schema import Field, Schema, Type
from vedette.errors import QueryError, RowError

_ENDS = {"both": (CLOSED, CLOSED), "left": (CLOSED, OPEN), "right": (OPEN, CLOSED), "neither": (OPEN, OPEN)}


def read_bounds(
    bounds: Mapping[str, tuple[Any, Any]], closed: str, schema: Schema, time_zone: str, n_boxes: int
) -> list[BoxBlock]:
    """One box for each of `n_boxes` queries.

    An infinite or null bound means unbounded.
    """
    if closed not in _ENDS:
        raise QueryError(f"closed must be one of {', '.join(_ENDS)}; got {closed!r}")
    if not isinstance(bounds, Mapping):
        raise QueryError(f"bounds must be a dict of pairs by field: (lows, highs); got {type(bounds).__name__}")
    low_end, high_end = _ENDS[closed]
    ranges: dict[str, Ranges] = {}
    for name, pair in bounds.items():
        field = schema.find(str(name))
        if field is None:
            raise QueryError(schema.unknown_field(str(name)), field=str(name))
        if field.name in ranges:
            raise QueryError(f"field {field.name!r} has bounds twice; names are compared ignoring case")
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise QueryError(f"the bounds of field {name!r} must be a pair: (lows, highs)")
        lows, low_ends = _read_side(pair[0], field, low_end, time_zone, n_boxes, is_low=True)
        highs, high_ends = _read_side(pair[1], field, high_end, time_zone, n_boxes, is_low=False)
        ranges[field.name] = Ranges(lows, highs, low_ends, high_ends)
    return _by_constrained_fields(ranges, n_boxes)


def _by_constrained_fields(ranges: dict[str, Ranges], n_boxes: int) -> list[BoxBlock]:
    queries = np.arange(n_boxes, dtype=np.int64)
    is_bound = {name: (each.low_ends != UNBOUNDED) | (each.high_ends != UNBOUNDED) for name, each in ranges.items()}
    if all(each.all() for each in is_bound.values()):
        return [BoxBlock(queries, dict(ranges))] if n_boxes else []
    alike = [queries]
    for each in is_bound.values():
        alike = [part for same in alike for part in (same[each[same]], same[~each[same]]) if len(part)]
    blocks = []
    for same in alike:
        kept: dict[str, Ranges | Nulls] = {name: ranges[name].take(same) for name in ranges if is_bound[name][same[0]]}
        blocks.append(BoxBlock(same, kept))
    return blocks


def _read_side(
    values: Any, field: Field, end: int, time_zone: str, n_boxes: int, *, is_low: bool
) -> tuple[NDArray[Any], NDArray[np.int8]]:
    if isinstance(values, (str, bytes)) or not hasattr(values, "__len__") or getattr(values, "ndim", 1) == 0:
        values = [values] * n_boxes
    if len(values) != n_boxes:
        raise QueryError(f"field {field.name!r} has {len(values)} bounds but there are {n_boxes} ids")
    ends = np.full(n_boxes, end, np.int8)
    try:
        numbers = None if field.type.is_floating else _as_floats(values, field, -np.inf if is_low else np.inf)
        if numbers is not None and field.type.is_integer:
            return _read_floats(numbers, field, ends, is_low=is_low)
        column = read_values(values if numbers is None else pa.nulls(n_boxes), field, time_zone)
    except RowError as error:
        raise QueryError(f"invalid bound: {error}") from None
    read = column.values
    if column.valid is not None:
        ends[~column.valid] = UNBOUNDED
    if field.type.is_text:
        return read.to_numpy(zero_copy_only=False), ends
    if field.type.name == "boolean":
        return read.astype(np.int64), ends
    if field.type.is_floating:
        _refuse_nan(read, field, column.valid)
        ends[np.isinf(read) & (read < 0 if is_low else read > 0)] = UNBOUNDED
    return read, ends


def _as_floats(values: Any, field: Field, none: float) -> NDArray[np.float64] | None:
    """Floating-point values as doubles, with the infinity `none` for null.

    If the field is not a number, or is a decimal, all values must be that infinity.
    """
    if isinstance(values, np.ndarray):
        if values.dtype.kind != "f":
            return None
    elif isinstance(values, (pa.Array, pa.ChunkedArray)):
        if not pa.types.is_floating(values.type):
            return None
    elif not any(isinstance(value, float) for value in values):
        return None
    column = read_values(values, Field(field.name, Type("double")), "UTC")
    numbers = column.values if column.valid is None else np.where(column.valid, column.values, none)
    if not field.type.is_integer and not (numbers == none).all():
        raise QueryError(f"field {field.name!r} is {field.type}; its bounds cannot be floating-point numbers")
    return np.asarray(numbers)


def _read_floats(
    numbers: NDArray[np.float64], field: Field, ends: NDArray[np.int8], *, is_low: bool
) -> tuple[NDArray[np.int64], NDArray[np.int8]]:
    """Floating-point bounds of an integer field: the nearest integers inside, or an empty range."""
    _refuse_nan(numbers, field, None)
    whole = np.ceil(numbers) if is_low else np.floor(numbers)
    ends[whole != numbers] = CLOSED
    above, below = whole >= 2.0**63, whole < -(2.0**63)
    ends[below if is_low else above] = UNBOUNDED
    ends[above if is_low else below] = OPEN
    read = np.where(above | below, 0.0, whole).astype(np.int64)
    limits = np.iinfo(np.int64)
    read[above], read[below] = limits.max, limits.min
    return read, ends


def _refuse_nan(numbers: NDArray[Any], field: Field, valid: NDArray[np.bool_] | None) -> None:
    nan = np.isnan(numbers)
    if valid is not None:
        nan &= valid
    if nan.any():
        place = int(np.flatnonzero(nan)[0])
        raise QueryError(f"bound {place} of field {field.name!r} is NaN; use null or an infinity for no bound")
