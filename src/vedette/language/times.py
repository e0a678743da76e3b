"""Dates and timestamps as Spark reads them from text, and a time zone's midnights.

Days count from 1970-01-01, microseconds from 1970-01-01 00:00 UTC. Years beyond Python's calendar are folded into it by
whole cycles of 400 years, after which the calendar repeats.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

MICROS_PER_SECOND = 1_000_000
MICROS_PER_DAY = 86_400 * MICROS_PER_SECOND
_DAYS_PER_CYCLE = 146_097  # days in 400 years
SPACE = "".join(chr(code) for code in (*range(0x21), 0x7F))  # what Spark trims: spaces and control characters
_DATE = re.compile(r"([+-]?)(\d{4,7})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T].*)?)?)?", re.ASCII | re.DOTALL)
_TIMESTAMP = re.compile(
    r"([+-]?)(\d{4,6})(?:-(\d{1,2})(?:-(\d{1,2})"
    r"(?:[ T](\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:\.(\d*))?([^\d.].*|\.\D.*)?)?)?)?)?)?",
    re.ASCII | re.DOTALL,
)
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{1,2})(?::?(\d{2}))?)?", re.ASCII)

# java.time.ZoneId.SHORT_IDS, which Spark reads.
_SHORT_ZONES = {
    **{"EST": "-05:00", "HST": "-10:00", "MST": "-07:00", "ACT": "Australia/Darwin", "AET": "Australia/Sydney"},
    **{"AGT": "America/Argentina/Buenos_Aires", "ART": "Africa/Cairo", "AST": "America/Anchorage"},
    **{"BET": "America/Sao_Paulo", "BST": "Asia/Dhaka", "CAT": "Africa/Harare", "CNT": "America/St_Johns"},
    **{"CST": "America/Chicago", "CTT": "Asia/Shanghai", "EAT": "Africa/Addis_Ababa", "ECT": "Europe/Paris"},
    **{"IET": "America/Indiana/Indianapolis", "IST": "Asia/Kolkata", "JST": "Asia/Tokyo", "MIT": "Pacific/Apia"},
    **{"NET": "Asia/Yerevan", "NST": "Pacific/Auckland", "PLT": "Asia/Karachi", "PNT": "America/Phoenix"},
    **{"PRT": "America/Puerto_Rico", "PST": "America/Los_Angeles", "SST": "Pacific/Guadalcanal"},
    **{"VST": "Asia/Ho_Chi_Minh"},
}
_FIXED_ZONES = frozenset({"Etc/UTC", "Etc/GMT", "Zulu", "Universal", "Greenwich"})
_NO_ZONES = frozenset({"localtime", "posixrules", "Factory"})


def parse_date(text: str) -> int | None:
    """Days since 1970 as Spark's cast reads them, or None."""
    found = _DATE.fullmatch(text.strip(SPACE))
    if not found:
        return None
    sign, year, month, day = found.groups()
    days = days_of(int(sign + year), int(month or 1), int(day or 1))
    return days if days is not None and -(2**31) <= days < 2**31 else None


def parse_timestamp(text: str, zone: str) -> int | None:
    """Microseconds since 1970 as Spark's cast reads them in a session of that zone, or None."""
    read = _read_local_time(text)
    if read is None:
        return None
    local, suffix = read
    named = Zone(zone) if suffix is None else zone_or_none(suffix)
    instant = None if named is None else named.to_instant(local)
    return instant if instant is not None and -(2**63) <= instant < 2**63 else None


def parse_local_time(text: str) -> int | None:
    """The same for a timestamp without a zone: one that the text names must exist, and is ignored."""
    read = _read_local_time(text)
    if read is None or (read[1] is not None and zone_or_none(read[1]) is None):
        return None
    return read[0] if -(2**63) <= read[0] < 2**63 else None


