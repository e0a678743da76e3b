"""`vedette join --bands`: reads two files of values and a file of bands; writes pairs, or the bands with pairs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from vedette.cli.jobs.in_spark import answer_in_spark, spark_rows
from vedette.cli.jobs.join import STEPS, Tally, answer_files, name_columns, show_files_progress
from vedette.cli.jobs.progress import show_progress
from vedette.cli.jobs.streams import Pace, Stream
from vedette.data.schema import Field, Schema, Type
from vedette.errors import QueryError, RowError, count, nearest
from vedette.files.answers import can_show_progress, check_paths, plain
from vedette.files.joins import load_bands
from vedette.files.rows import RowsFile
from vedette.operators.band_join.monitor import BandMonitor
from vedette.operators.band_join.query_set import BandQuerySet


@dataclass(frozen=True)
class Job:
    """The files and options of one run."""

    left: Stream
    right: Stream
    bands: Path
    time_zone: str
    skip_bad: bool
    options: dict[str, Any]  # of `BandQuerySet.monitor`
    quiet: bool  # no progress

    @property
    def streams(self) -> tuple[Stream, Stream]:
        return self.left, self.right

    @property
    def may_delete(self) -> bool:
        """Whether a row may delete or replace the value of an earlier one."""
        return self.options["known_id"] == "replace" or any(stream.columns["op"] is not None for stream in self.streams)


def join_bands(
    files: Mapping[str, Path],
    bands: Path,
    out: Path | None,
    stream_options: Mapping[str, Mapping[str, str]],
    options: dict[str, Any],
    *,
    time_zone: str,
    skip_bad: bool,
    spark: bool,
    quiet: bool,
) -> str:
    """Write the pairs of the bands to `out`, or as CSV to standard output. Returns a summary.

    `stream_options` are the options of streams, by name and stream. `options` are those of `BandQuerySet.monitor`.
    """
    for option in ("time", "within", "rows"):
        if stream_options[option]:
            raise QueryError(f"--{option} is for joins of --queries; bands join all values of both files")
    if list(files) != ["left", "right"]:
        raise QueryError(f"bands join the values of --left and --right; got: {', '.join(files)}")
    BandQuerySet().monitor(**options)  # raises if an option is invalid
    roles = {"id": "id", "value": "value", "op": None}
    left, right = Stream.read(files, stream_options, roles, options["columns"])
    check_paths([left.path, right.path], bands, out)
    job = Job(left, right, bands, time_zone, skip_bad, options, quiet or not can_show_progress(out))
    tally = Tally(("pair", "pairs") if options["report"] == "pairs" else ("query", "queries"))
    found = (_join_in_spark if spark else _join_here)(job, tally)
    return answer_files(_count_unknown(found, tally), tally, out, quiet)


def _count_unknown(batches: Iterator[pa.RecordBatch], tally: Tally) -> Iterator[pa.RecordBatch]:
    """The same batches. Their rows without a query name unknown ids, which are no pairs."""
    for batch in batches:
        tally.n_found -= batch.column("query").null_count
        yield batch


def _join_here(job: Job, tally: Tally) -> Iterator[pa.RecordBatch]:
    """The answer, for some right values at a time. The first batch has the columns and no rows."""
    files = [each.open(_fields_of(each), needs_others=False) for each in job.streams]
    bands, notes = load_bands(job.bands, skip_bad=job.skip_bad)
    tally.notes += notes
    monitor = bands.monitor(**job.options)
    # If a later row may delete or replace a value, right values are collected before they are joined.
    right = bands.monitor(**job.options) if job.may_delete else monitor
    header = _header(monitor, job, files)
    yield header
    seen: set[str | int] = set()
    n_rows = [0, 0]
    with show_progress("joining", STEPS * 2, job.quiet) as advance:
        for place, (stream, rows, side) in enumerate(zip(job.streams, files, (monitor, right), strict=True)):
            pace = Pace()
            for batch in rows.batches:
                values = _to_values(batch, stream)
                for found in _step(side, stream, values, n_rows[place], pace):
                    yield from _to_answer(found, seen, job, header)
                n_rows[place] += batch.num_rows
                show_files_progress(advance, list(zip(files, n_rows, strict=True)))
        if right is not monitor:
            for found in _step(monitor, job.right, right.values("right"), 0, Pace()):
                yield from _to_answer(found, seen, job, header)
    tally.n_rows = dict(zip(("left", "right"), n_rows, strict=True))
    n_unknown = sum(each.n_unknown for each in {monitor, right})
    if n_unknown:
        tally.notes.append(f"{count(n_unknown, 'deleted id')} without a value")


def _step(monitor: BandMonitor, stream: Stream, values: pa.Table, n_before: int, pace: Pace) -> Iterator[pa.Table]:
    """How rows change the pairs, some rows at a time."""
    start = 0
    while start < len(values):
        some = values.slice(start, pace.n_rows)
        n_found = 0
        try:
            for found in monitor.step_batches(**{stream.name: some}):
                n_found += found.num_rows
                yield found
        except RowError as error:
            raise stream.place(error, n_before + start) from None
        start += len(some)
        pace.note(n_found)


def _to_answer(found: pa.Table, seen: set[str | int], job: Job, header: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Pairs without their sign, because none is retracted; a query is reported once."""
    if job.options["report"] == "queries":
        queries = found["query"].to_pylist()
        new = [place for place, query in enumerate(queries) if query not in seen]
        found = found.take(pa.array(new, pa.int64()))
        seen.update(queries)
    if found.num_rows:
        yield plain(found.select(header.schema.names)).cast(header.schema)


