"""Counts of workers as observed metrics: every operator, batch and stream."""

from __future__ import annotations

import datetime
import json
import logging

import pyarrow as pa
import pytest
from pyspark.sql import Observation
from pyspark.sql import functions as f
from spark.streams import read_stream, start_stream, write_batches

import vedette as vd
from vedette import spark as vs
from vedette.spark.workers import reports
from vedette.spark.workers.top_queries import read_top

SCHEMA = "symbol string, price double, ts timestamp"


def at(seconds):
    return datetime.datetime.fromtimestamp(1_772_000_000 + seconds, datetime.UTC)


def rows_of(*rows):
    """Rows of (symbol, price, seconds)."""
    symbols, prices, seconds = zip(*rows, strict=True)
    times = pa.array([at(each) for each in seconds], pa.timestamp("us", "UTC"))
    names = ["id", "symbol", "price", "ts"]
    return pa.table(
        [pa.array(range(len(rows))), pa.array(symbols, pa.string()), pa.array(prices, pa.float64()), times], names
    )


def observe_stream(spark, directory, transform, *batches):
    """The metrics of each micro-batch, and the answers."""
    write_batches([rows_of(*rows) for rows in batches], directory / "rows")
    query = start_stream(transform(read_stream(spark, directory / "rows")), directory)
    query.awaitTermination()
    progress = [each for each in query.recentProgress if "addBatch" in each["durationMs"]]
    answers = spark.read.parquet(str(directory / "answers"))
    return [_as_dict(each["observedMetrics"].get("alerts")) for each in progress if each["numInputRows"]], answers


def _as_dict(row):
    found = dict(row.asDict() if hasattr(row, "asDict") else row)
    return found | {"hits": read_top(found["hits"], 20)}


@pytest.fixture
def registry(tmp_path):
    made = vd.Registry(f"sqlite:///{tmp_path / 'alerts.db'}")
    yield made
    made.close()


@pytest.mark.fast
@pytest.mark.parametrize("output", ["pairs", "list"])
def test_a_batch_reports_pairs_and_failed_comparisons_and_keeps_its_answers(spark, output):
    queries = vd.QuerySet(["n bigint", " more map<string", "int>"][0])
    queries.add_many(["low", "failing", "all"], ["n < 3", "10 / n > 100", "TRUE"])
    rows = spark.range(10).select(f.col("id").alias("n"), f.create_map(f.lit("a"), "id").alias("more")).repartition(3)
    counts = Observation("alerts")

    plain = rows.transform(vs.match(queries, output))
    hits = rows.transform(vs.match(queries, output, observe=counts))

    assert hits.schema == plain.schema
    assert sorted(map(str, hits.collect())) == sorted(map(str, plain.collect()))
    expected = {"pairs": 13, "failed": 1, "version": None, "warnings": "", "hits": {"all": 10, "low": 3}}
    assert _as_dict(counts.get) == expected


def test_a_followed_stream_reports_the_version_of_each_micro_batch(spark, registry, tmp_path):
    registry.create("alerts", schema=SCHEMA)
    registry.add("alerts", "low", "price < 5")
    match = vs.match(registry.follow("alerts"), observe="alerts")

    metrics, answers = observe_stream(spark, tmp_path, match, [("a", 1.0, 0), ("b", 9.0, 0)], [("a", 7.0, 1)])

    assert metrics == [
        {"pairs": 1, "failed": 0, "version": 1, "warnings": "", "hits": {"low": 1}},
        {"pairs": 0, "failed": 0, "version": 1, "warnings": "", "hits": {}},
    ]
    assert answers.count() == 1


def test_border_monitoring_reports_late_rows_null_keys_and_keys(spark, tmp_path):
    alerts = vd.QuerySet(SCHEMA)
    alerts.add("low", "price < 5 AND 1 / price > 0")
    border = vs.border(alerts, key="symbol", time="ts", null_key="drop", shards=2, observe="alerts")

    metrics, answers = observe_stream(
        spark,
        tmp_path,
        border,
        [("a", 1.0, 5), ("b", 9.0, 5), (None, 1.0, 5), ("c", 0.0, 5)],
        [("a", 7.0, 1), ("a", 8.0, 6), ("b", 1.0, 6), ("c", 1.0, 6), (None, 1.0, 6), (None, 1.0, 1)],
    )

    full = [each.pop("full_loads") for each in metrics]
    common = {"shard_steps": 2, "version": None, "warnings": "", "held_back": 0}
    assert metrics == [  # a failed comparison counts with its row, not again with the key's next one
        {"events": 1, "late": 0, "null_keys": 1, "failed": 1, "state_rows": 3, "hits": {"low": 1}} | common,
        {"events": 3, "late": 1, "null_keys": 2, "failed": 0, "state_rows": 3, "hits": {"low": 3}} | common,
    ]
    assert (full[0], full[1] <= 2) == (0, True)  # other workers may step the shards of the second micro-batch
    assert sorted((row["key"], row["event"]) for row in answers.collect()) == [
        ("a", "enter"), ("a", "exit"), ("b", "enter"), ("c", "enter")
    ]  # fmt: skip


