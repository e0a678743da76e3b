"""Answers: a batch of rows beside what it matched, as one row per pair or as a list per row.

The columns of the rows are kept as they are; a list column is laid over the matches without a copy of the counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa

from vedette.matches import Matches

PAIRS_AT_ONCE = 1 << 19  # in one batch of the answer, about; with 2M, lists of ten took a fifth more time in Spark
_FIRST_ROWS = 1 << 14  # matched first, to learn how many queries a row matches


def answer(
    batches: Iterator[pa.RecordBatch], match: Callable[[pa.RecordBatch], Matches], ids: pa.Array, output: str
) -> Iterator[pa.RecordBatch]:
    """The batches with a column `query` ("pairs") or `queries` ("list").

    A batch is cut where its answer would grow too large, however many queries a row matches.
    """
    ids = _with_short_offsets(ids)
    attach = attach_lists if output == "list" else attach_pairs
    n_next = _FIRST_ROWS
    for batch in batches:
        start = 0
        while start < batch.num_rows or start == 0:
            part = batch.slice(start, n_next)
            matches = match(part)
            yield from attach(part, matches, ids)
            start += max(1, part.num_rows)
            pairs_per_row = len(matches.positions) / max(1, part.num_rows)
            # Half as many rows as would fit: rows further on may match more.
            n_next = max(1, int(PAIRS_AT_ONCE / 2 / max(pairs_per_row, 1)))


def attach_lists(batch: pa.RecordBatch, matches: Matches, ids: pa.Array) -> Iterator[pa.RecordBatch]:
    offsets = pa.array(matches.starts.astype(np.int32))
    lists = pa.ListArray.from_arrays(offsets, ids.take(pa.array(matches.positions)))
    yield pa.RecordBatch.from_arrays([*batch.columns, lists], names=[*batch.schema.names, "queries"])


def attach_pairs(batch: pa.RecordBatch, matches: Matches, ids: pa.Array) -> Iterator[pa.RecordBatch]:
    names = [*batch.schema.names, "query"]
    rows = matches.rows
    for start in range(0, max(1, len(rows)), PAIRS_AT_ONCE):
        part = slice(start, start + PAIRS_AT_ONCE)
        chosen = pa.array(rows[part])
        columns = [column.take(chosen) for column in batch.columns]
        yield pa.RecordBatch.from_arrays([*columns, ids.take(pa.array(matches.positions[part]))], names=names)


def _with_short_offsets(ids: pa.Array) -> pa.Array:
    """Ids whose selections carry four bytes of offset each instead of eight, where they fit."""
    fits = pa.types.is_large_string(ids.type) and ids.nbytes < 2**31
    return ids.cast(pa.string()) if fits else ids
