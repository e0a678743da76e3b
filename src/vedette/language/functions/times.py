"""Functions of dates and timestamps: their parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vedette.data.schema import Type
from vedette.language.calendar import Dates, dates_of, days_of_year, iso_weeks
from vedette.language.casts import cast
from vedette.language.expressions import (
    BIGINT,
    DATE,
    DAY_INTERVAL,
    DOUBLE,
    INT,
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
from vedette.language.functions.function import Call, Evaluator, Function
from vedette.language.functions.time_arguments import as_own_timestamp, literal_text, takes
from vedette.language.time_patterns import MONTHS, WEEKDAYS
from vedette.language.times import MICROS_PER_DAY, MICROS_PER_SECOND, Zone
from vedette.language.vectors import Vector

if TYPE_CHECKING:
    from vedette.language.analysis import Analyser

Days = NDArray[np.int64]
_SECONDS = Type("decimal", 8, 6)
_MICROS = Type("decimal", 19, 6)

# -- the parts of a date


def weekdays_of(days: Days) -> Days:
    """Monday is 0; 1970-01-01 was a Thursday."""
    return (days + 3) % 7


def of_date(part: Callable[[Days, Dates], Days]) -> Evaluator:
    def evaluate(call: Call) -> Vector:
        return call.first.with_values(part(call.first.values, dates_of(call.first.values)))

    return evaluate


year = of_date(lambda _, dates: dates.years)
quarter = of_date(lambda _, dates: (dates.months - 1) // 3 + 1)
month = of_date(lambda _, dates: dates.months)
day = of_date(lambda _, dates: dates.days)
day_of_year = of_date(days_of_year)
week_of_year = of_date(lambda days, _: iso_weeks(days)[1])
year_of_week = of_date(lambda days, _: iso_weeks(days)[0])
weekday = of_date(lambda days, _: weekdays_of(days))
day_of_week = of_date(lambda days, _: (days + 4) % 7 + 1)  # 1 is Sunday
iso_day_of_week = of_date(lambda days, _: weekdays_of(days) + 1)


def day_name(call: Call) -> Vector:
    return _named(call, weekdays_of(call.first.values), WEEKDAYS)


def month_name(call: Call) -> Vector:
    return _named(call, dates_of(call.first.values).months - 1, MONTHS)


def _named(call: Call, places: Days, names: tuple[str, ...]) -> Vector:
    return call.first.with_values(pa.array([name[:3] for name in names], pa.large_string()).take(pa.array(places)))


# -- the parts of a timestamp


def hour(call: Call) -> Vector:
    return call.first.with_values(_local_micros(call) // (3600 * MICROS_PER_SECOND))


def minute(call: Call) -> Vector:
    return call.first.with_values(_local_micros(call) // (60 * MICROS_PER_SECOND) % 60)


def second(call: Call) -> Vector:
    return call.first.with_values(_local_micros(call) // MICROS_PER_SECOND % 60)


def second_with_fraction(call: Call) -> Vector:
    return call.first.with_values(_local_micros(call) % (60 * MICROS_PER_SECOND))


def _local_micros(call: Call) -> NDArray[np.int64]:
    """Microseconds since midnight in the time zone of the set."""
    local: NDArray[np.int64] = Zone(call.zone).to_locals(call.first.values)
    return local % MICROS_PER_DAY


# -- the parts of an interval, towards zero


def part_of_interval(unit: int, most: int) -> Evaluator:
    def evaluate(call: Call) -> Vector:
        values = call.first.values
        whole = np.abs(np.where(values == -(2**63), 0, values)) // unit
        return call.first.with_values(np.sign(values) * (whole % most if most else whole))

    return evaluate


def number_of_interval(call: Call) -> Vector:
    """An interval of days as days, one of months as months, another as seconds; fractions only in a decimal."""
    of, to, vector = call.first_type, call.node.type, call.first
    if to.name == "decimal" and of == TIME_INTERVAL:
        return cast(vector.with_values(vector.values.astype(object)), _MICROS, to, call.zone)
    unit = 1 if of == MONTH_INTERVAL else MICROS_PER_DAY if of == DAY_INTERVAL else MICROS_PER_SECOND
    whole = np.floor_divide(vector.values, unit)
    whole = whole + ((whole < 0) & (whole * unit != vector.values))
    return cast(vector.with_values(whole), BIGINT, to, call.zone)


# -- extract and date_part

_NAMES = {  # the names of parts, and the function of each
    "year": ("year", "y", "years", "yr", "yrs"),
    "year of week": ("yearofweek",),
    "quarter": ("quarter", "qtr"),
    "month": ("month", "mon", "mons", "months"),
    "weekofyear": ("week", "w", "weeks"),
    "day": ("day", "d", "days"),
    "dayofweek": ("dayofweek", "dow"),
    "iso day of week": ("dayofweek_iso", "dow_iso"),
    "dayofyear": ("doy",),
    "hour": ("hour", "h", "hours", "hr", "hrs"),
    "minute": ("minute", "m", "min", "mins", "minutes"),
    "second with fraction": ("second", "s", "sec", "seconds", "secs"),
}
_MAIN_PARTS = ("year", "quarter", "month", "week", "day", "dayofweek", "doy", "hour", "minute", "second")
_PARTS = {name: op for op, names in _NAMES.items() for name in names}
_OF_MONTHS = {"year": (12, 0), "month": (1, 12)}
_OF_MICROS = {
    "day": (MICROS_PER_DAY, 0),
    "hour": (3600 * MICROS_PER_SECOND, 24),
    "minute": (60 * MICROS_PER_SECOND, 60),
    "second with fraction": (1, 60 * MICROS_PER_SECOND),
}
WHOLE_INTERVALS = ("timestamp - timestamp", "date - date", "interval * number", "interval / number")
# Nodes of trees that are not functions by themselves.
OPERATORS: dict[str, Evaluator] = {
    "year of week": year_of_week,
    "iso day of week": iso_day_of_week,
    "second with fraction": second_with_fraction,
    "number of interval": number_of_interval,
    **{f"{op} of interval": part_of_interval(*sizes) for op, sizes in (_OF_MONTHS | _OF_MICROS).items()},
}


def type_extract(analyser: Analyser, node: Written) -> Typed:
    """`extract(part FROM x)`, in which the part is a word, and `date_part('part', x)`."""
    word = node.args[0]
    is_null = word.op == "constant" and word.name == "null"
    name = word.name if node.op == "extract" else literal_text(analyser, word)
    inner = analyser.read(node.args[1])
    if is_null:
        return analyser.made(node, "constant", DOUBLE)
    if name is None:
        analyser.refuse(word, f"{node.op} takes the part as a literal, such as date_part('YEAR', ts)")
    op = _PARTS.get(name.lower())
    if inner.type in INTERVALS and inner.op not in WHOLE_INTERVALS:  # others may have fewer units than ours
        analyser.refuse(node, f"{node.op} takes an interval only if it is a difference of two times, or a product")
    if op is not None and inner.type in INTERVALS:
        known = _OF_MONTHS if inner.type == MONTH_INTERVAL else {"day": 0} if inner.type == DAY_INTERVAL else _OF_MICROS
        if op in known:
            return analyser.made(node, f"{op} of interval", _type_of_part(op), inner)
        op = None
    if op is None:
        analyser.refuse(word, f"{name!r} is not a part of {analyser.shown(inner)}; parts are: {', '.join(_MAIN_PARTS)}")
    if inner.type not in (DATE, TIMESTAMP, TIMESTAMP_NTZ, STRING, NULL):
        analyser.refuse(node, f"{node.op} takes a date, a timestamp or an interval, not {analyser.shown(inner)}")
    if op not in ("hour", "minute", "second with fraction"):
        inner = analyser.cast(node, inner, DATE)
    elif inner.type != TIMESTAMP_NTZ:
        inner = analyser.cast(node, inner, TIMESTAMP)
    return analyser.made(node, op, _type_of_part(op), inner)


def type_clock(analyser: Analyser, node: Written) -> Typed:
    """A part of the time of day."""
    return analyser.made(node, node.op, INT, as_own_timestamp(analyser, node, node.args[0]))


def _type_of_part(op: str) -> Type:
    return _SECONDS if op == "second with fraction" else INT


# -- the rows of the table

FUNCTIONS = (
    Function("year(d)", takes(INT, DATE), year, "the year of a date or timestamp"),
    Function("quarter(d)", takes(INT, DATE), quarter, "the quarter, 1 to 4"),
    Function("month(d)", takes(INT, DATE), month, "the month, 1 to 12"),
    Function("day(d)", takes(INT, DATE), day, "the day of the month, from 1", ("dayofmonth",)),
    Function("dayofyear(d)", takes(INT, DATE), day_of_year, "the day of the year, from 1"),
    Function("dayofweek(d)", takes(INT, DATE), day_of_week, "the day of the week; Sunday is 1"),
    Function("weekday(d)", takes(INT, DATE), weekday, "the day of the week; Monday is 0"),
    Function("weekofyear(d)", takes(INT, DATE), week_of_year, "the number of the ISO week"),
    Function("dayname(d)", takes(STRING, DATE), day_name, "the day of the week as `Mon`", in_arrow=True),
    Function("monthname(d)", takes(STRING, DATE), month_name, "the month as `Jan`", in_arrow=True),
    Function("hour(t)", type_clock, hour, "the hour of a timestamp, in the set's time zone"),
    Function("minute(t)", type_clock, minute, "the minute"),
    Function("second(t)", type_clock, second, "the second, without fractions"),
    Function(
        "extract(part, x)",
        type_extract,
        None,
        "written `extract(part FROM x)`: a part of a date, timestamp or interval, such as `YEAR`, `DOW` or `SECOND`, "
        "which has six places",
    ),
    Function("date_part('part', x)", type_extract, None, "the same", ("datepart",), literals=(0,)),
)
