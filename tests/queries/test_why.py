"""Why a row matches a query: the truth of the whole is the answer of a match, and each clause says by how much."""

from __future__ import annotations

import datetime as dt
import itertools
import json
import random
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from strategies import SCHEMA, Maker

import vedette as vd

FIELDS = "symbol string, price double, n bigint, tags array<string>, ts timestamp, d date, lon double, lat double"
ROW = {
    "symbol": "MSFT",
    "price": 41.5,
    "n": 7,
    "tags": ["a", "x"],
    "ts": dt.datetime(2026, 1, 1, tzinfo=dt.UTC),
    "d": dt.date(2024, 1, 1),
    "lon": 1.0,
    "lat": 2.0,
}
SQUARE = "POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0))"


def why_of(text: str, row: dict[str, Any] | None = None, **options: Any) -> vd.Why:
    queries = vd.QuerySet(FIELDS)
    queries.add("q", text)
    return queries.why("q", ROW if row is None else row, **options)


def check_same_as_match(queries: vd.QuerySet, row: dict[str, Any]) -> None:
    found = queries.match_one(row)
    for query_id in queries.ids.to_pylist():
        why = queries.why(query_id, row)
        assert why.holds == (query_id in found), f"{why}\n{why.text}\n{row}"
        assert json.loads(json.dumps(why.to_dict(), allow_nan=False))["holds"] == why.holds
        assert str(why).startswith(f"query {query_id!r} ")


@pytest.mark.parametrize("seed", range(6))
def test_the_whole_is_true_exactly_when_the_row_matches(seed):
    maker = Maker(random.Random(seed), hostile=True)
    queries = vd.QuerySet(SCHEMA)
    for number in range(12):
        try:
            queries.add(number, maker.predicate(2).ours)
        except vd.QueryError:
            continue
    rows = maker.rows(6)
    loaded = vd.QuerySet.from_bytes(queries.to_bytes())
    for place in range(6):
        row = {name: values[place] for name, values in rows.items()}
        check_same_as_match(queries, row)
        check_same_as_match(loaded, row)  # it has no texts


@pytest.mark.parametrize("seed", range(2))
def test_arrays_and_geofences_are_explained_as_they_match(seed):
    source = random.Random(seed)
    texts = [
        "array_contains(tags, 'x')",
        "exists(tags, t -> t > 'a') AND NOT forall(tags, t -> t <> 'b')",
        "arrays_overlap(tags, array('a', 'b')) OR tags[1] = 'x'",
        f"ST_Contains(ST_GeomFromText('{SQUARE}'), ST_Point(lon, lat)) AND price > 1",
        f"NOT ST_Intersects(ST_GeomFromText('{SQUARE}'), ST_Point(lon, lat + 1))",
        "ST_DWithin(ST_Point(lon, lat), ST_Point(1, 1), 1.5) OR n / (n - 1) > 1",
        "ST_DWithin(ST_Point(lon, lat), ST_Point(0, 2), 150000, TRUE)",
        "symbol LIKE '%S%' AND ts > TIMESTAMP '2026-01-01' - INTERVAL 1 DAY",
    ]
    queries = vd.QuerySet(FIELDS)
    queries.add_many(list(range(len(texts))), texts)
    loaded = vd.QuerySet.from_bytes(queries.to_bytes())
    for _ in range(20):
        row = {
            "symbol": source.choice(["MSFT", "IBM", None]),
            "price": source.choice([0.0, 1.5, float("nan"), None]),
            "n": source.choice([0, 1, 2, None]),
            "tags": source.choice([[], ["a", "x"], [None, "b"], ["x", None], None]),
            "ts": source.choice([ROW["ts"], None]),
            "lon": source.choice([-1.0, 0.0, 1.0, 4.0, float("inf"), None]),
            "lat": source.choice([0.0, 2.5, 4.0, 9.0, None]),
        }
        check_same_as_match(queries, row)
        check_same_as_match(loaded, row)


