"""A comparison that fails counts once per row, however rows are cut into steps."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import given

import vedette as vd
from vedette.operators.border import differences

rows = st.lists(st.tuples(st.sampled_from("abc"), st.integers(-1, 1)), min_size=1, max_size=30)


def make_queries() -> vd.QuerySet:
    queries = vd.QuerySet("k string, t bigint, x bigint")
    queries.add_many(["p", "q", "r"], ["1 / x > 0", "k < 'c' AND 1 / x > 0", "x < 1 AND 1 / x < 0 OR k = 'a'"])
    return queries


def as_columns(some: list[tuple[str, int]], first: int) -> dict[str, list[object]]:
    return {"k": [k for k, _ in some], "t": list(range(first, first + len(some))), "x": [x for _, x in some]}


@given(rows, st.sets(st.integers(1, 29)), st.integers(1, 4))
def test_failed_comparisons_are_those_of_matching(some, cuts, moves_at_once):
    queries = make_queries()
    monitor = queries.border(key="k", time="t")
    ends = [*sorted(cut for cut in cuts if cut < len(some)), len(some)]
    before, differences.MOVES_AT_ONCE = differences.MOVES_AT_ONCE, moves_at_once
    try:
        for start, end in zip([0, *ends[:-1]], ends, strict=True):
            monitor.step(as_columns(some[start:end], start))
    finally:
        differences.MOVES_AT_ONCE = before

    assert monitor.n_failed == queries.match(as_columns(some, 0)).n_failed


def test_a_changed_set_does_not_count_the_rows_before_again():
    queries = make_queries()
    monitor = queries.border(key="k", time="t")
    monitor.step(as_columns([("a", 0)], 0))
    queries.add("s", "1 / x > 0 AND t >= 0")
    queries.remove("p")
    seen = monitor.n_failed

    monitor.step(as_columns([("a", 0)], 1))

    assert monitor.n_failed - seen == queries.match(as_columns([("a", 0)], 1)).n_failed > 0
