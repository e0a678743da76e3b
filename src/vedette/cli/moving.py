"""`vedette moving`: two files of updates of moving objects in; what changes in who intersects whom out.

Updates are taken by time, a moment at a time, as far as each file has them in that order. Where the pairs of one moment
are asked for, or who is overdue then, only the last update of each object until then counts, wherever it stands.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from vedette.cli.answer_file import check_places, is_apart, plain
from vedette.cli.joining import STEPS, Tally, answer_files, tell_progress
from vedette.cli.progress import Advance, show_progress
from vedette.cli.rows_file import RowsFile, complete
from vedette.cli.streams import Pace, Source, Stream, take_by_time
from vedette.engine.moving_join import SETS, MovingJoin
from vedette.engine.moving_rows import AXES, MovingTable
from vedette.errors import QueryError, RowError
from vedette.schema import Field, Schema, Type

ENDS = ("", "_low", "_high")
NUMBERS = ("time", *(f"{v}{axis}{end}" for v in ("", "v") for axis in AXES for end in ENDS))
COLUMNS = ("id", "removed", *NUMBERS)
Moment = tuple[float, dict[str, dict[str, Any]]]  # and by set the columns of its rows


@dataclass(frozen=True)
class Job:
    """What is to be done, as the command line has it."""

    streams: Sequence[Stream]
    options: dict[str, Any]  # of `MovingJoin`
    at: float | None  # whose pairs are asked for
    overdue: float | None  # or who is overdue then
    quiet: bool  # no progress

    @property
    def time(self) -> float | None:
        return self.at if self.overdue is None else self.overdue

    @property
    def what(self) -> tuple[str, str]:
        """What is found: one, many."""
        if self.overdue is not None:
            return "overdue object", "overdue objects"
        return ("change", "changes") if self.at is None else ("pair", "pairs")


def follow_files(
    files: Mapping[str, Path],
    out: Path | None,
    schemas: Mapping[str, str],
    options: dict[str, Any],
    *,
    at: float | None,
    overdue: float | None,
    quiet: bool,
) -> None:
    """Write what changes, the pairs at a time, or who is overdue then, to `out`, or as CSV to standard output.

    `schemas` is what the command line declares, by set, and `options` are those of `MovingJoin`.
    """
    if at is not None and overdue is not None:
        raise QueryError("--at asks for pairs and --overdue for objects; give one of them")
    columns: dict[str, str | None] = {"time": "time", "id": "id"}
    streams = [
        Stream(name, path, Schema.parse(schemas[name]) if name in schemas else None, columns)
        for name, path in files.items()
    ]
    check_places(list(files.values()), files["b"], out)
    _new_join(options)  # raises where an option is wrong
    job = Job(streams, options, at, overdue, quiet or not is_apart(out))
    tally = Tally(job.what, n_late=None)
    answer_files(_follow(job, tally), tally, out, quiet)


def _new_join(options: dict[str, Any]) -> MovingJoin:
    try:
        return MovingJoin(**options)
    except QueryError as error:
        told = str(error).replace("max_update_interval", "--max-update-interval")
        raise QueryError(told.replace('standing is "a", "b" or None', "--standing is a or b")) from None


def _follow(job: Job, tally: Tally) -> Iterator[pa.RecordBatch]:
    """What is found, a moment at a time; the first batch has the columns alone."""
    sources = [_open(stream) for stream in job.streams]
    nothing = {source.stream.name: pa.Table.from_batches([_no_rows(source.rows)]) for source in sources}
    # Without a row: a column that lacks, or is of a wrong type, is told at once.
    for name, table in nothing.items():
        MovingTable(table, name).find("time")
    _new_join(job.options).load(**nothing, time=0)
    yield _header(job, nothing)
    with show_progress("following objects", STEPS * len(sources), job.quiet) as advance:
        find = _find_changes(job, sources, advance) if job.time is None else _find_then(job, sources, nothing, advance)
        for table in find:
            if table.num_rows:
                yield plain(table)
    tally.n_rows = {source.stream.name: source.n_read for source in sources}


def _find_changes(job: Job, sources: Sequence[Source], advance: Advance) -> Iterator[pa.Table]:
    """The changes of each moment at which there are rows."""
    moving, pace = _new_join(job.options), Pace()
    for taken, _ in take_by_time(sources, pace):
        n_changes = 0
        for time, rows in _cut_by_moment(taken):
            if moving.time is not None and time < moving.time:
                path = next(stream.path for stream in job.streams if stream.name in rows)
                raise RowError(
                    f"{path} is not in the order of time: a row of {time:g} comes long after one of "
                    f"{moving.time:g}; sort its rows by time"
                )
            try:
                changes = moving.update(**rows, time=time)
            except RowError as error:
                raise RowError(f"of the rows of time {time:g}, {error}") from None
            n_changes += changes.num_rows
            yield changes
        pace.note(n_changes)
        tell_progress(advance, [(source.rows, source.n_read) for source in sources])


def _cut_by_moment(tables: Mapping[str, pa.Table]) -> Iterator[Moment]:
    """Rows in the order of time, in which each table has them, those of each time together."""
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
    """The columns of rows by their names in small letters: numbers as arrays, with NaN for null."""
    columns = {name.lower(): table.column(place).combine_chunks() for place, name in enumerate(table.column_names)}
    return {
        name: values.cast(pa.float64()).to_numpy(zero_copy_only=False) if name in NUMBERS else values
        for name, values in columns.items()
    }


def _find_then(
    job: Job, sources: Sequence[Source], nothing: Mapping[str, pa.Table], advance: Advance
) -> Iterator[pa.Table]:
    """The pairs at the time that is asked for, or who is overdue then."""
    last = dict(nothing)
    moving = _new_join(job.options)
    moving.load(**nothing, time=job.time)  # a time that is none is told before anything is read
    for source in sources:
        name = source.stream.name
        while True:
            source.read()
            if source.has_ended:
                break
            taken = source.take_until(job.time)
            source.take_until(np.inf)  # what comes later does not count
            if taken is not None:
                last[name] = _last_of_each(pa.concat_tables([last[name], taken]))
            tell_progress(advance, [(each.rows, each.n_read) for each in sources])
    moving.load(**last, time=job.time)
    yield moving.pairs(at=job.at) if job.overdue is None else moving.overdue(at=job.overdue)


def _last_of_each(table: pa.Table) -> pa.Table:
    """Of the rows of each object the latest; of several at one time, the last."""
    columns = _columns(table)
    codes = columns["id"].dictionary_encode().indices.to_numpy()
    order = np.argsort(columns["time"], kind="stable")
    last = np.empty(int(codes.max()) + 1, np.int64)
    last[codes[order]] = order
    return table.take(pa.array(np.sort(last)))


def _open(stream: Stream) -> Source:
    """The columns of a file that tell how objects move."""
    schema = stream.open(complete(stream.path, stream.declared, COLUMNS)).schema
    fields = []
    for field in schema:
        name = field.name.lower()
        if name == "time" and field.type.name in ("timestamp", "date"):
            raise RowError(
                f"the times of set {stream.name} are {field.type.name}s; they are numbers, in the unit of the speeds: "
                f"seconds from some moment on, for example"
            )
        if name in NUMBERS and field.type.name in ("bigint", "string"):  # which whole numbers, or none, look like
            field = Field(field.name, Type("double"))
        elif name == "removed":
            field = Field(field.name, Type("boolean"))
        if name in COLUMNS:
            fields.append(field)
    schema = Schema(tuple(fields)) if fields else schema
    return Source(stream, schema, stream.open(schema, needs_others=False), "UTC")


def _no_rows(rows: RowsFile) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([], rows.columns)


def _header(job: Job, nothing: Mapping[str, pa.Table]) -> pa.RecordBatch:
    """Nothing found, in the columns that there would be."""
    ids = {}
    for name in SETS:
        type_ = _columns(nothing[name])["id"].type
        ids[name] = pa.int64() if pa.types.is_integer(type_) else pa.string()
    if job.overdue is not None:
        id_ = ids["a"] if ids["a"] == ids["b"] else pa.string()
        return pa.RecordBatch.from_pylist([], pa.schema({"set": pa.string(), "id": id_, "deadline": pa.float64()}))
    if job.at is not None:
        return pa.RecordBatch.from_pylist([], pa.schema(ids))
    ends = dict.fromkeys(("start", "end"), pa.float64())
    return pa.RecordBatch.from_pylist([], pa.schema({"sign": pa.int64(), **ids, **ends}))
