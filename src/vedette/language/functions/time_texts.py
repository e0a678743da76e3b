"""Functions that write times as strings and read them, by a pattern that is a literal."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from vedette.language.expressions import BIGINT, BINARY, DATE, NULL, STRING, TIMESTAMP, TIMESTAMP_NTZ, Typed, Written
from vedette.language.functions.function import Call, Function
from vedette.language.functions.time_arguments import as_type, literal_text
from vedette.language.time_patterns import PatternError, moments_of, reader_of, writer_of
from vedette.language.times import MICROS_PER_SECOND, Zone
from vedette.language.vectors import Vector, map_distinct

if TYPE_CHECKING:
    from vedette.language.analysis import Analyser

_DEFAULT = "yyyy-MM-dd HH:mm:ss"

# -- typing rules


def _pattern(analyser: Analyser, node: Written, place: int, compile_: Any) -> str | None:
    """The pattern of a call, which must be a literal; None for NULL."""
    if len(node.args) <= place:
        return _DEFAULT
    arg = node.args[place]
    if arg.op == "constant" and arg.name == "null":
        return None
    pattern = literal_text(analyser, arg)
    if pattern is None:
        analyser.refuse(arg, f"{node.op} takes its pattern as a literal, such as 'yyyy-MM-dd'")
    try:
        compile_(pattern)
    except PatternError as error:
        analyser.refuse(arg, str(error))
    return pattern


def type_written(analyser: Analyser, node: Written) -> Typed:
    """`date_format(t, pattern)` or `from_unixtime(n [, pattern])`; the value of the node is the pattern."""
    of = BIGINT if node.op == "from_unixtime" else TIMESTAMP
    inner = as_type(analyser, node, node.args[0], of)
    pattern = _pattern(analyser, node, 1, writer_of)
    if pattern is None:
        return analyser.made(node, "constant", STRING)
    return analyser.made(node, node.op, STRING, inner, value=pattern)


def type_to_char(analyser: Analyser, node: Written) -> Typed:
    """A date or timestamp by a pattern, or a binary by the name of a format: other functions."""
    inner = analyser.read(node.args[0])
    if inner.type in (DATE, TIMESTAMP, TIMESTAMP_NTZ):
        return type_written(analyser, replace(node, op="date_format"))
    if inner.type != BINARY:
        analyser.refuse(node.args[0], f"{node.op} takes a date, a timestamp or a binary, not {analyser.shown(inner)}")
    format_ = (literal_text(analyser, node.args[1]) or "").lower()
    if format_ == "utf-8":
        return analyser.cast(node, inner, STRING)
    if format_ not in ("hex", "base64"):
        analyser.refuse(node.args[1], f"{node.op} of a binary takes the format 'hex', 'base64' or 'utf-8'")
    return analyser.made(node, format_, STRING, inner)


def _type_read(analyser: Analyser, node: Written) -> Typed:
    """A string by a pattern as a timestamp; a date or timestamp as it is.

    As in Spark, the microseconds of a timestamp without a zone are taken as those of one with a zone, and vice versa.
    """
    inner = analyser.read(node.args[0])
    to = TIMESTAMP_NTZ if node.op == "to_timestamp_ntz" else TIMESTAMP
    if inner.type in (DATE, TIMESTAMP, TIMESTAMP_NTZ):
        stamp = analyser.cast(node, inner, TIMESTAMP) if inner.type == DATE else inner
        return stamp if stamp.type == to else analyser.made(node, "same micros", to, stamp)
    if inner.type not in (STRING, NULL):
        analyser.refuse(node, f"{node.op} takes a string, a date or a timestamp, not {analyser.shown(inner)}")
    pattern = _pattern(analyser, node, 1, reader_of)
    if pattern is None:
        return analyser.made(node, "constant", to)
    op = "read timestamp" if to == TIMESTAMP else "read timestamp_ntz"
    return analyser.made(node, op, to, analyser.cast(node, inner, STRING), value=pattern)


def type_to_timestamp(analyser: Analyser, node: Written) -> Typed:
    to = TIMESTAMP_NTZ if node.op == "to_timestamp_ntz" else TIMESTAMP
    typed = analyser.read(node.args[0])
    if len(node.args) == 2:
        typed = _type_read(analyser, node)
    elif to == TIMESTAMP and typed.type.is_number:
        analyser.need_sizes(typed)
        typed = analyser.cast(node, typed, to)
    else:
        typed = as_type(analyser, node, node.args[0], to)
    return analyser.made_try(node, typed) if node.op.startswith("try_") and typed.args else typed


def type_to_date(analyser: Analyser, node: Written) -> Typed:
    if len(node.args) == 1:
        typed = as_type(analyser, node, node.args[0], DATE)
        return analyser.made_try(node, typed) if node.op == "try_to_date" and typed.args else typed
    read = _type_read(analyser, node)
    if node.op == "try_to_date" and read.args:
        read = analyser.made_try(node, read)
    return analyser.cast(node, read, DATE)


def type_to_seconds(analyser: Analyser, node: Written) -> Typed:
    return analyser.made(node, "whole seconds", BIGINT, _type_read(analyser, node))


# -- evaluators


def write_timestamps(call: Call) -> Vector:
    """The value of the node is the pattern."""
    zone, write = Zone(call.zone), writer_of(str(call.node.value))
    distinct, back = np.unique(call.first.values, return_inverse=True)
    offsets = zone.offsets(distinct)
    texts = [write(moment) for moment in moments_of(distinct + offsets * MICROS_PER_SECOND, offsets.tolist())]
    return call.first.with_values(pa.array(texts, pa.large_string()).take(pa.array(back.astype(np.int64))))


def write_seconds(call: Call) -> Vector:
    """As in Spark, the product with a million wraps around."""
    with np.errstate(over="ignore"):
        micros = call.first.values * np.int64(MICROS_PER_SECOND)
    return write_timestamps(Call([call.first.with_values(micros)], call.node, call.zone))


def whole_seconds(call: Call) -> Vector:
    """Towards zero."""
    seconds = np.floor_divide(call.first.values, MICROS_PER_SECOND)
    return call.first.with_values(seconds + ((seconds < 0) & (seconds * MICROS_PER_SECOND != call.first.values)))


def read_timestamps(call: Call) -> Vector:
    """The value of the node is the pattern. A text that is not of the pattern fails."""
    zone, reader = None if call.node.type == TIMESTAMP_NTZ else Zone(call.zone), reader_of(str(call.node.value))
    values, failed = map_distinct(call.first.values, call.first.usable, lambda text: reader.read(text, zone), np.int64)
    return call.first.with_values(values).failing(failed)


# The values of these nodes are patterns.
PATTERNS = ("date_format", "from_unixtime", "read timestamp", "read timestamp_ntz")
OPERATORS = {
    "read timestamp": read_timestamps,
    "read timestamp_ntz": read_timestamps,
    "same micros": lambda call: call.first,
    "whole seconds": whole_seconds,
}

FUNCTIONS = (
    Function(
        "date_format(t, pattern)",
        type_written,
        write_timestamps,
        "`t` as a string, by a [pattern](#patterns-of-times)",
        literals=(1,),
    ),
    Function(
        "to_char(x, pattern)",
        type_to_char,
        None,
        "`date_format(x, pattern)`; of a binary, by the format `'hex'`, `'base64'` or `'utf-8'`. Not of numbers",
        ("to_varchar",),
        literals=(1,),
    ),
    Function(
        "from_unixtime(n [, pattern])",
        type_written,
        write_seconds,
        "the same for `n` seconds after 1970-01-01 00:00 UTC",
        literals=(1,),
    ),
    Function("to_date(s [, pattern])", type_to_date, None, "the date that `s` is read as", literals=(1,)),
    Function("try_to_date(s [, pattern])", type_to_date, None, "the same, null if that fails", literals=(1,)),
    Function(
        "to_timestamp(s [, pattern])",
        type_to_timestamp,
        None,
        "the timestamp that `s` is read as",
        ("to_timestamp_ltz",),
        literals=(1,),
    ),
    Function(
        "to_timestamp_ntz(s [, pattern])",
        type_to_timestamp,
        None,
        "the timestamp without a zone that `s` is read as; a zone in `s` is ignored",
        literals=(1,),
    ),
    Function("try_to_timestamp(s [, pattern])", type_to_timestamp, None, "the same, null if that fails", literals=(1,)),
    Function(
        "unix_timestamp(s [, pattern])",
        type_to_seconds,
        None,
        "the seconds since 1970-01-01 00:00 UTC of a time, or of a string by a pattern",
        ("to_unix_timestamp",),
        literals=(1,),
    ),
)
