"""Hashes and checksums of strings, over their bytes in UTF-8."""

from __future__ import annotations

import base64
import hashlib
import zlib
from typing import TYPE_CHECKING

import numpy as np

from vedette.data.schema import Type
from vedette.language.expressions import BIGINT, INT, STRING, Typed, Written
from vedette.language.functions.function import Call, Function, Rule, bytes_of
from vedette.language.vectors import Vector, strict, text_vector

if TYPE_CHECKING:
    from vedette.language.analysis import Analyser


def of_bytes(result: Type) -> Rule:
    """The first argument is a binary or a string; Spark casts nothing else to its bytes. A second one is a number."""

    def type_call(analyser: Analyser, node: Written) -> Typed:
        numbers = [analyser.number(arg, INT) for arg in node.args[1:]]
        return analyser.made(node, node.op, result, analyser.bytes_or(node.args[0], analyser.plain_text), *numbers)

    return type_call


def md5(call: Call) -> Vector:
    hashes = [hashlib.md5(each, usedforsecurity=False).hexdigest() for each in bytes_of(call)]
    return text_vector(hashes, call.first)


def sha1(call: Call) -> Vector:
    hashes = [hashlib.sha1(each, usedforsecurity=False).hexdigest() for each in bytes_of(call)]
    return text_vector(hashes, call.first)


def base_64(call: Call) -> Vector:
    return text_vector([base64.b64encode(each).decode() for each in bytes_of(call)], call.first)


def crc32(call: Call) -> Vector:
    return strict(np.array([zlib.crc32(each) for each in bytes_of(call)], np.int64), call.first)


_SHA2 = {0: hashlib.sha256, 224: hashlib.sha224, 256: hashlib.sha256, 384: hashlib.sha384, 512: hashlib.sha512}


def sha2(call: Call) -> Vector:
    """Null for a number of bits that does not exist."""
    pairs = zip(bytes_of(call), call.args[1].values.tolist(), strict=True)
    texts = [_SHA2[bits](held).hexdigest() if bits in _SHA2 else "" for held, bits in pairs]
    made = text_vector(texts, *call.args)
    return Vector(made.values, ~made.nulls & np.isin(call.args[1].values, list(_SHA2)), made.failed, made.lost)


FUNCTIONS = (
    Function("md5(s)", of_bytes(STRING), md5, "MD5 in hexadecimal", size=lambda sizes: np.full(sizes.n, 32)),
    Function(
        "sha1(s)",
        of_bytes(STRING),
        sha1,
        "SHA-1 in hexadecimal",
        ("sha",),
        size=lambda sizes: np.full(sizes.n, 40),
    ),
    Function(
        "sha2(s, bits)",
        of_bytes(STRING),
        sha2,
        "SHA-2 of 224, 256, 384 or 512 bits in hexadecimal; 0 means 256; null for others",
        size=lambda sizes: np.full(sizes.n, 128),
    ),
    Function("base64(s)", of_bytes(STRING), base_64, "the bytes in base64", growth=2),
    Function(
        "crc32(s)",
        of_bytes(BIGINT),
        crc32,
        "the CRC-32 checksum",
    ),
)
