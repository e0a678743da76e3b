"""Matching of DataFrames: schema, kept columns, batch and stream, errors."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest
from pyspark.sql import functions as f
from pyspark.sql.types import ArrayType, LongType, StringType

import vedette as vd
from vedette import spark as vs

SCHEMA = "symbol string, price double, volume bigint, ts timestamp"
TEXTS = {
    "cheap-ibm": "symbol = 'IBM' AND price < 40",
    "any-cheap": "price < 10",
    "block": "volume >= 1000",
    "late": "ts >= TIMESTAMP '2026-03-02 15:00:00'",
    "unpriced": "price IS NULL",
    "never": "price < 1 AND price > 2",
}


@pytest.fixture(scope="module")
def alerts():
    queries = vd.QuerySet(SCHEMA)
    queries.add_many(list(TEXTS), list(TEXTS.values()))
    return queries


@pytest.fixture(scope="module")
def ticks(spark):
    rows = [
        (1, "IBM", 39.5, 10, "2026-03-02 14:00:00", [1, 2]),
        (2, "IBM", 40.0, 1000, "2026-03-02 15:00:00", []),
        (3, "SAP", 9.99, 999, "2026-03-02 15:00:01", None),
        (4, None, None, None, None, [3]),
        (5, "SAP", float("nan"), 5000, "2026-03-02 14:59:59", [4]),
        (6, "ABC", 100.0, 1, "2026-03-02 14:59:59", [4]),
    ]
    made = spark.createDataFrame(rows, "id int, symbol string, price double, volume bigint, ts string, more array<int>")
    return made.withColumn("ts", f.col("ts").cast("timestamp")).repartition(3)


def pairs_by_filter(ticks):
    """The rows that Spark's own filter keeps, per query."""
    return {(row["id"], name) for name, text in TEXTS.items() for row in ticks.filter(text).collect()}


def test_pairs_are_those_that_filter_keeps(ticks, alerts):
    hits = ticks.transform(vs.match(alerts)).collect()

    assert len(hits) == len({(row["id"], row["query"]) for row in hits})
    assert {(row["id"], row["query"]) for row in hits} == pairs_by_filter(ticks)


def test_list_output_has_one_row_per_row_and_an_empty_array_without_matches(ticks, alerts):
    hits = {row["id"]: sorted(row["queries"]) for row in ticks.transform(vs.match(alerts, output="list")).collect()}

    expected = {row["id"]: [] for row in ticks.collect()}
    for row_id, name in sorted(pairs_by_filter(ticks), key=lambda pair: pair[1]):
        expected[row_id].append(name)
    assert hits == expected
    assert hits[6] == []


def test_all_columns_of_the_row_are_kept_as_they_were(ticks, alerts):
    hits = ticks.transform(vs.match(alerts, output="list"))

    assert hits.schema.fields[:-1] == ticks.schema.fields
    assert hits.schema["queries"].dataType == ArrayType(StringType(), False)
    kept = hits.drop("queries")
    assert kept.exceptAll(ticks).count() == 0
    assert ticks.exceptAll(kept).count() == 0


def test_integer_ids_give_a_bigint_column(ticks):
    queries = vd.QuerySet(SCHEMA)
    queries.add(2**40, "price < 10")

    hits = ticks.transform(vs.match(queries))

    assert hits.schema["query"].dataType == LongType()
    assert [(row["id"], row["query"]) for row in hits.collect()] == [(3, 2**40)]


@pytest.mark.fast
def test_a_streaming_frame_gives_the_same_pairs_as_a_batch(spark, ticks, alerts, tmp_path):
    ticks.write.parquet(str(tmp_path / "ticks"))
    stream = spark.readStream.schema(ticks.schema).option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "ticks"))
    hits = stream.transform(vs.match(alerts))

    assert hits.isStreaming
    writer = hits.writeStream.format("parquet").option("path", str(tmp_path / "hits"))
    query = writer.option("checkpointLocation", str(tmp_path / "state")).trigger(availableNow=True).start()
    query.awaitTermination()

    assert {
        (row["id"], row["query"]) for row in spark.read.parquet(str(tmp_path / "hits")).collect()
    } == pairs_by_filter(ticks)


def test_a_watermark_before_the_match_is_kept(spark, ticks, alerts, tmp_path):
    ticks.write.parquet(str(tmp_path / "ticks"))
    stream = spark.readStream.schema(ticks.schema).parquet(str(tmp_path / "ticks"))
    counts = (
        stream.withWatermark("ts", "1 minute")
        .transform(vs.match(alerts))
        .groupBy(f.window("ts", "10 minutes"), "query")
        .count()
    )
    writer = counts.writeStream.format("parquet").option("path", str(tmp_path / "counts")).outputMode("append")
    writer.option("checkpointLocation", str(tmp_path / "state")).trigger(availableNow=True).start().awaitTermination()

    found = {(row["query"], row["count"]) for row in spark.read.parquet(str(tmp_path / "counts")).collect()}
    assert ("cheap-ibm", 1) in found


