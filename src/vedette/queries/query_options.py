"""Options of a query: how border monitoring reports it. The options of the monitor are the defaults."""

from __future__ import annotations

import datetime
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from vedette.data.durations import read_duration
from vedette.errors import QueryError, nearest, shown

DURATIONS = ("dwell", "expire_after", "cooldown")
OPTIONS = ("dwell", "margin", "expire_after", "cooldown", "once")
ONCE = (False, True)  # by code


def read_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """The options of one query as plain values, without those that are None. Raises QueryError if one is invalid.

    >>> read_options({"cooldown": "1 hour", "once": None})
    {'cooldown': '1 hour'}
    """
    check_names(given)
    return {name: _read(name, value) for name, value in given.items() if value is not None}


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
        if not isinstance(value, bool):
            raise QueryError(f"must be True or False; got {shown(value)}", option="once")
        return value
    if name == "margin":
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not is_number or not 0 <= value <= sys.float_info.max:
            raise QueryError(f"of a query must be a number of 0 or more; got {shown(value)}", option="margin")
        return float(value)
    if isinstance(value, datetime.timedelta):
        value = f"{value // datetime.timedelta(microseconds=1)} microseconds"
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    read_duration(value, name, "double" if is_number else "timestamp")
    return value


def to_number(name: str, value: Any) -> tuple[float, bool]:
    """A valid value as a number, and whether a duration was given as a number. Texts are microseconds."""
    if name == "once":
        return float(ONCE.index(value)), False
    if name in DURATIONS and isinstance(value, str):
        return float(read_duration(value, name, "timestamp")), False
    return float(value), True


def to_value(name: str, number: float, is_number: bool) -> Any:
    """The inverse of `to_number`."""
    if name == "once":
        return ONCE[int(number)]
    if name in DURATIONS and not is_number:
        return f"{int(number)} microseconds"
    return int(number) if name in DURATIONS and number.is_integer() else number
