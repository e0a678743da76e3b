"""Answers that would be too large: refused as a whole, delivered in pieces, in bounded memory."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from memory import run_alone

from tests.profiles import examples
from vedette import AnswerError, QuerySet
from vedette.data import answer_limit
from vedette.queries import query_set
from vedette.settings import Settings

# Boxes on one field and two, a query of several boxes, queries of no box, residuals on few and on all candidates.
TEXTS = [
    "x > 3", "x BETWEEN 1 AND 6", "x = 4", "k = 'a' AND x > 2", "k = 'b' AND x < 5", "x < 3 OR x > 5 OR y > 2",
    "y > 1 AND x < 7", "TRUE", "x + y > 6", "k LIKE '%a%' AND x > 1", "k LIKE 'b_'", "x > 2 AND x % 2 = 0", "y IS NULL",
]  # fmt: skip


@pytest.fixture
def limited(monkeypatch):
    def limit(max_answer_bytes):
        made = Settings(max_answer_bytes=max_answer_bytes, answer_batch_bytes=1000)
        monkeypatch.setattr(answer_limit, "settings", lambda: made)
        monkeypatch.setattr(query_set, "settings", lambda: made)

    return limit


def some_queries(texts, removed=()):
    queries = QuerySet("x bigint, y double, k string")
    queries.add_many([f"q{number}" for number in range(len(texts))], texts)
    queries.match({"x": [1], "y": [1.0], "k": ["a"]})
    for number in removed:
        queries.remove(f"q{number}")
    return queries


rows = st.lists(
    st.tuples(st.integers(0, 8), st.none() | st.floats(0, 4), st.none() | st.sampled_from(["a", "b", "ba", "c"])),
    max_size=40,
).map(lambda each: pa.table({n: pa.array([row[i] for row in each], t) for i, (n, t) in enumerate(TYPES.items())}))
TYPES = {"x": pa.int64(), "y": pa.float64(), "k": pa.string()}


@given(
    st.lists(st.sampled_from(TEXTS), min_size=1, max_size=40), st.sets(st.integers(0, 39), max_size=5), rows, st.data()
)
@examples(0.6)
def test_pieces_put_together_are_the_whole_answer(texts, removed, rows, data):
    queries = some_queries(texts, [number for number in removed if number < len(texts)])
    most = data.draw(st.integers(1, 400))
    whole, pieces = queries.match(rows), list(queries.match_batches(rows, max_bytes=most))

    joined = pa.concat_tables([piece.to_arrow() for piece in pieces])
    assert joined.sort_by([("row", "ascending"), ("query", "ascending")]).equals(
        whole.to_arrow().sort_by([("row", "ascending"), ("query", "ascending")])
    )
    assert joined["row"].to_pylist() == whole.to_arrow()["row"].to_pylist()
    assert [piece.first_row for piece in pieces] == np.cumsum([0, *map(len, pieces)])[:-1].tolist()
    assert sum(map(len, pieces)) == rows.num_rows
    assert sum(piece.n_failed for piece in pieces) == whole.n_failed
    assert all(4 * len(piece.positions) <= most or len(piece) == 1 for piece in pieces)


def test_an_answer_beyond_the_limit_is_refused_with_what_would_work(limited):
    queries = some_queries(["TRUE"] * 50)
    limited(4000)

    assert len(queries.match({"x": [1] * 20}).positions) == 1000
    with pytest.raises(AnswerError) as error:
        queries.match({"x": [1] * 30})
    assert str(error.value) == (
        "the answer has more than 1,000 pairs, after 30 of 30 rows; the limit is 4,000 bytes (setting "
        "max_answer_bytes): match fewer rows at once, or get the answer in pieces with match_batches"
    )
    assert sum(len(piece.positions) for piece in queries.match_batches({"x": [1] * 30})) == 1500


def test_an_answer_within_the_limit_is_given_though_its_candidates_are_not(limited):
    queries = some_queries([f"x > 0 AND x + y = {number}" for number in range(100)])
    rows = {"x": list(range(60)), "y": [0.0] * 60}
    expected = queries.match(rows).positions.tolist()
    limited(400)

    assert queries.match(rows).positions.tolist() == expected == list(range(1, 60))


def test_a_table_of_pairs_beyond_the_limit_is_refused_before_its_ids_are_copied(limited):
    queries = QuerySet("x bigint")
    queries.add_many(["a" * 1000, "b" * 1000], ["x > 0", "x > 1"])
    hits = queries.match({"x": [2] * 50})
    limited(50_000)

    with pytest.raises(AnswerError, match=r"has 100 pairs in 101,200 bytes.*take the ids from `ids`"):
        hits.to_arrow()
    assert len(hits.ids.dictionary) == 2


@pytest.mark.parametrize("n_removed", [0, 1])
def test_every_piece_can_be_converted_for_ids_of_any_length(limited, n_removed):
    queries = QuerySet("x bigint")
    ids = [f"{number}{'i' * 200 * number}" for number in range(6)]
    queries.add_many(ids, ["x > 2"] * 6)
    rows = {"x": np.arange(40) % 7}
    queries.match(rows)
    queries.remove_many(ids[:n_removed])
    expected = queries.match(rows).to_arrow().to_pylist()
    limited(4_000)  # one row alone takes 3,000

    pieces = list(queries.match_batches(rows, max_bytes=300))

    assert [line for piece in pieces for line in piece.to_arrow().to_pylist()] == expected
    assert sum(len(piece) for piece in pieces) == 40
    limited(100)  # less than a row takes
    assert [line for piece in queries.match_batches(rows) for line in piece.to_arrow().to_pylist()] == expected


def test_ids_of_removed_queries_are_not_in_the_dictionary_of_an_answer():
    queries = some_queries(["x > 0"] * 3, removed=[1])
    queries.add("q1", "x > 1")

    hits = queries.match({"x": [1, 2]})

    assert sorted(hits.ids.to_pylist()) == ["q0", "q0", "q1", "q2", "q2"]
    assert sorted(hits.ids.dictionary.to_pylist()) == ["q0", "q1", "q2"]


SETTINGS = {"VEDETTE_MAX_ANSWER_BYTES": str(4 << 20), "VEDETTE_ANSWER_BATCH_BYTES": str(1 << 20)}


@pytest.mark.parametrize(
    ("n_queries", "text", "n_quiet", "n_wide"),
    [
        (20_000, "TRUE", 0, 100_000),
        (1_000_000, "TRUE", 0, 2_000),
        (20_000, "x > 0 AND y > 0", 16_384, 50_000),
        (20_000, "x > 0 AND k LIKE '%a%'", 16_384, 60),
    ],
)
@pytest.mark.full
def test_memory_is_bounded_for_any_queries_and_rows(n_queries, text, n_quiet, n_wide):
    reported = run_alone(
        f"""
        import numpy as np, pyarrow as pa, vedette as vd
        queries = vd.QuerySet("x bigint, y bigint, k string")
        queries.add_many(np.arange({n_queries}), [{text!r}] * {n_queries})
        x = np.repeat(np.array([0, 1]), [{n_quiet}, {n_wide}])
        k = pa.array(np.array(["b" * 9, "a" * 500]), pa.string()).take(pa.array(x))
        rows = pa.table({{"x": x, "y": x, "k": k}})
        list(queries.match_batches(rows.slice(0, 300)))
        queries.match(rows.slice({n_quiet}, 1))
        with Peak() as peak:
            n_pairs = 0
            for piece in queries.match_batches(rows):
                n_pairs += len(piece.positions)
                if n_pairs > 2_000_000:
                    break
            try:
                queries.match(rows)
            except vd.AnswerError as error:
                print(error)
        print(peak.megabytes, n_pairs)
        """,
        **SETTINGS,
    ).splitlines()

    assert "(setting max_answer_bytes)" in reported[0]
    megabytes, n_pairs = map(int, reported[1].split())
    assert n_pairs > min(2_000_000, n_queries * n_wide) * 0.5
    assert megabytes < 300
