"""`vedette border`: a file of rows with keys and times, and a file of queries in; the enter and exit events out.

Rows are taken in the order of the file, a batch at a time, here or in a local Spark session.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from vedette.cli.answer_file import check_places, is_apart, open_answer
from vedette.cli.matching import tell_failed
from vedette.cli.progress import show_progress, timed
from vedette.cli.queries_file import load_queries
from vedette.cli.rows_file import RowsFile, format_of
from vedette.columns import decode
from vedette.engine.monitor import BorderMonitor
from vedette.engine.query_set import QuerySet
from vedette.errors import QueryError, RowError, count
from vedette.schema import Schema


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

    def load_queries(self, schema: Schema) -> QuerySet:
        return load_queries(self.queries, schema, self.time_zone, skip_bad=self.skip_bad)

    def with_key_and_time(self, schema: Schema, found: Schema) -> Schema:
        """A schema with the key's and the time's columns, as they were found where it does not have them."""
        names = [self.options["key"], self.options["time"]]
        more = [field for name in names if schema.find(name) is None and (field := found.find(name)) is not None]
        return Schema((*schema, *dict.fromkeys(more)))

    def needed(self, queries: QuerySet) -> Schema:
        """The fields that queries use, the key and the time."""
        used = Schema(tuple(field for field in queries.schema if field.name in queries.fields))
        return self.with_key_and_time(used, queries.schema)


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
    check_places(rows, queries, out)
    job = Job(rows, queries, declared, time_zone, skip_bad, options, quiet or not is_apart(out))
    tally = Tally()
    with timed() as seconds, open_answer(out) as place:
        for batch in (_border_in_spark if spark else _border_here)(job, tally):
            tally.n_events += batch.num_rows
            place.write(batch)
    tally.tell(seconds(), quiet)


def read_duration(text: str | None) -> str | int | float | None:
    """A number where the text is one, for times that are numbers; else a duration such as '5 minutes' as it stands.

    >>> read_duration("90"), read_duration("1.5"), read_duration("5 minutes")
    (90, 1.5, '5 minutes')
    """
    for number in (int, float):
        try:
            return None if text is None else number(text)
        except ValueError:
            pass
    return text


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
    rows = RowsFile.open(job.rows, job.schema)
    schema = rows.schema
    if job.schema is not None:
        schema = job.with_key_and_time(schema, RowsFile.open(job.rows, None).schema)
        rows = RowsFile.open(job.rows, schema)
    # Without a query and without a row: a wrong option or column is told before millions of queries are read.
    QuerySet(schema, time_zone=job.time_zone).border(**job.options).step(_no_rows(rows))
    queries = job.load_queries(schema)
    rows = RowsFile.open(job.rows, job.needed(queries), needs_others=False)
    monitor = queries.border(**job.options)
    yield _plain(monitor.step(_no_rows(rows)))
    with show_progress("watching borders", rows.n_steps, job.quiet) as advance:
        for batch in rows.batches:
            # Keys may follow one another in the file, so none is taken for silent before the end.
            yield from _some(_step(monitor, batch, job, tally.n_rows))
            tally.n_rows += batch.num_rows
            advance(rows.steps_done(tally.n_rows), tally.n_rows)
    tally.n_keys, tally.n_late, tally.n_null_keys = monitor.n_keys, monitor.n_late, monitor.n_null_keys
    if monitor.clock is not None:
        yield from _some(monitor.advance(_as_time(monitor.clock, monitor.time_type)))
    tell_failed(monitor.n_failed)


def _as_time(clock: Any, time_type: str) -> Any:
    """The monitor's clock as a time that rows may have."""
    if time_type != "timestamp":
        return clock
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=int(clock))


def _step(monitor: BorderMonitor, batch: pa.RecordBatch, job: Job, n_before: int) -> pa.Table:
    try:
        return monitor.step(batch, advance=False)
    except RowError as error:
        told = str(error).replace('null_key="drop"', "--null-key drop")
        raise RowError(f"{job.rows}, after row {n_before:,}: {told}" if n_before else told) from None


def _border_in_spark(job: Job, tally: Tally) -> Iterator[pa.RecordBatch]:
    from vedette.spark.border import border
    from vedette.spark.files import STEPS, open_rows, run_with_progress

    kind, given = format_of(job.rows), job.schema
    if kind != "parquet":  # types as they are found without Spark, which takes times in JSON for strings
        found = RowsFile.open(job.rows, None).schema
        given = found if given is None else job.with_key_and_time(given, found)
    rows, schema = open_rows(job.rows, kind, given, job.time_zone)
    QuerySet(schema, time_zone=job.time_zone).border(**job.options)  # raises where an option is wrong
    queries = job.load_queries(schema)
    if kind == "csv":
        rows, _ = open_rows(job.rows, kind, job.needed(queries), job.time_zone)
    events = rows.transform(border(queries, **job.options))
    yield _plain(events.limit(0).toArrow())
    with (
        tempfile.TemporaryDirectory(prefix="vedette-") as directory,
        show_progress("watching borders in Spark", STEPS, job.quiet) as advance,
    ):
        run_with_progress(lambda: events.write.mode("overwrite").parquet(Path(directory).as_uri()), rows, advance)
        for part in sorted(Path(directory).glob("*.parquet")):
            for batch in pq.ParquetFile(part).iter_batches():
                yield from _some(pa.Table.from_batches([batch]))
    key = "`" + job.options["key"].replace("`", "``") + "`"
    counted = rows.selectExpr("count(*)", f"count({key})", f"count(DISTINCT {key})").collect()[0]
    tally.n_rows, tally.n_keys, tally.n_null_keys = counted[0], counted[2], counted[0] - counted[1]


def _no_rows(rows: RowsFile) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([], rows.columns)


def _some(events: pa.Table) -> Iterator[pa.RecordBatch]:
    if events.num_rows:
        yield _plain(events)


def _plain(events: pa.Table) -> pa.RecordBatch:
    """Events without dictionaries: strings, numbers and times."""
    columns = [decode(column.combine_chunks()) for column in events.columns]
    plain = [column.cast(_plain_type(column.type)) for column in columns]
    return pa.RecordBatch.from_arrays(plain, names=events.column_names)


def _plain_type(got: pa.DataType) -> pa.DataType:
    kinds = pa.types
    if kinds.is_timestamp(got):
        return pa.timestamp("us", tz="UTC")
    if kinds.is_integer(got):
        return pa.int64()
    return pa.float64() if kinds.is_floating(got) else pa.string()
