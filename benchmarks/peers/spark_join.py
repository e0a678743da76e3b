"""Spark itself: an identity `mapInArrow`, and a broadcast nested-loop join, its plan for a join without equality."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from benchmarks.workloads import Workload


def make_rows(spark: SparkSession, n_rows: int, highest: float, seed: int = 11) -> DataFrame:
    """Rows of three columns, made where they are used: `row`, the whole number `x0` as a double, and `y`."""
    whole = f"floor(rand({seed}) * {highest:.1f})"
    return spark.range(n_rows).selectExpr("id AS row", f"CAST({whole} AS DOUBLE) AS x0", f"rand({seed + 1}) AS y")


def pass_through(rows: DataFrame) -> DataFrame:
    """The rows to Python and back, unchanged."""

    def identity(batches: Iterator[Any]) -> Iterator[Any]:
        yield from batches

    return rows.mapInArrow(identity, rows.schema)


def make_queries(spark: SparkSession, workload: Workload) -> DataFrame:
    """The intervals as a table, cached, ready to be broadcast."""
    numbers = np.arange(workload.n_queries)
    table = pd.DataFrame({"query": numbers, "x0_low": workload.lows[0], "x0_high": workload.highs[0]})
    queries = spark.createDataFrame(table).coalesce(1).cache()
    queries.count()
    return queries


def broadcast_join(rows: DataFrame, queries: DataFrame) -> DataFrame:
    """Every pair of row and query that match, with the row's columns."""
    inside = (f.col("x0") >= f.col("x0_low")) & (f.col("x0") <= f.col("x0_high"))
    return rows.join(f.broadcast(queries), inside).select(*rows.columns, "query")


def run(frame: DataFrame) -> None:
    """Compute all of the frame and keep nothing."""
    frame.write.format("noop").mode("overwrite").save()
