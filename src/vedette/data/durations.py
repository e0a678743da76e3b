"""Durations as text: `5 minutes`, `1 hour 30 minutes`, `250 ms`; or a plain number if times are numbers."""

from __future__ import annotations

import datetime
import math
import re
from decimal import Decimal

import numpy as np

from vedette.errors import QueryError, shown

_MICROSECONDS = {
    "microsecond": 1,
    "us": 1,
    "millisecond": 1_000,
    "ms": 1_000,
    "second": 1_000_000,
    "sec": 1_000_000,
    "s": 1_000_000,
    "minute": 60_000_000,
    "min": 60_000_000,
    "m": 60_000_000,
    "hour": 3_600_000_000,
    "h": 3_600_000_000,
    "day": 86_400_000_000,
    "d": 86_400_000_000,
    "week": 604_800_000_000,
    "w": 604_800_000_000,
}
_UNITS = "microseconds (us), milliseconds (ms), seconds (s), minutes (m), hours (h), days (d), weeks (w)"
_PIECE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]+)\s*,?")


_MAX_NUMBER = 1e100  # of intervals that are numbers; its square is finite
_MAX_DURATION = 10**17  # microseconds: three thousand years, well within 64 bits


def read_duration(value: object, name: str, time_type: str) -> int | float:
    """A duration in the units of a time column: microseconds for timestamps, else its own.

    >>> read_duration("1 minute 30 s", "dwell", "timestamp")
    90000000
    """
    is_timestamp, is_whole = time_type == "timestamp", time_type == "bigint"
    if isinstance(value, datetime.timedelta) and is_timestamp:
        read: int | float | None = value // datetime.timedelta(microseconds=1)
    elif isinstance(value, str) and is_timestamp:
        read = _read_text(value)
    elif isinstance(value, (int, float)) and not isinstance(value, bool) and not is_timestamp:
        read = int(value) if is_whole and isinstance(value, float) and value.is_integer() else value
        if is_whole and not isinstance(read, int):
            read = None
    else:
        read = None
    if read is not None and 0 < read <= _MAX_DURATION:
        return read
    if not is_timestamp:
        number = "a whole number" if is_whole else "a number"
        limit = f" and at most {_MAX_DURATION:g}" if read is not None and _MAX_DURATION < read < math.inf else ""
        reason = f"must be {number} above 0{limit}, in the unit of the time column; got {shown(value)}"
        raise QueryError(reason, option=name)
    if read is not None:
        limit = "above 0" if read <= 0 else "of 3,000 years at most"
        raise QueryError(f"must be a duration {limit}, such as '5 minutes'; got {shown(value)}", option=name)
    units = f"; units are {_UNITS}" if isinstance(value, str) else ""
    raise QueryError(f"must be a duration such as '5 minutes'; got {shown(value)}{units}", option=name)


Interval = float | str | datetime.timedelta


def read_interval(value: object, name: str) -> float:
    """A duration in seconds if it is a text or a timedelta; a number has the unit of the times.

    >>> read_interval("1 minute", "max_update_interval"), read_interval(2.5, "max_update_interval")
    (60.0, 2.5)
    """
    if isinstance(value, np.timedelta64):
        value = value.astype("m8[us]").item()
    if isinstance(value, (str, datetime.timedelta)):
        return read_duration(value, name, "timestamp") / 1e6
    number = value.item() if isinstance(value, np.generic) else value
    if isinstance(number, (int, float)) and not isinstance(number, bool) and 0 < number <= _MAX_NUMBER:
        return float(number)
    raise QueryError(f"must be a number above 0, or a duration such as '60 seconds'; got {shown(value)}", option=name)


def _read_text(text: str) -> int | None:
    is_negative = text.lstrip().startswith("-")
    text = text.lstrip()[1:] if is_negative else text
    if not text.strip():
        return None
    total, place = Decimal(0), 0
    while place < len(text):
        found = _PIECE.match(text, place)
        if found is None:
            return None
        unit = found[2].lower()
        scale = _MICROSECONDS.get(unit) or _MICROSECONDS.get(unit.removesuffix("s"))
        if scale is None:
            return None
        total += Decimal(found[1]) * scale
        place = found.end()
    read = round(min(total, Decimal(2 * _MAX_DURATION)))
    return -read if is_negative else read


def write_duration(microseconds: int) -> str:
    """A duration as text, which `read_duration` reads.

    >>> write_duration(5_400_000_000), write_duration(250_000)
    ('1 hour 30 minutes', '250 milliseconds')
    """
    pieces = []
    for unit in ("day", "hour", "minute", "second", "millisecond", "microsecond"):
        n, microseconds = divmod(microseconds, _MICROSECONDS[unit])
        if n:
            pieces.append(f"{n} {unit}{'s' * (n > 1)}")
    return " ".join(pieces)


def number_or_duration(text: str | None) -> str | int | float | None:
    """A number if the text is one, for times that are numbers; else the text of a duration, such as '5 minutes'.

    >>> number_or_duration("90"), number_or_duration("1.5"), number_or_duration("5 minutes")
    (90, 1.5, '5 minutes')
    """
    for number in (int, float):
        try:
            return None if text is None else number(text)
        except ValueError:
            pass
    return text
