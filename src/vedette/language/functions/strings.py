"""Functions of strings that return a length, a part of a string, or a string of the same characters."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc

from vedette.data.schema import Type
from vedette.language.expressions import BIGINT, BOOLEAN, INT, STRING, Typed, Written
from vedette.language.functions.function import (
    Call,
    Evaluator,
    Function,
    Rule,
    each_pair,
    number_function,
    text_function,
    text_test,
)
from vedette.language.vectors import Vector, join, text_vector

if TYPE_CHECKING:
    from vedette.language.analysis import Analyser


# -- typing rules


def of_strings(result: Type) -> Rule:
    """Every argument is a string."""

    def type_call(analyser: Analyser, node: Written) -> Typed:
        return analyser.made(node, node.op, result, *analyser.texts(node))

    return type_call


def with_numbers(result: Type, *places: int, number: Type = INT) -> Rule:
    """Arguments at these places are numbers, which are cast to integers as Spark does; the others are strings."""

    def type_call(analyser: Analyser, node: Written) -> Typed:
        args = [
            analyser.number(arg, number) if place in places else analyser.text(arg)
            for place, arg in enumerate(node.args)
        ]
        return analyser.made(node, node.op, result, *args)

    return type_call


def type_concat(analyser: Analyser, node: Written) -> Typed:
    """Also the operator `||`."""
    return analyser.made(node, "concat", STRING, *analyser.texts(node))


def type_trim(analyser: Analyser, node: Written) -> Typed:
    """With two arguments, Spark takes the characters first: `trim('xy', s)` is `trim(BOTH 'xy' FROM s)`."""
    args = analyser.texts(node)
    return analyser.made(node, node.op, STRING, *reversed(args))


# -- evaluators: lengths


def length(call: Call) -> Vector:
    return call.first.with_values(np.asarray(pc.utf8_length(call.first.values.fill_null("")), np.int64))


def type_length(analyser: Analyser, node: Written) -> Typed:
    """The length of a binary, or of a string."""
    return analyser.made(node, node.op, INT, analyser.bytes_or(node.args[0], analyser.text))


def octet_length(call: Call) -> Vector:
    if call.first_type.name == "binary":
        return length(call)
    return call.first.with_values(np.asarray(pc.binary_length(call.first.values.fill_null("")), np.int64))


def bit_length(call: Call) -> Vector:
    octets = octet_length(call)
    return octets.with_values(8 * octets.values)


# -- evaluators: parts


def trimmed(all_at_once: Callable[..., object], one: Callable[[str, str], str]) -> Evaluator:
    """Without the spaces at an end, or without the characters of a second argument."""
    each = text_function(one)

    def evaluate(call: Call) -> Vector:
        if len(call.args) == 1:
            return call.first.with_values(all_at_once(call.first.values, characters=" "))
        return each(call)

    return evaluate


def _substring(text: str, place: int, length: int = 2**31 - 1) -> str:
    start = place - 1 if place > 0 else len(text) + place if place < 0 else 0
    end = min(start + length, 2**31 - 1)
    return text[max(start, 0) : max(end, 0)] if end > start else ""


def _left(text: str, n: int) -> str:
    return text[: max(n, 0)]


def _right(text: str, n: int) -> str:
    return text[max(len(text) - n, 0) :] if n > 0 else ""


def _overlay(text: str, other: str, place: int, length: int = -1) -> str:
    length = len(other) if length < 0 else length
    after = place + length
    start = after - 1 if after > 0 else len(text) + after if after < 0 else 0
    return _left(text, place - 1) + other + text[max(start, 0) :]


def split_part(call: Call) -> Vector:
    """Part 0 fails. An empty delimiter splits nothing."""
    texts, bad = [], np.zeros(len(call.first), np.bool_)
    for i, (text, delimiter, number) in enumerate(each_pair(call)):
        parts = text.split(delimiter) if delimiter else [text]
        place = number - 1 if number > 0 else len(parts) + number
        texts.append(parts[place] if 0 <= place < len(parts) else "")
        bad[i] = number == 0
    return text_vector(texts, *call.args).failing(bad)


_LONG = 64  # characters of a delimiter from which overlapping occurrences are found in one pass


def _substring_index(text: str, delimiter: str, count: int) -> str:
    """Before the `count`th delimiter, or after it from the end. Delimiters may overlap, as in Spark."""
    if not delimiter or not count:
        return ""
    if count < -(2**31) + 1:
        return text
    if count < 0:
        return _substring_index(text[::-1], delimiter[::-1], -count)[::-1]
    if len(delimiter) > _LONG:
        places = _all_places(text, delimiter)
        return text[: places[count - 1]] if count <= len(places) else text
    place = -1
    for _ in range(count):
        place = text.find(delimiter, place + 1)
        if place < 0:
            return text
    return text[:place]


def _all_places(text: str, word: str) -> list[int]:
    """Where a word begins, overlapping ones included, in time proportional to the text (Knuth, Morris, Pratt)."""
    borders, k = [0] * (len(word) + 1), 0
    for i in range(1, len(word)):
        while k and word[i] != word[k]:
            k = borders[k]
        k += word[i] == word[k]
        borders[i + 1] = k
    places, k = [], 0
    for i, character in enumerate(text):
        while k and (k == len(word) or character != word[k]):
            k = borders[k]
        k += character == word[k]
        if k == len(word):
            places.append(i - len(word) + 1)
    return places


def elt(call: Call) -> Vector:
    """The argument with this number. A number without an argument fails; other arguments may be null."""
    number, choices = call.first, call.args[1:]
    n = len(number)
    texts: list[str] = [""] * n
    valid, failed, lost = np.zeros(n, np.bool_), np.zeros(n, np.bool_), np.zeros(n, np.bool_)
    columns = [choice.values.to_pylist() for choice in choices]
    for i in np.flatnonzero(number.usable):
        place = int(number.values[i]) - 1
        if not 0 <= place < len(choices):
            failed[i], valid[i] = True, True
            continue
        choice = choices[place]
        valid[i] = not choice.nulls[i]
        failed[i] = choice.failed is not None and choice.failed[i]
        lost[i] = choice.lost is not None and choice.lost[i]
        texts[i] = columns[place][i] or ""
    if number.failed is not None:
        failed |= number.failed
        valid |= number.failed
    return Vector(text_vector(texts).values, valid, failed if failed.any() else None, join(number.lost, lost))


# -- evaluators: the same characters


def title_case(text: str) -> str:
    """As Spark's initcap: the first character of a word is in title case, all others are in lower case."""
    return " ".join(map(_capitalized, text.split(" ")))


