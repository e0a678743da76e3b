"""`vedette moving`: two files of updates of moving objects in; how the intersecting pairs change out.

Updates are processed by time, in this process or in a local Spark session. A file is sorted a part at a time; the
option `late` decides about rows that come after later parts. For the pairs of one moment, or the objects overdue then,
only the last update of each object up to that moment counts. Timestamps are converted to seconds since 1970, as in
`vs.moving_join`. Zones, objects of a static set without speeds, need no times: they exist from the first time of the
other set on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vedette.cli.jobs.in_spark import answer_in_spark, spark_rows
from vedette.cli.jobs.join import STEPS, Tally, answer_files, show_files_progress
from vedette.cli.jobs.progress import Advance, show_progress
from vedette.cli.jobs.streams import Pace, Source, Stream, take_by_time
from vedette.data.schema import Field, Schema, Type
from vedette.errors import PipelineError, QueryError, RowError
from vedette.files.answers import can_show_progress, check_paths, plain
from vedette.files.rows import RowsFile, complete
from vedette.operators.moving_join.batch import SETS
from vedette.operators.moving_join.moving_join import MovingJoin
from vedette.operators.moving_join.rows import COLUMNS, MovingTable

NUMBERS = COLUMNS - {"id", "removed"}
Moment = tuple[float, dict[str, dict[str, Any]]]  # and by set the columns of its rows


@dataclass(frozen=True)
class Job:
    """The files and options of one run."""

    streams: Sequence[Stream]
    options: dict[str, Any]  # of `MovingJoin`
    at: float | None  # the time of the requested pairs
    overdue: float | None  # or of the requested overdue objects
    quiet: bool  # no progress

    @property
    def time(self) -> float | None:
        return self.at if self.overdue is None else self.overdue

    @property
    def what(self) -> tuple[str, str]:
        """The words for one answer and for many."""
        if self.overdue is not None:
            return "overdue object", "overdue objects"
        return ("change", "changes") if self.at is None else ("pair", "pairs")


def follow_files(
    files: Mapping[str, Path],
    out: Path | None,
    schemas: Mapping[str, str],
    options: dict[str, Any],
    *,
    at: str | None,
    overdue: str | None,
    spark: bool,
    quiet: bool,
) -> str:
    """Write the changes, the pairs at a time, or the objects overdue then, to `out` or as CSV to standard output.

    `schemas` are the declared schemas by set. `options` are those of `MovingJoin`.
    """
    if at is not None and overdue is not None:
        raise QueryError("--at and --overdue exclude each other; give one of them")
    if spark and (at is not None or overdue is not None):
        raise PipelineError("--at and --overdue do not work with --spark; omit --spark")
    columns: dict[str, str | None] = {"time": "time", "id": "id"}
    streams = [
        Stream(name, path, Schema.parse(schemas[name]) if name in schemas else None, columns, options["columns"][name])
        for name, path in files.items()
    ]
    check_paths(list(files.values()), files["b"], out)
    MovingJoin(**options)  # raises if an option is invalid
    times = (
        None if at is None else read_moment(at, "--at"),
        None if overdue is None else read_moment(overdue, "--overdue"),
    )
    job = Job(streams, options, *times, quiet or not can_show_progress(out))
    tally = Tally(job.what)
    return answer_files((_follow_in_spark if spark else _follow_here)(job, tally), tally, out, quiet)


def read_moment(text: str, option: str) -> float:
    """A time of rows: a number, or a timestamp, which is converted to seconds since 1970.

    >>> read_moment("90", "--at"), read_moment("1970-01-01T00:01:30Z", "--at"), read_moment("1970-01-02", "--at")
    (90.0, 90.0, 86400.0)
    """
    try:
        return float(text)
    except ValueError:
        pass
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise QueryError(f"{option} must be a number, or a time such as 2026-03-02T14:00:00Z; got {text!r}") from None
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()


def _follow_here(job: Job, tally: Tally) -> Iterator[pa.RecordBatch]:
    """The answer, one time after another. The first batch has the columns and no rows."""
    schemas = _find_schemas(job)
    sources = [_open(each, schemas[each.name]) for each in job.streams if not _is_timeless(job, schemas, each.name)]
    zones = {
        each.name: _read_all(each, schemas[each.name]) for each in job.streams if _is_timeless(job, schemas, each.name)
    }
    nothing = {source.stream.name: pa.Table.from_batches([_no_rows(source.rows)]) for source in sources}
    # Without rows: a column that is missing or has a wrong type is reported at once.
    for name, table in nothing.items():
        MovingTable(table, name).find("time")
    nothing |= {name: table.slice(0, 0) for name, table in zones.items()}
    MovingJoin(**job.options).load(**nothing, time=0)
    header = _header(job, nothing)
    yield header
    with show_progress("following objects", STEPS * len(sources), job.quiet) as advance:
        if job.time is None:
            find = _find_changes(job, sources, zones, advance, tally)
        else:
            find = _find_at(job, sources, nothing | zones, advance)
        for table in find:
            if table.num_rows:
                yield plain(_as_header(table, header)).cast(header.schema)
    n_rows = {source.stream.name: source.n_read for source in sources}
    n_rows |= {name: table.num_rows for name, table in zones.items()}
    tally.n_rows = {name: n_rows[name] for name in SETS}


def _is_timeless(job: Job, schemas: Mapping[str, Schema], name: str) -> bool:
    """Whether these are zones without times: of a static set, and without speeds."""
    names = {field.name.lower() for field in schemas[name]}
    return name == job.options["static"] and "time" not in names and not any(each.startswith("v") for each in names)


def _find_changes(
    job: Job, sources: Sequence[Source], zones: Mapping[str, pa.Table], advance: Advance, tally: Tally
) -> Iterator[pa.Table]:
    """The changes at each time of a row. Zones without times exist from the first time on."""
    moving, pace = MovingJoin(**job.options), Pace()
    for taken, _ in take_by_time(sources, pace):
        n_changes = 0
        for time, rows in _cut_by_moment(taken):
            if moving.time is None:
                rows |= {name: _columns(table) for name, table in zones.items()}
            try:
                changes = moving.update(**rows)
            except RowError as error:
                raise error.within(f"rows of time {time:g}") from None
            n_changes += changes.num_rows
            yield changes
        tally.n_late = moving.n_late
        pace.note(n_changes)
        show_files_progress(advance, [(source.rows, source.n_read) for source in sources])


def _cut_by_moment(tables: Mapping[str, pa.Table]) -> Iterator[Moment]:
    """The rows of each time together, in time order, which is the order of each table."""
    columns = {name: _columns(table) for name, table in tables.items()}
    moments = np.unique(np.concatenate([each["time"] for each in columns.values()]))
    cuts = {name: [*np.searchsorted(each["time"], moments), len(each["time"])] for name, each in columns.items()}
    for place, time in enumerate(moments.tolist()):
        rows = {}
        for name, each in columns.items():
            first, last = cuts[name][place], cuts[name][place + 1]
            if first < last:
                rows[name] = {column: values[first:last] for column, values in each.items()}
        yield time, rows


def _columns(table: pa.Table) -> dict[str, Any]:
    """The columns of rows by their names in lower case: numbers as arrays, masked where they are null."""
    columns = {name.lower(): table.column(place).combine_chunks() for place, name in enumerate(table.column_names)}
    return {name: _to_numbers(values) if name in NUMBERS else values for name, values in columns.items()}


def _to_numbers(values: pa.Array) -> Any:
    numbers = values.cast(pa.float64()).to_numpy(zero_copy_only=False)
    return (
        np.ma.MaskedArray(numbers, pc.is_null(values).to_numpy(zero_copy_only=False)) if values.null_count else numbers
    )


def _find_at(
    job: Job, sources: Sequence[Source], first: Mapping[str, pa.Table], advance: Advance
) -> Iterator[pa.Table]:
    """The pairs at the requested time, or the objects overdue then. `first` has the rows before anything is read."""
    last = dict(first)
    moving = MovingJoin(**job.options)
    moving.load(**first, time=job.time)  # raises if the time is invalid
    for source in sources:
        name = source.stream.name
        while True:
            source.read()
            if source.has_ended:
                break
            taken = source.take_until(job.time)
            source.take_until(np.inf)  # later rows do not count
            if taken is not None:
                last[name] = _last_of_each(pa.concat_tables([last[name], taken]))
            show_files_progress(advance, [(each.rows, each.n_read) for each in sources])
    moving.load(**last, time=job.time)
    yield moving.pairs(at=job.at) if job.overdue is None else moving.overdue(at=job.overdue)


def _last_of_each(table: pa.Table) -> pa.Table:
    """The latest row of each object; of several at one time, the last."""
    columns = _columns(table)
    codes = columns["id"].dictionary_encode().indices.to_numpy()
    order = np.argsort(columns["time"], kind="stable")
    last = np.empty(int(codes.max()) + 1, np.int64)
    last[codes[order]] = order
    return table.take(pa.array(np.sort(last)))


def _find_schemas(job: Job) -> dict[str, Schema]:
    """By set, the columns of motions. Raises if the types of times do not fit together."""
    schemas = {stream.name: _find_schema(stream) for stream in job.streams}
    kinds = {name: field.type.name for name, schema in schemas.items() if (field := schema.find("time")) is not None}
    if len({kind == "timestamp" for kind in kinds.values()}) > 1:
        named = ", ".join(f"{name}: {kind}" for name, kind in kinds.items())
        raise QueryError(f"the times of both sets must be timestamps, or both must be numbers; got ({named})")
    return schemas


def _find_schema(stream: Stream) -> Schema:
    fields, carried = [], {name.lower() for name in stream.carried}
    found = stream.open(complete(stream.path, stream.declared, [*sorted(COLUMNS), *stream.carried])).schema
    for field in found:
        name = field.name.lower()
        if name in NUMBERS and (field.type.is_number or field.type.name == "string"):  # or without values
            field = Field(field.name, Type("double"))
        elif name == "removed":
            field = Field(field.name, Type("boolean"))
        if name in COLUMNS or name in carried:
            fields.append(field)
    return Schema(tuple(fields)) if fields else found


def _open(stream: Stream, schema: Schema) -> Source:
    """The rows of a file, with times as numbers."""
    rows, time = stream.open(schema, needs_others=False), schema.find("time")
    if time is not None and time.type.name == "timestamp":
        nothing = _with_seconds(_no_rows(rows), time.name)
        rows = replace(rows, columns=nothing.schema, batches=(_with_seconds(each, time.name) for each in rows.batches))
        schema = Schema(tuple(Field(each.name, Type("double")) if each is time else each for each in schema))
    return Source(stream, schema, rows, "UTC")


def _read_all(stream: Stream, schema: Schema) -> pa.Table:
    rows = stream.open(schema, needs_others=False)
    return pa.Table.from_batches(rows.batches, rows.columns)


def _with_seconds(batch: pa.RecordBatch, time: str) -> pa.RecordBatch:
    """Timestamps as seconds since 1970."""
    place = batch.schema.get_field_index(time)
    micros = batch.column(place).cast(pa.timestamp("us", tz=batch.schema.field(place).type.tz), safe=False)
    return batch.set_column(place, time, pc.divide(micros.cast(pa.int64()).cast(pa.float64()), 1e6))


def _follow_in_spark(job: Job, tally: Tally) -> Iterator[pa.RecordBatch]:
    from vedette.spark.moving_join import begin_with, moving_join

    schemas = _find_schemas(job)
    with ExitStack() as files:
        frames = {}
        for stream in job.streams:
            rows = stream.open(schemas[stream.name], needs_others=False)
            frames[stream.name] = files.enter_context(spark_rows(rows, "UTC"))
        taken = dict(frames)
        for zones, other in (SETS, SETS[::-1]):
            if _is_timeless(job, schemas, zones):
                taken[zones] = begin_with(frames[zones], frames[other])
        changes = moving_join(taken["a"], taken["b"], **job.options)
        yield from answer_in_spark(changes, "following objects in Spark", job.quiet)
        tally.n_rows = {name: frame.count() for name, frame in frames.items()}


def _no_rows(rows: RowsFile) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([], rows.columns)


def _header(job: Job, nothing: Mapping[str, pa.Table]) -> pa.RecordBatch:
    """An empty answer with its columns."""
    ids = {}
    for name in SETS:
        type_ = _columns(nothing[name])["id"].type
        ids[name] = pa.int64() if pa.types.is_integer(type_) else pa.string()
    if job.overdue is not None:
        types = {type_ for name, type_ in ids.items() if name != job.options["static"]}
        columns = ids if len(types) > 1 else {"id": types.pop()}
        return pa.RecordBatch.from_pylist([], pa.schema({"set": pa.string(), **columns, "deadline": pa.float64()}))
    carried: dict[str, pa.DataType] = {}
    for stream in job.streams:
        carried |= stream.carried_types(nothing[stream.name].schema)
    if job.at is not None:
        return pa.RecordBatch.from_pylist([], pa.schema(ids | carried))
    ends = dict.fromkeys(("start", "end"), pa.float64())
    return pa.RecordBatch.from_pylist([], pa.schema({"sign": pa.int64(), **ids, **ends, **carried}))


def _as_header(table: pa.Table, header: pa.RecordBatch) -> pa.Table:
    """An answer with the columns of the header: overdue objects by set, even if only one set has objects so far."""
    if "id" not in table.column_names or "id" in header.schema.names:
        return table
    is_of = {name: pc.equal(table["set"].cast(pa.string()), name) for name in SETS}
    ids = {
        name: table["id"].cast(header.schema.field(name).type)
        if pc.all(is_of[name]).as_py()
        else pa.nulls(table.num_rows, header.schema.field(name).type)
        for name in SETS
    }
    return pa.table({"set": table["set"], **ids, "deadline": table["deadline"]})
