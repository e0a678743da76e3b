"""Random conditions on arrays."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

WORDS = ["", "a", "b", "ab", "é", "a\U0001f600", "A", "zz"]
NUMBERS = [-(2**63), -1, 0, 1, 2, 3, 7, 2**53 + 1, 2**63 - 1]
DOUBLES = [float("nan"), float("inf"), -0.0, 0.0, 1.0, 2.5, -3.5, 1e300]
POOLS = {"tags": WORDS, "ns": NUMBERS, "xs": DOUBLES}
FIELDS = "tags array<string>, ns array<bigint>, xs array<double>"


def items(source: random.Random, values: list[Any]) -> list[Any] | None:
    """An array of a few values, with nulls; or null."""
    if source.random() < 0.1:
        return None
    return [None if source.random() < 0.15 else source.choice(values) for _ in range(source.choice([0, 1, 1, 2, 3, 5]))]


class ArrayMaker:
    """Random conditions on the arrays of FIELDS. `singles` are fields of the types of their elements."""

    def __init__(self, source: random.Random, singles: Mapping[str, str]) -> None:
        self.random = source
        self.singles = singles

    def word(self) -> str:
        return "'" + self.random.choice(WORDS) + "'"

    def number(self) -> str:
        return self.random.choice(
            ["-1", "0", "1", "2", "3", "7", "9007199254740993", "1.5", "2e0", "9223372036854775807"]
        )

    def literal(self, array: str) -> str:
        if array == "tags":
            return self.word()
        return self.number() if array == "ns" else self.random.choice(["0.0D", "2.5D", "1", "1e300", "-3.5D", "2.5"])

    def element(self, array: str, depth: int = 1) -> str:
        """A condition on the variable e."""
        choose = self.random.choice
        if depth and self.random.random() < 0.4:
            return f"({self.element(array, 0)} {choose(['AND', 'OR'])} {self.element(array, 0)})"
        other = self.singles[array]
        leaves = [
            f"e {choose(['=', '<>', '<', '>=', '<=>'])} {self.literal(array)}",
            f"e BETWEEN {self.literal(array)} AND {self.literal(array)}",
            f"e IN ({self.literal(array)}, {self.literal(array)})",
            f"e {choose(['=', '<', '>'])} {other}",
            "e IS NULL",
            f"NOT e = {self.literal(array)}",
        ]
        if array == "tags":
            leaves += [
                "e LIKE 'a%'",
                "length(e) > 1",
                "concat(e, s) = 'ab'",
                "concat(e, 'b') = 'ab'",
                "upper(e) = upper('a')",
                "e LIKE '%b'",
            ]
        return choose(leaves)

    def leaf(self) -> str:
        choose = self.random.choice
        array = choose(["tags", "ns", "xs"])
        other = self.singles[array]
        literal = self.literal(array)
        return choose(
            [
                f"array_contains({array}, {literal})",
                f"array_contains({array}, {literal})",
                f"array_contains({array}, {other})",
                f"exists({array}, e -> {self.element(array)})",
                f"exists({array}, e -> {self.element(array)})",
                f"forall({array}, e -> {self.element(array)})",
                f"arrays_overlap(tags, array({self.word()}, {self.word()}))",
                choose(
                    [
                        "arrays_overlap(ns, ns)",
                        "arrays_overlap(array(1, 7L, NULL), ns)",
                        "arrays_overlap(xs, array(1, 2.5D))",
                    ]
                ),
                f"size({array}) {choose(['=', '<', '>'])} {choose('0123')}",
                f"cardinality({array}) = 1",
                f"get({array}, {choose(['0', '1', '-1', '4'])}) = {literal}",
                f"try_element_at({array}, {choose(['1', '2', '-1', '-2', '9'])}) = {literal}",
                f"{array} IS NULL",
                f"array_position(tags, {self.word()}) = {choose('012')}",
                f"exists(ns, e -> exists(xs, f -> f > e)) AND size({array}) > 0",
                f"{self.singles['ns']} > {choose('0123')}",
                f"{self.singles['tags']} = {self.word()}",
                f"{self.singles['xs']} < {choose('0123')}",
            ]
        )

    def predicate(self, depth: int = 2) -> str:
        if depth == 0 or self.random.random() < 0.3:
            return self.leaf()
        if self.random.random() < 0.2:
            return f"NOT ({self.predicate(depth - 1)})"
        joined = self.random.choice([" AND ", " AND ", " OR "])
        return "(" + joined.join(self.predicate(depth - 1) for _ in range(self.random.choice([2, 2, 3]))) + ")"