def _capitalized(word: str) -> str:
    return word[:1].title() + word.lower()[len(word[:1].lower()) :]


def _code_point(text: str) -> int:
    return ord(text[0]) if text else 0


def _chr(code: int) -> str:
    return "" if code < 0 else chr(code & 0xFF)


_SOUNDEX = "01230127022455012623017202"  # by letter; 7 is for H and W, which do not separate equal codes


def _soundex(text: str) -> str:
    """Spark's soundex: of ASCII letters; a text that begins with something else stays as it is."""
    if not re.match("[A-Za-z]", text):
        return text
    first = text[0].upper()
    code, last = first, _SOUNDEX[ord(first) - 65]
    for character in text[1:].encode().upper().decode("latin-1"):
        if not "A" <= character <= "Z":
            last = "0"
            continue
        digit = _SOUNDEX[ord(character) - 65]
        if digit == "7":
            continue
        if digit not in ("0", last):
            code += digit
            if len(code) == 4:
                break
        last = digit
    return code.ljust(4, "0")


def _is_luhn(digits: str) -> bool:
    """Whether the last of ASCII digits is the check digit of the others."""
    if not digits or not re.fullmatch(r"[0-9]+", digits):
        return False
    total = 0
    for place, character in enumerate(reversed(digits)):
        doubled = int(character) * (1 + place % 2)
        total += doubled - 9 * (doubled > 9)
    return total % 10 == 0


