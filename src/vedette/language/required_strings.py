"""The string that a text must contain to match a pattern: rows without it are not candidates."""

from __future__ import annotations

from vedette.data.substring_axes import LONGEST
from vedette.language.java_patterns import BadRegexError, translate
from vedette.language.patterns import parts_of


def required_string(op: str, pattern: str, value: object) -> tuple[str, bool]:
    """A string that every match contains, and whether every text that contains it matches. It may be empty.

    >>> required_string("like", "%ab_def%", "/")
    ('def', False)
    """
    if op == "like":
        parts = parts_of(pattern, str(value))
        string = _longest(["".join(part[1:] for part in run) for run in _runs(parts)])
        is_all = parts == ["%", *("=" + character for character in string), "%"]
    elif op == "regexp_like":
        string, is_all = _required_by_regex(pattern), False
    else:
        string, is_all = pattern, op == "contains"
    return string[:LONGEST], is_all and len(string) <= LONGEST


def _runs(parts: list[str]) -> list[list[str]]:
    """The literal characters between % and _."""
    runs: list[list[str]] = [[]]
    for part in parts:
        if part in ("%", "_"):
            runs.append([])
        else:
            runs[-1].append(part)
    return runs


def _longest(strings: list[str]) -> str:
    return max(strings, key=len, default="")


def _required_by_regex(pattern: str) -> str:
    try:
        return translate(pattern).required
    except BadRegexError:
        return ""
