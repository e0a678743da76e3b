"""The evaluators of functions over vectors. `function_table.py` lists the functions that use them.

An evaluator takes a `Call` and returns a vector. The result is null where an argument is null and failed where an
argument failed, unless the evaluator says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from vedette.data.schema import Type
from vedette.language.arithmetic import absolute, negate
from vedette.language.casts import civil, fit, rescaled
from vedette.language.comparison import compare
from vedette.language.expressions import Typed
from vedette.language.geofences import is_within
from vedette.language.numerals import rescale
from vedette.language.patterns import BadPatternError, matcher_of
from vedette.language.times import MICROS_PER_DAY, MICROS_PER_SECOND, Zone
from vedette.language.vectors import Vector, choose, join, strict, text_vector

_EXACT = Context(prec=400)


class Call(NamedTuple):
    """A call of a function: its evaluated arguments, its node in the tree, and the time zone of the query set."""

    args: list[Vector]
    node: Typed
    zone: str

    @property
    def first(self) -> Vector:
        return self.args[0]

    @property
    def first_type(self) -> Type:
        return self.node.args[0].type


Evaluator = Callable[[Call], Vector]


# -- numbers


def absolute_value(call: Call) -> Vector:
    return absolute(call.first, call.first_type)


def negated(call: Call) -> Vector:
    return negate(call.first, call.first_type)


def doubles(function: Callable[[NDArray[np.float64]], NDArray[Any]]) -> Evaluator:
    """A function of an array of doubles."""

    def evaluate(call: Call) -> Vector:
        with np.errstate(all="ignore"):
            return call.first.with_values(function(call.first.values))

    return evaluate


square_root = doubles(np.sqrt)
sign = doubles(lambda values: np.where(np.isnan(values), np.nan, np.sign(values)))


def is_nan(call: Call) -> Vector:
    """False for null, not null."""
    inner = call.first
    return Vector(np.isnan(inner.values) & ~inner.nulls, None, inner.failed, inner.lost)


def floor(call: Call) -> Vector:
    return _to_whole("floor", call.first, call.first_type, call.node.type)


def ceiling(call: Call) -> Vector:
    return _to_whole("ceil", call.first, call.first_type, call.node.type)


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


def rounded(call: Call) -> Vector:
    """The value of the node is the number of places."""
    assert isinstance(call.node.value, int)
    return _round(call.first, call.first_type, call.node.type, call.node.value)


_MAX_PLACES = 1100  # no value has more digits, before or after the point


def _round(vector: Vector, from_: Type, type_: Type, places: int) -> Vector:
    """Rounded half away from zero."""
    places = max(-_MAX_PLACES, min(places, _MAX_PLACES))
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


# -- dates and times


def date_part(name: str) -> Evaluator:
    """The year, month or day of dates."""
    place = ("year", "month", "day").index(name)

    def evaluate(call: Call) -> Vector:
        distinct, back = np.unique(call.first.values, return_inverse=True)
        parts = np.array([civil(day)[place] for day in distinct.tolist()], np.int64)
        return call.first.with_values(parts[back])

    return evaluate


def day_of_week(call: Call) -> Vector:
    return call.first.with_values((call.first.values + 4) % 7 + 1)  # 1 is Sunday; 1970-01-01 was a Thursday


def hour(call: Call) -> Vector:
    return call.first.with_values(_local_seconds(call) // 3600)


def minute(call: Call) -> Vector:
    return call.first.with_values(_local_seconds(call) // 60 % 60)


def second(call: Call) -> Vector:
    return call.first.with_values(_local_seconds(call) % 60)


def _local_seconds(call: Call) -> NDArray[np.int64]:
    """Seconds since midnight in the time zone of the set."""
    local = Zone(call.zone).to_locals(call.first.values)
    return np.floor_divide(local % MICROS_PER_DAY, MICROS_PER_SECOND)


# -- strings


def text_function(function: Callable[..., str]) -> Evaluator:
    """A Python function of the arguments that returns a string, called for each pair."""

    def evaluate(call: Call) -> Vector:
        return text_vector([function(*each) for each in _each(call)], *call.args)

    return evaluate


def text_test(function: Callable[..., bool]) -> Evaluator:
    """A Python function of the arguments that returns a boolean, called for each pair."""

    def evaluate(call: Call) -> Vector:
        return strict(np.fromiter((function(*each) for each in _each(call)), np.bool_, len(call.first)), *call.args)

    return evaluate


def length(call: Call) -> Vector:
    return call.first.with_values(np.asarray(pc.utf8_length(call.first.values.fill_null("")), np.int64))


def trim(call: Call) -> Vector:
    return call.first.with_values(pc.utf8_trim(call.first.values, characters=" "))


def left_trim(call: Call) -> Vector:
    return call.first.with_values(pc.utf8_ltrim(call.first.values, characters=" "))


def right_trim(call: Call) -> Vector:
    return call.first.with_values(pc.utf8_rtrim(call.first.values, characters=" "))


concat = text_function(lambda *parts: "".join(parts))


def _substring(text: str, place: int, length: int = 2**31 - 1) -> str:
    start = place - 1 if place > 0 else len(text) + place if place < 0 else 0
    end = min(start + length, 2**31 - 1)
    return text[max(start, 0) : max(end, 0)] if end > start else ""


substring = text_function(_substring)


def _each(call: Call) -> Any:
    """The arguments of each pair as Python values; null is an empty string or 0."""
    return zip(*(_plain(arg) for arg in call.args), strict=True)


def _plain(arg: Vector) -> list[Any]:
    if isinstance(arg.values, pa.Array):
        texts: list[Any] = arg.values.fill_null("").to_pylist()
        return texts
    return list(arg.values.tolist())


def like(call: Call) -> Vector:
    """The value of the node is the escape character. A pattern that is not valid fails."""
    known: dict[str, Any] = {}
    n = len(call.first)
    kept, bad = np.zeros(n, np.bool_), np.zeros(n, np.bool_)
    for i, (text, pattern) in enumerate(_each(call)):
        if pattern not in known:
            try:
                known[pattern] = matcher_of(pattern, str(call.node.value))
            except BadPatternError:
                known[pattern] = None
        match = known[pattern]
        bad[i] = match is None
        kept[i] = match is not None and match(text)
    return strict(kept, *call.args).failing(bad)


# -- nulls and choices


def is_null(call: Call) -> Vector:
    return Vector(call.first.nulls, None, call.first.failed, call.first.lost)


def nullif(call: Call) -> Vector:
    """The arguments are whether both are equal, and the first."""
    equal, value = call.args[0].settled(), call.args[1]
    hit = equal.values & equal.usable
    return Vector(value.values, ~value.nulls & ~hit, value.failed, join(equal.lost, value.lost))


def coalesce(call: Call) -> Vector:
    """An argument after the first that is not null does not fail."""
    first = call.first
    values, valid, failed, lost = first.values, ~first.nulls, first.failed, first.lost
    for arg in call.args[1:]:
        open_ = ~valid if failed is None else ~valid & ~failed
        values = choose(call.node.type, valid, values, arg.values)
        if arg.failed is not None:
            failed = join(failed, arg.failed & open_)
        if arg.lost is not None:
            lost = join(lost, arg.lost & open_)
        valid = valid | (open_ & ~arg.nulls)
    return Vector(values, valid, failed, lost)


def least(call: Call) -> Vector:
    return _extreme(call, "<")


def greatest(call: Call) -> Vector:
    return _extreme(call, ">")


def _extreme(call: Call, better: str) -> Vector:
    """The least or greatest argument, ignoring nulls."""
    best, valid = call.first.values, ~call.first.nulls
    for arg in call.args[1:]:
        order = compare(better, Vector(arg.values), Vector(best), call.node.type)
        is_better = ~arg.nulls & (~valid | order.values)
        best = choose(call.node.type, is_better, arg.values, best)
        valid = valid | ~arg.nulls
    whole = strict(best, *call.args)
    return Vector(best, valid, whole.failed, whole.lost)


# -- geofences


def is_in_circle(call: Call) -> Vector:
    """The arguments are x, y, and the circle's x, y and radius; the value of the node is a margin around it."""
    x, y, centre_x, centre_y, radii = (arg.values for arg in call.args)
    margin = call.node.value if isinstance(call.node.value, float) else 0.0
    return strict(is_within(x, y, centre_x, centre_y, radii + margin), *call.args)
