"""round(value, places) with places of any size, against Spark."""

from __future__ import annotations

from decimal import Decimal

import vedette as vd

PLACES = (-1100, -400, -39, -19, -1, 0, 1, 30, 100, 400, 1100)  # with a billion, Spark itself fails
ROWS = [
    (1e308, 5, Decimal("1.50")),
    (-1e308, -5, Decimal("-1.55")),
    (2.5, 9223372036854775807, Decimal("99999999.99")),
    (5e-324, 0, Decimal("0.05")),
    (1.23456789e-300, -(2**63), None),
]


def test_rounding_to_any_number_of_places_keeps_what_spark_keeps(spark):
    schema = "x double, b bigint, d decimal(10,2)"
    texts = [f"round(x, {n}) = x" for n in PLACES]
    # Far to the left of the point, Spark fails the job for other types: the power of ten does not fit.
    texts += [f"round({field}, {n}) = {field}" for n in PLACES if n >= 0 for field in ("b", "d")]
    frame = spark.createDataFrame(ROWS, schema).coalesce(1)
    queries = vd.QuerySet(schema)
    queries.add_many(texts, texts)

    rows = frame.toArrow()
    found = queries.match(rows).to_arrow().to_pylist()

    for text in texts:
        wanted = sorted(map(str, frame.filter(text).collect()))
        kept = [pair["row"] for pair in found if pair["query"] == text]
        assert sorted(str(frame.collect()[row]) for row in kept) == wanted, text


def test_a_bigint_is_rounded_to_absurd_places_at_once():
    queries = vd.QuerySet("b bigint")
    queries.add("zero", "round(b, -1000000000) = 0")

    assert queries.match_one({"b": 5}) == ["zero"]
