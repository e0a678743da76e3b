"""Compile time: long queries take time in proportion to their length."""

from __future__ import annotations

import random
import time
from contextlib import suppress

import pytest

import vedette as vd
from vedette.errors import QueryError

SCHEMA = "x double, y double, s string, i bigint"
LONG = {
    "ands": lambda n: " AND ".join(f"x > {i}" for i in range(n)),
    "ors": lambda n: " OR ".join(f"x = {i}" for i in range(n)),
    "ors of ands": lambda n: " OR ".join(f"(x > {i} AND y < {i})" for i in range(n)),
    "ands of ors": lambda n: " AND ".join(f"(x < {i} OR y > {i})" for i in range(n)),
    "ors of ands of ors": lambda n: " OR ".join(f"((x > {i} OR y < 1) AND (i = 3 OR y > {i}))" for i in range(n)),
    "not of ands of ors": lambda n: f"NOT ({' AND '.join(f'(x > {i} OR y < {i})' for i in range(n))})",
    "unequal": lambda n: " AND ".join(f"x <> {i}" for i in range(n)),
    "between": lambda n: " AND ".join(f"x BETWEEN {-i} AND {i}" for i in range(n)),
    "case": lambda n: f"CASE {' '.join(f'WHEN x = {i} THEN y > {i}' for i in range(n))} ELSE FALSE END",
    "residuals": lambda n: " AND ".join(f"x + y > {i}" for i in range(n)),
    "list": lambda n: f"i IN ({', '.join(map(str, range(5 * n)))})",
    "no list": lambda n: f"i NOT IN ({', '.join(map(str, range(5 * n)))})",
    "casts": lambda n: " AND ".join(f"CAST(s AS   bigint) > {i}" for i in range(n)),
    "words": lambda n: f"x > 1 AND {'y ' * n} > 2",
    "escaped quotes": lambda n: "s = '" + "\\'" * n,
    "numbers that are none": lambda n: "x > " + "1" * n + "y",
    "dots": lambda n: "x > " + "1." * n,
    "raw strings": lambda n: "s = r'" + "a'r'" * n,
    "spaces": lambda n: "x >" + " " * n + "y",
}


def seconds_to_add(text: str) -> float:
    queries = vd.QuerySet(SCHEMA)
    start = time.process_time()
    with suppress(QueryError):
        queries.add("q", text)
    return time.process_time() - start


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", LONG)
@pytest.mark.full
def test_the_time_to_add_a_query_grows_with_its_length(name):
    seconds_to_add("x > 1 AND s LIKE '%a_b' AND i IN (1, 2) AND x + y > CAST(s AS bigint)")  # imports and caches
    n = 250
    short = min(seconds_to_add(LONG[name](n + k)) for k in range(3))
    long = min(seconds_to_add(LONG[name](8 * n + k)) for k in range(2))

    assert long < 24 * max(short, 0.002)  # a quadratic step would take 64 times as long


@pytest.mark.timeout(120)
@pytest.mark.full
def test_ten_thousand_terms_are_added_within_seconds():
    assert seconds_to_add(LONG["ands"](10_000)) < 6  # 1.6 s of a core that others use too


def test_a_quote_that_is_never_closed_is_found_in_long_texts_as_in_short_ones():
    source = random.Random(3)
    padding = f"s <> '{'a' * 1500}' AND "
    for _ in range(2000):
        end = "s = " + "".join(source.choice(["'", "'", '"', "`", "\\", "r'", "a", " ", "''"]) for _ in range(7))
        short, long = refused(end), refused(padding + end)
        assert ("is not closed" in short) == ("is not closed" in long), end
        assert (short == "") == (long == ""), end


def refused(text: str) -> str:
    try:
        vd.QuerySet(SCHEMA).check(text)
    except QueryError as error:
        return error.reason
    return ""
