"""Sets of characters as sorted ranges of code points: the character classes of regular expressions."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from functools import lru_cache

CodePoints = tuple[tuple[int, int], ...]  # closed ranges, sorted, without overlap
MOST = 0x10FFFF


def union(*parts: Iterable[tuple[int, int]]) -> CodePoints:
    merged: list[tuple[int, int]] = []
    for low, high in sorted(each for part in parts for each in part):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return tuple(merged)


def complement(points: CodePoints) -> CodePoints:
    found, start = [], 0
    for low, high in points:
        if low > start:
            found.append((start, low - 1))
        start = high + 1
    if start <= MOST:
        found.append((start, MOST))
    return tuple(found)


def intersection(one: CodePoints, other: CodePoints) -> CodePoints:
    return complement(union(complement(one), complement(other)))


def of(text: str) -> CodePoints:
    """The characters of a text."""
    return union((ord(character), ord(character)) for character in text)


def both_cases(points: CodePoints) -> CodePoints:
    """With the other case of each ASCII letter."""
    upper, lower = intersection(points, ((65, 90),)), intersection(points, ((97, 122),))
    return union(points, ((a + 32, b + 32) for a, b in upper), ((a - 32, b - 32) for a, b in lower))


DIGITS: CodePoints = ((48, 57),)
UPPER: CodePoints = ((65, 90),)
LOWER: CodePoints = ((97, 122),)
ALPHA = union(UPPER, LOWER)
WORD = union(DIGITS, ALPHA, of("_"))
SPACE = of(" \t\n\x0b\f\r")
HORIZONTAL = union(of(" \t\xa0\u1680\u180e\u202f\u205f\u3000"), ((0x2000, 0x200A),))
VERTICAL = of("\n\x0b\f\r\x85\u2028\u2029")
LINE_ENDS = of("\n\r\x85\u2028\u2029")
PUNCT = of("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
POSIX: dict[str, CodePoints] = {
    "Lower": LOWER, "Upper": UPPER, "ASCII": ((0, 127),), "Alpha": ALPHA, "Digit": DIGITS,
    "Alnum": union(ALPHA, DIGITS), "Punct": PUNCT, "Graph": ((33, 126),), "Print": ((32, 126),),
    "Blank": of(" \t"), "Cntrl": ((0, 31), (127, 127)),
    "XDigit": union(DIGITS, ((65, 70), (97, 102))), "Space": SPACE,
}  # fmt: skip
CATEGORIES = (
    *(
        "L",
        "Lu",
        "Ll",
        "Lt",
        "Lm",
        "Lo",
        "M",
        "Mn",
        "Mc",
        "Me",
        "N",
        "Nd",
        "Nl",
        "No",
        "P",
        "Pc",
        "Pd",
        "Ps",
        "Pe",
        "Pi",
    ),
    *("Pf", "Po", "S", "Sm", "Sc", "Sk", "So", "Z", "Zs", "Zl", "Zp"),
)


@lru_cache(maxsize=64)
def category(name: str) -> CodePoints:
    """The characters of a general category of Unicode, such as `Lu`, or of a group of them, such as `L`."""
    codes = (code for code in range(MOST + 1) if unicodedata.category(chr(code)).startswith(name))
    found: list[tuple[int, int]] = []
    for code in codes:
        if found and found[-1][1] == code - 1:
            found[-1] = (found[-1][0], code)
        else:
            found.append((code, code))
    return tuple(found)
