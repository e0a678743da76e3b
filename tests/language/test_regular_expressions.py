"""Regular expressions have the answers of Java's, or are refused by name."""

from __future__ import annotations

import random
import time
from typing import Any

import pytest
from language.test_against_spark import interpreted  # noqa: F401
from language.values import FAILED, our_values, spark_values

from vedette.data.schema import Schema
from vedette.errors import QueryError
from vedette.language import compile_texts
from vedette.language.functions.regular_expressions import Regex

SCHEMA = Schema.parse("s string, p string")
PATTERNS = [
    *(r"a$", r"^a$", r"^$", r"a.c", r"a.*c", r"\s", r"\S+", r"\w+", r"\W", r"\d", r"\D", r"\bfoo\b", r"(?i)s"),
    *(r"(?i)straße", r"(?i)[a-c]x", r"(?i)[^a]", r"[a&&b]", r"[a-z&&[^aeiou]]", r"[a-z&&b-d]", r"[a-d[m-p]]"),
    *(r"[^a-c]", r"[]a]", r"[^]a]", r"[a-]", r"[-a]", r"[\w-]", r"\v", r"\V", r"\h", r"\H", r"\R", r"\R\n"),
    *(r"a\R$", r"\Qa.b\E", r"\Qa.b\E+", r"\Qab", r"(?<n>a)b", r"\p{L}", r"\p{Lu}", r"\p{IsL}", r"\pL", r"\PL"),
    *(r"\p{Alpha}", r"\p{Punct}", r"(?m)a", r"(?s)a.c", r"(?s).", r"(?x) a b # c", r"(?x)a\ b", r"(?d)a.c"),
    *(r"\07", r"\012", r"\0377", r"\0400", r"\cA", r"\cj", r"\x41", r"\x{1F600}", r"\u0041", r"\uD83D\uDE00"),
    *(r"[\uD83D\uDE00]", r"\t", r"\a", r"\e", r"\_", r"\-", r"a{2}", r"a{2,}", r"}", r"]", r"a??", r"a*?b"),
    *(r"(a|ab)(c|bcd)", r"(a|b)*c", r"()", r"a||b", r"\z", r"\Z", r"\A", r"a\Z", r"a\z", r".{3}", r"^.$", "😀"),
    *("[😀-😂]", "é", r"(?i)É", r"(?i:a)B", r"a(?i)b", r"(?-i)a", r"((?i)a)b", r"a(?i)b(?-i)c", r"a(?i)b|c", r"$"),
    *(r"$a", r"a^", r"(^a|b)", r"(a$|b)", r"\$", r"a\nb", r"[^\n]$", r"\s$", r"\s*$", r".*$", r".+$", r"\n$"),
    *(r"\r$", r"\n\z", r"$\n", r"a$\n", r"\ba", r"[[a]]", r"[[^a]]", r"[a&&[b]]", r"[a&b]", r"[a-z&&[def]&&[e]]"),
    *(r"[\p{L}&&[^a]]", r"[\x41-\x43]", r"[a^]", r"x*", r"(?:a|b){2,3}?", r"(?i)K", r"(?i)k", r"(?i)[k-s]"),
    *(r"(?i)\Qa\E", r"[[:alpha:]]", r"[^\W\d]", r"(?s).$", r"[\s\S]*$", r"[\r\n]+$", r"a{0}", r"(a){0}b"),
    *(r"x{1000}", r"ab|a", r"a|ab", r"^(a|b)+$", r"|a", r"(a$|b$)", r"(a*)*", r"(|a)+", r"\00"),
]  # fmt: skip
INVALID = [
    *(r"\y", r"a{,2}", r"a{2,1}", r"a{", r"{", r")", r"(", r"[", r"*", r"+a", r"a**", r"\08", r"\0", r"\c"),
    *(r"\x4", r"\xg", r"\u12", r"(?<1a>b)", r"(?<a>b)(?<a>c)", r"(?z)", r"(?i", r"(?", r"(a|b", r"[z-a]"),
    *(r"\p{Nope}", r"[a"),
]  # fmt: skip
REFUSED = {
    r"a*+": "a possessive quantifier",
    r"(?=a)": "lookahead",
    r"(?!a)b": "lookahead",
    r"(?<=a)b": "lookbehind",
    r"(?<!a)b": "lookbehind",
    r"(?>a)": "an atomic group",
    r"(a)\1": "back references",
    r"(?<n>a)\k<n>": "back references",
    r"\p{IsLatin}": r"\p{IsLatin}",
    r"(?m)^a": "^ with the flag m",
    r"(?m)a$": "$ with the flag m",
    r"(?d)a$": "$ with the flag d",
    r"(?iu)É": "the flag u",
    r"(?U)\w": "the flag U",
    r"\G": r"\G",
    r"\X": r"\X",
    r"\Bo": r"\B",
    r"$$": "after a $",
    r"(a$)+": "a repetition of $",
    r"[^[a]]": "inside a negated class",
    r"(?:\R){2}": r"a repetition of \R",
    "a{1001}": "more than 1,000 repetitions",
    r"(?x)[a b]": "in a class with the flag x",
    "(?i)\\p{Lu}": "\\p with the flag i",
    "(a{100}){100}": "it is too large",
    "a" * 10_001: "10,001 characters",
    "(" * 300: "nests too deeply",
}
TEXTS = [
    *("", "a", "b", "ab", "abc", "aab", "a\n", "a\r\n", "a\r", "a\u2028", "a\u0085", "\n", "\r\n", "\n\n", "a\nb"),
    *("a\nc", "a\rc", "a\u2028c", "a\u0085c", "a.b", "a.bb", "foo", "xfoo", "foo bar", "É", "é", "e\u0301", "s"),
    *("S", "\u017f", "\u212a", "k", "ß", "STRASSE", "STRAßE", "\U0001f600", "\U0001f600\U0001f601"),
    *("a\U0001f600c", "1", "a1", "_", "-", "^", "]", "&", "$", "\\", "\t", "\x0b", "\x0c", "\x1c", "\x85", "\xa0"),
    *("\u2003", "\u180e", "\u00b2", "日本", "abcd", "ac", "abab", "e", "m", "}", "a b", "aB", "AB", "\x07", "\x1b"),
    *("\x01", "\xff", "\0", " 7", "x" * 1000, None, "bc", "b\n", "b\r\n", "\r", "ba\n", "a\n\n", "a \n"),
    *("a\t\r\n", "\U0001d400", "ǅ"),
]  # fmt: skip
CALLS = [
    "s RLIKE {}",
    "regexp_extract(s, {}, 0)",
    "regexp_replace(s, {}, '<$0>')",
    "regexp_count(s, {})",
    "regexp_instr(s, {})",
]


