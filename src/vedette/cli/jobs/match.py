"""`vedette match`: reads a file of rows and a file of queries; writes the pairs. Runs here or in local Spark."""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from vedette.cli.jobs.in_spark import spark_rows
from vedette.cli.jobs.progress import show_progress
from vedette.cli.options import written_to
from vedette.data.answers import answer
from vedette.data.matches import Matches
from vedette.data.schema import Schema
from vedette.errors import QueryError, count, shown
from vedette.files.answers import can_show_progress, check_paths, open_answer
from vedette.files.passed_rows import QUERY, PassedRows
from vedette.files.queries import QueriesFile
from vedette.files.rows import RowsFile, only, type_hint
from vedette.language.times import parse_timestamp
from vedette.queries.query_set import QuerySet

_PAIRS_AT_ONCE = 1 << 16  # that are joined with their rows


@dataclass(frozen=True)
class Job:
    """The files and options of one run."""

    rows: Path
    queries: QueriesFile
    schema: Schema | None
    quiet: bool  # no progress
    now: dt.datetime | None  # of now() in queries

    def load_queries(self, found: RowsFile) -> QuerySet:
        return self.queries.load(found.schema, shown_by=found if self.schema is None else None)

    def open_rows(self, queries: QuerySet) -> RowsFile:
        """The rows with the fields that queries use and the columns that are written."""
        fields = only(queries.schema, queries.fields or queries.schema.names[:1])
        rows = RowsFile.open(self.rows, fields, hint=type_hint(self.schema))
        rows.check_fields(queries.fields)
        return rows


def match_files(
    rows: Path,
    queries: QueriesFile,
    out: Path | None,
    *,
    schema: str | None = None,
    spark: bool = False,
    now: str | None = None,
    quiet: bool = True,
) -> str:
    """Write the pairs of the two files to `out`, or as CSV to standard output. Returns a summary."""
    if spark and now is not None:
        raise QueryError("--now is not supported with --spark, where now() is Spark's current_timestamp(); omit one")
    declared = None if schema is None else Schema.parse(schema)
    check_paths([rows], queries.path, out)
    job = Job(rows, queries, declared, quiet or not can_show_progress(out), _read_now(now, queries.time_zone))
    with open_answer(out) as place:
        found = RowsFile.open(rows, declared)
        passed = PassedRows(found, declared, place)
        passed.check()
        loaded = job.load_queries(found)
        pairs = (_match_in_spark if spark else _match_here)(job, loaded)
        first = next(pairs, None)  # starts Spark, or raises if Spark cannot start
        passed.begin(loaded.ids.type)
        n_rows, n_pairs = 0, 0
        for n_rows, batch in chain([] if first is None else [first], pairs):  # noqa: B007
            n_pairs += batch.num_rows
            passed.write(batch)
    counts = [count(n_rows, "row"), count(n_pairs, "match", "matches"), *queries.notes]
    return ", ".join(counts) + written_to(out)


def _read_now(text: str | None, time_zone: str) -> dt.datetime:
    """The moment of a text; by default that of the clock, one for all rows."""
    if text is None:
        return dt.datetime.now(dt.UTC)
    micros = parse_timestamp(text, time_zone)
    try:
        if micros is not None:
            return dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=micros)
    except OverflowError:
        pass
    raise QueryError(f"--now must be a timestamp such as '2026-03-01 12:00:00'; got {shown(text)}")


def _match_here(job: Job, queries: QuerySet) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Batches of pairs, each with the number of rows read so far."""
    rows = job.open_rows(queries)
    n_rows, n_failed = 0, 0

    def match(batch: pa.RecordBatch) -> Matches:
        nonlocal n_failed
        matches = queries.find_matches(batch, job.now)
        n_failed += matches.n_failed
        return matches

    with show_progress("matching", rows.n_steps, job.quiet) as advance:

        def read() -> Iterator[pa.RecordBatch]:
            nonlocal n_rows
            for batch in rows.batches:
                n_rows += batch.num_rows
                yield batch
                advance(rows.steps_done(n_rows), n_rows)

        for batch in answer(read(), match, queries.ids, "pairs"):
            yield n_rows, batch
    warn_of_failed(n_failed)


def _match_in_spark(job: Job, queries: QuerySet) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The same, in the order of the file. Spark gets the fields that queries use; rows are joined with its answer."""
    from vedette.spark.files import STEPS, match_rows

    number = "row"
    while queries.schema.find(number) is not None:
        number += "_"
    with (
        spark_rows(job.open_rows(queries), job.queries.time_zone, number) as frame,
        show_progress("matching in Spark", STEPS, job.quiet) as advance,
    ):
        found = match_rows(frame, queries, number, advance)
        yield from _join_rows(job.open_rows(queries).batches, found)


def _join_rows(
    batches: Iterator[pa.RecordBatch], found: Iterator[pa.RecordBatch]
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Rows with the queries that were found by row number. Both arguments are in the order of these numbers."""
    start, waiting = 0, next(found, None)
    for batch in batches:
        end = start + batch.num_rows
        while waiting is not None:
            numbers = waiting.column(0).to_numpy()
            n = int(np.searchsorted(numbers, end))
            for pairs in _take_pairs(batch, numbers[:n] - start, waiting.column(1).slice(0, n)):
                yield end, pairs
            if n < len(numbers):
                waiting = waiting.slice(n)
                break
            waiting = next(found, None)
        start = end


def _take_pairs(batch: pa.RecordBatch, places: NDArray[np.int64], lists: pa.Array) -> Iterator[pa.RecordBatch]:
    """The rows at these places, each with the queries of its list, some pairs at a time."""
    queries, rows = lists.flatten(), pc.list_parent_indices(lists).to_numpy()
    for start in range(0, len(queries), _PAIRS_AT_ONCE):
        some = slice(start, start + _PAIRS_AT_ONCE)
        columns = [column.take(pa.array(places[rows[some]])) for column in batch.columns]
        yield pa.RecordBatch.from_arrays([*columns, queries[some]], names=[*batch.schema.names, QUERY])


def warn_of_failed(n_failed: int) -> None:
    """Print on standard error how many comparisons failed, if any."""
    if n_failed:
        what = "failed (a division by zero, an overflow, a cast) and counted as null"
        print(f"vedette: {count(n_failed, 'comparison')} {what}", file=sys.stderr)
