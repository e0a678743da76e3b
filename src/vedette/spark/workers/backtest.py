"""Backtests inside Spark's Python workers: rows in, counts by day and query out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from vedette.backtesting.counts import MATCH_COUNTS, MATCH_KEYS, Tally, count_matches
from vedette.spark.shipping.query_sets import Parcel, unpack


def count_batches(
    parcels: list[dict[str, Any]], time: str, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The lines of MATCHES of a task's rows, added up."""
    sets = [unpack(Parcel(**parcel)) for parcel in parcels]
    tally = Tally(MATCH_KEYS, MATCH_COUNTS)
    for batch in batches:
        if batch.num_rows:
            tally.add(count_matches(sets, batch, time))
    total = tally.total()
    if total is not None:
        ids = total["query"]
        if not pa.types.is_integer(ids.type):  # Spark reads strings with 32-bit offsets
            total = total.set_column(1, "query", ids.cast(pa.string()))
        yield from total.to_batches(max_chunksize=1 << 16)
