"""Casts between types as in Spark's ANSI mode. A value that cannot be cast fails."""

from __future__ import annotations

from decimal import Context, Decimal
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vedette.data.columns import text_of_bytes
from vedette.data.schema import INTEGER_BITS, NUMBER_NAMES, Type
from vedette.language.casts_to_text import to_text
from vedette.language.expressions import BIGINT, DOUBLE
from vedette.language.numerals import (
    boolean_of,
    decimal_of,
    double_of,
    float_of,
    integer_of,
    rescale,
    round_to_float,
)
from vedette.language.times import (
    MICROS_PER_DAY,
    MICROS_PER_SECOND,
    Zone,
    parse_date,
    parse_local_time,
    parse_timestamp,
)
from vedette.language.vectors import Mask, Vector, dtype_of, filler, map_distinct

_EXACT, _JAVA = Context(prec=80), Context(prec=34)  # Java rounds products to 34 digits
_MICROS = Decimal(MICROS_PER_SECOND)
_NUMBERS = ("boolean", *NUMBER_NAMES)
_TIMES = ("date", "timestamp", "timestamp_ntz")
# From -> to: the casts that Spark allows in ANSI mode. Null can be cast to every type.
CASTS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(NUMBER_NAMES, (*_NUMBERS, "string", "timestamp")),
    "boolean": (*_NUMBERS, "string"),
    "string": (*_NUMBERS, "string", "binary", *_TIMES),
    "binary": ("binary", "string"),
    "date": (*_TIMES, "string"),
    "timestamp": (*_TIMES, "string", *NUMBER_NAMES),
    "timestamp_ntz": (*_TIMES, "string"),
    "interval day": ("interval day to second",),
}


def cast(vector: Vector, from_: Type, to: Type, zone: str) -> Vector:
    """The vector in another type."""
    if from_ == to or from_.name == "interval day":
        return vector
    if from_ == to or (from_.is_integer and to.is_integer and INTEGER_BITS[to.name] >= INTEGER_BITS[from_.name]):
        return vector
    if from_.name == "null":
        return Vector(filler(to, len(vector)), np.zeros(len(vector), np.bool_), vector.failed, vector.lost)
    if from_.is_text and to.is_text:
        return _to_bytes(vector) if to.name == "binary" else _from_bytes(vector)
    if from_.name == "string":
        return _from_string(vector, to, zone)
    if to.name == "string":
        return to_text(vector, from_, zone)
    if to.name == "timestamp_ntz":
        return _to_local_time(vector, from_, zone)
    if from_.name == "timestamp_ntz":
        return _from_local_time(vector, to, zone)
    if to.name == "timestamp":
        return _to_timestamp(vector, from_, zone)
    if from_.name == "timestamp":
        return _from_timestamp(vector, to, zone)
    if from_.name == "decimal":
        return _from_decimal(vector, from_, to)
    if from_.is_floating:
        return _from_floating(vector, to)
    if to.name == "decimal":
        return fit(vector, vector.values.astype(object) * 10**to.scale, to)
    if to.name == "boolean":
        return vector.with_values(vector.values != 0)
    if to.name == "float":
        return vector.with_values(to_floats(vector.values))
    if to.is_integer and from_.is_integer:
        return narrowed(vector, to)
    return vector.with_values(vector.values.astype(dtype_of(to)))


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


def to_floats(values: NDArray[Any]) -> NDArray[np.float64]:
    """Integers or doubles rounded to 32 bits, as doubles."""
    with np.errstate(over="ignore"):
        return values.astype(np.float32).astype(np.float64)


def narrowed(vector: Vector, to: Type) -> Vector:
    """Integers, of any size, that fit into an integer type; others fail."""
    values, end = vector.values, 1 << (INTEGER_BITS[to.name] - 1)
    over = np.asarray((values < -end) | (values >= end), np.bool_)
    if values.dtype == object:
        vector = vector.with_values(np.where(over, 0, values).astype(np.int64))
    return vector.failing(over)


def _to_bytes(vector: Vector) -> Vector:
    """Strings as their bytes in UTF-8."""
    return vector.with_values(text_of_bytes(vector.values.fill_null("").cast(pa.large_binary())))


def _from_bytes(vector: Vector) -> Vector:
    """Bytes read as UTF-8. Others fail: strings of Spark may hold them, but ours are text."""
    values, failed = map_distinct(vector.values, vector.usable, _decode, object)
    texts = [text if isinstance(text, str) else "" for text in values.tolist()]
    return vector.with_values(pa.array(texts, pa.large_string())).failing(failed)


def _decode(characters: str) -> str | None:
    try:
        return characters.encode("latin-1").decode()
    except UnicodeDecodeError:
        return None


def _from_string(vector: Vector, to: Type, zone: str) -> Vector:
    readers: dict[str, Any] = {
        **{name: partial(integer_of, bits=bits) for name, bits in INTEGER_BITS.items()},
        "double": double_of,
        "float": float_of,
        "decimal": lambda text: decimal_of(text, to),
        "boolean": boolean_of,
        "date": parse_date,
        "timestamp": lambda text: parse_timestamp(text, zone),
        "timestamp_ntz": parse_local_time,
    }
    values, failed = map_distinct(vector.values, vector.usable, readers[to.name], dtype_of(to))
    return vector.with_values(values).failing(failed)


