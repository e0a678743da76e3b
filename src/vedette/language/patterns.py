"""LIKE patterns: as a range of strings if possible, and a matcher for the others.

The matcher looks for the pieces between the % from left to right and uses the first place of each, so a text is read
once for any number of %. `_` is one code point, as in Spark.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import groupby, pairwise

_SHORT = 64  # characters of a piece with `_` up to which a regular expression finds it; bits find a longer one
_MAX_PIECE = 10_000  # characters of a piece with `_` between two %; the time to find it grows with its length
_MAX_PATTERN = 2_000_000  # characters; reading a pattern takes about 80 bytes per character
_MAX_CACHED = 2_000  # characters of a pattern whose matcher is kept for later batches

ESCAPE_RULE = "must be followed by %, _ or itself; double it to mean itself"
BAD_PATTERN = "bad: "  # instead of a class, before the reason why a pattern is invalid


class BadPatternError(Exception):
    """The escape character precedes something it cannot escape, or a piece is too long."""


def parts_of(pattern: str, escape: str) -> list[str]:
    """The pattern in pieces: '%', '_', or '=' followed by a literal character."""
    if len(pattern) > _MAX_PATTERN:
        raise BadPatternError(f"a LIKE pattern has {len(pattern):,} characters; at most {_MAX_PATTERN:,}")
    parts: list[str] = []
    place = 0
    while place < len(pattern):
        character = pattern[place]
        if character == escape:
            if place + 1 == len(pattern) or pattern[place + 1] not in ("_", "%", escape):
                raise BadPatternError(f"{escape!r} in a LIKE pattern {ESCAPE_RULE}")
            parts.append("=" + pattern[place + 1])
            place += 2
            continue
        parts.append(character if character in "%_" else "=" + character)
        place += 1
    if len(parts) > _MAX_PIECE:
        _check_lengths(parts)
    return parts


def _check_lengths(parts: list[str]) -> None:
    """Refuse a long piece with `_` between two %. The first and the last piece have a fixed place and may be longer."""
    cuts = [place for place, part in enumerate(parts) if part == "%"]
    for start, end in pairwise(cuts):
        if end - start - 1 > _MAX_PIECE and "_" in parts[start:end]:
            length = f"{end - start - 1:,}"
            raise BadPatternError(
                f"a LIKE pattern has {length} characters with _ between two %; at most {_MAX_PIECE:,}"
            )


def classify(pattern: str, escape: str) -> tuple[str, str]:
    """('equal', text), ('prefix', text) or ('other', '')."""
    parts = parts_of(pattern, escape)
    n_stem = len(parts)
    while n_stem and parts[n_stem - 1] == "%":
        n_stem -= 1
    stem = parts[:n_stem]
    if "%" in stem or "_" in stem:
        return "other", ""
    text = "".join(part[1:] for part in stem)
    return ("equal" if n_stem == len(parts) else "prefix"), text


class Pattern:
    """A LIKE pattern, ready to match texts. Raises BadPatternError if it is invalid.

    >>> Pattern("%a_c%", escape="/").matches("xxabcxx")
    True
    """

    def __init__(self, pattern: str, escape: str) -> None:
        pieces: list[list[str]] = [[]]
        for part in parts_of(pattern, escape):
            if part == "%":
                pieces.append([])
            else:
                pieces[-1].append(part)
        self._is_one_piece = len(pieces) == 1
        self._least = sum(map(len, pieces))  # the length of the shortest text that matches
        self._first, self._last = _Piece(pieces[0]), _Piece(pieces[-1])
        self._middle = [_Piece(parts, is_searched=True) for parts in pieces[1:-1] if parts]

    @property
    def contained(self) -> str | None:
        """The string that texts must contain, if the pattern requires nothing else."""
        alone = self._first.length == self._last.length == 0 and len(self._middle) == 1
        return self._middle[0].string if alone else None

    def matches(self, text: str) -> bool:
        """Whether the pattern matches the whole text."""
        if len(text) < self._least or (self._is_one_piece and len(text) > self._least):
            return False
        place, end = self._first.length, len(text) - self._last.length
        if not (self._first.is_at(text, 0) and self._last.is_at(text, end)):
            return False
        for piece in self._middle:
            found = piece.find(text, place, end)
            if found < 0:
                return False
            place = found + piece.length
        return True


def matcher_of(pattern: str, escape: str) -> Callable[[str], bool]:
    """The test of texts for a pattern. Raises BadPatternError."""
    return (_kept_matcher if len(pattern) <= _MAX_CACHED else _make_matcher)(pattern, escape)


def _make_matcher(pattern: str, escape: str) -> Callable[[str], bool]:
    whole = Pattern(pattern, escape)
    middle = whole.contained
    return whole.matches if middle is None else lambda text: middle in text


_kept_matcher = lru_cache(maxsize=8192)(_make_matcher)


class _Piece:
    """A sequence of characters and `_`.

    Without `_` it is a string. With `_`, a short piece is a regular expression without repetition, which takes at most
    one step per character of the piece and place. A longer piece is compared by its strings between the `_`, and
    searched for with one bit per character.
    """

    def __init__(self, parts: list[str], *, is_searched: bool = False) -> None:
        self.length = len(parts)
        self.string = "".join(part[1:] for part in parts) if "_" not in parts else None
        self._masks: dict[str, int] = {}
        self._strings: list[tuple[int, str]] = []
        if self.string is None and self.length <= _SHORT:
            dotted = "".join("." if part == "_" else re.escape(part[1:]) for part in parts)
            self._expression = re.compile(dotted, re.DOTALL)
        elif self.string is None and is_searched:
            self._mark(parts)
        elif self.string is None:
            self._strings = list(_strings_of(parts))

    def _mark(self, parts: list[str]) -> None:
        """Bit i of a character's mask: the character may be at place i of the piece."""
        bits: dict[str, int] = {}
        for place, part in enumerate(parts):
            bits[part[1:]] = bits.get(part[1:], 0) | 1 << place  # "_" itself has no character: ""
        self._others = bits.pop("")
        self._masks = {character: mask | self._others for character, mask in bits.items()}

    def is_at(self, text: str, place: int) -> bool:
        """Whether the piece is at a place of the text."""
        if self.string is not None:
            return text.startswith(self.string, place)
        if self.length > _SHORT:
            return all(text.startswith(string, place + at) for at, string in self._strings)
        return self._expression.match(text, place) is not None

    def find(self, text: str, start: int, end: int) -> int:
        """The first place from `start` on where the piece is and ends by `end`, or -1."""
        if self.string is not None:
            return text.find(self.string, start, end)
        if not self._masks:
            found = self._expression.search(text, start, end)
            return -1 if found is None else found.start()
        begun, last = 0, 1 << (self.length - 1)  # bit i of `begun`: the piece up to i ends at this character
        for place in range(start, end):
            begun = (begun << 1 | 1) & self._masks.get(text[place], self._others)
            if begun & last:
                return place - self.length + 1
        return -1


def _strings_of(parts: list[str]) -> Iterator[tuple[int, str]]:
    """The strings between the `_` of a piece, and where they begin."""
    place = 0
    for is_any, group in groupby(parts, lambda part: part == "_"):
        run = list(group)
        if not is_any:
            yield place, "".join(part[1:] for part in run)
        place += len(run)