def test_maps_dates_in_arrays_and_local_times_are_explained_as_they_match():
    queries = vd.QuerySet("m map<string,double>, k map<string,bigint>, a array<date>, z timestamp_ntz")
    texts = [
        "m['a'] > 3 AND z < TIMESTAMP_NTZ '2026-01-01 00:00:00'",
        "exists(a, d -> d > DATE '2024-01-01')",
        "m['a'] IN (1, 2) OR k['b'] BETWEEN 1 AND 3",
        "map_contains_key(m, 'a') AND m['b'] IS NULL",
    ]
    queries.add_many(list(range(len(texts))), texts)
    loaded = vd.QuerySet.from_bytes(queries.to_bytes())
    times = [dt.datetime(2025, 1, 1), dt.datetime(2027, 1, 1), None]
    for m, k, a, z in itertools.product(
        [{"a": 4.0}, {"b": 1.0}, {}, None], [{"b": 3}, None], [[dt.date(2024, 2, 1), None], [], None], times
    ):
        row = {"m": m, "k": k, "a": a, "z": z}
        check_same_as_match(queries, row)
        check_same_as_match(loaded, row)


@pytest.mark.parametrize(
    ("text", "truth", "distance", "detail"),
    [
        ("price < 40", "false", 1.5, "price is 41.5, 1.5 above 40"),
        ("price < 42", "true", 0.5, "price is 41.5, 0.5 below 42"),
        ("40 > price", "false", 1.5, "price is 41.5, 1.5 above 40"),
        ("price >= 41.5", "true", 0.0, "price is 41.5, equal to 41.5"),
        ("n + 1 > 10", "false", 2.0, "n is 7, n + 1 is 8, 2 below 10"),
        ("symbol = 'IBM'", "false", None, "symbol is 'MSFT', not 'IBM'"),
        ("symbol IN ('A', 'B')", "false", None, "symbol is 'MSFT', none of 'A', 'B'"),
        ("n IN (3, 9)", "false", 2.0, "n is 7, the nearest is 2 below 9"),
        ("symbol LIKE 'I%'", "false", None, "symbol is 'MSFT', the pattern is 'I%'"),
        ("symbol RLIKE 'M.*'", "true", None, "symbol is 'MSFT', the pattern is 'M.*'"),
        ("symbol IS NULL", "false", None, "symbol is 'MSFT'"),
        ("d < DATE '2024-03-01'", "true", 5184000.0, "d is 2024-01-01, 60 days before 2024-03-01"),
        (
            "ts > TIMESTAMP '2026-01-01 01:30:00'",
            "false",
            5400.0,
            "ts is 2026-01-01 00:00:00, 1 hour 30 minutes before 2026-01-01 01:30:00",
        ),
        ("array_contains(tags, 'x')", "true", None, "tags is ['a', 'x'], element 1 meets it: 'x'"),
        ("forall(tags, t -> t = 'a')", "false", None, "tags is ['a', 'x'], element 1 fails it: 'x'"),
        ("exists(tags, t -> t = 'b')", "false", None, "tags is ['a', 'x'], none of 2"),
        (
            "ST_DWithin(ST_Point(lon, lat), ST_Point(1, 0), 0.5)",
            "false",
            1.5,
            "lon is 1, lat is 2, 2 from the centre, 1.5 outside of the circle",
        ),
        (
            f"ST_Contains(ST_GeomFromText('{SQUARE}'), ST_Point(lon, lat))",
            "true",
            1.0,
            "lon is 1, lat is 2, 1 inside of the border",
        ),
        ("n / (n - 7) > 1", "failed", None, "n is 7, n / (n - 7) is null; the evaluation fails, which counts as null"),
    ],
)
def test_a_clause_says_by_how_much_it_holds_or_misses(text, truth, distance, detail):
    clause = why_of(text).clause

    assert (clause.truth, clause.distance, clause.detail) == (truth, distance, detail)


def test_distances_on_the_earth_are_in_metres():
    clause = why_of("ST_DWithin(ST_Point(lon, lat), ST_Point(1, 2.01), 500, TRUE)").clause

    assert clause.text == "ST_DistanceSpheroid(ST_Point(lon, lat), ST_Point(1, 2.01)) <= 500"
    assert clause.distance == pytest.approx(605.756, abs=0.001)
    assert clause.detail.endswith("605.756 metres more than 500")


