"""Functions of numbers."""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Context, Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vedette.data.schema import Type
from vedette.language.arithmetic import absolute, negate
from vedette.language.casts import as_objects, fit, narrowed, to_floats
from vedette.language.expressions import BIGINT, BOOLEAN, DOUBLE, INTERVALS, NULL, STRING, Typed, Written
from vedette.language.functions.function import Call, Evaluator, Function, Rule
from vedette.language.numerals import rescale
from vedette.language.types import NUMERIC, as_decimal
from vedette.language.vectors import Vector, dtype_of

if TYPE_CHECKING:
    from vedette.language.analysis import Analyser


_EXACT = Context(prec=400)
MAX_PLACES = 400  # no value has more digits, before or after the point, in its shortest form
_MAX_EXACT_DIGITS = 34  # Spark rounds the negation and the absolute value of longer decimals


# -- typing rules


def as_double(result: Type) -> Rule:
    """The arguments are numbers and are cast to double."""

    def type_call(analyser: Analyser, node: Written) -> Typed:
        return analyser.made(node, node.op, result, *(number_as(analyser, node, arg, DOUBLE) for arg in node.args))

    return type_call


def number_as(analyser: Analyser, node: Written, arg: Written, to: Type) -> Typed:
    """An argument that is a number, or a string that is read as one, cast to a floating type."""
    inner = analyser.read(arg)
    if inner.type.name not in NUMERIC and inner.type not in (STRING, NULL):
        analyser.refuse(node, f"{node.op} takes a number, not {analyser.shown(inner)}")
    return analyser.cast(arg, inner, to)


def type_same(analyser: Analyser, node: Written) -> Typed:
    """The result has the type of the argument, which may be an interval."""
    interval = analyser.read(node.args[0])
    if interval.type in INTERVALS:
        return analyser.made(node, node.op, interval.type, interval)
    inner = _number(analyser, node)
    if inner.type.precision > _MAX_EXACT_DIGITS:
        analyser.refuse(node, f"{node.op} of {analyser.shown(inner)} is not supported: Spark rounds beyond 34 digits")
    return analyser.made(node, node.op, inner.type, inner)


def type_unchanged(analyser: Analyser, node: Written) -> Typed:
    return _number(analyser, node)


def type_whole(analyser: Analyser, node: Written) -> Typed:
    """The result is a bigint, or a decimal without places; with a number of places, a decimal."""
    if len(node.args) == 2:
        return type_whole_at(analyser, node)
    inner = _number(analyser, node)
    type_ = inner.type
    if type_.name == "decimal":
        whole = type_.precision - type_.scale + (1 if type_.scale else 0)
        return analyser.made(node, node.op, Type("decimal", max(1, min(38, whole)), 0), inner)
    return analyser.made(node, node.op, BIGINT, analyser.cast(node, inner, type_.widest))


def type_rounded(analyser: Analyser, node: Written) -> Typed:
    """A number, and the places as a literal, which becomes the value of the node."""
    inner, places = _number(analyser, node), _places(analyser, node)
    type_ = _rounded_decimal(inner.type, places) if inner.type.name == "decimal" else inner.type
    return analyser.made(node, node.op, type_, inner, value=places)


def type_whole_at(analyser: Analyser, node: Written) -> Typed:
    """floor() and ceil() at a number of places: the number is cast to a decimal first."""
    inner, places = _number(analyser, node), _places(analyser, node)
    if inner.type.is_floating:
        inner = analyser.cast(node, inner, Type("decimal", 30, 15) if inner.type == DOUBLE else Type("decimal", 14, 7))
    elif inner.type.is_integer:
        inner = analyser.cast(node, inner, as_decimal(inner.type))
    return analyser.made(node, node.op, _rounded_decimal(inner.type, places), inner, value=places)


