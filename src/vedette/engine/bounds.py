"""Bounds as owners hold them, in arrays, read into boxes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vedette.boxes import CLOSED, OPEN, UNBOUNDED, BoxBlock, Nulls, Ranges
from vedette.errors import QueryError, RowError
from vedette.rows import read_values
from vedette.schema import Field, Schema

_ENDS = {"both": (CLOSED, CLOSED), "left": (CLOSED, OPEN), "right": (OPEN, CLOSED), "neither": (OPEN, OPEN)}


def read_bounds(
    bounds: Mapping[str, tuple[Any, Any]], closed: str, schema: Schema, time_zone: str, n_boxes: int
) -> list[BoxBlock]:
    """One box a query, `n_boxes` of them.

    An infinite or null bound is none; a field with neither is not constrained.
    """
    if closed not in _ENDS:
        raise QueryError(f"closed is one of {', '.join(_ENDS)}; got {closed!r}")
    low_end, high_end = _ENDS[closed]
    ranges = {}
    for name, pair in bounds.items():
        field = schema.find(name)
        if field is None:
            raise QueryError(schema.unknown_field(name))
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise QueryError(f"the bounds of field {name!r} are a pair: (lows, highs)")
        lows, low_ends = _read_side(pair[0], field, low_end, time_zone, n_boxes, is_low=True)
        highs, high_ends = _read_side(pair[1], field, high_end, time_zone, n_boxes, is_low=False)
        ranges[field.name] = Ranges(lows, highs, low_ends, high_ends)
    return _by_constrained_fields(ranges, n_boxes)


def _by_constrained_fields(ranges: dict[str, Ranges], n_boxes: int) -> list[BoxBlock]:
    queries = np.arange(n_boxes, dtype=np.int64)
    codes = np.zeros(n_boxes, np.int64)
    for each in ranges.values():
        codes = 2 * codes + ((each.low_ends != UNBOUNDED) | (each.high_ends != UNBOUNDED))
    full = 2 ** len(ranges) - 1
    if (codes == full).all():
        return [BoxBlock(queries, dict(ranges))] if n_boxes else []
    blocks = []
    for code in np.unique(codes).tolist():
        chosen = np.flatnonzero(codes == code)
        constrained = [name for place, name in enumerate(reversed(ranges)) if code >> place & 1]
        kept: dict[str, Ranges | Nulls] = {name: ranges[name].take(chosen) for name in ranges if name in constrained}
        blocks.append(BoxBlock(queries[chosen], kept))
    return blocks


def _read_side(
    values: Any, field: Field, end: int, time_zone: str, n_boxes: int, *, is_low: bool
) -> tuple[NDArray[Any], NDArray[np.int8]]:
    if np.ndim(values) == 0 and not isinstance(values, (pa.Array, pa.ChunkedArray)):
        values = [values] * n_boxes
    if len(values) != n_boxes:
        raise QueryError(f"field {field.name!r} has {len(values)} bounds but there are {n_boxes} ids")
    ends = np.full(n_boxes, end, np.int8)
    numbers = _as_floats(values, -np.inf if is_low else np.inf)
    if numbers is not None and field.type.name != "double":
        return _read_floats(numbers, field, ends, is_low=is_low)
    try:
        column = read_values(values, field, time_zone)
    except RowError as error:
        raise QueryError(f"a bound cannot be taken: {error}") from None
    read = column.values
    if column.valid is not None:
        ends[~column.valid] = UNBOUNDED
    if field.type.name == "string":
        return read.to_numpy(zero_copy_only=False), ends
    if field.type.name == "boolean":
        return read.astype(np.int64), ends
    if field.type.name == "double":
        _refuse_nan(read, field, column.valid)
        ends[np.isinf(read) & (read < 0 if is_low else read > 0)] = UNBOUNDED
    return read, ends


def _as_floats(values: Any, missing: float) -> NDArray[np.float64] | None:
    """The values as doubles, where they are floating numbers, with `missing` for null."""
    if isinstance(values, np.ndarray):
        return values.astype(np.float64) if np.issubdtype(values.dtype, np.floating) else None
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        return values.fill_null(missing).to_numpy() if pa.types.is_floating(values.type) else None
    if any(isinstance(value, float) for value in values):
        return np.array([missing if value is None else value for value in values], np.float64)
    return None


def _read_floats(
    numbers: NDArray[np.float64], field: Field, ends: NDArray[np.int8], *, is_low: bool
) -> tuple[NDArray[np.int64], NDArray[np.int8]]:
    """Floating bounds of an integer field: the nearest integers inside. One that no integer can meet leaves nothing."""
    if field.type.name != "bigint":
        raise QueryError(f"field {field.name!r} is {field.type}; its bounds cannot be floating numbers")
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
        raise QueryError(
            f"bound {place} of field {field.name!r} is NaN; use null or an infinity where there is no bound"
        )
