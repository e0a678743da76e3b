"""Answers: rows beside their matches, cut where they would grow too large."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from vedette import answers
from vedette.matches import Matches


def everything_matches(n_queries):
    """A matcher by which every row matches every query."""

    def match(batch):
        n = batch.num_rows
        return Matches(np.arange(n + 1, dtype=np.int64) * n_queries, np.tile(np.arange(n_queries, dtype=np.int32), n))

    return match


@pytest.mark.parametrize("output", ["pairs", "list"])
@pytest.mark.parametrize("pairs_at_once", [1, 7, 100, 10_000])
def test_answers_are_the_same_however_they_are_cut(monkeypatch, output, pairs_at_once):
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