def _to_values(batch: pa.RecordBatch, stream: Stream) -> pa.Table:
    """The columns id, value and op of a batch, by these names, and the columns that answers have."""
    roles = {role: name for role, name in stream.columns.items() if name is not None}
    values = {role: _column(batch, stream, role) for role in roles}
    for name in stream.carried:
        role = name.lower()
        if role in roles and (roles[role] or "").lower() != role:
            raise QueryError(f"--column names {name!r}, but bands read another column as their {role}; rename it")
        place = next((place for place, known in enumerate(batch.schema.names) if known.lower() == role), None)
        if role not in roles and place is not None:  # the monitor reports a missing column
            values[name] = batch.column(place)
    return pa.table(values)


def _fields_of(stream: Stream) -> Schema:
    """The id and the value, which is read as a double."""
    found, value = stream.schema, stream.columns["value"] or ""
    fields = []
    for name in stream.needed:
        field = found.find(name)
        if field is not None:
            is_value = field.name.lower() == value.lower() and field.type.is_number
            fields.append(Field(field.name, Type("double")) if is_value else field)
    return Schema(tuple(dict.fromkeys(fields))) if fields else found


def _column(batch: pa.RecordBatch, stream: Stream, role: str) -> Any:
    name = stream.columns[role] or ""
    for place, known in enumerate(batch.schema.names):
        if known.lower() == name.lower():
            return batch.column(place)
    known = sorted(stream.schema.names)
    hint = nearest(name, known) or f"; name the column: --{role} COLUMN, or --{role} {stream.name}=COLUMN for one side"
    raise RowError(
        f"the {stream.name} rows have no column {name!r} for the {role}; they have: {', '.join(known)}{hint}"
    )


def _header(monitor: BandMonitor, job: Job, files: Sequence[RowsFile]) -> pa.RecordBatch:
    """An empty answer with its columns. Raises if a file lacks a column that is needed."""
    kind = {True: pa.int64(), False: pa.string()}
    types = {"query": kind[pa.types.is_integer(monitor.queries.ids.type)]}
    for stream, rows in zip(job.streams, files, strict=True):
        nothing = pa.RecordBatch.from_pylist([], rows.columns)
        values = _to_values(nothing, stream)
        types[stream.name] = kind[pa.types.is_integer(values["id"].type)]
        monitor.step(**{stream.name: values})  # without rows: raises if a column is missing
    for stream, rows in zip(job.streams, files, strict=True):
        types |= stream.carried_types(rows.columns)
    if job.options["report"] == "queries":
        types = {"query": types["query"]}
    types |= dict.fromkeys(job.options["metadata"] or (), pa.string())
    return pa.RecordBatch.from_pylist([], pa.schema(types))


def _join_in_spark(job: Job, tally: Tally) -> Iterator[pa.RecordBatch]:
    from vedette.spark.band_join import band_join

    bands, notes = load_bands(job.bands, skip_bad=job.skip_bad)
    tally.notes += notes
    with ExitStack() as files:
        frames = {}
        for stream in job.streams:
            rows = stream.open(_fields_of(stream), needs_others=False)
            frames[stream.name] = files.enter_context(spark_rows(rows, job.time_zone))
        found = band_join(**frames, bands=bands, **job.options, **name_columns(job.streams))
        yield from answer_in_spark(found.drop("sign"), "joining in Spark", job.quiet)
        tally.n_rows = {name: frame.count() for name, frame in frames.items()}
