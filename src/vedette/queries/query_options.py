"""Options of a query: how border monitoring reports it. The options of the monitor are the defaults."""

from __future__ import annotations

import datetime
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from vedette.data.durations import number_or_duration, read_duration, write_duration
from vedette.errors import QueryError, nearest, shown
from vedette.queries.metres import read_metres

DURATIONS = ("dwell", "expire_after", "cooldown")
IN_UNITS = (*DURATIONS, "margin")  # a number, or a text with a unit
OPTIONS = ("dwell", "margin", "expire_after", "cooldown", "once")
PER_QUERY = "query"  # once: one report for all keys
ONCE = (False, True, PER_QUERY)  # by code


def read_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """The options of one query as plain values, without those that are None. Raises QueryError if one is invalid.

    >>> read_options({"cooldown": "1 hour", "once": None})
    {'cooldown': '1 hour'}
    """
    check_names(given)
    return {name: _read(name, value) for name, value in given.items() if value is not None}


def take_options(cells: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a query from the cells of a line. An empty cell is none. Raises QueryError."""
    return read_options({name: _take_option(name, cell) for name, cell in cells.items() if cell not in (None, "")})


def _take_option(name: str, cell: Any) -> Any:
    if not isinstance(cell, str):
        return cell
    if name == "once":
        word = cell.strip().lower()
        return {"true": True, "false": False, PER_QUERY: PER_QUERY}.get(word, cell)
    return number_or_duration(cell)


def check_once(value: Any) -> None:
    """Raise QueryError unless this is True, False or "query"."""
    if not isinstance(value, bool) and not (isinstance(value, str) and value == PER_QUERY):
        raise QueryError(f"must be True, False or {PER_QUERY!r}; got {shown(value)}", option="once")


def check_names(given: Mapping[str, Any]) -> None:
    """Raise QueryError if a name is not that of an option."""
    for name in given:
        if name not in OPTIONS:
            raise QueryError(
                f"a query has no option {shown(name)}; options are: {', '.join(OPTIONS)}{nearest(str(name), OPTIONS)}"
            )


def _read(name: str, value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.astype("m8[us]").item() if isinstance(value, np.timedelta64) else value.item()
    if name == "once":
        check_once(value)
        return value
    if name == "margin":
        words = "of a query must be a number of 0 or more, or metres such as '50 m'"
        if isinstance(value, str):
            read_metres(value, words)
            return value
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not is_number or not 0 <= value <= sys.float_info.max:
            raise QueryError(f"{words}; got {shown(value)}", option="margin")
        return float(value)
    if isinstance(value, datetime.timedelta):
        read_duration(value, name, "timestamp")
        value = write_duration(value // datetime.timedelta(microseconds=1))
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    read = read_duration(value, name, "double" if is_number else "timestamp")
    if int(float(read)) != read and isinstance(read, int):
        raise QueryError(
            f"of a query must be at most {2**53:,}, or a multiple of a higher power of 2: it is kept as a double; "
            f"got {shown(value)}",
            option=name,
        )
    return value


def to_number(name: str, value: Any) -> tuple[float, bool]:
    """A valid value as a number, and whether it was given as one. Texts are microseconds, or the metres of a margin."""
    if name == "once":
        return float(ONCE.index(value)), False
    if name == "margin" and isinstance(value, str):
        return read_metres(value), False
    if name in DURATIONS and isinstance(value, str):
        return float(read_duration(value, name, "timestamp")), False
    return float(value), True


def to_value(name: str, number: float, is_number: bool) -> Any:
    """The inverse of `to_number`."""
    if name == "once":
        return ONCE[int(number)]
    if name == "margin" and not is_number:
        return f"{np.format_float_positional(number, trim='-')} m"
    if name in DURATIONS and not is_number:
        return write_duration(int(number))
    return int(number) if name in DURATIONS and number.is_integer() else number
