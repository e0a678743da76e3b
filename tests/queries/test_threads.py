"""Matching with several threads: the same bytes as with one, the same errors, from many callers at once."""

from __future__ import annotations

import logging
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.profiles import IS_COMPILED, examples
from vedette import AnswerError, QueryError, QuerySet
from vedette.data import answer_limit
from vedette.indexes import dual
from vedette.indexes.names import SAVED_INDEXES
from vedette.language import raised
from vedette.language.residual import Residual
from vedette.native.budget import OverBudgetError, bounded
from vedette.native.threads import count_pieces, limited
from vedette.queries import match, match_pieces, parts
from vedette.settings import Settings

# Boxes on one field and several, a query of several boxes, queries of no box, and residuals that fail for some rows.
TEXTS = [
    "x > 3", "x BETWEEN 1 AND 6", "x = 4", "k = 'a' AND x > 2", "x < 3 OR x > 5 OR y > 2", "y > 1 AND x < 7", "TRUE",
    "x BETWEEN 2 AND 5 AND y BETWEEN 0 AND 3 AND k > 'a'", "100 / x > 40", "k LIKE '%a%' AND x > 1", "y IS NULL",
    "x > 1 AND y < 3 AND k < 'c' AND 10 / (x - 4) < 5",
]  # fmt: skip
TYPES = {"x": pa.int64(), "y": pa.float64(), "k": pa.string()}


