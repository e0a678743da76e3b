"""Columns that the caller declares with `schema=` and `streaming=`, where Spark must not be asked for them.

In a flow of a declarative pipeline (`pyspark.pipelines`), Spark refuses to analyse a DataFrame. `DataFrame.to`
remembers the columns on the client's side, so that the transforms and PySpark itself need not ask.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException
from pyspark.sql import types as t

from vedette.data.schema import Field, Schema
from vedette.errors import PipelineError, nearest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Spark's conditions
IN_FLOW = ("ATTEMPT_ANALYSIS_IN_PIPELINE_QUERY_FUNCTION", "UNSUPPORTED_PIPELINE_SPARK_SQL_COMMAND")

_TYPES: dict[str, t.DataType] = {
    "bigint": t.LongType(),
    "int": t.IntegerType(),
    "smallint": t.ShortType(),
    "tinyint": t.ByteType(),
    "double": t.DoubleType(),
    "float": t.FloatType(),
    "boolean": t.BooleanType(),
    "string": t.StringType(),
    "binary": t.BinaryType(),
    "date": t.DateType(),
    "timestamp": t.TimestampType(),
    "timestamp_ntz": t.TimestampNTZType(),
}


@dataclass(frozen=True)
class Declared:
    """What the caller says about a DataFrame; None is what Spark is asked for."""

    schema: t.StructType | None = None
    is_stream: bool | None = None

    @classmethod
    def read(cls, schema: Any, streaming: Any) -> Declared:
        """The options of a transform. Raises an error unless they are valid."""
        if streaming is not None and not isinstance(streaming, bool):
            raise PipelineError(f"must be True or False; got {streaming!r}", option="streaming")
        return cls(_read_schema(schema), streaming)

    @classmethod
    def read_sides(cls, schema: Any, streaming: Any, sides: Sequence[str]) -> dict[str, Declared]:
        """The same of a join, whose `schema` is a dict with the schema of each side."""
        if schema is not None and not isinstance(schema, Mapping):
            example = ", ".join(f"{side!r}: ..." for side in sides)
            raise PipelineError(
                f"must be a dict with the schema of each side: {{{example}}}; got {type(schema).__name__}",
                option="schema",
            )
        for name in schema or ():
            if name not in sides:
                raise PipelineError(
                    f"has {name!r}, but the sides are: {', '.join(sides)}{nearest(str(name), sides)}", option="schema"
                )
        return {side: cls.read((schema or {}).get(side), streaming) for side in sides}

    def apply(self, rows: DataFrame) -> DataFrame:
        """The rows with these columns; other columns are dropped. Spark refuses types that do not fit."""
        if self.schema is not None:
            return rows.to(self.schema)
        with refused_in_flow("schema", "pass the columns of the rows: schema='symbol string, price double'"):
            rows.schema  # noqa: B018  # PySpark remembers it
        return rows

    def is_streaming(self, rows: DataFrame) -> bool:
        if self.is_stream is None:
            with refused_in_flow(
                "streaming", "pass streaming=True for spark.readStream, streaming=False for spark.read"
            ):
                return rows.isStreaming
        if not is_connect(rows.sparkSession) and rows.isStreaming != self.is_stream:  # known without a request
            is_one = "a stream" if rows.isStreaming else "not a stream"
            raise PipelineError(f"is {self.is_stream}, but the DataFrame is {is_one}; omit it", option="streaming")
        return self.is_stream


@contextmanager
def refused_in_flow(option: str, remedy: str) -> Iterator[None]:
    """Raises PipelineError if Spark refuses to answer because this is a flow of a declarative pipeline."""
    try:
        yield
    except PySparkException as error:
        if error.getCondition() not in IN_FLOW:
            raise
        raise PipelineError(
            f"is required in a flow of a declarative pipeline, where Spark does not answer questions; {remedy}",
            option=option,
        ) from None


def remember_columns(rows: DataFrame, columns: t.StructType) -> DataFrame:
    """The same rows. Through Connect, PySpark then knows their columns without a request to Spark."""
    return rows.to(columns) if is_connect(rows.sparkSession) else rows


def is_connect(spark: SparkSession) -> bool:
    return type(spark).__module__.startswith("pyspark.sql.connect")


def spark_type(field: Field) -> t.DataType:
    """The type of a field in Spark."""
    type_ = field.type
    if field.path or type_.name not in (*_TYPES, "decimal"):
        raise PipelineError(f"field {field.name!r} is an array or part of a struct, which is not possible here")
    return t.DecimalType(type_.precision, type_.scale) if type_.name == "decimal" else _TYPES[type_.name]


def _read_schema(schema: Any) -> t.StructType | None:
    if schema is None or isinstance(schema, t.StructType):
        return schema
    if isinstance(schema, str):  # PySpark would ask Spark to parse it
        schema = Schema.parse(schema)
    if not isinstance(schema, Schema):
        raise PipelineError(
            f"must be a StructType, or a text such as 'symbol string, price double'; got {type(schema).__name__}",
            option="schema",
        )
    try:
        return t.StructType([t.StructField(field.name, spark_type(field)) for field in schema])
    except PipelineError:
        raise PipelineError("as a text has no arrays and structs; pass a StructType", option="schema") from None
