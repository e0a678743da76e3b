"""The nodes of a predicate: first as written, then typed.

Both are frozen and comparable, so that a shape's tree is a key. Constants are slots: the tree of `price < 40` and of
`price < 7` is one tree, and the values are kept separately.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from vedette.data.schema import Type

BOOLEAN = Type("boolean")
TINYINT = Type("tinyint")
SMALLINT = Type("smallint")
INT = Type("int")
BIGINT = Type("bigint")
FLOAT = Type("float")
DOUBLE = Type("double")
STRING = Type("string")
BINARY = Type("binary")
DATE = Type("date")
TIMESTAMP = Type("timestamp")
TIMESTAMP_NTZ = Type("timestamp_ntz")  # a local time, whatever the zone
NULL = Type("null")
QUANTIFIERS = ("exists", "forall")  # an array, and a condition in which the node `element` stands for each element
# Intervals are types of expressions, not of fields. A date plus an interval of days is a date.
DAY_INTERVAL = Type("interval day")
TIME_INTERVAL = Type("interval day to second")
MONTH_INTERVAL = Type("interval year to month")
INTERVALS = (DAY_INTERVAL, TIME_INTERVAL, MONTH_INTERVAL)


@dataclass(frozen=True)
class Written:
    """An untyped node. `op` is 'field', 'literal', 'constant', or the name of an operator or function.

    `start` and `end` are its place in the skeleton, for messages.
    """

    op: str
    args: tuple[Written, ...] = ()
    name: str = ""  # of a field; 'true', 'false' or 'null' of a constant; the variable of a lambda function
    path: tuple[str, ...] = ()  # of a field: the names after its name and a dot
    slot: int = -1  # of a literal
    negated: bool = False  # a literal with a minus before it
    start: int = field(default=-1, compare=False)
    end: int = field(default=-1, compare=False)
    type: Type | None = None  # the target of a cast


@dataclass(frozen=True)
class Typed:
    """A typed node. `op` is 'field', 'slot', 'constant', 'cast', or the name of an operator or function."""

    op: str
    type: Type
    args: tuple[Typed, ...] = ()
    name: str = ""  # of a field
    slot: int = -1  # of a slot
    value: object = None  # of a constant: True, False or None; a static parameter of a function
    start: int = field(default=-1, compare=False)
    end: int = field(default=-1, compare=False)

    def walk(self) -> Iterator[Typed]:
        yield self
        for arg in self.args:
            yield from arg.walk()


def field_in(node: Typed) -> Typed | None:
    """The field of a node that is a field, or a field under a cast that Spark inserted."""
    while node.op == "cast" and node.value is None:
        node = node.args[0]
    return node if node.op == "field" else None


def to_json(node: Typed) -> list[Any]:
    """A tree as JSON."""
    type_ = [node.type.name, node.type.precision, node.type.scale]
    return [node.op, type_, node.name, node.slot, node.value, [to_json(arg) for arg in node.args]]


def from_json(parts: list[Any]) -> Typed:
    """The tree that `to_json` wrote."""
    op, (type_name, precision, scale), name, slot, value, args = parts
    return Typed(op, Type(type_name, precision, scale), tuple(from_json(arg) for arg in args), name, slot, value)
