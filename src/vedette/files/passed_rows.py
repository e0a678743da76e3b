"""Rows that pass through a command unchanged, each with the id of a query that it matches.

If the answer has the format of the input, a text record is copied byte for byte. CSV has only text: in Parquet and JSON
lines its columns are strings, except those that --schema declares. Strings of JSON stay strings. The types of an answer
never depend on the queries.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vedette.data.schema import Schema
from vedette.errors import FileError
from vedette.files.answers import AnswerFile
from vedette.files.json_text import read_json
from vedette.files.rows import RECORD, RowsFile, TextFile
from vedette.files.text_records import Records

QUERY = "query"
_LOSES_WHOLE = 2.0**53  # from here on, a double cannot represent every integer
_MAY_NAME_QUERY = rf'(?i)"{QUERY}"|\\u'


@dataclass(frozen=True)
class PassedRows:
    """Writes pairs: the unchanged rows of a file, each with the id of a query."""

    rows: RowsFile
    declared: Schema | None
    place: AnswerFile

    def check(self) -> None:
        """Raise if the format of the answer cannot represent the rows."""
        if any(name.lower() == QUERY for name in self.rows.names):
            raise FileError("the rows have a column 'query', which is also a column of the answer; rename it")
        text = self.rows.text
        if text is not None and self.place.kind == "csv":
            _header_of(text)
        elif text is not None:
            _check_names(text)

    def begin(self, ids: pa.DataType) -> None:
        """Write the columns, which an answer without pairs also has."""
        text = self.rows.text
        if text is not None and self.place.kind == "csv":
            self.place.write_bytes(_header_of(text))
        elif self.place.kind != "jsonl":
            empty = pa.RecordBatch.from_pylist([], pa.schema([*self.rows.columns, (QUERY, _plain(ids))]))
            self.write(empty)

    def write(self, pairs: pa.RecordBatch) -> None:
        """Write rows of the file, with a last column `query`."""
        text, kind, ids = self.rows.text, self.place.kind, pairs.column(pairs.num_columns - 1)
        ids = ids.cast(_plain(ids.type))
        if text is None:
            schema = pa.schema([*self.rows.columns, (QUERY, ids.type)])
            self.place.write(pa.RecordBatch.from_arrays(pairs.columns, schema=schema))
            return
        lines = pairs.column(pairs.schema.get_field_index(RECORD))
        if text.is_csv and kind == "csv":
            self.place.write_bytes(_bytes_of(_join(_trim(lines), b",", _csv_ids(ids), b"\n")))
        elif not text.is_csv and kind == "jsonl":
            self.place.write_bytes(_bytes_of(_extend_objects(lines, ids)))
        elif kind == "csv":
            records = _as_csv(lines, text.columns.names)
            self.place.write_bytes(_bytes_of(_join(records, b",", _csv_ids(ids), b"\n")))
        else:
            self.place.write(_as_columns(lines, text, self.declared).append_column(QUERY, ids))


def _plain(ids: pa.DataType) -> pa.DataType:
    return pa.int64() if pa.types.is_integer(ids) else pa.string()


def _header_of(text: TextFile) -> bytes:
    if text.is_csv:
        return text.header.rstrip(b"\r\n") + f',"{QUERY}"\n'.encode()
    for name, type_ in zip(text.columns.names, text.columns.types, strict=True):
        if pa.types.is_nested(type_):
            raise _no_csv(name, str(type_)[:100])
    return b",".join(_quote(name) for name in [*text.columns.names, QUERY]) + b"\n"


def _check_names(text: TextFile) -> None:
    """Raise if two columns have the same name, which only CSV allows."""
    names = text.columns.names
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise FileError(f"column {twice!r} is in {text.path} twice, which only CSV allows; use -o with .csv")


# Bytes of text records.


def _trim(lines: pa.Array) -> pa.Array:
    """Records without their line ends."""
    return pc.ascii_rtrim(lines.view(pa.large_string()), "\r\n").view(pa.large_binary())


def _join(*parts: Any) -> pa.LargeBinaryArray:
    """The bytes of several columns, row by row. A part of type bytes is the same for all rows."""
    made = [pa.scalar(part, pa.large_binary()) if isinstance(part, bytes) else part for part in (*parts, b"")]
    return pc.binary_join_element_wise(*made)


def _bytes_of(texts: pa.LargeBinaryArray) -> memoryview:
    if not len(texts):
        return memoryview(b"")
    _, offsets, data = texts.buffers()
    ends = np.frombuffer(offsets, np.int64)[[texts.offset, texts.offset + len(texts)]]
    return memoryview(data)[int(ends[0]) : int(ends[1])]


def _csv_ids(ids: pa.Array) -> pa.Array:
    """Ids as fields of CSV: numbers, or texts in quotes."""
    texts = ids.cast(pa.large_string())
    if pa.types.is_integer(ids.type):
        return texts.cast(pa.large_binary())
    return _join(b'"', pc.replace_substring(texts, '"', '""').cast(pa.large_binary()), b'"')


class _Number(str):
    """A number of JSON as it is written, of any length."""


class _Whole(_Number):
    """A number without a fraction and an exponent."""


def _read_object(line: bytes) -> dict[str, Any]:
    try:
        return dict(read_json(line, parse_int=_Whole, parse_float=_Number))
    except ValueError as error:
        raise FileError(f"a row cannot be written: {error}; it begins with {line[:60]!r}") from None


def _extend_objects(lines: pa.Array, ids: pa.Array) -> pa.LargeBinaryArray:
    """JSON objects, each with the id under one more key."""
    may_name = pc.match_substring_regex(lines, _MAY_NAME_QUERY)
    for line in lines.filter(may_name).to_pylist():
        if any(name.lower() == QUERY for name in _read_object(line)):
            raise FileError("a row has a key 'query', which is also a key of the answer; rename it")
    opened = pc.replace_substring_regex(lines, r"\s*\}\s*$", "")
    is_empty = pc.match_substring_regex(opened, r"^\s*\{$")
    comma = pc.if_else(is_empty, pa.scalar(b"", pa.large_binary()), pa.scalar(b", ", pa.large_binary()))
    found = ids.dictionary_encode()
    known = [json.dumps(each, ensure_ascii=False).encode() for each in found.dictionary.to_pylist()]
    written = pa.array(known, pa.large_binary()).take(found.indices)
    return _join(opened, comma, f'"{QUERY}": '.encode(), written, b"}\n")


# JSON lines as CSV, and text as typed columns.


def _as_csv(lines: pa.Array, names: list[str]) -> pa.Array:
    """The objects of lines as CSV records. Numbers keep their notation."""
    known = set(names)
    made = []
    for line in lines.to_pylist():
        row = _read_object(line)
        if not row.keys() <= known:
            raise _unexpected(sorted(row.keys() - known)[0])
        made.append(b",".join(_as_field(row.get(name), name) for name in names))
    return pa.array(made, pa.large_binary())


def _as_field(value: Any, name: str) -> bytes:
    if value is None:
        return b""
    if isinstance(value, bool):
        return b"true" if value else b"false"
    if isinstance(value, _Number):
        return value.encode()
    if not isinstance(value, str):
        raise _no_csv(name, "nested")
    return _quote(value)


def _quote(text: str) -> bytes:
    return b'"' + text.replace('"', '""').encode("utf-8", "surrogatepass") + b'"'


def _as_columns(lines: pa.Array, text: TextFile, declared: Schema | None) -> pa.RecordBatch:
    """Text records as columns: declared ones in their types, others in the types of the file."""
    shown = text.columns
    types = {}
    for place, name in enumerate(shown.names):
        field = None if declared is None else declared.find(name)
        type_ = shown.types[place]
        if field is not None:
            types[place] = shown.fitting(place, field)
        else:
            is_text = text.is_csv or pa.types.is_timestamp(type_) or pa.types.is_null(type_)
            types[place] = pa.string() if is_text else type_
    joined = _join(_trim(lines), b"\n")
    offsets = np.frombuffer(joined.buffers()[1], np.int64)[joined.offset : joined.offset + len(joined) + 1]
    records = Records(joined.buffers()[2] or pa.py_buffer(b""), offsets, 0)
    try:
        batch = shown.read(records, types, allows_others=False)
    except pa.ArrowInvalid as error:
        raise FileError(f"cannot write rows of {text.path}: {error}; use -o with the file's own format") from None
    if not text.is_csv:
        _check_doubles(batch, lines)
    return batch


def _check_doubles(batch: pa.RecordBatch, lines: pa.Array) -> None:
    """Raise if a double cannot represent an integer of JSON exactly."""
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if not pa.types.is_floating(column.type):
            continue
        is_large = pc.greater_equal(pc.abs(column), _LOSES_WHOLE)
        for line in lines.filter(is_large).to_pylist():
            value = _read_object(line).get(name)
            if isinstance(value, _Whole) and Decimal(value) != Decimal(float(value)):
                raise FileError(
                    f"column {name!r} has {value[:60]}, which is not exact as a double; declare the column as "
                    f"decimal with --schema, or use -o with .jsonl"
                )


def _unexpected(name: str) -> FileError:
    return FileError(f"a row has the key {name[:100]!r}, which the first rows do not have; use -o with .jsonl")


def _no_csv(name: str, what: str) -> FileError:
    return FileError(f"column {name!r} is {what}, which CSV does not support; use -o with .jsonl or .parquet")
