"""Files of queries: CSV, JSON lines or Parquet with columns `id` and `where`; further columns are the owner's own.

Or GeoJSON, each polygon of which is a query: the fields it is about are found by their names, such as lon and lat.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from vedette.data.schema import TYPE_NAMES, Schema
from vedette.errors import FileError, QueryError
from vedette.files.geojson import ROOTS, point_fields, read_geojson
from vedette.files.json_text import read_json
from vedette.files.lines import WORDS, Kind, Lines, read_lines
from vedette.files.rows import check_readable
from vedette.language.geofences import LATITUDES, LONGITUDES
from vedette.queries.query_set import QuerySet

_SHOWN_FIELDS = 20
MOST_WARNINGS = 5  # features of a file that are named
_HEAD = 1 << 16  # bytes of a JSON file that tell what it is
_GEOJSON = re.compile(rf'"type"\s*:\s*"(?:{"|".join(ROOTS)})"'.encode())


def load_queries(
    path: Path, schema: str | Schema, time_zone: str, *, skip_bad: bool = False, shown_by: Path | None = None
) -> QuerySet:
    """A query set of the file's queries. With `skip_bad` wrong ones are left out, counted on standard error.

    `shown_by` is the file of rows whose first rows show the types of the schema, where nobody has declared them.
    """
    queries = QuerySet(schema, time_zone=time_zone)
    lines = read_queries(path, queries.schema)
    try:
        lines.stand(queries.add_many, skip_bad=skip_bad)
    except FileError as error:
        if shown_by is None or not any(name in str(error) for name in TYPE_NAMES):
            raise
        fields = ", ".join(f"{field.name} {field.type}" for field in list(queries.schema)[:_SHOWN_FIELDS])
        more = ", ..." if len(queries.schema.fields) > _SHOWN_FIELDS else ""
        raise FileError(
            f"{error}\n  types are as {shown_by} shows them: {fields}{more}; --schema declares others"
        ) from None
    lines.tell_bad()
    return queries


def take_text(query_id: str | int, text: object) -> str:
    """The text of a query, if it is one."""
    if not isinstance(text, str) or not text.strip():
        raise QueryError(f"query {query_id!r} has no text under 'where'")
    return text


_QUERY = Kind("query", "queries", ("where",), "an id and a text under 'where'", take_text)


def read_queries(path: Path, schema: Schema) -> Lines:
    """The queries of a file; `schema` names the fields that polygons are about."""
    return read_polygons(path, schema, _QUERY) if is_geojson(path) else read_lines(path, _QUERY)


def is_geojson(path: Path) -> bool:
    """Whether a file is GeoJSON: by its name, or by what it begins with, and not lines of queries."""
    if path.suffix.lower() != ".json":
        return path.suffix.lower() == ".geojson"
    check_readable(path)
    with path.open("rb") as file:
        if not _GEOJSON.search(file.read(_HEAD)):
            return False
        file.seek(0)
        line = file.readline()
    try:
        record = read_json(line)
    except ValueError:  # an object over several lines
        return True
    return not (isinstance(record, dict) and "where" in record)


def read_polygons(path: Path, schema: Schema, kind: Kind) -> Lines:
    """The features of a GeoJSON file as queries of that kind, which may take their properties as further columns."""
    check_readable(path)
    fields = point_fields(schema)
    if fields is None:
        known = f"{' or '.join(LONGITUDES)} with {' or '.join(LATITUDES)}, or x with y"
        has = ", ".join(schema.names)
        raise FileError(f"{path} holds polygons, which need two fields of the rows: {known}; the schema has: {has}")
    lines = Lines(path, kind, WORDS["geojson"])
    errors: list[tuple[int, FileError]] = []
    warnings: list[tuple[int, str]] = []
    ids, texts, properties = read_geojson(path, *fields, errors=errors, warnings=warnings)
    for number, words in warnings[:MOST_WARNINGS]:
        print(f"vedette: warning: {path}, feature {number}: {words}", file=sys.stderr)
    if len(warnings) > MOST_WARNINGS:
        print(f"vedette: warning: and {len(warnings) - MOST_WARNINGS:,} more such features", file=sys.stderr)
    bad = {number for number, _ in errors}
    numbers = [number for number in range(1, len(ids) + len(bad) + 1) if number not in bad]
    for number, query_id, text, rest in zip(numbers, ids, texts, properties, strict=True):
        lines.add(number, query_id, text, rest=rest)
    lines.bad += [error for _, error in errors]
    lines.check()
    return lines
