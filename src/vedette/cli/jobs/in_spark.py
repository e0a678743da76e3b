"""Commands in a local Spark session: files in, Spark's answer out.

Files are read in this process, so types and values are the same with and without Spark. Spark gets the columns that
it needs.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from vedette.cli.jobs.progress import show_progress
from vedette.data.columns import to_array
from vedette.data.rows import read_values
from vedette.data.schema import Field, Schema, arrow_type
from vedette.files.answers import plain
from vedette.files.rows import RowsFile

DataFrame = Any  # of pyspark, which only vedette.spark imports


@contextmanager
def spark_rows(rows: RowsFile, time_zone: str, number: str | None = None) -> Iterator[DataFrame]:
    """The fields of rows as a DataFrame. With `number`, a column of that name has the rows' numbers.

    The rows are in a temporary file while the body runs.
    """
    from vedette.spark.files import read_parquet

    types = {field.name: arrow_type(field.type) for field in rows.schema if _find(rows.columns, field) is not None}
    if number is not None:
        types[number] = pa.int64()
    with tempfile.TemporaryDirectory(prefix="vedette-") as directory:
        path = Path(directory, "rows.parquet")
        with pq.ParquetWriter(path, pa.schema(types)) as writer:
            n_rows = 0
            for batch in rows.batches:
                columns = [_column(batch, rows.schema, name, time_zone) for name in types if name != number]
                if number is not None:
                    columns.append(pa.array(np.arange(n_rows, n_rows + batch.num_rows)))
                writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=pa.schema(types)))
                n_rows += batch.num_rows
        yield read_parquet(path, time_zone)


def answer_in_spark(answer: DataFrame, doing: str, quiet: bool) -> Iterator[pa.RecordBatch]:
    """Plain batches of an answer, which Spark writes to a temporary folder. The first batch has columns and no rows."""
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


def _find(columns: pa.Schema, field: Field) -> int | None:
    return next((place for place, name in enumerate(columns.names) if name.lower() == field.name.lower()), None)


def _column(batch: pa.RecordBatch, schema: Schema, name: str, time_zone: str) -> pa.Array:
    """A column as Spark reads it. RowError if the field cannot be read from the file's type."""
    field = schema.find(name)
    assert field is not None
    place = _find(batch.schema, field)
    assert place is not None
    return to_array(read_values(batch.column(place), field, time_zone), field.type)
