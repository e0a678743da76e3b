"""Streams of files for Spark benchmarks: one file per micro-batch, and the time of warm micro-batches."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from benchmarks.harness import AnswersDifferError

WARM_UP = 3  # micro-batches before the clock counts: Java compiles, workers start and load the set


def write_batches(folder: Path, batches: Iterable[pa.Table]) -> None:
    """Write one file per micro-batch, in several row groups, so that both cores read."""
    folder.mkdir(exist_ok=True)
    for number, table in enumerate(batches):
        pq.write_table(table, folder / f"batch-{number:04}.parquet", row_group_size=max(1, table.num_rows // 8))


def batch_files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.parquet"))


def time_batches(
    spark: SparkSession, folders: list[Path], transform: Callable[..., DataFrame], n_warm: int = WARM_UP
) -> float:
    """The median seconds of warm micro-batches of streams with a noop sink, one file of each at a time."""
    query = _run(spark, folders, transform)
    seconds = [each["durationMs"]["addBatch"] / 1000 for each in query.recentProgress if each["numInputRows"]]
    n_batches = len(batch_files(folders[0]))
    if len(seconds) != n_batches:
        raise AnswersDifferError(f"the stream ran {len(seconds)} batches of {n_batches}")
    return statistics.median(seconds[n_warm:])


def _run(spark: SparkSession, folders: list[Path], transform: Callable[..., DataFrame]) -> Any:
    streams = []
    for folder in folders:
        schema = spark.read.parquet(str(batch_files(folder)[0])).schema
        streams.append(spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder)))
    with tempfile.TemporaryDirectory() as checkpoint:
        writer = transform(*streams).writeStream.format("noop").option("checkpointLocation", checkpoint)
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
    return query
