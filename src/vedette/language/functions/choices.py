"""Functions of nulls, and choices between values of any type."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from vedette.data.schema import Type
from vedette.language.comparison import compare
from vedette.language.expressions import BOOLEAN, INT, STRING, Typed, Written
from vedette.language.functions.function import Call, Function, Rule
from vedette.language.types import common_type
from vedette.language.vectors import Vector, choose, join, strict

if TYPE_CHECKING:
    from vedette.language.analysis import Analyser


# -- typing rules


def type_is_null(analyser: Analyser, node: Written) -> Typed:
    return analyser.made(node, "isnull", BOOLEAN, analyser.read(node.args[0]))


def type_is_not_null(analyser: Analyser, node: Written) -> Typed:
    return analyser.made(node, "not", BOOLEAN, type_is_null(analyser, node))


def type_is_unknown(analyser: Analyser, node: Written) -> Typed:
    """IS UNKNOWN, which Spark accepts for values of all types."""
    return type_is_null(analyser, node)


def type_equal_null(analyser: Analyser, node: Written) -> Typed:
    left, right = (analyser.read(arg) for arg in node.args)
    return analyser.compare(node, "<=>", left, right)


def type_nvl2(analyser: Analyser, node: Written) -> Typed:
    tested, *values = node.args
    return type_case(analyser, replace(node, op="if", args=(Written("isnotnull", (tested,)), *values)))


def as_if(function: str) -> Rule:
    """A call of another function, with the int 0 as its second argument."""
    rule = {"coalesce": type_coalesce, "nullif": type_nullif}[function]

    def type_call(analyser: Analyser, node: Written) -> Typed:
        zero = Written("cast", (Written("constant", name="false"),), type=INT, start=node.start, end=node.end)
        return rule(analyser, replace(node, op=function, args=(node.args[0], zero)))

    return type_call


def type_decode(analyser: Analyser, node: Written) -> Typed:
    """CASE with a null-safe comparison for each value."""
    tested, *rest = node.args
    nothing = replace(node, op="cast", args=(Written("constant", name="null"),), type=STRING)
    default = rest.pop() if len(rest) % 2 else nothing  # a null of this type has a say in the type of the results
    branches: list[Written] = []
    for value, result in zip(rest[::2], rest[1::2], strict=True):
        branches += [replace(value, op="<=>", args=(tested, value), slot=-1), result]
    return type_case(analyser, replace(node, op="case", args=(*branches, default)))


def type_nullif(analyser: Analyser, node: Written) -> Typed:
    """As typed: whether both are equal, and the first."""
    left, right = (analyser.read(arg) for arg in node.args)
    analyser.need_sizes(left)
    return analyser.made(node, node.op, left.type, analyser.compare(node, "=", left, right), left)


def type_coalesce(analyser: Analyser, node: Written) -> Typed:
    values, to = _same_type(analyser, node, node.args)
    return analyser.made(node, "coalesce", to, *values)


def type_extreme(analyser: Analyser, node: Written) -> Typed:
    """The arguments are cast to their common type; strings do not become numbers."""
    values, to = _same_type(analyser, node, node.args, promote_strings=False)
    return analyser.made(node, node.op, to, *values)


def type_case(analyser: Analyser, node: Written) -> Typed:
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


# -- evaluators


def is_null(call: Call) -> Vector:
    return Vector(call.first.nulls, None, call.first.failed, call.first.lost)


def nullif(call: Call) -> Vector:
    """The arguments are whether both are equal, and the first."""
    equal, value = call.args[0].settled(), call.args[1]
    hit = equal.values & equal.usable
    return Vector(value.values, ~value.nulls & ~hit, value.failed, join(equal.lost, value.lost))


def coalesce(call: Call) -> Vector:
    """An argument after the first that is not null does not fail."""
    first = call.first
    values, valid, failed, lost = first.values, ~first.nulls, first.failed, first.lost
    for arg in call.args[1:]:
        open_ = ~valid if failed is None else ~valid & ~failed
        values = choose(call.node.type, valid, values, arg.values)
        if arg.failed is not None:
            failed = join(failed, arg.failed & open_)
        if arg.lost is not None:
            lost = join(lost, arg.lost & open_)
        valid = valid | (open_ & ~arg.nulls)
    return Vector(values, valid, failed, lost)


def least(call: Call) -> Vector:
    return _extreme(call, "<")


def greatest(call: Call) -> Vector:
    return _extreme(call, ">")


def _extreme(call: Call, better: str) -> Vector:
    """The least or greatest argument, ignoring nulls."""
    best, valid = call.first.values, ~call.first.nulls
    for arg in call.args[1:]:
        order = compare(better, Vector(arg.values), Vector(best), call.node.type)
        is_better = ~arg.nulls & (~valid | order.values)
        best = choose(call.node.type, is_better, arg.values, best)
        valid = valid | ~arg.nulls
    whole = strict(best, *call.args)
    return Vector(best, valid, whole.failed, whole.lost)


# -- the rows of the table

FUNCTIONS = (
    Function("least(x, y, ...)", type_extreme, least, "the least argument that is not null", in_arrow=True),
    Function(
        "greatest(x, y, ...)",
        type_extreme,
        greatest,
        "the greatest argument that is not null",
        in_arrow=True,
    ),
    Function("coalesce(x, ...)", type_coalesce, coalesce, "the first argument that is not null", in_arrow=True),
    Function("ifnull(x, y)", type_coalesce, None, "`y` if `x` is null, else `x`", ("nvl",)),
    Function("zeroifnull(x)", as_if("coalesce"), None, "0 if `x` is null, else `x`"),
    Function("nullifzero(x)", as_if("nullif"), None, "null if `x` is 0, else `x`"),
    Function("nvl2(x, y, z)", type_nvl2, None, "`y` if `x` is not null, else `z`"),
    Function(
        "decode(x, value, result, ... [, default])",
        type_decode,
        None,
        "the result after the first value that equals `x`, null included; else the default, or null",
    ),
    Function("equal_null(x, y)", type_equal_null, None, "`x <=> y`: whether both are equal or both are null"),
    Function("nullif(x, y)", type_nullif, nullif, "null if `x` equals `y`, else `x`", in_arrow=True),
    Function("if(c, x, y)", type_case, None, "`x` if `c` is true, else `y`"),
    Function("isnull(x)", type_is_null, is_null, "whether `x` is null", in_arrow=True),
    Function("isnotnull(x)", type_is_not_null, None, "whether `x` is not null"),
)
