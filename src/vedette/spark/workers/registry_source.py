"""The registry as a data source, inside Spark's Python processes: reads sets, and writes rows as one change.

`where` is the address of the registry, from the driver. Spark plans reads and commits writes in Python processes on the
driver's host; workers read.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import pyarrow as pa
from pyspark.sql import types as t

from vedette.errors import PipelineError, QueryError, nearest, shown
from vedette.registry.kinds import KINDS
from vedette.registry.read.query_info import QueryInfo
from vedette.registry.read.revisions import read_revisions, read_versions
from vedette.registry.read.set_info import SetInfo
from vedette.registry.registry import Registry
from vedette.registry.write.records import OWN, add_records, replace_records, take_metadata, take_time
from vedette.registry.write.steps import read_ids

QUERIES, HISTORY, VERSIONS = "queries", "history", "versions"
_OPTIONS = ("set", "of", "version")
_NUMBERS = ("low", "high", "x_low", "x_high", "y_low", "y_high", "z_low", "z_high")
_READ_ONLY = ("state", "added", "removed", "created_at", "ended_at")  # columns of reads that writes ignore
_COLUMNS: dict[str, pa.DataType] = {
    "state": pa.string(),
    "metadata": pa.string(),
    "expires_at": pa.timestamp("us", "UTC"),
    "added": pa.int64(),
    "removed": pa.int64(),
    "created_at": pa.timestamp("us", "UTC"),
    "ended_at": pa.timestamp("us", "UTC"),
}
_OF_QUERIES = ("metadata", "expires_at", "added", "created_at")
_OF_HISTORY = tuple(_COLUMNS)
_OF_VERSIONS = {
    "version": pa.int64(),
    "made_at": pa.timestamp("us", "UTC"),
    "n_added": pa.int64(),
    "n_removed": pa.int64(),
}
_SPARK_TYPES = {
    pa.string(): t.StringType(),
    pa.int64(): t.LongType(),
    pa.float64(): t.DoubleType(),
    pa.timestamp("us", "UTC"): t.TimestampType(),
}


def read_schema(where: Mapping[str, Any], options: Mapping[str, str]) -> t.StructType:
    """The columns that a read returns."""
    _, info, of = _open(where, options)
    return t.StructType([t.StructField(field.name, _SPARK_TYPES[field.type]) for field in _schema_of(info, of)])


def plan_read(where: Mapping[str, Any], options: Mapping[str, str]) -> dict[str, Any]:
    """What a worker has to read: all of it is as of one version."""
    registry, info, of = _open(where, options)
    version = registry.end_due(info).version if options.get("version") is None else _read_version(options["version"])
    registry.schema_at(info.name, version)  # raises if there is no such version
    return {"options": dict(options), "uid": info.uid, "version": version, "of": of}


def read(where: Mapping[str, Any], plan: Mapping[str, Any], names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The rows, in batches."""
    registry, info, of = _open(where, plan["options"])
    if info.uid != plan["uid"]:
        raise PipelineError(
            f"set {info.name!r} was dropped and created again since this read was planned; load it again"
        )
    schema = _schema_of(info, of)
    if list(names) != schema.names:
        raise PipelineError(f"a read of {of} returns the columns {', '.join(schema.names)}; do not pass another schema")
    if of == VERSIONS:
        yield _batch([vars(each) for each in read_versions(registry.database, info, plan["version"])], schema)
        return
    for page in read_revisions(registry.database, info, plan["version"], active_only=of == QUERIES):
        yield _batch([_to_row(query, info) for query in page], schema)


def check_columns(where: Mapping[str, Any], options: Mapping[str, str], columns: Sequence[tuple[str, str]]) -> None:
    """Raise PipelineError unless rows with these columns can be written to the set."""
    _, info, of = _open(where, options)
    if of != QUERIES or options.get("version") is not None:
        raise PipelineError("a write has only the option set; of and version are options of reads")
    form = KINDS[info.kind].form
    known = ("id", *form.written, *OWN, *_READ_ONLY)
    names = [name.lower() for name, _ in columns]
    for name, (written, _) in zip(names, columns, strict=True):
        if name not in known:
            raise PipelineError(
                f"column {written!r} is not part of a query of set {info.name!r}; columns are: "
                f"{', '.join(known[: -len(_READ_ONLY)])}{nearest(name, known)}; other values can be metadata: "
                f"to_json(struct({written})) AS metadata"
            )
        if names.count(name) > 1:
            raise PipelineError(f"there are {names.count(name)} columns {name!r}, ignoring case; drop all but one")
    for name in ("id", *form.needed):
        if name not in names:
            raise PipelineError(f"column {name!r} is missing; a row to write to set {info.name!r} needs {form.needs}")


