"""Functions of mathematics, on doubles.

Spark takes the functions of Java's StrictMath, and here they are those of NumPy: the last bit of a result may differ.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vedette.language.expressions import BIGINT, DOUBLE, FLOAT, INT, NULL, Typed, Written
from vedette.language.functions.function import Call, Evaluator, Function, Rule
from vedette.language.functions.numbers import as_double, number_as
from vedette.language.vectors import Vector, strict

if TYPE_CHECKING:
    from vedette.language.analysis import Analyser

Doubles = NDArray[np.float64]

_LAST_FACTORIAL = 20  # that fits into 64 bits
_FACTORIALS = np.array([math.factorial(n) for n in range(_LAST_FACTORIAL + 1)], np.int64)


# -- typing rules


def as_constant(value: float) -> Rule:
    """A call without arguments that means a number."""

    def type_call(analyser: Analyser, node: Written) -> Typed:
        return analyser.made(node, "constant", DOUBLE, value=value)

    return type_call


def type_nanvl(analyser: Analyser, node: Written) -> Typed:
    """Floats if both arguments are, else doubles."""
    types = {analyser.read(arg).type for arg in node.args}
    to = FLOAT if FLOAT in types and types <= {FLOAT, NULL} else DOUBLE
    return analyser.made(node, node.op, to, *(number_as(analyser, node, arg, to) for arg in node.args))


def type_bucket(analyser: Analyser, node: Written) -> Typed:
    """Three doubles and a number of buckets."""
    ends = [number_as(analyser, node, arg, DOUBLE) for arg in node.args[:3]]
    return analyser.made(node, node.op, BIGINT, *ends, analyser.number(node.args[3], BIGINT))


def type_factorial(analyser: Analyser, node: Written) -> Typed:
    return analyser.made(node, node.op, BIGINT, analyser.number(node.args[0], INT))


# -- evaluators


def of_doubles(function: Callable[..., Doubles]) -> Evaluator:
    """A function of arrays of doubles."""

    def evaluate(call: Call) -> Vector:
        with np.errstate(all="ignore"):
            return strict(function(*(arg.values for arg in call.args)), *call.args)

    return evaluate


def logarithm_above(least: float, function: Callable[[Doubles], Doubles]) -> Evaluator:
    """A logarithm: null for values up to `least`."""

    def evaluate(call: Call) -> Vector:
        values = call.first.values
        with np.errstate(all="ignore"):
            return _null_where(values <= least, strict(function(values), call.first))

    return evaluate


def _null_where(where: NDArray[np.bool_], vector: Vector) -> Vector:
    return Vector(vector.values, ~vector.nulls & ~where, vector.failed, vector.lost) if where.any() else vector


_of_one = logarithm_above(0.0, np.log)


def logarithm(call: Call) -> Vector:
    """ln(x), or with two arguments the logarithm of the second to the base of the first."""
    if len(call.args) == 1:
        return _of_one(call)
    base, value = (arg.values for arg in call.args)
    with np.errstate(all="ignore"):
        return _null_where((base <= 0.0) | (value <= 0.0), strict(np.log(value) / np.log(base), *call.args))


def power(x: Doubles, y: Doubles) -> Doubles:
    """As in Java, the power to NaN is NaN, and so is that of 1 or -1 to an infinity."""
    return np.where(np.isnan(y) | ((np.abs(x) == 1.0) & np.isinf(y)), np.nan, np.power(x, y))


def one_by_one(function: Callable[[float], float]) -> Callable[[Doubles], Doubles]:
    """A function of Python's, where that of NumPy is less exact. Out of its domain the result is NaN."""

    def call(value: float) -> float:
        try:
            return function(value)
        except ValueError:
            return math.nan

    return lambda values: np.array([call(value) for value in values.tolist()], np.float64)


def nanvl(call: Call) -> Vector:
    """The second argument counts only where the first is NaN."""
    first, second = call.args
    nan = np.isnan(first.values) & first.usable
    failed = None if second.failed is None else second.failed & nan
    valid = np.where(nan, ~second.nulls, ~first.nulls)
    whole = strict(None, first)
    lost = whole.lost if second.lost is None else (second.lost & nan) | (False if whole.lost is None else whole.lost)
    both = failed if first.failed is None else first.failed if failed is None else first.failed | failed
    return Vector(np.where(nan, second.values, first.values), valid, both, lost)


