"""Links: the parts of a predicate that compare a row of one stream with a row of another.

`left.x < right.y` is a range of the sign of the difference, `left.x - right.y BETWEEN a AND b` a range of the
difference, and `abs(left.x - right.y) <= e` a range of the distance. Each becomes a range on a virtual field with the
link's name, so all rules for fields (AND, OR, NOT, IN, types of constants) also apply to links.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from vedette.data.boxes import CLOSED
from vedette.data.columns import INT64_DECIMAL_PRECISION
from vedette.data.schema import Schema, Type
from vedette.language.expressions import BOOLEAN, Typed, from_json, to_json
from vedette.language.normal_form import Form
from vedette.language.ranges import Band
from vedette.native.damage import check

SIGN, DIFFERENCE, DISTANCE = "sign", "difference", "distance"

_SIGNS = {"<": (-1, -1), "<=": (-1, 0), "=": (0, 0), ">=": (0, 1), ">": (1, 1)}
_NEGATED = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_ORDERED = ("bigint", "double", "decimal", "boolean", "date", "timestamp", "timestamp_ntz")
_SUBTRACTED = ("bigint", "double", "decimal")


@dataclass(frozen=True)
class Link:
    """A comparison of rows of two streams. Each of `sides` is an expression over the fields of one stream.

    The value of a link is the sign of first - second (-1, 0 or 1), their difference, or its absolute value.
    """

    name: str
    kind: str  # SIGN, DIFFERENCE or DISTANCE
    sides: tuple[Typed, Typed]
    type: Type  # of both sides, and of the difference

    def to_json(self) -> list[Any]:
        return [self.kind, *map(to_json, self.sides), [self.type.name, self.type.precision, self.type.scale]]

    @staticmethod
    def from_json(parts: list[Any]) -> Link:
        kind, first, second, type_ = parts
        return make_link(kind, from_json(first), from_json(second), Type(*type_))

    def validate(self, schema: Schema) -> None:
        """Raise DamageError unless a link from a file can be evaluated over rows of two streams."""
        from vedette.language.validation import check_side, validate_expression

        check(self.kind in (SIGN, DIFFERENCE), "a link has an unknown kind")
        check(_are_sides(*self.sides), "a link does not compare two streams")
        is_ordered = self.type.name in _ORDERED and self.type.precision <= INT64_DECIMAL_PRECISION
        check(is_ordered or self.type.is_text, "a link has a type without an order")
        check(self.kind == SIGN or self.type.name in _SUBTRACTED, "a link has a type without differences")
        for side in self.sides:
            validate_expression(side, schema, ())
            check(side.type == self.type, "a link has another type than its sides")
            check_side(side)

    @property
    def streams(self) -> tuple[str, str]:
        first, second = (_stream_of(side) for side in self.sides)
        assert first is not None
        assert second is not None
        return first, second

    @property
    def difference(self) -> Link:
        """The difference of the same sides: a range of the distance is two ranges of it."""
        return make_link(DIFFERENCE, *self.sides, self.type)


def make_link(kind: str, first: Typed, second: Typed, type_: Type) -> Link:
    words = {SIGN: "{} with {}", DIFFERENCE: "{} - {}", DISTANCE: "abs({} - {})"}[kind]
    return Link(words.format(show(first), show(second)), kind, (first, second), type_)


def with_links(node: Typed, wanted: bool, links: dict[str, Link]) -> Typed:
    """The tree in which links replace the comparisons of two streams. The links are added to `links`.

    `wanted` is the required truth value.
    """
    if node.op in ("and", "or", "not"):
        inside = wanted != (node.op == "not")
        return Typed(node.op, node.type, tuple(with_links(arg, inside, links) for arg in node.args))
    if node.op in _NEGATED:
        linked = _sign(node, wanted, links)
        if linked is not None:
            return linked
    if node.op in _NEGATED or node.op == "in":
        return Typed(node.op, node.type, tuple(_difference(arg, links) for arg in node.args), value=node.value)
    return node


def link_form(node: Typed, wanted: bool, n: int) -> Form:
    """Where a comparison of two streams is TRUE, or FALSE: ranges of the sign."""
    op = str(node.value) if wanted else _NEGATED[str(node.value)]
    ends = np.full(n, CLOSED, np.int8)
    signs = [_SIGNS[each] for each in (("<", ">") if op == "<>" else (op,))]
    bands = [
        Band(np.full(n, low, np.int64), np.full(n, high, np.int64), ends, ends, np.ones(n, np.bool_))
        for low, high in signs
    ]
    return Form([{node.name: band} for band in bands])


def show(node: Typed) -> str:
    """An expression without literals in words, similar to SQL and unique."""
    if node.op == "field":
        return node.name
    if node.op == "cast":
        inner = show(node.args[0])
        return inner if node.value is None and node.type.name != "decimal" else f"cast({inner} as {node.type})"
    if node.op == "constant":
        return str(node.value)
    args = [show(arg) for arg in node.args]
    value = "" if node.value is None else f", {node.value}"
    if node.op in ("+", "-", "*", "/", "%") and len(args) == 2:
        return f"({args[0]} {node.op} {args[1]})"
    return f"{node.op}({', '.join(args)}{value})"


def _sign(node: Typed, wanted: bool, links: dict[str, Link]) -> Typed | None:
    first, second = node.args
    if not _are_sides(first, second):
        return None
    if first.type != first.type.widest:  # a narrow number
        first, second = (Typed("cast", side.type.widest, (side,)) for side in (first, second))
    type_ = first.type
    is_ordered = type_.name in _ORDERED and type_.precision <= INT64_DECIMAL_PRECISION
    is_equality = node.op == ("=" if wanted else "<>")
    if not is_ordered and not (type_.is_text and is_equality):
        return None  # strings have codes, which can only be compared for equality
    link = make_link(SIGN, first, second, type_)
    links[link.name] = link
    return Typed("link", BOOLEAN, name=link.name, value=node.op)


def _difference(node: Typed, links: dict[str, Link]) -> Typed:
    """A difference, under casts or in abs(), as the field of a link; other nodes unchanged."""
    if node.op == "cast" and node.value is None:
        return Typed("cast", node.type, (_difference(node.args[0], links),), value=node.value)
    inner = node.args[0] if node.op == "abs" else node
    type_ = inner.type
    if inner.op != "-" or type_.name not in _SUBTRACTED or type_.precision > INT64_DECIMAL_PRECISION:
        return node
    first, second = inner.args
    if not _are_sides(first, second):
        return node
    if type_.name == "decimal":
        if type_.scale != max(first.type.scale, second.type.scale):
            return node
        first, second = (side if side.type == type_ else Typed("cast", type_, (side,)) for side in (first, second))
    link = make_link(DISTANCE if node.op == "abs" else DIFFERENCE, first, second, type_)
    links[link.name] = link
    return Typed("field", type_, name=link.name)


def _are_sides(first: Typed, second: Typed) -> bool:
    """Whether each uses one stream, the streams differ, and neither has a literal."""
    streams = (_stream_of(first), _stream_of(second))
    has_literals = any(node.op == "slot" for side in (first, second) for node in side.walk())
    return None not in streams and streams[0] != streams[1] and not has_literals


def _stream_of(node: Typed) -> str | None:
    """The only stream whose fields an expression uses, or None."""
    streams = {each.name.partition(".")[0] for each in node.walk() if each.op == "field"}
    return streams.pop() if len(streams) == 1 else None
