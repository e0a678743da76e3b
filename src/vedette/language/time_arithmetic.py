"""Arithmetic of dates, timestamps and intervals: typing rules as Spark's, and evaluators.

An interval of days and times that is added to a timestamp moves it by calendar days first, in the time zone of the set,
and then by the exact rest: `ts + INTERVAL 24 HOURS` is the same local time on the next day. The difference of two
timestamps is that of their local times.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vedette.data.schema import Type
from vedette.language.calendar import add_exactly, add_months, move_days, move_months
from vedette.language.expressions import (
    BIGINT,
    DATE,
    DAY_INTERVAL,
    DOUBLE,
    INTERVALS,
    MONTH_INTERVAL,
    NULL,
    STRING,
    TIME_INTERVAL,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Typed,
    Written,
)
from vedette.language.functions.function import Call, Evaluator
from vedette.language.times import MICROS_PER_DAY, MICROS_PER_SECOND, Zone
from vedette.language.types import NUMERIC, common_type
from vedette.language.vectors import Mask, Vector, strict

if TYPE_CHECKING:
    from vedette.language.analysis import Analyser

_STAMPS = (TIMESTAMP, TIMESTAMP_NTZ)
_TIMES = (DATE, *_STAMPS, *INTERVALS)
_SMALL_INTEGERS = ("int", "smallint", "tinyint")

# -- typing rules


def type_time_arithmetic(analyser: Analyser, node: Written, op: str, left: Typed, right: Typed) -> Typed | None:
    """A calculation with dates, timestamps or intervals; None if neither operand is one."""
    if left.type not in _TIMES and right.type not in _TIMES:
        return None
    found = _typed(analyser, node, op, left, right)
    if found is None:
        shown = f"{analyser.shown(left)} {op} {analyser.shown(right)}"
        analyser.refuse(node, f"{shown} is not supported{_hint(left, right)}")
    return found


def _hint(left: Typed, right: Typed) -> str:
    types = {left.type, right.type}
    if STRING in types:
        return "; cast the string to a date, a timestamp or a number"
    if DATE in types:
        return "; a date takes days as an int or as an interval, as in day + 3 or day - INTERVAL 3 DAYS"
    if types & {*_STAMPS}:
        return "; a timestamp takes an interval, as in ts - INTERVAL 5 MINUTES"
    return "; an interval takes an interval of its kind, or is multiplied or divided by a number"


def _typed(analyser: Analyser, node: Written, op: str, left: Typed, right: Typed) -> Typed | None:
    if op == "+":
        if right.type not in INTERVALS and (left.type in INTERVALS or right.type == DATE):
            left, right = right, left  # the same with the time first
        return _sum(analyser, node, left, right)
    if op == "-":
        return _difference(analyser, node, left, right)
    if op == "*":
        interval, number = (left, right) if left.type in INTERVALS else (right, left)
        return _scaled(analyser, node, "interval * number", interval, number)
    if op == "/":
        return _scaled(analyser, node, "interval / number", left, right)
    if op == "div" and left.type in INTERVALS and right.type in INTERVALS:
        to = common_type([left.type, right.type])
        return None if to is None else analyser.made(node, op, BIGINT, *_cast_both(analyser, node, left, right, to))
    return None


def _cast_both(analyser: Analyser, node: Written, left: Typed, right: Typed, to: Type) -> tuple[Typed, Typed]:
    return analyser.cast(node, left, to), analyser.cast(node, right, to)


def _null(analyser: Analyser, node: Written, null: Typed, type_: Type) -> Typed:
    return analyser.cast(node, null, type_)


def _sum(analyser: Analyser, node: Written, left: Typed, right: Typed) -> Typed | None:
    if NULL in (left.type, right.type):
        null, other = (left, right) if left.type == NULL else (right, left)
        return _null(analyser, node, null, TIMESTAMP if other.type == DATE else other.type)
    if left.type in INTERVALS:
        to = common_type([left.type, right.type])
        return None if to is None else analyser.made(node, "+", to, *_cast_both(analyser, node, left, right, to))
    return _moved(analyser, node, "+", left, right)


def _moved(analyser: Analyser, node: Written, op: str, left: Typed, right: Typed) -> Typed | None:
    """A date or timestamp plus or minus an interval or a number of days."""
    if left.type == DATE and right.type.name in _SMALL_INTEGERS:
        return analyser.made(node, f"date {op} days", DATE, left, right)
    if left.type == DATE and right.type == DAY_INTERVAL:
        return analyser.made(node, f"date {op} interval", DATE, left, right)
    if left.type == DATE and right.type == MONTH_INTERVAL:
        return analyser.made(node, f"date {op} months", DATE, left, right)
    if left.type not in (DATE, *_STAMPS) or right.type not in INTERVALS:
        return None
    what = "months" if right.type == MONTH_INTERVAL else "interval"
    to = TIMESTAMP if left.type == DATE else left.type
    return analyser.made(node, f"{to} {op} {what}", to, analyser.cast(node, left, to), right)


def _difference(analyser: Analyser, node: Written, left: Typed, right: Typed) -> Typed | None:
    if right.type in INTERVALS:
        if left.type == NULL:
            return _null(analyser, node, left, right.type)
        if left.type in INTERVALS:
            to = common_type([left.type, right.type])
            return None if to is None else analyser.made(node, "-", to, *_cast_both(analyser, node, left, right, to))
        return _moved(analyser, node, "-", left, right)
    if left.type in INTERVALS:
        return _null(analyser, node, right, left.type) if right.type == NULL else None
    if left.type == DATE and right.type.name in _SMALL_INTEGERS:
        return _moved(analyser, node, "-", left, right)
    types = (left.type, right.type)
    of = TIMESTAMP_NTZ if TIMESTAMP_NTZ in types else TIMESTAMP if TIMESTAMP in types else DATE
    if any(side.type not in (DATE, *_STAMPS, STRING, NULL) for side in (left, right)):
        return None
    sides = _cast_both(analyser, node, left, right, of)
    if of == DATE:
        return analyser.made(node, "date - date", DAY_INTERVAL, *sides)
    return analyser.made(node, "timestamp - timestamp", TIME_INTERVAL, *sides)


def _scaled(analyser: Analyser, node: Written, op: str, interval: Typed, number: Typed) -> Typed | None:
    if interval.type not in INTERVALS or (number.type not in (STRING, NULL) and number.type.name not in NUMERIC):
        return None
    if number.type in (STRING, NULL) or number.type.name == "float":
        number = analyser.cast(node, number, DOUBLE)
    analyser.need_sizes(number)
    to = MONTH_INTERVAL if interval.type == MONTH_INTERVAL else TIME_INTERVAL
    return analyser.made(node, op, to, interval, number)


# -- evaluators


def _sign_of(call: Call) -> int:
    return -1 if " - " in call.node.op else 1


def _whole_days(micros: NDArray[np.int64]) -> NDArray[np.int64]:
    """Days, truncated towards zero."""
    days: NDArray[np.int64] = np.floor_divide(micros, MICROS_PER_DAY)
    return np.asarray(days + ((days < 0) & (days * MICROS_PER_DAY != micros)), np.int64)


def wrap_date(days: NDArray[np.int64]) -> NDArray[np.int64]:
    """Days in 32 bits: unlike other sums, Spark does not check these."""
    return (days + 2**31) % 2**32 - 2**31


def move_date_by_days(call: Call) -> Vector:
    return strict(wrap_date(call.first.values + call.args[1].values * _sign_of(call)), *call.args)


def move_date_by_interval(call: Call) -> Vector:
    moved = call.first.values + _sign_of(call) * _whole_days(call.args[1].values)
    return strict(wrap_date(moved), *call.args)


def move_date_by_months(call: Call) -> Vector:
    return _checked_dates(call, add_months(call.first.values, _sign_of(call) * call.args[1].values))


def _checked_dates(call: Call, days: NDArray[np.int64]) -> Vector:
    return strict(days, *call.args).failing((days < -(2**31)) | (days >= 2**31))


def move_timestamp_by_interval(call: Call) -> Vector:
    """By calendar days, then by the rest."""
    micros, bottom = call.args[1].values, None
    if _sign_of(call) < 0:
        bottom = micros == -(2**63)
        micros = -np.where(bottom, 0, micros)
    days = _whole_days(micros)
    moved, over = move_days(call.first.values, days, Zone(call.zone))
    found, beyond = add_exactly(moved, micros - days * MICROS_PER_DAY)
    over = over | beyond
    return strict(found, *call.args).failing(over if bottom is None else over | bottom)


def move_timestamp_by_months(call: Call) -> Vector:
    found, over = move_months(call.first.values, _sign_of(call) * call.args[1].values, Zone(call.zone))
    return strict(found, *call.args).failing(over)


def subtract_dates(call: Call) -> Vector:
    days = call.first.values - call.args[1].values
    over = np.abs(days) > 2**63 // MICROS_PER_DAY
    return strict(np.where(over, 0, days) * MICROS_PER_DAY, *call.args).failing(over)


def subtract_timestamps(call: Call) -> Vector:
    """The difference of the local times."""
    ends, starts = (arg.values for arg in call.args)
    with np.errstate(over="ignore"):
        micros = ends - starts
    over = ((ends ^ starts) & (ends ^ micros)) < 0
    zone = Zone(call.zone)
    if not zone.is_utc:
        shift = (zone.offsets(ends) - zone.offsets(starts)) * MICROS_PER_SECOND
        micros, beyond = add_exactly(micros, shift)
        over = over | beyond
    return strict(micros, *call.args).failing(over)


def multiply_interval(call: Call) -> Vector:
    return _scale(call, lambda amount, number, scale: _round_ratio(amount * number, 10**scale), np.multiply)


def divide_interval(call: Call) -> Vector:
    zero = np.asarray(call.args[1].values == 0, np.bool_)
    number = call.args[1].with_values(np.where(zero, 1, call.args[1].values))
    safe = Call([call.first, number], call.node, call.zone)
    result = _scale(safe, lambda amount, number, scale: _round_ratio(amount * 10**scale, number), np.divide)
    return result.failing(zero)


def _scale(call: Call, exact: Any, in_doubles: Any) -> Vector:
    """An interval times a number or divided by it, rounded half away from zero."""
    interval, number = call.args
    type_, bits = call.node.args[1].type, 31 if call.node.type == MONTH_INTERVAL else 63
    if type_.name in ("double", "float"):
        with np.errstate(all="ignore"):
            scaled = in_doubles(interval.values.astype(np.float64), number.values)
            near = np.rint(scaled)
            near = np.where(np.abs(scaled - near) == 0.5, scaled + np.copysign(0.5, scaled), near)
            fits: Mask = (near >= -(2.0**bits)) & (near < 2.0**bits)
        return strict(np.where(fits, near, 0.0).astype(np.int64), *call.args).failing(~fits)
    pairs = zip(interval.values.tolist(), number.values.tolist(), strict=True)
    whole = np.array([exact(amount, int(value), type_.scale) for amount, value in pairs] or [0], object)
    whole = whole[: len(interval)]
    over = np.asarray((whole < -(2**bits)) | (whole >= 2**bits), np.bool_)
    return strict(np.where(over, 0, whole).astype(np.int64), *call.args).failing(over)


def _round_ratio(numerator: int, denominator: int) -> int:
    """Half away from zero."""
    whole = (2 * abs(numerator) + abs(denominator)) // (2 * abs(denominator))
    return -whole if (numerator < 0) != (denominator < 0) else whole


# The operators in trees, with their evaluators. All have two operands.
OPERATORS: dict[str, Evaluator] = {
    **{f"date {sign} days": move_date_by_days for sign in "+-"},
    **{f"date {sign} interval": move_date_by_interval for sign in "+-"},
    **{f"date {sign} months": move_date_by_months for sign in "+-"},
    **{f"{type_} {sign} interval": move_timestamp_by_interval for sign in "+-" for type_ in _STAMPS},
    **{f"{type_} {sign} months": move_timestamp_by_months for sign in "+-" for type_ in _STAMPS},
    "date - date": subtract_dates,
    "timestamp - timestamp": subtract_timestamps,
    "interval * number": multiply_interval,
    "interval / number": divide_interval,
}
