"""Checks at the door: whether a DataFrame can be matched, before Spark starts any work."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pyspark.sql import types as t

from vedette.errors import PipelineError, RowError, nearest
from vedette.schema import Field, Type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from vedette.engine.query_set import QuerySet

_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_DIGITS = {"byte": 3, "short": 5, "integer": 10, "long": 19}  # that the widest value of the type may have
_UTC_NAMES = {"UTC", "ETC/UTC", "Z", "GMT", "UTC+0", "+00:00", "UTC+00:00", "GMT+0", "ZULU", "ETC/UCT", "UCT"}


def find_columns(rows: DataFrame, queries: QuerySet) -> dict[str, int]:
    """The place of the column for each field the queries use, by the field's name; raises where one does not fit."""
    columns = rows.schema.fields
    places: dict[str, int] = {}
    for field in queries.schema:
        if field.name not in queries.fields:
            continue
        found = [place for place, column in enumerate(columns) if column.name.lower() == field.name.lower()]
        if not found:
            names = [column.name for column in columns]
            raise RowError(
                f"the queries use field {field.name!r}, which the DataFrame lacks; it has: {', '.join(names)}"
                f"{nearest(field.name, names)}"
            )
        if len(found) > 1:
            raise RowError(f"the DataFrame has {len(found)} columns named {field.name!r}; keep or rename one of them")
        _check_type(field, columns[found[0]].dataType)
        places[field.name] = found[0]
    return places


def find_key(rows: DataFrame, queries: QuerySet, name: str) -> t.StructField:
    """The column of the key, which is of strings or of integers."""
    column = _find_column(rows, queries, name, "key")
    if not (_is_integer(column.dataType) or isinstance(column.dataType, t.StringType | t.VarcharType | t.CharType)):
        raise RowError(
            f"a key is a string or an integer; column {column.name!r} is {column.dataType.simpleString()}; "
            f"cast it to string or bigint"
        )
    return column


def find_time(rows: DataFrame, queries: QuerySet, name: str) -> t.StructField:
    """The column of the time, which is a timestamp or a number."""
    column = _find_column(rows, queries, name, "time")
    got = column.dataType
    if not (_is_integer(got) or isinstance(got, t.TimestampType | t.DoubleType | t.FloatType)):
        if isinstance(got, t.TimestampNTZType):
            hint = "cast it to timestamp, which reads it in the session's time zone"
        else:
            hint = "cast it to timestamp, bigint or double"
        raise RowError(f"a time is a timestamp or a number; column {column.name!r} is {got.simpleString()}; {hint}")
    return column


def _find_column(rows: DataFrame, queries: QuerySet, name: str, role: str) -> t.StructField:
    columns = rows.schema.fields
    found = [column for column in columns if column.name.lower() == name.lower()]
    if not found:
        names = [column.name for column in columns]
        raise RowError(
            f"{role}={name!r} is no column of the DataFrame; it has: {', '.join(names)}{nearest(name, names)}"
        )
    if len(found) > 1:
        raise RowError(f"the DataFrame has {len(found)} columns named {name!r}; keep or rename one of them")
    field = queries.schema.find(name)
    if field is not None:
        _check_type(field, found[0].dataType)
    return found[0]


def check_watermark(rows: DataFrame, time: t.StructField, because: str) -> None:
    """Raise unless the time column of a stream has a watermark, which tells how far time has passed."""
    if "spark.watermarkDelayMs" not in time.metadata:
        raise PipelineError(
            f"{because} needs to know how far time has passed, so the stream needs a watermark on {time.name!r} before "
            f'the transform: .withWatermark({time.name!r}, "10 minutes")'
        )


def check_state_store(rows: DataFrame) -> None:
    """Raise unless the session keeps state in RocksDB, which Spark asks for here."""
    provider = rows.sparkSession.conf.get(_PROVIDER, None) or "another one"
    if provider != _ROCKSDB:
        raise PipelineError(
            f"a stream of border events needs RocksDB as its state store; the session has {provider}; set it: "
            f'spark.conf.set("{_PROVIDER}", "{_ROCKSDB}")'
        )


def check_free(rows: DataFrame, added: str) -> None:
    """Raise unless the DataFrame has no column of the name that the transform adds."""
    for column in rows.schema.fields:
        if column.name.lower() == added.lower():
            raise PipelineError(
                f"the DataFrame has a column {column.name!r} already, and the transform adds one of that name; "
                f"rename it first: .withColumnRenamed({column.name!r}, ...)"
            )


def check_time_zone(rows: DataFrame, queries: QuerySet) -> None:
    """Raise unless the session reads dates and times in the time zone that the query set carries."""
    zone = rows.sparkSession.conf.get("spark.sql.session.timeZone") or ""
    if _folded(zone) != _folded(queries.time_zone):
        raise PipelineError(
            f"the Spark session's time zone is {zone!r} but the query set's is {queries.time_zone!r}; set it: "
            f'spark.conf.set("spark.sql.session.timeZone", {queries.time_zone!r}), or make the set with '
            f"time_zone={zone!r}"
        )


def _folded(zone: str) -> str:
    return "UTC" if zone.upper() in _UTC_NAMES else zone


def _check_type(field: Field, got: t.DataType) -> None:
    if _READABLE[field.type.name](got, field.type):
        return
    if isinstance(got, t.TimestampNTZType):
        hint = "cast it to timestamp, which reads it in the session's time zone"
    else:
        hint = f"cast the column to {field.type}, or declare the field as what the column holds"
    raise RowError(
        f"field {field.name!r} is {field.type} in the query set but {got.simpleString()} in the DataFrame; {hint}"
    )


def _is_integer(got: t.DataType) -> bool:
    return isinstance(got, t.ByteType | t.ShortType | t.IntegerType | t.LongType)


def _fits_decimal(got: t.DataType, wanted: Type) -> bool:
    if isinstance(got, t.DecimalType):
        return got.scale <= wanted.scale and got.precision - got.scale <= wanted.precision - wanted.scale
    return _is_integer(got) and _DIGITS[got.typeName()] <= wanted.precision - wanted.scale


_READABLE: dict[str, Callable[[t.DataType, Type], bool]] = {
    "bigint": lambda got, wanted: _is_integer(got),
    "double": lambda got, wanted: isinstance(got, t.DoubleType | t.FloatType),
    "decimal": _fits_decimal,
    "boolean": lambda got, wanted: isinstance(got, t.BooleanType),
    "string": lambda got, wanted: isinstance(got, t.StringType | t.VarcharType | t.CharType),
    "date": lambda got, wanted: isinstance(got, t.DateType),
    "timestamp": lambda got, wanted: isinstance(got, t.TimestampType),
}
