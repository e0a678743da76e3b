"""Files of queries: CSV, JSON lines or Parquet with columns `id` and `where`, and options of border monitoring.

Other columns are ignored.

Or GeoJSON, where each polygon, or point with a radius, is a query over two fields that are found by their names, such
as lon and lat.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from vedette.data.schema import TYPE_NAMES, Schema
from vedette.errors import FileError, QueryError
from vedette.files.geojson import ROOTS, Features, point_fields
from vedette.files.json_text import read_json
from vedette.files.lines import WORDS, Kind, Lines, read_lines
from vedette.files.rows import RowsFile, check_readable
from vedette.language.fence_bounds import LATITUDES, LONGITUDES
from vedette.queries.query_options import OPTIONS, take_options
from vedette.queries.query_set import QuerySet

_SHOWN_FIELDS = 20
MAX_WARNINGS = 5  # features of a file that are named
_HEAD = 1 << 16  # bytes of a JSON file that are searched
_GEOJSON = re.compile(rf'"type"\s*:\s*"(?:{"|".join(ROOTS)})"'.encode())


@dataclass
class QueriesFile:
    """A file of queries. Invalid queries are skipped with `skip_bad`, invalid polygons repaired with `repair`."""

    path: Path
    time_zone: str = "UTC"
    skip_bad: bool = False
    repair: bool = False
    takes_options: bool = False  # of border monitoring: columns or properties such as cooldown
    notes: list[str] = field(default_factory=list)  # for a summary: skipped and repaired queries

    def load(self, schema: str | Schema, *, shown_by: RowsFile | None = None) -> QuerySet:
        """A set of the queries. Skipped and repaired queries are reported on standard error.

        `shown_by` is the file of rows from which the schema was inferred, if it was not declared.
        """
        queries = QuerySet(schema, time_zone=self.time_zone)
        kind = _QUERY_WITH_OPTIONS if self.takes_options else _QUERY
        lines = read_queries(self.path, queries.schema, kind, repair=self.repair).keep_first()
        try:
            add = partial(_add_with_options, queries) if self.takes_options else queries.add_many
            lines.add_to(add, skip_bad=self.skip_bad)
        except FileError as error:
            if shown_by is not None and error.field is not None and shown_by.repeats(error.field):
                shown_by.refuse_repeated(error.field)
            if shown_by is None or not any(name in str(error) for name in TYPE_NAMES):
                raise
            raise FileError(f"{error}\n  {_inferred(queries.schema, shown_by.path)}", query=error.query) from None
        lines.report()
        self.notes += lines.notes
        return queries


def _inferred(schema: Schema, shown_by: Path) -> str:
    """A note that the types of a schema are inferred."""
    fields = ", ".join(f"{each.name} {each.type}" for each in list(schema)[:_SHOWN_FIELDS])
    more = ", ..." if len(schema.fields) > _SHOWN_FIELDS else ""
    return f"the types are inferred from {shown_by}: {fields}{more}; use --schema to declare others"


def take_text(text: object) -> str:
    """The text of a query. Raises if it is empty."""
    if not isinstance(text, str) or not text.strip():
        raise QueryError("it has no text under 'where'")
    return text


def _take_with_options(text: object, rest: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The text of a query, and its options."""
    return take_text(text), take_options({name.lower(): cell for name, cell in rest.items() if name.lower() in OPTIONS})


def _add_with_options(queries: QuerySet, ids: list[Any], values: list[tuple[str, dict[str, Any]]]) -> None:
    given = [options for _, options in values]
    columns = {name: [each.get(name) for each in given] for name in OPTIONS if any(name in each for each in given)}
    queries.add_many(ids, [text for text, _ in values], **columns)


_QUERY = Kind("query", "queries", ("where",), "an id and a text under 'where'", take_text)
_QUERY_WITH_OPTIONS = replace(_QUERY, take=_take_with_options, has_rest=True)


def read_queries(path: Path, schema: Schema, kind: Kind = _QUERY, *, repair: bool = False) -> Lines:
    """The queries of a file. Polygons compare the fields of `schema` that are a point."""
    return read_polygons(path, schema, kind, repair=repair) if is_geojson(path) else read_lines(path, kind)


def is_geojson(path: Path) -> bool:
    """Whether a file is GeoJSON, by its name or its first bytes, and not JSON lines of queries."""
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


def read_polygons(path: Path, schema: Schema, kind: Kind, *, repair: bool = False) -> Lines:
    """The features of a GeoJSON file as queries of this kind. Their properties are further columns."""
    check_readable(path)
    fields = point_fields(schema)
    if fields is None:
        known = f"{' or '.join(LONGITUDES)} with {' or '.join(LATITUDES)}, or x with y"
        has = ", ".join(schema.names)
        raise FileError(f"{path} has polygons, which need two fields of the rows: {known}; the schema has: {has}")
    lines = Lines(path, kind, WORDS["geojson"])
    found = Features.read(path, *fields, repair=repair)
    for feature in found.features:
        lines.add(feature.number, feature.id, feature.text, rest=feature.properties)
    lines.bad |= found.errors
    lines.repaired += [feature.id for feature in found.features if feature.is_repaired]
    for number, words in list(found.warnings.items())[:MAX_WARNINGS]:
        print(f"vedette: warning: {path}, feature {number}: {words}", file=sys.stderr)
    if len(found.warnings) > MAX_WARNINGS:
        print(f"vedette: warning: and {len(found.warnings) - MAX_WARNINGS:,} more such features", file=sys.stderr)
    lines.check()
    return lines
