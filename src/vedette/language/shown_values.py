"""Single values of expressions for people and programs: as Python objects, as literals of a query, and as JSON."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa

from vedette.data.schema import Type, element_of, is_array, is_map, value_of
from vedette.errors import shortened
from vedette.language.expressions import INTERVALS, MONTH_INTERVAL

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_LONGEST = 60  # characters of a value in a text


def to_python(values: Any, type_: Type, zone: str) -> Any:
    """The first of the values, which are in the physical form of a type. Dates outside of Python's range are texts."""
    held = values[0].as_py() if isinstance(values, pa.Array) else values[0]
    held = held.item() if hasattr(held, "item") else held
    if is_array(type_):
        return [_plain(each, element_of(type_), zone) for each in held or ()]
    if is_map(type_):
        return {each["key"]: _plain(each["value"], value_of(type_), zone) for each in held or ()}
    return _plain(held, type_, zone)


def _plain(held: Any, type_: Type, zone: str) -> Any:
    if held is None or type_.name in ("string", "boolean", "null") or type_.is_floating:
        return held
    if type_.name == "binary":
        return str(held).encode("latin-1")
    if type_.name == "decimal":
        return Decimal(f"{held}e-{type_.scale}")
    if type_.name == "date":
        return _date(held)
    if type_.name == "timestamp":
        return _timestamp(held, zone)
    if type_.name == "timestamp_ntz":
        local = _timestamp(held, "UTC")
        return local if isinstance(local, str) else local.replace(tzinfo=None)
    if type_ in INTERVALS and type_ != MONTH_INTERVAL:
        return _duration(held)
    return int(held)


def _date(days: int) -> dt.date | str:
    try:
        return _EPOCH.date() + dt.timedelta(days=days)
    except OverflowError:
        return f"{days} days after 1970-01-01"


def _timestamp(micros: int, zone: str) -> dt.datetime | str:
    try:
        return (_EPOCH + dt.timedelta(microseconds=micros)).astimezone(ZoneInfo(zone))
    except (OverflowError, ValueError):
        return f"{micros} microseconds after 1970-01-01 00:00:00 UTC"


def _duration(micros: int) -> dt.timedelta | str:
    try:
        return dt.timedelta(microseconds=micros)
    except OverflowError:
        return f"{micros} microseconds"


def write_literal(value: Any, type_: Type) -> str:
    """A value as a query has it: `'IBM'`, `40`, `DATE '2024-03-01'`."""
    if isinstance(value, dt.timedelta):
        return f"INTERVAL {write_duration(value).upper()}"
    if isinstance(value, dt.datetime):
        return f"{'TIMESTAMP_NTZ' if type_.name == 'timestamp_ntz' else 'TIMESTAMP'} '{_iso(value)}'"
    if isinstance(value, dt.date):
        return f"DATE '{value}'"
    if type_ == MONTH_INTERVAL:
        return f"INTERVAL '{value}' MONTH"
    return show_value(value)


def show_value(value: Any) -> str:
    """A value in a sentence."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, str):
        quoted = value.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
        return f"'{shortened(quoted, _LONGEST)}'"
    if isinstance(value, bytes):
        return f"X'{shortened(value.hex().upper(), _LONGEST)}'"
    if isinstance(value, list):
        return shortened(f"[{', '.join(map(show_value, value[:_LONGEST]))}]", _LONGEST)
    if isinstance(value, dict):
        entries = (f"{show_value(key)}: {show_value(held)}" for key, held in list(value.items())[:_LONGEST])
        return shortened(f"{{{', '.join(entries)}}}", _LONGEST)
    if isinstance(value, float):
        return show_number(value)
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, dt.timedelta):
        return write_duration(value)
    return _iso(value) if isinstance(value, dt.datetime) else str(value)


def show_number(value: float) -> str:
    """A number without a fraction of zero: 40, 0.1, 1e+300, NaN."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    text = repr(value)
    return text.removesuffix(".0")


def write_duration(value: dt.timedelta) -> str:
    """A duration in words: `1 hour 30 minutes`, `0.25 seconds`.

    >>> write_duration(dt.timedelta(days=1, seconds=90)), write_duration(dt.timedelta(microseconds=-1500))
    ('1 day 1 minute 30 seconds', '-0.0015 seconds')
    """
    micros = abs(value) // dt.timedelta(microseconds=1)
    words = []
    for unit, size in (("day", 86_400_000_000), ("hour", 3_600_000_000), ("minute", 60_000_000)):
        number, micros = divmod(micros, size)
        if number:
            words.append(f"{number} {unit}{'s' if number > 1 else ''}")
    if micros or not words:
        seconds = f"{micros // 1_000_000}.{micros % 1_000_000:06}".rstrip("0").rstrip(".")
        words.append(f"{seconds} second{'' if seconds == '1' else 's'}")
    return ("-" if value < dt.timedelta(0) else "") + " ".join(words)


def to_json_value(value: Any) -> Any:
    """A value that JSON can hold: numbers, texts, booleans, null and lists of them."""
    if isinstance(value, list):
        return [to_json_value(each) for each in value]
    if isinstance(value, dict):
        return {key: to_json_value(held) for key, held in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return show_number(value)
    if isinstance(value, dt.timedelta):
        return value / dt.timedelta(seconds=1)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, (dt.datetime, dt.date)):
        return value.isoformat()
    return str(value) if isinstance(value, Decimal) else value


def _iso(value: dt.datetime) -> str:
    return value.isoformat(sep=" ").removesuffix("+00:00")
