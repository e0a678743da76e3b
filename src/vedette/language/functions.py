"""The functions of the language over vectors."""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from vedette.data.schema import Type
from vedette.language.arithmetic import absolute, negate
from vedette.language.casts import civil, fit, rescaled
from vedette.language.geofences import is_within
from vedette.language.numerals import rescale
from vedette.language.patterns import BadPatternError, matcher_of
from vedette.language.times import MICROS_PER_DAY, MICROS_PER_SECOND, Zone
from vedette.language.vectors import Vector, strict, text_vector

_EXACT = Context(prec=400)


def call(op: str, args: list[Vector], types: list[Type], type_: Type, value: object, zone: str) -> Vector:
    """A function that is null where one of its arguments is."""
    first = args[0]
    if op in ("abs", "negative"):
        return (absolute if op == "abs" else negate)(first, types[0])
    if op in _DOUBLE_FUNCTIONS:
        with np.errstate(all="ignore"):
            return first.with_values(_DOUBLE_FUNCTIONS[op](first.values))
    if op in ("floor", "ceil"):
        return _to_whole(op, first, types[0], type_)
    if op == "round":
        assert isinstance(value, int)
        return _round(first, types[0], type_, value)
    if op in ("year", "month", "day", "dayofweek"):
        return first.with_values(_date_part(op, first.values))
    if op in ("hour", "minute", "second"):
        return first.with_values(_time_part(op, Zone(zone).to_locals(first.values)))
    if op == "like":
        return _like(args[0], args[1], str(value))
    if op == "st_dwithin":
        x, y, centre_x, centre_y, radii = (arg.values for arg in args)
        margin = value if isinstance(value, float) else 0.0
        return strict(is_within(x, y, centre_x, centre_y, radii + margin), *args)
    return _text(op, args)


_DOUBLE_FUNCTIONS: dict[str, Callable[[NDArray[np.float64]], NDArray[Any]]] = {
    "sqrt": np.sqrt,
    "sign": lambda values: np.where(np.isnan(values), np.nan, np.sign(values)),
}


def _to_whole(op: str, vector: Vector, from_: Type, type_: Type) -> Vector:
    if from_.name == "double":
        whole = np.floor(vector.values) if op == "floor" else np.ceil(vector.values)
        with np.errstate(invalid="ignore"):
            over = (whole >= 2.0**63) | (whole < -(2.0**63))
        whole = np.where(over | np.isnan(whole), 0.0, whole)  # NaN becomes 0
        return vector.with_values(whole.astype(np.int64)).failing(over)
    if from_.name != "decimal":
        return vector
    unit = 10**from_.scale
    values = vector.values.astype(object)
    return fit(vector, values // unit if op == "floor" else -(-values // unit), type_)


_MOST_PLACES = 1100  # beyond them, on either side, no value has a digit


def _round(vector: Vector, from_: Type, type_: Type, places: int) -> Vector:
    """Rounded half away from zero."""
    places = max(-_MOST_PLACES, min(places, _MOST_PLACES))
    if from_.name == "decimal":
        if places < 0:
            whole = rescaled(vector.values, from_.scale + -places, 0) if from_.scale + -places else vector.values
            return fit(vector, whole.astype(object) * 10**-places, type_)
        return fit(vector, rescaled(vector.values, from_.scale, type_.scale), type_)
    if from_.name == "double":
        rounded = [_round_double(value, places) for value in vector.values.tolist()]
        return vector.with_values(np.array(rounded, np.float64))
    if places >= 0:
        return vector
    whole = np.array([rescale(value, -places, 0) * 10**-places for value in vector.values.tolist()], object)
    bits = 31 if from_.name == "int" else 63
    over = np.asarray((whole < -(2**bits)) | (whole >= 2**bits), np.bool_)
    return vector.with_values(np.where(over, 0, whole).astype(np.int64)).failing(over)


def _round_double(value: float, places: int) -> float:
    if value != value or value in (float("inf"), float("-inf")):
        return value
    exact = Decimal(repr(value))  # Spark rounds the shortest decimal that reads as the double
    exponent = exact.as_tuple().exponent
    if isinstance(exponent, int) and exponent >= -places:
        return value
    return float(exact.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP, _EXACT))


def _date_part(op: str, days: NDArray[np.int64]) -> NDArray[np.int64]:
    if op == "dayofweek":
        return (days + 4) % 7 + 1  # 1 is Sunday; 1970-01-01 was a Thursday
    place = ("year", "month", "day").index(op)
    distinct, back = np.unique(days, return_inverse=True)
    parts = np.array([civil(day)[place] for day in distinct.tolist()], np.int64)
    return parts[back]


def _time_part(op: str, local: NDArray[np.int64]) -> NDArray[np.int64]:
    seconds = np.floor_divide(local % MICROS_PER_DAY, MICROS_PER_SECOND)
    if op == "hour":
        return seconds // 3600
    return seconds // 60 % 60 if op == "minute" else seconds % 60


def _text(op: str, args: list[Vector]) -> Vector:
    first = args[0]
    texts: pa.Array = first.values
    if op == "length":
        return first.with_values(np.asarray(pc.utf8_length(texts.fill_null("")), np.int64))
    if op in ("lower", "upper"):
        changed = [getattr(text, op)() for text in texts.fill_null("").to_pylist()]
        return text_vector(changed, first)
    if op in ("trim", "ltrim", "rtrim"):
        trim = {"trim": pc.utf8_trim, "ltrim": pc.utf8_ltrim, "rtrim": pc.utf8_rtrim}[op]
        return first.with_values(trim(texts, characters=" "))
    lists = [_plain(arg) for arg in args]
    if op == "concat":
        return text_vector(["".join(parts) for parts in zip(*lists, strict=True)], *args)
    if op == "substring":
        return text_vector([_substring(*parts) for parts in zip(*lists, strict=True)], *args)
    tests: dict[str, Callable[[str, str], bool]] = {
        "startswith": str.startswith,
        "endswith": str.endswith,
        "contains": str.__contains__,
    }
    test = tests[op]
    return strict(np.fromiter((test(a, b) for a, b in zip(*lists, strict=True)), np.bool_, len(first)), *args)


def _plain(arg: Vector) -> list[Any]:
    if isinstance(arg.values, pa.Array):
        texts: list[Any] = arg.values.fill_null("").to_pylist()
        return texts
    return list(arg.values.tolist())


def _substring(text: str, place: int, length: int = 2**31 - 1) -> str:
    start = place - 1 if place > 0 else len(text) + place if place < 0 else 0
    end = min(start + length, 2**31 - 1)
    return text[max(start, 0) : max(end, 0)] if end > start else ""


def _like(texts: Vector, patterns: Vector, escape: str) -> Vector:
    known: dict[str, Any] = {}
    both = strict(None, texts, patterns)
    n = len(texts)
    kept, bad = np.zeros(n, np.bool_), np.zeros(n, np.bool_)
    for i, (text, pattern) in enumerate(zip(_plain(texts), _plain(patterns), strict=True)):
        if pattern not in known:
            try:
                known[pattern] = matcher_of(pattern, escape)
            except BadPatternError:
                known[pattern] = None
        match = known[pattern]
        bad[i] = match is None
        kept[i] = match is not None and match(text)
    return both.with_values(kept).failing(bad)