def bucket(call: Call) -> Vector:
    """The number of the bucket, from 1; 0 below the first and `n + 1` above the last; null for invalid buckets."""
    value, low, high, n = (arg.values for arg in call.args)
    with np.errstate(all="ignore"):
        turned = np.where(low < high, 1.0, -1.0)
        share = n.astype(np.float64) * ((value - low) * turned) / ((high - low) * turned)
        inside = np.where(share < 2.0**63, share, 0.0).astype(np.int64) + 1
        inside = np.where(share >= 2.0**63, np.iinfo(np.int64).min, inside)  # it wraps around, as in Java
    is_below = np.where(low < high, value < low, value > low)
    is_above = np.where(low < high, value >= high, value <= high)
    numbers = np.where(is_below, 0, np.where(is_above, n + 1, inside))
    invalid = (n <= 0) | (n == 2**63 - 1) | np.isnan(value) | (low == high) | ~np.isfinite(low) | ~np.isfinite(high)
    return _null_where(invalid, strict(numbers, *call.args))


def factorial(call: Call) -> Vector:
    values = call.first.values
    beyond = (values < 0) | (values > _LAST_FACTORIAL)
    return _null_where(beyond, strict(_FACTORIALS[np.where(beyond, 0, values)], call.first))


# -- the rows of the table


def _row(call: str, function: Callable[..., Any], gives: str, *aliases: str) -> Function:
    return Function(call, as_double(DOUBLE), of_doubles(function), gives, aliases)


FUNCTIONS = (
    Function("pi()", as_constant(math.pi), None, "the number pi"),
    Function("e()", as_constant(math.e), None, "the base of natural logarithms"),
    _row("power(x, y)", power, "`x` to the power of `y`", "pow"),
    _row("exp(x)", np.exp, "e to the power of `x`"),
    _row("expm1(x)", np.expm1, "`exp(x) - 1`, exact near 0"),
    Function("ln(x)", as_double(DOUBLE), logarithm_above(0.0, np.log), "the natural logarithm; null for 0 and below"),
    Function(
        "log([base,] x)",
        as_double(DOUBLE),
        logarithm,
        "the logarithm to a base, or natural; null for 0 and below",
    ),
    Function(
        "log2(x)",
        as_double(DOUBLE),
        logarithm_above(0.0, lambda x: np.log(x) / np.log(2.0)),
        "the logarithm to base 2; null for 0 and below",
    ),
    Function(
        "log10(x)", as_double(DOUBLE), logarithm_above(0.0, np.log10), "the logarithm to base 10; null for 0 and below"
    ),
    Function(
        "log1p(x)",
        as_double(DOUBLE),
        logarithm_above(-1.0, np.log1p),
        "`ln(1 + x)`, exact near 0; null for -1 and below",
    ),
    _row("cbrt(x)", np.cbrt, "the cube root"),
    _row("hypot(x, y)", np.hypot, "`sqrt(x * x + y * y)` without overflow"),
    _row("sin(x)", np.sin, "the sine of `x` radians"),
    _row("cos(x)", np.cos, "the cosine"),
    _row("tan(x)", np.tan, "the tangent"),
    _row("cot(x)", lambda x: 1.0 / np.tan(x), "the cotangent"),
    _row("sec(x)", lambda x: 1.0 / np.cos(x), "the secant"),
    _row("csc(x)", lambda x: 1.0 / np.sin(x), "the cosecant"),
    _row("asin(x)", np.arcsin, "the arc sine, in radians"),
    _row("acos(x)", np.arccos, "the arc cosine, in radians"),
    _row("atan(x)", np.arctan, "the arc tangent, in radians"),
    _row("atan2(y, x)", lambda y, x: np.arctan2(y + 0.0, x + 0.0), "the angle of the point `(x, y)`, in radians"),
    _row("sinh(x)", np.sinh, "the hyperbolic sine"),
    _row("cosh(x)", np.cosh, "the hyperbolic cosine"),
    _row("tanh(x)", one_by_one(math.tanh), "the hyperbolic tangent"),
    _row("asinh(x)", np.arcsinh, "the inverse hyperbolic sine"),
    _row("acosh(x)", np.arccosh, "the inverse hyperbolic cosine"),
    _row("atanh(x)", lambda x: 0.5 * (np.log1p(x) - np.log1p(-x)), "the inverse hyperbolic tangent"),
    _row("radians(x)", lambda x: x * 0.017453292519943295, "`x` degrees in radians"),
    _row("degrees(x)", lambda x: x * 57.29577951308232, "`x` radians in degrees"),
    _row("rint(x)", np.rint, "the nearest whole number, as a double; a half is rounded to the even one"),
    Function("nanvl(x, y)", type_nanvl, nanvl, "`y` if `x` is NaN, else `x`"),
    Function("factorial(n)", type_factorial, factorial, "1 * 2 * ... * `n` as bigint; null below 0 and above 20"),
    Function(
        "width_bucket(x, low, high, n)",
        type_bucket,
        bucket,
        "which of `n` equal buckets between `low` and `high` has `x`, from 1; 0 below them, `n + 1` above them",
    ),
)
