"""Calls with keywords between their arguments, such as `trim(BOTH 'x' FROM s)`, rewritten as calls with commas.

Each rewritten piece has the length of the original, so places in the text stay the same.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_TOKEN = re.compile(r"`(?:[^`]|``)*`|'[^']*'|\"[^\"]*\"|\w+|\S")
# Function -> the sequences of keywords it may have, with the name of the plain function.
_TRIMS = {"BOTH": "trim", "LEADING": "ltrim", "TRAILING": "rtrim"}
_FORMS: dict[str, dict[tuple[str, ...], str]] = {
    "TRIM": {("FROM",): "trim", **{(end, "FROM"): name for end, name in _TRIMS.items()}},
    "SUBSTRING": {("FROM",): "substring", ("FROM", "FOR"): "substring"},
    "SUBSTR": {("FROM",): "substr", ("FROM", "FOR"): "substr"},
    "EXTRACT": {("FROM",): "extract"},
    "POSITION": {("IN",): "position"},
    "OVERLAY": {("PLACING", "FROM"): "overlay", ("PLACING", "FROM", "FOR"): "overlay"},
}
_WORDS = {name: {word for form in forms for word in form} for name, forms in _FORMS.items()}


@dataclass
class _Open:
    """An open parenthesis: the call before it, if any, and the keywords directly inside."""

    name: str = ""
    start: int = 0
    end: int = 0  # after the parenthesis
    keywords: list[tuple[str, int, int]] = field(default_factory=list)
    has_comma: bool = False


def as_plain_calls(skeleton: str) -> str:
    """The skeleton with commas instead of keywords in such calls. What is not written as one of the forms stays."""
    if not any(name in skeleton.upper() for name in _FORMS):
        return skeleton
    pieces = list(skeleton)
    opened: list[_Open] = []
    before, previous = "", ""  # the last two tokens
    place = 0
    for found in _TOKEN.finditer(skeleton):
        token, word = found.group(), found.group().upper()
        if token == "(":
            opened.append(_Open(previous if previous in _FORMS and before != "." else "", place, found.end()))
        elif token == ")" and opened:
            _rewrite(opened.pop(), pieces)
        elif opened and token == ",":
            opened[-1].has_comma = True
        elif opened and word in _WORDS.get(opened[-1].name, ()) and previous != "DISTINCT":
            opened[-1].keywords.append((word, found.start(), found.end()))
        before, previous, place = previous, word, found.start()
    return "".join(pieces)


def _rewrite(call: _Open, pieces: list[str]) -> None:
    words = tuple(word for word, _, _ in call.keywords)
    name = _FORMS.get(call.name, {}).get(words)
    if name is None or call.has_comma:
        return
    keywords = call.keywords
    if call.name == "TRIM" and words == ("FROM",) and not "".join(pieces[call.end : keywords[0][1]]).strip():
        pieces[keywords[0][1] : keywords[0][2]] = " " * 4  # trim(FROM s)
        return
    if words[0] in _TRIMS:
        (_, start, end), *keywords = keywords
        if "".join(pieces[call.end : start]).strip():
            return  # BOTH comes first
        if not "".join(pieces[end : keywords[0][1]]).strip():  # trim(BOTH FROM s)
            end, keywords = keywords[0][2], []
        pieces[call.start : end] = f"{name}(".ljust(end - call.start)
    for _, start, end in keywords:
        pieces[start:end] = ",".ljust(end - start)
