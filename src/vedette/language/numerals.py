"""Strings cast to numbers and booleans as in Spark's ANSI mode; None if the cast fails.

Each type has its own rules, because Spark uses different parts of Java. All readers accept strings of any length:
Python's `int` refuses more than 4,300 digits, so lengths are compared before digits are read.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from decimal import Decimal

import numpy as np

from vedette.data.schema import Type

_SPACES = "".join(map(chr, range(0x21)))  # what Java's String.trim removes
_SPACES_AND_CONTROLS = _SPACES + "\x7f"  # what Spark's own trim removes
# Possessive, so that a long string that is not a number fails at once.
_INTEGER = re.compile(r"([+-]?)0*+(\d*+)", re.ASCII)
_DOUBLE = re.compile(r"([+-]?(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][+-]?\d++)?)[fFdD]?", re.ASCII)
_HEX = r"[\da-fA-F]"
_HEXADECIMAL = re.compile(rf"([+-]?0[xX](?:{_HEX}++(?:\.{_HEX}*+)?|\.{_HEX}++)[pP][+-]?\d++)[fFdD]?", re.ASCII)
_DECIMAL = re.compile(r"([+-]?)0*+(\d*+)(?:\.(\d*+))?(?:[eE]([+-]?)0*+(\d*+))?", re.ASCII)
_SPECIAL = {"inf": float("inf"), "infinity": float("inf"), "nan": float("nan")}
_SPECIAL |= {f"+{name}": value for name, value in _SPECIAL.items() if name != "nan"} | {
    f"-{name}": -value for name, value in _SPECIAL.items() if name != "nan"
}
_TRUE, _FALSE = {"t", "true", "y", "yes", "1"}, {"f", "false", "n", "no", "0"}
_INT32 = 2**31
_INFINITY = float("inf")
_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_DIGIT = {
    character: digit for digit, both in enumerate(zip(_DIGITS, _DIGITS.lower(), strict=True)) for character in both
}


def integer_of(text: str, bits: int) -> int | None:
    """A whole number without fraction; spaces and control characters around it are trimmed."""
    trimmed = text.strip(_SPACES_AND_CONTROLS)
    found = _INTEGER.fullmatch(trimmed)
    if not found or trimmed[-1:] in ("", "+", "-") or len(found.group(2)) > 19:
        return None
    value = int(found.group(1) + (found.group(2) or "0"))
    return value if -(2 ** (bits - 1)) <= value < 2 ** (bits - 1) else None


def double_of(text: str) -> float | None:
    """The value that Java's Double.parseDouble reads, with hexadecimal and suffixes, or infinity or NaN by name."""
    trimmed = text.strip(_SPACES)
    found = _DOUBLE.fullmatch(trimmed)
    if found:
        return float(found.group(1))
    if trimmed in ("+NaN", "-NaN"):
        return float("nan")
    found = _HEXADECIMAL.fullmatch(trimmed)
    if found:
        return _hexadecimal(found.group(1))
    return _SPECIAL.get(trimmed.lower()) if len(trimmed) < 10 else None


def float_of(text: str) -> float | None:
    """The same in 32 bits, as Java's Float.parseFloat rounds it: from the digits, not from a double."""
    value = double_of(text)
    if value is None or value != value or value in (_INFINITY, -_INFINITY):
        return value
    trimmed = text.strip(_SPACES)
    if trimmed.lower().lstrip("+-").startswith("0x"):
        with np.errstate(over="ignore"):
            return float(np.float32(value))
    return nearest_float(trimmed.rstrip("fFdD"))


def nearest_float(digits: str) -> float:
    """The float of 32 bits nearest to a number as written, as a double. Halfway between two doubles decides rarely."""
    return round_to_float(float(digits), lambda: Decimal(digits))


def round_to_float(double: float, exact: Callable[[], Decimal]) -> float:
    """The nearest float of a number, given the nearest double and, if that is halfway between floats, the number."""
    with np.errstate(over="ignore"):
        nearest = np.float32(double)
        below, above = (nearest, np.nextafter(nearest, np.float32(_INFINITY)))
        if float(nearest) > double:
            below, above = np.nextafter(nearest, np.float32(-_INFINITY)), nearest
    if float(nearest) == double or double - float(below) != float(above) - double:
        return float(nearest)
    number, halfway = exact(), Decimal(double)
    return float(nearest) if number == halfway else float(below if number < halfway else above)


