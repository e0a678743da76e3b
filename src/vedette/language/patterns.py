"""LIKE patterns: what can be a range of strings, and the regular expression of what cannot."""

from __future__ import annotations

import re


class BadPatternError(Exception):
    """The escape character stands before something it cannot escape."""


def parts_of(pattern: str, escape: str) -> list[str]:
    """The pattern in pieces: '%', '_', or '=' followed by a character that stands for itself."""
    parts: list[str] = []
    place = 0
    while place < len(pattern):
        character = pattern[place]
        if character == escape:
            if place + 1 == len(pattern) or pattern[place + 1] not in ("_", "%", escape):
                raise BadPatternError(
                    f"{escape!r} in a LIKE pattern stands before %, _ or itself; double it to mean itself"
                )
            parts.append("=" + pattern[place + 1])
            place += 2
            continue
        parts.append(character if character in "%_" else "=" + character)
        place += 1
    return parts


def classify(pattern: str, escape: str) -> tuple[str, str]:
    """('equal', text), ('prefix', text) or ('other', '')."""
    parts = parts_of(pattern, escape)
    stem = parts
    while stem and stem[-1] == "%":
        stem = stem[:-1]
    if any(part in ("%", "_") for part in stem):
        return "other", ""
    text = "".join(part[1:] for part in stem)
    return ("equal" if len(stem) == len(parts) else "prefix"), text


def expression_of(pattern: str, escape: str) -> re.Pattern[str]:
    """The regular expression that matches, as a whole, what the pattern does."""
    pieces = {"%": ".*", "_": "."}
    return re.compile("".join(pieces.get(part) or re.escape(part[1:]) for part in parts_of(pattern, escape)), re.DOTALL)
