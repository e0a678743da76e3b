"""Spark's type coercion in ANSI mode: the common type of two operands, and the types of decimal arithmetic."""

from __future__ import annotations

from collections.abc import Sequence

from vedette.data.schema import Type, is_nested
from vedette.language.expressions import (
    BIGINT,
    DAY_INTERVAL,
    DOUBLE,
    INTERVALS,
    NULL,
    STRING,
    TIME_INTERVAL,
    TIMESTAMP,
    TIMESTAMP_NTZ,
)

MAX_PRECISION = 38
_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}  # of each integer as a decimal
_RANK = {name: rank for rank, name in enumerate((*_DIGITS, "decimal", "float", "double"))}
NUMERIC = frozenset(_RANK)
_TIMES = ("date", "timestamp", "timestamp_ntz")


def is_integral(type_: Type) -> bool:
    return type_.is_integer


def as_decimal(type_: Type) -> Type:
    """The decimal that an integer becomes next to a decimal."""
    return Type("decimal", _DIGITS[type_.name], 0) if is_integral(type_) else type_


def wider_decimal(a: Type, b: Type) -> Type:
    """The decimal for both. If it needs more than 38 digits, the scale is reduced and values are rounded."""
    if not (a.precision and b.precision):
        return Type("decimal", 0, 0)  # literals of several sizes at once
    scale = max(a.scale, b.scale)
    whole = max(a.precision - a.scale, b.precision - b.scale)
    excess = max(0, whole + scale - MAX_PRECISION)
    return Type("decimal", min(MAX_PRECISION, whole + scale), max(0, scale - excess))


def wider(a: Type, b: Type) -> Type | None:
    """The common type of two types, without strings; None if there is none."""
    if a == b or b == NULL:
        return a
    if a == NULL:
        return b
    if a.name in NUMERIC and b.name in NUMERIC:
        if a.is_floating or b.is_floating:
            return DOUBLE  # also for a float beside any other number
        if "decimal" in (a.name, b.name):
            return wider_decimal(as_decimal(a), as_decimal(b))
        return a if _RANK[a.name] >= _RANK[b.name] else b
    if a.name in _TIMES and b.name in _TIMES:
        return TIMESTAMP if TIMESTAMP in (a, b) else TIMESTAMP_NTZ
    if {a, b} == {DAY_INTERVAL, TIME_INTERVAL}:
        return TIME_INTERVAL
    return None


def common_type(types: Sequence[Type], *, promote_strings: bool = True) -> Type | None:
    """The type that all operands are cast to, found from left to right as Spark does; None if there is none.

    So the order matters: `i IN ('5', 1.5)` compares decimals, `i IN (1.5, '5')` doubles.
    """
    found: Type = NULL
    if any(map(is_nested, types)):
        return None  # arrays and maps are not compared with each other
    for type_ in types:
        met = wider(found, type_)
        if met is None and promote_strings and STRING in (found, type_):
            met = _beside_string(type_ if found == STRING else found)
        if met is None:
            return None
        found = met
    return found


def _beside_string(other: Type) -> Type | None:
    """The type that a string is cast to beside another type."""
    if other in INTERVALS:
        return None
    if is_integral(other):
        return BIGINT
    return DOUBLE if other.name in NUMERIC else other


def adjust(precision: int, scale: int) -> Type:
    """The result of decimal arithmetic, reduced to 38 digits: at least six places are kept before integer digits."""
    if precision <= MAX_PRECISION:
        return Type("decimal", precision, scale)
    whole = precision - scale
    return Type("decimal", MAX_PRECISION, max(MAX_PRECISION - whole, min(scale, 6)))


def decimal_result(op: str, a: Type, b: Type) -> Type:
    """The type of decimal arithmetic."""
    scale = max(a.scale, b.scale)
    whole_a, whole_b = a.precision - a.scale, b.precision - b.scale
    if op in ("+", "-"):
        return adjust(max(whole_a, whole_b) + scale + 1, scale)
    if op == "*":
        return adjust(a.precision + b.precision + 1, a.scale + b.scale)
    if op == "/":
        places = max(6, a.scale + b.precision + 1)
        return adjust(whole_a + b.scale + places, places)
    return adjust(min(whole_a, whole_b) + scale, scale)  # the remainder
