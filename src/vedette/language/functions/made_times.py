"""Functions that make dates, timestamps and intervals of numbers, and numbers of them; moves between time zones."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from vedette.data.schema import Type
from vedette.language.calendar import Dates, days_of_dates, month_lengths
from vedette.language.expressions import (
    BIGINT,
    DATE,
    INT,
    MONTH_INTERVAL,
    NULL,
    TIME_INTERVAL,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Typed,
    Written,
)
from vedette.language.functions.function import Call, Evaluator, Function, Rule
from vedette.language.functions.time_arguments import as_type, literal_text, takes
from vedette.language.times import MICROS_PER_DAY, MICROS_PER_SECOND, Zone, zone_or_none
from vedette.language.types import NUMERIC, is_integral
from vedette.language.vectors import Vector, strict

if TYPE_CHECKING:
    from vedette.language.analysis import Analyser

Integers = NDArray[np.int64]
_SECONDS = Type("decimal", 16, 6)

# -- numbers of times


def units_since_1970(unit: int) -> Evaluator:
    def evaluate(call: Call) -> Vector:
        return call.first.with_values(np.floor_divide(call.first.values, unit))

    return evaluate


def same(call: Call) -> Vector:
    return call.first


def only(result: Type, of: Type) -> Rule:
    """A function of one argument that is not cast. A timestamp may have no zone."""

    def type_call(analyser: Analyser, node: Written) -> Typed:
        inner = analyser.read(node.args[0])
        if of == TIMESTAMP and inner.type == TIMESTAMP_NTZ:
            return analyser.made(node, node.op, result, inner)
        if inner.type not in (of, NULL):
            analyser.refuse(node, f"{node.op} takes a {of}, not {analyser.shown(inner)}")
        return analyser.made(node, node.op, result, analyser.cast(node, inner, of))

    return type_call


# -- times of numbers


def times_of_units(unit: int) -> Evaluator:
    """Integers of a unit as microseconds."""

    def evaluate(call: Call) -> Vector:
        values = call.first.values
        over = np.abs(values) > (2**63 - 1) // unit
        return call.first.with_values(np.where(over, 0, values) * unit).failing(over)

    return evaluate


def type_of_seconds(analyser: Analyser, node: Written) -> Typed:
    """Seconds as any number."""
    inner = analyser.read(node.args[0])
    if inner.type == NULL:
        inner = analyser.cast(node, inner, Type("double"))
    if inner.type.name not in NUMERIC:
        analyser.refuse(node, f"{node.op} takes a number, not {analyser.shown(inner)}")
    analyser.need_sizes(inner)
    if is_integral(inner.type):
        inner = analyser.cast(node, inner, BIGINT)
    return analyser.made(node, node.op, TIMESTAMP, inner)


def type_of_integers(analyser: Analyser, node: Written) -> Typed:
    inner = analyser.read(node.args[0])
    if inner.type != NULL and not is_integral(inner.type):
        analyser.refuse(node, f"{node.op} takes an integer, not {analyser.shown(inner)}")
    return analyser.made(node, node.op, TIMESTAMP, analyser.cast(node, inner, BIGINT))


def timestamps_of_seconds(call: Call) -> Vector:
    type_, vector = call.first_type, call.first
    if type_.name == "bigint":
        return times_of_units(MICROS_PER_SECOND)(call)
    if type_.name == "decimal":
        exact = np.array([value * 10**6 for value in vector.values.tolist()] or [0], object)[: len(vector)]
        over = np.asarray(exact % 10**type_.scale != 0, np.bool_)
        whole = exact // 10**type_.scale
        over |= np.asarray((whole < -(2**63)) | (whole >= 2**63), np.bool_)
        return vector.with_values(np.where(over, 0, whole).astype(np.int64)).failing(over)
    with np.errstate(all="ignore"):
        micros = vector.values * 1e6
        finite = np.isfinite(vector.values)
        top, bottom = micros >= 2.0**63, micros < -(2.0**63)
        whole = np.where(finite & ~top & ~bottom, micros, 0.0).astype(np.int64)
    whole = np.where(top, 2**63 - 1, np.where(bottom, -(2**63), whole))
    return Vector(whole, ~vector.nulls & finite, vector.failed, vector.lost)


def _days_of(years: Integers, months: Integers, days: Integers) -> tuple[Integers, NDArray[np.bool_]]:
    """Day numbers, and where the date does not exist."""
    bad = (months < 1) | (months > 12) | (days < 1) | (np.abs(years) > 999_999_999)
    years, months = np.where(bad, 1970, years), np.where(bad, 1, months)
    bad |= days > month_lengths(years, months)
    return days_of_dates(Dates(years, months, np.where(bad, 1, days))), bad


def make_date(call: Call) -> Vector:
    days, bad = _days_of(*(arg.values for arg in call.args))
    return strict(days, *call.args).failing(bad | (days < -(2**31)) | (days >= 2**31))


def type_make_timestamp(analyser: Analyser, node: Written) -> Typed:
    """Year, month, day, hour, minute, second with six places, and a time zone."""
    numbers = [as_type(analyser, node, arg, INT) for arg in node.args[:5]]
    seconds = analyser.read(node.args[5])
    analyser.need_sizes(seconds)
    zone = [_zone_argument(analyser, node, arg) for arg in node.args[6:]]
    type_ = TIMESTAMP_NTZ if node.op.endswith("_ntz") else TIMESTAMP
    made = analyser.made(node, f"make_{type_}", type_, *numbers, analyser.cast(node.args[5], seconds, _SECONDS), *zone)
    return analyser.made_try(node, made) if node.op.startswith("try_") else made


def _zone_argument(analyser: Analyser, node: Written, arg: Written) -> Typed:
    name = literal_text(analyser, arg) if analyser.statics and arg.op == "literal" else None
    if name is not None and zone_or_none(name) is None:
        analyser.refuse(arg, f"{name!r} is not a time zone; write a name such as 'Europe/Berlin' or '+02:00'")
    return analyser.text(arg)


def make_timestamp(call: Call) -> Vector:
    years, months, days, hours, minutes, seconds = (arg.values for arg in call.args[:6])
    number, bad = _days_of(years, months, days)
    next_minute = seconds == 60 * MICROS_PER_SECOND
    bad |= (hours < 0) | (hours > 23) | (minutes < 0) | (minutes > 59)
    bad |= (seconds < 0) | ((seconds >= 60 * MICROS_PER_SECOND) & ~next_minute)
    bad |= np.abs(number) > 106_000_000
    local = np.where(bad, 0, number) * MICROS_PER_DAY + (hours * 60 + minutes) * 60 * MICROS_PER_SECOND + seconds
    local = np.where(bad, 0, local)
    if call.node.type == TIMESTAMP_NTZ:
        return strict(local, *call.args).failing(bad)
    zones = [call.zone] * len(local) if len(call.args) == 6 else call.args[6].values.fill_null("").to_pylist()
    instants, unknown = _map_zones(local, zones, Zone.to_instant)
    return strict(instants, *call.args).failing(bad | unknown)


def make_day_interval(call: Call) -> Vector:
    """Days, hours, minutes, and seconds with six places; those that are left out are 0."""
    units = (MICROS_PER_DAY, 3600 * MICROS_PER_SECOND, 60 * MICROS_PER_SECOND, 1)
    pairs = zip(*(arg.values.tolist() for arg in call.args), strict=True)
    exact = [sum(int(amount) * unit for amount, unit in zip(each, units, strict=False)) for each in pairs]
    whole = np.array(exact or [0], object)[: len(exact)]
    over = np.asarray((whole < -(2**63)) | (whole >= 2**63), np.bool_)
    return strict(np.where(over, 0, whole).astype(np.int64), *call.args).failing(over)


def make_month_interval(call: Call) -> Vector:
    years, *months = (arg.values for arg in call.args)
    total = years * 12 + (months[0] if months else 0)
    return strict(total, *call.args).failing((total < -(2**31)) | (total >= 2**31))


def type_make_interval(analyser: Analyser, node: Written) -> Typed:
    args = [as_type(analyser, node, arg, INT) for arg in node.args[:3]]
    for arg in node.args[3:]:
        seconds = analyser.read(arg)
        analyser.need_sizes(seconds)
        args.append(analyser.cast(arg, seconds, Type("decimal", 18, 6)))
    return analyser.made(node, node.op, TIME_INTERVAL, *args)


# -- time zones


def _map_zones(
    times: Integers, zones: list[str], move: Callable[[Zone, int], int]
) -> tuple[Integers, NDArray[np.bool_]]:
    """A move of each time by its zone, and where the zone is unknown or the result leaves 64 bits."""
    known: dict[tuple[int, str], int | None] = {}
    found, bad = np.zeros(len(times), np.int64), np.zeros(len(times), np.bool_)
    for i, key in enumerate(zip(times.tolist(), zones, strict=True)):
        if key not in known:
            zone = zone_or_none(key[1])
            moved = None if zone is None else move(zone, key[0])
            known[key] = None if moved is None or not -(2**63) <= moved < 2**63 else moved
        result = known[key]
        bad[i] = result is None
        found[i] = result or 0
    return found, bad


def moved_by_zone(move: Callable[[Zone, int], int]) -> Evaluator:
    def evaluate(call: Call) -> Vector:
        found, bad = _map_zones(call.first.values, call.args[1].values.fill_null("UTC").to_pylist(), move)
        return strict(found, *call.args).failing(bad)

    return evaluate


def type_moved_by_zone(analyser: Analyser, node: Written) -> Typed:
    time = as_type(analyser, node, node.args[0], TIMESTAMP)
    return analyser.made(node, node.op, TIMESTAMP, time, _zone_argument(analyser, node, node.args[1]))


def type_convert_timezone(analyser: Analyser, node: Written) -> Typed:
    """The time zone of the set, or one that is given, is that of the time; the result is local in another."""
    *zones, time = node.args
    target = _zone_argument(analyser, node, zones[-1])
    local = as_type(analyser, node, time, TIMESTAMP_NTZ)
    if len(zones) == 1:
        instant = analyser.cast(time, local, TIMESTAMP)
    else:
        source = _zone_argument(analyser, node, zones[0])
        instant = analyser.made(node, "instant in zone", TIMESTAMP, local, source)
    return analyser.made(node, "local in zone", TIMESTAMP_NTZ, instant, target)


OPERATORS: dict[str, Evaluator] = {
    "instant in zone": moved_by_zone(Zone.to_instant),
    "local in zone": moved_by_zone(Zone.to_local),
}

FUNCTIONS = (
    Function("unix_date(d)", only(INT, DATE), same, "the days since 1970-01-01"),
    Function(
        "unix_seconds(t)",
        only(BIGINT, TIMESTAMP),
        units_since_1970(MICROS_PER_SECOND),
        "the seconds since 1970-01-01 00:00 UTC",
    ),
    Function("unix_millis(t)", only(BIGINT, TIMESTAMP), units_since_1970(1000), "the milliseconds"),
    Function("unix_micros(t)", only(BIGINT, TIMESTAMP), same, "the microseconds"),
    Function("date_from_unix_date(n)", takes(DATE, INT), same, "the date `n` days after 1970-01-01"),
    Function(
        "timestamp_seconds(x)",
        type_of_seconds,
        timestamps_of_seconds,
        "the timestamp `x` seconds after 1970-01-01 00:00 UTC",
    ),
    Function(
        "timestamp_millis(n)",
        type_of_integers,
        times_of_units(1000),
        "the same for milliseconds",
    ),
    Function("timestamp_micros(n)", type_of_integers, times_of_units(1), "the same for microseconds"),
    Function("make_date(y, m, d)", takes(DATE, INT, INT, INT), make_date, "a date of its parts"),
    Function(
        "make_timestamp(y, mo, d, h, mi, s [, zone])",
        type_make_timestamp,
        make_timestamp,
        "a timestamp of its parts; the second has up to six places",
        ("make_timestamp_ltz",),
        literals=(6,),
    ),
    Function(
        "try_make_timestamp(y, mo, d, h, mi, s [, zone])",
        type_make_timestamp,
        None,
        "the same, null if that fails",
        ("try_make_timestamp_ltz",),
        literals=(6,),
    ),
    Function(
        "make_timestamp_ntz(y, mo, d, h, mi, s)", type_make_timestamp, make_timestamp, "the same without a time zone"
    ),
    Function("try_make_timestamp_ntz(y, mo, d, h, mi, s)", type_make_timestamp, None, "the same, null if that fails"),
    Function(
        "make_dt_interval(d [, h, m, s])",
        type_make_interval,
        make_day_interval,
        "an interval of days, hours, minutes and seconds",
    ),
    Function(
        "make_ym_interval(y [, m])",
        takes(MONTH_INTERVAL, INT, INT),
        make_month_interval,
        "an interval of years and months",
    ),
    Function(
        "from_utc_timestamp(t, zone)",
        type_moved_by_zone,
        moved_by_zone(Zone.to_local),
        "the local time of the zone, read as if it were UTC",
        literals=(1,),
    ),
    Function(
        "to_utc_timestamp(t, zone)", type_moved_by_zone, moved_by_zone(Zone.to_instant), "the opposite", literals=(1,)
    ),
    Function(
        "convert_timezone([source,] target, t)",
        type_convert_timezone,
        None,
        "the local time in the zone `target` when it is `t` in the zone `source`, or in that of the set",
        literals=(0, 1),
    ),
)
