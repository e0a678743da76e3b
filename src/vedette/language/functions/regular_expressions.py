"""Regular expressions: RLIKE and the functions that begin with `regexp`.

RE2 evaluates them, in time proportional to the text. `java_patterns.py` translates patterns from Java's syntax.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from vedette.data.schema import Type, array_of
from vedette.language.expressions import BOOLEAN, INT, STRING, Typed, Written
from vedette.language.functions.function import MAX_PADDED, Call, Evaluator, Function, Rule, Sizes, each_pair
from vedette.language.java_patterns import MARK, STAND_IN, BadRegexError, Translated, translate
from vedette.language.vectors import Vector, strict, text_vector

if TYPE_CHECKING:
    from vedette.language.analysis import Analyser

_MAX_CACHED = 2048  # compiled patterns
_MAX_MEMORY = 1 << 23  # bytes of a compiled pattern, which bounds its size
_MARK = MARK.encode()
_DIGITS = tuple("0123456789")
_LAST_END = re.compile("(?:\r\n|[\n\r\x85\u2028\u2029])\\Z")


class Regex:
    """A compiled pattern. Raises BadRegexError if it is invalid or not supported.

    >>> Regex("a(.)c$").groups("xabc", [1])
    ['b']
    """

    def __init__(self, pattern: str, *, with_groups: bool = False) -> None:
        self.translated = translated = translate(pattern)
        if with_groups and translated.repeats_empty:
            raise BadRegexError("a repetition of something that may be empty is supported in RLIKE only", 0)
        self._plain = _compile(translated.plain)
        self._marked = None if translated.marked is None else _compile(translated.marked)

    def can_read(self, text: str) -> bool:
        """Whether the answer is known. At a letter beyond ASCII, the meaning of \\b depends on the version of Java."""
        if text.isascii():
            return True
        if MARK in text and self._marked is not None and self.translated.tells_mark:
            return False
        return not (self.translated.has_boundary and any(map(_is_word, text)))

    def is_in(self, text: str) -> bool:
        """Whether the pattern matches somewhere."""
        return next(self.matches(text), None) is not None

    def groups(self, text: str, wanted: list[int]) -> list[str] | None:
        """Groups of the first match, empty if they matched nothing. None without a match."""
        found = next(self.matches(text), None)
        return None if found is None else [found.group(number) for number in wanted]

    def matches(self, text: str) -> Iterator[Found]:
        """All matches, as Java's `find` returns them."""
        end_of = _LAST_END.search(text) if self._marked is not None else None
        content, mark = text.encode(), -1
        searched, expression = content, self._plain
        if end_of is not None:  # places in `searched` are those in the text, up to the mark
            before = text[: end_of.start()].replace(MARK, STAND_IN).encode()
            mark = len(before)
            searched, expression = before + _MARK + content[mark:], self._marked
        place = 0
        while True:
            found = expression.search(searched, place + (len(_MARK) if 0 <= mark < place else 0))
            if found is None:
                return
            spans = [found.span(group) for group in range(self.translated.n_groups + 1)]
            if mark >= 0:
                spans = [(_unmarked(start, mark), _unmarked(end, mark)) for start, end in spans]
            yield Found(content, spans)
            start, place = spans[0]
            if start == place:  # Java goes on after the next character
                if place >= len(content):
                    return
                place += len(content[place : place + 4].decode(errors="ignore")[:1].encode())


def _unmarked(place: int, mark: int) -> int:
    return place - len(_MARK) if place > mark else place


class Found(NamedTuple):
    """A match: the bytes of the text, and the places of groups in them."""

    content: bytes
    spans: list[tuple[int, int]]

    def group(self, number: int) -> str:
        """What a group matched; empty if it matched nothing."""
        start, end = self.spans[number]
        return self.content[max(start, 0) : max(end, 0)].decode()


def _is_word(character: str) -> bool:
    """Whether a character beyond ASCII is a letter, a digit or a combining mark."""
    return not character.isascii() and (character.isalnum() or unicodedata.category(character)[0] == "M")


def _compile(pattern: str) -> Any:
    import re2

    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MAX_MEMORY
    try:
        return re2.compile(pattern, options)
    except re2.error:
        raise BadRegexError("it is too large", 0) from None


@lru_cache(maxsize=_MAX_CACHED)
def regex_of(pattern: str, with_groups: bool) -> Regex | BadRegexError:
    """The compiled pattern, or why there is none."""
    try:
        return Regex(pattern, with_groups=with_groups)
    except BadRegexError as error:
        return error


