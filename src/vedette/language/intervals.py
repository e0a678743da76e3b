"""INTERVAL literals as Spark reads them: `INTERVAL 5 MINUTES`, `INTERVAL '1 02:03:04' DAY TO SECOND`.

An interval is a number of months (years and months) or of microseconds (weeks, days and times). Both never mix.
"""

from __future__ import annotations

import re
from functools import lru_cache

from vedette.errors import shortened
from vedette.language.expressions import DAY_INTERVAL, MONTH_INTERVAL, TIME_INTERVAL
from vedette.language.times import MICROS_PER_DAY, MICROS_PER_SECOND, SPACE

_MONTHS = {"year": 12, "month": 1}
_DAYS = {"week": 7, "day": 1}
_MICROS = {
    "hour": 3600 * MICROS_PER_SECOND,
    "minute": 60 * MICROS_PER_SECOND,
    "second": MICROS_PER_SECOND,
    "millisecond": 1000,
    "microsecond": 1,
}
UNITS = tuple({**_MONTHS, **_DAYS, **_MICROS})
_UNIT = rf"(?:{'|'.join(UNITS)})s?"
_QUOTED = r"'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.|\"\")*\""
_WRITTEN_PAIR = re.compile(rf"\s*([+-]?)\s*({_QUOTED}|[^\s'\"]+)\s*({_UNIT})\b", re.IGNORECASE | re.DOTALL)
_WRITTEN_RANGE = re.compile(rf"\s*([+-]?)\s*({_QUOTED})\s*([a-z]+)\s+to\s+([a-z]+)\s*", re.IGNORECASE | re.DOTALL)
_PAIR = re.compile(rf"([+-]?)\s*(\d*(?:\.\d*)?)\s+({_UNIT})(?:\s+|\Z)", re.IGNORECASE | re.ASCII)
_NUMBER = re.compile(r"([+-]?)\s*(\d*)(?:\.(\d*))?", re.ASCII)
_SECONDS = r"(?P<second>\d{1,2})(?:\.(?P<fraction>\d{1,9}))?"
_RANGES = {  # Spark also takes | as a sign, which means +
    ("year", "month"): r"(?P<year>\d{1,9})-(?P<month>\d{1,2})",
    ("day", "hour"): r"(?P<day>\d{1,9}) (?P<hour>\d{1,2})",
    ("day", "minute"): r"(?P<day>\d{1,9}) (?P<hour>\d{1,2}):(?P<minute>\d{1,2})",
    ("day", "second"): rf"(?P<day>\d{{1,9}}) (?P<hour>\d{{1,2}}):(?P<minute>\d{{1,2}}):{_SECONDS}",
    ("hour", "minute"): r"(?P<hour>\d{1,10}):(?P<minute>\d{1,2})",
    ("hour", "second"): rf"(?P<hour>\d{{1,10}}):(?P<minute>\d{{1,2}}):{_SECONDS}",
    ("minute", "second"): rf"(?P<minute>\d{{1,12}}):{_SECONDS}",
}
_MOST = {"month": 11, "hour": 23, "minute": 59, "second": 59}  # of a unit that is not the first
_HINT = "write INTERVAL 5 MINUTES, INTERVAL '1 02:03:04' DAY TO SECOND or INTERVAL 3 MONTHS"


class _UnreadableError(Exception):
    """The literal is not an interval; the message says why."""


def interval_kind(raw: str) -> str:
    """The name of the type of an INTERVAL literal."""
    return _read(raw)[0]


def read_interval(raw: str) -> int | str:
    """The months or microseconds of an INTERVAL literal, or a sentence that says why it cannot be read."""
    return _read(raw)[1]


@lru_cache(maxsize=10_000)
def _read(raw: str) -> tuple[str, int | str]:
    try:
        return _read_text(raw[len("interval") :])
    except _UnreadableError as error:
        return TIME_INTERVAL.name, f"{shortened(raw, 60)} is not an interval: {error}; {_HINT}"


