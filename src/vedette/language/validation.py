"""Validation of expressions from a file: known nodes over existing fields and constants."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa

from vedette.data.columns import Column
from vedette.data.moments import find_field
from vedette.data.schema import TYPE_NAMES, Schema, element_of, is_array, is_map, value_of
from vedette.language.expressions import BOOLEAN, DOUBLE, INTERVALS, QUANTIFIERS, Typed
from vedette.language.function_table import ARGUMENTS, TABLE
from vedette.language.functions.formats import is_format
from vedette.language.functions.function import MAX_ARGUMENTS
from vedette.language.functions.moved_times import UNITS
from vedette.language.functions.numbers import MAX_PLACES
from vedette.language.functions.time_texts import PATTERNS
from vedette.language.geofences import DISTANCES, POLYGON_TESTS
from vedette.language.time_patterns import is_pattern
from vedette.language.types import MAX_PRECISION, NUMERIC
from vedette.language.vectors import filler
from vedette.native.damage import DamageError, check, check_type

MAX_NODES = 1_000_000
_MAX_DIGITS = 20 + MAX_PRECISION  # an integer is compared exactly with a decimal literal of any scale
# How many arguments a node has, least and most. Functions have as many as their calls, unless listed here.
_ARGUMENTS: dict[str, tuple[int, int]] = {
    **dict.fromkeys(("field", "slot", "constant"), (0, 0)),
    **dict.fromkeys(("not", "cast", "try"), (1, 1)),
    **dict.fromkeys(("=", "<>", "<", "<=", ">", ">=", "<=>", "+", "-", "*", "/", "%", "div", "pmod"), (2, 2)),
    **dict.fromkeys(("&", "|", "^"), (2, 2)),
    "~": (1, 1),
    **dict.fromkeys(("and", "or", "case", "in"), (1, MAX_NODES)),
    **dict.fromkeys(POLYGON_TESTS, (3, 3)),
    **dict.fromkeys((*QUANTIFIERS, "like", "[]"), (2, 2)),
    "element": (0, 0),
    **{op: (n, n) for op, n in ARGUMENTS.items()},
    **dict.fromkeys(("date_format", "from_unixtime", "mask"), (1, 1)),
    "format_string": (1, MAX_ARGUMENTS),
    "map value": (1, 2),
    "timestampadd": (2, 2),
    "timestampdiff": (2, 2),
    "st_dwithin": (5, 5),
    **dict.fromkeys(DISTANCES, (4, 4)),
}
_KNOWN = {each.name: (each.least, each.most) for each in TABLE if each.evaluate is not None} | _ARGUMENTS


_TYPES = {*TYPE_NAMES, "int", "null", *(interval.name for interval in INTERVALS)}


def validate_expression(expression: Typed, schema: Schema, constants: Sequence[Any]) -> None:
    """Raise DamageError unless a tree from a file can be evaluated over rows of the schema."""
    n_nodes = 0
    waiting = [(expression, 0)]
    while waiting:
        node, depth = waiting.pop()
        n_nodes += 1
        check(n_nodes <= MAX_NODES and depth <= 400, "an expression is too large")
        _validate_node(node, schema, constants)
        waiting += [(arg, depth + 1) for arg in node.args]


def _validate_node(node: Typed, schema: Schema, constants: Sequence[Any]) -> None:
    for value, hint in ((node.op, str), (node.name, str), (node.slot, int), (node.type.name, str)):
        check_type(value, hint, "a node of an expression")
    check(node.op in _KNOWN, "an expression has an unknown node")
    least, most = _KNOWN[node.op]
    check(least <= len(node.args) <= most, f"{node.op} has a wrong number of arguments")
    type_ = node.type
    inner = element_of(type_) if is_array(type_) else value_of(type_) if is_map(type_) else type_
    check(inner.name in _TYPES, "an expression has an unknown type")
    for digits, most_digits in ((type_.precision, _MAX_DIGITS), (type_.scale, MAX_PRECISION)):
        check(type(digits) is int and 0 <= digits <= most_digits, "a decimal has too many digits")
    if node.op == "field":
        field = find_field(schema, node.name)
        check(field is not None and field.name == node.name and field.type == type_, "an expression has a wrong field")
    elif node.op == "slot":
        check(0 <= node.slot < len(constants), "an expression has an unknown constant")
        check(_is_of(constants[node.slot], filler(type_, 0)), "a constant has a wrong type")
    elif node.op in POLYGON_TESTS:
        polygon = node.args[2]
        check(polygon.op == "slot" and polygon.type.name == "string", "a polygon is not a constant")
        check(all(arg.type.name in NUMERIC for arg in node.args[:2]), "a point has no coordinates")
    elif node.op == "case":
        check(len(node.args) % 2 == 1, "case has a wrong number of arguments")
    _validate_value(node)


def _validate_value(node: Typed) -> None:
    value: Any = node.value
    if node.op in ("round", "bround", "floor", "ceil") and (value is not None or "round" in node.op):
        check(type(value) is int and abs(value) <= MAX_PLACES, "round has an invalid number of places")
    elif node.op in ("timestampadd", "timestampdiff"):
        check(value in UNITS, f"{node.op} has an unknown unit")
    elif node.op in PATTERNS:
        check(type(value) is str and is_pattern(value, reads=node.op.startswith("read ")), f"{node.op} has no pattern")
    elif node.op == "format_string":
        check(is_format(value, len(node.args)), "format_string has no format")
    elif node.op == "map value":
        check((type(value) is str) == (len(node.args) == 1) and is_map(node.args[0].type), "a map has no key")
    elif node.op == "like":
        check(type(value) is str and len(value) <= 1, "like has an invalid escape")
    elif node.op == "constant":
        is_number = type(value) is float and np.isfinite(value) and node.type == DOUBLE
        is_truth = type(value) is bool and node.type == BOOLEAN
        check(value is None or is_truth or is_number, "a constant has a wrong type")
    else:
        is_margin = type(value) is float and np.isfinite(value)
        check(value is None or type(value) is str or is_margin, "a node of an expression has an invalid value")


def _is_of(values: Any, like: Any) -> bool:
    """Whether constants are in the physical form of a type."""
    if isinstance(like, pa.Array):
        return isinstance(values, pa.LargeStringArray)
    return isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype == like.dtype


def check_evaluation(expression: Typed, constants: Sequence[Any], time_zone: str, n: int) -> None:
    """Raise DamageError unless a condition can be evaluated for a row of nulls and a row of zeros and empty texts."""
    from vedette.language.evaluation import Evaluation
    from vedette.language.polygons import Polygons, why_not_parsed

    check(expression.type == BOOLEAN, "an expression is not a condition")
    slots = {node.args[2].slot for node in expression.walk() if node.op in POLYGON_TESTS}
    check(not any(why_not_parsed(constants[slot]) for slot in slots), "a polygon nests too deeply or contains NUL")
    polygons = {slot: Polygons(constants[slot]) for slot in slots}
    members = np.array([0, n - 1])
    with _trying():
        columns, rows = _two_rows(expression), np.arange(2)
        Evaluation(tuple(constants), time_zone, columns, rows, members, polygons).find_true(expression)


def check_side(expression: Typed, constants: Sequence[Any] = (), time_zone: str = "UTC") -> None:
    """Raise DamageError unless an expression with one constant per slot can be evaluated for two such rows."""
    from vedette.language.evaluation import Evaluation

    rows = np.arange(2)
    with _trying():
        columns = _two_rows(expression)
        vector = Evaluation(tuple(constants), time_zone, columns, rows, np.zeros_like(rows), {}).of(expression)
        check(_is_of(vector.values, filler(expression.type, 0)), "an expression has another type than it declares")


def _two_rows(expression: Typed) -> dict[str, Column]:
    """A row of nulls, and one of zeros and empty texts."""
    fields = {node.name: node.type for node in expression.walk() if node.op == "field"}
    return {name: Column(filler(type_, 2), np.array([False, True])) for name, type_ in fields.items()}


@contextmanager
def _trying() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        raise DamageError(f"an expression cannot be evaluated ({type(error).__name__})") from error