def literal(pattern: str) -> str:
    return "'" + pattern.replace("\\", "\\\\").replace("'", "''") + "'"


def compare(spark: Any, calls: list[str], texts: list[str | None]) -> tuple[list[str], int]:
    """Calls with other values than in Spark, and how many are refused here. A row may fail, with a \\b."""
    rows: dict[str, list[Any]] = {"s": texts, "p": ["a"] * len(texts)}
    found, n_refused = [], 0
    for call, theirs in zip(calls, spark_values(spark, calls, SCHEMA, rows), strict=True):
        ours = our_values(call, SCHEMA, rows)
        if isinstance(ours, str):
            n_refused += not isinstance(theirs, str)
            continue
        pairs = zip(ours, theirs, texts, strict=True)
        unknown = [None, FAILED] if "\\b" in call else [FAILED] if "replace" in call or "count" in call else []
        wrong = [(text, a, b) for a, b, text in pairs if a != b and not (a in unknown and not str(text).isascii())]
        if isinstance(theirs, str) or wrong:
            found.append(f"{call}: {theirs if isinstance(theirs, str) else wrong[:2]}")
    return found, n_refused


def test_hard_patterns_have_the_answers_of_java(interpreted: Any) -> None:  # noqa: F811
    calls = [call.format(literal(pattern)) for call in CALLS for pattern in PATTERNS]

    found, n_refused = compare(interpreted, calls, TEXTS)

    assert found == []
    assert n_refused <= 8  # repetitions of what may be empty, outside RLIKE


ATOMS = [
    *("a", "b", "c", ".", r"\s", r"\w", "[ab]", "[^a]", r"\d", r"\n", r"\r", "x", "(?:)", r"\b", "[a-c&&[^b]]"),
    *("é", "😀", r"\R", r"\v", r"[\s\S]", "$", "^", r"\z", r"\Z", r"\A", r"[b\n]"),
]  # fmt: skip


def random_pattern(source: random.Random, depth: int = 3) -> str:
    style = source.random()
    if depth == 0 or style < 0.35:
        return source.choice(ATOMS)
    one, other = random_pattern(source, depth - 1), random_pattern(source, depth - 1)
    if style < 0.65:
        return one + other
    if style < 0.88:
        return source.choice(["({}|{})", "({}{})", "(?:{}|{})", "(?i:{}|{})", "(?s:{}|{})"]).format(one, other)
    quantifier = source.choice(["*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}", "{0,2}?", "{1,}"])
    return source.choice([f"(?:{one})", "a", ".", "[ab]", r"\s", "(a|b)", "(ab?)"]) + quantifier


