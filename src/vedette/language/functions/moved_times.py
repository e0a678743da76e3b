"""Functions that move dates and timestamps, truncate them, or count between them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vedette.data.schema import Type
from vedette.language.calendar import (
    Dates,
    add_exactly,
    add_months,
    dates_of,
    days_of_dates,
    month_lengths,
    move_days,
    move_months,
    to_instants,
)
from vedette.language.expressions import BIGINT, BOOLEAN, DATE, DOUBLE, INT, TIMESTAMP, Typed, Written
from vedette.language.functions.function import Call, Function
from vedette.language.functions.time_arguments import as_days, as_own_timestamp, as_type, takes
from vedette.language.functions.times import weekdays_of
from vedette.language.time_arithmetic import wrap_date
from vedette.language.time_patterns import WEEKDAYS
from vedette.language.times import MICROS_PER_DAY, MICROS_PER_SECOND, Zone
from vedette.language.vectors import Vector, strict

if TYPE_CHECKING:
    from vedette.language.analysis import Analyser

Integers = NDArray[np.int64]
_MICROS = {
    "microsecond": 1,
    "millisecond": 1000,
    "second": MICROS_PER_SECOND,
    "minute": 60 * MICROS_PER_SECOND,
    "hour": 3600 * MICROS_PER_SECOND,
    "day": MICROS_PER_DAY,
    "week": 7 * MICROS_PER_DAY,
}
_MONTHS = {"month": 1, "quarter": 3, "year": 12}
UNITS = (*_MICROS, *_MONTHS)

# -- dates


def add_days(call: Call) -> Vector:
    return strict(wrap_date(call.first.values + call.args[1].values), *call.args)


def subtract_days(call: Call) -> Vector:
    return strict(wrap_date(call.first.values - call.args[1].values), *call.args)


def months_added(call: Call) -> Vector:
    return _dates(call, add_months(call.first.values, call.args[1].values))


def _dates(call: Call, days: Integers) -> Vector:
    return strict(days, *call.args).failing((days < -(2**31)) | (days >= 2**31))


def count_days(call: Call) -> Vector:
    days = call.first.values - call.args[1].values
    return strict(days, *call.args).failing((days < -(2**31)) | (days >= 2**31))


def last_day(call: Call) -> Vector:
    dates = dates_of(call.first.values)
    return call.first.with_values(call.first.values - dates.days + month_lengths(dates.years, dates.months))


_DAY_NAMES = {short: place for place, name in enumerate(WEEKDAYS) for short in (name[:2], name[:3], name)}
_DAY_NAMES = {name.upper(): place for name, place in _DAY_NAMES.items()}


def next_day(call: Call) -> Vector:
    names = call.args[1].values.fill_null("").to_pylist()
    wanted = np.array([_DAY_NAMES.get(name.upper(), -1) for name in names] or [0], np.int64)[: len(names)]
    days = call.first.values
    return strict(days + (wanted - weekdays_of(days) - 1) % 7 + 1, *call.args).failing(wanted < 0)


# -- truncation

_LEVELS = {
    **{"microsecond": 0, "millisecond": 1, "second": 2, "minute": 3, "hour": 4, "day": 5, "dd": 5, "week": 6},
    **{"month": 7, "mon": 7, "mm": 7, "quarter": 8, "year": 9, "yyyy": 9, "yy": 9},
}
_TRUNCATED = {0: 1, 1: 1000, 2: MICROS_PER_SECOND}
_TRUNCATED_LOCALLY = {3: 60 * MICROS_PER_SECOND, 4: 3600 * MICROS_PER_SECOND, 5: MICROS_PER_DAY}
_WEEK = 6


def _levels(units: Any) -> Integers:
    names = units.fill_null("").to_pylist()
    known: dict[str, int] = {name: _LEVELS.get(name.lower(), -1) for name in set(names)}
    return np.array([known[name] for name in names] or [0], np.int64)[: len(names)]


def truncate_timestamp(call: Call) -> Vector:
    """An unknown unit gives null; a result that leaves 64 bits fails."""
    levels, instants, zone = _levels(call.first.values), call.args[1].values, Zone(call.zone)
    found, over = instants.copy(), np.zeros(len(instants), np.bool_)
    for level in np.unique(levels[levels > 0]).tolist():
        at = np.flatnonzero(levels == level)
        some = instants[at]
        if level in _TRUNCATED:
            found[at] = some - some % _TRUNCATED[level]
        elif level in _TRUNCATED_LOCALLY:
            local = zone.to_locals(some)
            found[at] = to_instants(local - local % _TRUNCATED_LOCALLY[level], some, zone)
        else:
            days = np.floor_divide(zone.to_locals(some), MICROS_PER_DAY)
            found[at], over[at] = _midnights(_first_days(days, level), zone)
    return _known_only(strict(found, *call.args).failing(over | (found > instants)), levels >= 0)


def _midnights(days: Integers, zone: Zone) -> tuple[Integers, NDArray[np.bool_]]:
    """The first instants of days, and where they leave 64 bits."""
    found = zone.midnights(days)
    if found.dtype != object:
        return found, np.zeros(len(days), np.bool_)
    over = np.asarray((found < -(2**63)) | (found >= 2**63), np.bool_)
    return np.where(over, 0, found).astype(np.int64), over


def truncate_date(call: Call) -> Vector:
    """A unit that is unknown or shorter than a week gives null."""
    levels, days = _levels(call.args[1].values), call.first.values
    found = days.copy()
    for level in np.unique(levels[levels >= _WEEK]).tolist():
        at = np.flatnonzero(levels == level)
        found[at] = _first_days(days[at], level)
    return _known_only(strict(found, *call.args), levels >= _WEEK)


def _known_only(result: Vector, known: NDArray[np.bool_]) -> Vector:
    return Vector(result.values, ~result.nulls & known, result.failed, result.lost)


def _first_days(days: Integers, level: int) -> Integers:
    """The first day of the week, month, quarter or year."""
    if level == _WEEK:
        return days - weekdays_of(days)
    dates = dates_of(days)
    months = {7: dates.months, 8: (dates.months - 1) // 3 * 3 + 1, 9: np.ones_like(days)}[level]
    return days_of_dates(Dates(dates.years, months, np.ones_like(days)))


# -- units as words


def type_in_units(analyser: Analyser, node: Written) -> Typed:
    """`dateadd(unit, n, t)` or `datediff(unit, from, to)` with a word as unit; with two arguments, of dates."""
    is_sum = node.op in ("date_add", "timestampadd")
    if len(node.args) == 2 and not node.op.startswith("timestamp"):
        first = as_type(analyser, node, node.args[0], DATE)
        second = as_days(analyser, node, node.args[1]) if is_sum else None
        second = as_type(analyser, node, node.args[1], DATE) if second is None else second
        return analyser.made(node, node.op, DATE if is_sum else INT, first, second)
    word = node.args[0]
    unit = word.name.lower() if word.op == "field" else ""
    if unit == "dayofyear" and is_sum:
        unit = "day"
    if len(node.args) != 3 or unit not in UNITS:
        analyser.refuse(word, f"{node.op} takes a unit first: {', '.join(UNITS)}")
    if is_sum:
        amount, time = as_type(analyser, node, node.args[1], BIGINT), as_own_timestamp(analyser, node, node.args[2])
        return analyser.made(node, "timestampadd", time.type, amount, time, value=unit)
    times = [as_type(analyser, node, arg, TIMESTAMP) for arg in node.args[1:]]
    return analyser.made(node, "timestampdiff", BIGINT, *times, value=unit)


def type_days_before(analyser: Analyser, node: Written) -> Typed:
    first, days = as_type(analyser, node, node.args[0], DATE), as_days(analyser, node, node.args[1])
    return analyser.made(node, node.op, DATE, first, days)


def add_units(call: Call) -> Vector:
    """The value of the node is the unit."""
    unit, (amounts, times) = str(call.node.value), call.args
    zone = Zone(call.zone)
    if unit in _MONTHS:
        over = np.abs(amounts.values) >= 2**31 // _MONTHS[unit]
        months = np.where(over, 0, amounts.values) * _MONTHS[unit]
        found, beyond = move_months(times.values, months, zone)
        return strict(found, *call.args).failing(over | beyond)
    most = (2**63 - 1) // _MICROS[unit]
    over = (amounts.values > most) | (amounts.values < -most)
    micros = np.where(over, 0, amounts.values) * _MICROS[unit]
    days = micros // MICROS_PER_DAY if unit in ("day", "week") else np.zeros_like(micros)
    moved, beyond = move_days(times.values, days, zone)
    found, further = add_exactly(moved, micros - days * MICROS_PER_DAY)
    return strict(found, *call.args).failing(over | beyond | further)


def count_units(call: Call) -> Vector:
    """Whole units between two local times, towards zero."""
    unit, zone = str(call.node.value), Zone(call.zone)
    starts, ends = (zone.to_locals(arg.values) for arg in call.args)
    if unit in _MICROS:
        return strict(_towards_zero(ends - starts, _MICROS[unit]), *call.args)
    first, last = (np.floor_divide(each, MICROS_PER_DAY) for each in (starts, ends))
    shorter = (ends - last * MICROS_PER_DAY) - (starts - first * MICROS_PER_DAY)
    last = last - ((last > first) & (shorter < 0)) + ((last < first) & (shorter > 0))
    a, b = dates_of(first), dates_of(last)
    packed = [(dates.years * 12 + dates.months) * 32 + dates.days for dates in (a, b)]
    months = _towards_zero(packed[1] - packed[0], 32)
    return strict(_towards_zero(months, _MONTHS[unit]), *call.args)


def _towards_zero(values: Integers, unit: int) -> Integers:
    return np.asarray(np.sign(values) * (np.abs(values) // unit), np.int64)


def type_months_between(analyser: Analyser, node: Written) -> Typed:
    args = [as_type(analyser, node, arg, TIMESTAMP) for arg in node.args[:2]]
    args += [as_type(analyser, node, arg, BOOLEAN) for arg in node.args[2:]]
    return analyser.made(node, node.op, DOUBLE, *args)


def months_between(call: Call) -> Vector:
    """Whole months if both are on the same day of the month or both on the last; else 31 days are a month."""
    zone = Zone(call.zone)
    days = [np.floor_divide(zone.to_locals(arg.values), MICROS_PER_DAY) for arg in call.args[:2]]
    dates = [dates_of(each) for each in days]
    months = np.subtract(*(each.years * 12 + each.months for each in dates)).astype(np.float64)
    is_last = [each.days == month_lengths(each.years, each.months) for each in dates]
    whole = (dates[0].days == dates[1].days) | (is_last[0] & is_last[1])
    (first, over), (second, also) = (_midnights(each, zone) for each in days)
    seconds = [(call.args[k].values - midnights) // MICROS_PER_SECOND for k, midnights in enumerate((first, second))]
    difference = (dates[0].days - dates[1].days) * 86_400 + seconds[0] - seconds[1]
    exact = months + difference / (31 * 86_400.0)
    rounded = np.floor(exact * 1e8 + 0.5) / 1e8
    if len(call.args) == 3:
        rounded = np.where(call.args[2].values, rounded, exact)
    return strict(np.where(whole, months, rounded), *call.args).failing(over | also)


def _text_then(to: Type, text_first: bool) -> Any:
    """A unit as a string, and a time; or the other way round."""

    def type_call(analyser: Analyser, node: Written) -> Typed:
        places = (0, 1) if text_first else (1, 0)
        text, time = analyser.text(node.args[places[0]]), as_type(analyser, node, node.args[places[1]], to)
        args = (text, time) if text_first else (time, text)
        return analyser.made(node, node.op, to, *args)

    return type_call


FUNCTIONS = (
    Function(
        "date_add([unit,] d, n)",
        type_in_units,
        add_days,
        "the date `n` days later; with a unit, `timestampadd`",
        ("dateadd",),
    ),
    Function("date_sub(d, n)", type_days_before, subtract_days, "the date `n` days earlier"),
    Function(
        "datediff([unit,] d, e)",
        type_in_units,
        count_days,
        "the days from `e` to `d`; with a unit, `timestampdiff`",
        ("date_diff",),
    ),
    Function("timestampadd(unit, n, t)", type_in_units, add_units, "`t` moved by `n` units, such as `HOUR` or `MONTH`"),
    Function("timestampdiff(unit, t, u)", type_in_units, count_units, "the whole units from `t` to `u`"),
    Function(
        "add_months(d, n)", takes(DATE, DATE, INT), months_added, "the date `n` months later, or the last of the month"
    ),
    Function(
        "months_between(t, u [, round])",
        type_months_between,
        months_between,
        "the months from `u` to `t`, as a double of eight places",
    ),
    Function("last_day(d)", takes(DATE, DATE), last_day, "the last day of the month"),
    Function("next_day(d, name)", _text_then(DATE, False), next_day, "the next day of that name: `'Mon'`"),
    Function(
        "date_trunc(unit, t)",
        _text_then(TIMESTAMP, True),
        truncate_timestamp,
        "`t` truncated to a unit, `'YEAR'` to `'MICROSECOND'`; null for others",
    ),
    Function(
        "trunc(d, unit)",
        _text_then(DATE, False),
        truncate_date,
        "the first day of the week, month, quarter or year; null for other units",
    ),
)
