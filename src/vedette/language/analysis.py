"""Typing: a tree as written becomes a typed tree with the casts that Spark would insert.

An operand of an invalid type is a QueryError, like Spark's DATATYPE_MISMATCH.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NoReturn

from vedette.data.schema import Schema, Type
from vedette.errors import QueryError
from vedette.language.expressions import BIGINT, BOOLEAN, DOUBLE, NULL, STRING, Typed, Written
from vedette.language.function_table import FUNCTIONS
from vedette.language.literals import Kind
from vedette.language.patterns import BAD_PATTERN
from vedette.language.signatures import case, concat
from vedette.language.types import NUMERIC, as_decimal, common_type, decimal_result, is_integral

COMPARISONS = ("=", "<>", "<", "<=", ">", ">=", "<=>")
_ARITHMETIC = ("+", "-", "*", "/", "%", "div")
_TO_STRING = ("bigint", "int", "boolean", "date", "decimal", "null")  # casts to string whose digits are Spark's
_CASTS: dict[str, tuple[str, ...]] = {  # from -> to, where Spark allows the cast and we know its exact result
    "int": ("int", "bigint", "double", "decimal", "boolean", "string"),
    "bigint": ("int", "bigint", "double", "decimal", "boolean", "string"),
    "double": ("int", "bigint", "double", "boolean"),
    "decimal": ("int", "bigint", "double", "decimal", "boolean", "string"),
    "boolean": ("int", "bigint", "double", "boolean", "string"),
    "string": ("int", "bigint", "double", "decimal", "boolean", "string", "date", "timestamp"),
    "date": ("date", "timestamp", "string"),
    "timestamp": ("date", "timestamp"),
}


class NeedsSizesError(Exception):
    """The tree cannot be typed while decimals of several sizes are compiled together."""


class Analyser:
    """Types trees over one schema. `kinds` are those of the literals, by slot."""

    def __init__(self, schema: Schema, kinds: Sequence[Kind], statics: Sequence[str]) -> None:
        self.schema = schema
        self.kinds = kinds
        self.statics = statics  # the literals as written, of the first text of the shape

    def condition(self, node: Written) -> Typed:
        """The typed tree of a whole predicate."""
        typed = self.read(node)
        if typed.type != BOOLEAN:
            self.refuse(node, f"a query is a condition, but this is {self.shown(typed)}")
        return typed

    def refuse(self, node: Written, reason: str, field: str | None = None) -> NoReturn:
        raise QueryError(reason, None, node.start, node.end, field=field)

    def read(self, node: Written) -> Typed:
        op = node.op
        if op in ("field", "member"):
            return self.field(node)
        if op == "literal":
            kind = self.kinds[node.slot]
            if node.negated and kind.name in ("string", "date", "timestamp"):
                self.refuse(node, f"a minus before a {kind.name} is not supported")
            return self.made(node, "slot", self.kinds[node.slot].type, slot=node.slot)
        if op == "constant":
            if node.name == "null":
                return self.made(node, "constant", NULL)
            return self.made(node, "constant", BOOLEAN, value=node.name == "true")
        if op in COMPARISONS:
            return self.compare(node, op, self.read(node.args[0]), self.read(node.args[1]))
        if op in ("and", "or"):
            return self.logic(node)
        if op == "not":
            return self.made(node, "not", BOOLEAN, self.truth(node.args[0]))
        if op == "between":
            value, low, high = (self.read(arg) for arg in node.args)
            return self.made(
                node, "and", BOOLEAN, self.compare(node, ">=", value, low), self.compare(node, "<=", value, high)
            )
        if op == "in":
            return self.membership(node)
        if op == "like":
            return self.like(node)
        if op in ("cast", "try_cast"):
            return self.explicit_cast(node)
        if op in _ARITHMETIC:
            return self.arithmetic(node, op)
        if op == "||":
            return concat(self, node)
        if op == "case":
            return case(self, node)
        return FUNCTIONS[op].type_call(self, node)

    def like(self, node: Written) -> Typed:
        pattern = node.args[1]
        if pattern.op == "literal" and self.statics[pattern.slot].startswith(BAD_PATTERN):
            self.refuse(pattern, self.statics[pattern.slot].removeprefix(BAD_PATTERN))
        return self.made(node, "like", BOOLEAN, *self.texts(node), value=node.name)

    def field(self, node: Written) -> Typed:
        """A field by its name. If the schema has several streams, by the names of stream and field."""
        schema = self.schema
        if node.op == "field":
            name = node.name
            if schema.streams:
                self.refuse(node, schema.needs_stream(name))
        else:
            if not schema.streams:
                reason = "a name with a dot is not supported; use the field's name alone, in backquotes if it has a dot"
                self.refuse(node, reason)
            if schema.find_stream(node.name) is None:
                self.refuse(node, schema.unknown_stream(node.name))
            name = f"{node.name}.{node.args[0].name}"
        found = schema.find(name)
        if found is None:
            self.refuse(node, schema.unknown_field(name), field=name)
        return self.made(node, "field", found.type, name=found.name)

    def made(
        self, node: Written, op: str, type_: Type, *args: Typed, name: str = "", slot: int = -1, value: object = None
    ) -> Typed:
        return Typed(op, type_, args, name, slot, value, node.start, node.end)

    def made_try(self, node: Written, inner: Typed) -> Typed:
        return self.made(node, "try", inner.type, inner)

    # -- casts

    def cast(self, node: Written, typed: Typed, to: Type) -> Typed:
        """The node in another type, with a cast that Spark inserts."""
        if typed.type == to:
            return typed
        if typed.op == "constant" and typed.value is None:
            return self.made(node, "constant", to)
        if typed.type == NULL:  # such as CASE WHEN b THEN NULL END: null in any type
            return Typed("cast", to, (typed,), start=typed.start, end=typed.end)
        if typed.type.name not in _CASTS or to.name not in _CASTS[typed.type.name]:
            self.refuse(node, f"{self.shown(typed)} as {to} is not supported")
        return Typed("cast", to, (typed,), start=typed.start, end=typed.end)

    def explicit_cast(self, node: Written) -> Typed:
        inner = self.read(node.args[0])
        to = node.type
        assert to is not None
        if inner.type != NULL and to.name not in _CASTS[inner.type.name]:
            hint = f"; from {inner.type.name} casts go to: {', '.join(_CASTS[inner.type.name])}"
            self.refuse(node, f"a cast of {inner.type} to {to} is not supported{hint}")
        cast = self.cast(node, inner, to)
        if cast.op == "cast" and cast is not inner:
            cast = Typed("cast", to, cast.args, value="explicit", start=node.start, end=node.end)
        return self.made_try(node, cast) if node.op == "try_cast" else cast

    def truth(self, node: Written) -> Typed:
        """The operand of NOT."""
        return self.as_truth(node, self.read(node))

    def logic(self, node: Written) -> Typed:
        """AND or OR. Spark splits a chain into pairs; it casts a string to boolean only next to a condition."""
        operands = [self.read(arg) for arg in node.args]
        for pair in _pairs_of_chain(0, len(operands) - 1):
            types = {operands[place].type for place in pair}
            if STRING in types and types <= {STRING, NULL}:
                place = next(place for place in pair if operands[place].type == STRING)
                shown = self.shown(operands[place])
                reason = f"{node.op.upper()} needs a condition next to {shown}; cast it to boolean"
                self.refuse(node.args[place], reason)
        truths = [self.as_truth(arg, typed) for arg, typed in zip(node.args, operands, strict=True)]
        return self.made(node, node.op, BOOLEAN, *truths)

    def as_truth(self, node: Written, typed: Typed) -> Typed:
        if typed.type in (NULL, STRING):
            return self.cast(node, typed, BOOLEAN)
        if typed.type != BOOLEAN:
            self.refuse(node, f"a condition is needed here, but this is {self.shown(typed)}")
        return typed

    # -- comparisons

    def compare(self, node: Written, op: str, left: Typed, right: Typed) -> Typed:
        if op in ("<", "<=", ">", ">="):
            known = self._integer_and_decimal(node, op, left, right)
            if known is not None:
                return known
        left, right = self._sized(left, right), self._sized(right, left)
        to = common_type([left.type, right.type])
        if to is None:
            self.refuse(node, f"cannot compare {self.shown(left)} with {self.shown(right)}")
        return self.made(node, op, BOOLEAN, self.cast(node, left, to), self.cast(node, right, to))

    def _integer_and_decimal(self, node: Written, op: str, left: Typed, right: Typed) -> Typed | None:
        """The order of an integer and a decimal literal: Spark compares them exactly, for any number of digits.

        Beyond 64 bits it ignores the integer: the comparison is true or false, even for null.
        """
        flipped = left.op == "slot" and left.type.name == "decimal"
        integer, decimal = (right, left) if flipped else (left, right)
        if not (is_integral(integer.type) and decimal.op == "slot" and decimal.type.name == "decimal"):
            return None
        beyond = self.kinds[decimal.slot].beyond
        if beyond:
            return self.made(node, "constant", BOOLEAN, value=(beyond > 0) == ((op in ("<", "<=")) != flipped))
        size = decimal.type
        to = Type("decimal", 20 + size.scale, size.scale) if size.precision else size
        return self.made(node, op, BOOLEAN, self.cast(node, left, to), self.cast(node, right, to))

    def membership(self, node: Written) -> Typed:
        items = [self.read(arg) for arg in node.args]
        to = common_type([item.type for item in items])
        if to is None:
            others = ", ".join(sorted({str(item.type) for item in items[1:]}))
            self.refuse(node, f"cannot compare {self.shown(items[0])} with a list of {others}")
        return self.made(node, "in", BOOLEAN, *(self.cast(node, item, to) for item in items))

    def _sized(self, typed: Typed, other: Typed) -> Typed:
        """An integer literal next to a decimal: Spark casts it to a decimal with just its digits."""
        if typed.op == "slot" and is_integral(typed.type) and other.type.name == "decimal":
            kind = self.kinds[typed.slot]
            return Typed("cast", Type("decimal", kind.precision, 0), (typed,), start=typed.start, end=typed.end)
        return typed

    # -- arithmetic

    def arithmetic(self, node: Written, op: str) -> Typed:
        left, right = (self.read(arg) for arg in node.args)
        left, right = self._sized(left, right), self._sized(right, left)
        to = common_type([left.type, right.type])
        if to == NULL:
            to = BIGINT if op == "div" else DOUBLE
        if to is None or to.name not in NUMERIC:
            shown = f"{self.shown(left)} {op} {self.shown(right)}"
            self.refuse(node, f"{shown} is not supported; arithmetic is on numbers")
        if op == "div":
            if not is_integral(to):
                self.refuse(node, "DIV needs integers on both sides")
            return self.made(node, op, BIGINT, self.cast(node, left, to), self.cast(node, right, to))
        if op == "/" and is_integral(to):
            to = DOUBLE
        if to.name != "decimal":
            return self.made(node, op, to, self.cast(node, left, to), self.cast(node, right, to))
        left_type, right_type = (as_decimal(side.type) for side in (left, right))
        left = self.cast(node, left, right_type if left_type == NULL else left_type)
        right = self.cast(node, right, left_type if right_type == NULL else right_type)
        self.need_sizes(left, right)
        return self.made(node, op, decimal_result(op, left.type, right.type), left, right)

    def need_sizes(self, *operands: Typed) -> None:
        if any(operand.type.name == "decimal" and not operand.type.precision for operand in operands):
            raise NeedsSizesError

    # -- arguments of functions

    def condition_of(self, node: Written, *, null_is_condition: bool) -> Typed:
        """A condition of IF or CASE. Spark accepts NULL as the condition of IF and refuses it after WHEN."""
        typed = self.read(node)
        if typed.type == NULL and null_is_condition:
            return self.cast(node, typed, BOOLEAN)
        if typed.type != BOOLEAN:
            self.refuse(node, f"a condition is needed here, but this is {self.shown(typed)}")
        return typed

    def texts(self, node: Written) -> list[Typed]:
        return [self.text(arg) for arg in node.args]

    def text(self, node: Written) -> Typed:
        typed = self.read(node)
        if typed.type == STRING:
            return typed
        if typed.type.name not in _TO_STRING:
            self.refuse(node, f"a string is needed here, but this is {self.shown(typed)}")
        if typed.op == "slot":
            self.refuse(node, "write this number as a string, in quotes")
        self.need_sizes(typed)
        return self.cast(node, typed, STRING)

    def number(self, node: Written, to: Type) -> Typed:
        typed = self.read(node)
        if typed.type != NULL and typed.type.name != "int":
            self.refuse(node, f"a small integer is needed here, but this is {self.shown(typed)}")
        return self.cast(node, typed, to)

    def shown(self, typed: Typed) -> str:
        """An operand in words."""
        core = typed.args[0] if typed.op == "cast" else typed
        name = "decimal" if core.type.name == "decimal" and not core.type.precision else str(core.type)
        if core.op == "field":
            return f"field {core.name!r} ({name})"
        if core.op == "constant":
            return "NULL" if core.value is None else str(core.value).upper()
        return f"a literal of type {name}" if core.op == "slot" else f"a value of type {name}"


def _pairs_of_chain(first: int, last: int) -> Iterator[tuple[int, int]]:
    """The neighbours that Spark compares directly, because it makes a balanced tree of `a AND b AND c ...`."""
    if last - first == 1:
        yield first, last
    elif last - first > 1:
        middle = first + (last - first) // 2
        yield from _pairs_of_chain(first, middle)
        yield from _pairs_of_chain(middle + 1, last)
