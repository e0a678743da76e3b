"""Files of rows: CSV, JSON lines and Parquet, by their extension, read in batches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from vedette.data.rows import lacks_field
from vedette.data.schema import Field, Schema, Type
from vedette.errors import FileError, SchemaError
from vedette.files.text_columns import WHOLE, CsvColumns, JsonColumns, TextColumns, types_of
from vedette.files.text_records import Records, read_records
from vedette.queries.selectivity import MAX_SAMPLE_ROWS

FORMATS = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".parquet": "parquet"}
RECORD = "\0record"  # the column with the raw records of a text file
_BATCH_ROWS = 262_144


def format_of(path: Path) -> str:
    """csv, jsonl or parquet."""
    if path.suffix.lower() not in FORMATS:
        raise FileError(f"unknown extension of {path}; use .csv, .jsonl or .parquet")
    return FORMATS[path.suffix.lower()]


def check_readable(path: Path) -> None:
    try:
        with path.open("rb"):
            pass
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror}") from None


@dataclass(frozen=True)
class RowsFile:
    """An open file of rows: their schema, their batches, and the progress of reading."""

    path: Path
    schema: Schema  # the fields that queries may use
    columns: pa.Schema  # of the batches
    batches: Iterator[pa.RecordBatch]
    n_steps: int  # bytes, or for Parquet rows
    steps_done: Callable[[int], int]  # for a number of rows read
    text: TextFile | None = None  # the raw file, if it is CSV or JSON lines

    @classmethod
    def open(
        cls,
        path: Path,
        schema: Schema | None,
        *,
        needs_others: bool = True,
        exact: Collection[str] = (),
        hint: str = "",
    ) -> RowsFile:
        """Open a file. Without a schema, types are inferred from its first rows.

        Batches have the columns of the schema. With `needs_others` they also have what is needed to copy the rows: the
        raw records of a text file under the name RECORD, all columns of Parquet.

        Columns named in `exact` are written again from their values. If these are integers, a CSV field in another
        notation, such as 007, is an error. `hint` says what to do if a row does not fit its type.
        """
        kind = format_of(path)
        check_readable(path)
        try:
            if kind == "parquet":
                return cls._open_parquet(path, schema, needs_others)
            return cls._open_text(path, schema, kind, needs_others, exact, hint)
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
        if schema is not None:
            _check_once(path, columns.names, schema)
        batches = _with_errors(file.iter_batches(_BATCH_ROWS, columns=names), path)
        return cls(path, schema or infer_schema(columns), columns, batches, file.metadata.num_rows, lambda n: n)

    @classmethod
    def _open_text(
        cls, path: Path, schema: Schema | None, kind: str, needs_others: bool, exact: Collection[str], hint: str
    ) -> RowsFile:
        text = TextFile.open(path, kind == "csv")
        shown = text.columns
        known = schema or infer_schema(pa.schema(list(zip(shown.names, shown.types, strict=True))))
        _check_once(path, shown.names, known)
        types = types_of(shown, known)
        checked = {name.lower() for name in exact} if kind == "csv" else set()
        n_done = 0

        def read() -> Iterator[pa.RecordBatch]:
            nonlocal n_done
            n_rows = 0
            for records in text.records():
                try:
                    batch = _read_exactly(shown, records, types, checked)
                except pa.ArrowInvalid as error:
                    row, error = _find_misfit(shown, records, types, checked, error)
                    more = f"; {hint or type_hint(schema)}"
                    raise FileError(f"cannot read {path}, row {n_rows + row:,}: {error}{more}") from None
                n_rows += batch.num_rows
                n_done = records.n_bytes_read
                # Not append_column: a batch without columns has no number of rows.
                yield (
                    pa.RecordBatch.from_arrays([*batch.columns, records.lines], schema=columns)
                    if needs_others
                    else batch
                )

        fields = [(shown.names[place], type_) for place, type_ in types.items()]
        columns = pa.schema([*fields, (RECORD, pa.large_binary())] if needs_others else fields)
        return cls(path, known, columns, read(), text.n_bytes, lambda _: n_done, text)

    @property
    def names(self) -> list[str]:
        """The columns of the file."""
        return list(self.columns.names) if self.text is None else self.text.columns.names

    def repeats(self, field: str) -> bool:
        """Whether several columns have this name, ignoring case."""
        return [name.lower() for name in self.names].count(field.lower()) > 1

    def refuse_repeated(self, field: str) -> NoReturn:
        raise _repeated(self.path, field)

    def check_fields(self, names: Iterable[str]) -> None:
        """Raise RowError if the file has no column for one of these fields."""
        known = {name.lower() for name in self.names}
        for name in names:
            if name.lower() not in known:
                raise lacks_field(name, self.names)

    def no_rows(self) -> pa.RecordBatch:
        """A batch without rows, with the columns of the file."""
        if self.text is None:
            return pa.RecordBatch.from_pylist([], self.columns)
        read = set(self.columns.names)
        types = [(name, self.columns.field(name).type if name in read else pa.string()) for name in self.names]
        return pa.RecordBatch.from_pylist([], pa.schema(types))


def type_hint(declared: Schema | None, option: str = "--schema") -> str:
    """A hint for a row that does not fit the types of its columns."""
    if declared is None:
        return f"declare the columns' types with {option}"
    return f"the types are those that {option} declares; change them, or correct the row"


def _find_misfit(
    columns: TextColumns,
    records: Records,
    types: Mapping[int, pa.DataType],
    exact: Collection[str],
    error: pa.ArrowInvalid,
) -> tuple[int, pa.ArrowInvalid]:
    """The number of the first record that cannot be read, from 1, and the error about it."""
    fits, fails = 0, len(records)
    while fits + 1 < fails:
        middle = (fits + fails) // 2
        try:
            _read_exactly(columns, records.first(middle), types, exact)
            fits = middle
        except pa.ArrowInvalid as found:
            fails, error = middle, found
    return fails, error


def read_sample(path: Path, schema: Schema) -> pa.Table:
    """The first rows of a file, at most as many as a sample may have."""
    file = RowsFile.open(path, schema, needs_others=False)
    batches: list[pa.RecordBatch] = []
    n_rows = 0
    for batch in file.batches:
        batches.append(batch)
        n_rows += batch.num_rows
        if n_rows >= MAX_SAMPLE_ROWS:
            break
    return pa.Table.from_batches(batches, file.columns).slice(0, MAX_SAMPLE_ROWS)


@dataclass(frozen=True)
class TextFile:
    """A file of text records. Its columns are inferred from its first block."""

    path: Path
    is_csv: bool
    n_bytes: int
    header: bytes  # of CSV: the first record
    columns: TextColumns

    @classmethod
    def open(cls, path: Path, is_csv: bool) -> TextFile:
        blocks = read_records(path, is_csv)
        first = next(blocks, None)
        if first is None:
            raise FileError(
                f"{path} is empty; it needs rows" + (", and a first line with the names of columns" if is_csv else "")
            )
        n_bytes = path.stat().st_size
        if not is_csv:
            return cls(path, is_csv, n_bytes, b"", JsonColumns(first))
        header = first.first(1)
        shown = first.after(1) if len(first) > 1 else next(blocks, first.after(1))
        return cls(path, is_csv, n_bytes, header.whole.to_pybytes(), CsvColumns(header, shown))

    def records(self) -> Iterator[Records]:
        """The records from the beginning, without the header."""
        n_header = int(self.is_csv)
        for records in read_records(self.path, self.is_csv):
            if len(records) > n_header:
                yield records.after(n_header)
            n_header = 0


def _read_exactly(
    columns: TextColumns, records: Records, types: Mapping[int, pa.DataType], exact: Collection[str]
) -> pa.RecordBatch:
    """The columns. ArrowInvalid if an integer of an exact column is not in its usual notation."""
    texts = {
        place: pa.string()
        for place, type_ in types.items()
        if columns.names[place].lower() in exact and pa.types.is_integer(type_)
    }
    batch = columns.read(records, {**types, **texts})
    for place in texts:
        name, written = columns.names[place], batch.column(columns.names[place])
        other = pc.fill_null(pc.invert(pc.match_substring_regex(written, WHOLE)), False)
        if pc.any(other).as_py():
            found = written.filter(other)[0].as_py()
            raise pa.ArrowInvalid(
                f"column {name!r} has integers, and {found[:100]!r} is not an integer in its usual notation"
            )
        batch = batch.set_column(batch.schema.get_field_index(name), name, written.cast(pa.int64()))
    return batch


def _check_once(path: Path, names: Sequence[str], schema: Schema) -> None:
    """Raise if a column that is needed occurs more than once."""
    seen: set[str] = set()
    for name in names:
        if name.lower() in seen and schema.find(name) is not None:
            raise _repeated(path, name)
        seen.add(name.lower())


def _repeated(path: Path, name: str) -> FileError:
    return FileError(f"{path} has several columns {name!r}, ignoring case; rename all but one of them", field=name)


def infer_schema(columns: pa.Schema) -> Schema:
    """The fields that queries may use: columns with a supported type and a unique name."""
    names = Counter(column.name.lower() for column in columns)
    fields = [
        Field(column.name, type_)
        for column in columns
        if (type_ := _type_of(column.type)) is not None and column.name and names[column.name.lower()] == 1
    ]
    if not fields:
        raise SchemaError(f"none of the columns has a type that queries can use: {columns}")
    return Schema(tuple(fields))


def only(schema: Schema, names: Collection[str]) -> Schema:
    """The fields with these names, ignoring case."""
    wanted = {name.lower() for name in names}
    return Schema(tuple(field for field in schema if field.name.lower() in wanted))


def complete(path: Path, schema: Schema | None, names: Sequence[str]) -> Schema | None:
    """A declared schema plus these columns of the file, if the schema lacks them. None stays None."""
    lacking = [] if schema is None else [name for name in names if schema.find(name) is None]
    if schema is None or not lacking:
        return schema
    wanted = {name.lower() for name in lacking}
    return Schema((*schema, *(field for field in RowsFile.open(path, None).schema if field.name.lower() in wanted)))


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
    "binary": lambda got: pa.types.is_binary(got) or pa.types.is_large_binary(got),
    "date": pa.types.is_date,
    "timestamp": pa.types.is_timestamp,
    # A column without any value in the first block may have any type; as text, all later values can be read.
    "string": lambda got: pa.types.is_string(got) or pa.types.is_large_string(got) or pa.types.is_null(got),
}


def _with_errors(batches: Iterator[pa.RecordBatch], path: Path) -> Iterator[pa.RecordBatch]:
    """The batches. An error of Arrow or of the system becomes a FileError."""
    n_rows = 0
    try:
        for batch in batches:
            yield batch
            n_rows += batch.num_rows
    except (pa.ArrowInvalid, OSError) as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"cannot read {path} after row {n_rows:,}: {error}") from None
