"""Functions that search in strings and compare strings, and LIKE."""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING, Any

import numpy as np

from vedette.language.expressions import BOOLEAN, DOUBLE, INT, Typed, Written
from vedette.language.functions.function import Call, Function, each_pair, number_function, text_test
from vedette.language.functions.strings import of_strings, with_numbers
from vedette.language.patterns import BadPatternError, matcher_of
from vedette.language.vectors import Vector, strict

if TYPE_CHECKING:
    from vedette.language.analysis import Analyser

# -- typing rules


def type_locate(analyser: Analyser, node: Written) -> Typed:
    """Also `position`."""
    texts = [analyser.text(arg) for arg in node.args[:2]]
    places = [analyser.number(arg, INT) for arg in node.args[2:]]
    return analyser.made(node, "locate", INT, *texts, *places)


# -- evaluators


def like(call: Call) -> Vector:
    """The value of the node is the escape character. A pattern that is not valid fails."""
    known: dict[str, Any] = {}
    n = len(call.first)
    kept, bad = np.zeros(n, np.bool_), np.zeros(n, np.bool_)
    for i, (text, pattern) in enumerate(each_pair(call)):
        if pattern not in known:
            try:
                known[pattern] = matcher_of(pattern, str(call.node.value))
            except BadPatternError:
                known[pattern] = None
        match = known[pattern]
        bad[i] = match is None
        kept[i] = match is not None and match(text)
    return strict(kept, *call.args).failing(bad)


def locate(call: Call) -> Vector:
    """A place that is null gives 0, whatever the strings are."""
    places = [_place(word, text, *place) if not place or place[0] > 0 else 0 for word, text, *place in each_pair(call)]
    found = strict(np.array(places, np.int64), *call.args[:2])
    if len(call.args) == 2:
        return found
    start = call.args[2]
    whole = strict(found.values, found, start)
    values = np.where(start.nulls, 0, found.values)
    valid = None if found.valid is None else found.valid | start.nulls
    return Vector(values, valid, whole.failed, whole.lost)


def _place(word: str, text: str, start: int = 1) -> int:
    return text.find(word, start - 1) + 1 if word else 1


def _place_in_list(word: str, listed: str) -> int:
    """A list has commas between its words; a word with a comma is in none."""
    if "," in word:
        return 0
    if word == listed:
        return 1
    found = f",{listed},".find(f",{word},")
    return 0 if found < 0 else listed.count(",", 0, found) + 1


MAX_COMPARED = 1 << 32  # characters of one string times those of the other
MAX_SIMILAR = 1 << 24  # the same, for comparisons of single characters


def levenshtein(call: Call) -> Vector:
    """The distance, or -1 if it is above a third argument. Pairs of huge strings fail: the time is their product."""
    n = len(call.first)
    values, bad = np.zeros(n, np.int64), np.zeros(n, np.bool_)
    for i, (one, other, *most) in enumerate(each_pair(call)):
        bad[i] = len(one) * len(other) > MAX_COMPARED
        if not bad[i]:
            distance = edit_distance(one, other)
            values[i] = -1 if most and distance > most[0] else distance
    return strict(values, *call.args).failing(bad)


def edit_distance(one: str, other: str) -> int:
    """How many insertions, removals and replacements. A column of the usual table is one integer (Myers 1999)."""
    if not one or not other:
        return len(one) + len(other)
    masks: dict[str, int] = {}
    for place, character in enumerate(one):
        masks[character] = masks.get(character, 0) | 1 << place
    full, last = (1 << len(one)) - 1, 1 << (len(one) - 1)
    more, fewer, distance = full, 0, len(one)  # where the table grows by one downwards, and where it falls
    for character in other:
        equal = masks.get(character, 0)
        vertical = equal | fewer
        equal |= ((equal & more) + more) ^ more
        grows = fewer | (full & ~(equal | more))
        falls = more & equal
        distance += bool(grows & last) - bool(falls & last)
        grows = (grows << 1 | 1) & full
        falls = (falls << 1) & full
        more = falls | (full & ~(vertical | grows))
        fewer = grows & vertical
    return distance


def jaro_winkler(call: Call) -> Vector:
    """Pairs of huge strings fail: the time is their product."""
    n = len(call.first)
    values, bad = np.zeros(n), np.zeros(n, np.bool_)
    for i, (one, other) in enumerate(each_pair(call)):
        bad[i] = len(one) * len(other) > MAX_SIMILAR
        if not bad[i]:
            values[i] = _similarity(_utf_16(one), _utf_16(other))
    return strict(values, *call.args).failing(bad)


def _utf_16(text: str) -> str:
    """The characters of Java: those beyond 16 bits are two."""
    return text if text.isascii() else "".join(map(chr, memoryview(text.encode("utf-16-le")).cast("H")))


def _similarity(one: str, other: str) -> float:
    """Equal characters not too far apart, fewer if they are in another order; up to four equal ones at the start."""
    if not one or not other:
        return 1.0 if one == other else 0.0
    reach = max(0, max(len(one), len(other)) // 2 - 1)
    taken, mine = [False] * len(other), []
    for place, character in enumerate(one):
        for at in range(max(0, place - reach), min(len(other), place + reach + 1)):
            if not taken[at] and other[at] == character:
                taken[at] = True
                mine.append(character)
                break
    if not mine:
        return 0.0
    theirs = [character for character, is_taken in zip(other, taken, strict=True) if is_taken]
    moved = sum(a != b for a, b in zip(mine, theirs, strict=True)) / 2
    matches = float(len(mine))
    jaro = (matches / len(one) + matches / len(other) + (matches - moved) / matches) / 3.0
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one[:4], other[:4], strict=False)))
    return jaro + 0.1 * same * (1.0 - jaro)


# -- the rows of the table

FUNCTIONS = (
    Function("startswith(s, t)", of_strings(BOOLEAN), text_test(str.startswith), "whether `s` starts with `t`"),
    Function("endswith(s, t)", of_strings(BOOLEAN), text_test(str.endswith), "whether `s` ends with `t`"),
    Function("contains(s, t)", of_strings(BOOLEAN), text_test(str.__contains__), "whether `t` is in `s`"),
    Function(
        "instr(s, t)",
        of_strings(INT),
        number_function(lambda text, word: _place(word, text)),
        "where `t` first begins in `s`, from 1; 0 if nowhere",
    ),
    Function(
        "locate(t, s [, from])",
        type_locate,
        locate,
        "the same, from a place on; 0 if that is null or below 1",
        ("position",),
    ),
    Function(
        "find_in_set(s, list)",
        of_strings(INT),
        number_function(_place_in_list),
        "which word of a list with commas `s` is, from 1; 0 if none",
    ),
    Function(
        "levenshtein(s, t [, most])",
        with_numbers(INT, 2),
        levenshtein,
        "how many characters to insert, remove or replace to get from `s` to `t`; -1 if more than `most`; "
        "fails for strings of more than 65,536 characters each",
    ),
    Function(
        "jaro_winkler_similarity(s, t)",
        of_strings(DOUBLE),
        jaro_winkler,
        "how similar two strings are, up to 1.0 for equal ones; fails for strings of more than 4,096 characters each",
    ),
)
