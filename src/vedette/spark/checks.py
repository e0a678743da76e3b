"""Validation errors: checks of DataFrames and options before Spark starts any work."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql import types as t

from vedette.data.schema import Field, Schema, Type, element_of, is_array, is_map, value_of
from vedette.errors import PipelineError, RowError, nearest

if TYPE_CHECKING:
    from vedette.operators.side_columns import SideColumns
    from vedette.spark.declared import Declared

_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_BINARY = "UTF8_BINARY"  # the collation that compares bytes
_DECLARED = "__CHAR_VARCHAR_TYPE_STRING"  # in the metadata of a column
_DIGITS = {"byte": 3, "short": 5, "integer": 10, "long": 19}  # of the widest value of the type


def find_columns(
    rows: DataFrame, schema: Schema, used: Container[str], side: str = "", *, follows: bool = False
) -> dict[str, int]:
    """The index of the column of each field that the queries use, by field name. Raises RowError if one does not fit.

    If the set is followed, later queries may use any field.
    """
    return find_fields(rows.schema.fields, schema, used, _name_of(side), follows=follows)


def find_fields(
    columns: Sequence[t.StructField], schema: Schema, used: Container[str], frame: str, *, follows: bool = False
) -> dict[str, int]:
    """The same, of columns. `frame` says in messages what has them."""
    places: dict[str, int] = {}
    for field in schema:
        if field.name not in used:
            continue
        found = [place for place, column in enumerate(columns) if column.name.lower() == field.column.lower()]
        if not found:
            names = [column.name for column in columns]
            use = "later queries of a followed set may use" if follows else "the queries use"
            raise RowError(
                f"{frame} has no column {field.column!r}, but {use} this field; it has: {', '.join(names)}"
                f"{nearest(field.column, names)}"
            )
        if len(found) > 1:
            raise RowError(f"{frame} has {len(found)} columns named {field.column!r}; drop or rename all but one")
        _check_field(field, _find_part(columns[found[0]], field, frame), frame)
        places[field.name] = found[0]
    return places


def _find_part(column: t.StructField, field: Field, frame: str) -> t.StructField:
    """The part of a column of structs that a field names, with its whole name; the column of any other field."""
    for name in field.path[1:]:
        parts = column.dataType.fields if isinstance(column.dataType, t.StructType) else []
        found = [part for part in parts if part.name.lower() == name.lower()]
        if len(found) != 1:
            got = column.dataType.simpleString()
            raise RowError(
                f"column {field.column!r} of {frame} has no single part {field.name!r}; {column.name} is {got}"
            )
        column = t.StructField(f"{column.name}.{found[0].name}", found[0].dataType, metadata=found[0].metadata)
    return column


def find_name(rows: DataFrame, schema: Schema | None, name: Any, role: str, side: str = "") -> t.StructField:
    """The column of keys or ids, which are strings or integers."""
    column = find_column(rows, schema, name, role, side)
    if not (_is_integer(column.dataType) or _is_text(column.dataType)):
        raise RowError(
            f"{'a key' if role == 'key' else 'an id'} must be a string or an integer; column {column.name!r} is "
            f"{column.dataType.simpleString()}; cast it to string or bigint"
        )
    return column


def find_value(rows: DataFrame, name: str, role: str, side: str) -> t.StructField:
    """The column of values of a side, which are numbers."""
    column = find_column(rows, None, name, role, side)
    got = column.dataType
    if not (_is_integer(got) or isinstance(got, t.DoubleType | t.FloatType)):
        raise RowError(
            f"a value must be a double, a float or an integer; column {column.name!r} is {got.simpleString()}; "
            f"cast it to double"
        )
    return column


def find_op(rows: DataFrame, name: str, role: str, side: str) -> t.StructField:
    """The column that says whether each row of a side is inserted or deleted."""
    column = find_column(rows, None, name, role, side)
    if not _is_text(column.dataType):
        raise RowError(
            f"{role} must name a column of strings, 'insert' or 'delete'; column {column.name!r} is "
            f"{column.dataType.simpleString()}"
        )
    return column


def find_time(rows: DataFrame, schema: Schema | None, name: str, role: str = "time", side: str = "") -> t.StructField:
    """The column of the time, which is a timestamp or a number."""
    column = find_column(rows, schema, name, role, side)
    got = column.dataType
    if not (_is_integer(got) or isinstance(got, t.TimestampType | t.DoubleType | t.FloatType)):
        if isinstance(got, t.TimestampNTZType):
            hint = "cast it to timestamp, which reads it in the session's time zone"
        else:
            hint = "cast it to timestamp, bigint or double"
        raise RowError(
            f"a time must be a timestamp or a number; column {column.name!r} is {got.simpleString()}; {hint}"
        )
    return column


def find_column(rows: DataFrame, schema: Schema | None, name: Any, role: str, side: str = "") -> t.StructField:
    """The only column with this name, ignoring case. If the schema has a field of this name, the column must fit it.

    `side` names the DataFrame in messages if there are several.
    """
    if not isinstance(name, str) or not name:
        raise PipelineError(f"must be the name of a column; got {name!r}", option=role)
    frame, columns = _name_of(side), rows.schema.fields
    found = [column for column in columns if column.name.lower() == name.lower()]
    if not found:
        names = [column.name for column in columns]
        has = f"it has: {', '.join(names)}{nearest(name, names)}"
        raise RowError(f"{name!r} is not a column of {frame}; {has}", option=role, field=name)
    if len(found) > 1:
        raise RowError(f"{frame} has {len(found)} columns named {name!r}; drop or rename all but one")
    field = None if schema is None else schema.find(name)
    if field is not None:
        _check_field(field, found[0], frame)
    _check_collation(found[0], frame)
    return found[0]


def to_plain(columns: Any) -> Any:
    """The option `columns` of a join as lists. Anything else stays as it is, for the join to refuse."""
    if isinstance(columns, Mapping):
        return {side: list(names) if isinstance(names, tuple) else names for side, names in columns.items()}
    return list(columns) if isinstance(columns, tuple) else columns


def name_carried(columns: SideColumns, carried: Sequence[Sequence[t.StructField]]) -> list[t.StructField]:
    """The columns of rows that answers of a join have, by side, under their names there."""
    types = [column.dataType for of_side in carried for column in of_side]
    return [t.StructField(name, type_) for name, type_ in zip(columns.names, types, strict=True)]


def find_carried(rows: DataFrame, names: Sequence[str], side: str = "") -> list[t.StructField]:
    """The columns of rows that answers have. Raises RowError if one is nested."""
    carried = []
    for name in names:
        column = find_column(rows, None, name, "columns", side)
        type_ = t.StringType() if isinstance(column.dataType, t.CharType | t.VarcharType) else column.dataType
        if not isinstance(type_, _CARRIED):
            raise RowError(
                f"names {name!r}, which is {type_.simpleString()}; only strings, binaries, numbers, booleans, dates "
                f"and timestamps can be carried; convert it, for example with to_json",
                option="columns",
                field=name,
            )
        carried.append(t.StructField(column.name, type_))
    return carried


_CARRIED = (
    *(t.StringType, t.BinaryType, t.NumericType, t.BooleanType),
    *(t.DateType, t.TimestampType, t.TimestampNTZType),
)


def quoted(name: str) -> str:
    """The name of a column as Spark parses it."""
    return "`" + name.replace("`", "``") + "`"


def _name_of(side: str) -> str:
    return f"the {side} DataFrame" if side else "the DataFrame"


def check_sides(operator: str, sides: Mapping[str, Any], declared: Mapping[str, Declared], suffix: str = "") -> bool:
    """Whether the sides are streams. Raises PipelineError unless they are DataFrames, all batches or all streams.

    `suffix` is what the names of arguments have after those of the sides.
    """
    for side, rows in sides.items():
        if not isinstance(rows, DataFrame):
            raise PipelineError(f"{operator} joins DataFrames; {side}{suffix} is of type {type(rows).__name__}")
    are_streams = {side: declared[side].is_streaming(rows) for side, rows in sides.items()}
    if len(set(are_streams.values())) > 1:
        kinds = [f"{side}{suffix} is a {'stream' if is_stream else 'batch'}" for side, is_stream in are_streams.items()]
        raise PipelineError(
            f"{operator} joins streams with streams, or batches with batches; {' and '.join(kinds)}; read all with "
            f"spark.readStream or all with spark.read"
        )
    return any(are_streams.values())


def check_choice(name: str, value: Any, choices: Sequence[str]) -> None:
    if value not in choices:
        raise PipelineError(f"must be one of: {', '.join(map(repr, choices))}; got {value!r}", option=name)


def has_watermark(time: t.StructField) -> bool:
    return "spark.watermarkDelayMs" in time.metadata


def check_watermark(rows: DataFrame, time: t.StructField, because: str) -> None:
    """Raise PipelineError unless the time column of a stream has a watermark."""
    if not has_watermark(time):
        raise PipelineError(
            f"{because} needs a watermark on {time.name!r}; set it before the transform: "
            f'.withWatermark({time.name!r}, "10 minutes"), or source.watermark in a pipeline file'
        )


def check_state_store(rows: DataFrame, operator: str) -> None:
    """Raise PipelineError unless the session stores state in RocksDB, which Spark requires here."""
    provider = rows.sparkSession.conf.get(_PROVIDER, None) or "another one"
    if provider.rpartition(".")[2] != _ROCKSDB.rpartition(".")[2]:  # runtimes have it in packages of their own, too
        raise PipelineError(
            f"a stream with {operator} needs RocksDB as its state store; the session has {provider}; set it: "
            f'spark.conf.set("{_PROVIDER}", "{_ROCKSDB}")'
        )


def check_free(rows: DataFrame, added: str) -> None:
    """Raise PipelineError if the DataFrame already has a column with the name that the transform adds."""
    for column in rows.schema.fields:
        if column.name.lower() == added.lower():
            raise PipelineError(
                f"the DataFrame already has a column {column.name!r}, and the transform adds one with that name; "
                f"rename it first: .withColumnRenamed({column.name!r}, ...), or with source.select in a pipeline file"
            )


def _check_field(field: Field, column: t.StructField, frame: str) -> None:
    """Raise RowError unless the column can be read as the field, and Spark compares its values as queries do."""
    got = column.dataType
    if _is_readable(got, field.type):
        _check_collation(column, frame)
        _check_padding(column, frame)
        return
    if isinstance(got, t.TimestampNTZType):
        hint = "cast it to timestamp, which reads it in the session's time zone"
    else:
        hint = f"cast the column to {field.type}, or declare the field with the column's type"
    raise RowError(f"field {field.name!r} is {field.type} in the query set but {got.simpleString()} in {frame}; {hint}")


def _check_collation(column: t.StructField, frame: str) -> None:
    """Raise RowError if Spark compares the strings of a column with a collation. Arrow batches do not show it."""
    type_ = column.dataType
    collation = getattr(type_, "collation", _BINARY)
    declared = re.search(r" collate (\w+)", _declared_type(column), flags=re.IGNORECASE)
    if collation == _BINARY and declared is not None and isinstance(type_, t.VarcharType | t.CharType):
        collation = declared[1]
    if collation != _BINARY:
        raise RowError(
            f"column {column.name!r} of {frame} has the collation {collation}, but queries, keys and ids compare "
            f"strings by their bytes ({_BINARY}); convert it before the transform: "
            f""".withColumn({column.name!r}, expr("collate(`{column.name}`, '{_BINARY}')"))"""
        )


def _check_padding(column: t.StructField, frame: str) -> None:
    """Raise RowError if Spark pads the strings that a column is compared with."""
    if isinstance(column.dataType, t.CharType) or _declared_type(column).startswith("char"):
        raise RowError(
            f"column {column.name!r} of {frame} is {_declared_type(column)}: Spark ignores its trailing spaces in "
            f"comparisons, but queries do not; convert it before the transform: "
            f""".withColumn({column.name!r}, expr("rtrim(`{column.name}`)"))"""
        )


def _declared_type(column: t.StructField) -> str:
    """The type that a table declares. It may be char(n) or varchar(n) although Spark shows a string."""
    return str(column.metadata.get(_DECLARED, column.dataType.simpleString()))


def _is_text(got: t.DataType) -> bool:
    return isinstance(got, t.StringType | t.VarcharType | t.CharType)


def _is_integer(got: t.DataType) -> bool:
    return isinstance(got, t.ByteType | t.ShortType | t.IntegerType | t.LongType)


def _fits_decimal(got: t.DataType, wanted: Type) -> bool:
    if isinstance(got, t.DecimalType):
        return got.scale <= wanted.scale and got.precision - got.scale <= wanted.precision - wanted.scale
    return _is_integer(got) and _DIGITS[got.typeName()] <= wanted.precision - wanted.scale


_READABLE: dict[str, Callable[[t.DataType, Type], bool]] = {
    "bigint": lambda got, wanted: _is_integer(got),
    "int": lambda got, wanted: isinstance(got, t.IntegerType | t.ShortType | t.ByteType),
    "smallint": lambda got, wanted: isinstance(got, t.ShortType | t.ByteType),
    "tinyint": lambda got, wanted: isinstance(got, t.ByteType),
    "float": lambda got, wanted: isinstance(got, t.FloatType),
    "double": lambda got, wanted: isinstance(got, t.DoubleType | t.FloatType),
    "decimal": _fits_decimal,
    "boolean": lambda got, wanted: isinstance(got, t.BooleanType),
    "string": lambda got, wanted: _is_text(got),
    "binary": lambda got, wanted: isinstance(got, t.BinaryType),
    "date": lambda got, wanted: isinstance(got, t.DateType),
    "timestamp": lambda got, wanted: isinstance(got, t.TimestampType),
    "timestamp_ntz": lambda got, wanted: isinstance(got, t.TimestampNTZType),
}


def _is_readable(got: t.DataType, wanted: Type) -> bool:
    if is_map(wanted):
        return isinstance(got, t.MapType) and _is_text(got.keyType) and _is_readable(got.valueType, value_of(wanted))
    if is_array(wanted):
        return isinstance(got, t.ArrayType) and _is_readable(got.elementType, element_of(wanted))
    return _READABLE[wanted.name](got, wanted)