@pytest.fixture(autouse=True, scope="module")
def _cut_small_batches():
    """Small batches are cut for threads, and decide which index of a `Dual` answers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(match_pieces, "PIECE_ROWS", 3)
        patch.setattr(match, "COPIED_AT_ONCE", 4)
        for module in (parts, match, dual):
            patch.setattr(module, "MIN_ROWS", 8)
        yield


rows = st.lists(
    st.tuples(st.integers(0, 8), st.none() | st.floats(0, 4), st.none() | st.sampled_from(["a", "b", "ba", "c"])),
    max_size=60,
).map(lambda each: pa.table({n: pa.array([row[i] for row in each], t) for i, (n, t) in enumerate(TYPES.items())}))


def make_queries(texts, removed=(), index=None, n_first=None):
    queries = QuerySet("x bigint, y double, k string", index=index)
    ids = [f"q{number}" for number in range(len(texts))]
    n_first = len(texts) if n_first is None else min(n_first, len(texts))
    queries.add_many(ids[:n_first], texts[:n_first])
    queries.match({"x": [1], "y": [1.0], "k": ["a"]})
    queries.add_many(ids[n_first:], texts[n_first:])
    queries.remove_many([f"q{number}" for number in sorted(removed) if number < len(texts)])
    return queries


def content(hits):
    return hits.starts.tobytes(), hits.positions.tobytes(), hits.starts.dtype, hits.positions.dtype, hits.n_failed


@given(
    st.lists(st.sampled_from(TEXTS), min_size=1, max_size=30),
    st.sets(st.integers(0, 29), max_size=6),
    st.none() | st.sampled_from(SAVED_INDEXES),
    st.integers(0, 30),
    rows,
    st.integers(2, 7),
)
def test_any_number_of_threads_gives_the_same_bytes(texts, removed, index, n_first, rows, n_threads):
    queries = make_queries(texts, removed, index, n_first)
    one = queries.match(rows, threads=1)

    assert content(queries.match(rows, threads=n_threads)) == content(one)
    some = queries.match({name: rows[name].to_pylist() for name in TYPES}, threads=2)
    assert content(some) == content(one)


@given(st.lists(st.sampled_from(TEXTS), min_size=1, max_size=20), rows, st.integers(1, 400), st.integers(2, 5))
@examples(0.5)
def test_pieces_of_an_answer_are_cut_at_the_same_rows(texts, rows, most, n_threads):
    queries = make_queries(texts)

    one, several = (list(queries.match_batches(rows, most, threads=n)) for n in (1, n_threads))

    assert [(each.first_row, *content(each)) for each in several] == [(each.first_row, *content(each)) for each in one]


@pytest.mark.parametrize("text", ["x BETWEEN {} AND {}", "k = 'a' AND x BETWEEN {} AND {}"])
@given(
    st.lists(st.tuples(st.integers(0, 8), st.integers(0, 4)), min_size=1, max_size=20),
    st.sampled_from([None, "Lists", "Buckets", "Keyed"]),
    rows,
    st.integers(2, 5),
    st.integers(40, 4000),
)
@examples(0.5)
def test_counted_pieces_are_written_to_their_places(text, ranges, index, rows, n_threads, most):
    index = index if index is None or (index == "Keyed") == text.startswith("k") else None
    queries = QuerySet("x bigint, y double, k string", index=index)
    queries.add_many(range(len(ranges)), [text.format(low, low + width) for low, width in ranges])
    [part] = queries._compiled().compiled
    one = queries.match(rows, threads=1)

    assert content(queries.match(rows, threads=n_threads)) == content(one)
    if part.counts_first and len(rows) >= match.MIN_ROWS:
        with limited(n_threads), bounded(most):
            if one.nbytes > most:
                with pytest.raises(OverBudgetError):
                    queries.find_matches(rows)
            else:
                assert content(queries.find_matches(rows)) == content(one)


@pytest.mark.skipif(not IS_COMPILED, reason="thousands of boxes, over which no kernel differs")
@pytest.mark.parametrize("residual", ["", " AND a + b < 1.5"])
def test_a_batch_that_is_joined_is_joined_in_pieces(monkeypatch, residual):
    """By row, matches have another order, so all pieces must be answered in the same way."""
    random = np.random.default_rng(5)
    queries = QuerySet("a double, b double, c double", index="Dual")
    ends = np.sort(random.random((2, 3, 300)), axis=0).round(3)
    texts = [
        " AND ".join(f"{name} BETWEEN {low} AND {high}" for name, low, high in zip("abc", *ends[:, :, i], strict=True))
        for i in range(300)
    ]
    queries.add_many(range(300), [text + residual for text in texts])
    batch = {name: random.random(2000) for name in "abc"}
    [part] = queries._compiled().compiled
    for nanoseconds in (0.0, 1e9):
        object.__setattr__(part.groups[0].index, "nanoseconds", nanoseconds)
        answers = [content(queries.match(batch, threads=n)) for n in (1, 2, 5)]
        assert answers[0] == answers[1] == answers[2]


def test_an_answer_beyond_the_limit_is_refused_in_the_same_words(monkeypatch):
    queries = make_queries(["TRUE"] * 10 + ["x > 6"] * 300)
    monkeypatch.setattr(answer_limit, "settings", lambda: Settings(max_answer_bytes=10_000))
    skewed = {"x": [1] * 40 + [7] * 5, "y": [0.0] * 45, "k": ["a"] * 45}  # the last piece exceeds its share

    assert content(queries.match(skewed, threads=4)) == content(queries.match(skewed, threads=1))
    messages = []
    for n in (1, 4):
        with pytest.raises(AnswerError) as error:
            queries.match({"x": [7] * 45, "y": [0.0] * 45, "k": ["a"] * 45}, threads=n)
        messages.append(str(error.value))
    assert messages[0] == messages[1]


def test_a_query_that_cannot_be_evaluated_is_logged_once_by_its_id(monkeypatch, caplog):
    queries = make_queries(["x + y <> 3", "x > 2"])
    rows = {"x": np.arange(40), "y": np.zeros(40), "k": ["a"] * 40}
    raised._logged.clear()

    def fail(*_):
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(Residual, "try_evaluate", fail)
    with caplog.at_level(logging.ERROR):
        hits = queries.match(rows, threads=4)

    assert hits.n_failed == 40
    assert [message for message in caplog.messages if "'q0'" in message] == caplog.messages
    assert len(caplog.messages) == 1


def test_an_error_in_a_piece_is_raised():
    queries = make_queries(["x > 3"])
    [part] = queries._compiled().compiled

    class Broken:
        nbytes = 0

        def match(self, cells):
            raise MemoryError("no more")

    object.__setattr__(part.groups[0], "index", Broken())
    with pytest.raises(MemoryError, match="no more"):
        queries.match({"x": np.arange(40)}, threads=3)


def test_many_threads_of_a_program_match_at_once():
    queries = make_queries(TEXTS)
    batches = [{"x": np.arange(50) % (n + 1), "y": np.full(50, n / 9), "k": ["a"] * 50} for n in range(24)]
    expected = [content(queries.match(batch, threads=1)) for batch in batches]

    with ThreadPoolExecutor(8) as callers:
        assert [content(hits) for hits in callers.map(queries.match, batches)] == expected


def test_a_set_can_be_pickled_after_several_threads_have_used_it():
    queries = make_queries(TEXTS)
    rows = {"x": np.arange(50) % 9, "y": np.zeros(50), "k": ["a"] * 50}
    whole = queries.match(rows, threads=3)

    assert content(pickle.loads(pickle.dumps(queries)).match(rows, threads=2)) == content(whole)


def test_the_setting_is_the_default(set_limits, monkeypatch):
    queries = make_queries(TEXTS)
    counts = []
    monkeypatch.setattr(match_pieces, "count_pieces", lambda *n: counts.append(count_pieces(*n)) or counts[-1])
    rows = {"x": np.arange(100) % 9, "y": np.zeros(100), "k": ["a"] * 100}
    for n in (1, 2, 3):
        set_limits(threads=n)
        queries.match(rows)
    list(queries.match_batches(rows, threads=4))

    assert counts == [1, 4, 6, 8]


def test_an_invalid_number_of_threads_is_refused_before_rows_are_read():
    with pytest.raises(QueryError, match="threads must be an integer from 1 to 1,024"):
        make_queries(TEXTS).match(None, threads=0)
