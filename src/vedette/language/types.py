"""Spark's type coercion in ANSI mode: the common type of two operands, and the types of decimal arithmetic."""

from __future__ import annotations

from collections.abc import Sequence

from vedette.data.schema import Type
from vedette.language.expressions import BIGINT, DOUBLE, NULL, STRING, TIMESTAMP

MAX_PRECISION = 38
_INTEGRAL = {"int": 10, "bigint": 20}  # with the precision each takes as a decimal
_RANK = {"int": 0, "bigint": 1, "decimal": 2, "double": 3}
NUMERIC = frozenset(_RANK)


def is_integral(type_: Type) -> bool:
    return type_.name in _INTEGRAL


def as_decimal(type_: Type) -> Type:
    """The decimal that an integer becomes next to a decimal."""
    return Type("decimal", _INTEGRAL[type_.name], 0) if is_integral(type_) else type_


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
        if "decimal" in (a.name, b.name) and "double" not in (a.name, b.name):
            return wider_decimal(as_decimal(a), as_decimal(b))
        return a if _RANK[a.name] >= _RANK[b.name] else b
    if {a.name, b.name} == {"date", "timestamp"}:
        return TIMESTAMP
    return None


def common_type(types: Sequence[Type], *, promote_strings: bool = True) -> Type | None:
    """The type that all operands are cast to, found from left to right as Spark does; None if there is none.

    So the order matters: `i IN ('5', 1.5)` compares decimals, `i IN (1.5, '5')` doubles.
    """
    found: Type = NULL
    for type_ in types:
        met = wider(found, type_)
        if met is None and promote_strings and STRING in (found, type_):
            met = _beside_string(type_ if found == STRING else found)
        if met is None:
            return None
        found = met
    return found


def _beside_string(other: Type) -> Type:
    """The type that a string is cast to beside another type."""
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
