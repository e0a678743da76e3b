"""Strings as bytes, and tests of UTF-8: every string is valid here."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from vedette.data.schema import Type
from vedette.language.expressions import BINARY, BOOLEAN, STRING, Typed, Written
from vedette.language.functions.function import Call, Function, Rule, bytes_of, each_pair
from vedette.language.functions.hashes import of_bytes
from vedette.language.literals import read_strings
from vedette.language.vectors import Vector, text_vector

if TYPE_CHECKING:
    from vedette.language.analysis import Analyser

_CODECS = {  # the names of Java, and of Python
    **{"utf-8": "utf-8", "us-ascii": "ascii", "iso-8859-1": "latin-1", "utf-16be": "utf-16-be"},
    **{"utf-16le": "utf-16-le", "utf-32": "utf-32-be"},
}


_NOT_BASE64 = re.compile(r"[^A-Za-z0-9+/=]")
_BASE64 = re.compile(r"([^=]*)(=*)(.*)")
_BASE32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
_NOT_BASE32 = re.compile(r"[^A-Z2-7]")

# -- typing rules


def of_texts(result: Type) -> Rule:
    """A string, or a binary."""

    def type_call(analyser: Analyser, node: Written) -> Typed:
        return analyser.made(node, node.op, result, analyser.text(node.args[0]))

    return type_call


def type_encode(analyser: Analyser, node: Written) -> Typed:
    """A string, and the name of its encoding, which becomes the value of the node."""
    charset = _literal(analyser, node, "utf-8")
    if charset not in _CODECS:
        analyser.refuse(node.args[1], f"encode takes one of: {', '.join(_CODECS)}")
    return analyser.made(node, node.op, BINARY, analyser.text(node.args[0]), value=charset)


def type_to_binary(analyser: Analyser, node: Written) -> Typed:
    """Hexadecimal digits, or the text itself: another function, or a cast."""
    format_ = _literal(analyser, node, "hex")
    text = analyser.text(node.args[0])
    if format_ in ("utf-8", "utf8"):
        return analyser.cast(node, text, BINARY)
    if format_ != "hex":
        analyser.refuse(node, f"{node.op} takes the format 'hex' or 'utf-8'")
    return analyser.made(node, "unhex", BINARY, text)


def type_try_to_binary(analyser: Analyser, node: Written) -> Typed:
    return analyser.made_try(node, type_to_binary(analyser, node))


def type_valid_text(analyser: Analyser, node: Written) -> Typed:
    return analyser.text(node.args[0])


def type_is_valid(analyser: Analyser, node: Written) -> Typed:
    return analyser.made(node, node.op, BOOLEAN, analyser.text(node.args[0]))


def _literal(analyser: Analyser, node: Written, default: str) -> str:
    """The second argument, which must be a string literal, in lower case."""
    if len(node.args) < 2:
        return default
    literal = node.args[1]
    if literal.op != "literal" or analyser.kinds[literal.slot].name != "string":
        analyser.refuse(literal, f"{node.op} takes its second argument as a string literal, such as '{default}'")
    return read_strings([analyser.statics[literal.slot]])[0].lower()


# -- evaluators


def encode(call: Call) -> Vector:
    """Fails for a character that the encoding does not have."""
    codec = _CODECS[str(call.node.value)]
    made = [_encode(text, codec) for (text,) in each_pair(call)]
    bad = np.array([each is None for each in made], np.bool_)
    return text_vector([each or "" for each in made], call.first).failing(bad)


def _encode(text: str, codec: str) -> str | None:
    try:
        return text.encode(codec).decode("latin-1")
    except UnicodeEncodeError:
        return None


def encode_base32(call: Call) -> Vector:
    return text_vector([base64.b32encode(each).decode() for each in bytes_of(call)], call.first)


def decode_base64(call: Call) -> Vector:
    """As Java's decoder for MIME: a last unit of one sign, and signs after the padding, fail."""
    return _decoded(call, _read_base64)


def decode_base32(call: Call) -> Vector:
    return _decoded(call, _read_base32)


def _decoded(call: Call, read: Callable[[str], bytes | None]) -> Vector:
    made = [read(text) for (text,) in each_pair(call)]
    bad = np.array([each is None for each in made], np.bool_)
    return text_vector([(each or b"").decode("latin-1") for each in made], call.first).failing(bad)


def _read_base64(text: str) -> bytes | None:
    found = _BASE64.match(_NOT_BASE64.sub("", text))
    signs, padding, rest = found.groups() if found else ("", "", "=")
    units = len(signs) % 4
    is_padded = not padding or (units, len(padding)) in ((2, 2), (3, 1))
    if rest or units == 1 or not is_padded or (padding == "==" and "==" not in text):
        return None
    return base64.b64decode(signs + "=" * (-len(signs) % 4))


def _read_base32(text: str) -> bytes | None:
    signs = _NOT_BASE32.sub("", text.partition("=")[0].upper())
    if len(signs) % 8 == 1:  # five bits are a byte of their own
        return base64.b32decode(signs[:-1]) + bytes([_BASE32.index(signs[-1]) >> 2])
    whole = len(signs) - (len(signs) % 8 in (3, 6))
    return base64.b32decode(signs[:whole] + "=" * (-whole % 8))


def is_valid(call: Call) -> Vector:
    return call.first.with_values(np.ones(len(call.first), np.bool_))


# -- the rows of the table

FUNCTIONS = (
    Function(
        "unbase64(s)", of_texts(BINARY), decode_base64, "the binary of a string in base64; other signs are ignored"
    ),
    Function("to_base32(s)", of_bytes(STRING), encode_base32, "the bytes in base32", growth=8),
    Function("from_base32(s)", of_texts(BINARY), decode_base32, "the opposite; other signs are ignored"),
    Function(
        "encode(s, charset)",
        type_encode,
        encode,
        f"a string as a binary; `charset` is one of {', '.join(f'`{name!r}`' for name in _CODECS)}",
        literals=(1,),
        growth=8,
    ),
    Function(
        "to_binary(s [, format])",
        type_to_binary,
        None,
        "`unhex(s)`, or with the format `'utf-8'` the bytes of `s`",
        literals=(1,),
    ),
    Function("try_to_binary(s [, format])", type_try_to_binary, None, "the same, null where it fails", literals=(1,)),
    Function("is_valid_utf8(s)", type_is_valid, is_valid, "true: every string is valid"),
    Function("validate_utf8(s)", type_valid_text, None, "`s`", ("try_validate_utf8", "make_valid_utf8")),
)
