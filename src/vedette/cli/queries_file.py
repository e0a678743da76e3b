"""Files of queries: CSV, JSON lines or Parquet with columns `id` and `where`; further columns are the owner's own.

Or GeoJSON, each polygon of which is a query: the fields it is about are found by their names, such as lon and lat.

Whatever is wrong with a query is told with its line. Nothing is half loaded: either all queries stand, or, with
`skip_bad`, all that are right.
"""

from __future__ import annotations

import csv
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from vedette.cli.rows_file import check_readable, format_of
from vedette.engine.query_set import QuerySet
from vedette.errors import FileError, QueryError, count
from vedette.geojson import ROOTS, point_fields, read_geojson
from vedette.language.geofences import LATITUDES, LONGITUDES
from vedette.schema import Schema

_CHUNK = 1 << 14  # queries added at once where some may be wrong
_HEAD = 1 << 16  # bytes of a JSON file that tell what it is
_GEOJSON = re.compile(rf'"type"\s*:\s*"(?:{"|".join(ROOTS)})"'.encode())
_SHOWN = 5  # of the bad lines, when they are skipped


@dataclass
class Lines:
    """Queries as they stand in a file."""

    path: Path
    word: str = "line"
    ids: list[str | int] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    bad: list[FileError] = field(default_factory=list)

    def add(self, number: int, query_id: object, text: object) -> None:
        if not isinstance(query_id, str | int) or isinstance(query_id, bool) or query_id == "":
            self.add_bad(number, f"the id is {query_id!r}; it takes a string or a whole number")
        elif not isinstance(text, str) or not text.strip():
            self.add_bad(number, f"query {query_id!r} has no text under 'where'")
        elif self.ids and type(query_id) is not type(self.ids[0]):
            kinds = {str: "a string", int: "a number"}
            self.add_bad(number, f"the id {query_id!r} is {kinds[type(query_id)]}, earlier ones are not; use one kind")
        else:
            self.ids.append(query_id)
            self.texts.append(text)
            self.numbers.append(number)

    def add_bad(self, number: int, reason: str) -> None:
        self.bad.append(FileError(f"{self.path}, {self.word} {number}: {reason}"))


def load_queries(path: Path, schema: str | Schema, time_zone: str, *, skip_bad: bool = False) -> QuerySet:
    """A query set of the file's queries. With `skip_bad` wrong ones are left out, counted on standard error."""
    queries = QuerySet(schema, time_zone=time_zone)
    lines = read_lines(path, queries.schema)
    if lines.bad and not skip_bad:
        raise lines.bad[0]
    if not skip_bad:
        try:
            queries.add_many(lines.ids, lines.texts)
            return queries
        except QueryError:
            pass  # one of them; found below
    for start in range(0, len(lines.ids), _CHUNK):
        _add_good(queries, lines, start, min(start + _CHUNK, len(lines.ids)), skip_bad)
    _report(lines)
    return queries


def _add_good(queries: QuerySet, lines: Lines, start: int, end: int, skip_bad: bool) -> None:
    """Add the queries from `start` to `end`, halving where they cannot be added together."""
    if start == end:
        return
    try:
        queries.add_many(lines.ids[start:end], lines.texts[start:end])
    except QueryError as error:
        if end - start > 1:
            middle = (start + end) // 2
            _add_good(queries, lines, start, middle, skip_bad)
            _add_good(queries, lines, middle, end, skip_bad)
            return
        lines.add_bad(lines.numbers[start], str(error))
        if not skip_bad:
            raise lines.bad[-1] from None


def _report(lines: Lines) -> None:
    for error in lines.bad[:_SHOWN]:
        print(f"vedette: skipped {error}", file=sys.stderr)
    if lines.bad:
        print(f"vedette: skipped {count(len(lines.bad), 'bad query', 'bad queries')} of {lines.path}", file=sys.stderr)