def why_refused(pattern: str, op: str) -> str | None:
    """Why a function cannot use a pattern; None if it can."""
    found = regex_of(pattern, op != "regexp_like")
    return str(found) if isinstance(found, BadRegexError) else None


# -- typing rules


def of_pattern(result: Type, *numbers: int) -> Rule:
    """A string, a pattern, and more strings, or numbers at these places."""

    def type_call(analyser: Analyser, node: Written) -> Typed:
        args = [
            analyser.number(arg, INT) if place in numbers else analyser.text(arg) for place, arg in enumerate(node.args)
        ]
        return analyser.made(node, node.op, result, *args)

    return type_call


# -- evaluators


def each_regex(
    function: Callable[..., Any], empty: Any, *, with_groups: bool = True
) -> Callable[[Call], tuple[Any, Any]]:
    """A function of the compiled pattern, the text and the other arguments; None means that it fails."""

    def evaluate(call: Call) -> tuple[list[Any], Any]:
        n = len(call.first)
        values, bad = [empty] * n, np.zeros(n, np.bool_)
        by_pattern: dict[str, list[tuple[int, str, list[Any]]]] = {}  # so that each one is compiled once
        for i, (text, pattern, *more) in enumerate(each_pair(call)):
            by_pattern.setdefault(pattern, []).append((i, text, more))
        for pattern, pairs in by_pattern.items():
            regex = regex_of(pattern, with_groups)
            for i, text, more in pairs:
                value = function(regex, text, *more) if isinstance(regex, Regex) and regex.can_read(text) else None
                bad[i] = value is None
                values[i] = empty if value is None else value
        return values, bad

    return evaluate


def tested(call: Call) -> Vector:
    values, bad = each_regex(Regex.is_in, False, with_groups=False)(call)
    return strict(np.array(values, np.bool_), *call.args).failing(bad)


def made_text(function: Callable[..., str | None]) -> Evaluator:
    each = each_regex(function, "")

    def evaluate(call: Call) -> Vector:
        values, bad = each(call)
        return text_vector(values, *call.args).failing(bad)

    return evaluate


def counted(function: Callable[..., int | None]) -> Evaluator:
    each = each_regex(function, 0)

    def evaluate(call: Call) -> Vector:
        values, bad = each(call)
        return strict(np.array(values, np.int64), *call.args).failing(bad)

    return evaluate


def _extract(regex: Regex, text: str, group: int = 1) -> str | None:
    """A group that does not exist fails."""
    if not 0 <= group <= regex.translated.n_groups:
        return None
    found = regex.groups(text, [group])
    return "" if found is None else found[0]


def _count(regex: Regex, text: str) -> int | None:
    if _splits_characters(regex.translated, text):
        return None
    return sum(1 for _ in regex.matches(text))


def _place(regex: Regex, text: str, group: int = 0) -> int | None:
    if not 0 <= group <= regex.translated.n_groups:
        return None
    found = next(regex.matches(text), None)
    return 0 if found is None else len(text.encode()[: found.spans[0][0]].decode()) + 1


def _replace(regex: Regex, text: str, replacement: str, start: int = 1) -> str | None:
    if start < 1:
        return None
    if start > len(text) + (start == 1):
        return text
    pieces = _read_replacement(replacement, regex.translated.n_groups)
    before, text = text[: start - 1], text[start - 1 :]
    if pieces is None or _splits_characters(regex.translated, text):
        return None
    content, made, place, n_bytes = text.encode(), [before], 0, 0
    for found in regex.matches(text):
        begin, end = found.spans[0]
        made.append(content[place:begin].decode())
        for piece in pieces:
            made.append(piece if isinstance(piece, str) else found.group(piece))
            n_bytes += len(made[-1])
        if n_bytes > MAX_PADDED + len(text):
            return None
        place = end
    return "".join([*made, content[place:].decode()])


def made_list(function: Callable[..., list[str] | None]) -> Evaluator:
    each = each_regex(function, [])

    def evaluate(call: Call) -> Vector:
        values, bad = each(call)
        return strict(pa.array(values, pa.large_list(pa.large_string())), *call.args).failing(bad)

    return evaluate


def _extract_all(regex: Regex, text: str, group: int = 1) -> list[str] | None:
    """A group that does not exist fails."""
    if not 0 <= group <= regex.translated.n_groups or _splits_characters(regex.translated, text):
        return None
    return [found.group(group) for found in regex.matches(text)]


