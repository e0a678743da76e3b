"""Limits on the text of a query. They are checked before parsing, so a text that is too long costs one scan."""

from __future__ import annotations

import re
from collections.abc import Sequence

from vedette.errors import QueryError
from vedette.language.expressions import Typed
from vedette.language.literals import SlotError
from vedette.settings import Settings

_NAME = re.compile(r"`(?:[^`]++|``)*+`")
_LIST_OR_PARENTHESIS = re.compile(r"\bin\s*+\(|[(),]", re.IGNORECASE)
_OPERATOR = r">>>|<<|>>|<=>|<>|<=|>=|==|!=|\|\||[+*/%<>=&|^~]|-(?!\s*+\0)|\b(?:in|like|between|is|when|div)\b"
_CALL = r"(?!\b(?:and|or|not|in|case|when|then|else)\b)\b\w++(?=\s*+\()"
_TERM = re.compile(rf"{_OPERATOR}|{_CALL}", re.IGNORECASE)
_LEAVES = ("field", "slot")
_LINK = re.compile(r"\b(?:and|or|between)\b", re.IGNORECASE)


def find_too_long(texts: Sequence[str], limits: Settings) -> dict[int, QueryError]:
    """The texts that are longer than the limit, by their place."""
    try:
        if max(map(len, texts), default=0) <= limits.max_text_length:
            return {}
    except TypeError:  # one is not a string, which is refused later
        pass
    found: dict[int, QueryError] = {}
    for place, text in enumerate(texts):
        try:
            limits.check("max_text_length", len(text) if isinstance(text, str) else 0)
        except QueryError as error:
            found[place] = error
    return found


def check_skeleton(skeleton: str, limits: Settings) -> None:
    """Refuse a text with too many terms, list values or levels of parentheses."""
    if len(skeleton) <= min(limits.max_terms, limits.max_list_values, limits.max_nesting):
        return
    plain = _NAME.sub("_", skeleton)
    if len(plain) > limits.max_terms:
        limits.check("max_terms", max(sum(1 for _ in _TERM.finditer(plain)), _count_conditions(plain)))
    n_values, n_arguments, deepest = _measure_parentheses(plain)
    limits.check("max_terms", n_arguments)
    limits.check("max_list_values", n_values)
    limits.check("max_nesting", deepest)


def _count_conditions(plain: str) -> int:
    """The number of conditions that AND and OR join, without the AND of BETWEEN."""
    words = [found.group().lower() for found in _LINK.finditer(plain)]
    return len(words) - 2 * words.count("between") + 1


def _measure_parentheses(plain: str) -> tuple[int, int, int]:
    """The number of values in IN lists, the number of arguments elsewhere, and the depth of parentheses."""
    opened: list[bool] = []  # by parenthesis: whether it begins a list
    n_values = n_arguments = deepest = 0
    for found in _LIST_OR_PARENTHESIS.finditer(plain):
        sign = found.group()
        if sign == ",":
            in_list = bool(opened) and opened[-1]
            n_values += in_list
            n_arguments += not in_list
        elif sign == ")":
            if opened:
                opened.pop()
        else:
            opened.append(sign != "(")
            n_values += opened[-1]
            deepest = max(deepest, len(opened))
    return n_values, n_arguments, deepest


def check_vertices(polygons: Sequence[Sequence[str]], slots: Sequence[int], limits: Settings) -> None:
    """Refuse texts whose polygons, by slot and text, have too many vertices: a SlotError says which."""
    for position, written in enumerate(zip(*polygons, strict=True)):
        counts = [wkt.count(",") + 1 for wkt in written]
        try:
            limits.check("max_polygon_vertices", sum(counts))
        except QueryError as error:
            raise SlotError(error.reason, slots[counts.index(max(counts))], position) from None


def check_cost(residuals: Sequence[Typed], limits: Settings) -> None:
    """Refuse conditions whose residuals are too long: their operations are made for each candidate row."""
    limits.check("max_residual_cost", sum(node.op not in _LEAVES for each in residuals for node in each.walk()))
