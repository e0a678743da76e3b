"""Answers: a batch of rows with its matches, as one row per pair or as a list per row.

The columns of the rows are unchanged. A list column uses the arrays of the matches without a copy. An answer is cut
before it is copied, so the bytes of a piece are bounded for any rows and queries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vedette.data.matches import Matches
from vedette.data.row_sizes import bytes_per_row
from vedette.native.budget import Pieces, cut_by_bytes
from vedette.settings import settings

PAIRS_AT_ONCE = 1 << 19  # in one batch of the answer, about; with 2M, lists of ten took 20 % more time in Spark
_FIRST_ROWS = 1 << 14  # matched first, to estimate how many queries a row matches


def answer(
    batches: Iterator[pa.RecordBatch],
    match: Callable[[pa.RecordBatch], Matches],
    ids: pa.Array,
    output: str,
    batch_bytes: int | None = None,
) -> Iterator[pa.RecordBatch]:
    """The batches with a column `query` ("pairs") or `queries` ("list").

    `match` is called with the bound of a piece (see `budget`). A piece of the answer has about `batch_bytes` at most,
    by default the setting answer_batch_bytes. Only a single pair, or with "list" a single row, may take more.
    """
    batch_bytes = settings().answer_batch_bytes if batch_bytes is None else batch_bytes
    attach = attach_lists if output == "list" else attach_pairs
    ids = _with_short_offsets(ids)
    id_bytes = bytes_per_row(ids)
    # Half as many rows as would fit: later rows may match more.
    pieces = Pieces(_FIRST_ROWS, 2 * PAIRS_AT_ONCE, batch_bytes)
    for batch in batches:

        def find(start: int, end: int, batch: pa.RecordBatch = batch) -> Matches:
            return match(batch.slice(start, end - start))

        for start, end, matches in pieces.of(find, batch.num_rows):
            yield from attach(batch.slice(start, end - start), matches, ids, id_bytes, batch_bytes)


def attach_lists(
    batch: pa.RecordBatch, matches: Matches, ids: pa.Array, id_bytes: NDArray[np.int64], batch_bytes: int
) -> Iterator[pa.RecordBatch]:
    names = [*batch.schema.names, "queries"]
    cuts: list[int] = []
    if len(matches.positions) * int(id_bytes.max(initial=0)) > batch_bytes:
        ends = np.concatenate([[0], np.cumsum(id_bytes[matches.positions])])[matches.starts]
        cuts = cut_by_bytes(np.diff(ends), batch_bytes)
    for start, end in zip([0, *cuts], [*cuts, batch.num_rows], strict=True):
        first, last = matches.starts[start], matches.starts[end]
        offsets = pa.array((matches.starts[start : end + 1] - first).astype(np.int32))
        lists = pa.ListArray.from_arrays(offsets, ids.take(pa.array(matches.positions[first:last])))
        yield pa.RecordBatch.from_arrays([*batch.slice(start, end - start).columns, lists], names=names)


def attach_pairs(
    batch: pa.RecordBatch, matches: Matches, ids: pa.Array, id_bytes: NDArray[np.int64], batch_bytes: int
) -> Iterator[pa.RecordBatch]:
    names = [*batch.schema.names, "query"]
    rows = matches.rows
    row_bytes = np.zeros(batch.num_rows, np.int64)
    for column in batch.columns if len(rows) else ():
        row_bytes += bytes_per_row(column)
    widest = int(row_bytes.max(initial=0)) + int(id_bytes.max(initial=0))
    for chunk in range(0, max(1, len(rows)), PAIRS_AT_ONCE):
        n_pairs = min(PAIRS_AT_ONCE, len(rows) - chunk)
        cuts: list[int] = []
        if n_pairs * widest > batch_bytes:
            part = slice(chunk, chunk + n_pairs)
            cuts = cut_by_bytes(row_bytes[rows[part]] + id_bytes[matches.positions[part]], batch_bytes)
        for start, end in zip([0, *cuts], [*cuts, n_pairs], strict=True):
            chosen = slice(chunk + start, chunk + end)
            columns = [column.take(pa.array(rows[chosen])) for column in batch.columns]
            yield pa.RecordBatch.from_arrays([*columns, ids.take(pa.array(matches.positions[chosen]))], names=names)


def _with_short_offsets(ids: pa.Array) -> pa.Array:
    """Ids whose selections have offsets of four bytes instead of eight, if they fit."""
    fits = pa.types.is_large_string(ids.type) and ids.nbytes < 2**31
    return ids.cast(pa.string()) if fits else ids