def _read_local_time(text: str) -> tuple[int, str | None] | None:
    """The microseconds of a local time, and the name of the zone after it."""
    found = _TIMESTAMP.fullmatch(text.strip(SPACE))
    if not found:
        return None
    sign, year, month, day, hour, minute, second, fraction, suffix = found.groups()
    days = days_of(int(sign + year), int(month or 1), int(day or 1))
    hours, minutes, seconds = int(hour or 0), int(minute or 0), int(second or 0)
    if days is None or hours > 23 or minutes > 59 or seconds > 59:
        return None
    micros = int((fraction or "")[:6].ljust(6, "0"))
    local = days * MICROS_PER_DAY + ((hours * 60 + minutes) * 60 + seconds) * MICROS_PER_SECOND + micros
    return local, None if suffix is None else suffix.strip()


def _zone_named(text: str) -> str:
    """A zone as Java names it: some short names mean others, and some of Python's names are not valid."""
    if text in _NO_ZONES or text.startswith(("posix/", "right/")):
        raise ValueError(f"no time zone {text!r}")
    return _SHORT_ZONES.get(text, text)


def days_of(year: int, month: int, day: int) -> int | None:
    """Days since 1970 of a date in the Gregorian calendar extended both ways, or None if the date does not exist."""
    cycles, year_in_cycle = divmod(year - 1, 400)
    try:
        return dt.date(year_in_cycle + 1, month, day).toordinal() - 719_163 + cycles * _DAYS_PER_CYCLE
    except ValueError:
        return None


def civil(days: int) -> tuple[int, int, int]:
    """Year, month and day of a day number, for any year."""
    cycles, inside = divmod(days + 719_162, _DAYS_PER_CYCLE)
    date = dt.date.fromordinal(inside + 1)
    return date.year + 400 * cycles, date.month, date.day


def _offset_of(text: str) -> int | None:
    """Seconds east of UTC of a fixed offset, or None if the text is not an offset."""
    if text in ("Z", "UTC", "GMT", "UT"):
        return 0
    found = _OFFSET.fullmatch(text)
    if not found:
        return None
    sign, hours, minutes, seconds = found.groups()
    total = int(hours) * 3600 + int(minutes or 0) * 60 + int(seconds or 0)
    if total > 18 * 3600 or int(minutes or 0) > 59 or int(seconds or 0) > 59:
        return None
    return -total if sign == "-" else total


