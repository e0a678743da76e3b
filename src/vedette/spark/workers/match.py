"""Matching inside Spark's Python workers: Arrow batches in, Arrow batches with the answer out."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_type

from vedette.data.answers import answer
from vedette.data.matches import Matches
from vedette.data.moments import NOW
from vedette.errors import PipelineError, RowError
from vedette.spark.workers.following import open_queries
from vedette.spark.workers.reports import add_empty, blank, keep_warnings, write_report
from vedette.spark.workers.top_queries import TopQueries

if TYPE_CHECKING:
    from vedette.queries.query_set import QuerySet


def match_batches(
    facts: dict[str, Any],
    places: dict[str, int],
    output: str,
    batch_bytes: int,
    reports: bool,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """The batches with a column `query` and one row per pair, or with a list column `queries`.

    `places` has the column index of each field that the queries use, and of the moment, the last column, which is not
    part of the answer. If the set is followed, there is one more column, the version that the task sees. An output
    batch has at most about `batch_bytes`. With `reports`, there is one more column and at the end one more row, which
    says how many pairs and failed comparisons there were.
    """
    counts = {"pairs": 0, "failed": 0}
    top = TopQueries() if reports else None
    if not reports:
        yield from _match(facts, places, output, batch_bytes, batches, counts, top)
        return
    keep_warnings()
    last: pa.RecordBatch | None = None  # the last row, with its columns as they came

    def noted() -> Iterator[pa.RecordBatch]:
        nonlocal last
        for batch in batches:
            if batch.num_rows:
                last = batch.slice(batch.num_rows - 1)
                last = last.select(range(batch.num_columns - 1)) if NOW in places else last
            yield batch

    schema: pa.Schema | None = None
    for part in _match(facts, places, output, batch_bytes, noted(), counts, top):
        part = add_empty(part)
        schema = part.schema
        yield part
    if schema is not None and last is not None:
        report = write_report(counts, open_queries(facts).version, top)
        blanks = [blank(field.type) for field in list(schema)[last.num_columns : -1]]
        yield pa.RecordBatch.from_arrays([*last.columns, *blanks, pa.array([report], pa.string())], schema=schema)


def match_declared(
    facts: dict[str, Any],
    places: dict[str, int],
    output: str,
    batch_bytes: int,
    reports: bool,
    types: dict[str, str],
    rows: pa.RecordBatch,
) -> Iterator[pa.RecordBatch]:
    """The same for one batch, whose columns were declared with these types. Raises RowError if one has another type."""
    for column in list(rows.schema)[: len(types)]:  # the moment, if there is one, is last
        got = from_arrow_type(column.type).simpleString()
        if got != _as_sent(types[column.name]):
            raise RowError(
                f"column {column.name!r} is {got}, but schema= declares {types[column.name]}; declare its type, or "
                f"cast it before the transform"
            )
    yield from match_batches(facts, places, output, batch_bytes, reports, iter([rows]))


def _as_sent(type_: str) -> str:
    """A type as Arrow batches show it."""
    return "string" if type_.startswith(("varchar", "char")) else type_


def _match(
    facts: dict[str, Any],
    places: dict[str, int],
    output: str,
    batch_bytes: int,
    batches: Iterator[pa.RecordBatch],
    counts: dict[str, int],
    top: TopQueries | None,
) -> Iterator[pa.RecordBatch]:
    opened = open_queries(facts)
    queries: QuerySet = opened.queries
    fields = {name: place for name, place in places.items() if name != NOW}
    now: datetime | None = None
    if NOW not in places and queries.uses_now:
        raise PipelineError(
            f"a query uses now(), and the rows have no moment; add the column `{NOW}`, as in "
            f"SELECT *, current_timestamp() AS `{NOW}` FROM rows, or use vs.match, which adds it"
        )

    def without_moment() -> Iterator[pa.RecordBatch]:
        nonlocal now
        for batch in batches:
            if NOW in places:
                now = batch.column(places[NOW])[0].as_py() if batch.num_rows else now
                batch = batch.select(range(batch.num_columns - 1))
            yield batch

    def match(batch: pa.RecordBatch) -> Matches:
        if not fields:  # the queries use no field, but need the number of rows
            found = queries.find_matches(batch, now)
        else:
            used = list(dict.fromkeys(fields.values()))  # parts of a struct are in one column
            columns, names = [batch.column(place) for place in used], [batch.schema.names[place] for place in used]
            found = queries.find_matches(pa.RecordBatch.from_arrays(columns, names=names), now)
        counts["pairs"] += len(found.positions)
        counts["failed"] += found.n_failed
        if top is not None:
            top.add_positions(found.positions, queries.ids)
        return found

    ids = queries.ids
    if facts.get("id_type") == "string" and pa.types.is_integer(ids.type):  # ids were added after the pipeline started
        ids = ids.cast(pa.string())
    for part in answer(without_moment(), match, ids, output, batch_bytes):
        if opened.version is None:
            yield part
        else:
            versions = pa.repeat(pa.scalar(opened.version, pa.int64()), part.num_rows)
            yield part.append_column("version", versions)
