"""Matches a Parquet file inside Spark, for the command line: its DataFrame, and its matches as Arrow batches."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as f

from vedette.errors import PipelineError
from vedette.spark.failures import reason_of, translated_errors
from vedette.spark.log_filter import quiet_end
from vedette.spark.match import match
from vedette.spark.session import session

if TYPE_CHECKING:
    from vedette.queries.query_set import QuerySet

STEPS = 1000  # progress is reported in so many steps
_ROWS_AT_ONCE = 1 << 10  # few, because each has a list of all queries that it matches


def read_parquet(path: Path, time_zone: str) -> DataFrame:
    """A file as a DataFrame in a local session."""
    times = {"spark.sql.session.timeZone": time_zone, "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS"}
    spark = session("vedette", **times)
    quiet_end()
    return spark.read.parquet(path.absolute().as_uri())


def match_rows(
    rows: DataFrame, queries: QuerySet, number: str, advance: Callable[[int, int], None]
) -> Iterator[pa.RecordBatch]:
    """The numbers of rows that match, in order, with lists of queries. Spark writes them to a temporary directory."""
    seen = Observation()
    counted = rows.observe(seen, f.count(f.lit(1)).alias("n_rows"))
    hits = counted.transform(match(queries, output="list")).select(number, "queries")
    hits = hits.where(f.size("queries") > 0).orderBy(number)
    with tempfile.TemporaryDirectory(prefix="vedette-") as directory:
        run_with_progress(lambda: hits.write.mode("overwrite").parquet(Path(directory).as_uri()), rows, advance)
        advance(STEPS, int(seen.get["n_rows"]))
        for part in sorted(Path(directory).glob("*.parquet")):
            yield from pq.ParquetFile(part).iter_batches(_ROWS_AT_ONCE)


def run_with_progress(work: Callable[[], None], rows: DataFrame, advance: Callable[[int, int], None]) -> None:
    """Run `work` in a thread, and report how many of its tasks have ended."""
    context = rows.sparkSession.sparkContext
    tracker = context.statusTracker()
    with ThreadPoolExecutor(1) as thread, translated_errors():
        running = thread.submit(work)
        try:
            while not running.done():
                stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
                n_tasks = sum(stage.numTasks for stage in stages if stage)
                if n_tasks:
                    n_done = sum(stage.numCompletedTasks for stage in stages if stage)
                    advance(STEPS * n_done // n_tasks, 0)
                wait([running], timeout=0.2)
        except KeyboardInterrupt:
            while not running.done():  # otherwise the pool would wait until the work is done
                context.cancelAllJobs()
                wait([running], timeout=0.2)
            raise
        try:
            running.result()
        except PySparkException as error:
            raise PipelineError(f"Spark failed: {reason_of(error)}") from None