def _from_decimal(vector: Vector, from_: Type, to: Type) -> Vector:
    values = vector.values
    if to.name == "decimal":
        if to.scale == from_.scale and to.precision >= from_.precision:
            return vector.with_values(values.astype(dtype_of(to)))
        return fit(vector, rescaled(values, from_.scale, to.scale), to)
    if to.name == "boolean":
        return vector.with_values(np.asarray(values != 0, np.bool_))
    if to.is_floating:
        doubles = to_doubles(values, from_.scale)
        if to.name == "float":
            exact = [partial(_decimal, value, from_.scale) for value in values.tolist()]
            doubles = np.array(
                [round_to_float(*each) for each in zip(doubles.tolist(), exact, strict=True)], np.float64
            )
        return vector.with_values(doubles)
    unit = 10**from_.scale
    whole = [abs(value) // unit * (-1 if value < 0 else 1) for value in values.tolist()]
    return narrowed(vector.with_values(as_objects(whole)), to)


def _decimal(unscaled: int, scale: int) -> Decimal:
    return Decimal(unscaled).scaleb(-scale, _EXACT)


def _from_floating(vector: Vector, to: Type) -> Vector:
    values = vector.values
    if to.name == "double":
        return vector
    if to.name == "float":
        return vector.with_values(to_floats(values))
    if to.name == "boolean":
        return vector.with_values(values != 0)
    if to.name == "decimal":
        return _floating_to_decimal(vector, to)
    if to.name == "bigint":
        return _floating_to_bigint(vector)
    end = 2.0 ** (INTEGER_BITS[to.name] - 1)
    with np.errstate(invalid="ignore"):
        fits: Mask = (np.floor(values) <= end - 1) & (np.ceil(values) >= -end)
    return vector.with_values(np.where(fits, values, 0.0).astype(np.int64)).failing(~fits)


def _floating_to_bigint(vector: Vector) -> Vector:
    """Doubles truncated towards zero. NaN and doubles beyond 64 bits fail; 2^63 becomes the greatest bigint."""
    values = vector.values
    with np.errstate(invalid="ignore"):
        fits: Mask = (np.floor(values) <= 2.0**63) & (np.ceil(values) >= -(2.0**63))
    top = values == 2.0**63
    whole = np.where(fits & ~top, values, 0.0).astype(np.int64)
    return vector.with_values(np.where(top, 2**63 - 1, whole)).failing(~fits)


def _floating_to_decimal(vector: Vector, to: Type) -> Vector:
    """Doubles by their shortest decimal digits. NaN and the infinities become null, as in Spark."""
    finite = np.isfinite(vector.values)
    top = 10**to.precision

    def read(value: float) -> int | None:
        sign, digits, exponent = Decimal(repr(value)).as_tuple()
        assert isinstance(exponent, int)
        if len(digits) + exponent > to.precision - to.scale + 1:
            return None
        unscaled = rescale(int("".join(map(str, digits))), -exponent, to.scale) if -exponent < 400 else 0
        return None if unscaled >= top else -unscaled if sign else unscaled

    values, failed = map_distinct(vector.values, vector.usable & finite, read, dtype_of(to))
    return Vector(values, ~vector.nulls & finite, vector.failed, vector.lost).failing(failed)


def _to_timestamp(vector: Vector, from_: Type, zone: str) -> Vector:
    """Dates are midnights, numbers are seconds since 1970."""
    values = vector.values
    if from_.name == "date":
        instants = Zone(zone).midnights(np.where(vector.usable, values, 0))
        return narrowed(vector.with_values(instants), BIGINT)
    if from_.is_integer:
        micros = values.astype(object) * MICROS_PER_SECOND  # Spark stops at the last microsecond
        return vector.with_values(np.clip(micros, -(2**63), 2**63 - 1).astype(np.int64))
    if from_.name == "decimal":
        whole = [int(_JAVA.multiply(_decimal(value, from_.scale), _MICROS)) for value in values.tolist()]
        wrapped = [(micros + 2**63) % 2**64 - 2**63 for micros in whole]  # Spark takes the lowest 64 bits
        return vector.with_values(np.array(wrapped, np.int64))
    with np.errstate(over="ignore", invalid="ignore"):
        return _floating_to_bigint(vector.with_values(values * float(MICROS_PER_SECOND)))


def _from_timestamp(vector: Vector, to: Type, zone: str) -> Vector:
    values = vector.values
    if to.name == "date":
        return vector.with_values(np.floor_divide(Zone(zone).to_locals(values), MICROS_PER_DAY))
    if to.is_integer:
        return narrowed(vector.with_values(np.floor_divide(values, MICROS_PER_SECOND)), to)
    return cast(vector.with_values(values / float(MICROS_PER_SECOND)), DOUBLE, to, zone)


def _to_local_time(vector: Vector, from_: Type, zone: str) -> Vector:
    """Dates are midnights, instants are local times in the zone."""
    if from_.name == "date":
        return narrowed(vector.with_values(Zone("UTC").midnights(np.where(vector.usable, vector.values, 0))), BIGINT)
    return vector.with_values(Zone(zone).to_locals(vector.values))


def _from_local_time(vector: Vector, to: Type, zone: str) -> Vector:
    if to.name == "date":
        return vector.with_values(np.floor_divide(vector.values, MICROS_PER_DAY))
    return vector.with_values(Zone(zone).from_locals(vector.values))


def as_objects(values: list[int]) -> NDArray[Any]:
    made = np.empty(len(values), object)
    made[:] = values
    return made