def _places(analyser: Analyser, node: Written) -> int:
    """The number of places, which is a literal; 0 if it is not given."""
    if len(node.args) < 2:
        return 0
    literal = node.args[1]
    kind = analyser.kinds[literal.slot].name if literal.op == "literal" else ""
    if kind != "int" and (kind not in ("tinyint", "smallint") or "round" not in node.op):
        analyser.refuse(literal, f"{node.op} takes its number of places as an integer literal")
    places = int(analyser.statics[literal.slot].rstrip("sSyY")) * (-1 if literal.negated else 1)
    return max(-MAX_PLACES, min(places, MAX_PLACES))


def _rounded_decimal(type_: Type, places: int) -> Type:
    """The type of a decimal after rounding. It may need one more digit before the point."""
    whole = type_.precision - type_.scale + 1
    if places < 0:
        return Type("decimal", min(38, max(whole, -places + 1)), 0)
    scale = min(type_.scale, places)
    return Type("decimal", min(38, whole + scale), scale)


def _number(analyser: Analyser, node: Written) -> Typed:
    """The first argument, which must be a number, or a string that is read as a double."""
    inner = analyser.read(node.args[0])
    if inner.type in (STRING, NULL):
        inner = analyser.cast(node.args[0], inner, DOUBLE)
    if inner.type.name not in NUMERIC:
        analyser.refuse(node, f"{node.op} takes a number, not {analyser.shown(inner)}")
    analyser.need_sizes(inner)
    return inner


def as_operator(operator: str) -> Rule:
    """The call is another way to write an operator."""

    def type_call(analyser: Analyser, node: Written) -> Typed:
        return analyser.arithmetic(node, operator)

    return type_call


def as_try(operator: str) -> Rule:
    """The operator, with null where it fails."""

    def type_call(analyser: Analyser, node: Written) -> Typed:
        return analyser.made_try(node, analyser.arithmetic(node, operator))

    return type_call


# -- evaluators


def absolute_value(call: Call) -> Vector:
    return absolute(call.first, call.first_type)


def negated(call: Call) -> Vector:
    return negate(call.first, call.first_type)


def doubles(function: Callable[[NDArray[np.float64]], NDArray[Any]]) -> Evaluator:
    """A function of an array of doubles."""

    def evaluate(call: Call) -> Vector:
        with np.errstate(all="ignore"):
            return call.first.with_values(function(call.first.values))

    return evaluate


square_root = doubles(np.sqrt)
sign = doubles(lambda values: np.where(values == 0, values, np.sign(values)))


def is_nan(call: Call) -> Vector:
    """False for null, not null."""
    inner = call.first
    return Vector(np.isnan(inner.values) & ~inner.nulls, None, inner.failed, inner.lost)


def floor(call: Call) -> Vector:
    return _to_whole("floor", call)


def ceiling(call: Call) -> Vector:
    return _to_whole("ceil", call)


