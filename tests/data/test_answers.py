"""Answers: rows with their matches, cut before they grow too large."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vedette.data import answers
from vedette.data.matches import Matches
from vedette.data.row_sizes import bytes_per_row


def everything_matches(n_queries):
    """A matcher by which every row matches every query."""

    def match(batch):
        n = batch.num_rows
        return Matches(np.arange(n + 1, dtype=np.int64) * n_queries, np.tile(np.arange(n_queries, dtype=np.int32), n))

    return match


@pytest.mark.parametrize("output", ["pairs", "list"])
@pytest.mark.parametrize("pairs_at_once", [1, 7, 100, 10_000])
def test_answers_do_not_depend_on_how_they_are_cut(monkeypatch, output, pairs_at_once):
    monkeypatch.setattr(answers, "PAIRS_AT_ONCE", pairs_at_once)
    monkeypatch.setattr(answers, "_FIRST_ROWS", 2)
    ids = pa.array(["a", "b", "c"], pa.large_string())
    batches = [pa.record_batch({"x": list(range(start, start + 5))}) for start in (0, 5)]

    table = pa.Table.from_batches(answers.answer(iter(batches), everything_matches(3), ids, output))

    if output == "pairs":
        expected = [{"x": x, "query": query} for x in range(10) for query in "abc"]
    else:
        expected = [{"x": x, "queries": ["a", "b", "c"]} for x in range(10)]
    assert table.to_pylist() == expected


def test_a_batch_without_rows_keeps_its_schema():
    batch = pa.record_batch({"x": pa.array([], pa.int64())})

    (answer,) = answers.answer(iter([batch]), lambda part: Matches.none(0), pa.array([1, 2]), "pairs")

    assert answer.schema.names == ["x", "query"]
    assert answer.num_rows == 0


columns = st.sampled_from(
    [
        pa.array(["", "ab" * 9, None], pa.string()),
        pa.array([b"", b"ab" * 9, None], pa.large_binary()),
        pa.array([[], ["a", "bcd"] * 4, None], pa.list_(pa.string())),
        pa.array([{"a": "x", "b": [1]}, None, {"a": "yy" * 20, "b": [2] * 9}]),
        pa.array([[("k", "v")], None, [("k", "w" * 30)] * 3], pa.map_(pa.string(), pa.string())),
        pa.array(["x", "y", "x"]).dictionary_encode(),
        pa.array([1.5, None, 2.0]),
        pa.array([True, None, False]),
        pa.array([[1, 2], None, [3, 4]], pa.list_(pa.int64(), 2)),
    ]
)


@given(columns, st.lists(st.integers(0, 2), max_size=12), st.integers(0, 5), st.integers(1, 300), st.data())
def test_pieces_of_an_answer_stay_within_the_limit_for_any_columns(column, places, n_queries, most, data):
    ids = pa.array([f"query {number}" for number in range(n_queries)], pa.large_string())
    batch = pa.record_batch({"x": pa.array(range(len(places))), "y": column.take(pa.array(places, pa.int64()))})
    output = data.draw(st.sampled_from(["pairs", "list"]))

    def answer(batch_bytes):
        return list(answers.answer(iter([batch]), everything_matches(n_queries), ids, output, batch_bytes))

    pieces = answer(most)
    assert pa.Table.from_batches(pieces).to_pylist() == pa.Table.from_batches(answer(1 << 30)).to_pylist()
    for piece in pieces:
        added = bytes_per_row(piece.columns[-1]) if output == "list" else sum(map(bytes_per_row, piece.columns))
        assert piece.num_rows <= 1 or np.sum(added) <= most + 12 * piece.num_rows


def test_pairs_of_rows_with_long_texts_are_cut_before_they_are_copied():
    batch = pa.record_batch({"text": ["x" * 5000] * 3})
    ids = pa.array([f"q{number}" for number in range(20_000)])

    pieces = answers.answer(iter([batch]), everything_matches(20_000), ids, "pairs", 1 << 20)
    sizes = [(piece.num_rows, piece.nbytes) for piece in pieces]

    assert sum(n for n, _ in sizes) == 60_000
    assert max(n_bytes for _, n_bytes in sizes) <= 1 << 20
