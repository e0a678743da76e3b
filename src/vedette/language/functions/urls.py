"""Strings as parts of URLs: encoded with percent signs, and decoded."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import quote_plus

import numpy as np

from vedette.language.expressions import STRING, Typed, Written
from vedette.language.functions.function import Call, Function, each_pair, text_function
from vedette.language.functions.strings import of_strings
from vedette.language.vectors import Vector, text_vector

if TYPE_CHECKING:
    from vedette.language.analysis import Analyser

_BAD_PERCENT = re.compile("%(?![0-9a-fA-F]{2})")
_ENCODED = re.compile("(?:%[0-9a-fA-F]{2})+")


def type_try_decode(analyser: Analyser, node: Written) -> Typed:
    return analyser.made_try(node, analyser.made(node, "url_decode", STRING, *analyser.texts(node)))


def _encode(text: str) -> str:
    """As Java's URLEncoder: letters, digits and `.-*_` stay, a space is a plus."""
    return quote_plus(text, safe="*").replace("~", "%7E")


def decode(call: Call) -> Vector:
    """Fails for a percent sign without two hexadecimal digits. Bytes that are not UTF-8 are replaced."""
    texts = [text for (text,) in each_pair(call)]
    bad = np.array([_BAD_PERCENT.search(text) is not None for text in texts], np.bool_)
    return text_vector([_decode(text) for text in texts], *call.args).failing(bad)


def _decode(text: str) -> str:
    def replaced(found: re.Match[str]) -> str:
        return bytes.fromhex(found.group().replace("%", "")).decode(errors="replace")

    return _ENCODED.sub(replaced, text.replace("+", " "))


FUNCTIONS = (
    Function(
        "url_encode(s)",
        of_strings(STRING),
        text_function(_encode),
        "`s` for the query of a URL: a space is a plus, other signs have percent signs",
        growth=3,
    ),
    Function("url_decode(s)", of_strings(STRING), decode, "the opposite; fails for an invalid percent sign"),
    Function("try_url_decode(s)", type_try_decode, None, "the same, null where it fails"),
)
