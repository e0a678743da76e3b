"""Typing: a tree as written becomes a typed tree with the casts that Spark would insert.

An operand of an invalid type is a QueryError, like Spark's DATATYPE_MISMATCH.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NoReturn

from vedette.data.schema import Schema, Type, is_map, value_of
from vedette.errors import QueryError
from vedette.language.casts import CASTS
from vedette.language.expressions import BIGINT, BINARY, BOOLEAN, DOUBLE, NULL, STRING, TINYINT, Typed, Written
from vedette.language.function_table import FUNCTIONS
from vedette.language.functions.arrays import type_item
from vedette.language.functions.bits import type_bitwise, type_not
from vedette.language.functions.choices import type_case, type_is_unknown
from vedette.language.functions.function import Rule
from vedette.language.functions.now import MOMENTS
from vedette.language.functions.strings import type_concat
from vedette.language.functions.times import WHOLE_INTERVALS
from vedette.language.literals import Kind
from vedette.language.local_times import UNWRAPPED, is_unwrapped
from vedette.language.mistakes import hint_for_name, hint_to_compare
from vedette.language.patterns import BAD_PATTERN
from vedette.language.spelling import write_name
from vedette.language.time_arithmetic import type_time_arithmetic
from vedette.language.types import NUMERIC, as_decimal, common_type, decimal_result, is_integral

COMPARISONS = ("=", "<>", "<", "<=", ">", ">=", "<=>")
_ARITHMETIC = ("+", "-", "*", "/", "%", "div")

_RULES: dict[str, Rule] = {  # of what is written like an operator
    "||": type_concat,
    "case": type_case,
    "[]": type_item,
    "isunknown": type_is_unknown,
    **dict.fromkeys(("&", "|", "^"), type_bitwise),
    "~": type_not,
}


class NeedsSizesError(Exception):
    """The tree cannot be typed while decimals of several sizes are compiled together."""


class Analyser:
    """Types trees over one schema. `kinds` are those of the literals, by slot."""

    def __init__(self, schema: Schema, kinds: Sequence[Kind], statics: Sequence[str]) -> None:
        self.schema = schema
        self.kinds = kinds
        self.statics = statics  # the literals as written, of the first text of the shape
        self._variables: dict[str, Typed] = {}  # of lambda functions, by name in lower case

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
        if op == "field":
            return self.field(node)
        if op == "literal":
            kind = self.kinds[node.slot]
            if node.negated and kind.name in ("string", "binary", "date", "timestamp", "timestamp_ntz"):
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
        if op in ("like", "ilike"):
            return self.like(node)
        if op in ("cast", "try_cast"):
            return self.explicit_cast(node)
        if op in _ARITHMETIC:
            return self.arithmetic(node, op)
        if op == "lambda":
            self.refuse(node, "-> is allowed in exists and forall only")
        return (_RULES[op] if op in _RULES else FUNCTIONS[op].type_call)(self, node)

    def like(self, node: Written) -> Typed:
        pattern = node.args[1]
        if pattern.op == "literal" and self.statics[pattern.slot].startswith(BAD_PATTERN):
            self.refuse(pattern, self.statics[pattern.slot].removeprefix(BAD_PATTERN))
        texts = self.texts(node)
        if node.op == "ilike":  # as Spark: both sides in lower case, the escape character as it is
            texts = [self.made(node, "lower", STRING, text) for text in texts]
        return self.made(node, "like", BOOLEAN, *texts, value=node.name)

    def field(self, node: Written) -> Typed:
        """A field by its name, or the variable of a lambda function.

        If the schema has several streams, a field is named by its stream and its name.
        """
        schema = self.schema
        variable = self._variables.get(node.name.lower())
        if variable is not None:
            if node.path:
                self.refuse(node, f"{node.name} is an element of an array, not a struct")
            return self.made(node, "element", variable.type, name=variable.name)
        if schema.streams and not node.path and node.name.lower() not in MOMENTS:
            self.refuse(node, schema.needs_stream(node.name))
        if schema.streams and node.path and schema.find_stream(node.name) is None:
            self.refuse(node, schema.unknown_stream(node.name))
        name = ".".join((node.name, *node.path))
        found = schema.find(name)
        if found is None and not node.path and name.lower() in MOMENTS:
            return FUNCTIONS[name.lower()].type_call(self, node)
        if found is None and node.path:
            value = self._value_of_map(node)
            if value is not None:
                return value
        if found is None:
            self.refuse(node, self._unknown_field(name), field=name)
        names = node.path if schema.streams else (node.name, *node.path)
        if len(found.path or (found.name,)) != len(names):  # a dot is part of a name only within backquotes
            written = ".".join(map(write_name, found.path or (found.name,)))
            self.refuse(node, f"unknown field {name!r}; write {written}", field=name)
        return self.made(node, "field", found.type, name=found.name)

    def _value_of_map(self, node: Written) -> Typed | None:
        """`m.a`, which is `m['a']`; None if what is before the last dot is not a map."""
        *path, key = node.path
        map_ = self.schema.find(".".join((node.name, *path)))
        if map_ is None or not is_map(map_.type):
            return None
        held = self.made(node, "field", map_.type, name=map_.name)
        return self.made(node, "map value", value_of(map_.type), held, value=key)

    def _unknown_field(self, name: str) -> str:
        reason, hint = self.schema.unknown_field(name), hint_for_name(name, self.schema.names)
        if hint or "did you mean" in reason:
            return reason.partition("; did you mean")[0] + hint if hint else reason
        return f"{reason}; a string is written in quotes"

    @contextmanager
    def element(self, type_: Type, variable: str = "") -> Iterator[Typed]:
        """Inside the block, a variable means an element of an array, and hides a field of that name."""
        before = self._variables
        element = Typed("element", type_, name=str(len(before)))
        self._variables = {**before, variable.lower(): element}
        try:
            yield element
        finally:
            self._variables = before

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
        if to.name not in CASTS.get(typed.type.name, ()):
            self.refuse(node, f"{self.shown(typed)} as {to} is not supported")
        return Typed("cast", to, (typed,), start=typed.start, end=typed.end)

    def explicit_cast(self, node: Written) -> Typed:
        inner = self.read(node.args[0])
        to = node.type
        assert to is not None
        if inner.op in WHOLE_INTERVALS and (to.is_integer or to.name == "decimal"):
            number = self.made(node, "number of interval", to, inner)
            return self.made_try(node, number) if node.op == "try_cast" else number
        if inner.type != NULL and to.name not in CASTS.get(inner.type.name, ()):
            known = CASTS.get(inner.type.name, ())
            hint = f"; from {inner.type.name} casts go to: {', '.join(known)}" if known else ""
            self.refuse(node, f"a cast of {inner.type} to {to} is not supported{hint}")
        self.need_sizes(inner)
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
            hint = hint_to_compare(left.type, right.type)
            self.refuse(node, f"cannot compare {self.shown(left)} with {self.shown(right)}{hint}")
        value = UNWRAPPED if is_unwrapped(left, right) else None
        return self.made(node, op, BOOLEAN, self.cast(node, left, to), self.cast(node, right, to), value=value)

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
        if len(items) == 2 and is_unwrapped(*items):
            return self.compare(node, "=", *items)
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
        timed = type_time_arithmetic(self, node, op, left, right)
        if timed is not None:
            return timed
        left, right = self._sized(left, right), self._sized(right, left)
        to = common_type([left.type, right.type])
        if to == NULL:
            to = BIGINT if op == "div" else DOUBLE
        if to is None or to.name not in NUMERIC:
            shown = f"{self.shown(left)} {op} {self.shown(right)}"
            hint = "; strings are joined by ||" if op == "+" and STRING in (left.type, right.type) else ""
            self.refuse(node, f"{shown} is not supported; arithmetic is on numbers{hint}")
        if op == "div":
            if not is_integral(to):
                self.refuse(node, "DIV needs integers on both sides")
            return self.made(node, op, BIGINT, self.cast(node, left, to), self.cast(node, right, to))
        if op == "/" and to.name != "decimal":
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
        if typed.type == BINARY:
            self.refuse(node, f"a string is needed here, but this is {self.shown(typed)}; cast it to string")
        if typed.type != NULL and "string" not in CASTS.get(typed.type.name, ()):
            self.refuse(node, f"a string is needed here, but this is {self.shown(typed)}")
        self.need_sizes(typed)
        return self.cast(node, typed, STRING)

    def plain_text(self, node: Written) -> Typed:
        """A string that is not cast from another type."""
        typed = self.read(node)
        if typed.type not in (STRING, NULL):
            self.refuse(node, f"a string is needed here, but this is {self.shown(typed)}; cast it to string")
        return self.cast(node, typed, STRING)

    def bytes_or(self, node: Written, read: Callable[[Written], Typed]) -> Typed:
        """A binary as it is, or what `read` makes of another type."""
        typed = self.read(node)
        return typed if typed.type == BINARY else read(node)

    def number(self, node: Written, to: Type) -> Typed:
        """A number, or a string that reads as one, cast to an integer."""
        typed = self.read(node)
        if typed.type not in (NULL, STRING) and typed.type.name not in NUMERIC:
            self.refuse(node, f"a number is needed here, but this is {self.shown(typed)}")
        self.need_sizes(typed)
        return self.cast(node, typed, to)

    def own_integer(self, node: Written) -> Typed:
        """An integer in its own type."""
        typed = self.read(node)
        if typed.type != NULL and not typed.type.is_integer:
            self.refuse(node, f"an integer is needed here, but this is {self.shown(typed)}")
        return self.cast(node, typed, TINYINT) if typed.type == NULL else typed

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
