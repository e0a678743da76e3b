"""The demo's work inside Spark: a stream of ticks matched with alerts, and what Spark makes of the same by itself."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from vedette.errors import PipelineError
from vedette.spark.match import match

if TYPE_CHECKING:
    from vedette.queries.query_set import QuerySet

_POLL_SECONDS = 0.2

# What Spark would have to run instead. Not all alerts name a symbol, so there is no equality that all share, and Spark
# compares every tick with every alert. It gets them in the form that suits it best: bounds that are always there and
# closed, and first the test that most pairs fail.
_JOIN_CONDITION = """
    (alerts.symbol IS NULL OR alerts.symbol = ticks.symbol)
    AND ticks.price >= alerts.price_low AND ticks.price <= alerts.price_high
    AND ticks.volume >= alerts.volume_low AND ticks.ts >= alerts.since
    AND ticks.price * ticks.volume > alerts.turnover_low
"""


@dataclass(frozen=True)
class Progress:
    """How far the stream is."""

    n_rows: int
    n_pairs: int
    n_batches: int


@dataclass(frozen=True)
class Comparison:
    """What Spark's own nested-loop join did with a slice of the ticks."""

    n_rows: int
    seconds: float
    n_pairs: int
    n_pairs_ours: int


@dataclass(frozen=True)
class Demo:
    """A directory of Parquet files of ticks, which play the stream, and a directory for the hits."""

    spark: SparkSession
    ticks_dir: Path
    work_dir: Path

    @property
    def ticks(self) -> DataFrame:
        return self.spark.read.parquet(self.ticks_dir.as_uri())

    @property
    def hits(self) -> DataFrame:
        return self.spark.read.parquet((self.work_dir / "hits").as_uri())

    def warm_up(self, alerts: QuerySet) -> None:
        """Start the workers and let them load the alerts."""
        some = self.ticks.limit(1000).repartition(os.cpu_count() or 2)
        some.transform(match(alerts, output="list")).write.format("noop").mode("overwrite").save()

    def stream(self, alerts: QuerySet, files_per_batch: int) -> Iterator[Progress]:
        """Run the stream to its end, and tell how far it is now and then. Hits are written as Parquet."""
        ticks = self.spark.readStream.schema(self.ticks.schema).option("maxFilesPerTrigger", files_per_batch)
        hits = (
            ticks.parquet(self.ticks_dir.as_uri())
            .transform(match(alerts, output="list"))
            .observe("answer", f.sum(f.size("queries")).alias("n_pairs"))
            .where("size(queries) > 0")
        )
        writer = hits.writeStream.format("parquet").option("path", (self.work_dir / "hits").as_uri())
        query = (
            writer.option("checkpointLocation", (self.work_dir / "checkpoint").as_uri())
            .trigger(availableNow=True)
            .start()
        )
        seen: dict[int, Any] = {}
        while True:
            active = query.isActive
            for progress in query.recentProgress:
                seen[progress["batchId"]] = progress
            done = [p for p in seen.values() if p["numInputRows"]]
            n_pairs = sum(
                p["observedMetrics"]["answer"]["n_pairs"] or 0 for p in done if "answer" in p["observedMetrics"]
            )
            yield Progress(sum(p["numInputRows"] for p in done), n_pairs, len(done))
            if not active:
                break
            time.sleep(_POLL_SECONDS)
        failure = query.exception()
        if failure is not None:
            raise PipelineError(f"the stream failed: {failure}")

    def count_hits(self) -> DataFrame:
        """Alert, symbol, hits, first and last time, lowest and highest price: what the tables below are made of."""
        pairs = self.hits.select("symbol", "price", "ts", f.explode("queries").alias("query"))
        aggregates = (f.count("*").alias("n_hits"), f.min("ts").alias("first"), f.max("ts").alias("last"))
        bounds = (f.min("price").alias("low"), f.max("price").alias("high"))
        return pairs.groupBy("query", "symbol").agg(*aggregates, *bounds).cache()

    def busiest_symbols(self, counts: DataFrame, n: int) -> list[tuple[Any, ...]]:
        """Symbol, hits, alerts that were hit, lowest and highest price among the hits."""
        aggregates = (f.sum("n_hits").alias("n_hits"), f.count("*"), f.min("low"), f.max("high"))
        return _collect(counts.groupBy("symbol").agg(*aggregates).orderBy(f.desc("n_hits"), "symbol").limit(n))

    def most_triggered(self, counts: DataFrame, n: int) -> list[tuple[Any, ...]]:
        """Alert, hits, first and last time."""
        aggregates = (f.sum("n_hits").alias("n_hits"), f.min("first"), f.max("last"))
        return _collect(counts.groupBy("query").agg(*aggregates).orderBy(f.desc("n_hits"), "query").limit(n))

    def count_triggered(self, counts: DataFrame) -> int:
        return counts.select("query").distinct().count()

    def hits_by_minutes(self, minutes: int) -> list[tuple[Any, ...]]:
        """The start of each stretch of the day, and its hits."""
        bucket = f.window("ts", f"{minutes} minutes").start.alias("start")
        return _collect(self.hits.groupBy(bucket).agg(f.sum(f.size("queries"))).orderBy("start"))

    def prices(self, symbol: str, n: int) -> list[tuple[Any, ...]]:
        """About `n` of the symbol's ticks in time order: time and price."""
        return _some(self.ticks.where(f.col("symbol") == symbol), n)

    def firings(self, alert: str, n: int) -> list[tuple[Any, ...]]:
        """About `n` of the ticks that hit the alert, in time order: time and price."""
        return _some(self.hits.where(f.array_contains("queries", alert)), n)

    def check(self, ids: list[str], texts: list[str], tell: Callable[[int], None]) -> list[tuple[str, int, int]]:
        """Alert, our hits and Spark's, for each alert on which Spark's `filter` keeps other ticks than we reported."""
        # A number that stands for a set of ticks: their count and the sum of their hashes.
        fingerprint = (f.count("*"), f.sum(f.xxhash64("tick").cast("decimal(38,0)")))
        pairs = self.hits.select("tick", f.explode("queries").alias("query"))
        ours = {
            row["query"]: (row[1], row[2])
            for row in pairs.where(f.col("query").isin(ids)).groupBy("query").agg(*fingerprint).collect()
        }
        ticks = self.ticks.cache()
        wrong = []
        for n, (alert, text) in enumerate(zip(ids, texts, strict=True), start=1):
            row = ticks.filter(text).agg(*fingerprint).collect()[0]
            spark = (row[0], row[1])
            if ours.get(alert, (0, None)) != spark:
                wrong.append((alert, ours.get(alert, (0, None))[0], spark[0]))
            tell(n)
        ticks.unpersist()
        return wrong

    def time_nested_loop(self, alerts: pa.Table, seconds: float) -> Comparison:
        """Spark's own join on a slice of the ticks, as large as it takes to run about so many seconds."""
        standing = self.spark.createDataFrame(_closed(alerts)).cache()
        standing.count()
        n_rows = 100
        self._nested_loop(standing, n_rows)  # the first run compiles
        while True:
            took, n_pairs = self._nested_loop(standing, n_rows)
            if took >= seconds / 2 or n_rows >= 100_000:
                break
            n_rows = min(100_000, max(2 * n_rows, int(n_rows * seconds / max(took, 0.01) * 0.8)))
        ours = self.hits.where(f.col("tick") < n_rows).agg(f.sum(f.size("queries"))).collect()[0][0] or 0
        standing.unpersist()
        return Comparison(n_rows, took, n_pairs, ours)

    def _nested_loop(self, standing: DataFrame, n_rows: int) -> tuple[float, int]:
        ticks = self.ticks.where(f.col("tick") < n_rows).repartition(2).cache()
        ticks.count()
        start = time.perf_counter()
        joined = ticks.alias("ticks").join(f.broadcast(standing.alias("alerts")), f.expr(_JOIN_CONDITION))
        n_pairs = joined.count()
        ticks.unpersist()
        return time.perf_counter() - start, n_pairs


