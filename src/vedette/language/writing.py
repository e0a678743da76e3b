"""A typed expression as text, in one spelling for all ways in which a query may be written.

Casts that Spark inserts are not shown. The text is for people: long polygons and lists are shortened.
"""

from __future__ import annotations

from collections.abc import Callable

from vedette.data.moments import NOW
from vedette.data.schema import INTEGER_BITS
from vedette.data.views import shown_name
from vedette.errors import shortened
from vedette.language.expressions import QUANTIFIERS, Typed
from vedette.language.geofences import DISTANCES, POLYGON_TESTS
from vedette.language.shown_values import show_value
from vedette.language.spelling import write_name

_COMPARISONS = ("=", "<>", "<", "<=", ">", ">=", "<=>")
_INFIX = ("+", "-", "*", "/", "%", "div", "||", "&", "|", "^")
_TESTS = ("in", "like", "isnull")
_NAMES = {
    "st_contains": "ST_Contains",
    "st_intersects": "ST_Intersects",
    "st_distancespheroid": "ST_DistanceSpheroid",
    "st_distancesphere": "ST_DistanceSphere",
}
_MOST_ITEMS = 12  # of a list that are shown
_LONGEST_POLYGON = 80

WriteSlot = Callable[[Typed], str]


def write_expression(node: Typed, write_slot: WriteSlot) -> str:
    """The text of a node; `write_slot` writes its literals."""

    def write(one: Typed) -> str:
        return write_expression(one, write_slot)

    def operand(one: Typed) -> str:
        while is_hidden(one):
            one = one.args[0]
        is_compound = one.op in (*_INFIX, *_COMPARISONS, *_TESTS, "and", "or", "not") or _sign_of(one.op)
        return f"({write(one)})" if is_compound and node.op not in _COMPARISONS else write(one)

    op, args = node.op, node.args
    if op == "field":
        return _write_field(node.name)
    if op == "slot":
        return write_slot(node)
    if op == "constant":
        return show_value(node.value).upper() if node.value is None else show_value(node.value)
    if op == "element":
        return _variable(node.name)
    if is_hidden(node):
        return write(args[0])
    if op in ("and", "or"):
        return f" {op.upper()} ".join(map(operand, args))
    if op == "not":
        return _write_negation(args[0], write, operand)
    if op in _COMPARISONS or op in _INFIX or _sign_of(op):
        return f"{operand(args[0])} {_sign_of(op) or op.upper()} {operand(args[1])}"
    if op in _TESTS:
        return _write_test(node, "", write, operand)
    if op == "[]":
        return f"{operand(args[0])}[{write(args[1])}]"
    if op == "map value":
        key = show_value(node.value) if node.value is not None else write(args[1])
        return f"{operand(args[0])}[{key}]"
    if op == "cast":
        return f"CAST({write(args[0])} AS {node.type})"
    if op == "try":
        text = write(args[0])
        return f"TRY_{text}" if text.startswith("CAST(") else f"try_{text}" if text.endswith(")") else f"try({text})"
    if op == "case":
        return _write_case(node, write)
    if op in QUANTIFIERS:
        return f"{op}({write(args[0])}, {_variable(node.name)} -> {write(args[1])})"
    if op in POLYGON_TESTS:
        polygon = shortened(write(args[2]), _LONGEST_POLYGON)
        return f"{_NAMES[op]}(ST_GeomFromText({polygon}), ST_Point({write(args[0])}, {write(args[1])}))"
    if op in DISTANCES:
        x, y, other_x, other_y = map(write, args)
        return f"{_NAMES[op]}(ST_Point({x}, {y}), ST_Point({other_x}, {other_y}))"
    if op == "st_dwithin":
        x, y, centre_x, centre_y, *rest = map(write, args)
        return f"ST_DWithin(ST_Point({x}, {y}), ST_Point({centre_x}, {centre_y}), {', '.join(rest)})"
    return f"{op}({', '.join(map(write, args))})"


def is_hidden(node: Typed) -> bool:
    """Whether a node is a cast that changes no value, as Spark inserts them."""
    if node.op != "cast":
        return False
    source, target = node.args[0].type, node.type
    if source.is_number and target.is_number:
        if target.is_integer:
            return source.is_integer and INTEGER_BITS[source.name] <= INTEGER_BITS[target.name]
        return target.name != "float" or source.name == "float"
    return source.name == "null" or (source.name == "date" and target.is_stamp)


def _write_field(name: str) -> str:
    if name.endswith(NOW):
        return name
    return ".".join(map(write_name, name.split("."))) if shown_name(name) == name else shown_name(name)


def _variable(name: str) -> str:
    return "x" if name == "0" else f"x{name}"


def _sign_of(op: str) -> str:
    """The sign of a calculation with times, such as `timestamp - interval`."""
    words = op.split()
    return words[1] if len(words) == 3 and words[1] in ("+", "-", "*", "/") else ""


def _write_negation(node: Typed, write: Callable[[Typed], str], operand: Callable[[Typed], str]) -> str:
    return _write_test(node, "NOT ", write, operand) if node.op in _TESTS else f"NOT {operand(node)}"


def _write_test(node: Typed, negation: str, write: Callable[[Typed], str], operand: Callable[[Typed], str]) -> str:
    value = operand(node.args[0])
    if node.op == "isnull":
        return f"{value} IS {negation}NULL"
    if node.op == "like":
        return f"{value} {negation}LIKE {operand(node.args[1])}"
    return f"{value} {negation}IN ({write_list(list(map(write, node.args[1:])))})"


def write_list(items: list[str]) -> str:
    more = f", ... {len(items) - _MOST_ITEMS} more" if len(items) > _MOST_ITEMS else ""
    return ", ".join(items[:_MOST_ITEMS]) + more


def _write_case(node: Typed, write: Callable[[Typed], str]) -> str:
    whens = zip(node.args[:-1:2], node.args[1::2], strict=True)
    branches = " ".join(f"WHEN {write(condition)} THEN {write(value)}" for condition, value in whens)
    return f"CASE {branches} ELSE {write(node.args[-1])} END"