def test_a_null_is_said_and_makes_its_clause_null():
    clause = why_of("price < 40", ROW | {"price": None}).clause

    assert (clause.truth, clause.detail, clause.values) == ("null", "price is null", {"price": None})


def test_the_text_is_a_tree():
    why = why_of("symbol = 'IBM' AND (price BETWEEN 3 AND 5 OR NOT n > 3)")

    assert str(why).splitlines() == [
        "query 'q' does not match",
        "false   AND",
        "false     symbol = 'IBM'  symbol is 'MSFT', not 'IBM'",
        "false     OR",
        "false       AND",
        "true          price >= 3  price is 41.5, 38.5 above 3",
        "false         price <= 5  price is 41.5, 36.5 above 5",
        "false       NOT",
        "true          n > 3       n is 7, 4 above 3",
    ]


def test_values_are_written_as_json_can_hold_them():
    queries = vd.QuerySet("m decimal(10,2), v binary, x double, ts timestamp")
    queries.add("q", "m > 1.5 AND v = X'FF' AND x < 3 AND ts > TIMESTAMP '2026-01-01'")
    row = {"m": Decimal("2.25"), "v": b"\xff", "x": float("nan"), "ts": dt.datetime(2026, 1, 2)}

    values = [clause["values"] for clause in queries.why("q", row).to_dict()["condition"]["clauses"]]

    assert values == [{"m": "2.25"}, {"v": "ff"}, {"x": "NaN"}, {"ts": "2026-01-02T00:00:00+00:00"}]


def test_boxes_are_described_by_their_ends():
    queries = vd.QuerySet(FIELDS)
    queries.add_boxes(["b"], {"price": ([3.0], [5.0]), "n": ([7], [None])}, closed="left")

    why = queries.why("b", ROW)

    assert (why.holds, why.text) == (False, None)
    assert [clause.text for clause in why.clause.clauses] == ["price >= 3", "price < 5", "n >= 7"]


def test_now_is_the_given_moment():
    now = dt.datetime(2026, 1, 1, 0, 10, tzinfo=dt.UTC)
    why = why_of("ts > now() - INTERVAL 5 MINUTES", now=now)

    assert not why.holds
    assert why.clause.distance == 300
    assert why_of("ts > now() - INTERVAL 15 MINUTES", now=now).holds


def test_a_set_without_texts_explains_ranges_of_now():
    queries = vd.QuerySet(FIELDS)
    queries.add("q", "ts > now() - INTERVAL 5 MINUTES")
    loaded = vd.QuerySet.from_bytes(queries.to_bytes())

    clause = loaded.why("q", ROW, now=dt.datetime(2026, 1, 1, 0, 10, tzinfo=dt.UTC)).clause

    assert (clause.text, clause.truth) == ("ts - now() > INTERVAL -5 MINUTES", "false")
    assert clause.detail == "ts - now() is -10 minutes, 5 minutes before -5 minutes"


def test_texts_follow_their_queries_through_changes_and_compaction():
    queries = vd.QuerySet("n bigint")
    queries.add_many(np.arange(10_000), [f"n > {number}" for number in range(10_000)])
    queries.add_boxes(np.arange(10_000, 10_010), {"n": ([5] * 10, [6] * 10)})
    queries.replace(7000, "n < 3")
    queries.remove_many(np.arange(0, 6000))

    queries.compact()

    assert queries.why(9999, {"n": 5}).text == "n > 9999"
    assert queries.why(7000, {"n": 5}).text == "n < 3"
    assert queries.why(10_003, {"n": 5}).text is None
    assert queries.why(10_003, {"n": 5}).holds


def test_an_unknown_id_a_bad_value_and_a_misspelt_field_are_refused():
    queries = vd.QuerySet(FIELDS)
    queries.add("q", "price < 40")

    with pytest.raises(vd.QueryError, match="no query 'p' in this set"):
        queries.why("p", ROW)
    with pytest.raises(vd.RowError, match="field 'price' is double; cannot read 'cheap' as one"):
        queries.why("q", {"price": "cheap"})
    with pytest.raises(vd.RowError, match="has 'prize', which is not a field"):
        queries.why("q", {"prize": 3.0})
    with pytest.raises(vd.RowError, match="a row must be a dict"):
        queries.why("q", [3.0])
