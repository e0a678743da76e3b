"""Literals as Spark types them, read in bulk, and cast to the type they are compared in."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np

from vedette.data.schema import INTEGER_BITS, NUMBER_NAMES, Type
from vedette.errors import QueryError, shortened, shown
from vedette.language.intervals import interval_kind, read_interval
from vedette.language.numerals import boolean_of, decimal_of, double_of, float_of, integer_of, nearest_float, rescale
from vedette.language.times import Zone, parse_date, parse_local_time, parse_timestamp
from vedette.language.types import MAX_PRECISION

_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7][0-7])|(.))", re.DOTALL)
_ESCAPED = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}

_SUFFIXES = {**dict.fromkeys("lL", "bigint"), **dict.fromkeys("sS", "smallint")}
_SUFFIXES |= {**dict.fromkeys("yY", "tinyint"), **dict.fromkeys("fF", "float")}
_MAX_FLOAT, _MAX_DOUBLE = Decimal("3.4028234663852886E38"), Decimal("1.7976931348623157E308")


class BadLiteralError(Exception):
    """Literal number `position` of a slot cannot be read or cast. The compiler turns it into a QueryError."""

    def __init__(self, reason: str, position: int) -> None:
        super().__init__(reason)
        self.reason = reason
        self.position = position


class SlotError(Exception):
    """A literal that cannot be read or cast: the slot, and which text of the group."""

    def __init__(self, reason: str, slot: int, position: int) -> None:
        super().__init__(reason)
        self.reason, self.slot, self.position = reason, slot, position


@dataclass(frozen=True)
class Kind:
    """Spark's type of a literal. `precision` and `scale` are 0 if literals of several sizes are compiled together."""

    name: str  # of a number, string, date or timestamp
    precision: int = 0
    scale: int = 0
    beyond: int = 0  # of a decimal: 1 if it is above the range of 64 bits, -1 if it is below

    @property
    def type(self) -> Type:
        if self.name == "decimal":
            return Type("decimal", self.precision, self.scale)
        return Type(self.name)


def kinds_of(raws: Sequence[str], negated: bool) -> list[str]:
    """The kind of each literal of a slot; 'decimal>' and 'decimal<' are beyond 64 bits."""
    if all(map(str.isdigit, raws)) and len(max(raws, key=len)) < 10:
        return ["int"] * len(raws)
    return [_kind(raw, negated) for raw in raws]


def _kind(raw: str, negated: bool) -> str:
    first = raw[0]
    if first in "'\"":
        return "string"
    if first in "rR":
        return "string"
    if first in "xX":
        return "binary"
    if first in "dD":
        return "date"
    if first in "tT":
        return "timestamp_ntz" if raw[:13].lower() == "timestamp_ntz" else "timestamp"
    if first in "iI":
        return interval_kind(raw)
    if raw.isdigit():
        digits = raw.lstrip("0")
        value = int(digits or 0) if len(digits) < 20 else 2**64
        return "int" if value < 2**31 + negated else "bigint" if value < 2**63 + negated else f"decimal{'><'[negated]}"
    last = raw[-1]
    if last in _SUFFIXES:
        return _SUFFIXES[last]
    if last in "dD" and raw[-2] not in "bB":
        return "double"
    if "e" in raw or "E" in raw:
        return "decimal" if last in "dD" else "double"
    return "decimal" if len(raw) < 20 or not _is_beyond(raw, negated) else f"decimal{'><'[negated]}"


def _is_beyond(raw: str, negated: bool) -> bool:
    if size_of(raw, "decimal")[0] > MAX_PRECISION:
        return False  # `check_numbers` refuses it
    unscaled, scale = _decimal(raw)
    return unscaled > (2**63 if negated else 2**63 - 1) * int(10**scale)


def size_of(raw: str, kind: str) -> tuple[int, int]:
    """Precision and scale of a number as a decimal; (0, 0) if it is not a number."""
    if kind == "tinyint":  # Spark does not look at its digits
        return 3, 0
    if kind != "decimal" and kind not in INTEGER_BITS:
        return 0, 0
    digits, scale = _digits(raw)
    return max(len(digits), scale, 1), scale


def _digits(raw: str) -> tuple[str, int]:
    """The digits of a number without exponent, without leading zeros, and its scale."""
    whole, _, fraction = raw.rstrip("lLsSyYdDbB").partition(".")
    return (whole + fraction).lstrip("0"), len(fraction)


def _decimal(raw: str) -> tuple[int, int]:
    """A number without exponent, of at most 38 digits, as an unscaled integer and a scale."""
    digits, scale = _digits(raw)
    return int(digits or 0), scale