def _hexadecimal(text: str) -> float | None:
    try:
        return float.fromhex(text)
    except OverflowError:
        return float("-inf" if text[0] == "-" else "inf")


def boolean_of(text: str) -> bool | None:
    folded = text.strip(_SPACES_AND_CONTROLS).lower()
    return True if folded in _TRUE else False if folded in _FALSE else None


def decimal_of(text: str, to: Type) -> int | None:
    """The unscaled value that Java's BigDecimal reads, in digits of any script, rounded half away from zero."""
    trimmed = text.strip(_SPACES)
    if not trimmed.isascii():
        trimmed = _with_ascii_digits(trimmed)
    found = _DECIMAL.fullmatch(trimmed)
    if not found:
        return None
    sign, whole, fraction, exponent_sign, exponent = found.groups()
    mantissa = trimmed.lower().partition("e")[0]
    if not any(map(str.isdigit, mantissa[:2] + mantissa[-2:])) or (exponent is not None and not trimmed[-1].isdigit()):
        return None  # a dot or a sign alone, or an exponent without digits
    if len(exponent or "") > 10:
        return None
    digits = (whole + (fraction or "")).lstrip("0")
    power = int(f"{exponent_sign or ''}{exponent or 0}")
    scale = len(fraction or "") - power
    if not (-_INT32 <= power < _INT32 and -_INT32 <= scale < _INT32):
        return None
    unscaled = _unscaled(digits, scale, to)
    return -unscaled if unscaled is not None and sign == "-" else unscaled


def _unscaled(digits: str, scale: int, to: Type) -> int | None:
    """Digits without leading zeros at a scale, as a value of the type; None if it does not fit."""
    if not digits:
        return 0
    if len(digits) - scale > to.precision - to.scale + 1:
        return None
    dropped = scale - to.scale  # the places that are rounded off
    if dropped > len(digits):
        return 0
    if dropped > 1:  # one digit after the last that is kept decides
        digits, dropped = digits[: len(digits) - dropped + 1], 1
    moved = rescale(int(digits or 0), dropped, 0)
    return moved if moved < 10**to.precision else None


def _with_ascii_digits(text: str) -> str:
    """Digits of Unicode's basic plane as ASCII digits. For Java, digits of other planes are not digits."""
    return "".join(_ascii_digit(character) for character in text)


def _ascii_digit(character: str) -> str:
    if character.isascii() or ord(character) > 0xFFFF:
        return character if character.isascii() else "?"
    digit = unicodedata.decimal(character, None)
    return "?" if digit is None else str(digit)


def digits_to_base(text: str, from_: int, to: int) -> str | type[OverflowError] | None:
    """A whole number in another base, as Spark's conv() writes it: unsigned in 64 bits unless `to` is negative.

    None if a base is not from 2 to 36 or there is no digit at all; OverflowError if the number exceeds 64 bits.
    """
    if not (2 <= from_ <= 36 and 2 <= abs(to) <= 36):
        return None
    trimmed = text.strip(" ")
    if not trimmed:
        return None
    negative = trimmed[0] == "-"
    value = 0
    for character in trimmed[negative:]:
        digit = _DIGIT.get(character, 99)
        if digit >= from_:
            break
        value = value * from_ + digit
        if value >= 1 << 64:
            return OverflowError
    half, whole = 1 << 63, 1 << 64
    if negative and to > 0:
        value = whole - 1 if value >= half else -value % whole
    if to < 0 and value >= half:
        value, negative = whole - value, True
    return f"{'-' if negative and to < 0 else ''}{_write_base(value, abs(to))}"


def _write_base(value: int, base: int) -> str:
    digits = ""
    while value or not digits:
        value, digit = divmod(value, base)
        digits = _DIGITS[digit] + digits
    return digits


def rescale(unscaled: int, scale: int, to: int) -> int:
    """An unscaled decimal at another scale, rounded half away from zero."""
    if to >= scale:
        return unscaled * int(10 ** (to - scale))
    step = int(10 ** (scale - to))
    quotient, rest = divmod(abs(unscaled), step)
    quotient += 2 * rest >= step
    return -quotient if unscaled < 0 else quotient
