"""Rows in the bodies of requests: JSON, JSON lines, or an Arrow stream.

All of it is hostile until it is read: depth, numbers of rows, types and buffers are checked before the library sees it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from functools import cached_property
from typing import Any, NoReturn
from zoneinfo import ZoneInfo

import orjson
import pyarrow as pa

from vedette.data.schema import Schema
from vedette.errors import RowError, VedetteError, shown
from vedette.files.json_text import read_json
from vedette.files.one_row import RowReader
from vedette.serve.arrow_streams import read_stream
from vedette.serve.problems import Problem

JSON, LINES, ARROW = FORMS = (0, 1, 2)
MOMENT = 3  # no rows: time that passes, as a log has it
MEDIA_TYPES = {
    JSON: "application/json",
    LINES: "application/x-ndjson",
    ARROW: "application/vnd.apache.arrow.stream",
}
_NAMES = {
    "application/json": JSON,
    "application/x-ndjson": LINES,
    "application/ndjson": LINES,
    "application/jsonl": LINES,
    "application/jsonlines": LINES,
    "application/vnd.apache.arrow.stream": ARROW,
}


def form_of(content_type: str | None) -> int:
    """The form that a Content-Type names."""
    name = (content_type or "").partition(";")[0].strip().lower()
    if name not in _NAMES:
        known = ", ".join(MEDIA_TYPES.values())
        raise Problem(415, "unsupported_media_type", f"rows have the Content-Type {known}; got {shown(name)}")
    return _NAMES[name]


def wanted_form(accept: str | None, otherwise: int) -> int:
    """The form that an Accept header prefers; the form of the request if it names none of ours."""
    for part in (accept or "").split(","):
        name = part.partition(";")[0].strip().lower()
        if name in _NAMES:
            return _NAMES[name]
    return otherwise


# The types of JSON values that a column has without a conversion, by the type of its field.
_PLAIN: dict[str, set[type]] = {
    **{name: {float, int, type(None)} for name in ("double", "float")},
    **{name: {int, type(None)} for name in ("bigint", "int", "smallint", "tinyint")},
    "string": {str, type(None)},
    "boolean": {bool, type(None)},
}
# The types of values after `RowReader.convert`.
_CONVERTED: dict[str, set[type]] = {
    **_PLAIN,
    "decimal": {Decimal, int, type(None)},
    "date": {date, type(None)},
    "timestamp": {datetime, type(None)},
    "timestamp_ntz": {datetime, type(None)},
    "binary": {bytes, type(None)},
}
_HASHABLE = {str, int, float, bool, type(None)}
_UNREADABLE = (pa.ArrowException, ValueError, TypeError, OverflowError)
Record = Mapping[str, Any]
Read = Any  # a table, a list of records, or one record: what `RowsOf.read` returns


@dataclass(frozen=True)
class RowsOf:
    """How the rows of a set are read.

    Arrow's own reader of JSON lines is not used: it crashes on some texts that are not lines of objects.
    """

    schema: Schema
    time_zone: str
    max_rows: int

    @cached_property
    def _reader(self) -> RowReader:
        return RowReader(self.schema)

    @property
    def is_exact(self) -> bool:
        """Whether `load` keeps decimal numbers as texts."""
        return self._reader.needs_exact_numbers

    @cached_property
    def _columns(self) -> pa.Schema:
        return self.schema.to_arrow()

    @cached_property
    def _names(self) -> set[str]:
        return set(self._columns.names)

    @cached_property
    def _folded(self) -> dict[str, str]:
        return {name.lower(): name for name in self._columns.names}

    def read(self, form: int, body: bytes) -> pa.Table | list[Any] | dict[str, Any]:
        """A table, a list of records as JSON has them, or one record if the body is one JSON object."""
        if form == ARROW:
            return read_stream(body, self.max_rows)
        read = self._read_json(body) if form == JSON else self._read_lines(body)
        if isinstance(read, list):
            check_number(len(read), self.max_rows)
        return self.check(read)

    def check(self, read: Any) -> list[Any] | dict[str, Any]:
        """Records of JSON. Raises RowError if one is not an object."""
        if isinstance(read, list):
            for place, record in enumerate(read):
                if type(record) is not dict:
                    raise not_a_row(record, f"row {place}: ")
            return read
        if type(read) is not dict:
            raise not_a_row(read)
        return read

    def to_row(self, record: dict[str, Any]) -> dict[str, Any]:
        """One record with the types of its fields, for `match_one`."""
        return self._reader.convert(record)

    def to_table(self, read: pa.Table | Sequence[Record] | Record) -> pa.Table:
        """What `read` returned, as a table. Fields that JSON does not have are null."""
        if isinstance(read, pa.Table):
            return read
        records: Sequence[Record] = [read] if isinstance(read, Mapping) else read
        if not self._names.issuperset(set().union(*records)):
            records = [self._rename(record) for record in records]
        arrays = [self._to_array(each.name, each.type, records) for each in self._columns]
        return pa.Table.from_arrays(arrays, schema=self._columns)

    def plain_values(self, name: str, read: Sequence[Record] | Record) -> set[Any] | None:
        """The distinct values of a field, if they are as in JSON. None: a table of them must be made."""
        records: Sequence[Record] = [read] if isinstance(read, Mapping) else read
        field = self.schema.find(name)
        if field is None or not all(field.name in record for record in records):
            return None
        values = {record[field.name] for record in records if type(record[field.name]) in _HASHABLE}
        kinds = {type(record[field.name]) for record in records}
        return values if kinds <= _PLAIN.get(field.type.name, set()) else None

    def _rename(self, record: Record) -> dict[str, Any]:
        """The record with the names of the schema, which ignore case."""
        renamed: dict[str, Any] = {}
        for name, value in record.items():
            own = self._folded.get(name.lower(), name)
            if own in renamed:
                raise RowError(f"a row has the field {own!r} twice, ignoring case", field=own)
            renamed[own] = value
        return renamed

    def _to_array(self, name: str, type_: pa.DataType, records: Sequence[Record]) -> pa.Array:
        """A column: as a whole if its values are those of JSON, else value by value."""
        values = [record.get(name) for record in records]
        field = self.schema.find(name)
        kind = "" if field is None else field.type.name
        kinds = set(map(type, values))
        try:
            if kinds <= _PLAIN.get(kind, set()):
                return pa.array(values, type_)
            if kind == "timestamp" and kinds <= _PLAIN["string"]:
                return pa.array(values, pa.string()).cast(type_)
        except _UNREADABLE:
            pass
        return pa.array(
            [self._to_value(name, place, record, type_, kind) for place, record in enumerate(records)], type_
        )

    def _to_value(self, name: str, place: int, record: Record, type_: pa.DataType, kind: str) -> Any:
        value = record.get(name)
        if value is None:
            return None
        where = f"row {place}: "
        try:
            read = self._reader.convert({name: value})[name]
        except VedetteError as error:
            raise error.within(where.rstrip(": ")) from None
        if isinstance(read, datetime) and kind == "timestamp" and read.tzinfo is None:
            read = read.replace(tzinfo=ZoneInfo(self.time_zone))
        try:
            if type(read) not in _CONVERTED.get(kind, {type(read)}):
                raise TypeError
            pa.array([read], type_)
        except _UNREADABLE:
            field = self.schema.find(name)
            shown_type = type_ if field is None else field.type
            raise RowError(f"{where}field {name!r} is {shown_type}; got {shown(value)}", field=name) from None
        return read

    def _read_json(self, body: bytes) -> Any:
        try:
            return self.load(body)
        except ValueError as error:
            raise RowError(f"the body is not valid JSON: {error}") from None

    def _read_lines(self, body: bytes) -> list[Any]:
        lines = [line for line in body.splitlines() if line.strip()]
        check_number(len(lines), self.max_rows)
        try:
            read = self.load(b"[" + b",".join(lines) + b"]")
        except ValueError:
            read = []
        if len(read) != len(lines):  # find the line
            read = [self._read_line(place, line) for place, line in enumerate(lines)]
        return list(read)

    def _read_line(self, place: int, line: bytes) -> Any:
        try:
            return self.load(line)
        except ValueError as error:
            raise RowError(f"row {place}: it is not valid JSON: {error}") from None

    def load(self, text: bytes) -> Any:
        """JSON. Raises ValueError if it is invalid. If numbers must be exact, floats are texts."""
        if not self._reader.needs_exact_numbers:
            return orjson.loads(text)
        return read_json(text, parse_float=str, parse_constant=_refuse_constant)


def join_reads(reads: Sequence[Read], rows_of: RowsOf) -> pa.Table:
    """The rows of several requests, in their order, as one table."""
    if len(reads) == 1:
        return rows_of.to_table(reads[0])
    if not any(isinstance(read, pa.Table) for read in reads):
        return rows_of.to_table([row for read in reads for row in ([read] if type(read) is dict else read)])
    return pa.concat_tables([rows_of.to_table(read) for read in reads], promote_options="permissive")


def not_a_row(value: Any, where: str = "") -> RowError:
    return RowError(f'{where}a row is a JSON object such as {{"symbol": "IBM", "price": 39.5}}; got {shown(value)}')


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def refuse_side(side: str) -> RowError:
    return RowError(f"unknown side {shown(side)}; the rows of this set have no sides")


def check_number(n: int, most: int) -> None:
    """Raise a problem if a request has too many rows."""
    if n > most:
        raise Problem(413, "too_many_rows", f"the request has {n:,} rows; the limit is {most:,} (--max-rows)")
