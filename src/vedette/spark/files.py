"""Files matched inside Spark, for the command line: read by Spark, matched by Spark, handed on as Arrow batches."""

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
from pyspark.sql import types as t

from vedette.errors import FileError, PipelineError, SchemaError
from vedette.schema import Field, Schema, Type
from vedette.spark.match import match
from vedette.spark.noise import quiet_end
from vedette.spark.refusals import in_reach, reason_of
from vedette.spark.session import session

if TYPE_CHECKING:
    from vedette.engine.query_set import QuerySet

STEPS = 1000  # of which progress tells how many are done

_TYPES: dict[type[t.DataType], str] = {
    t.ByteType: "bigint",
    t.ShortType: "bigint",
    t.IntegerType: "bigint",
    t.LongType: "bigint",
    t.FloatType: "double",
    t.DoubleType: "double",
    t.BooleanType: "boolean",
    t.StringType: "string",
    t.DateType: "date",
    t.TimestampType: "timestamp",
}


def open_rows(path: Path, kind: str, schema: Schema | None, time_zone: str) -> tuple[DataFrame, Schema]:
    """A file as a DataFrame of a local session, and the fields that queries may use."""
    times = {"spark.sql.session.timeZone": time_zone, "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS"}
    spark = session("vedette match", **times)
    quiet_end()
    # With a null that no file contains, "" in CSV is the empty string, and nothing between two commas is null.
    reader = spark.read.option("mode", "FAILFAST").option("nullValue", "\0")
    where = path.absolute().as_uri()
    if kind == "parquet":
        _check_times(path)
    try:
        if kind == "parquet":
            rows = reader.parquet(where)
        elif kind == "csv":
            rows = reader.csv(where, header=True, inferSchema=schema is None, enforceSchema=False)
        else:
            rows = reader.json(where)
        if schema is not None and kind != "parquet":
            rows = (
                (reader.option("header", True) if kind == "csv" else reader)
                .schema(_declared(rows, schema))
                .load(where, format="csv" if kind == "csv" else "json")
            )
        return rows, schema or schema_of(rows)
    except PySparkException as error:
        raise FileError(f"Spark cannot read {path}: {str(error).splitlines()[0]}") from None


def _check_times(path: Path) -> None:
    """Raise where a column has times in nanoseconds, as pandas writes them: Spark reads microseconds at most."""
    for column in pq.read_schema(path):
        if pa.types.is_timestamp(column.type) and column.type.unit == "ns":
            raise FileError(
                f"column {column.name!r} of {path} has times in nanoseconds, which Spark cannot read; write the file "
                f'with microseconds (in pandas: to_parquet(..., coerce_timestamps="us")), or go without --spark'
            )


def schema_of(rows: DataFrame) -> Schema:
    """The columns of a DataFrame that queries may use."""
    fields = []
    for column in rows.schema.fields:
        if isinstance(column.dataType, t.DecimalType):
            fields.append(Field(column.name, Type("decimal", column.dataType.precision, column.dataType.scale)))
        elif type(column.dataType) in _TYPES:
            fields.append(Field(column.name, Type(_TYPES[type(column.dataType)])))
    if not fields:
        raise SchemaError(f"none of the columns has a type that queries can use: {rows.schema.simpleString()}")
    return Schema(tuple(fields))


def match_rows(
    rows: DataFrame, queries: QuerySet, advance: Callable[[int, int], None]
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The pairs, with the number of rows. Spark writes them to a temporary place first."""
    seen = Observation()
    hits = rows.observe(seen, f.count(f.lit(1)).alias("n_rows")).transform(match(queries))
    with tempfile.TemporaryDirectory(prefix="vedette-") as directory:
        run_with_progress(lambda: hits.write.mode("overwrite").parquet(Path(directory).as_uri()), rows, advance)
        n_rows = int(seen.get["n_rows"])
        advance(STEPS, n_rows)
        yield (
            n_rows,
            pa.RecordBatch.from_pylist([], _arrow_schema(hits)),
        )  # so that an answer without a pair has columns
        for part in sorted(Path(directory).glob("*.parquet")):
            for batch in pq.ParquetFile(part).iter_batches():
                yield n_rows, batch


def run_with_progress(work: Callable[[], None], rows: DataFrame, advance: Callable[[int, int], None]) -> None:
    """Do the work in a thread, and tell how many of its tasks are done."""
    context = rows.sparkSession.sparkContext
    tracker = context.statusTracker()
    with ThreadPoolExecutor(1) as thread, in_reach():
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
            while not running.done():  # or the thread would be waited for until its work is done
                context.cancelAllJobs()
                wait([running], timeout=0.2)
            raise
        try:
            running.result()
        except PySparkException as error:
            raise PipelineError(f"Spark stopped: {reason_of(error)}") from None


def _arrow_schema(rows: DataFrame) -> pa.Schema:
    return rows.limit(0).toArrow().schema


def _declared(rows: DataFrame, schema: Schema) -> t.StructType:
    """The DataFrame's columns, those of the schema in its types."""
    columns = []
    for column in rows.schema.fields:
        field = schema.find(column.name)
        columns.append(column if field is None else t.StructField(column.name, _spark_type(field.type)))
    return t.StructType(columns)


def _spark_type(type_: Type) -> t.DataType:
    if type_.name == "decimal":
        return t.DecimalType(type_.precision, type_.scale)
    (widest,) = [spark_type for spark_type, name in _TYPES.items() if name == type_.name][-1:]
    return widest()