def _to_whole(op: str, call: Call) -> Vector:
    vector, from_, type_ = call.first, call.first_type, call.node.type
    if from_.name == "double":
        whole = np.floor(vector.values) if op == "floor" else np.ceil(vector.values)
        with np.errstate(invalid="ignore"):
            over = (whole >= 2.0**63) | (whole < -(2.0**63))
        whole = np.where(over | np.isnan(whole), 0.0, whole)  # NaN becomes 0
        return vector.with_values(whole.astype(np.int64)).failing(over)
    if from_.name != "decimal":
        return vector
    places = min(_value(call), from_.scale)
    unit, step = 10 ** (from_.scale - places), 10 ** max(0, -places)
    values = vector.values.astype(object)
    return fit(vector, (values // unit if op == "floor" else -(-values // unit)) * step, type_)


def _value(call: Call) -> int:
    """The number of places, which is the value of the node."""
    return call.node.value if isinstance(call.node.value, int) else 0


def rounded(call: Call) -> Vector:
    return _round(call, rescale, ROUND_HALF_UP)


def rounded_to_even(call: Call) -> Vector:
    return _round(call, _rescale_to_even, ROUND_HALF_EVEN)


def _round(call: Call, move: Callable[[int, int, int], int], mode: str) -> Vector:
    """Rounded to places; `move` and `mode` say what happens to a half."""
    vector, from_, type_ = call.first, call.first_type, call.node.type
    places = _value(call)
    if from_.is_floating:
        rounded = np.array([_round_double(value, places, mode) for value in vector.values.tolist()], np.float64)
        return vector.with_values(to_floats(rounded) if from_.name == "float" else rounded)
    if places >= from_.scale:
        return vector.with_values(vector.values.astype(dtype_of(type_)))
    step = 10 ** max(0, -places)
    whole = [move(value, from_.scale - places, 0) * step for value in vector.values.tolist()]
    if from_.name == "decimal":
        return fit(vector, as_objects(whole), type_)
    return narrowed(vector.with_values(as_objects(whole)), from_)


def _rescale_to_even(unscaled: int, scale: int, to: int) -> int:
    """An unscaled decimal at a smaller scale; a half is rounded to the even neighbour."""
    unit = int(10 ** (scale - to))
    quotient, rest = divmod(unscaled, unit)
    return quotient + (2 * rest > unit or (2 * rest == unit and quotient % 2 == 1))


def _round_double(value: float, places: int, mode: str) -> float:
    if value != value or value in (float("inf"), float("-inf"), 0.0):
        return value + 0.0  # never -0.0
    exact = Decimal(repr(value))  # Spark rounds the shortest decimal that reads as the double
    exponent = exact.as_tuple().exponent
    if isinstance(exponent, int) and exponent >= -places:
        return value
    return float(exact.quantize(Decimal(1).scaleb(-places), mode, _EXACT)) + 0.0


# -- the rows of the table

FUNCTIONS = (
    Function("abs(x)", type_same, absolute_value, "the absolute value"),
    Function("negative(x)", type_same, negated, "the value with the opposite sign"),
    Function("positive(x)", type_unchanged, None, "the value itself"),
    Function("sign(x)", as_double(DOUBLE), sign, "-1.0, 0.0 or 1.0, as a double", ("signum",)),
    Function("sqrt(x)", as_double(DOUBLE), square_root, "the square root, as a double; NaN below 0"),
    Function(
        "floor(x [, places])",
        type_whole,
        floor,
        "the greatest whole number that is not above `x`; with `places`, an integer literal, the greatest decimal",
        literals=(1,),
    ),
    Function(
        "ceil(x [, places])",
        type_whole,
        ceiling,
        "the least whole number that is not below `x`; with `places`, the least decimal",
        ("ceiling",),
        literals=(1,),
    ),
    Function(
        "round(x [, places])",
        type_rounded,
        rounded,
        "`x` rounded half away from zero; `places` is an integer literal, 0 by default",
        literals=(1,),
    ),
    Function(
        "bround(x [, places])",
        type_rounded,
        rounded_to_even,
        "the same, but a half is rounded to the even neighbour",
        literals=(1,),
    ),
    Function("mod(x, y)", as_operator("%"), None, "the remainder, with the sign of `x`"),
    Function("pmod(x, y)", as_operator("pmod"), None, "the remainder, not negative for a positive `y`"),
    Function("isnan(x)", as_double(BOOLEAN), is_nan, "whether `x` is NaN; false for null"),
    Function("try_add(x, y)", as_try("+"), None, "`x + y`, null if that fails"),
    Function("try_subtract(x, y)", as_try("-"), None, "`x - y`, null if that fails"),
    Function("try_multiply(x, y)", as_try("*"), None, "`x * y`, null if that fails"),
    Function("try_divide(x, y)", as_try("/"), None, "`x / y`, null if that fails"),
    Function("try_mod(x, y)", as_try("%"), None, "`x % y`, null if that fails"),
)
