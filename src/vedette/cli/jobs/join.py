"""`vedette join`: reads files of rows with times and a file of joins; writes the pairs that join.

Rows are processed in time order as far as each file is sorted, in this process or in a local Spark session.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from vedette.cli.jobs.in_spark import answer_in_spark, spark_rows
from vedette.cli.jobs.match import warn_of_failed
from vedette.cli.jobs.progress import Advance, show_progress
from vedette.cli.jobs.streams import Pace, Source, Stream, take_by_time
from vedette.cli.jobs.times import as_time
from vedette.cli.options import written_to
from vedette.data.schema import Schema
from vedette.errors import PipelineError, QueryError, count
from vedette.files.answers import can_show_progress, check_paths, open_answer, plain_batches
from vedette.files.joins import Windows, load_joins
from vedette.files.rows import RowsFile
from vedette.operators.stable_ids import EVENT_ID
from vedette.operators.window_join.monitor import JoinMonitor
from vedette.operators.window_join.query_set import JoinQuerySet

STEPS = 1000  # of progress, per file


@dataclass
class Tally:
    """Counts for the summary."""

    what: tuple[str, str]  # the words for one answer and for many
    n_rows: dict[str, int] = field(default_factory=dict)  # by stream
    n_found: int = 0
    n_late: int = 0  # dropped
    notes: list[str] = field(default_factory=list)  # such as: 2 queries skipped

    @property
    def dropped(self) -> list[str]:
        return [f"{count(self.n_late, 'late row')} dropped"] if self.n_late else []

    @property
    def summary(self) -> list[str]:
        rows = [count(n, f"{stream} row") for stream, n in self.n_rows.items()]
        return [*rows, count(self.n_found, *self.what), *self.dropped, *self.notes]


@dataclass(frozen=True)
class Job:
    """The files and options of one run."""

    streams: Sequence[Stream]
    queries: Path
    windows: Windows
    time_zone: str
    skip_bad: bool
    options: dict[str, Any]  # of `JoinQuerySet.window`, without the columns
    quiet: bool  # no progress

    @property
    def all_options(self) -> dict[str, Any]:
        """The options of `JoinQuerySet.window`, with the columns of times and ids."""
        return self.options | name_columns(self.streams)

    def no_queries(self, schemas: Mapping[str, Any]) -> JoinQuerySet:
        return JoinQuerySet(time_zone=self.time_zone, **schemas)

    def load(self, schemas: Mapping[str, Schema], tally: Tally) -> JoinQuerySet:
        queries = self.no_queries(schemas)
        tally.notes += load_joins(self.queries, queries, self.windows, skip_bad=self.skip_bad)
        return queries


def join_files(
    files: Mapping[str, Path],
    queries: Path,
    out: Path | None,
    stream_options: Mapping[str, Mapping[str, str]],
    options: dict[str, Any],
    *,
    time_zone: str,
    skip_bad: bool,
    spark: bool,
    quiet: bool,
) -> str:
    """Write what joins to `out`, or as CSV to standard output. Returns a summary.

    `stream_options` are the options of streams, by name and stream. `options` are those of `JoinQuerySet.window`.
    """
    for option in ("value", "op"):
        if stream_options[option]:
            raise QueryError(f"--{option} is for --bands; queries name their fields themselves")
    streams = Stream.read(files, stream_options, {"time": None, "id": None}, options["columns"])
    windows = Windows.read(list(files), stream_options["within"], stream_options["rows"])
    check_paths(list(files.values()), queries, out)
    for stream in streams:
        if stream.columns["time"] is None:
            raise QueryError(
                f"the {stream.name} rows have no time column; name it with --time, or --time {stream.name}=..."
            )
    job = Job(streams, queries, windows, time_zone, skip_bad, options, quiet or not can_show_progress(out))
    tally = Tally(("pair", "pairs") if len(streams) == 2 else ("combination", "combinations"))
    return answer_files((_join_in_spark if spark else _join_here)(job, tally), tally, out, quiet)


def answer_files(batches: Iterator[pa.RecordBatch], tally: Tally, out: Path | None, quiet: bool) -> str:
    """Write the answer. Returns a summary. With `quiet`, dropped rows are still reported."""
    with open_answer(out) as place:
        for batch in batches:
            tally.n_found += batch.num_rows
            place.write(batch)
    if quiet and tally.dropped:
        print(f"vedette: {', '.join(tally.dropped)}", file=sys.stderr)
    return ", ".join(tally.summary) + written_to(out)


def show_files_progress(advance: Advance, files: Sequence[tuple[RowsFile, int]]) -> None:
    """Report progress: each file with its number of rows read so far."""
    done = [STEPS * rows.steps_done(n) // max(1, rows.n_steps) for rows, n in files]
    advance(sum(done), sum(n for _, n in files))


def name_columns(streams: Sequence[Stream]) -> dict[str, Any]:
    """The columns of streams as options of the library: left_time and so on."""
    return {f"{each.name}_{role}": column for each in streams for role, column in each.columns.items()}


def _join_here(job: Job, tally: Tally) -> Iterator[pa.RecordBatch]:
    """The pairs, one step at a time. The first batch has the columns and no rows."""
    schemas = {stream.name: stream.schema for stream in job.streams}
    # Without queries and rows: an invalid option or column is reported before the queries are read.
    _check_times(job, schemas)
    no_rows = {each.name: each.no_rows() for each in job.streams}
    job.no_queries(schemas).window(**job.all_options).step(**no_rows)
    queries = job.load(schemas, tally)
    sources = []
    for stream in job.streams:
        schema = schemas[stream.name]
        rows = stream.open_fields(schema, queries.fields_of(stream.name))
        sources.append(Source(stream, schema, rows, job.time_zone))
    monitor = queries.window(**job.all_options | {f"{each.stream.name}_id": each.id_column for each in sources})
    header = _header(queries, job, schemas)
    yield header
    pace = Pace()
    with show_progress("joining", STEPS * len(sources), job.quiet) as advance:
        for taken, last in take_by_time(sources, pace):
            n_pairs = 0
            for batch in _step(monitor, taken, header.schema):
                n_pairs += batch.num_rows
                yield batch
            pace.note(n_pairs)
            ended = [source.stream.name for source in sources if source.is_done]
            monitor.advance(**dict.fromkeys(ended, as_time(last.item(), monitor.time_type)))
            show_files_progress(advance, [(source.rows, source.n_read) for source in sources])
    tally.n_rows = {source.stream.name: source.n_read for source in sources}
    tally.n_late = monitor.n_late
    warn_of_failed(monitor.n_failed)


def _check_times(job: Job, schemas: Mapping[str, Schema]) -> None:
    """Raise if the times of the streams have different types."""
    fields = {each.name: schemas[each.name].find(each.columns["time"] or "") for each in job.streams}
    types = {stream: field.type.widest.name for stream, field in fields.items() if field is not None}
    if len(set(types.values())) > 1:
        named = ", ".join(f"{stream}: {type_}" for stream, type_ in types.items())
        raise QueryError(f"the times of the streams have different types ({named}); declare one type with --schema")


def _header(queries: JoinQuerySet, job: Job, schemas: Mapping[str, Schema]) -> pa.RecordBatch:
    """An empty answer with its columns."""
    types = {"query": pa.int64() if pa.types.is_integer(queries.ids.type) else pa.string()}
    for stream in job.streams:
        id_ = stream.columns["id"]
        found = None if id_ is None else schemas[stream.name].find(id_)
        is_number = id_ is None or (found is not None and found.type.is_integer)
        types[stream.name] = pa.int64() if is_number else pa.string()
    for stream in job.streams:
        types |= stream.carried_types(stream.no_rows().schema)
    types |= dict.fromkeys(job.options["metadata"] or (), pa.string())
    has_ids = job.no_queries(schemas).window(**job.all_options).options.has_event_ids
    return pa.RecordBatch.from_pylist([], pa.schema(types | ({EVENT_ID: pa.string()} if has_ids else {})))


def _step(monitor: JoinMonitor, rows: Mapping[str, pa.Table], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for pairs in monitor.step_batches(**rows):
        for batch in plain_batches(pairs):
            yield batch.cast(schema)


def _join_in_spark(job: Job, tally: Tally) -> Iterator[pa.RecordBatch]:
    from vedette.spark.window_join import window_join

    for stream in job.streams:
        if stream.columns["id"] is None:
            raise PipelineError(
                f"with --spark, {stream.name} rows need an id; name its column with --id, or --id {stream.name}=..."
            )
    schemas = {stream.name: stream.schema for stream in job.streams}
    _check_times(job, schemas)
    job.no_queries(schemas).window(**job.all_options)  # raises if an option is invalid
    queries = job.load(schemas, tally)
    with ExitStack() as files:
        frames = {}
        for stream in job.streams:
            rows = stream.open_fields(schemas[stream.name], queries.fields_of(stream.name))
            frames[stream.name] = files.enter_context(spark_rows(rows, job.time_zone))
        found = window_join(pairs=queries, frames=frames, **job.all_options)
        yield from answer_in_spark(found, "joining in Spark", job.quiet)
        tally.n_rows = {name: frame.count() for name, frame in frames.items()}
