"""Arguments of functions of times: what Spark casts to the type that a function takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vedette.data.schema import Type
from vedette.language.expressions import DATE, INT, NULL, STRING, TIMESTAMP, TIMESTAMP_NTZ, Typed, Written
from vedette.language.functions.function import Rule
from vedette.language.literals import text_of

if TYPE_CHECKING:
    from vedette.language.analysis import Analyser

_NUMBERS = ("tinyint", "smallint", "int", "bigint", "decimal", "float", "double")
_ACCEPTED = {  # the types that are cast to a type, besides strings and NULL
    **dict.fromkeys(("date", "timestamp", "timestamp_ntz"), ("date", "timestamp", "timestamp_ntz")),
    "int": _NUMBERS,
    "bigint": _NUMBERS,
    "boolean": ("boolean",),
}
_WORDS = dict.fromkeys(("date", "timestamp", "timestamp_ntz"), "a date or timestamp")
_WORDS |= dict.fromkeys(("int", "bigint"), "a number")


def as_type(analyser: Analyser, node: Written, arg: Written, to: Type, *, strings: bool = True) -> Typed:
    """An argument, cast to the type that a function takes."""
    typed = analyser.read(arg)
    accepted = _ACCEPTED[to.name]
    if not (typed.type == NULL or typed.type.name in accepted or (strings and typed.type == STRING)):
        words = _WORDS.get(to.name, f"a {to}")
        analyser.refuse(arg, f"{node.op} takes {words} here, not {analyser.shown(typed)}")
    analyser.need_sizes(typed)
    return analyser.cast(arg, typed, to)


def as_own_timestamp(analyser: Analyser, node: Written, arg: Written) -> Typed:
    """A timestamp, with a time zone or without; anything else is cast to one with a zone."""
    typed = analyser.read(arg)
    return typed if typed.type == TIMESTAMP_NTZ else as_type(analyser, node, arg, TIMESTAMP)


def as_days(analyser: Analyser, node: Written, arg: Written) -> Typed:
    """A number of days, which must be an int."""
    typed = analyser.read(arg)
    if typed.type != NULL and typed.type.name not in ("tinyint", "smallint", "int"):
        analyser.refuse(arg, f"{node.op} takes an int here, not {analyser.shown(typed)}")
    return analyser.cast(arg, typed, INT)


def takes(result: Type, *types: Type, strings: bool = True) -> Rule:
    """A function whose arguments are cast to these types."""

    def type_call(analyser: Analyser, node: Written) -> Typed:
        args = [
            as_type(analyser, node, arg, to, strings=strings or to in (DATE, TIMESTAMP))
            for arg, to in zip(node.args, types, strict=False)
        ]
        return analyser.made(node, node.op, result, *args)

    return type_call


def literal_text(analyser: Analyser, arg: Written) -> str | None:
    """The text of a string literal that is part of the shape; None if the argument is something else."""
    if arg.op != "literal" or analyser.kinds[arg.slot].name != "string":
        return None
    return text_of(analyser.statics[arg.slot])