def check_numbers(raws: Sequence[str], kind: str, negated: bool) -> None:
    """Refuse numbers that Spark refuses: integers with a suffix beyond its bits, decimals beyond 38 digits."""
    for position, raw in enumerate(raws):
        if kind in INTEGER_BITS and not raw[-1].isdigit():
            if not raw[:-1].isdigit():
                raise BadLiteralError(f"{shortened(raw, 60)} is not a number: {raw[-1]} is for integers", position)
            digits, _ = _digits(raw)
            if len(digits) > 19 or int(digits or 0) >= 2 ** (INTEGER_BITS[kind] - 1) + negated:
                raise BadLiteralError(f"{shortened(raw, 60)} is beyond {INTEGER_BITS[kind]} bits", position)
        if kind == "decimal" and len(raw) > MAX_PRECISION:
            if "e" in raw.lower():
                raise BadLiteralError("a decimal with an exponent is not supported; write its digits", position)
            if size_of(raw, kind)[0] > MAX_PRECISION:
                raise BadLiteralError(f"{shortened(raw, 60)} has more than {MAX_PRECISION} digits", position)
        elif kind == "decimal" and ("e" in raw or "E" in raw):
            raise BadLiteralError("a decimal with an exponent is not supported; write its digits", position)
        if kind == "double" and float(raw.rstrip("dD")) > 1e308 and Decimal(raw.rstrip("dD")) > _MAX_DOUBLE:
            raise BadLiteralError(f"{shortened(raw, 60)} is beyond the range of a double", position)
        if kind == "float" and Decimal(raw[:-1]) > _MAX_FLOAT:
            raise BadLiteralError(f"{shortened(raw, 60)} is beyond the range of a float", position)


def read_strings(raws: Sequence[str]) -> list[str]:
    return [
        raw[1:-1] if "\\" not in raw and raw[0] == "'" and raw.find("'", 1) == len(raw) - 1 else _unquote(raw)
        for raw in raws
    ]


def _unquote(raw: str) -> str:
    if raw[0] in "rR":
        return raw[2:-1]
    quote = raw[0]
    inside = raw[1:-1].replace(quote * 2, quote)
    return _join_surrogates(_ESCAPE.sub(_unescape, inside)) if "\\" in inside else inside


def _join_surrogates(text: str) -> str:
    """Join surrogate pairs, as Java does; a lone surrogate becomes a question mark."""
    if text.isascii():
        return text
    pairs = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return pairs.encode(errors="replace").decode()


def _unescape(found: re.Match[str]) -> str:
    four, eight, octal, other = found.groups()
    if four or eight:
        code = int(four or eight, 16)
        if code < 0x110000:
            return chr(code)
        high, low = divmod(code - 0x10000, 0x400)  # beyond Unicode: the two halves that Spark makes of it
        return chr((0xD800 + high) & 0xFFFF) + chr(0xDC00 + low)
    return chr(int(octal, 8)) if octal else _ESCAPED.get(other, other)


def text_of(raw: str) -> str:
    """The text between the quotes of a string, DATE or TIMESTAMP literal."""
    quote = min(place for place in (raw.find("'"), raw.find('"')) if place >= 0)
    return _unquote(raw[quote:])


def physical(raws: Sequence[str], kind: str, negated: bool, to: Type, zone: str) -> Any:
    """Literals of one kind, cast to `to` as Spark would cast them, in the physical form of that type.

    Strings come as an object array of `str`. Raises BadLiteralError if Spark could not read or cast a literal.
    """
    if kind in NUMBER_NAMES:
        return _physical_number(raws, kind, negated, to)
    if kind == "date":
        days = _read_all([text_of(raw) for raw in raws], parse_date, "is not a date; write DATE '2024-12-31'")
        if to.name == "date":
            return np.array(days, np.int64)
        if to.name in ("timestamp", "timestamp_ntz"):
            instants = Zone(zone if to.name == "timestamp" else "UTC").midnights(np.array(days, np.int64))
            if instants.dtype == object:
                raise BadLiteralError("the date is out of the range of timestamps", 0)
            return instants
        raise BadLiteralError(f"a date cannot be cast to {to} here", 0)
    if kind == "timestamp":
        texts = [text_of(raw) for raw in raws]
        if to.name != "timestamp":
            raise BadLiteralError(f"a timestamp cannot be cast to {to} here", 0)
        hint = "is not a timestamp; write TIMESTAMP '2024-12-31 23:59:59'"
        return np.array(_read_all(texts, lambda text: parse_timestamp(text, zone), hint), np.int64)
    if kind == "timestamp_ntz":
        hint = "is not a timestamp; write TIMESTAMP_NTZ '2024-12-31 23:59:59'"
        locals_ = _read_all([text_of(raw) for raw in raws], parse_local_time, hint)
        if to.name not in ("timestamp", "timestamp_ntz"):
            raise BadLiteralError(f"a timestamp_ntz cannot be cast to {to} here", 0)
        return np.array(locals_ if to.name == kind else list(map(Zone(zone).to_instant, locals_)), np.int64)
    if kind == "binary":
        if to.name != "binary":
            raise BadLiteralError(f"a binary cannot be cast to {to} here", 0)
        return np.array(_read_all([text_of(raw) for raw in raws], _read_hexadecimal, "is not hexadecimal"), object)
    if kind.startswith("interval"):
        return _physical_intervals(raws, negated)
    return cast_strings(read_strings(raws), to, zone)


