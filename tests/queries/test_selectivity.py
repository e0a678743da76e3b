"""Selectivity: a set may refuse queries that match too large a share of a sample."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import vedette as vd
from vedette.errors import QueryError, RowError

SCHEMA = "x double, s string"
SAMPLE = {"x": np.arange(100.0), "s": ["a", "b"] * 50}


def make(share: float = 0.5) -> vd.QuerySet:
    return vd.QuerySet(SCHEMA, sample=SAMPLE, max_match_share=share)


def test_a_query_that_matches_more_than_its_share_of_the_sample_is_refused():
    queries = make()
    queries.add("half", "x < 50")
    broad = (
        r"query 'most' matches 51% of the 100 rows of the sample, more than 50%; narrow it, or raise max_match_share"
    )

    with pytest.raises(QueryError, match=broad):
        queries.add("most", "x < 51")
    with pytest.raises(QueryError, match="query 'half' matches 100% of the 100 rows"):
        queries.replace("half", "TRUE")
    with pytest.raises(QueryError, match="query 'r' matches 99%"):
        queries.add("r", "x + 1 > 1 AND length(s) = 1")
    with pytest.raises(QueryError, match=r"query 2 matches 60% .*; so do 2 other queries"):
        make().add_boxes([1, 2, 3, 4], {"x": ([0.0] * 4, [49.0, 59.0, 69.0, 79.0])})
    with pytest.raises(QueryError, match="query 'b'"):
        queries.add_many(["a", "b"], ["x < 3", "x < 97"])

    assert (len(queries), queries.version) == (1, 1)
    assert queries.match_one({"x": 3.0, "s": "a"}) == ["half"]


def test_shares_are_counted_exactly_for_any_queries():
    highs = np.arange(300) % 101
    refused = highs > 30

    queries = vd.QuerySet(SCHEMA, sample=SAMPLE, max_match_share=0.3)
    queries.add_many([f"q{i}" for i in np.flatnonzero(~refused)], [f"x < {high}" for high in highs[~refused]])
    for high in highs[refused][:70]:
        with pytest.raises(QueryError, match=rf"matches {high}% of"):
            queries.add("no", f"x < {high} OR x IN ({high - 1}, {high - 1}.0)")


def test_check_warns_of_a_query_that_matches_a_large_share_of_a_sample():
    reported = (
        "matches 80% of the 100 rows of the sample, more than 10%: the query matches about that share of all rows"
    )

    assert vd.QuerySet(SCHEMA).check("x < 80", sample=SAMPLE)[0].startswith(reported)
    assert vd.QuerySet(SCHEMA).check("x < 10", sample=pa.table(SAMPLE)) == []
    assert vd.QuerySet(SCHEMA).check("x < 80") == []
    assert "more than 50%" in make().check("x < 80")[0]
    assert make().check("x < 40") == []
    assert [each.partition(":")[0] for each in vd.QuerySet(SCHEMA).check("TRUE", sample=SAMPLE)] == [
        "always true",
        "matches 100% of the 100 rows of the sample, more than 10%",
    ]


def test_a_sample_need_not_have_fields_that_no_query_uses():
    queries = vd.QuerySet(SCHEMA, sample={"x": [1.0, 2.0]}, max_match_share=0.5)
    queries.add("a", "x < 2")

    for text in ("s = 'a'", "s IS NULL", "length(s) = 1"):
        with pytest.raises(QueryError, match="query 'b' uses field 's', which the sample lacks; give a sample"):
            queries.add_many(["c", "b"], ["x < 2", text])
        with pytest.raises(QueryError, match="the query uses field 's', which the sample lacks"):
            queries.check(text)
    assert len(queries) == 1


def test_a_sample_may_be_a_stream_that_can_be_read_only_once():
    stream = pa.table(SAMPLE).to_reader()

    queries = vd.QuerySet(SCHEMA, sample=stream, max_match_share=0.5)

    with pytest.raises(QueryError, match="matches 51% of the 100 rows"):
        queries.add("most", "x < 51")
    assert vd.QuerySet(SCHEMA).check("x < 80", sample=pa.table(SAMPLE).to_reader()) != []


@pytest.mark.parametrize("share", [0, -1, 1.5, float("nan"), "0.5", True, None])
def test_a_share_is_a_number_between_0_and_1_and_needs_a_sample(share):
    with pytest.raises(QueryError, match="max_match_share"):
        vd.QuerySet(SCHEMA, sample=SAMPLE, max_match_share=share)
    with pytest.raises(QueryError, match="max_match_share needs sample"):
        vd.QuerySet(SCHEMA, max_match_share=0.5)
    with pytest.raises(RowError, match="a sample must have 1 to 100,000 rows; got 0"):
        vd.QuerySet(SCHEMA, sample={"x": np.empty(0)}, max_match_share=0.5)


def test_many_queries_are_matched_in_pieces(monkeypatch):
    monkeypatch.setattr("vedette.queries.selectivity._PAIRS_AT_ONCE", 1000)
    queries = make()

    with pytest.raises(QueryError, match=r"query 0 matches 100% .* so do 299 other queries"):
        queries.add_many(list(range(300)), ["x > -1"] * 300)
    queries.add_many(list(range(300)), ["x < 50"] * 300)
    assert len(queries) == 300


def test_a_set_with_a_sample_is_saved_without_it(tmp_path):
    queries = make()
    queries.add("a", "x < 3")
    queries.save(tmp_path / "set")

    loaded = vd.QuerySet.load(tmp_path / "set")
    loaded.add("b", "TRUE")
    assert sorted(loaded.match_one({"x": 1.0, "s": None})) == ["a", "b"]