def test_narrower_columns_and_names_in_another_case_are_read(spark):
    queries = vd.QuerySet("price double, volume bigint, total decimal(12,2)")
    queries.add_many(["p", "v", "t"], ["price < 1.5", "volume = 7", "total >= 10.25"])
    rows = spark.createDataFrame([(1.25, 7, Decimal("10.3"))], "Price float, VOLUME smallint, total decimal(5,1)")

    hits = rows.transform(vs.match(queries, output="list")).collect()

    assert sorted(hits[0]["queries"]) == ["p", "t", "v"]


NARROW = [(127, 32767, 2**31 - 1, 0.1, b"\xff"), (-128, -32768, -(2**31), 0.5, b""), (None,) * 5, (5, 5, 5, 5.0, b"a")]


@pytest.mark.fast
def test_fields_of_narrow_types_mean_what_filter_means(spark):
    schema = "y tinyint, h smallint, i int, f float, k binary"
    texts = [
        "y + y > 0",
        "h * 2S < 0",
        "i + 1 > 0",
        "f = 0.1F",
        "f = 0.1",
        "f > 0.1",
        "k > X'7F'",
        "i & 1 = 1",
        "y > 127.5",
    ]
    queries = vd.QuerySet(schema)
    queries.add_many(texts, texts)
    rows = spark.createDataFrame(NARROW, schema)
    tried = {
        "y + y > 0": "try_add(y, y) > 0",
        "h * 2S < 0": "try_multiply(h, 2S) < 0",
        "i + 1 > 0": "try_add(i, 1) > 0",
    }

    found = {(row["query"], row["y"]) for row in rows.transform(vs.match(queries)).collect()}

    assert found == {(text, row["y"]) for text in texts for row in rows.filter(tried.get(text, text)).collect()}


def test_a_column_that_is_wider_than_its_field_is_refused(spark):
    queries = vd.QuerySet("i int, f float")
    queries.add_many(["i", "f"], ["i > 1", "f > 1"])

    with pytest.raises(vd.RowError, match="field 'i' is int in the query set but bigint"):
        spark.createDataFrame([(1, 1.0)], "i bigint, f float").transform(vs.match(queries))
    with pytest.raises(vd.RowError, match="field 'f' is float in the query set but double"):
        spark.createDataFrame([(1, 1.0)], "i int, f double").transform(vs.match(queries))


def test_only_fields_that_queries_use_are_required(spark):
    queries = vd.QuerySet(SCHEMA)
    queries.add("cheap", "price < 10")
    rows = spark.createDataFrame([(5.0, "no bigint")], "price double, volume string")

    assert rows.transform(vs.match(queries)).count() == 1


def test_an_empty_frame_and_an_empty_set_have_the_schema_and_no_pairs(spark, ticks, alerts):
    assert ticks.limit(0).transform(vs.match(alerts)).collect() == []
    empty = vd.QuerySet(SCHEMA)
    assert ticks.transform(vs.match(empty)).collect() == []
    assert {tuple(row["queries"]) for row in ticks.transform(vs.match(empty, output="list")).collect()} == {()}


def test_the_set_is_read_when_the_transform_is_applied(ticks):
    queries = vd.QuerySet(SCHEMA)
    queries.add("a", "price < 10")
    hits = ticks.transform(vs.match(queries))
    queries.add("b", "price < 10")

    assert {row["query"] for row in hits.collect()} == {"a"}
    assert {row["query"] for row in ticks.transform(vs.match(queries)).collect()} == {"a", "b"}


def test_the_error_about_a_missing_field_suggests_the_nearest_column(ticks, alerts):
    with pytest.raises(
        vd.RowError, match=r"the DataFrame has no column 'symbol', but the queries use this .* did you mean 'symbl'"
    ):
        ticks.withColumnRenamed("symbol", "symbl").transform(vs.match(alerts))


def test_a_field_of_the_wrong_type_is_an_error(ticks, alerts):
    with pytest.raises(vd.RowError, match=r"'price' is double in the query set but string in the DataFrame; cast"):
        ticks.withColumn("price", f.col("price").cast("string")).transform(vs.match(alerts))


def test_a_timestamp_without_a_zone_is_refused_with_a_hint(ticks, alerts):
    with pytest.raises(vd.RowError, match=r"timestamp_ntz in the DataFrame; cast it to timestamp"):
        ticks.withColumn("ts", f.col("ts").cast("timestamp_ntz")).transform(vs.match(alerts))


