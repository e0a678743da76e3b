"""Values as strings, as Spark's cast writes them: numbers as Java does, times in the zone of the query set."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vedette.data.schema import Type
from vedette.language.times import MICROS_PER_DAY, MICROS_PER_SECOND, Zone, civil
from vedette.language.vectors import Vector

_PLAIN = range(-3, 7)  # the powers of ten that Java writes without an exponent


def to_text(vector: Vector, from_: Type, zone: str) -> Vector:
    """The vector as strings."""
    values = vector.values
    if from_.name == "boolean":
        return vector.with_values(pc.if_else(pa.array(values), "true", "false").cast(pa.large_string()))
    if from_.is_integer:
        return vector.with_values(pa.array(values).cast(pa.large_string()))
    if from_.name == "timestamp":
        values = Zone(zone).to_locals(values)
    write: dict[str, Callable[[Any], str]] = {
        "decimal": lambda unscaled: write_decimal(unscaled, from_.scale),
        "date": write_date,
        "timestamp": write_local_time,
        "timestamp_ntz": write_local_time,
        "double": write_double,
        "float": write_float,
    }
    return vector.with_values(_map_texts(values, vector.usable.tolist(), write[from_.name]))


def _map_texts(values: Any, usable: list[bool], write: Callable[[Any], str]) -> pa.LargeStringArray:
    known: dict[Any, str] = {}
    texts = []
    for value, ok in zip(values.tolist(), usable, strict=True):
        if not ok:
            texts.append("")
        elif value == 0 and isinstance(value, float):  # -0.0 and 0.0 are one key
            texts.append("-0.0" if np.signbit(value) else "0.0")
        else:
            text = known.get(value)
            if text is None:
                text = known[value] = write(value)
            texts.append(text)
    return pa.array(texts, pa.large_string())


def write_decimal(unscaled: int, scale: int) -> str:
    digits = str(abs(unscaled)).rjust(scale + 1, "0")
    sign = "-" if unscaled < 0 else ""
    return f"{sign}{digits[:-scale]}.{digits[-scale:]}" if scale else f"{sign}{digits}"


def write_double(value: float) -> str:
    """The shortest digits, but at least two, that read as the double, as Java's Double.toString places them."""
    return _write_floating(value, repr(value), np.float64)


def write_float(value: float) -> str:
    """The same for a float of 32 bits."""
    return _write_floating(value, str(np.float32(value)), np.float32)


def _write_floating(value: float, shortest: str, kind: type[np.floating[Any]]) -> str:
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    if sum(map(str.isdigit, shortest.partition("e")[0].strip("-0."))) < 2:
        two = f"{value:.1e}"  # of two digits the nearest
        shortest = two if kind(two) == kind(value) else shortest
    mantissa, _, exponent = shortest.lower().lstrip("-").partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    power = int(exponent or 0) + (len(whole) - 1 if whole.strip("0") else len(digits) - len(fraction) - 1)
    digits = digits.rstrip("0") or "0"
    sign = "-" if value < 0 else ""
    if power not in _PLAIN:
        return f"{sign}{digits[0]}.{digits[1:] or '0'}E{power}"
    if power < 0:
        return f"{sign}0.{'0' * (-power - 1)}{digits}"
    digits = digits.ljust(power + 1, "0")
    return f"{sign}{digits[: power + 1]}.{digits[power + 1 :] or '0'}"


def write_date(days: int) -> str:
    year, month, day = civil(days)
    shown = f"{year:04d}" if 0 <= year <= 9999 else f"+{year}" if year > 0 else f"-{-year:04d}"
    return f"{shown}-{month:02d}-{day:02d}"


def write_local_time(micros: int) -> str:
    """A local time, with as many digits of the second as it has."""
    days, rest = divmod(micros, MICROS_PER_DAY)
    seconds, fraction = divmod(rest, MICROS_PER_SECOND)
    shown = f".{fraction:06d}".rstrip("0") if fraction else ""
    return f"{write_date(days)} {seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}{shown}"
