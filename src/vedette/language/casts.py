"""Casts between field types as in Spark's ANSI mode. A value that cannot be cast fails."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from vedette.data.schema import Type
from vedette.language.numerals import boolean_of, decimal_of, double_of, integer_of, rescale
from vedette.language.times import MICROS_PER_DAY, Zone, parse_date, parse_timestamp
from vedette.language.vectors import Mask, Vector, dtype_of, filler, map_distinct

_BITS = {"int": 32, "bigint": 64}


def cast(vector: Vector, from_: Type, to: Type, zone: str) -> Vector:
    """The vector in another type."""
    if from_ == to or (from_.name == "int" and to.name == "bigint"):
        return vector
    if from_.name == "null":
        return Vector(filler(to, len(vector)), np.zeros(len(vector), np.bool_), vector.failed, vector.lost)
    if from_.name == "string":
        return _from_string(vector, to, zone)
    if to.name == "string":
        return _to_string(vector, from_)
    if from_.name == "decimal":
        return _from_decimal(vector, from_, to)
    if to.name == "decimal":
        return fit(vector, vector.values.astype(object) * 10**to.scale, to)
    if from_.name == "double":
        return _from_double(vector, to)
    if from_.name == "date":
        return _date_to_timestamp(vector, zone)
    if from_.name == "timestamp":
        return vector.with_values(np.floor_divide(Zone(zone).to_locals(vector.values), MICROS_PER_DAY))
    values = vector.values
    if to.name == "int" and from_.name == "bigint":
        return vector.failing((values < -(2**31)) | (values >= 2**31))
    if to.name == "boolean":
        return vector.with_values(values != 0)
    return vector.with_values(values.astype(dtype_of(to)))


def fit(vector: Vector, unscaled: NDArray[Any], to: Type) -> Vector:
    """Unscaled decimals, as Python integers, in the physical form of their type; those that do not fit fail."""
    over = np.asarray(np.abs(unscaled) >= 10**to.precision, np.bool_) if len(unscaled) else np.zeros(0, np.bool_)
    if over.any():
        unscaled = np.where(over, 0, unscaled)
        vector = vector.failing(over)
    return vector.with_values(unscaled.astype(dtype_of(to)))


def rescaled(values: NDArray[Any], scale: int, to: int) -> NDArray[Any]:
    """Unscaled decimals at another scale, rounded half away from zero, as Python integers."""
    if scale == to:
        return values.astype(object)
    if scale < to:
        wide: NDArray[Any] = values.astype(object) * 10 ** (to - scale)
        return wide
    return np.array([rescale(value, scale, to) for value in values.tolist()], object)


def to_doubles(values: NDArray[Any], scale: int) -> NDArray[np.float64]:
    """Unscaled decimals as the nearest doubles."""
    unit = 10**scale
    if values.dtype != object and scale <= 22 and (len(values) == 0 or int(np.abs(values).max()) < 2**53):
        return values / float(unit)
    return np.array([value / unit for value in values.tolist()], np.float64)


def _from_string(vector: Vector, to: Type, zone: str) -> Vector:
    readers: dict[str, Any] = {
        "int": lambda text: integer_of(text, 32),
        "bigint": lambda text: integer_of(text, 64),
        "double": double_of,
        "decimal": lambda text: decimal_of(text, to),
        "boolean": boolean_of,
        "date": parse_date,
        "timestamp": lambda text: parse_timestamp(text, zone),
    }
    values, failed = map_distinct(vector.values, vector.usable, readers[to.name], dtype_of(to))
    return vector.with_values(values).failing(failed)


def _to_string(vector: Vector, from_: Type) -> Vector:
    values = vector.values
    if from_.name == "boolean":
        return vector.with_values(pc.if_else(pa.array(values), "true", "false").cast(pa.large_string()))
    if from_.name in ("int", "bigint"):
        return vector.with_values(pa.array(values).cast(pa.large_string()))
    write = _plain_decimal if from_.name == "decimal" else _plain_date
    usable = vector.usable.tolist()
    texts = [write(value, from_.scale) if ok else "" for value, ok in zip(values.tolist(), usable, strict=True)]
    return vector.with_values(pa.array(texts, pa.large_string()))


def _plain_decimal(unscaled: int, scale: int) -> str:
    digits = str(abs(unscaled)).rjust(scale + 1, "0")
    sign = "-" if unscaled < 0 else ""
    return f"{sign}{digits[:-scale]}.{digits[-scale:]}" if scale else f"{sign}{digits}"


def _plain_date(days: int, _: int) -> str:
    year, month, day = civil(days)
    shown = f"{year:04d}" if 0 <= year <= 9999 else f"+{year}" if year > 0 else f"-{-year:04d}"
    return f"{shown}-{month:02d}-{day:02d}"


def civil(days: int) -> tuple[int, int, int]:
    """Year, month and day of a day number, for any year."""
    import datetime as dt

    cycles, inside = divmod(days + 719_162, 146_097)
    date = dt.date.fromordinal(inside + 1)
    return date.year + 400 * cycles, date.month, date.day


def _from_decimal(vector: Vector, from_: Type, to: Type) -> Vector:
    values = vector.values
    if to.name == "decimal":
        if to.scale == from_.scale and to.precision >= from_.precision:
            return vector.with_values(values.astype(dtype_of(to)))
        return fit(vector, rescaled(values, from_.scale, to.scale), to)
    if to.name == "double":
        return vector.with_values(to_doubles(values, from_.scale))
    if to.name == "boolean":
        return vector.with_values(np.asarray(values != 0, np.bool_))
    unit = 10**from_.scale
    whole = np.array([abs(value) // unit * (-1 if value < 0 else 1) for value in values.tolist()], object)
    bits = _BITS[to.name]
    over = np.asarray((whole < -(2 ** (bits - 1))) | (whole >= 2 ** (bits - 1)), np.bool_)
    return vector.with_values(np.where(over, 0, whole).astype(np.int64)).failing(over)


def _from_double(vector: Vector, to: Type) -> Vector:
    values = vector.values
    if to.name == "boolean":
        return vector.with_values(values != 0)
    if to.name == "bigint":
        return _double_to_bigint(vector, values)
    with np.errstate(invalid="ignore"):
        fits: Mask = (np.floor(values) <= 2.0**31 - 1) & (np.ceil(values) >= -(2.0**31))
    return vector.with_values(np.where(fits, values, 0.0).astype(np.int64)).failing(~fits)


def _double_to_bigint(vector: Vector, values: NDArray[np.float64]) -> Vector:
    """Doubles truncated towards zero. NaN and doubles beyond 64 bits fail; 2^63 becomes the greatest bigint."""
    with np.errstate(invalid="ignore"):
        fits: Mask = (np.floor(values) <= 2.0**63) & (np.ceil(values) >= -(2.0**63))
    top = values == 2.0**63
    whole = np.where(fits & ~top, values, 0.0).astype(np.int64)
    return vector.with_values(np.where(top, 2**63 - 1, whole)).failing(~fits)


def _date_to_timestamp(vector: Vector, zone: str) -> Vector:
    instants = Zone(zone).midnights(np.where(vector.usable, vector.values, 0))
    if instants.dtype != object:
        return vector.with_values(instants)
    over = np.asarray((instants < -(2**63)) | (instants >= 2**63), np.bool_)
    return vector.with_values(np.where(over, 0, instants).astype(np.int64)).failing(over)
