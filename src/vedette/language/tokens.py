"""Texts cut into shapes and literals.

A shape is a text whose literals are replaced by marks: `price < 40.25` and `price < 7` have one shape. Texts of one
shape share a parse; only their literals are read one by one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from vedette.errors import QueryError

MARK = "\0"
_STRING = r"'(?:[^'\\]++|\\.|'')*'|\"(?:[^\"\\]++|\\.|\"\")*\""
_NUMBER = r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?:BD|bd|Bd|bD|[lLdDfFsSyY])?(?![\w.])"
_BEFORE = r"(?<![\w.`\\])"
_LITERAL = re.compile(rf"({_BEFORE}[rR](?:'[^']*'|\"[^\"]*\")|{_STRING}|{_BEFORE}{_NUMBER})", re.DOTALL)
_LITERAL_OR_NAME = re.compile(rf"(`(?:[^`]|``)*`)|{_LITERAL.pattern}", re.DOTALL)
# The same literals except r'...', found three times as fast: the first character decides.
_QUICK = re.compile(
    r"""(['"0-9.](?:(?<=')(?:[^'\\]++|\\.|'')*'|(?<=")(?:[^"\\]++|\\.|"")*"|(?<![\w.`\\][0-9.])"""
    r"""(?:(?<=\.)[0-9]+|(?<=[0-9])[0-9]*(?:\.[0-9]*)?)(?:[eE][+-]?[0-9]+)?(?:BD|bd|Bd|bD|[lLdDfFsSyY])?(?![\w.])))""",
    re.DOTALL,
)
# The text up to a quote that is not closed. Without this check, each later quote would be tried up to the end.
_CLOSED = re.compile(
    rf"""(?:[^'"`\\rR]++|{_BEFORE}[rR](?:'[^']*+'|"[^"]*+")|'(?:[^'\\]++|\\.|'')*+'|"(?:[^"\\]++|\\.|"")*+"|"""
    r"""`(?:[^`]++|``)*+`|[\\rR])*+""",
    re.DOTALL,
)
_LONG = 1000  # characters of a text from which the check is worth its time
_RAW = re.compile(rf"{_BEFORE}[rR]{MARK}")
_TYPED = re.compile(rf"{_BEFORE}(?:date|timestamp(?:_ntz|_ltz)?|x)\s*(?={MARK})", re.IGNORECASE)
_UNIT = r"(?:year|month|week|day|hour|minute|second|(?:milli|micro|nano)second)s?\b"
_INTERVAL = re.compile(
    rf"{_BEFORE}interval\s*(?:[+-]?\s*{MARK}\s*{_UNIT}(?:\s*to\s+{_UNIT}|(?:\s*[+-]?\s*{MARK}\s*{_UNIT})*)|{MARK})",
    re.IGNORECASE,
)
# Literals that are part of the syntax and not values: the parameters of a type, the character of an ESCAPE.
_SYNTACTIC = re.compile(
    rf"\b(?:decimal|dec|numeric)\s*\(\s*({MARK})\s*(?:,\s*({MARK})\s*)?\)|\bescape\s*({MARK})", re.IGNORECASE
)


@dataclass
class Shape:
    """The texts of one shape: their places in the call, and their literals as written, one tuple per text."""

    skeleton: str
    indices: list[int] = field(default_factory=list)
    literals: list[tuple[str, ...]] = field(default_factory=list)


def cut_texts(texts: Sequence[str]) -> list[Shape]:
    """The texts grouped by shape, in order of first appearance."""
    shapes: dict[str, Shape] = {}
    split = _QUICK.split
    for index, text in enumerate(texts):
        if len(text) > _LONG:
            _refuse_open_quotes(text)
        if "`" in text or MARK in text:
            skeleton, literals = _cut_with_names(text)
        else:
            parts = split(text)
            skeleton = MARK.join(parts[::2])
            literals = tuple(parts[1::2])
        if not text.isascii():
            _refuse_surrogates(text)
        shape = shapes.get(skeleton)
        if shape is None:
            shape = shapes[skeleton] = Shape(skeleton)
        shape.indices.append(index)
        shape.literals.append(literals)
    cut = list(shapes.values())
    if any(_RAW.search(shape.skeleton) for shape in cut):
        cut = [part for shape in cut for part in (_recut(shape, texts) if _RAW.search(shape.skeleton) else [shape])]
    cut = [part for shape in cut for part in (_absorb(shape) if _TYPED.search(shape.skeleton) else [shape])]
    cut = [_absorb_intervals(shape) if _INTERVAL.search(shape.skeleton) else shape for shape in cut]
    return [part for shape in cut for part in (_inline(shape) if _SYNTACTIC.search(shape.skeleton) else [shape])]


def place_in_text(skeleton: str, literals: tuple[str, ...], place: int) -> int:
    """The place in the text that `place` of the skeleton was cut from."""
    marks = skeleton.count(MARK, 0, place)
    return place + sum(len(literal) - 1 for literal in literals[:marks])


def literal_span(skeleton: str, literals: tuple[str, ...], slot: int) -> tuple[int, int]:
    """Start and end of a literal in the text it was cut from."""
    place = -1
    for _ in range(slot + 1):
        place = skeleton.index(MARK, place + 1)
    start = place_in_text(skeleton, literals, place)
    return start, start + len(literals[slot])


def _refuse_open_quotes(text: str) -> None:
    found = _CLOSED.match(text)
    place = found.end() if found else 0
    if place < len(text):
        raise QueryError(f"a {text[place]} is not closed", text, place, place + 1)


def _refuse_surrogates(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        shown = text.encode(errors="replace").decode()
        raise QueryError(
            "the text has a lone surrogate, which is not a character; remove it", shown, error.start
        ) from None


def _cut_with_names(text: str) -> tuple[str, tuple[str, ...]]:
    """The same for a text with backquoted names, which contain no literals."""
    if MARK in text:
        raise QueryError("the text has a NUL character; remove it", text.replace(MARK, "?"), text.index(MARK))
    skeleton: list[str] = []
    literals: list[str] = []
    last = 0
    for found in _LITERAL_OR_NAME.finditer(text):
        skeleton.append(text[last : found.start()])
        if found.group(1) is not None:
            skeleton.append(found.group(1))
        else:
            skeleton.append(MARK)
            literals.append(found.group(2))
        last = found.end()
    skeleton.append(text[last:])
    return "".join(skeleton), tuple(literals)


def _recut(shape: Shape, texts: Sequence[str]) -> list[Shape]:
    """The shape cut again, text by text, for r'...', in which a backslash has no special meaning."""
    shapes: dict[str, Shape] = {}
    for index in shape.indices:
        skeleton, literals = _cut_with_names(texts[index])
        part = shapes.setdefault(skeleton, Shape(skeleton))
        part.indices.append(index)
        part.literals.append(literals)
    return list(shapes.values())


def _absorb(shape: Shape) -> list[Shape]:
    """The words DATE and TIMESTAMP moved from the skeleton into the strings that follow them."""
    words = {shape.skeleton.count(MARK, 0, found.end()): found for found in _TYPED.finditer(shape.skeleton)}
    skeleton = _TYPED.sub("", shape.skeleton)
    absorbed, other = Shape(skeleton), Shape(shape.skeleton)
    for index, literals in zip(shape.indices, shape.literals, strict=True):
        if all(literals[slot][0] in "'\"" for slot in words):
            absorbed.indices.append(index)
            absorbed.literals.append(
                tuple(words[slot].group() + raw if slot in words else raw for slot, raw in enumerate(literals))
            )
        else:
            other.indices.append(index)
            other.literals.append(literals)
    return [part for part in (absorbed, other) if part.indices]


def _absorb_intervals(shape: Shape) -> Shape:
    """The shape with one literal for each INTERVAL: the word, its numbers and its units, as written."""
    skeleton = _INTERVAL.sub(MARK, shape.skeleton)
    takes: list[tuple[slice, list[str]]] = []  # the literals that become one, and what is written around them
    slot, place = 0, 0
    for found in _INTERVAL.finditer(shape.skeleton):
        before = shape.skeleton.count(MARK, place, found.start())
        takes += [(slice(at, at + 1), ["", ""]) for at in range(slot, slot + before)]
        pieces = found.group().split(MARK)
        slot, place = slot + before, found.end()
        takes.append((slice(slot, slot + len(pieces) - 1), pieces))
        slot += len(pieces) - 1
    rest = shape.skeleton.count(MARK, place)
    takes += [(slice(at, at + 1), ["", ""]) for at in range(slot, slot + rest)]
    joined = [
        tuple("".join(_alternate(pieces, literals[some])) for some, pieces in takes) for literals in shape.literals
    ]
    return Shape(skeleton, shape.indices, joined)


def _alternate(pieces: list[str], literals: tuple[str, ...]) -> list[str]:
    return [pieces[0], *(each for pair in zip(literals, pieces[1:], strict=True) for each in pair)]


def _inline(shape: Shape) -> list[Shape]:
    """The shape divided by its literals that are syntax; these become part of the skeleton."""
    marks = [place for place, character in enumerate(shape.skeleton) if character == MARK]
    syntactic = [found.start(group) for found in _SYNTACTIC.finditer(shape.skeleton) for group in (1, 2, 3)]
    slots = [slot for slot, place in enumerate(marks) if place in syntactic]
    divided: dict[tuple[str, ...], Shape] = {}
    for index, literals in zip(shape.indices, shape.literals, strict=True):
        inlined = tuple(literals[slot] for slot in slots)
        if inlined not in divided:
            pieces = shape.skeleton.split(MARK)
            skeleton = pieces[0]
            for slot, piece in enumerate(pieces[1:]):
                skeleton += (literals[slot] if slot in slots else MARK) + piece
            divided[inlined] = Shape(skeleton)
        divided[inlined].indices.append(index)
        divided[inlined].literals.append(tuple(x for slot, x in enumerate(literals) if slot not in slots))
    return list(divided.values())
