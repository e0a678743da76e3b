"""`vedette border`: a file of rows with keys and times, and a file of queries in; the enter and exit events out.

Rows are taken in the order of the file, a batch at a time, here or in a local Spark session.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from vedette.cli.in_spark import answer_in_spark, spark_rows
from vedette.cli.match import tell_failed
from vedette.cli.progress import show_progress, timed
from vedette.cli.times import as_time
from vedette.data.schema import Schema
from vedette.errors import QueryError, RowError, count
from vedette.files.answers import check_places, is_apart, open_answer, plain, some
from vedette.files.queries import load_queries
from vedette.files.rows import RowsFile, complete, only
from vedette.operators.border.monitor import BorderMonitor
from vedette.queries.query_set import QuerySet


@dataclass
class Tally:
    """What is counted on the way."""

    n_rows: int = 0
    n_events: int = 0
    n_keys: int = 0
    n_late: int = 0  # dropped
    n_null_keys: int = 0  # dropped

    def tell(self, seconds: float, quiet: bool) -> None:
        """Say the counts on standard error; when quiet, only what was dropped."""
        dropped = [
            f"{count(self.n_late, 'late row')} dropped",
            f"{count(self.n_null_keys, 'row')} without a key dropped",
        ]
        if quiet:
            told = [words for words, n in zip(dropped, (self.n_late, self.n_null_keys), strict=True) if n]
        else:
            seen = [count(self.n_rows, "row"), count(self.n_events, "event"), count(self.n_keys, "key")]
            told = [*seen, *dropped, f"{seconds:.1f} s"]
        if told:
            print(f"vedette: {', '.join(told)}", file=sys.stderr)


@dataclass(frozen=True)
class Job:
    """What is to be done, as the command line has it."""

    rows: Path
    queries: Path
    schema: Schema | None
    time_zone: str
    skip_bad: bool
    options: dict[str, Any]  # of `QuerySet.border`
    quiet: bool  # no progress

    def check_and_load(self) -> QuerySet:
        """The queries. A wrong option or column is told before millions of them are read."""
        rows = RowsFile.open(self.rows, complete(self.rows, self.schema, self.names))
        QuerySet(rows.schema, time_zone=self.time_zone).border(**self.options).step(rows.no_rows())
        shown_by = self.rows if self.schema is None else None
        return load_queries(self.queries, rows.schema, self.time_zone, skip_bad=self.skip_bad, shown_by=shown_by)

    @property
    def names(self) -> list[str]:
        """The columns that are needed, whatever the queries."""
        return [self.options["key"], self.options["time"]]

    def open_rows(self, queries: QuerySet) -> RowsFile:
        """The rows with the fields that queries use, the key and the time."""
        needed = only(queries.schema, [*queries.fields, *self.names])
        return RowsFile.open(self.rows, needed, needs_others=False, exact=[self.options["key"]])


def border_files(
    rows: Path,
    queries: Path,
    out: Path | None,
    options: dict[str, Any],
    *,
    schema: str | None,
    time_zone: str,
    skip_bad: bool,
    spark: bool,
    quiet: bool,
) -> None:
    """Write the events of the rows to `out`, or as CSV to standard output; `options` are those of `QuerySet.border`."""
    declared = None if schema is None else Schema.parse(schema)
    check_places([rows], queries, out)
    job = Job(rows, queries, declared, time_zone, skip_bad, options, quiet or not is_apart(out))
    tally = Tally()
    with timed() as seconds, open_answer(out) as place:
        for batch in (_border_in_spark if spark else _border_here)(job, tally):
            tally.n_events += batch.num_rows
            place.write(batch)
    tally.tell(seconds(), quiet)


def read_margin(texts: Sequence[str]) -> float | dict[str, float] | None:
    """One margin for all fields, or margins by field.

    >>> read_margin(["0.5"]), read_margin(["price=0.5", "volume=10"])
    (0.5, {'price': 0.5, 'volume': 10.0})
    """
    margins: dict[str, float] = {}
    for text in texts:
        field, _, number = text.rpartition("=")
        try:
            margins[field.strip()] = float(number)
        except ValueError:
            raise QueryError(f"--margin is a number, or a field and a number as in price=0.5; got {text!r}") from None
    if len(margins) < len(texts) or ("" in margins and len(margins) > 1):
        raise QueryError(f"--margin is given once, or once for each field as in price=0.5; got {', '.join(texts)}")
    return margins.get("", margins or None)


def _border_here(job: Job, tally: Tally) -> Iterator[pa.RecordBatch]:
    """The events, a batch at a time; the first has the columns, if nothing else."""
    queries = job.check_and_load()
    rows = job.open_rows(queries)
    monitor = queries.border(**job.options)
    yield plain(monitor.step(rows.no_rows()))
    with show_progress("watching borders", rows.n_steps, job.quiet) as advance:
        for batch in rows.batches:
            # Keys may follow one another in the file, so none is taken for silent before the end.
            yield from _step(monitor, batch, job, tally.n_rows)
            tally.n_rows += batch.num_rows
            advance(rows.steps_done(tally.n_rows), tally.n_rows)
    tally.n_keys, tally.n_late, tally.n_null_keys = monitor.n_keys, monitor.n_late, monitor.n_null_keys
    if monitor.clock is not None:
        for events in monitor.advance_batches(as_time(monitor.clock, monitor.time_type)):
            yield from some(events)
    tell_failed(monitor.n_failed)


def _step(monitor: BorderMonitor, batch: pa.RecordBatch, job: Job, n_before: int) -> Iterator[pa.RecordBatch]:
    try:
        for events in monitor.step_batches(batch, advance=False):
            yield from some(events)
    except RowError as error:
        raise (error.within(f"{job.rows}, after row {n_before:,}") if n_before else error) from None


def _border_in_spark(job: Job, tally: Tally) -> Iterator[pa.RecordBatch]:
    from vedette.spark.border import border

    queries = job.check_and_load()
    with spark_rows(job.open_rows(queries), job.time_zone) as rows:
        events = rows.transform(border(queries, **job.options))
        yield from answer_in_spark(events, "watching borders in Spark", job.quiet)
        key = "`" + job.options["key"].replace("`", "``") + "`"
        counted = rows.selectExpr("count(*)", f"count({key})", f"count(DISTINCT {key})").collect()[0]
    tally.n_rows, tally.n_keys, tally.n_null_keys = counted[0], counted[2], counted[0] - counted[1]
