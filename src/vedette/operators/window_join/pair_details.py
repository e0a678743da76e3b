"""What the pairs of a step carry: columns of their rows, metadata of their queries, and ids."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vedette.data.columns import Column
from vedette.operators.query_metadata import find_metadata
from vedette.operators.side_columns import PairRows, Rows, count_bytes, cut_pairs, find_distinct
from vedette.operators.stable_ids import EVENT_ID, ID_BYTES, as_words
from vedette.operators.table_pieces import TablePieces
from vedette.operators.window_join.join import Batch
from vedette.operators.window_join.pair_ids import hash_items, make_pair_ids
from vedette.operators.window_join.pair_sink import JoinedRows

if TYPE_CHECKING:
    from vedette.operators.window_join.monitor import JoinMonitor


class StepDetails:
    """The details of the pairs of one step. Rows are numbered from the first one that was kept before it."""

    def __init__(self, monitor: JoinMonitor, batches: Sequence[Batch]) -> None:
        self._queries = monitor.queries
        self._options = monitor.options
        self._carried: dict[int, TablePieces] = {}  # by stream that has columns
        self._times: list[NDArray[np.int64]] = []
        for number, stream in enumerate(monitor.join.streams):
            new = batches[number] if batches else None
            if stream.carried is not None:
                self._carried[number] = stream.carried.copy()
                if new is not None and new.carried is not None:
                    self._carried[number].append(new.carried)
            if self._options.has_event_ids:
                times = stream.times.values if new is None else np.concatenate([stream.times.values, new.times])
                self._times.append(as_words(times))

    def find(
        self, pieces: Iterable[JoinedRows], most: int, *, is_whole: bool
    ) -> Iterator[tuple[JoinedRows, Rows, int]]:
        """Pairs with their rows, and their bytes. Unless they must stay whole, they are cut to about `most` bytes."""
        for pairs in pieces:
            n_bytes = pairs.nbytes + (ID_BYTES * len(pairs) if self._options.has_event_ids else 0)
            rows = self._rows_of(pairs)
            if not rows or is_whole or not len(pairs):
                yield pairs, rows, n_bytes + count_bytes(rows)
                continue
            for start, stop in cut_pairs(len(pairs), n_bytes // len(pairs), rows, most):
                part = {stream: each.slice(start, stop) for stream, each in rows.items()}
                own = n_bytes // len(pairs) * (stop - start)
                yield pairs.take(slice(start, stop)), part, own + count_bytes(part)

    def add_to(self, table: pa.Table, pairs: JoinedRows, rows: Rows, ids: Sequence[Column]) -> pa.Table:
        """A table of pairs with all that was asked for."""
        if self._carried:
            table = self._options.columns.add_to(table, rows or self._rows_of(pairs))
        for name, column in find_metadata(self._options.metadata, pairs.queries, self._queries.metadata_at).items():
            table = table.append_column(name, column)
        if self._options.has_event_ids:
            table = table.append_column(EVENT_ID, self._make_ids(pairs, ids))
        return table

    def _rows_of(self, pairs: JoinedRows) -> dict[str, PairRows]:
        return {
            self._queries.streams[number]: PairRows.at(pairs.rows[number], len(pieces), pieces.take)
            for number, pieces in self._carried.items()
        }

    def _make_ids(self, pairs: JoinedRows, ids: Sequence[Column]) -> pa.LargeStringArray:
        queries, places = find_distinct(pairs.queries, len(self._queries.ids))
        names = self._queries.ids.take(pa.array(queries))
        parts = [(hash_items(names, self._queries.revisions_at(queries.astype(np.int32))), places)]
        for rows, times, column in zip(pairs.rows, self._times, ids, strict=True):
            distinct, places = find_distinct(rows, len(times))
            parts.append((hash_items(pa.array(column.take(distinct).values), times[distinct]), places))
        return make_pair_ids(self._queries.name, len(pairs), parts)
