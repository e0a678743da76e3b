"""The Gregorian calendar extended both ways, over arrays: days since 1970-01-01 as year, month and day, and back.

`move_days` and `move_months` move instants by the calendar of a time zone, as java.time does: the local time stays, an
offset is kept if it is valid there too, and a time that a change of clocks skips is moved forward.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vedette.language.times import MICROS_PER_DAY, MICROS_PER_SECOND, Zone

Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]
_DAYS_TO_1970 = 719_468  # from 0000-03-01
_DAYS_PER_CYCLE = 146_097
_MOST_DAYS = 106_751_991  # of 64 bits of microseconds


class Dates(NamedTuple):
    """Years, months (from 1) and days of the month (from 1)."""

    years: Integers
    months: Integers
    days: Integers


def dates_of(days: Integers) -> Dates:
    """The dates of day numbers."""
    shifted = days + _DAYS_TO_1970  # years begin in March, so that the leap day is the last of its year
    cycles = np.floor_divide(shifted, _DAYS_PER_CYCLE)
    inside = shifted - cycles * _DAYS_PER_CYCLE
    years = (inside - inside // 1460 + inside // 36_524 - inside // 146_096) // 365
    of_year = inside - (365 * years + years // 4 - years // 100)
    month = (5 * of_year + 2) // 153
    day = of_year - (153 * month + 2) // 5 + 1
    months = np.where(month < 10, month + 3, month - 9)
    return Dates(years + cycles * 400 + (months <= 2), months, day)


def days_of_dates(dates: Dates) -> Integers:
    """The day numbers of dates that exist."""
    years = dates.years - (dates.months <= 2)
    cycles = np.floor_divide(years, 400)
    inside = years - cycles * 400
    of_year = (153 * np.where(dates.months > 2, dates.months - 3, dates.months + 9) + 2) // 5 + dates.days - 1
    return np.asarray(
        cycles * _DAYS_PER_CYCLE + inside * 365 + inside // 4 - inside // 100 + of_year - _DAYS_TO_1970, np.int64
    )


def month_lengths(years: Integers, months: Integers) -> Integers:
    lengths = np.array([0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31], np.int64)[months]
    return np.asarray(lengths + ((months == 2) & is_leap(years)), np.int64)


def is_leap(years: Integers) -> Mask:
    return np.asarray((years % 4 == 0) & ((years % 100 != 0) | (years % 400 == 0)), np.bool_)


def add_months(days: Integers, months: Integers) -> Integers:
    """Day numbers moved by months; a day that the month does not have becomes its last one."""
    dates = dates_of(days)
    total = dates.years * 12 + dates.months - 1 + months
    years = np.floor_divide(total, 12)
    month = total - years * 12 + 1
    return days_of_dates(Dates(years, month, np.minimum(dates.days, month_lengths(years, month))))


def join_days(days: Integers, micros: Integers) -> tuple[Integers, Mask]:
    """Days and microseconds of the day as one number, and where that leaves 64 bits."""
    over = np.abs(days) > _MOST_DAYS + 1
    for i in np.flatnonzero(~over & (np.abs(days) >= _MOST_DAYS)):
        over[i] = not -(2**63) <= int(days[i]) * MICROS_PER_DAY + int(micros[i]) < 2**63
    return np.where(over, 0, np.where(over, 0, days) * MICROS_PER_DAY + micros), over


def split_days(micros: Integers) -> tuple[Integers, Integers]:
    """Days, and microseconds of the day."""
    days = np.floor_divide(micros, MICROS_PER_DAY)
    return days, micros - days * MICROS_PER_DAY


def days_of_year(days: Integers, dates: Dates) -> Integers:
    """The day of the year, from 1."""
    first = np.ones_like(days)
    return days - days_of_dates(Dates(dates.years, first, first)) + 1


def iso_weeks(days: Integers) -> tuple[Integers, Integers]:
    """The year and the number of the ISO week. A week belongs to the year of its Thursday."""
    thursdays = days - (days + 3) % 7 + 3
    dates = dates_of(thursdays)
    return dates.years, (days_of_year(thursdays, dates) - 1) // 7 + 1


def to_instants(locals_: Integers, near: Integers, zone: Zone) -> Integers:
    """The instants of local times. In an overlap, the one with the offset of the instant in `near`, if there is one."""
    if zone.is_utc:
        return locals_
    first, second = (zone.offsets_before(locals_, fold) for fold in (0, 1))
    chosen = np.where((second < first) & (second == zone.offsets(near)), second, first)
    return np.asarray(locals_ - chosen * MICROS_PER_SECOND, np.int64)


def move_days(instants: Integers, days: Integers, zone: Zone) -> tuple[Integers, Mask]:
    """Instants moved by calendar days, and where the result leaves 64 bits."""
    local_days, micros = split_days(_locals(instants, zone))
    return _resolve(local_days + days, micros, instants, days != 0, zone)


def move_months(instants: Integers, months: Integers, zone: Zone) -> tuple[Integers, Mask]:
    """Instants moved by months, and where the result leaves 64 bits."""
    local_days, micros = split_days(_locals(instants, zone))
    return _resolve(add_months(local_days, months), micros, instants, months != 0, zone)


def _locals(instants: Integers, zone: Zone) -> Integers:
    room = MICROS_PER_DAY  # an offset is shorter; instants this near to the ends of 64 bits are not moved
    return zone.to_locals(np.clip(instants, -(2**63) + room, 2**63 - 1 - room))


def _resolve(days: Integers, micros: Integers, instants: Integers, moved: Mask, zone: Zone) -> tuple[Integers, Mask]:
    local, over = join_days(days, micros)
    over &= moved
    if zone.is_utc:
        return np.where(moved, local, instants), over
    at = np.flatnonzero(moved & ~over)
    found = instants.copy()
    near_end = np.abs(local[at]) > 2**63 - 1 - MICROS_PER_DAY  # there, an offset may leave 64 bits
    for i in at[near_end].tolist():
        instant = zone.to_instant(int(local[i]))
        over[i] = not -(2**63) <= instant < 2**63
        found[i] = 0 if over[i] else instant
    at = at[~near_end]
    found[at] = to_instants(local[at], instants[at], zone)
    return found, over


def add_exactly(instants: Integers, micros: Integers) -> tuple[Integers, Mask]:
    """Sums, and where they leave 64 bits."""
    with np.errstate(over="ignore"):
        sums = instants + micros
    return sums, ((instants ^ sums) & (micros ^ sums)) < 0


def seconds_of(micros: Integers) -> Integers:
    return np.floor_divide(micros, MICROS_PER_SECOND)
