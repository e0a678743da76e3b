"""Functions that make strings of other strings: joined, repeated, padded, with replacements.

Their results may be much larger than their arguments. `size` gives an upper bound of the bytes before the evaluation.
"""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vedette.language.expressions import STRING, Typed, Written
from vedette.language.functions.function import MAX_PADDED, Call, Evaluator, Function, Sizes, each_pair, text_function
from vedette.language.functions.strings import of_strings, type_concat, with_numbers
from vedette.language.functions.time_arguments import literal_text
from vedette.language.vectors import Vector, text_vector

if TYPE_CHECKING:
    from vedette.language.analysis import Analyser

# -- evaluators


def joined_with(call: Call) -> Vector:
    """The first argument is the separator; the others are left out where they are null."""
    separator, *parts = call.args
    columns = [part.values.to_pylist() for part in parts]
    gone = [part.nulls for part in parts]
    texts = []
    for i, between in enumerate(separator.values.fill_null("").to_pylist()):
        texts.append(between.join([column[i] for column, null in zip(columns, gone, strict=True) if not null[i]]))
    whole = text_vector(texts, *call.args)
    return Vector(whole.values, separator.valid, whole.failed, whole.lost)


def bounded(make: Any) -> Evaluator:
    """A function of each pair. It returns None where it would add more than `MAX_PADDED` bytes: the pair fails."""

    def evaluate(call: Call) -> Vector:
        texts = [make(*each) for each in each_pair(call)]
        bad = np.fromiter((text is None for text in texts), np.bool_, len(texts))
        return text_vector([text or "" for text in texts], *call.args).failing(bad)

    return evaluate


def _repeat(text: str, n: int) -> str | None:
    return None if len(text.encode()) * n > MAX_PADDED else text * n


def _padding(text: str, length: int, pad: str) -> str | None:
    """What is missing to the length; None if that is too much."""
    missing = length - len(text)
    if missing <= 0 or not pad:
        return ""
    times = -(-missing // len(pad))
    return None if times * len(pad.encode()) > MAX_PADDED else (pad * times)[:missing]


def _pad_left(text: str, length: int, pad: str = " ") -> str | None:
    padding = _padding(text, length, pad)
    return None if padding is None else padding + text[: max(length, 0)]


def _pad_right(text: str, length: int, pad: str = " ") -> str | None:
    padding = _padding(text, length, pad)
    return None if padding is None else text[: max(length, 0)] + padding


def _replace(text: str, search: str, replacement: str = "") -> str | None:
    if not search:
        return text
    if len(replacement) > len(search):
        times = min(text.count(search), MAX_PADDED)
        if times * (len(replacement.encode()) - len(search)) > MAX_PADDED:
            return None
    return text.replace(search, replacement)


def _translate(text: str, old: str, new: str) -> str:
    """A character that is twice in `old` has its first replacement; one without a replacement is removed."""
    replacements: dict[int, str | None] = {}
    for place, character in enumerate(old):
        replacements.setdefault(ord(character), new[place] if place < len(new) else None)
    return text.translate(replacements)


# -- sizes


def _joined_size(sizes: Sizes) -> NDArray[Any]:
    return np.asarray(sum(sizes.bytes[1:]) + sizes.bytes[0] * max(0, len(sizes.bytes) - 2))


def _repeated_size(sizes: Sizes) -> NDArray[Any]:
    return sizes.capped(sizes.bytes[0] * sizes.most(1))


def _padded_size(sizes: Sizes) -> NDArray[Any]:
    pad = sizes.bytes[2] if len(sizes.bytes) > 2 else 1
    return sizes.bytes[0] + sizes.capped((sizes.most(1) + 1) * pad)


def _replaced_size(sizes: Sizes) -> NDArray[Any]:
    """Every byte of the string may be one occurrence."""
    replacement = sizes.bytes[2] if len(sizes.bytes) > 2 else 0
    return sizes.bytes[0] * 4 + sizes.capped(sizes.bytes[0] * replacement)


def type_mask(analyser: Analyser, node: Written) -> Typed:
    """A string, and up to four characters, which are literals or NULL; the value of the node has them."""
    characters = dict(zip(_MASKED, "Xxn", strict=False))
    for kind, arg in zip(_MASKED, node.args[1:], strict=False):
        text = literal_text(analyser, arg)
        if arg.op == "constant" and arg.name == "null":
            characters.pop(kind, None)
        elif text is None or len(text) != 1:
            analyser.refuse(arg, "mask takes each replacement as a literal of one character, or NULL")
        else:
            characters[kind] = text
    value = "".join(f"{kind}{character}" for kind, character in characters.items())
    return analyser.made(node, node.op, STRING, analyser.text(node.args[0]), value=value)


_MASKED = ("U", "L", "D", "O")
_CATEGORIES = {"Lu": "U", "Ll": "L", "Nd": "D"}


def mask(call: Call) -> Vector:
    value = str(call.node.value)
    characters = dict(zip(value[::2], value[1::2], strict=True))
    return text_vector([_mask(text, characters) for (text,) in each_pair(call)], call.first)


def _mask(text: str, characters: dict[str, str]) -> str:
    kinds = (_CATEGORIES.get(unicodedata.category(character), "O") for character in text)
    return "".join(characters.get(kind, character) for kind, character in zip(kinds, text, strict=True))


# -- the rows of the table

FUNCTIONS = (
    Function(
        "concat(s, ...)",
        type_concat,
        text_function(lambda *parts: "".join(parts)),
        "the strings joined; null if one is null",
    ),
    Function(
        "concat_ws(separator [, s, ...])",
        of_strings(STRING),
        joined_with,
        "the strings that are not null, joined, with the separator between them",
        size=_joined_size,
    ),
    Function(
        "repeat(s, n)",
        with_numbers(STRING, 1),
        bounded(_repeat),
        "`s` `n` times; fails if it has more than a million bytes",
        size=_repeated_size,
    ),
    Function(
        "space(n)",
        with_numbers(STRING, 0),
        bounded(lambda n: _repeat(" ", n)),
        "`n` spaces; fails for more than a million",
        size=lambda sizes: sizes.capped(sizes.most(0)),
    ),
    Function(
        "lpad(s, length [, pad])",
        with_numbers(STRING, 1),
        bounded(_pad_left),
        "`s` cut to a length, or filled up at its start with spaces or `pad`; fails if that adds a million bytes",
        size=_padded_size,
    ),
    Function(
        "rpad(s, length [, pad])",
        with_numbers(STRING, 1),
        bounded(_pad_right),
        "the same at its end",
        size=_padded_size,
    ),
    Function(
        "replace(s, search [, t])",
        of_strings(STRING),
        bounded(_replace),
        "`s` with `t` instead of each `search`; without `t` they are removed; fails if that adds a million bytes",
        size=_replaced_size,
    ),
    Function(
        "translate(s, old, new)",
        of_strings(STRING),
        text_function(_translate),
        "`s` with the characters of `old` replaced by those of `new`, one by one, or removed if `new` is shorter",
        growth=4,
    ),
    Function(
        "mask(s [, upper, lower, digit, other])",
        type_mask,
        mask,
        "`s` with `X`, `x` and `n`, or others, instead of capitals, small letters and digits; NULL keeps them",
        literals=(1, 2, 3, 4),
        growth=4,
    ),
)