def test_rows_and_timers_of_one_micro_batch_count_the_keys_once(spark, tmp_path):
    alerts = vd.QuerySet(SCHEMA)
    alerts.add("low", "price < 5")
    border = vs.border(alerts, key="symbol", time="ts", expire_after="1 hour", shards=2, observe="alerts")

    metrics, _ = observe_stream(
        spark,
        tmp_path,
        lambda rows: rows.withWatermark("ts", "1 second").transform(border),
        [("a", 1.0, 0), ("b", 9.0, 0)],
        [("a", 1.0, 100), ("b", 9.0, 100)],
        [("a", 1.0, 200), ("c", 9.0, 200), ("b", 1.0, 200)],
    )

    assert [each["state_rows"] for each in metrics] == [2, 2, 3]


@pytest.mark.parametrize("layout", ["grid", "equality", "one"])
def test_a_window_join_counts_a_late_row_once_in_any_layout(spark, tmp_path, layout):
    pairs = vd.JoinQuerySet(left=SCHEMA, right=SCHEMA)
    pairs.add("same", "left.symbol = right.symbol", within="10 seconds")
    times = {"left_time": "ts", "right_time": "ts"}
    shards = None if layout == "one" else 4

    def join(rows):
        return vs.window_join(rows, rows, pairs, layout=layout, shards=shards, observe="alerts", **times)

    metrics, _ = observe_stream(
        spark, tmp_path, join, [("a", 1.0, 0), ("b", 1.0, 5)], [("a", 1.0, 6), ("b", 1.0, 1), ("c", 1.0, 2)]
    )

    assert [each["late"] for each in metrics] == [0, 4]  # as a row of either side
    assert [each["pairs"] for each in metrics] == [2, 3]
    copies = 2 if layout == "grid" else 1
    assert metrics[0]["state_rows"] == 4 * copies


def test_a_band_join_counts_unknown_ids_once_and_the_warning_reaches_the_driver(spark, tmp_path):
    bands = vd.BandQuerySet()
    bands.add("near", -1.0, 1.0)

    def join(rows):
        values = rows.select(f.col("symbol").alias("id"), f.col("price").alias("value"), "ts")
        left = values.withColumn("op", f.when(f.col("value") < 0, "delete").otherwise("insert"))
        return vs.band_join(left, values.limit(0) if not values.isStreaming else values.where("false"), bands,
            left_op="op", shards=4, observe="alerts")  # fmt: skip

    metrics, _ = observe_stream(spark, tmp_path, join, [("a", 1.0, 0), ("b", -1.0, 0)])

    assert {name: metrics[0][name] for name in ("changes", "unknown_ids")} == {"changes": 0, "unknown_ids": 1}
    assert "'b'" in metrics[0]["warnings"]


def test_a_moving_join_counts_a_late_row_once(spark, tmp_path):
    def join(rows):
        side = rows.select(f.col("symbol").alias("id"), f.unix_timestamp("ts").cast("double").alias("time"), "price")
        for name in ("x_low", "x_high", "y_low", "y_high"):
            side = side.withColumn(name, f.col("price"))
        for name in ("vx_low", "vx_high", "vy_low", "vy_high"):
            side = side.withColumn(name, f.lit(0.0))
        return vs.moving_join(side, side.withColumnRenamed("id", "id"), max_update_interval=60, late="drop",
            shards=4, observe="alerts")  # fmt: skip

    metrics, _ = observe_stream(spark, tmp_path, join, [("a", 1.0, 5)], [("b", 1.0, 2), ("c", 1.0, 6)])

    assert [each["late"] for each in metrics] == [0, 2]  # as a row of either set
    assert metrics[0]["changes"] == 1


def test_a_name_that_is_not_one_is_refused():
    alerts = vd.QuerySet(SCHEMA)

    for observe in ("", 3):
        with pytest.raises(vd.PipelineError, match="observe must be a name or an Observation of pyspark; got"):
            vs.match(alerts, observe=observe)
    with pytest.raises(vd.PipelineError, match="observe must be a name"):
        vs.border(alerts, key="symbol", time="ts", observe=3)


def test_a_report_has_the_last_warnings_of_the_process_once():
    reports.keep_warnings()
    log = logging.getLogger("vedette.spark.workers.test")
    for number in range(30):
        log.warning("warning %d\n  of a worker", number)
    log.warning("warning 29\nof a worker")

    first, second = (json.loads(reports.write_report({"pairs": 3}, None)) for _ in range(2))

    assert first["warnings"].split("\n") == [f"warning {number} of a worker" for number in range(11, 30)]
    assert second == {"pairs": 3}
    logging.getLogger("vedette").removeHandler(reports._kept)