# -- the rows of the table

FUNCTIONS = (
    Function(
        "length(s)",
        type_length,
        length,
        "the number of characters, or of the bytes of a binary",
        ("len", "char_length", "character_length"),
        in_arrow=True,
    ),
    Function("octet_length(s)", type_length, octet_length, "the number of bytes in UTF-8", in_arrow=True),
    Function("bit_length(s)", type_length, bit_length, "the number of bits in UTF-8", in_arrow=True),
    # A change of case may triple the bytes of a string, as for U+03B0.
    Function("lower(s)", of_strings(STRING), text_function(str.lower), "`s` in lower case", ("lcase",), growth=3),
    Function("upper(s)", of_strings(STRING), text_function(str.upper), "`s` in upper case", ("ucase",), growth=3),
    Function(
        "initcap(s)",
        of_strings(STRING),
        text_function(title_case),
        "`s` in lower case, with a capital after each space and at the start",
        growth=3,
    ),
    Function(
        "trim([characters,] s)",
        type_trim,
        trimmed(pc.utf8_trim, str.strip),
        "`s` without the spaces, or these characters, at both ends",
    ),
    Function("ltrim([characters,] s)", type_trim, trimmed(pc.utf8_ltrim, str.lstrip), "the same at its start"),
    Function("rtrim([characters,] s)", type_trim, trimmed(pc.utf8_rtrim, str.rstrip), "the same at its end"),
    Function(
        "btrim(s [, characters])",
        of_strings(STRING),
        trimmed(pc.utf8_trim, str.strip),
        "the same at both ends; the string comes first",
    ),
    Function(
        "substring(s, from [, length])",
        with_numbers(STRING, 1, 2),
        text_function(_substring),
        "a part of `s`; `from` counts from 1, or from the end if it is negative",
        ("substr",),
    ),
    Function("left(s, n)", with_numbers(STRING, 1), text_function(_left), "the first `n` characters"),
    Function("right(s, n)", with_numbers(STRING, 1), text_function(_right), "the last `n` characters"),
    Function(
        "split_part(s, delimiter, n)",
        with_numbers(STRING, 2),
        split_part,
        "part `n` of `s` between delimiters, from the end if `n` is negative; empty beyond the last; 0 fails",
    ),
    Function(
        "substring_index(s, delimiter, n)",
        with_numbers(STRING, 2),
        text_function(_substring_index),
        "`s` before the `n`th delimiter, or after it from the end if `n` is negative; all of it without one",
    ),
    Function(
        "overlay(s, t, from [, length])",
        with_numbers(STRING, 2, 3),
        text_function(_overlay),
        "`s` with `t` instead of the `length` characters at `from`, by default as many as `t` has",
    ),
    Function("reverse(s)", of_strings(STRING), text_function(lambda s: s[::-1]), "`s` from its end to its start"),
    Function(
        "elt(n, s, ...)",
        with_numbers(STRING, 0),
        elt,
        "the `n`th of the strings; a number without a string fails",
    ),
    Function(
        "ascii(s)", of_strings(INT), number_function(_code_point), "the code of the first character; 0 without one"
    ),
    Function(
        "chr(n)",
        with_numbers(STRING, 0, number=BIGINT),
        text_function(_chr),
        "the character with the code `n` modulo 256; empty if `n` is negative",
        ("char",),
        size=lambda sizes: np.full(sizes.n, 2),
    ),
    Function(
        "soundex(s)",
        lambda analyser, node: analyser.made(node, node.op, STRING, analyser.plain_text(node.args[0])),
        text_function(_soundex),
        "the code of how an English word sounds; other texts as they are",
        growth=4,
    ),
    Function(
        "luhn_check(s)",
        of_strings(BOOLEAN),
        text_test(_is_luhn),
        "whether the last digit of a number, such as that of a card, is its check digit",
    ),
)
