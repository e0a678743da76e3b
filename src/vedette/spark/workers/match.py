"""Matching inside Spark's Python workers: Arrow batches in, Arrow batches with the answer out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from vedette.data.answers import answer
from vedette.data.matches import Matches
from vedette.spark.workers.following import open_queries

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
    opened = open_queries(facts)
    queries: QuerySet = opened.queries

    def match(batch: pa.RecordBatch) -> Matches:
        if not places:  # the queries use no field, but need the number of rows
            return queries.find_matches(batch)
        columns = [batch.column(place) for place in places.values()]
        return queries.find_matches(pa.RecordBatch.from_arrays(columns, names=list(places)))

    ids = queries.ids
    if facts.get("id_type") == "string" and pa.types.is_integer(ids.type):  # ids were added after the pipeline started
        ids = ids.cast(pa.string())
    for part in answer(batches, match, ids, output, batch_bytes):
        if opened.version is None:
            yield part
        else:
            versions = pa.repeat(pa.scalar(opened.version, pa.int64()), part.num_rows)
            yield part.append_column("version", versions)