def read_lines(path: Path, schema: Schema) -> Lines:
    """The queries of a file; `schema` names the fields that polygons are about."""
    kind = "geojson" if path.suffix.lower() == ".geojson" else format_of(path)
    check_readable(path)
    if path.suffix.lower() == ".json" and _is_geojson(path):
        kind = "geojson"
    lines = Lines(path, {"parquet": "row", "geojson": "feature"}.get(kind, "line"))
    if kind == "geojson":
        _read_geojson(path, lines, schema)
    else:
        {"csv": _read_csv, "jsonl": _read_jsonl, "parquet": _read_parquet}[kind](path, lines)
    if not lines.ids and not lines.bad:
        raise FileError(f"{path} holds no queries; it needs rows with an id and a text under 'where'")
    return lines


def _read_csv(path: Path, lines: Lines) -> None:
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, strict=True)
        header = [name.strip().lower() for name in next(reader, [])]
        _check_columns(path, header)
        id_place, text_place = header.index("id"), header.index("where")
        for number, record in _numbered(reader, lines):
            if len(record) != len(header):
                got = f"it has {len(record)} columns, the first line has {len(header)}"
                lines.add_bad(number, f"{got}; put texts with commas into quotes")
            else:
                lines.add(number, record[id_place], record[text_place])


def _numbered(reader: Any, lines: Lines) -> Iterator[tuple[int, list[str]]]:
    """The records with the line each starts on; empty lines are passed over."""
    while True:
        number = reader.line_num + 1
        try:
            record = next(reader)
        except StopIteration:
            return
        except (csv.Error, UnicodeDecodeError) as error:
            lines.add_bad(number, f"it is no CSV: {error}")
            if isinstance(error, UnicodeDecodeError):
                return
            continue
        if record:
            yield number, record


def _read_jsonl(path: Path, lines: Lines) -> None:
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                record = json.loads(line)
            except ValueError as error:
                what = error.msg if isinstance(error, json.JSONDecodeError) else error
                lines.add_bad(number, f"it is no JSON: {what}")
                continue
            if not isinstance(record, dict) or "id" not in record or "where" not in record:
                lines.add_bad(number, "it is no object with 'id' and 'where'")
            else:
                lines.add(number, record["id"], record["where"])


def _is_geojson(path: Path) -> bool:
    """Whether a JSON file is GeoJSON by what it begins with, and not lines of queries."""
    with path.open("rb") as file:
        if not _GEOJSON.search(file.read(_HEAD)):
            return False
        file.seek(0)
        line = file.readline()
    try:
        record = json.loads(line)
    except ValueError:  # an object over several lines
        return True
    return not (isinstance(record, dict) and "where" in record)


def _read_geojson(path: Path, lines: Lines, schema: Schema) -> None:
    fields = point_fields(schema)
    if fields is None:
        known = f"{' or '.join(LONGITUDES)} with {' or '.join(LATITUDES)}, or x with y"
        has = ", ".join(schema.names)
        raise FileError(f"{path} holds polygons, which need two fields of the rows: {known}; the schema has: {has}")
    errors: list[tuple[int, FileError]] = []
    ids, texts, _ = read_geojson(path, *fields, errors=errors)
    bad = {number for number, _ in errors}
    numbers = [number for number in range(1, len(ids) + len(bad) + 1) if number not in bad]
    for number, query_id, text in zip(numbers, ids, texts, strict=True):
        lines.add(number, query_id, text)
    lines.bad += [error for _, error in errors]


def _read_parquet(path: Path, lines: Lines) -> None:
    try:
        _check_columns(path, [name.lower() for name in pq.read_schema(path).names])
        table = pq.read_table(path)
    except pa.ArrowInvalid as error:
        raise FileError(f"{path} is no Parquet file: {error}") from None
    by_name = {name.lower(): name for name in table.column_names}
    ids, texts = table[by_name["id"]].to_pylist(), table[by_name["where"]].to_pylist()
    for number, (query_id, text) in enumerate(zip(ids, texts, strict=True), start=1):
        lines.add(number, query_id, text)


def _check_columns(path: Path, names: list[str]) -> None:
    missing = [name for name in ("id", "where") if name not in names]
    if missing:
        has = ", ".join(names) or "none"
        raise FileError(
            f"{path} lacks the column {missing[0]!r}; a queries file has columns id and where, this has: {has}"
        )
