"""Commands that work inside a local Spark session: files in, and what Spark answers out."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from vedette.cli.answer_file import plain
from vedette.cli.progress import show_progress
from vedette.cli.rows_file import RowsFile, complete, format_of
from vedette.schema import Schema

DataFrame = Any  # that of pyspark, which vedette.spark alone imports


def open_found(path: Path, schema: Schema | None, names: Sequence[str], time_zone: str) -> tuple[DataFrame, Schema]:
    """A file in Spark and its fields; types that nobody declares, also of the columns `names`, are as found here."""
    from vedette.spark.files import open_rows

    kind = format_of(path)
    if kind != "parquet":  # types as they are found without Spark, which takes times in JSON for strings
        schema = RowsFile.open(path, None).schema if schema is None else complete(path, schema, names)
    return open_rows(path, kind, schema, time_zone)


def answer_in_spark(answer: DataFrame, doing: str, quiet: bool) -> Iterator[pa.RecordBatch]:
    """Plain batches of an answer, which Spark writes to a temporary place first; the first one has only columns."""
    from vedette.spark.files import STEPS, run_with_progress

    yield plain(answer.limit(0).toArrow())
    with (
        tempfile.TemporaryDirectory(prefix="vedette-") as directory,
        show_progress(doing, STEPS, quiet) as advance,
    ):
        run_with_progress(lambda: answer.write.mode("overwrite").parquet(Path(directory).as_uri()), answer, advance)
        for part in sorted(Path(directory).glob("*.parquet")):
            for batch in pq.ParquetFile(part).iter_batches():
                if batch.num_rows:
                    yield plain(pa.Table.from_batches([batch]))
