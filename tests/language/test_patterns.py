"""LIKE: as Spark matches, and in time that grows with the text alone."""

from __future__ import annotations

import random
from typing import Any

import pyarrow.compute as pc
import pytest

import vedette as vd
from vedette.language.patterns import Pattern, classify

SMILE = "\U0001f600"  # one code point, two units of UTF-16
LETTERS = ["a", "a", "b", SMILE, "é", "\n", "%", "_", "\\"]


def draw_pattern(source: random.Random, length: int) -> str:
    drawn = (
        source.choice(["a", "a", "b", SMILE, "é", "\n", "_", "_", "%", "%", "\\%", "\\_", "\\\\"])
        for _ in range(length)
    )
    return "".join(drawn)


def draw_long_piece(source: random.Random) -> str:
    """A piece with `_` of 60 to 90 characters, of few letters, so that most of it fits in many places."""
    return "".join(
        source.choice("aaaa_ab" if source.random() < 0.02 else "aaa_a") for _ in range(source.randint(60, 90))
    )


def draw_text(source: random.Random, length: int) -> str:
    return "".join(source.choice(LETTERS) for _ in range(length))


def draw_pairs(seed: int, n: int) -> list[tuple[str, str]]:
    """Texts and patterns; most are short, some have long pieces."""
    source = random.Random(seed)
    pairs = []
    for _ in range(n):
        pairs.append((draw_text(source, source.randrange(9)), draw_pattern(source, source.randrange(8))))
        pattern = "%" * source.randint(0, 1) + draw_long_piece(source) + "%" * source.randint(0, 1)
        text = "".join("a" if source.random() < 0.97 else "b" for _ in range(source.randint(80, 140)))
        pairs.append((text, pattern + source.choice(["", "a", "b%"])))
    return pairs


def oracle(text: str, pattern: str) -> bool:
    """Which prefixes of the text the pattern matches, one character of the pattern after another."""
    reached = {0}
    place = 0
    while place < len(pattern):
        character = pattern[place]
        if character == "%":
            reached = set(range(min(reached), len(text) + 1)) if reached else set()
        elif character == "_":
            reached = {at + 1 for at in reached if at < len(text)}
        else:
            place += character == "\\"
            reached = {at + 1 for at in reached if text[at : at + 1] == pattern[place]}
        place += 1
    return len(text) in reached


def test_patterns_match_what_the_definition_matches():
    wrong = [
        (text, pattern)
        for text, pattern in draw_pairs(7, 4000)
        if Pattern(pattern, "\\").matches(text) != oracle(text, pattern)
    ]

    assert not wrong


def test_like_keeps_what_spark_keeps(spark: Any) -> None:
    pairs = draw_pairs(11, 2000)
    rows = {"i": list(range(len(pairs))), "s": [text for text, _ in pairs], "p": [pattern for _, pattern in pairs]}
    frame = spark.createDataFrame(list(zip(*rows.values(), strict=True)), "i bigint, s string, p string")
    kept = {row.i for row in frame.filter("s LIKE p").collect()}
    queries = vd.QuerySet("i bigint, s string, p string")
    queries.add("q", "s LIKE p")

    assert set(queries.match(rows).to_arrow()["row"].to_pylist()) == kept
    assert 300 < len(kept) < len(pairs) - 300


HOSTILE = {
    "many pieces": ("%a%a%a%a%a%b", "a" * 100_000),
    "very many pieces": ("%a" * 50_000 + "%b", "a" * 100_000),
    "pieces with any character": ("%a_" * 500 + "%b%", "a" * 100_000),
    "a long piece with any character": ("%" + "a_" * 400 + "b%", "a" * 100_000),
    "a very long piece with any character": ("%" + "a_" * 4_000 + "b%", "a" * 20_000),
    "a long piece that nearly fits": ("%" + "a" * 20_000 + "b%", "a" * 100_000),
    "a long piece that repeats": ("%" + ("a" * 500 + "b") * 100 + "c%", ("a" * 500 + "b") * 1_000),
    "a suffix": ("a%a_b", "a" * 100_000),
    "only signs": ("%" * 100_000 + "b", "a" * 100_000),
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_pattern_does_not_backtrack(name):
    pattern, text = HOSTILE[name]
    queries = vd.QuerySet("s string")
    queries.add("hostile", f"s LIKE '{pattern}'")
    queries.add("fine", "s LIKE 'a%'")

    assert queries.match({"s": [text] * 3}).to_arrow()["query"].to_pylist() == ["fine"] * 3


@pytest.mark.timeout(20)
def test_a_pattern_that_ends_in_many_signs_is_classified_at_once():
    assert classify("a" + "%" * 300_000, "\\") == ("prefix", "a")


def test_a_piece_with_any_character_between_two_signs_has_a_limit_and_the_ends_of_a_pattern_have_none():
    queries = vd.QuerySet("s string, p string")
    piece = "a_" * 5_000
    with pytest.raises(vd.QueryError, match=r"has 10,001 characters with _ between two %; at most 10,000") as refused:
        queries.add("long", f"s LIKE '%{piece}a%'")
    assert len(str(refused.value)) < 2500
    queries.add("longest", f"s LIKE '%{piece}%'")
    queries.add("start", f"s LIKE '{piece}a%'")
    queries.add("end", f"s LIKE '%{piece}a'")
    queries.add("plain", f"s LIKE '%{'a' * 20_000}%'")
    queries.add("escaped", "s LIKE '%" + r"\\_" * 10_001 + "%'")
    queries.add("field", "s LIKE p")

    found = queries.match({"s": ["a" * 20_000, "_" * 10_001], "p": [f"%{piece}a%", "%" + r"\_" * 10_001]})
    hits = found.to_arrow()
    by_row = [sorted(hits.filter(pc.field("row") == row)["query"].to_pylist()) for row in range(2)]
    assert by_row == [["end", "longest", "plain", "start"], ["escaped", "field"]]
    assert found.n_failed == 1
