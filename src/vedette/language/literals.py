"""Literals as Spark types them, read in bulk, and cast to the type they are compared in."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vedette.errors import QueryError
from vedette.language.times import Zone, parse_date, parse_timestamp
from vedette.schema import Type

_TRIMMED = "".join(chr(code) for code in (*range(0x21), 0x7F))
_INTEGER = re.compile(r"[+-]?(\d+)(\.\d*)?|[+-]?\.\d+", re.ASCII)
_DOUBLE = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)[fFdD]?", re.ASCII)
_DECIMAL = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_TRUE, _FALSE = {"t", "true", "y", "yes", "1"}, {"f", "false", "n", "no", "0"}
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7][0-7])|(.))", re.DOTALL)
_ESCAPED = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}


class BadLiteralError(Exception):
    """Literal number `position` of a slot cannot be read or cast; the compiler makes it a QueryError with the place."""

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
    """How Spark types a literal. `precision` and `scale` are 0 where literals of several sizes are taken together."""

    name: str  # int, bigint, decimal, double, string, date, timestamp
    precision: int = 0
    scale: int = 0
    beyond: int = 0  # of a decimal: 1 where it is above, -1 where it is below what 64 bits hold

    @property
    def type(self) -> Type:
        if self.name == "decimal":
            return Type("decimal", self.precision, self.scale)
        return Type(self.name)


def kinds_of(raws: Sequence[str], negated: bool) -> list[str]:
    """The kind of each literal of a slot; 'decimal>' and 'decimal<' are those beyond 64 bits."""
    if all(map(str.isdigit, raws)) and len(max(raws, key=len)) < 10:
        return ["int"] * len(raws)
    return [_kind(raw, negated) for raw in raws]


def _kind(raw: str, negated: bool) -> str:
    first = raw[0]
    if first in "'\"":
        return "string"
    if first in "rR":
        return "string"
    if first in "dD":
        return "date"
    if first in "tT":
        return "timestamp"
    if raw.isdigit():
        value = int(raw)
        return "int" if value < 2**31 + negated else "bigint" if value < 2**63 + negated else f"decimal{'><'[negated]}"
    last = raw[-1]
    if last in "lL":
        return "bigint"
    if last in "dD" and raw[-2] not in "bB":
        return "double"
    if "e" in raw or "E" in raw:
        return "decimal" if last in "dD" else "double"
    return "decimal" if len(raw) < 20 or not _is_beyond(raw, negated) else f"decimal{'><'[negated]}"


def _is_beyond(raw: str, negated: bool) -> bool:
    unscaled, scale = _decimal(raw)
    return unscaled > (2**63 if negated else 2**63 - 1) * int(10**scale)


def size_of(raw: str, kind: str) -> tuple[int, int]:
    """Precision and scale of a number as a decimal; (0, 0) of what is none."""
    if kind not in ("int", "bigint", "decimal"):
        return 0, 0
    unscaled, scale = _decimal(raw)
    return max(len(str(unscaled)), scale), scale


def _decimal(raw: str) -> tuple[int, int]:
    """A number without exponent as an unscaled integer and a scale."""
    digits = raw.rstrip("lLdDbB")
    whole, _, fraction = digits.partition(".")
    return int(whole + fraction), len(fraction)


def check_numbers(raws: Sequence[str], kind: str, negated: bool) -> None:
    """Refuse numbers that Spark refuses: integers with an L beyond 64 bits, decimals beyond 38 digits."""
    for position, raw in enumerate(raws):
        if kind == "bigint" and raw[-1] in "lL" and int(raw[:-1]) >= 2**63 + negated:
            raise BadLiteralError(f"{raw} is beyond 64 bits", position)
        if kind == "decimal" and len(raw) > 38:
            if "e" in raw.lower():
                raise BadLiteralError("a decimal with an exponent is not taken; write its digits", position)
            if size_of(raw, kind)[0] > 38:
                raise BadLiteralError(f"{raw} has more than 38 digits", position)
        elif kind == "decimal" and ("e" in raw or "E" in raw):
            raise BadLiteralError("a decimal with an exponent is not taken; write its digits", position)
        if kind == "double" and not np.isfinite(float(raw.rstrip("dD"))):
            raise BadLiteralError(f"{raw} is beyond the range of a double", position)


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
    """Two escapes may write one character, as in Java; half a one is a question mark."""
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
    """What stands between the quotes of a string, DATE or TIMESTAMP literal."""
    quote = min(place for place in (raw.find("'"), raw.find('"')) if place >= 0)
    return _unquote(raw[quote:])


def physical(raws: Sequence[str], kind: str, negated: bool, to: Type, zone: str) -> Any:
    """Literals of one kind, cast to `to` as Spark would cast them, in the physical form of that type.

    Strings come as an object array of `str`. Raises BadLiteralError where Spark would fail to read or cast.
    """
    if kind in ("int", "bigint", "decimal", "double"):
        return _physical_number(raws, kind, negated, to)
    if kind == "date":
        days = _read_all([text_of(raw) for raw in raws], parse_date, "is no date; write DATE '2024-12-31'")
        if to.name == "date":
            return np.array(days, np.int64)
        if to.name == "timestamp":
            instants = Zone(zone).midnights(np.array(days, np.int64))
            if instants.dtype == object:
                raise BadLiteralError("the date is beyond what a timestamp can hold", 0)
            return instants
        raise BadLiteralError(f"a date cannot become {to} here", 0)
    if kind == "timestamp":
        texts = [text_of(raw) for raw in raws]
        if to.name != "timestamp":
            raise BadLiteralError(f"a timestamp cannot become {to} here", 0)
        hint = "is no timestamp; write TIMESTAMP '2024-12-31 23:59:59'"
        return np.array(_read_all(texts, lambda text: parse_timestamp(text, zone), hint), np.int64)
    return cast_strings(read_strings(raws), to, zone)


def cast_strings(texts: list[str], to: Type, zone: str) -> Any:
    """String literals cast to another type; a text that cannot be cast is a BadLiteralError."""
    if to.name == "string":
        return np.array(texts, object)
    readers: dict[str, tuple[Callable[[str], Any], Any]] = {
        "int": (lambda text: integer_of(text, 32), np.int64),
        "bigint": (lambda text: integer_of(text, 64), np.int64),
        "double": (double_of, np.float64),
        "boolean": (boolean_of, np.bool_),
        "date": (parse_date, np.int64),
        "timestamp": (lambda text: parse_timestamp(text, zone), np.int64),
        "decimal": (lambda text: decimal_of(text, to), np.int64 if to.precision <= 18 else object),
    }
    read, dtype = readers[to.name]
    return np.array(_read_all(texts, read, f"cannot be cast to {to}"), dtype)


def _read_all(texts: list[str], read: Callable[[str], Any], complaint: str) -> list[Any]:
    values = list(map(read, texts))
    if None in values:
        position = values.index(None)
        raise BadLiteralError(f"{texts[position]!r} {complaint}", position)
    return values


def _physical_number(raws: Sequence[str], kind: str, negated: bool, to: Type) -> Any:
    check = kind in ("decimal", "double") or any(map(str.isalpha, map(str, [raw[-1] for raw in raws])))
    if check:
        check_numbers(raws, kind, negated)
    if to.name == "double":
        if kind in ("int", "bigint"):  # an integer goes through 64 bits, as Spark's literal does
            doubles = np.array([int(raw.rstrip("lL")) for raw in raws], object).astype(np.float64)
        else:
            doubles = np.array([float(raw.rstrip("dDbB")) for raw in raws], np.float64)
        return (-doubles if negated else doubles) + 0.0  # -0.0 becomes 0.0, which it equals
    if to.name in ("int", "bigint") and kind in ("int", "bigint"):
        values = [int(raw.rstrip("lL")) for raw in raws]
        return np.array([-value for value in values] if negated else values, np.int64)
    if to.name == "decimal":
        return _physical_decimal(raws, negated, to)
    raise BadLiteralError(f"a number cannot become {to} here", 0)


def _physical_decimal(raws: Sequence[str], negated: bool, to: Type) -> Any:
    values = []
    for position, raw in enumerate(raws):
        unscaled, scale = _decimal(raw)
        moved = rescale(-unscaled if negated else unscaled, scale, to.scale)
        if abs(moved) >= 10**to.precision:
            raise BadLiteralError(f"{raw} does not fit into {to}", position)
        values.append(moved)
    return np.array(values, np.int64 if to.precision <= 18 else object)


def rescale(unscaled: int, scale: int, to: int) -> int:
    """An unscaled decimal at another scale, rounded half away from zero."""
    if to >= scale:
        return unscaled * int(10 ** (to - scale))
    step = int(10 ** (scale - to))
    quotient, rest = divmod(abs(unscaled), step)
    quotient += 2 * rest >= step
    return -quotient if unscaled < 0 else quotient


def exact_decimals(raws: Sequence[str], negated: bool) -> tuple[list[int], list[int]]:
    """Unscaled values and scales of numbers without exponent."""
    pairs = [_decimal(raw) for raw in raws]
    return [-u if negated else u for u, _ in pairs], [scale for _, scale in pairs]


def integer_of(text: str, bits: int) -> int | None:
    """A string as Spark casts it to an integer in ANSI mode, or None: no fraction, spaces around are trimmed."""
    trimmed = text.strip(_TRIMMED)
    if not re.fullmatch(r"[+-]?\d+", trimmed, re.ASCII):
        return None
    value = int(trimmed)
    return value if -(2 ** (bits - 1)) <= value < 2 ** (bits - 1) else None


def double_of(text: str) -> float | None:
    trimmed = text.strip(_TRIMMED)
    found = _DOUBLE.fullmatch(trimmed)
    if found:
        return float(found.group(1))
    folded = trimmed.lower()
    sign = -1.0 if folded.startswith("-") else 1.0
    if folded.lstrip("+-") in ("inf", "infinity") and len(folded) - len(folded.lstrip("+-")) <= 1:
        return sign * float("inf")
    return float("nan") if folded == "nan" else None


def boolean_of(text: str) -> bool | None:
    folded = text.strip(_TRIMMED).lower()
    return True if folded in _TRUE else False if folded in _FALSE else None


def decimal_of(text: str, to: Type) -> int | None:
    trimmed = text.strip(_TRIMMED)
    if not _DECIMAL.fullmatch(trimmed):
        return None
    mantissa, _, exponent = trimmed.lower().partition("e")
    if exponent and len(exponent) > 5:
        return None
    whole, _, fraction = mantissa.partition(".")
    unscaled, scale = int(whole + fraction), len(fraction) - int(exponent or 0)
    if scale < 0:
        unscaled, scale = unscaled * int(10**-scale), 0
    moved = rescale(unscaled, scale, to.scale)
    return moved if abs(moved) < 10**to.precision else None


def as_query_error(bad: BadLiteralError, text: str, start: int, end: int) -> QueryError:
    return QueryError(bad.reason, text, start, end)


def to_objects(values: NDArray[Any]) -> NDArray[Any]:
    return values if values.dtype == object else values.astype(object)