def cast_strings(texts: list[str], to: Type, zone: str) -> Any:
    """String literals cast to another type; a text that cannot be cast is a BadLiteralError."""
    if to.name == "string":
        return np.array(texts, object)
    if to.name == "binary":
        return np.array([text.encode().decode("latin-1") for text in texts], object)
    readers: dict[str, tuple[Callable[[str], Any], Any]] = {
        **{name: (partial(integer_of, bits=bits), np.int64) for name, bits in INTEGER_BITS.items()},
        "double": (double_of, np.float64),
        "float": (float_of, np.float64),
        "boolean": (boolean_of, np.bool_),
        "date": (parse_date, np.int64),
        "timestamp": (lambda text: parse_timestamp(text, zone), np.int64),
        "timestamp_ntz": (parse_local_time, np.int64),
        "decimal": (lambda text: decimal_of(text, to), np.int64 if to.precision <= 18 else object),
    }
    read, dtype = readers[to.name]
    return np.array(_read_all(texts, read, f"cannot be cast to {to}"), dtype)


def _read_hexadecimal(digits: str) -> str | None:
    """The bytes of hexadecimal digits, as the characters with their numbers."""
    if not re.fullmatch("[0-9a-fA-F]*", digits):
        return None
    return bytes.fromhex("0" * (len(digits) % 2) + digits).decode("latin-1")


def _read_all(texts: list[str], read: Callable[[str], Any], complaint: str) -> list[Any]:
    values = list(map(read, texts))
    if None in values:
        position = values.index(None)
        raise BadLiteralError(f"{shown(texts[position])} {complaint}", position)
    return values


def _whole(raw: str) -> int:
    """An integer that fits 64 bits. Python reads at most 4,300 digits, leading zeros included."""
    return int(raw.rstrip("lLsSyY") if len(raw) < 4000 else _digits(raw)[0] or 0)


def _physical_number(raws: Sequence[str], kind: str, negated: bool, to: Type) -> Any:
    if to.is_floating and (kind == "float" or to.name == "double"):
        if kind in INTEGER_BITS:  # an integer goes through 64 bits, as Spark's literal does
            doubles = np.array([_whole(raw) for raw in raws], object).astype(np.float64)
        elif kind == "float":
            doubles = np.array([nearest_float(raw[:-1]) for raw in raws], np.float64)
        else:
            doubles = np.array([float(raw.rstrip("dDbB")) for raw in raws], np.float64)
        return (-doubles if negated else doubles) + 0.0  # -0.0 becomes 0.0, which it equals
    if to.is_integer and kind in INTEGER_BITS and INTEGER_BITS[to.name] >= INTEGER_BITS[kind]:
        values = [_whole(raw) for raw in raws]
        return np.array([-value for value in values] if negated else values, np.int64)
    if to.name == "decimal":
        return _physical_decimal(raws, negated, to)
    raise BadLiteralError(f"a number cannot be cast to {to} here", 0)


def _physical_intervals(raws: Sequence[str], negated: bool) -> Any:
    """Months or microseconds."""
    values = []
    for position, raw in enumerate(raws):
        value = read_interval(raw)
        if isinstance(value, str):
            raise BadLiteralError(value, position)
        if negated and value == -(2**63):
            raise BadLiteralError(f"{raw} has no opposite in 64 bits", position)
        values.append(-value if negated else value)
    return np.array(values, np.int64)


def _physical_decimal(raws: Sequence[str], negated: bool, to: Type) -> Any:
    values = []
    for position, raw in enumerate(raws):
        unscaled, scale = _decimal(raw)
        moved = rescale(-unscaled if negated else unscaled, scale, to.scale)
        if abs(moved) >= 10**to.precision:
            raise BadLiteralError(f"{raw} does not fit into {to}", position)
        values.append(moved)
    return np.array(values, np.int64 if to.precision <= 18 else object)


def exact_decimals(raws: Sequence[str], negated: bool) -> tuple[list[int], list[int]]:
    """Unscaled values and scales of numbers without exponent."""
    pairs = [_decimal(raw) for raw in raws]
    return [-u if negated else u for u, _ in pairs], [scale for _, scale in pairs]


def as_query_error(bad: BadLiteralError, text: str, start: int, end: int) -> QueryError:
    return QueryError(bad.reason, text, start, end)
