from __future__ import annotations

import tracemalloc

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import vedette as vd
from vedette.data.matches import Matches
from vedette.queries import match
from vedette.queries.match import find_removed, merge
from vedette.queries.screen import Screen


def matches_of(lists):
    starts = np.cumsum([0, *map(len, lists)], dtype=np.int64)
    return Matches(starts, np.array([each for row in lists for each in row], np.int32))


def lists_of(matches):
    return [matches.positions[matches.starts[i] : matches.starts[i + 1]].tolist() for i in range(len(matches))]


positions = st.lists(st.integers(0, 5), max_size=3)


@given(
    st.integers(0, 5).flatmap(
        lambda n: st.lists(st.lists(positions, min_size=n, max_size=n), max_size=3).map(lambda answers: (n, answers))
    ),
    st.none() | st.sets(st.integers(0, 5)),
)
def test_merged_answers_have_all_pairs_except_dropped_ones(drawn, removed):
    n_rows, answers = drawn
    found = [matches_of(each) for each in answers]
    is_removed = np.array([each in (removed or ()) for each in range(6)])
    rows = None if n_rows % 2 else np.arange(n_rows)
    dropped = [] if removed is None else [find_removed(each, is_removed, rows) for each in found]

    merged = merge(found, n_rows, dropped)

    assert [sorted(each) for each in lists_of(merged)] == [
        sorted(each for answer in answers for each in answer[row] if each not in (removed or ()))
        for row in range(n_rows)
    ]


def test_a_screen_puts_aside_rows_that_cannot_match():
    random = np.random.default_rng(3)
    queries = vd.QuerySet("x double, n bigint")
    lows = random.random(200) * 1000
    queries.add_boxes(np.arange(200), {"x": (lows, lows + 0.01), "n": ([None] * 200, random.integers(0, 9, 200))})
    rows = {
        "x": np.concatenate([random.random(2000) * 1200 - 100, lows, lows + 0.01, [np.nan, np.inf, -np.inf]]),
        "n": random.integers(-1, 10, 2403),
    }

    hits = queries.match(rows)

    screen = queries._compiled().compiled[0].screen
    assert isinstance(screen, Screen)
    assert screen.marks.mean() < 0.05
    one_by_one = [queries.match_one({"x": x, "n": int(n)}) for x, n in zip(*rows.values(), strict=True)]
    assert lists_of(hits) == one_by_one  # a single row is not screened
    assert hits.counts.sum() > 200


def test_residuals_are_checked_on_a_few_pairs_at_a_time(monkeypatch):
    queries = vd.QuerySet("n bigint, x double")
    texts = ["n % 7 = 3", "n % 5 = 1 OR x > 9", "x BETWEEN 1 AND 4 AND n * 2 > 9", "100 / n > 5", "x > 1"]
    queries.add_many(range(len(texts)), texts)
    rows = {"n": np.arange(500) % 23, "x": np.arange(500.0) % 11}
    whole = queries.match(rows)
    monkeypatch.setattr(match, "CANDIDATES_AT_ONCE", 64)

    in_slices = queries.match(rows)

    assert whole.n_failed > 0
    assert in_slices.n_failed == whole.n_failed
    assert lists_of(in_slices) == lists_of(whole)
    assert queries.match({"n": [], "x": []}).counts.tolist() == []


def test_many_residuals_over_many_rows_fit_into_memory():
    queries = vd.QuerySet("n bigint")
    queries.add_many(range(200), [f"n % 1000 = {i}" for i in range(200)])
    rows = {"n": np.arange(20_000)}
    queries.match_one({"n": 1})
    tracemalloc.start()
    try:
        n_matches = int(queries.match(rows).counts.sum())
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert n_matches == 4000
    assert peak < 100e6  # of 4 million pairs


def test_sets_with_wide_queries_or_nulls_have_no_screen():
    wide, nulls = vd.QuerySet("x double"), vd.QuerySet("x double")
    wide.add_many([1, 2], ["x > 1", "x < 5"])
    nulls.add_many([1, 2], ["x IS NULL OR x BETWEEN 1 AND 2", "x = 1000000"])

    assert wide._compiled().compiled[0].screen is None
    assert nulls._compiled().compiled[0].screen is None
    rows = {"x": np.ma.array(np.full(3000, 1.5), mask=np.arange(3000) % 2 == 0)}
    assert nulls.match(rows).counts.tolist() == [1] * 3000
