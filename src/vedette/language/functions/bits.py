"""Bitwise operators and functions of integers, and numbers written to other bases."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vedette.data.schema import INTEGER_BITS
from vedette.language.expressions import BIGINT, BINARY, BOOLEAN, INT, NULL, STRING, TINYINT, Typed, Written
from vedette.language.functions.function import Call, Evaluator, Function, bytes_of, each_pair
from vedette.language.numerals import digits_to_base
from vedette.language.types import common_type
from vedette.language.vectors import Vector, strict, text_vector

if TYPE_CHECKING:
    from vedette.language.analysis import Analyser

Integers = NDArray[np.int64]
SHIFTS = {"<<": "shiftleft", ">>": "shiftright", ">>>": "shiftrightunsigned"}


# -- typing rules


def type_bitwise(analyser: Analyser, node: Written) -> Typed:
    """An operator on two integers of one type."""
    left, right = (analyser.read(arg) for arg in node.args)
    to = common_type([left.type, right.type])
    if to == NULL:
        to = TINYINT
    if to is None or not to.is_integer:
        shown = f"{analyser.shown(left)} {node.op} {analyser.shown(right)}"
        analyser.refuse(node, f"{shown} is not supported; bitwise operators are on integers")
    return analyser.made(node, node.op, to, analyser.cast(node, left, to), analyser.cast(node, right, to))


def type_not(analyser: Analyser, node: Written) -> Typed:
    inner = analyser.own_integer(node.args[0])
    return analyser.made(node, "~", inner.type, inner)


def type_shift(analyser: Analyser, node: Written) -> Typed:
    """An int or a bigint, and the number of bits."""
    to = BIGINT if analyser.read(node.args[0]).type == BIGINT else INT
    value, places = (analyser.number(arg, each) for arg, each in zip(node.args, (to, INT), strict=True))
    return analyser.made(node, node.op, to, value, places)


def type_bit_count(analyser: Analyser, node: Written) -> Typed:
    inner = analyser.read(node.args[0])
    if inner.type != BOOLEAN:
        inner = analyser.own_integer(node.args[0])
    return analyser.made(node, node.op, INT, inner)


def type_get_bit(analyser: Analyser, node: Written) -> Typed:
    value = analyser.own_integer(node.args[0])
    return analyser.made(node, node.op, TINYINT, value, analyser.number(node.args[1], INT))


def type_hex(analyser: Analyser, node: Written) -> Typed:
    """An integer, a string or a binary."""
    inner = analyser.read(node.args[0])
    if not inner.type.is_text:
        inner = analyser.number(node.args[0], BIGINT)
    return analyser.made(node, node.op, STRING, inner)


def type_unhex(analyser: Analyser, node: Written) -> Typed:
    return analyser.made(node, node.op, BINARY, analyser.text(node.args[0]))


def type_bin(analyser: Analyser, node: Written) -> Typed:
    return analyser.made(node, node.op, STRING, analyser.number(node.args[0], BIGINT))


def type_conv(analyser: Analyser, node: Written) -> Typed:
    bases = [analyser.number(arg, INT) for arg in node.args[1:]]
    return analyser.made(node, node.op, STRING, analyser.text(node.args[0]), *bases)


# -- evaluators


def on_integers(function: Callable[..., Integers]) -> Evaluator:
    def evaluate(call: Call) -> Vector:
        return strict(function(*(arg.values for arg in call.args)), *call.args)

    return evaluate


def _places(call: Call) -> NDArray[np.int64]:
    """The number of bits to shift by: Java takes the lowest bits of it."""
    return np.asarray(call.args[1].values & (INTEGER_BITS[call.first_type.name] - 1))


def shift_left(call: Call) -> Vector:
    shifted = np.left_shift(call.first.values, _places(call))
    return strict(_wrapped(shifted, call), *call.args)


def shift_right(call: Call) -> Vector:
    return strict(np.right_shift(call.first.values, _places(call)), *call.args)


def shift_right_unsigned(call: Call) -> Vector:
    values = call.first.values
    if call.first_type == INT:
        values = values & 0xFFFFFFFF
        return strict(_wrapped(np.right_shift(values, _places(call)), call), *call.args)
    shifted = np.right_shift(values.view(np.uint64), _places(call).astype(np.uint64)).view(np.int64)
    return strict(shifted, *call.args)


def _wrapped(values: Integers, call: Call) -> Integers:
    return values.astype(np.int32).astype(np.int64) if call.first_type == INT else values


def bit_count(call: Call) -> Vector:
    """Narrow integers are counted with their sign in 64 bits."""
    return call.first.with_values(np.bitwise_count(call.first.values.astype(np.int64).view(np.uint64)).astype(np.int64))


def get_bit(call: Call) -> Vector:
    """Fails for a position that the type does not have."""
    value, place = (arg.values for arg in call.args)
    beyond = (place < 0) | (place >= INTEGER_BITS[call.first_type.name])
    return strict(np.right_shift(value, np.where(beyond, 0, place)) & 1, *call.args).failing(beyond)


def hexadecimal(call: Call) -> Vector:
    """Integers in 64 bits, without leading zeros; strings by the bytes of UTF-8."""
    if isinstance(call.first.values, pa.Array):
        return text_vector([each.hex().upper() for each in bytes_of(call)], call.first)
    return text_vector([f"{value & _MASK:X}" for value in call.first.values.tolist()], call.first)


def from_hexadecimal(call: Call) -> Vector:
    """Fails for a text that is not hexadecimal."""
    made = [_bytes_of_digits(text) for (text,) in each_pair(call)]
    bad = np.array([each is None for each in made], np.bool_)
    return text_vector([each or "" for each in made], call.first).failing(bad)


def _bytes_of_digits(digits: str) -> str | None:
    if not digits.isascii() or not all(each in _HEXADECIMAL for each in digits):
        return None
    return bytes.fromhex("0" * (len(digits) % 2) + digits).decode("latin-1")


_HEXADECIMAL = frozenset("0123456789abcdefABCDEF")


def binary_digits(call: Call) -> Vector:
    return text_vector([f"{value & _MASK:b}" for value in call.first.values.tolist()], call.first)


_MASK = (1 << 64) - 1


def convert(call: Call) -> Vector:
    """Null for invalid bases and for a text without a digit; fails beyond 64 bits."""
    made: list[Any] = [digits_to_base(*each) for each in each_pair(call)]
    beyond = np.array([each is OverflowError for each in made], np.bool_)
    nothing = np.array([each is None for each in made], np.bool_)
    vector = text_vector([each if isinstance(each, str) else "" for each in made], *call.args)
    return Vector(vector.values, ~vector.nulls & ~nothing, vector.failed, vector.lost).failing(beyond)


OPERATORS: dict[str, Evaluator] = {
    "&": on_integers(np.bitwise_and),
    "|": on_integers(np.bitwise_or),
    "^": on_integers(np.bitwise_xor),
    "~": on_integers(np.bitwise_not),
}

# -- the rows of the table

FUNCTIONS = (
    Function("shiftleft(x, n)", type_shift, shift_left, "`x << n`: the bits of an int or a bigint, moved to the left"),
    Function("shiftright(x, n)", type_shift, shift_right, "`x >> n`: moved to the right, with the sign"),
    Function("shiftrightunsigned(x, n)", type_shift, shift_right_unsigned, "`x >>> n`: the same without the sign"),
    Function(
        "bit_count(x)", type_bit_count, bit_count, "how many bits of an integer, in 64 bits, or of a boolean are 1"
    ),
    Function(
        "getbit(x, place)",
        type_get_bit,
        get_bit,
        "the bit at a place, from 0 at the right, as a tinyint",
        ("bit_get",),
    ),
    Function(
        "hex(x)",
        type_hex,
        hexadecimal,
        "an integer, or the bytes of a string or binary, in hexadecimal digits",
        growth=2,
    ),
    Function("unhex(s)", type_unhex, from_hexadecimal, "the binary of hexadecimal digits"),
    Function("bin(x)", type_bin, binary_digits, "an integer in binary digits"),
    Function("conv(s, from, to)", type_conv, convert, "a whole number written to base `from` in base `to`", growth=40),
)
