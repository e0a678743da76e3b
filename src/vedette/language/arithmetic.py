"""Arithmetic as Spark's ANSI mode does it: overflow and division by zero fail, decimals are exact and then rounded."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vedette.data.schema import INTEGER_BITS, Type
from vedette.language.casts import fit, rescaled, to_floats
from vedette.language.numerals import rescale
from vedette.language.vectors import Mask, Vector, strict

_RANGE = {name: (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for name, bits in INTEGER_BITS.items()}
_RANGE |= dict.fromkeys(("interval day", "interval day to second"), _RANGE["bigint"])
_RANGE["interval year to month"] = _RANGE["int"]
_DIVISION_SCALE = 39  # a quotient is truncated to this scale before it is rounded to its type


def calculate(op: str, a: Vector, b: Vector, a_type: Type, b_type: Type, type_: Type) -> Vector:
    """a op b; both sides are already of the type Spark computes in."""
    if a_type.is_floating:
        return _doubles(op, a, b, is_float=type_.name == "float")
    if a_type.name == "decimal":
        return _decimals(op, a, b, a_type, b_type, type_)
    return _integers(op, a, b, a_type)


def negate(vector: Vector, type_: Type) -> Vector:
    if type_.name in _RANGE:
        bottom = vector.values == _RANGE[type_.name][0]
        return vector.with_values(np.where(bottom, 0, -vector.values)).failing(bottom)
    return vector.with_values(-vector.values)


def absolute(vector: Vector, type_: Type) -> Vector:
    if type_.name in _RANGE:
        bottom = vector.values == _RANGE[type_.name][0]
        return vector.with_values(np.where(bottom, 0, np.abs(vector.values))).failing(bottom)
    return vector.with_values(np.abs(vector.values))


def _doubles(op: str, a: Vector, b: Vector, *, is_float: bool) -> Vector:
    """Floats are computed as doubles and rounded, which for these operations gives the result of 32 bits."""
    x, y = a.values, b.values
    rounded = to_floats if is_float else np.asarray
    with np.errstate(all="ignore"):
        if op in ("+", "-", "*"):
            return strict(rounded(x + y if op == "+" else x - y if op == "-" else x * y), a, b)
        zero = y == 0
        divisor = np.where(zero, 1.0, y)
        if op == "/":
            return strict(x / divisor, a, b).failing(zero)
        rest = np.fmod(x, divisor)
        if op == "pmod":
            rest = np.where(rest < 0, np.fmod(rounded(rest + divisor), divisor), rest)
        return strict(rest, a, b).failing(zero)


def _integers(op: str, a: Vector, b: Vector, type_: Type) -> Vector:
    x, y = a.values, b.values
    if op in ("+", "-", "*"):
        values, over = _checked(op, x, y, type_)
        return strict(values, a, b).failing(over)
    bottom = _RANGE[type_.name][0]
    zero, one = y == 0, y == -1
    divisor = np.where(zero | one, 1, y)
    if op == "div":
        floored = np.floor_divide(x, divisor)
        quotient = floored + ((floored * divisor != x) & ((x < 0) != (divisor < 0)))
        over = one & (x == -(2**63))  # DIV always has 64 bits
        quotient = np.where(one & ~over, -np.where(over, 0, x), quotient)
        return strict(quotient, a, b).failing(zero | over)
    rest = np.where(one, 0, np.fmod(x, divisor))
    if op == "pmod":
        with np.errstate(over="ignore"):
            shifted = rest + y
        if type_.name == "int":  # the sum wraps around; narrower ones are added as int
            shifted = (shifted - bottom) % 2**32 + bottom
        rest = np.where(rest < 0, np.where(one, 0, np.fmod(shifted, divisor)), rest)
    return strict(rest, a, b).failing(zero)


def _checked(op: str, x: NDArray[np.int64], y: NDArray[np.int64], type_: Type) -> tuple[NDArray[np.int64], Mask]:
    """Integers added, subtracted or multiplied, and where the result leaves their type."""
    with np.errstate(over="ignore"):
        values = x + y if op == "+" else x - y if op == "-" else x * y
    if _RANGE[type_.name] != _RANGE["bigint"]:
        low, high = _RANGE[type_.name]
        return values, (values < low) | (values > high)
    if op == "+":
        return values, ((x ^ values) & (y ^ values)) < 0
    if op == "-":
        return values, ((x ^ y) & (x ^ values)) < 0
    over = np.zeros(len(values), np.bool_)
    for i in np.flatnonzero(np.abs(x.astype(np.float64) * y.astype(np.float64)) > 2.0**62):
        over[i] = not -(2**63) <= int(x[i]) * int(y[i]) < 2**63
    return values, over


def _decimals(op: str, a: Vector, b: Vector, a_type: Type, b_type: Type, type_: Type) -> Vector:
    scale = max(a_type.scale, b_type.scale)
    if op == "*":
        return _product(a, b, a_type.scale + b_type.scale, type_)
    if op in ("+", "-"):
        x, y = rescaled(a.values, a_type.scale, scale), rescaled(b.values, b_type.scale, scale)
        exact = x + y if op == "+" else x - y
        both = strict(exact, a, b)
        return fit(both, rescaled(exact, scale, type_.scale), type_)
    zero = np.asarray(b.values == 0, np.bool_)
    divisor = np.where(zero, 1, b.values)
    if op == "/":
        quotient = _each(lambda x, y: _quotient(x, a_type.scale, y, b_type.scale, type_.scale), a.values, divisor)
        return fit(strict(quotient, a, b).failing(zero), quotient, type_)
    x, y = rescaled(a.values, a_type.scale, scale), rescaled(divisor, b_type.scale, scale)
    rest = _each(_remainder, x, y)
    if op == "pmod":
        rest = _each(lambda r, n: _remainder(r + n, n) if r < 0 else r, rest, y)
    return fit(strict(rest, a, b).failing(zero), rescaled(rest, scale, type_.scale), type_)


def _product(a: Vector, b: Vector, scale: int, type_: Type) -> Vector:
    if type_.precision <= 18 and scale == type_.scale:
        return strict(a.values * b.values, a, b)
    exact = a.values.astype(object) * b.values.astype(object)
    return fit(strict(exact, a, b), rescaled(exact, scale, type_.scale), type_)


def _each(function: Any, x: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
    out = np.empty(len(x), object)
    out[:] = [function(int(a), int(b)) for a, b in zip(x.tolist(), y.tolist(), strict=True)]
    return out


def _quotient(x: int, x_scale: int, y: int, y_scale: int, scale: int) -> int:
    """x / y truncated to 39 places, then rounded half away from zero."""
    shift = _DIVISION_SCALE + y_scale - x_scale
    numerator, denominator = abs(x) * 10 ** max(shift, 0), abs(y) * 10 ** max(-shift, 0)
    cut = numerator // denominator
    return rescale(-cut if (x < 0) != (y < 0) else cut, _DIVISION_SCALE, scale)


def _remainder(x: int, y: int) -> int:
    rest = abs(x) % abs(y)
    return -rest if x < 0 else rest
