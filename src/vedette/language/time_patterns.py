"""Patterns of dates and times, such as `yyyy-MM-dd HH:mm`: what Java's DateTimeFormatter and Spark make of them.

A pattern is compiled once. Letters whose meaning depends on the locale, or that Spark refuses, are refused by name.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from vedette.language.calendar import dates_of, days_of_year
from vedette.language.times import MICROS_PER_DAY, MICROS_PER_SECOND, Zone, days_of

MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_QUARTERS = ("1st quarter", "2nd quarter", "3rd quarter", "4th quarter")
_MOST = {  # letters, and how often each may be repeated
    **{"y": 6, "M": 4, "L": 4, "d": 2, "D": 3, "Q": 4, "q": 4, "E": 4, "a": 1, "H": 2, "h": 2, "k": 2, "K": 2},
    **{"m": 2, "s": 2, "S": 9, "X": 3, "x": 3, "Z": 3},
}
_ONLY_WRITTEN = "LEQq"  # Spark does not read them
_TOKEN = re.compile(r"([A-Za-z])\1*|'((?:[^']|'')*)'|([\[\]{}#'])|[^A-Za-z'\[\]{}#]+", re.DOTALL)
_MAX_LENGTH = 200  # characters of a pattern


class PatternError(Exception):
    """A pattern that is not supported. The message says why."""


class Piece(NamedTuple):
    """A letter with its repetitions, or a text."""

    letter: str
    repeats: int
    text: str


class Moment(NamedTuple):
    """A local time: what a pattern writes."""

    year: int
    month: int
    day: int
    day_of_year: int
    weekday: int
    micros: int  # since midnight
    offset: int  # seconds east of UTC


def split_pattern(pattern: str, *, reads: bool) -> list[Piece]:
    """The pieces of a pattern. Raises PatternError."""
    if len(pattern) > _MAX_LENGTH:
        raise PatternError(f"a pattern has at most {_MAX_LENGTH} characters")
    pieces, place = [], 0
    while place < len(pattern):
        found = _TOKEN.match(pattern, place)
        if not found or found[3]:
            raise PatternError(f"the pattern has {pattern[place]!r}, which is not supported")
        letter, text = found[1], found[0]
        if letter:
            _check_letter(letter, len(text), reads=reads)
            pieces.append(Piece(letter, len(text), ""))
        elif found[2] is not None:
            pieces.append(Piece("", 0, found[2].replace("''", "'") or "'"))
        else:
            pieces.append(Piece("", 0, text))
        place = found.end()
    return pieces


def is_pattern(text: str, *, reads: bool) -> bool:
    try:
        (reader_of if reads else writer_of)(text)
    except PatternError:
        return False
    return True


def _check_letter(letter: str, count: int, *, reads: bool) -> None:
    if letter not in _MOST or (reads and letter in _ONLY_WRITTEN):
        known = [each for each in _MOST if not (reads and each in _ONLY_WRITTEN)]
        raise PatternError(f"the letter {letter!r} is not supported; letters are: {', '.join(known)}")
    if count > _MOST[letter]:
        raise PatternError(f"{letter * count!r} is too long; at most {letter * _MOST[letter]!r}")


# -- writing

_Write = Callable[[Moment], str]


@lru_cache(maxsize=1000)
def writer_of(pattern: str) -> Callable[[Moment], str]:
    """A function that writes a moment. Raises PatternError."""
    parts = [_writer(piece) for piece in split_pattern(pattern, reads=False)]
    return lambda moment: "".join([part(moment) for part in parts])


def _writer(piece: Piece) -> _Write:
    letter, count = piece.letter, piece.repeats
    if not letter:
        return lambda _: piece.text
    if letter == "y":
        return lambda moment: _year(moment.year, count)
    if letter in "ML":
        return _number_or_name(lambda moment: moment.month, count, MONTHS)
    if letter in "Qq":
        names = tuple(f"Q{place}" for place in range(1, 5)) if count == 3 else _QUARTERS
        return _number_or_name(lambda moment: (moment.month - 1) // 3 + 1, 4 if count == 3 else count, names)
    if letter == "E":
        return lambda moment: WEEKDAYS[moment.weekday][: 9 if count == 4 else 3]
    if letter == "a":
        return lambda moment: "PM" if moment.micros >= MICROS_PER_DAY // 2 else "AM"
    if letter == "S":
        return lambda moment: f"{moment.micros % MICROS_PER_SECOND:06d}000"[:count]
    if letter in "XxZ":
        return lambda moment: _offset(moment.offset, letter, count)
    number = _NUMBERS[letter]
    return lambda moment: str(number(moment)).rjust(count, "0")


_NUMBERS: dict[str, Callable[[Moment], int]] = {
    "d": lambda moment: moment.day,
    "D": lambda moment: moment.day_of_year,
    "H": lambda moment: _hour(moment),
    "k": lambda moment: _hour(moment) or 24,
    "K": lambda moment: _hour(moment) % 12,
    "h": lambda moment: _hour(moment) % 12 or 12,
    "m": lambda moment: moment.micros // (60 * MICROS_PER_SECOND) % 60,
    "s": lambda moment: moment.micros // MICROS_PER_SECOND % 60,
}


def _hour(moment: Moment) -> int:
    return moment.micros // (3600 * MICROS_PER_SECOND)


def _year(year: int, count: int) -> str:
    if count == 2:
        return f"{abs(year) % 100:02d}"
    digits = str(abs(year)).rjust(count, "0")
    if year < 0:
        return f"-{digits}"
    return f"+{digits}" if count >= 4 and len(digits) > count else digits


def _number_or_name(number: Callable[[Moment], int], count: int, names: tuple[str, ...]) -> _Write:
    if count <= 2:
        return lambda moment: str(number(moment)).rjust(count, "0")
    return lambda moment: names[number(moment) - 1][: 3 if count == 3 else None]


def _offset(seconds: int, letter: str, count: int) -> str:
    hours, rest = divmod(abs(seconds), 3600)
    minutes = rest // 60
    if letter == "X" and seconds == 0:
        return "Z"
    colon = ":" if count == 3 and letter != "Z" else ""
    sign = "-" if seconds < 0 and (hours or minutes) else "+"
    if count == 1 and letter != "Z" and not minutes:
        return f"{sign}{hours:02d}"
    return f"{sign}{hours:02d}{colon}{minutes:02d}"


def moments_of(locals_: np.ndarray[tuple[int], np.dtype[np.int64]], offsets: list[int]) -> list[Moment]:
    """Local times, in microseconds, as moments."""
    days = np.floor_divide(locals_, MICROS_PER_DAY)
    dates = dates_of(days)
    columns = (*dates, days_of_year(days, dates), (days + 3) % 7, locals_ - days * MICROS_PER_DAY)
    return [Moment(*each) for each in zip(*(column.tolist() for column in columns), offsets, strict=True)]


# -- reading

_VARIABLE = {1: r"-?\d{1,19}+", 2: r"\d{2}"}
_OFFSETS = {"": r"[+-]\d\d\d\d", ":": r"[+-]\d\d:\d\d", "1": r"[+-]\d\d(?:\d\d)?"}
_QUANTITY = {"M": "month", "d": "day", "D": "day of year", "y": "year", "m": "minute", "s": "second", "S": "fraction"}
_RANGES = {
    "H": (0, 23),
    "k": (1, 24),
    "K": (0, 11),
    "h": (1, 12),
    "m": (0, 59),
    "s": (0, 59),
    "M": (1, 12),
    "d": (1, 31),
}


@dataclass(frozen=True)
class Reader:
    """Reads texts of one pattern."""

    regex: re.Pattern[str]
    pieces: tuple[Piece, ...]

    def read(self, text: str, zone: Zone | None) -> int | None:
        """Microseconds since 1970, or None if the text is not of the pattern. Without a zone, the local time counts."""
        found = self.regex.fullmatch(text)
        if not found:
            return None
        values: dict[str, int] = {}
        for place, piece in enumerate(self.pieces):
            value = _value(piece, found[f"p{place}"])
            low, high = _RANGES.get(piece.letter, (value, value)) if value is not None else (0, 0)
            if value is None or not low <= value <= high:
                return None
            values[piece.letter] = value
        days = _day(values)
        if days is None:
            return None
        local = days * MICROS_PER_DAY + _micros(values)
        offset = next((values[letter] for letter in "XxZ" if letter in values), None)
        if zone is None:
            instant = local
        else:
            instant = zone.to_instant(local) if offset is None else local - offset * MICROS_PER_SECOND
        return instant if -(2**63) <= instant < 2**63 else None


@lru_cache(maxsize=1000)
def reader_of(pattern: str) -> Reader:
    """Raises PatternError."""
    pieces = split_pattern(pattern, reads=True)
    regex, seen = "", set[str]()
    fields: list[Piece] = []
    previous: Piece | None = None
    for piece in pieces:
        if piece.letter:
            quantity = "hour" if piece.letter in "HkKh" else _QUANTITY.get(piece.letter, piece.letter)
            if quantity in seen:
                raise PatternError(f"the {quantity} is in the pattern twice")
            seen.add(quantity)
            _check_neighbours(previous, piece)
            regex += f"(?P<p{len(fields)}>{_regex(piece)})"
            fields.append(piece)
        else:
            regex += re.escape(piece.text)
        previous = piece
    if "day of year" in seen and seen & {"month", "day"}:
        raise PatternError("the day of the year does not go together with a month or a day")
    return Reader(re.compile(regex, re.IGNORECASE | re.ASCII | re.DOTALL), tuple(fields))


def _is_number(piece: Piece) -> bool:
    return piece.letter in "ydDHkKhmsS" or (piece.letter == "M" and piece.repeats <= 2)


def _check_neighbours(before: Piece | None, piece: Piece) -> None:
    if before is None or not before.letter or not (_is_number(before) and _is_number(piece)):
        return
    is_fixed = piece.repeats == 2 and piece.letter not in "DS"
    if (
        not is_fixed
        or (before.repeats != 2 and before.letter != "y")
        or (before.letter == "y" and before.repeats in (1, 3))
    ):
        raise PatternError(f"{before.letter!r} and {piece.letter!r} need a separator between them")


def _regex(piece: Piece) -> str:
    letter, count = piece.letter, piece.repeats
    if letter == "y":
        if count == 2:
            return r"\d{2}"
        if count < 4:
            return rf"-?\d{{{count},19}}+"
        return rf"\+\d{{{count + 1},19}}|-\d{{{count},19}}|\d{{{count}}}"
    if letter == "M" and count > 2:
        return "|".join(sorted((name[:3] if count == 3 else name for name in MONTHS), key=len, reverse=True))
    if letter == "a":
        return "AM|PM"
    if letter == "S":
        return rf"\d{{1,{count}}}+"
    if letter == "D" and count > 1:
        return rf"\d{{{count},3}}+"
    if letter in "XxZ":
        style = "" if letter == "Z" or count == 2 else ":" if count == 3 else "1"
        return _OFFSETS[style] + ("|Z" if letter == "X" else "")
    return _VARIABLE[count]


def _value(piece: Piece, text: str) -> int | None:
    if piece.letter == "M" and piece.repeats > 2:
        return 1 + [name[:3] for name in MONTHS].index(text[:3].capitalize())
    if piece.letter == "a":
        return int(text.upper() == "PM")
    if piece.letter == "S":
        return int(text.ljust(6, "0")[:6])
    if piece.letter in "XxZ":
        if text in "Zz":
            return 0
        digits = text[1:].replace(":", "").ljust(4, "0")
        seconds = int(digits[:2]) * 3600 + int(digits[2:]) * 60
        return None if int(digits[2:]) > 59 or seconds > 18 * 3600 else -seconds if text[0] == "-" else seconds
    value = int(text)
    return value + 2000 if piece.letter == "y" and piece.repeats == 2 else value


def _day(values: dict[str, int]) -> int | None:
    """Missing parts are those of 1970-01-01."""
    year = values.get("y", 1970)
    if abs(year) > 300_000:
        return None
    if "D" in values:
        first, number = days_of(year, 1, 1), values["D"]
        is_leap = days_of(year, 2, 29) is not None
        return None if first is None or not 1 <= number <= 365 + is_leap else first + number - 1
    return days_of(year, values.get("M", 1), values.get("d", 1))


def _micros(values: dict[str, int]) -> int:
    """Missing parts are 0; PM alone is noon."""
    afternoon = values.get("a", 0)
    if "K" in values or "h" in values:
        hour = values.get("K", values.get("h", 0)) % 12 + 12 * afternoon
    elif "H" in values or "k" in values:
        hour = values.get("H", values.get("k", 0)) % 24
    else:
        hour = 12 * afternoon
    seconds = (hour * 60 + values.get("m", 0)) * 60 + values.get("s", 0)
    return seconds * MICROS_PER_SECOND + values.get("S", 0)
