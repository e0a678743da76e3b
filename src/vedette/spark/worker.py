"""What runs inside Spark's Python workers: Arrow batches in, Arrow batches with the answer out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from vedette.answers import answer
from vedette.matches import Matches
from vedette.spark.shipping import Parcel, unpack

if TYPE_CHECKING:
    from vedette.engine.query_set import QuerySet


def match_batches(
    facts: dict[str, Any], places: dict[str, int], output: str, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The batches with a column `query` and one row per pair, or with a list column `queries`.

    `places` tells where the fields that the queries use stand among the columns.
    """
    queries: QuerySet = unpack(Parcel(**facts))

    def match(batch: pa.RecordBatch) -> Matches:
        if not places:  # queries that use no field; they still need to know how many rows there are
            return queries.match(batch)
        columns = [batch.column(place) for place in places.values()]
        return queries.match(pa.RecordBatch.from_arrays(columns, names=list(places)))

    return answer(batches, match, queries.ids, output)