@pytest.mark.fast
def test_random_patterns_have_the_answers_of_java(interpreted: Any) -> None:  # noqa: F811
    source = random.Random(20240229)
    letters = ["a", "b", "c", "A", "\n", "\r", "\r\n", " ", "1", "x", "é", "\u2028", "ab", "😀"]
    texts = ["".join(source.choices(letters, k=source.randint(0, 6))) for _ in range(60)]
    patterns = [random_pattern(source) for _ in range(60)]
    calls = [call.format(literal(pattern)) for call in CALLS for pattern in patterns]

    found, n_refused = compare(interpreted, calls, texts)

    assert found == []
    assert n_refused <= len(calls) // 4


@pytest.mark.parametrize("pattern", INVALID)
def test_an_invalid_pattern_is_refused(pattern: str) -> None:
    with pytest.raises(QueryError, match="regular expression"):
        compile_texts([f"s RLIKE {literal(pattern)}"], SCHEMA)


def test_spark_refuses_these_patterns_too(interpreted: Any) -> None:  # noqa: F811
    calls = [f"s RLIKE {literal(pattern)}" for pattern in INVALID]

    assert [
        each for each in spark_values(interpreted, calls, SCHEMA, {"s": ["a"], "p": ["a"]}) if isinstance(each, list)
    ] == []


@pytest.mark.parametrize("pattern", REFUSED)
def test_what_is_not_supported_is_refused_by_name_and_place(pattern: str) -> None:
    with pytest.raises(QueryError) as caught:
        compile_texts([f"s = 'a' OR regexp_replace(s, {literal(pattern)}, '') = 'b'"], SCHEMA)

    assert REFUSED[pattern] in caught.value.reason
    assert "of the regular expression" in caught.value.reason
    assert caught.value.position == len("s = 'a' OR regexp_replace(s, ")


@pytest.mark.fast
def test_replacements_and_groups_are_those_of_java(interpreted: Any) -> None:  # noqa: F811
    rows = {"s": ["abc", "a😀c", "", "aXbX", None], "p": ["b", "(a)", "x(", None, "X"]}
    calls = [
        f"regexp_replace(s, '(a)(?<n>.)', {literal(each)})" for each in ("$1", "$2$1", "$11", r"\$1", r"\\", "", "x")
    ]
    calls += ["regexp_replace(s, 'X', 'y', 3)", "regexp_replace(s, '^.', '-', 2)", "regexp_replace(s, 'a', 'b', 9)"]
    calls += [
        "regexp_extract(s, '(a)(x)?', 2)",
        "regexp_extract(s, '(a)')",
        "regexp_substr(s, '[bX]')",
        "regexp_extract(s, 'a', 0)",
    ]

    for call, theirs in zip(calls, spark_values(interpreted, calls, SCHEMA, rows), strict=True):
        assert our_values(call, SCHEMA, rows) == theirs, call
    for call in (
        "regexp_replace(s, 'a', '$')",
        "regexp_replace(s, 'a', '$2')",
        "regexp_extract(s, 'a', 1)",
        "regexp_replace(s, 'a', 'b', 0)",
    ):
        assert our_values(call, SCHEMA, {"s": ["a"], "p": ["a"]}) == [FAILED]
        assert isinstance(spark_values(interpreted, [call], SCHEMA, {"s": ["a"], "p": ["a"]})[0], str)


def test_a_pattern_may_be_a_field_and_fails_where_it_is_refused() -> None:
    rows = {"s": ["abc", "aa", "x", "b"], "p": ["b", "(a)\\1", "x(", None]}

    assert our_values("regexp_extract(s, p, 0)", SCHEMA, rows) == ["b", FAILED, FAILED, None]


def test_no_pattern_takes_more_than_linear_time() -> None:
    text = "a" * 50_000 + "!"
    start = time.monotonic()

    assert not Regex("(a+)+b$").is_in(text)
    assert not Regex("(a|aa)*c|(a*)*d").is_in(text)
    assert Regex("(x+x+)+y|!$").is_in(text)
    assert time.monotonic() - start < 5


def test_the_mark_before_a_line_end_may_be_part_of_a_text() -> None:
    rows = {"s": ["ab\U0010ffff", "\U0010ffff\n", "a\U0010ffff\r\n", "\n"], "p": ["x"] * 4}

    assert our_values("regexp_extract(s, '(a|.)(.)?', 0)", SCHEMA, rows) == ["ab", "\U0010ffff", "a\U0010ffff", ""]
    assert our_values("regexp_extract(s, '(.)$', 1)", SCHEMA, rows) == ["\U0010ffff"] * 3 + [""]
    assert [Regex("[^\U0010ffff]$").can_read(text) for text in rows["s"]] == [False, False, False, True]
