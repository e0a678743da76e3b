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
from vedette.errors import QueryError, RowError, nearest
from vedette.files.answers import can_show_progress, check_paths, plain
from vedette.files.joins import load_bands
from vedette.files.rows import RowsFile
from vedette.operators.band_join.monitor import BandMonitor
from vedette.operators.band_join.query_set import BandQuerySet

_NUMBERS = ("bigint", "double", "decimal")


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
    left, right = Stream.read(files, stream_options, {"id": "id", "value": "value"})
    check_paths([left.path, right.path], bands, out)
    job = Job(left, right, bands, time_zone, skip_bad, options, quiet or not can_show_progress(out))
    tally = Tally(("pair", "pairs") if options["report"] == "pairs" else ("query", "queries"))
    return answer_files((_join_in_spark if spark else _join_here)(job, tally), tally, out, quiet)


def _join_here(job: Job, tally: Tally) -> Iterator[pa.RecordBatch]:
    """The answer, for some right values at a time. The first batch has the columns and no rows."""
    files = [each.open(_fields_of(each), needs_others=False) for each in job.streams]
    bands, notes = load_bands(job.bands, skip_bad=job.skip_bad)
    tally.notes += notes
    monitor = bands.monitor(**job.options)
    yield _header(monitor, job, files)
    seen: set[str | int] = set()
    n_rows = [0, 0]
    with show_progress("joining", STEPS * 2, job.quiet) as advance:
        for place, (stream, rows) in enumerate(zip(job.streams, files, strict=True)):
            pace = Pace()
            for batch in rows.batches:
                for found in _insert(monitor, stream, batch, n_rows[place], pace):
                    yield from _to_answer(found, seen, job)
                n_rows[place] += batch.num_rows
                show_files_progress(advance, list(zip(files, n_rows, strict=True)))
    tally.n_rows = dict(zip(("left", "right"), n_rows, strict=True))


def _insert(
    monitor: BandMonitor, stream: Stream, batch: pa.RecordBatch, n_before: int, pace: Pace
) -> Iterator[pa.Table]:
    """The changes that the values of a batch cause, for some values at a time."""
    values = pa.table({role: _column(batch, stream, role) for role in ("id", "value")})
    start = 0
    while start < len(values):
        some = values.slice(start, pace.n_rows)
        n_found = 0
        try:
            for found in monitor.insert_batches(**{stream.name: some}):
                n_found += found.num_rows
                yield found
        except RowError as error:
            raise stream.place(error, n_before + start) from None
        start += len(some)
        pace.note(n_found)


def _to_answer(found: pa.Table, seen: set[str | int], job: Job) -> Iterator[pa.RecordBatch]:
    """Changes without their sign, as none is a retraction. A query is written once."""
    if job.options["report"] == "queries":
        new = [query for query in found["query"].to_pylist() if query not in seen]
        seen.update(new)
        found = pa.table({"query": pa.array(new, plain(found).schema.field("query").type)})
    if found.num_rows:
        yield plain(found.drop_columns("sign") if "sign" in found.column_names else found)


def _fields_of(stream: Stream) -> Schema:
    """The id and the value, which is read as a double."""
    found, value = stream.schema, stream.columns["value"] or ""
    fields = []
    for name in stream.needed:
        field = found.find(name)
        if field is not None:
            is_value = field.name.lower() == value.lower() and field.type.name in _NUMBERS
            fields.append(Field(field.name, Type("double")) if is_value else field)
    return Schema(tuple(dict.fromkeys(fields))) if fields else found


def _column(batch: pa.RecordBatch, stream: Stream, role: str) -> Any:
    name = stream.columns[role] or ""
    for place, known in enumerate(batch.schema.names):
        if known.lower() == name.lower():
            return batch.column(place)
    known = sorted(stream.schema.names)
    raise RowError(
        f"the {stream.name} rows have no column {name!r} for the {role}; they have: "
        f"{', '.join(known)}{nearest(name, known)}"
    )


def _header(monitor: BandMonitor, job: Job, files: Sequence[RowsFile]) -> pa.RecordBatch:
    """An empty answer with its columns. Raises if a file lacks a column that is needed."""
    kind = {True: pa.int64(), False: pa.string()}
    types = {"query": kind[pa.types.is_integer(monitor.queries.ids.type)]}
    for stream, rows in zip(job.streams, files, strict=True):
        nothing = pa.RecordBatch.from_pylist([], rows.columns)
        ids, _ = (_column(nothing, stream, role) for role in ("id", "value"))
        types[stream.name] = kind[pa.types.is_integer(ids.type)]
    if job.options["report"] == "queries":
        types = {"query": types["query"]}
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
