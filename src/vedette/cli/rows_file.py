"""Files of rows: CSV, JSON lines and Parquet, read in batches, by what the name ends in."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.json as pa_json
import pyarrow.parquet as pq

from vedette.errors import FileError, SchemaError
from vedette.schema import Field, Schema, Type, arrow_type

FORMATS = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".parquet": "parquet"}
_BLOCK_BYTES = 8 << 20
_ZONE = r":\d\d.*(Z|[+-]\d\d(:?\d\d)?)$"  # at the end of a time, not of a date
_BATCH_ROWS = 262_144
_HINT = "declare the columns' types with --schema"


def format_of(path: Path) -> str:
    """csv, jsonl or parquet."""
    if path.suffix.lower() not in FORMATS:
        raise FileError(f"cannot tell the format of {path} by its name; use .csv, .jsonl or .parquet")
    return FORMATS[path.suffix.lower()]


def check_readable(path: Path) -> None:
    try:
        with path.open("rb"):
            pass
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror}") from None


@dataclass(frozen=True)
class RowsFile:
    """An opened file of rows: their schema, their batches, and how far reading has come."""

    schema: Schema  # the fields that queries may use
    columns: pa.Schema  # all of them
    batches: Iterator[pa.RecordBatch]
    n_steps: int  # bytes, or for Parquet rows
    steps_done: Callable[[int], int]  # by the number of rows read

    @classmethod
    def open(cls, path: Path, schema: Schema | None, *, needs_others: bool = True, hint: str = _HINT) -> RowsFile:
        """Open a file; without a schema, the types are those of its first rows.

        Columns that the schema does not have come along as they are written, or, unless `needs_others`, not at all.
        `hint` says what to do where a later row has another type.
        """
        kind = format_of(path)
        check_readable(path)
        try:
            if kind == "parquet":
                return cls._open_parquet(path, schema, needs_others)
            return cls._open_text(path, schema, kind, needs_others, hint)
        except pa.ArrowInvalid as error:
            raise FileError(f"cannot read {path}: {error}") from None

    @classmethod
    def _open_parquet(cls, path: Path, schema: Schema | None, needs_others: bool) -> RowsFile:
        file = pq.ParquetFile(path)
        columns = file.schema_arrow
        names = None
        if schema is not None and not needs_others:
            columns = pa.schema([column for column in columns if schema.find(column.name) is not None])
            names = columns.names
        batches = file.iter_batches(_BATCH_ROWS, columns=names)
        return cls(schema or infer_schema(columns), columns, batches, file.metadata.num_rows, lambda n: n)

    @classmethod
    def _open_text(cls, path: Path, schema: Schema | None, kind: str, needs_others: bool, hint: str) -> RowsFile:
        n_bytes = path.stat().st_size
        if n_bytes == 0:
            raise FileError(
                f"{path} is empty; it needs rows"
                + (", and a first line with the columns' names" if kind == "csv" else "")
            )
        open_reader = _open_csv if kind == "csv" else _open_json
        first = open_reader(path, {}).schema  # by the first block
        if kind == "jsonl":
            first = _with_zones(path, first, schema)
        types = _declared_types(schema or infer_schema(first), first)
        if kind == "csv" and schema is not None and needs_others:
            types |= {column.name: pa.string() for column in first if schema.find(column.name) is None}
        reader = open_reader(path, types, needs_others=needs_others)
        batches = _tell_where(iter(reader), path, hint)
        n_done = 0

        def counted() -> Iterator[pa.RecordBatch]:
            nonlocal n_done
            for batch in batches:
                n_done = min(n_done + _BLOCK_BYTES, n_bytes)
                yield batch

        return cls(schema or infer_schema(first), reader.schema, counted(), n_bytes, lambda _: n_done)


def infer_schema(columns: pa.Schema) -> Schema:
    """The fields that queries may use: those columns whose type the language has."""
    fields = [Field(column.name, type_) for column in columns if (type_ := _type_of(column.type)) is not None]
    if not fields:
        raise SchemaError(f"none of the columns has a type that queries can use: {columns}")
    return Schema(tuple(fields))


def only(schema: Schema, names: Collection[str]) -> Schema:
    """The fields of these names, letter case aside."""
    wanted = {name.lower() for name in names}
    return Schema(tuple(field for field in schema if field.name.lower() in wanted))


def complete(path: Path, schema: Schema | None, names: Sequence[str]) -> Schema | None:
    """A declared schema with those of the columns it lacks, as they are found in the file; None stays None."""
    lacking = [] if schema is None else [name for name in names if schema.find(name) is None]
    if schema is None or not lacking:
        return schema
    return Schema((*schema, *only(RowsFile.open(path, None).schema, lacking)))


def _type_of(got: pa.DataType) -> Type | None:
    if pa.types.is_dictionary(got):
        got = got.value_type
    if pa.types.is_decimal(got):
        return Type("decimal", got.precision, max(0, got.scale)) if got.precision <= 38 else None
    for name, fits in _FITS.items():
        if fits(got):
            return Type(name)
    return None


_FITS: dict[str, Callable[[Any], bool]] = {
    "bigint": lambda got: pa.types.is_integer(got) and got != pa.uint64(),
    "double": pa.types.is_floating,
    "boolean": pa.types.is_boolean,
    "date": pa.types.is_date,
    "timestamp": pa.types.is_timestamp,
    # A column without any value in the first block may hold anything; as text it can be read whatever comes.
    "string": lambda got: pa.types.is_string(got) or pa.types.is_large_string(got) or pa.types.is_null(got),
}


def _with_zones(path: Path, first: pa.Schema, schema: Schema | None) -> pa.Schema:
    """The columns of JSON lines, with a zone on the times that name one: Arrow reads both kinds alike."""
    names = []
    for column in first:
        field = None if schema is None else schema.find(column.name)
        if pa.types.is_timestamp(column.type) if field is None else field.type.name == "timestamp":
            names.append(column.name)
    if not names:
        return first
    block = next(iter(_open_json(path, dict.fromkeys(names, pa.string()))))
    for name in names:
        zoned = pc.any(pc.match_substring_regex(block.column(name), _ZONE)).as_py()
        first = first.set(first.get_field_index(name), pa.field(name, pa.timestamp("us", tz="UTC" if zoned else None)))
    return first


def _declared_types(schema: Schema, first: pa.Schema) -> dict[str, pa.DataType]:
    """How to read the declared columns of a text file. Times keep the zone that the file writes, or have none."""
    types: dict[str, pa.DataType] = {}
    for column in first:
        field = schema.find(column.name)
        if field is None:
            continue
        if field.type.name == "timestamp":
            zoned = pa.types.is_timestamp(column.type) and column.type.tz is not None
            types[column.name] = pa.timestamp("us", tz="UTC" if zoned else None)
        else:
            types[column.name] = arrow_type(field.type)
    return types


def _open_csv(path: Path, types: dict[str, pa.DataType], *, needs_others: bool = True) -> Any:
    return pa_csv.open_csv(
        path,
        read_options=pa_csv.ReadOptions(block_size=_BLOCK_BYTES),
        # As Spark reads CSV: nothing between two commas is null, "" is the empty string.
        convert_options=pa_csv.ConvertOptions(
            column_types=types,
            include_columns=None if needs_others else list(types),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )


def _open_json(path: Path, types: dict[str, pa.DataType], *, needs_others: bool = True) -> Any:
    return pa_json.open_json(
        path,
        read_options=pa_json.ReadOptions(block_size=_BLOCK_BYTES),
        parse_options=pa_json.ParseOptions(
            explicit_schema=pa.schema(types) if types else None,
            unexpected_field_behavior="infer" if needs_others else "ignore",
        ),
    )


def _tell_where(batches: Iterator[pa.RecordBatch], path: Path, hint: str) -> Iterator[pa.RecordBatch]:
    """The batches; where the file cannot be read on, a FileError says so."""
    n_rows = 0
    while True:
        try:
            batch = next(batches)
        except StopIteration:
            return
        except pa.ArrowInvalid as error:
            raise FileError(f"cannot read {path} after row {n_rows:,}: {error}; {hint}") from None
        n_rows += batch.num_rows
        yield batch
