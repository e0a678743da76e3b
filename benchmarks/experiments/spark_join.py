"""Joins inside Spark: streams of micro-batches against passing the same rows of both sides through Python unchanged."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

import vedette as vd
from benchmarks.harness import AnswersDifferError, Bench, experiment
from benchmarks.peers.spark_join import pass_through
from benchmarks.streams import WARM_UP, batch_files, time_batches, write_batches
from vedette import spark as vs

SCHEMA = "id bigint, s bigint, x double, t bigint"
COLUMNS = {"left_time": "t", "right_time": "t", "left_id": "id", "right_id": "id"}
MOST = 4.0  # times the identity


@experiment("spark-window-join")
def spark_window_join(bench: Bench) -> None:
    """`vs.window_join`, 500k rows per side and micro-batch, windows of 10k rows of time, few results, no sink."""
    n_rows, n_queries = bench.size(500_000, 20_000), bench.size(1_000, 100)
    with tempfile.TemporaryDirectory() as folder:
        sides = [Path(folder) / side for side in ("left", "right")]
        for number, side in enumerate(sides):
            write_batches(side, _rows(n_rows, WARM_UP + bench.repeats, seed=number))
        spark = vs.session("benchmarks")
        identity = time_batches(spark, sides, _identity)
        for words, pairs in (
            ("an equality and a band", _equalities(n_queries)),
            ("ranges on both sides and a comparison", _selections(n_queries)),
        ):
            case = f"{n_rows:,} rows a side, {n_queries:,} queries: {words}"
            bench.say(f"{case}: {_check_pairs(spark, sides, pairs):,} pairs in the first batch")

            def join(left: DataFrame, right: DataFrame, pairs: Any = pairs) -> DataFrame:
                return vs.window_join(left, right, pairs, **COLUMNS)

            seconds = time_batches(spark, sides, join)
            bench.record("spark-window-join", case, "vs.window_join", seconds, n_queries=n_queries, n_rows=2 * n_rows)
            bench.record("spark-window-join", case, "identity mapInArrow", identity, n_rows=2 * n_rows)
            bench.verdict("spark-window-join", case, "times the identity `mapInArrow`", seconds / identity, MOST)
        spark.stop()


def _identity(left: DataFrame, right: DataFrame) -> DataFrame:
    return left.union(right).transform(pass_through)


def _rows(n_rows: int, n_batches: int, seed: int) -> Iterator[pa.Table]:
    rng = np.random.default_rng(seed)
    for batch in range(n_batches):
        start = batch * n_rows
        times = np.sort(rng.integers(start, start + n_rows, n_rows))
        columns = {"id": np.arange(start, start + n_rows), "s": rng.integers(0, 10_000, n_rows)}
        yield pa.table({**columns, "x": rng.random(n_rows) * 100, "t": times})


def _equalities(n_queries: int) -> Any:
    """Differences of rows with the same number, in bands that rarely match."""
    pairs = vd.JoinQuerySet(left=SCHEMA, right=SCHEMA)
    lows = 10 + np.random.default_rng(5).random(n_queries) * 50
    texts = [f"left.s = right.s AND left.x - right.x BETWEEN {low!r} AND {low + 1e-3!r}" for low in lows.tolist()]
    pairs.add_many(np.arange(n_queries), texts, within=10_000)
    return pairs


def _selections(n_queries: int) -> Any:
    """Ranges that select a thousandth of each side, and a comparison."""
    pairs = vd.JoinQuerySet(left=SCHEMA, right=SCHEMA)
    rng = np.random.default_rng(6)
    texts = [
        f"left.x BETWEEN {a!r} AND {a + 0.01!r} AND right.x BETWEEN {b!r} AND {b + 0.01!r} AND left.s < right.s"
        for a, b in (rng.random((n_queries, 2)) * 100).tolist()
    ]
    pairs.add_many(np.arange(n_queries), texts, within=10_000)
    return pairs


def _check_pairs(spark: SparkSession, sides: list[Path], pairs: Any) -> int:
    """Compare Spark's pairs of the first batch with a join in this process. Returns their number."""
    left, right = (spark.read.parquet(str(batch_files(side)[0])) for side in sides)
    sums = "count(*) AS n", "sum((query % 97) * (left % 1009) + right % 9973) AS total"
    found = vs.window_join(left, right, pairs, **COLUMNS).selectExpr(*sums).first()
    assert found is not None
    rows = {side.name: pq.read_table(batch_files(side)[0]) for side in sides}
    table = pairs.window(**COLUMNS).step(**rows)
    query, left_id, right_id = (table[name].cast(pa.int64()).to_numpy() for name in ("query", "left", "right"))
    expected = table.num_rows, int(np.sum((query % 97) * (left_id % 1009) + right_id % 9973))
    if (found["n"], found["total"] or 0) != expected:
        raise AnswersDifferError(f"Spark finds {found['n']:,} pairs and this process {expected[0]:,}")
    return expected[0]
