"""Prepares a skeleton for sqlglot, and compares it with what sqlglot read.

Names get backquotes and functions a prefix, so that no word has a special meaning for sqlglot. Afterwards every token
of the text must occur in the tree: sqlglot ignores some mistakes, such as an extra comma.
"""

from __future__ import annotations

import re
import sys
from bisect import bisect_right
from collections import Counter
from typing import Any

from vedette.errors import QueryError
from vedette.language.tokens import MARK

_SLOT = "__literal_{}__"
SLOT_NAME = re.compile(r"__literal_(\d+)__")
CALL = "__call_"  # before the name of a function, so that sqlglot reads it as an unknown function
_UNSIGNED = f"{CALL}unsigned"  # between two >>, because sqlglot has no >>>
_FORBIDDEN = re.compile(r"--|/\*|;|:|\{|@|\$|\?|(?<!<)=>")
_MEANINGS = {
    "--": "comments are not supported; remove it",
    "/*": "comments are not supported; remove it",
    ";": "a query is one expression; remove the semicolon",
}
# Words that are not names. Each one in a text must also be in the tree.
KEYWORDS = frozenset(
    {"AND", "OR", "NOT", "IN", "BETWEEN", "LIKE", "RLIKE", "REGEXP", "ILIKE", "IS", "NULL", "TRUE", "FALSE"}
    | {"CASE", "WHEN", "THEN", "ELSE", "END", "CAST", "TRY_CAST", "AS", "ESCAPE", "DISTINCT", "FROM", "DIV"}
)
_AFTER_NOT = ("IN", "BETWEEN", "LIKE", "RLIKE", "REGEXP", "ILIKE")
_OPERANDS = frozenset({"END", "NULL", "TRUE", "FALSE"})  # keywords that end an operand
# Words that are passed to sqlglot for a better error. Fields with these names need backquotes.
_TELLING = frozenset(
    {"decimal", "dec", "numeric", "over", "select", "exists", "any", "all", "some", "with", "interval", "symmetric"}
)
_RENAMED = re.compile(rf"{MARK}|`(?:[^`]|``)*`|'[^']*'|\"[^\"]*\"|\w+|>>>")
_TOKEN = re.compile(r"`(?:[^`]|``)*`|'[^']*'|\"[^\"]*\"|\w+|>>>|<<|>>|<=>|<>|<=|>=|->|==|!=|\|\||\0|\S")
_OPENING = re.compile(r"\s*\(")
_SUBQUERY = re.compile(r"\s*\(\s*(?:select|with|table|from|values)\b", re.IGNORECASE)
_AS = ("as", "AS", "As", "aS")
_COMPARING = {"=", "==", "<>", "!=", "<", "<=", ">", ">=", "<=>"}


def check_characters(skeleton: str) -> None:
    plain = re.sub(r"`(?:[^`]|``)*`", lambda found: "_" * len(found.group()), skeleton)
    plain = re.sub(
        r"(\bescape\s*)('.{1,3}'|\".{1,3}\")", lambda found: "_" * len(found.group()), plain, flags=re.IGNORECASE
    )
    if not plain.strip():
        raise QueryError("the text is empty; write a condition, such as price < 40", skeleton)
    found = _FORBIDDEN.search(plain)
    if found:
        reason = _MEANINGS.get(found.group(), f"{found.group()!r} has no meaning in a query")
        raise QueryError(reason, skeleton, found.start(), found.end())
    quote = re.search(r"['\"`]", plain)
    if quote:
        raise QueryError(f"a {quote.group()} is not closed", skeleton, quote.start(), quote.start() + 1)
    twice = re.search(rf"{MARK}\s*{MARK}", plain)
    if twice:
        raise QueryError(
            "two literals in a row; an operator or a comma is missing", skeleton, twice.start(), twice.end()
        )
    number = re.search(r"(?<![\w.])[0-9]\w*[A-Za-z_]\w*", plain)
    if number:
        suffixes = "the suffixes are L, S, Y, F, D and BD"
        reason = f"{number.group()} is not a number: {suffixes}; put a name that begins with a digit in ``"
        raise QueryError(reason, skeleton, number.start(), number.end())
    _check_pairs(plain, skeleton, "(", ")")
    _check_pairs(plain, skeleton, "[", "]")
    reserved = re.search(r"__literal_|__call_", plain)
    if reserved:
        raise QueryError("names with __literal_ or __call_ are reserved", skeleton, reserved.start(), reserved.end())


def _check_pairs(plain: str, skeleton: str, opening: str, closing: str) -> None:
    """Parentheses, or brackets, must be closed, and opened before."""
    opened: list[int] = []
    for place, character in enumerate(plain):
        if character == opening:
            opened.append(place)
        elif character == closing:
            if not opened:
                raise QueryError(f"syntax error: a {closing} without its {opening}", skeleton, place, place + 1)
            opened.pop()
    if opened:
        raise QueryError(f"syntax error: a {opening} without its {closing}", skeleton, opened[-1], opened[-1] + 1)


