"""Queries that look for substrings get their candidates from one search per text, and have the same answers."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import vedette as vd
from vedette.data import substring_axes
from vedette.data.boxes import Ranges
from vedette.data.columns import Column
from vedette.data.substring_axes import LONGEST, SubstringAxis
from vedette.language.java_patterns import translate
from vedette.language.required_strings import required_string

SCHEMA = "s string, x bigint"
TEXTS = [
    None,
    "",
    "a",
    "ab",
    "abc",
    "xabcx",
    "aaa",
    "b\n",
    "日本語",
    "x\U0001f600y",
    "%_",
    "abcabc" * 9,
    "c",
    "cab",
    "ABC",
]
CONDITIONS = {
    "s LIKE '%ab%'": lambda s: "ab" in s,
    "s LIKE '%a%c%'": lambda s: "a" in s and "c" in s[s.index("a") :],
    "s LIKE '%b_'": lambda s: len(s) > 1 and s[-2] == "b",
    "s LIKE '%'": lambda s: True,
    "s LIKE '%\\\\_%'": lambda s: "_" in s,
    "contains(s, 'bc')": lambda s: "bc" in s,
    "contains(s, '')": lambda s: True,
    "contains(s, '日')": lambda s: "日" in s,
    "contains(s, '\U0001f600')": lambda s: "\U0001f600" in s,
    f"contains(s, '{'abc' * 12}')": lambda s: "abc" * 12 in s,
    "endswith(s, 'b')": lambda s: s.endswith("b"),
    "endswith(s, '')": lambda s: True,
    "s RLIKE 'b$'": lambda s: s.endswith("b") or s == "b\n",
    "s RLIKE '(ab)+c'": lambda s: "abc" in s,
    "s RLIKE '(?i)abc'": lambda s: "abc" in s.lower(),
    "s RLIKE 'x|b'": lambda s: "x" in s or "b" in s,
    "s RLIKE 'x?y*'": lambda s: True,
    "NOT contains(s, 'a')": lambda s: "a" not in s,
    "contains(s, 'a') OR contains(s, 'c')": lambda s: "a" in s or "c" in s,
    "contains(s, 'a') AND contains(s, 'c')": lambda s: "a" in s and "c" in s,
    "contains(s, 'a') AND NOT contains(s, 'b')": lambda s: "a" in s and "b" not in s,
    "s LIKE '%b%' AND s > 'b'": lambda s: "b" in s and s > "b",
}


def expected() -> set[tuple[int, str]]:
    return {(row, text) for row, s in enumerate(TEXTS) if s is not None for text, test in CONDITIONS.items() if test(s)}


def found(queries: vd.QuerySet) -> list[tuple[int, str]]:
    hits = queries.match({"s": TEXTS, "x": list(range(len(TEXTS)))}).to_arrow()
    return sorted(zip(hits["row"].to_pylist(), hits["query"].to_pylist(), strict=True))


@pytest.fixture
def queries() -> vd.QuerySet:
    made = vd.QuerySet(SCHEMA)
    made.add_many(list(CONDITIONS), list(CONDITIONS))
    return made


def test_texts_match_the_queries_whose_strings_they_contain(queries: vd.QuerySet) -> None:
    assert found(queries) == sorted(expected())  # each once


def test_one_row_matches_the_same(queries: vd.QuerySet) -> None:
    for row, text in enumerate(TEXTS):
        assert set(queries.match_one({"s": text, "x": 0})) == {query for at, query in expected() if at == row}


def test_saved_pickled_and_changed_sets_answer_the_same(queries: vd.QuerySet, tmp_path: Path) -> None:
    found(queries)  # makes the automaton
    queries.save(tmp_path / "set")
    for copy in (vd.QuerySet.load(tmp_path / "set"), pickle.loads(pickle.dumps(queries))):
        assert found(copy) == sorted(expected())
        copy.remove("contains(s, 'bc')")
        copy.add("late", "s LIKE '%xab%'")
        kept = {pair for pair in expected() if pair[1] != "contains(s, 'bc')"}
        assert found(copy) == sorted(kept | {(TEXTS.index("xabcx"), "late")})


def test_explain_names_the_substrings() -> None:
    queries = vd.QuerySet(SCHEMA)
    queries.add_many(range(50), [f"s LIKE '%needle{n}%'" for n in range(50)])

    assert "50 boxes on substrings of s: " in queries.explain()
    assert "axis substrings of s: 50 cuts" in queries.explain()


def test_a_substring_and_a_range_are_one_box() -> None:
    queries = vd.QuerySet(SCHEMA)
    queries.add_many(range(100), [f"contains(s, 'k{n % 10}') AND x BETWEEN {n} AND {n + 1}" for n in range(100)])

    assert "residual" not in queries.explain()
    assert sorted(queries.match_one({"s": "k3 k4", "x": 14})) == [13, 14]


def test_a_long_text_is_searched_in_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(substring_axes, "_WINDOW", 7)
    queries = vd.QuerySet(SCHEMA)
    needle = "n" * (LONGEST - 2) + "ml"
    queries.add_many(["needle", "m", "none"], [f"contains(s, '{needle}')", "contains(s, 'm')", "contains(s, 'mm')"])

    for n in range(30):
        assert sorted(queries.match_one({"s": "n" * n + needle + "x" * 9, "x": 0})) == ["m", "needle"]


@given(st.lists(st.text("ab", max_size=3), min_size=1, unique=True), st.lists(st.none() | st.text("abc", max_size=6)))
def test_cells_are_those_of_the_strings_in_a_text(words: list[str], texts: list[str | None]) -> None:
    import pyarrow as pa

    words = sorted(words)
    strings, closed = np.array(words, object), np.ones(len(words), np.int8)
    axis = SubstringAxis.build([Ranges(strings, strings, closed, closed)])
    valid = np.array([text is not None for text in texts], np.bool_)
    cells = axis.locate(Column(pa.array([text or "" for text in texts], pa.large_string()), valid))

    for row, text in enumerate(texts):
        own = cells.cells[cells.starts[row] : cells.starts[row + 1]].tolist()
        assert sorted(own) == ([] if text is None else [2 * k + 1 for k, word in enumerate(words) if word in text])


@pytest.mark.parametrize(
    ("pattern", "string"),
    [
        ("abc", "abc"), ("a+bc", "bc"), ("a?bc", "bc"), ("ab*c", "a"), ("(ab)c", "ab"), ("(ab)?c", "c"), ("ab|cd", ""),
        ("(?i)abc1", "1"), ("a.bcd", "bcd"), ("[a]bc", "abc"), ("[ab]c", "c"), ("\\Qa.b\\E", "a."), ("(?:ab|c)d", "d"),
        ("a{2}b", "a"), ("(ab){0}c", "c"), ("^abc$", "abc"), ("a\\nb", "a\nb"), ("x*", ""), ("(a(bcd)e)+", "bcd"),
    ],
)  # fmt: skip
def test_every_match_of_a_pattern_contains_its_required_string(pattern: str, string: str) -> None:
    assert translate(pattern).required == string


def test_only_the_first_characters_of_a_long_string_are_looked_up() -> None:
    assert required_string("contains", "a" * 100, None) == ("a" * LONGEST, False)
    assert required_string("like", "%abc%", "\\") == ("abc", True)
    assert required_string("like", "%abc", "\\") == ("abc", False)


@pytest.mark.parametrize("index", [None, "SJ-Join", "IBS-JS"])
def test_joins_find_substrings_with_every_algorithm(index: str | None) -> None:
    queries = vd.JoinQuerySet(
        index=index, left="id bigint, s string, ts timestamp", right="id bigint, x bigint, ts timestamp"
    )
    queries.add("q", "contains(left.s, 'bc') AND left.id < right.x", within="1 hour")
    join = queries.window(left_time="ts", right_time="ts", left_id="id", right_id="id")
    times = np.array(["2024-01-01"] * 4, "datetime64[us]")
    left = {"id": np.arange(4), "s": ["abc", "b", None, "xbcx"], "ts": times}
    pairs = join.step(left=left, right={"id": np.arange(4), "x": np.array([9, 0, 0, 1]), "ts": times}).to_pydict()

    assert sorted(zip(pairs["left"], pairs["right"], strict=True)) == [(0, 0), (0, 3), (3, 0)]
