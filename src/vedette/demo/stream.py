"""The demo's streams: Parquet files of ticks, matched with all alerts and watched for enter and exit events."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from vedette.errors import PipelineError
from vedette.spark.border import border
from vedette.spark.match import match

if TYPE_CHECKING:
    from vedette.queries.query_set import QuerySet

_POLL_SECONDS = 0.2


@dataclass(frozen=True)
class Progress:
    """The progress of a stream."""

    n_rows: int
    n_answers: int
    n_batches: int
    steady_rate: float  # rows per second in the second half of the micro-batches; 0 if there is only one

    @classmethod
    def read(cls, batches: list[dict[str, Any]]) -> Progress:
        """Add up Spark's reports of micro-batches, which are in order."""
        reports = [report for report in batches if report["numInputRows"]]
        n_answers = sum(
            report["observedMetrics"]["answer"]["n"] or 0 for report in reports if "answer" in report["observedMetrics"]
        )
        warm = reports[(len(reports) + 1) // 2 :]
        seconds = sum(report["durationMs"]["triggerExecution"] for report in warm) / 1000
        rate = sum(report["numInputRows"] for report in warm) / seconds if seconds else 0.0
        return cls(sum(report["numInputRows"] for report in reports), n_answers, len(reports), rate)


@dataclass(frozen=True)
class TickStream:
    """A directory of Parquet files of ticks, which act as the stream, and a directory for the answers."""

    spark: SparkSession
    ticks_dir: Path
    work_dir: Path

    @property
    def ticks(self) -> DataFrame:
        return self.spark.read.parquet(self.ticks_dir.as_uri())

    @property
    def hits(self) -> DataFrame:
        return self.spark.read.parquet((self.work_dir / "hits").as_uri())

    @property
    def events(self) -> DataFrame:
        return self.spark.read.parquet((self.work_dir / "events").as_uri())

    def warm_up(self, alerts: QuerySet) -> None:
        """Start the workers and let them load the alerts."""
        some = self.ticks.limit(1000).repartition(os.cpu_count() or 2)
        some.transform(match(alerts, output="list")).write.format("noop").mode("overwrite").save()

    def match(self, alerts: QuerySet, files_per_batch: int) -> Iterator[Progress]:
        """Match all ticks with the alerts as a stream, and write the hits. Yields its progress from time to time."""
        hits = (
            self._read(files_per_batch)
            .transform(match(alerts, output="list"))
            .observe("answer", f.sum(f.size("queries")).alias("n"))
            .where("size(queries) > 0")
        )
        return self._run(hits, "hits")

    def watch(self, alerts: QuerySet, files_per_batch: int) -> Iterator[Progress]:
        """Write an event whenever a symbol enters or leaves an alert, as a stream. Yields its progress."""
        ticks = self._read(files_per_batch).select("symbol", "price", "volume", "ts", "tick")
        events = ticks.transform(border(alerts, key="symbol", time="ts"))
        return self._run(events.observe("answer", f.count("*").alias("n")), "events")

    def count_hits_before(self, n_rows: int) -> int:
        """The number of hits among the first ticks."""
        found = self.hits.where(f.col("tick") < n_rows).agg(f.sum(f.size("queries"))).collect()[0][0]
        return found or 0

    def _read(self, files_per_batch: int) -> DataFrame:
        reader = self.spark.readStream.schema(self.ticks.schema).option("maxFilesPerTrigger", files_per_batch)
        return reader.parquet(self.ticks_dir.as_uri())

    def _run(self, answers: DataFrame, name: str) -> Iterator[Progress]:
        """Run a stream to its end and write its answers as Parquet."""
        writer = answers.writeStream.format("parquet").option("path", (self.work_dir / name).as_uri())
        checkpoint = (self.work_dir / f"{name}-checkpoint").as_uri()
        query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
        batches: dict[int, Any] = {}
        while True:
            is_active = query.isActive
            for report in query.recentProgress:
                batches[report["batchId"]] = report
            yield Progress.read([batches[number] for number in sorted(batches)])
            if not is_active:
                break
            time.sleep(_POLL_SECONDS)
        failure = query.exception()
        if failure is not None:
            raise PipelineError(f"the stream failed: {failure}")