def with_names(skeleton: str) -> tuple[str, list[tuple[int, int]]]:
    """The skeleton in parentheses, so that it is not read as a statement, with a name for each mark.

    Also (place in the result, place in the skeleton) wherever the offset changes.
    """
    pieces, length, place, slot, previous = ["("], 1, 0, 0, ""
    origins = [(0, 0), (1, 0)]
    for found in _RENAMED.finditer(skeleton):
        token, between = found.group(), skeleton[place : found.start()]
        is_type = previous in _AS and between.isspace()
        named = f" {_SLOT.format(slot)} " if token == MARK else _named(found, is_type)
        pieces += (between, named)
        origins.append((length + len(between) + (token == MARK), found.start()))
        length += len(between) + len(named)
        place, previous, slot = found.end(), token, slot + (token == MARK)
        origins += [(length - 1, place), (length, place)] if token == MARK else [(length, place)]
    return "".join([*pieces, skeleton[place:], ")"]), origins


def _named(found: re.Match[str], is_type: bool) -> str:
    """A word for sqlglot: a name in backquotes, so that it is not a keyword; a function as an unknown one."""
    word = found.group()
    if word.lower() == "exists" and not _SUBQUERY.match(found.string, found.end()):
        return CALL + word if _OPENING.match(found.string, found.end()) else f"`{word}`"
    if word == ">>>":
        return f">> {_UNSIGNED} >>"
    if word[0] in "`'\"" or word.isdigit() or word.upper() in KEYWORDS or word.lower() in _TELLING:
        return word
    if _OPENING.match(found.string, found.end()):
        return CALL + word
    return word if is_type else f"`{word}`"


def is_unsigned(node: Any) -> bool:
    """Whether a node of sqlglot is the mark in a >>>."""
    return type(node).__name__ == "Column" and node.name == _UNSIGNED


def write_name(name: str) -> str:
    """A field's name as written in a query: in backquotes if it has unusual characters or is a keyword."""
    is_word = name.upper() in KEYWORDS or name.lower() in _TELLING
    plain = re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) and not is_word
    return name if plain else "`" + name.replace("`", "``") + "`"


def origin(origins: list[tuple[int, int]], place: int) -> int:
    at, from_ = origins[bisect_right(origins, (place, sys.maxsize)) - 1]
    return from_ + (place - at)


def check_tokens(skeleton: str, read: Counter[str]) -> None:
    """Refuse a text if its tokens and those of the tree differ: sqlglot ignores some mistakes."""
    left = read.copy()
    left["("] -= 1  # the parentheses around the whole
    for token, place in _tokens_of(skeleton):
        left[token] -= 1
        if left[token] < 0:
            raise QueryError("syntax error: a token is missing or extra here", skeleton, place, place + 1)
    missing = +left
    if missing == {"(": 1}:  # sqlglot puts parentheses around a comparison before IS
        raise QueryError("a condition before IS needs parentheses around it", skeleton)
    if missing:
        raise QueryError(f"syntax error: {min(missing)} is missing", skeleton)


def _tokens_of(skeleton: str) -> list[tuple[str, int]]:
    """The tokens as the reader counts them, with their places, without closing parentheses."""
    found = [(match.group(), match.start()) for match in _TOKEN.finditer(skeleton)]
    tokens: list[tuple[str, int]] = []
    for k, (token, place) in enumerate(found):
        word = token.upper()
        after = [next_.upper() for next_, _ in found[k : k + 4]]
        if word == "IS" and "DISTINCT" in (after[1:2] + after[2:3]):
            kind = "compare"
        elif word in ("DISTINCT", "FROM") or (word == "NOT" and after[1:3] == ["DISTINCT", "FROM"]) or token in ")]":
            continue
        elif word in KEYWORDS:
            after_operand = word == "NOT" and k > 0 and _ends_operand(found[k - 1][0])
            if after_operand and after[1:2] and after[1] not in _AFTER_NOT:
                raise QueryError("syntax error: NOT is not allowed here", skeleton, place, place + 3)
            kind = "RLIKE" if word == "REGEXP" else word
        elif token in _COMPARING:
            kind = "compare"
        elif token == "!":
            if after[1:2] and after[1] in ("BETWEEN", "IN", "LIKE", "NULL"):
                raise QueryError("syntax error: write NOT here", skeleton, place, place + 1)
            kind = "NOT"
        elif token == "+" and not _ends_operand(found[k - 1][0] if k else ""):
            raise QueryError("a + before a value is not supported; remove it", skeleton, place, place + 1)
        else:
            kind = "name" if re.match(r"[`\w'\"\0]", token) else token
        tokens.append((kind, place))
    return tokens


def _ends_operand(token: str) -> bool:
    return token in (")", "]") or (
        bool(re.match(r"[`\w'\"\0]", token)) and (token.upper() not in KEYWORDS or token.upper() in _OPERANDS)
    )