def _read_text(text: str) -> tuple[str, int]:
    from vedette.language.literals import text_of

    range_ = _WRITTEN_RANGE.fullmatch(text)
    if range_:
        sign, quoted, first, last = range_.groups()
        return _read_range(_signed(sign, text_of(quoted)), first.lower(), last.lower())
    if text.lstrip()[:1] in "'\"":
        quoted_text = text_of(text.strip()) if re.fullmatch(_QUOTED, text.strip(), re.DOTALL) else None
        if quoted_text is not None:
            return _add_up(_pairs_in(quoted_text))
    pairs, place = [], 0
    while place < len(text.rstrip()):
        found = _WRITTEN_PAIR.match(text, place)
        if not found:
            raise _UnreadableError("a number and a unit are needed")
        sign, value, unit = found.groups()
        value = _signed(sign, text_of(value) if value[0] in "'\"" else value)
        pairs.append((value.strip(SPACE), unit))
        place = found.end()
    return _add_up(pairs)


def _signed(sign: str, value: str) -> str:
    if sign != "-":
        return value
    return value[1:] if value.startswith("-") else f"-{value}"


def _pairs_in(text: str) -> list[tuple[str, str]]:
    """The numbers and units of a string such as '1 day 2 hours'."""
    text = text.strip(SPACE)
    if text[:8].lower() == "interval" and text[8:9].isspace():
        text = text[8:].strip(SPACE)
    pairs, place = [], 0
    while place < len(text):
        found = _PAIR.match(text, place)
        if not found:
            raise _UnreadableError("a number and a unit are needed")
        pairs.append((found[1] + found[2], found[3]))
        place = found.end()
    return pairs


def _add_up(pairs: list[tuple[str, str]]) -> tuple[str, int]:
    if not pairs:
        raise _UnreadableError("a number and a unit are needed")
    months = days = micros = 0
    units = []
    for value, unit in pairs:
        unit = unit.lower().removesuffix("s")
        units.append(unit)
        amount, fraction = _amount(value, unit)
        if unit in _MONTHS:
            months = _fit(months + amount * _MONTHS[unit], 31)
        elif unit in _DAYS:
            days = _fit(days + amount * _DAYS[unit], 31)
        else:
            micros = _fit(micros + _fit(amount * _MICROS[unit], 63) + fraction, 63)
    if all(unit in _MONTHS for unit in units):
        return MONTH_INTERVAL.name, months
    if any(unit in _MONTHS for unit in units):
        raise _UnreadableError("months do not mix with days and times")
    kind = DAY_INTERVAL if all(unit in _DAYS for unit in units) else TIME_INTERVAL
    return kind.name, _fit(days * MICROS_PER_DAY + micros, 63)


def _amount(value: str, unit: str) -> tuple[int, int]:
    """The whole number, and the microseconds of a fraction of a second."""
    found = _NUMBER.fullmatch(value)
    if not found or not (found[2] or found[3]) or len(found[2]) > 4000:
        raise _UnreadableError(f"{shortened(value, 30)!r} is not a number of {unit}s")
    sign, whole, fraction = found.groups()
    if fraction is not None and (unit != "second" or len(fraction) > 9):
        raise _UnreadableError("only seconds have a fraction, of at most nine digits")
    factor = -1 if sign == "-" else 1
    return factor * _fit(int(whole or 0), 63), factor * int((fraction or "")[:6].ljust(6, "0"))


def _read_range(text: str, first: str, last: str) -> tuple[str, int]:
    pattern = _RANGES.get((first, last))
    if pattern is None:
        raise _UnreadableError(f"there is no {first.upper()} TO {last.upper()}")
    found = re.fullmatch(rf"(?P<sign>[+|-])?{pattern}", text.strip(SPACE), re.ASCII)
    if not found:
        raise _UnreadableError(f"{shortened(text, 30)!r} is not {first.upper()} TO {last.upper()}")
    parts = {unit: int(digits) for unit, digits in found.groupdict().items() if digits and unit in UNITS}
    for unit, amount in parts.items():
        if unit != first and amount > _MOST[unit]:
            raise _UnreadableError(f"{amount} is too large for {unit.upper()} here")
    factor = -1 if found["sign"] == "-" else 1
    if first == "year":
        return MONTH_INTERVAL.name, _fit(factor * (12 * parts["year"] + parts["month"]), 31)
    micros = sum(amount * (MICROS_PER_DAY if unit == "day" else _MICROS[unit]) for unit, amount in parts.items())
    micros += int((found.groupdict().get("fraction") or "")[:6].ljust(6, "0"))
    return TIME_INTERVAL.name, _fit(factor * micros, 63)


def _fit(value: int, bits: int) -> int:
    if not -(2**bits) <= value < 2**bits:
        raise _UnreadableError("it is too long")
    return value