def _split(regex: Regex, text: str, limit: int = -1) -> list[str] | None:
    """As Java's `split`: an empty match at the start is no separator, and there is a part after the last match."""
    if _splits_characters(regex.translated, text):
        return None
    parts: list[str] = []
    content, place = text.encode(), 0
    for found in regex.matches(text):
        begin, end = found.spans[0]
        if 0 < limit <= len(parts) + 1:
            break
        if begin == end == place == 0:
            continue
        parts.append(content[place:begin].decode())
        place = end
    return [*parts, content[place:].decode()]


def split(call: Call) -> Vector:
    """An empty pattern divides the text into its characters."""
    found = made_list(_split)(call)
    patterns = call.args[1].values.fill_null("x").to_pylist()
    if "" not in patterns:
        return found
    rows, failed = found.values.to_pylist(), np.zeros(len(patterns), np.bool_)
    known = np.zeros_like(failed) if found.failed is None else found.failed
    for i, (text, pattern, *limit) in enumerate(each_pair(call)):
        if pattern == "":
            n = limit[0] - 1 if limit and 0 < limit[0] <= len(text) else max(0, len(text) - 1)
            rows[i], known[i] = [*text[:n], text[n:]], False
    return Vector(pa.array(rows, found.values.type), found.valid, strict(None, *call.args).failed, found.lost).failing(
        known
    )


def _splits_characters(translated: Translated, text: str) -> bool:
    """Whether Java would match the empty string inside a character beyond 16 bits, and tear it apart."""
    return translated.may_be_empty and any(character > "\uffff" for character in text)


@lru_cache(maxsize=_MAX_CACHED)
def _read_replacement(replacement: str, n_groups: int) -> tuple[str | int, ...] | None:
    """Strings and numbers of groups; None if it is invalid."""
    pieces: list[str | int] = []
    place = 0
    while place < len(replacement):
        character = replacement[place]
        place += 1
        if character == "\\":
            if place == len(replacement):
                return None
            pieces.append(replacement[place])
            place += 1
        elif character == "$":
            if replacement[place : place + 1] not in _DIGITS:
                return None  # Spark replaces ${name} in the text of a query, before it reads it
            group, place = int(replacement[place]), place + 1
            while replacement[place : place + 1] in _DIGITS:
                longer = group * 10 + int(replacement[place])
                if longer > n_groups:
                    break
                group, place = longer, place + 1
            if group > n_groups:
                return None
            pieces.append(group)
        else:
            pieces.append(character)
    return tuple(pieces)


def found_text(call: Call) -> Vector:
    """The first match; null if it is empty, or without one."""
    values, bad = each_regex(lambda regex, text: (regex.groups(text, [0]) or [""])[0], "")(call)
    none = np.fromiter((not value for value in values), np.bool_, len(values))
    made = text_vector(values, *call.args).failing(bad)
    return Vector(made.values, ~made.nulls & (~none | bad), made.failed, made.lost)


def _replaced_size(sizes: Sizes) -> Any:
    """A match may be empty; a replacement of two bytes may be a group, which is at most the string."""
    return sizes.bytes[0] * 2 + sizes.capped((sizes.bytes[0] + 1) * (sizes.bytes[0] + 1) * (sizes.bytes[2] + 1))


# -- the rows of the table

FUNCTIONS = (
    Function(
        "regexp_like(s, pattern)",
        of_pattern(BOOLEAN),
        tested,
        "whether the pattern matches a part of `s`: `s RLIKE pattern`",
    ),
    Function(
        "regexp_extract(s, pattern [, group])",
        of_pattern(STRING, 2),
        made_text(_extract),
        "a group of the first match, by default group 1; empty without a match; fails if there is no such group",
    ),
    Function(
        "regexp_replace(s, pattern, t [, from])",
        of_pattern(STRING, 3),
        made_text(_replace),
        "`s` with `t` instead of each match; `$1` in it is a group; fails if that adds a million bytes",
        size=_replaced_size,
    ),
    Function(
        "regexp_substr(s, pattern)",
        of_pattern(STRING),
        found_text,
        "the first match; null without one, or if it is empty",
    ),
    Function("regexp_count(s, pattern)", of_pattern(INT), counted(_count), "the number of matches"),
    Function(
        "regexp_instr(s, pattern [, group])",
        of_pattern(INT, 2),
        counted(_place),
        "where the first match begins, from 1; 0 without one",
    ),
    Function(
        "regexp_extract_all(s, pattern [, group])",
        of_pattern(array_of(STRING), 2),
        made_list(_extract_all),
        "a group of every match, by default group 1, as an array; fails if there is no such group",
        growth=9,
    ),
    Function(
        "split(s, pattern [, limit])",
        of_pattern(array_of(STRING), 2),
        split,
        "the parts of `s` between matches, as an array of at most `limit` strings; an empty pattern gives characters",
        growth=9,
    ),
)
