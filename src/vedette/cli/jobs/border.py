"""`vedette border`: reads a file of rows with keys and times, and a file of queries; writes enter and exit events.

Rows are processed in the order of the file, one batch at a time, in this process or in a local Spark session.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from vedette.cli.jobs.in_spark import answer_in_spark, spark_rows
from vedette.cli.jobs.match import warn_of_failed
from vedette.cli.jobs.progress import show_progress
from vedette.cli.jobs.times import as_time
from vedette.cli.options import written_to
from vedette.data.schema import Schema
from vedette.errors import QueryError, RowError, count
from vedette.files.answers import can_show_progress, check_paths, open_answer, plain, plain_batches
from vedette.files.queries import QueriesFile
from vedette.files.rows import RowsFile, complete, only, type_hint
from vedette.operators.border.monitor import BorderMonitor
from vedette.queries.metres import is_in_metres
from vedette.queries.query_set import QuerySet


@dataclass
class Tally:
    """Counts for the summary."""

    n_rows: int = 0
    n_events: int = 0
    n_keys: int = 0
    n_late: int = 0  # dropped
    n_null_keys: int = 0  # dropped

    @property
    def dropped(self) -> list[str]:
        late, null = (
            f"{count(self.n_late, 'late row')} dropped",
            f"{count(self.n_null_keys, 'row')} without a key dropped",
        )
        return [words for words, n in ((late, self.n_late), (null, self.n_null_keys)) if n]

    @property
    def summary(self) -> list[str]:
        return [count(self.n_rows, "row"), count(self.n_events, "event"), count(self.n_keys, "key"), *self.dropped]


@dataclass(frozen=True)
class Job:
    """The files and options of one run."""

    rows: Path
    queries: QueriesFile
    schema: Schema | None
    options: dict[str, Any]  # of `QuerySet.border`
    quiet: bool  # no progress

    def check_and_load(self) -> QuerySet:
        """The queries. An invalid option or column is reported before millions of queries are read."""
        rows = RowsFile.open(self.rows, complete(self.rows, self.schema, self.names))
        QuerySet(rows.schema, time_zone=self.queries.time_zone).border(**self.options).step(rows.no_rows())
        return self.queries.load(rows.schema, shown_by=rows if self.schema is None else None)

    @property
    def names(self) -> list[str]:
        """The columns that are needed besides those of queries: key, time, and columns of events."""
        return [self.options["key"], self.options["time"], *(self.options["columns"] or [])]

    def open_rows(self, queries: QuerySet) -> RowsFile:
        """The rows with the fields that queries use, the key and the time."""
        needed = only(queries.schema, [*queries.fields, *self.names])
        hint = type_hint(self.schema)
        return RowsFile.open(self.rows, needed, needs_others=False, exact=[self.options["key"]], hint=hint)


def border_files(
    rows: Path,
    queries: QueriesFile,
    out: Path | None,
    options: dict[str, Any],
    *,
    schema: str | None,
    spark: bool,
    quiet: bool,
) -> str:
    """Write the events of the rows to `out`, or as CSV to standard output. Returns a summary.

    `options` are those of `QuerySet.border`.
    """
    declared = None if schema is None else Schema.parse(schema)
    check_paths([rows], queries.path, out)
    job = Job(rows, queries, declared, options, quiet or not can_show_progress(out))
    tally = Tally()
    with open_answer(out) as place:
        for batch in (_border_in_spark if spark else _border_here)(job, tally):
            tally.n_events += batch.num_rows
            place.write(batch)
    if quiet and tally.dropped:
        print(f"vedette: {', '.join(tally.dropped)}", file=sys.stderr)
    return ", ".join([*tally.summary, *queries.notes]) + written_to(out)


def read_margin(texts: Sequence[str]) -> float | str | dict[str, float] | None:
    """One margin for all fields, margins by field, or metres.

    >>> read_margin(["0.5"]), read_margin(["price=0.5", "volume=10"]), read_margin(["50 m"])
    (0.5, {'price': 0.5, 'volume': 10.0}, '50 m')
    """
    if len(texts) == 1 and is_in_metres(texts[0]):
        return texts[0]
    margins: dict[str, float] = {}
    for text in texts:
        field, _, number = text.rpartition("=")
        try:
            margins[field.strip()] = float(number)
        except ValueError:
            raise QueryError(
                f"--margin must be a number, price=0.5 for one field, or metres such as 50m; got {text!r}"
            ) from None
    if len(margins) < len(texts) or ("" in margins and len(margins) > 1):
        raise QueryError(f"give --margin once, or once per field, such as price=0.5; got {', '.join(texts)}")
    return margins.get("", margins or None)


def _border_here(job: Job, tally: Tally) -> Iterator[pa.RecordBatch]:
    """The events, one batch at a time. The first batch has the columns and no rows."""
    queries = job.check_and_load()
    rows = job.open_rows(queries)
    monitor = queries.border(**job.options)
    yield plain(monitor.step(rows.no_rows()))
    with show_progress("watching borders", rows.n_steps, job.quiet) as advance:
        for batch in rows.batches:
            # A file may be sorted by key, so no key expires before the end of the file.
            yield from _step(monitor, batch, job, tally.n_rows)
            tally.n_rows += batch.num_rows
            advance(rows.steps_done(tally.n_rows), tally.n_rows)
    tally.n_keys, tally.n_late, tally.n_null_keys = monitor.n_keys, monitor.n_late, monitor.n_null_keys
    if monitor.clock is not None:
        for events in monitor.advance_batches(as_time(monitor.clock, monitor.time_type)):
            yield from plain_batches(events)
    warn_of_failed(monitor.n_failed)


def _step(monitor: BorderMonitor, batch: pa.RecordBatch, job: Job, n_before: int) -> Iterator[pa.RecordBatch]:
    try:
        for events in monitor.step_batches(batch, advance=False):
            yield from plain_batches(events)
    except RowError as error:
        raise (error.within(f"{job.rows}, after row {n_before:,}") if n_before else error) from None


def _border_in_spark(job: Job, tally: Tally) -> Iterator[pa.RecordBatch]:
    from vedette.spark.border import border

    queries = job.check_and_load()
    with spark_rows(job.open_rows(queries), job.queries.time_zone) as rows:
        events = rows.transform(border(queries, **job.options))
        yield from answer_in_spark(events, "watching borders in Spark", job.quiet)
        key = "`" + job.options["key"].replace("`", "``") + "`"
        counted = rows.selectExpr("count(*)", f"count({key})", f"count(DISTINCT {key})").collect()[0]
    tally.n_rows, tally.n_keys, tally.n_null_keys = counted[0], counted[2], counted[0] - counted[1]
