"""Why a pair of rows meets a join query."""

from __future__ import annotations

import pytest

import vedette as vd


def make_pairs() -> vd.JoinQuerySet:
    pairs = vd.JoinQuerySet(left="symbol string, price double", right="symbol string, price double")
    pairs.add("near", "left.symbol = right.symbol AND left.price - right.price BETWEEN -0.5 AND 0.5", rows=100)
    return pairs


def test_a_pair_of_rows_is_explained_clause_by_clause():
    why = make_pairs().why("near", left={"symbol": "IBM", "price": 41.0}, right={"symbol": "IBM", "price": 40.25})

    assert not why.holds
    lines = str(why).splitlines()[2:]
    assert lines[0].endswith("  left.symbol is 'IBM', right.symbol is 'IBM'")
    assert lines[3].startswith("false       left.price - right.price <= 0.5 ")
    assert lines[3].endswith("left.price - right.price is 0.75, 0.25 above 0.5")


def test_a_pair_holds_exactly_when_it_joins():
    pairs = make_pairs()
    rows = [{"symbol": symbol, "price": price} for symbol in ("IBM", "SAP", None) for price in (1.0, 1.5, 2.0, None)]
    columns = {name: [row[name] for row in rows] for name in ("symbol", "price")}
    joined = {(pair["left"], pair["right"]) for pair in pairs.window().step(left=columns, right=columns).to_pylist()}

    for i, left in enumerate(rows):
        for j, right in enumerate(rows):
            assert pairs.why("near", left=left, right=right).holds == ((i, j) in joined)


def test_a_missing_stream_and_a_set_without_texts_are_refused():
    pairs = make_pairs()

    with pytest.raises(vd.QueryError, match=r"one row of each stream: left=\{...\}, right=\{...\}; got left"):
        pairs.why("near", left={})
    with pytest.raises(vd.QueryError, match="a file of joins has no texts"):
        vd.JoinQuerySet.from_bytes(pairs.to_bytes()).why("near", left={}, right={})
