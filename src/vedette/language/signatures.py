"""Typing rules for function calls: the types of arguments, their casts, and the type of the result.

A rule takes the analyser and the call as written, and returns the typed node. The functions that use a rule are listed
in `function_table.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from vedette.data.schema import Type
from vedette.language.expressions import BIGINT, BOOLEAN, DATE, DOUBLE, INT, NULL, STRING, TIMESTAMP, Typed, Written
from vedette.language.types import NUMERIC, common_type

if TYPE_CHECKING:
    from vedette.language.analysis import Analyser

Rule = Callable[["Analyser", Written], Typed]
_MAX_EXACT_DIGITS = 34  # Spark rounds the negation and the absolute value of longer decimals


# -- strings


def strings(result: Type) -> Rule:
    """Every argument is a string."""

    def type_call(analyser: Analyser, node: Written) -> Typed:
        return analyser.made(node, node.op, result, *analyser.texts(node))

    return type_call


def concat(analyser: Analyser, node: Written) -> Typed:
    """Also the operator `||`."""
    return analyser.made(node, "concat", STRING, *analyser.texts(node))


def substring(analyser: Analyser, node: Written) -> Typed:
    """A string, and one or two small integers."""
    text = analyser.text(node.args[0])
    places = [analyser.number(arg, INT) for arg in node.args[1:]]
    return analyser.made(node, node.op, STRING, text, *places)


# -- dates and times


def date_part(analyser: Analyser, node: Written) -> Typed:
    return _part(analyser, node, DATE)


def time_part(analyser: Analyser, node: Written) -> Typed:
    return _part(analyser, node, TIMESTAMP)


def _part(analyser: Analyser, node: Written, of: Type) -> Typed:
    inner = analyser.read(node.args[0])
    if inner.type not in (DATE, TIMESTAMP, STRING, NULL):
        analyser.refuse(node, f"{node.op} takes a date or timestamp, not {analyser.shown(inner)}")
    return analyser.made(node, node.op, INT, analyser.cast(node, inner, of))


# -- numbers


def double(result: Type) -> Rule:
    """The first argument is a number and is cast to double."""

    def type_call(analyser: Analyser, node: Written) -> Typed:
        inner = _number(analyser, node)
        return analyser.made(node, node.op, result, analyser.cast(node, inner, DOUBLE))

    return type_call


def same_number(analyser: Analyser, node: Written) -> Typed:
    """The result has the type of the argument."""
    inner = _number(analyser, node)
    if inner.type.precision > _MAX_EXACT_DIGITS:
        analyser.refuse(node, f"{node.op} of {analyser.shown(inner)} is not supported: Spark rounds beyond 34 digits")
    return analyser.made(node, node.op, inner.type, inner)


def whole_number(analyser: Analyser, node: Written) -> Typed:
    """The result is a bigint, or a decimal without places."""
    inner = _number(analyser, node)
    type_ = inner.type
    if type_.name == "decimal":
        whole = type_.precision - type_.scale + (1 if type_.scale else 0)
        return analyser.made(node, node.op, Type("decimal", max(1, min(38, whole)), 0), inner)
    return analyser.made(node, node.op, BIGINT, analyser.cast(node, inner, BIGINT) if type_ == INT else inner)


def rounded_number(analyser: Analyser, node: Written) -> Typed:
    """A number, and the places as a literal, which becomes the value of the node."""
    inner = _number(analyser, node)
    places = 0
    if len(node.args) == 2:
        literal = node.args[1]
        if literal.op != "literal" or analyser.kinds[literal.slot].name != "int":
            analyser.refuse(literal, "round takes its number of places as an integer literal")
        places = int(analyser.statics[literal.slot]) * (-1 if literal.negated else 1)
    type_ = inner.type
    if type_.name == "decimal":
        whole = type_.precision - type_.scale + 1
        if places < 0:
            type_ = Type("decimal", min(38, max(whole, -places + 1)), 0)
        else:
            scale = min(type_.scale, places)
            type_ = Type("decimal", min(38, whole + scale), scale)
    return analyser.made(node, node.op, type_, inner, value=places)


def _number(analyser: Analyser, node: Written) -> Typed:
    """The first argument, which must be a number, or a string that is read as a double."""
    inner = analyser.read(node.args[0])
    if inner.type in (STRING, NULL):
        inner = analyser.cast(node.args[0], inner, DOUBLE)
    if inner.type.name not in NUMERIC:
        analyser.refuse(node, f"{node.op} takes a number, not {analyser.shown(inner)}")
    analyser.need_sizes(inner)
    return inner


def arithmetic(operator: str) -> Rule:
    """The call is another way to write an operator."""

    def type_call(analyser: Analyser, node: Written) -> Typed:
        return analyser.arithmetic(node, operator)

    return type_call


def attempt(operator: str) -> Rule:
    """The operator, with null where it fails."""

    def type_call(analyser: Analyser, node: Written) -> Typed:
        return analyser.made_try(node, analyser.arithmetic(node, operator))

    return type_call


# -- nulls and choices


def is_null(analyser: Analyser, node: Written) -> Typed:
    return analyser.made(node, "isnull", BOOLEAN, analyser.read(node.args[0]))


def is_not_null(analyser: Analyser, node: Written) -> Typed:
    return analyser.made(node, "not", BOOLEAN, is_null(analyser, node))


def nullif(analyser: Analyser, node: Written) -> Typed:
    """As typed: whether both are equal, and the first."""
    left, right = (analyser.read(arg) for arg in node.args)
    analyser.need_sizes(left)
    return analyser.made(node, node.op, left.type, analyser.compare(node, "=", left, right), left)


def coalesce(analyser: Analyser, node: Written) -> Typed:
    values, to = _same_type(analyser, node, node.args)
    return analyser.made(node, "coalesce", to, *values)


def comparable(analyser: Analyser, node: Written) -> Typed:
    """The arguments are cast to their common type; strings do not become numbers."""
    values, to = _same_type(analyser, node, node.args, promote_strings=False)
    return analyser.made(node, node.op, to, *values)


def case(analyser: Analyser, node: Written) -> Typed:
    """IF, or CASE as a sequence of branches: condition, value, condition, value, ..., default."""
    conditions = [analyser.condition_of(arg, null_is_condition=node.op == "if") for arg in node.args[:-1:2]]
    values, to = _same_type(analyser, node, (*node.args[1::2], node.args[-1]))
    branches = [part for pair in zip(conditions, values[:-1], strict=True) for part in pair]
    return analyser.made(node, "case", to, *branches, values[-1])


def _same_type(
    analyser: Analyser, node: Written, chosen: tuple[Written, ...], *, promote_strings: bool = True
) -> tuple[list[Typed], Type]:
    values = [analyser.read(arg) for arg in chosen]
    to = common_type([value.type for value in values], promote_strings=promote_strings)
    if to is None:
        shown = ", ".join(analyser.shown(value) for value in values)
        analyser.refuse(node, f"{node.op} needs values of one type, but got {shown}")
    analyser.need_sizes(*values)
    return [analyser.cast(node, value, to) for value in values], to
