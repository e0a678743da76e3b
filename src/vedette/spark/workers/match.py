"""Matching inside Spark's Python workers: Arrow batches in, Arrow batches with the answer out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from vedette.data.answers import answer
from vedette.data.matches import Matches
from vedette.spark.workers.following import open_queries
from vedette.spark.workers.reports import add_empty, blank, keep_warnings, write_report

if TYPE_CHECKING:
    from vedette.queries.query_set import QuerySet


def match_batches(
    facts: dict[str, Any],
    places: dict[str, int],
    output: str,
    batch_bytes: int,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """The batches with a column `query` and one row per pair, or with a list column `queries`.

    `places` has the column index of each field that the queries use. If the set is followed, there is one more column,
    the version that the task sees. An output batch has at most about `batch_bytes`.
    """
    return _match(facts, places, output, batch_bytes, batches, {})


def match_and_report(
    facts: dict[str, Any],
    places: dict[str, int],
    output: str,
    batch_bytes: int,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """The same, and one more row at the end, which says how many pairs and failed comparisons there were."""
    keep_warnings()
    counts = {"pairs": 0, "failed": 0}
    last: pa.RecordBatch | None = None  # the last row, with its columns as they came

    def noted() -> Iterator[pa.RecordBatch]:
        nonlocal last
        for batch in batches:
            last = batch.slice(batch.num_rows - 1) if batch.num_rows else last
            yield batch

    schema: pa.Schema | None = None
    for part in _match(facts, places, output, batch_bytes, noted(), counts):
        part = add_empty(part)
        schema = part.schema
        yield part
    if schema is not None and last is not None:
        report = write_report(counts, open_queries(facts).version)
        blanks = [blank(field.type) for field in list(schema)[last.num_columns : -1]]
        yield pa.RecordBatch.from_arrays([*last.columns, *blanks, pa.array([report], pa.string())], schema=schema)


def _match(
    facts: dict[str, Any],
    places: dict[str, int],
    output: str,
    batch_bytes: int,
    batches: Iterator[pa.RecordBatch],
    counts: dict[str, int],
) -> Iterator[pa.RecordBatch]:
    opened = open_queries(facts)
    queries: QuerySet = opened.queries

    def match(batch: pa.RecordBatch) -> Matches:
        if not places:  # the queries use no field, but need the number of rows
            found = queries.find_matches(batch)
        else:
            columns = [batch.column(place) for place in places.values()]
            found = queries.find_matches(pa.RecordBatch.from_arrays(columns, names=list(places)))
        counts["pairs"] = counts.get("pairs", 0) + len(found.positions)
        counts["failed"] = counts.get("failed", 0) + found.n_failed
        return found

    ids = queries.ids
    if facts.get("id_type") == "string" and pa.types.is_integer(ids.type):  # ids were added after the pipeline started
        ids = ids.cast(pa.string())
    for part in answer(batches, match, ids, output, batch_bytes):
        if opened.version is None:
            yield part
        else:
            versions = pa.repeat(pa.scalar(opened.version, pa.int64()), part.num_rows)
            yield part.append_column("version", versions)