def gather(where: Mapping[str, Any], batches: Iterable[pa.RecordBatch]) -> bytes:
    """The rows of a task, for `commit`."""
    sink, writer = pa.BufferOutputStream(), None
    for batch in batches:
        if writer is None:
            writer = pa.ipc.new_stream(sink, batch.schema)
        writer.write_batch(batch)
    if writer is not None:
        writer.close()
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def commit(where: Mapping[str, Any], options: Mapping[str, str], overwrite: bool, contents: Sequence[bytes]) -> None:
    """Add the rows of all tasks to the set, or replace its queries, as one change with one version."""
    registry, info, _ = _open(where, options)
    ids: list[Any] = []
    records: list[dict[str, Any]] = []
    for content in contents:
        if content:
            for row in pa.ipc.open_stream(content).read_all().to_pylist():
                row = {name.lower(): value for name, value in row.items()}
                ids.append(_read_id(row["id"]))
                records.append(_to_record(row, info))
    if not ids:
        return
    read_ids(ids, info)  # raises if an id occurs twice or has another type
    change = registry.change(info.name)
    write = replace_records if overwrite else add_records
    write(change, info.kind, ids, records, {})
    change.commit()


def _open(where: Mapping[str, Any], options: Mapping[str, str]) -> tuple[Registry, SetInfo, str]:
    """The registry, the set that the options name, and what to read of it. Raises PipelineError."""
    given = {name.lower(): value for name, value in options.items()}
    for name in given:
        if name not in _OPTIONS:
            raise PipelineError(f"unknown option {name!r}; options are: {', '.join(_OPTIONS)}{nearest(name, _OPTIONS)}")
    if "set" not in given:
        raise PipelineError('the option set is missing; name a set of the registry: .option("set", "alerts")')
    of = given.get("of", QUERIES)
    choices = (QUERIES, HISTORY, VERSIONS)
    if of not in choices:
        raise PipelineError(f"must be one of: {', '.join(choices)}; got {of!r}", option="of")
    host = socket.gethostname()
    if where["url"].startswith("sqlite") and host != where["host"]:
        raise PipelineError(
            f"the registry is a SQLite file on host {where['host']}, but a Spark worker runs on {host}; use a registry "
            f"in PostgreSQL if workers run on several hosts"
        )
    registry = _connect(where["url"], where["snapshots"], where["retry_seconds"])
    return registry, registry.set(given["set"]), of


@lru_cache(maxsize=4)
def _connect(url: str, snapshots: str | None, retry_seconds: float) -> Registry:
    return Registry(url, snapshots, create=False, retry_seconds=retry_seconds)


def _read_version(text: str) -> int:
    if not text.isdecimal() or len(text) > 18:
        raise PipelineError(f"must be the number of a version; got {shown(text)}", option="version")
    return int(text)


def _schema_of(info: SetInfo, of: str) -> pa.Schema:
    if of == VERSIONS:
        return pa.schema(_OF_VERSIONS)
    id_type = pa.int64() if info.id_kind == "integer" else pa.string()
    written = {name: pa.float64() if name in _NUMBERS else pa.string() for name in _written(info)}
    more = {name: _COLUMNS[name] for name in (_OF_QUERIES if of == QUERIES else _OF_HISTORY)}
    return pa.schema({"id": id_type} | written | more)


def _written(info: SetInfo) -> tuple[str, ...]:
    names = KINDS[info.kind].form.written
    return names[: 2 * info.dimensions] if info.dimensions else names


def _to_row(query: QueryInfo, info: SetInfo) -> dict[str, Any]:
    """A revision as a row of a read."""
    line = KINDS[info.kind].form.to_line(query)
    return {
        "id": query.id,
        **{name: _as_text(line.get(name)) if name not in _NUMBERS else line.get(name) for name in _written(info)},
        "state": query.state,
        "metadata": json.dumps(query.metadata, ensure_ascii=False) if query.metadata else None,
        "expires_at": query.expires_at,
        "added": query.added_version,
        "removed": query.removed_version,
        "created_at": query.created_at,
        "ended_at": query.ended_at,
    }


def _as_text(value: Any) -> str | None:
    return value if value is None else str(value)


def _batch(rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> pa.RecordBatch:
    columns = [pa.array([row[field.name] for row in rows], field.type) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _read_id(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise QueryError(f"an id is {shown(value)}; it must be a string or an integer")
    return value


def _to_record(row: Mapping[str, Any], info: SetInfo) -> dict[str, Any]:
    """A row of a write as arguments of `add`. A missing column is not in the result; null in metadata means none."""
    form = KINDS[info.kind].form
    try:
        record = form.take(*(row.get(name) for name in form.written))
        if "metadata" in row:
            record["metadata"] = take_metadata(_as_dict(row["metadata"])) or {}
        if "expires_at" in row:
            record["expires_at"] = take_time(row["expires_at"])
    except QueryError as error:
        raise error.in_query(row["id"]) from None
    return record


def _as_dict(value: Any) -> Any:
    """Metadata that is a map or a struct in Spark, as a dict."""
    return dict(value) if isinstance(value, list) else value
