"""The hashes by which Spark divides rows: Murmur3 in 32 bits and xxHash in 64, of any number of values.

The hash of one value is the seed for the next; a null does not change it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from vedette.data.schema import TYPE_NAMES, Type
from vedette.language.expressions import BIGINT, INT, NULL, Typed, Written
from vedette.language.functions.function import Call, Evaluator, Function
from vedette.language.vectors import Vector, join

if TYPE_CHECKING:
    from vedette.language.analysis import Analyser

_SEED = 42
_32, _64 = (1 << 32) - 1, (1 << 64) - 1
_P1, _P2, _P3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
_P4, _P5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5


def of_values(result: Type) -> Callable[[Analyser, Written], Typed]:
    """Values of any type of a field."""

    def type_call(analyser: Analyser, node: Written) -> Typed:
        args = [analyser.read(arg) for arg in node.args]
        for arg, typed in zip(node.args, args, strict=True):
            if typed.type != NULL and typed.type.name not in TYPE_NAMES:
                analyser.refuse(arg, f"{node.op} does not take {analyser.shown(typed)}")
        analyser.need_sizes(*args)
        args = [analyser.cast(node, arg, INT) if arg.type == NULL else arg for arg in args]
        return analyser.made(node, node.op, result, *args)

    return type_call


def hashed(of_int: Any, of_long: Any, of_bytes: Any, bits: int) -> Evaluator:
    """An evaluator over the hashes of a word of 32 bits, one of 64, and bytes."""

    def evaluate(call: Call) -> Vector:
        n = len(call.first)
        seeds, failed, lost = [_SEED] * n, None, None
        for arg, node in zip(call.args, call.node.args, strict=True):
            write, kind = _words(node.type)
            hash_one = {"int": of_int, "long": of_long, "bytes": of_bytes}[kind]
            values = arg.values.to_pylist() if isinstance(arg.values, pa.Array) else arg.values.tolist()
            for i in np.flatnonzero(arg.usable).tolist():
                seeds[i] = hash_one(write(values[i]), seeds[i])
            failed, lost = join(failed, arg.failed), join(lost, arg.lost)
        signed = [seed - (1 << bits) if seed >> (bits - 1) else seed for seed in seeds]
        return Vector(np.array(signed, np.int64), None, failed, lost)

    return evaluate


def _words(type_: Type) -> tuple[Callable[[Any], Any], str]:
    """How a value is written, and whether that is 32 bits, 64 bits or bytes."""
    name = type_.name
    if name == "float":
        return lambda value: int.from_bytes(struct.pack(">f", value + 0.0 if value == value else float("nan"))), "int"
    if name == "double":
        return lambda value: int.from_bytes(struct.pack(">d", value + 0.0 if value == value else float("nan"))), "long"
    if name == "string":
        return str.encode, "bytes"
    if name == "binary":
        return lambda text: text.encode("latin-1"), "bytes"
    if name == "decimal" and type_.precision > 18:
        return lambda value: value.to_bytes(_byte_count(value), signed=True), "bytes"
    if name in ("bigint", "timestamp", "timestamp_ntz", "decimal"):
        return lambda value: value & _64, "long"
    return lambda value: int(value) & _32, "int"


def _byte_count(value: int) -> int:
    """The bytes of Java's BigInteger: one bit is the sign."""
    return (value if value >= 0 else ~value).bit_length() // 8 + 1


# -- Murmur3


def _rotate_32(value: int, by: int) -> int:
    return (value << by | value >> (32 - by)) & _32


def _mix(hash_: int, word: int) -> int:
    word = _rotate_32(word * 0xCC9E2D51 & _32, 15) * 0x1B873593 & _32
    return (_rotate_32(hash_ ^ word, 13) * 5 + 0xE6546B64) & _32


def _finish(hash_: int, length: int) -> int:
    hash_ ^= length
    hash_ = (hash_ ^ hash_ >> 16) * 0x85EBCA6B & _32
    hash_ = (hash_ ^ hash_ >> 13) * 0xC2B2AE35 & _32
    return hash_ ^ hash_ >> 16


def _murmur_int(word: int, seed: int) -> int:
    return _finish(_mix(seed, word), 4)


def _murmur_long(word: int, seed: int) -> int:
    return _finish(_mix(_mix(seed, word & _32), word >> 32), 8)


def _murmur_bytes(held: bytes, seed: int) -> int:
    """Words of four bytes, then the other bytes one by one, each as a signed word: unlike Murmur3 itself."""
    whole = len(held) - len(held) % 4
    for place in range(0, whole, 4):
        seed = _mix(seed, int.from_bytes(held[place : place + 4], "little"))
    for byte in held[whole:]:
        seed = _mix(seed, (byte - 256 if byte > 127 else byte) & _32)
    return _finish(seed, len(held))


# -- xxHash


def _rotate(value: int, by: int) -> int:
    return (value << by | value >> (64 - by)) & _64


def _avalanche(hash_: int) -> int:
    hash_ = (hash_ ^ hash_ >> 33) * _P2 & _64
    hash_ = (hash_ ^ hash_ >> 29) * _P3 & _64
    return hash_ ^ hash_ >> 32


def _add_int(hash_: int, word: int) -> int:
    return (_rotate(hash_ ^ word * _P1 & _64, 23) * _P2 + _P3) & _64


def _add_long(hash_: int, word: int) -> int:
    return (_rotate(hash_ ^ _rotate(word * _P2 & _64, 31) * _P1 & _64, 27) * _P1 + _P4) & _64


def _xx_int(word: int, seed: int) -> int:
    return _avalanche(_add_int((seed + _P5 + 4) & _64, word))


def _xx_long(word: int, seed: int) -> int:
    return _avalanche(_add_long((seed + _P5 + 8) & _64, word))


def _xx_bytes(held: bytes, seed: int) -> int:
    place, n = 0, len(held)
    if n >= 32:
        lanes = [(seed + _P1 + _P2) & _64, (seed + _P2) & _64, seed, (seed - _P1) & _64]
        while place <= n - 32:
            for lane in range(4):
                word = int.from_bytes(held[place : place + 8], "little")
                lanes[lane] = _rotate((lanes[lane] + word * _P2) & _64, 31) * _P1 & _64
                place += 8
        hash_ = sum(_rotate(lane, by) for lane, by in zip(lanes, (1, 7, 12, 18), strict=True)) & _64
        for lane in lanes:
            hash_ = ((hash_ ^ _rotate(lane * _P2 & _64, 31) * _P1 & _64) * _P1 + _P4) & _64
    else:
        hash_ = (seed + _P5) & _64
    hash_ = (hash_ + n) & _64
    while place <= n - 8:
        hash_ = _add_long(hash_, int.from_bytes(held[place : place + 8], "little"))
        place += 8
    if place <= n - 4:
        hash_ = _add_int(hash_, int.from_bytes(held[place : place + 4], "little"))
        place += 4
    for byte in held[place:]:
        hash_ = _rotate(hash_ ^ byte * _P5 & _64, 11) * _P1 & _64
    return _avalanche(hash_)


# -- the rows of the table

FUNCTIONS = (
    Function(
        "hash(x, ...)", of_values(INT), hashed(_murmur_int, _murmur_long, _murmur_bytes, 32), "Spark's hash, as an int"
    ),
    Function(
        "xxhash64(x, ...)",
        of_values(BIGINT),
        hashed(_xx_int, _xx_long, _xx_bytes, 64),
        "xxHash of 64 bits, as a bigint",
    ),
)