def _collect(rows: DataFrame) -> list[tuple[Any, ...]]:
    """The rows, with times that know they are UTC."""
    return [tuple(row.values()) for row in rows.toArrow().to_pylist()]


def _some(rows: DataFrame, n: int) -> list[tuple[Any, ...]]:
    """About `n` rows, evenly taken: time and price."""
    chosen = rows.select("ts", "price")
    share = min(1.0, n / max(1, chosen.count()))
    return _collect(chosen.where(f.rand(1) < share).orderBy("ts"))


def _closed(alerts: pa.Table) -> pa.Table:
    """The alerts, one row for each symbol they name, with closed bounds, so wide where there are none that all pass."""
    low, high = alerts["price_low"].to_numpy(), alerts["price_high"].to_numpy()  # NaN where there is none
    one_sided = np.isnan(low) | np.isnan(high)
    bounds = {
        "price_low": np.where(np.isnan(low), -np.inf, np.where(one_sided, np.nextafter(low, np.inf), low)),
        "price_high": np.where(np.isnan(high), np.inf, np.where(one_sided, np.nextafter(high, -np.inf), high)),
        "volume_low": pc.fill_null(alerts["volume_low"], 0),
        "turnover_low": pc.fill_null(alerts["turnover_low"], -np.inf),
        "since": pc.fill_null(alerts["since"], pa.scalar(0, pa.timestamp("us", tz="UTC"))),
    }
    named = pc.list_parent_indices(alerts["symbols"])
    unnamed = pc.indices_nonzero(pc.is_null(alerts["symbols"]))
    symbols = pa.concat_arrays(
        [pc.list_flatten(alerts["symbols"]).combine_chunks(), pa.nulls(len(unnamed), pa.string())]
    )
    places = pa.concat_arrays([_one(named).cast(pa.int64()), _one(unnamed).cast(pa.int64())])
    return pa.table({"id": alerts["id"], **bounds}).take(places).append_column("symbol", symbols)


def _one(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