@pytest.mark.parametrize(("output", "column"), [("pairs", "query"), ("list", "Queries")])
def test_a_column_of_the_added_name_is_refused(ticks, alerts, output, column):
    with pytest.raises(vd.PipelineError, match=rf"already has a column '{column}'.*rename it first"):
        ticks.withColumn(column, f.lit(1)).transform(vs.match(alerts, output=output))


def test_two_columns_of_one_name_are_refused(ticks, alerts):
    with pytest.raises(vd.RowError, match="2 columns named 'price'"):
        ticks.withColumn("other", f.lit(1.0)).toDF(*ticks.columns, "PRICE").transform(vs.match(alerts))


def test_a_session_in_another_time_zone_is_refused(spark, ticks, alerts):
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:
        with pytest.raises(vd.PipelineError, match=r"time zone is 'Europe/Berlin' but the query set's is 'UTC'; set"):
            ticks.transform(vs.match(alerts))
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_an_unknown_output_is_refused(alerts):
    with pytest.raises(vd.PipelineError, match="output must be one of: 'pairs', 'list'; got 'rows'"):
        vs.match(alerts, output="rows")


@pytest.mark.parametrize("output", ["pairs", "list"])
def test_rows_with_long_texts_and_very_many_matches_are_answered_in_bounded_batches(spark, output):
    n_queries, n_rows = 20_000, 22  # as pairs, 2.2 GB of text: more than an Arrow array of strings holds
    queries = vd.QuerySet("x bigint")
    queries.add_many(np.arange(n_queries), ["TRUE"] * n_queries)
    rows = spark.range(n_rows).select(f.col("id").alias("x"), f.repeat(f.lit("ab"), 2500).alias("text")).coalesce(1)

    hits = rows.transform(vs.match(queries, output=output))

    if output == "pairs":
        counted = hits.selectExpr("count(*)", "count(DISTINCT x, query)", "min(length(text))").first()
        assert tuple(counted) == (n_queries * n_rows, n_queries * n_rows, 5000)
    else:
        assert tuple(hits.selectExpr("count(*)", "sum(size(queries))").first()) == (n_rows, n_queries * n_rows)


def test_now_is_one_moment_for_all_rows_of_a_batch(spark):
    queries = vd.QuerySet("ts timestamp, n bigint")
    queries.add("same", "ts = now()")
    queries.add("recent", "ts > now() - INTERVAL 5 MINUTES AND n > 5")
    queries.add("old", "ts < current_timestamp - INTERVAL 5 MINUTES")
    rows = spark.range(10).selectExpr("id AS n").repartition(3).withColumn("ts", f.current_timestamp())

    found = rows.transform(vs.match(queries))

    assert found.columns == ["n", "ts", "query"], "the column of the moment is not part of the answer"
    kept = sorted((row["n"], row["query"]) for row in found.collect())
    assert kept == sorted([(n, "same") for n in range(10)] + [(n, "recent") for n in range(6, 10)])
    lists = rows.transform(vs.match(queries, "list", observe="moments")).collect()
    assert sorted(len(row["queries"]) for row in lists) == [1] * 6 + [2] * 4


def test_maps_local_times_and_arrays_of_any_type_match_as_filter_keeps(spark):
    rows = spark.sql(
        """SELECT * FROM VALUES
        (1, map('price', 39.5D, 'tax', 2D), TIMESTAMP_NTZ '2024-03-01 10:00:00', array(DATE '2024-03-01'), array(1Y)),
        (2, map('price', CAST(NULL AS DOUBLE)), TIMESTAMP_NTZ '2024-03-01 09:00:00', array(), array(NULL, 5Y)),
        (3, NULL, NULL, NULL, NULL) AS rows(id, m, at, days, ks)"""
    )
    texts = [
        *("m['price'] < 40", "m.tax = 2", "map_contains_key(m, 'price')", "exists(map_values(m), x -> x > 5)"),
        *("at > TIMESTAMP_NTZ '2024-03-01 09:30:00'", "at < TIMESTAMP '2024-03-01 09:30:00'", "hour(at) = 10"),
        *("array_contains(days, DATE '2024-03-01')", "exists(ks, x -> x > 3)", "array_max(ks) = 5", "m IS NULL"),
    ]
    queries = vd.QuerySet("m map<string,double>, at timestamp_ntz, days array<date>, ks array<tinyint>")
    queries.add_many(texts, texts)

    hits = rows.transform(vs.match(queries)).select("id", "query").collect()
    assert {(row["id"], row["query"]) for row in hits} == {
        (row["id"], text) for text in texts for row in rows.filter(text).collect()
    }
