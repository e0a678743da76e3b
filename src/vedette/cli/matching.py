"""`vedette match`: a file of rows and a file of queries in, the pairs out. Here, or in a local Spark session."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from vedette.answers import answer
from vedette.cli.answer_file import check_places, is_apart, open_answer
from vedette.cli.progress import show_progress, timed
from vedette.cli.queries_file import load_queries
from vedette.cli.rows_file import RowsFile, format_of, only
from vedette.errors import FileError, count
from vedette.matches import Matches
from vedette.schema import Schema


def match_files(
    rows: Path,
    queries: Path,
    out: Path | None,
    *,
    schema: str | None,
    time_zone: str,
    skip_bad: bool,
    spark: bool,
    quiet: bool,
) -> None:
    """Write the pairs of the two files to `out`, or as CSV to standard output."""
    declared = None if schema is None else Schema.parse(schema)
    check_places([rows], queries, out)
    quiet = quiet or not is_apart(out)
    with timed() as seconds, open_answer(out) as place:
        make = _match_in_spark if spark else _match_here
        n_rows, n_pairs = 0, 0
        for n_rows, batch in make(rows, queries, declared, time_zone, skip_bad, quiet):  # noqa: B007
            n_pairs += batch.num_rows
            place.write(batch)
    if not quiet and sys.stderr.isatty():
        told = f"{count(n_rows, 'row')}, {count(n_pairs, 'match', 'matches')}, {seconds():.1f} s"
        print(told, file=sys.stderr)


def _match_here(
    path: Path, queries_path: Path, schema: Schema | None, time_zone: str, skip_bad: bool, quiet: bool
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The rows read so far and a batch of pairs, again and again."""
    rows = RowsFile.open(path, schema)
    _check_name(rows.columns.names)
    queries = load_queries(queries_path, rows.schema, time_zone, skip_bad=skip_bad)
    if schema is None and queries.fields:  # columns that no query uses come along as they are written
        rows = RowsFile.open(path, only(queries.schema, queries.fields))
    n_rows, n_failed = 0, 0

    def match(batch: pa.RecordBatch) -> Matches:
        nonlocal n_failed
        matches = queries.match(batch)
        n_failed += matches.n_failed
        return matches

    with show_progress("matching", rows.n_steps, quiet) as advance:

        def read() -> Iterator[pa.RecordBatch]:
            nonlocal n_rows
            for batch in rows.batches:
                n_rows += batch.num_rows
                yield batch
                advance(rows.steps_done(n_rows), n_rows)

        for batch in answer(read(), match, queries.ids, "pairs"):
            yield n_rows, batch
    tell_failed(n_failed)
    if n_rows == 0:  # an answer without rows still has columns
        columns = pa.schema([*rows.columns, pa.field("query", queries.ids.type)])
        yield 0, pa.RecordBatch.from_pylist([], columns)


def _match_in_spark(
    path: Path, queries_path: Path, schema: Schema | None, time_zone: str, skip_bad: bool, quiet: bool
) -> Iterator[tuple[int, pa.RecordBatch]]:
    from vedette.spark.files import STEPS, match_rows, open_rows

    rows, rows_schema = open_rows(path, format_of(path), schema, time_zone)
    _check_name(rows.columns)
    queries = load_queries(queries_path, rows_schema, time_zone, skip_bad=skip_bad)
    if schema is None and queries.fields and format_of(path) == "csv":
        rows, _ = open_rows(path, "csv", only(queries.schema, queries.fields), time_zone)
    with show_progress("matching in Spark", STEPS, quiet) as advance:
        yield from match_rows(rows, queries, advance)


def tell_failed(n_failed: int) -> None:
    """Say on standard error how many comparisons could not be made, if any."""
    if n_failed:
        what = "could not be made (a division by zero, an overflow, a cast) and counted as null"
        print(f"vedette: {count(n_failed, 'comparison')} {what}", file=sys.stderr)


def _check_name(names: list[str]) -> None:
    if any(name.lower() == "query" for name in names):
        raise FileError("the rows have a column 'query' already, which the answer needs; rename it")