@dataclass(frozen=True)
class Zone:
    """A time zone: converts instants to local times and back."""

    name: str

    def __post_init__(self) -> None:
        if _offset_of(self.name) is None:
            ZoneInfo(self.name)  # raises for an unknown name

    def offset(self, instant: int) -> int:
        """Seconds east of UTC at an instant."""
        return _offset_at(self.name, instant // MICROS_PER_SECOND)

    def to_local(self, instant: int) -> int:
        return instant + self.offset(instant) * MICROS_PER_SECOND

    def to_instant(self, local: int) -> int:
        """The instant of a local time. In a gap it is moved forward by the gap; in an overlap it is the earlier one."""
        return local - _offset_before(self.name, local // MICROS_PER_SECOND) * MICROS_PER_SECOND

    @property
    def is_utc(self) -> bool:
        return _offset_of(self.name) == 0

    @property
    def is_fixed(self) -> bool:
        """Whether the offset never changes."""
        return _offset_of(self.name) is not None or self.name in _FIXED_ZONES

    def midnight(self, days: int) -> int:
        """The first instant of a day."""
        instant = self.to_instant(days * MICROS_PER_DAY)
        if self.to_local(instant) == days * MICROS_PER_DAY:
            return instant
        early, late = instant - MICROS_PER_DAY, instant  # midnight is skipped: the day begins when the gap ends
        while late - early > 1:
            middle = (early + late) // 2
            if self.to_local(middle) >= days * MICROS_PER_DAY:
                late = middle
            else:
                early = middle
        return late

    def midnights(self, days: NDArray[np.int64]) -> NDArray[Any]:
        """The first instants of days; an object array if one does not fit into 64 bits."""
        if _offset_of(self.name) == 0 and (len(days) == 0 or int(np.abs(days).max()) < 2**63 // MICROS_PER_DAY):
            return days * MICROS_PER_DAY
        distinct, back = np.unique(days, return_inverse=True)
        instants = [self.midnight(int(day)) for day in distinct]
        fits = all(-(2**63) <= instant < 2**63 for instant in instants)
        return np.array(instants, np.int64 if fits else object)[back]

    def to_locals(self, instants: NDArray[np.int64]) -> NDArray[np.int64]:
        return instants if self.is_utc else instants + self.offsets(instants) * MICROS_PER_SECOND

    def from_locals(self, locals_: NDArray[np.int64]) -> NDArray[np.int64]:
        """The instants of local times; in an overlap the earlier ones."""
        return locals_ if self.is_utc else locals_ - self.offsets_before(locals_, 0) * MICROS_PER_SECOND

    def offsets(self, instants: NDArray[np.int64]) -> NDArray[np.int64]:
        """Seconds east of UTC at instants."""
        return self._map_days(instants, lambda second: _offset_at(self.name, second))

    def offsets_before(self, locals_: NDArray[np.int64], fold: int) -> NDArray[np.int64]:
        """Seconds east of UTC at local times; in an overlap those of the earlier or, with fold 1, the later instant."""
        return self._map_days(locals_, lambda second: _offset_before(self.name, second, fold))

    def _map_days(self, micros: NDArray[np.int64], offset: Callable[[int], int]) -> NDArray[np.int64]:
        """Offsets, asked for once per day: a day that begins and ends with the same offset has no other.

        No time zone changes its offset and changes it back within two days.
        """
        seconds = np.floor_divide(micros, MICROS_PER_SECOND)
        days, back = np.unique(np.floor_divide(seconds, 86_400), return_inverse=True)
        ends = np.array([(offset(day * 86_400), offset((day + 1) * 86_400)) for day in days.tolist()], np.int64)
        ends = ends.reshape(len(days), 2)
        found: NDArray[np.int64] = ends[back, 0]
        for place in np.flatnonzero(ends[back, 0] != ends[back, 1]).tolist():
            found[place] = offset(int(seconds[place]))
        return found


@lru_cache(maxsize=100_000)
def _offset_at(zone: str, seconds: int) -> int:
    fixed = _offset_of(zone)
    if fixed is not None:
        return fixed
    moment = dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(seconds=_fold(seconds))
    offset = moment.astimezone(ZoneInfo(zone)).utcoffset()
    return round(offset.total_seconds()) if offset is not None else 0


@lru_cache(maxsize=100_000)
def _offset_before(zone: str, local_seconds: int, fold: int = 0) -> int:
    fixed = _offset_of(zone)
    if fixed is not None:
        return fixed
    clock = dt.datetime(1970, 1, 1) + dt.timedelta(seconds=_fold(local_seconds))
    offset = clock.replace(tzinfo=ZoneInfo(zone), fold=fold).utcoffset()
    return round(offset.total_seconds()) if offset is not None else 0


_FIRST = -62_135_000_000  # a little after year 1
_LAST = 253_402_000_000  # a little before year 10000
_CYCLE_SECONDS = _DAYS_PER_CYCLE * 86_400


def _fold(seconds: int) -> int:
    if seconds > _LAST:
        return seconds - -(-(seconds - _LAST) // _CYCLE_SECONDS) * _CYCLE_SECONDS
    if seconds < _FIRST:
        return seconds + -(-(_FIRST - seconds) // _CYCLE_SECONDS) * _CYCLE_SECONDS
    return seconds


@lru_cache(maxsize=1000)
def zone_or_none(name: str) -> Zone | None:
    """The time zone that Spark reads from a text, or None."""
    offset = _offset_of(name)
    try:
        return Zone(name if offset is not None else _zone_named(name))
    except (ValueError, OSError, KeyError):
        return None
