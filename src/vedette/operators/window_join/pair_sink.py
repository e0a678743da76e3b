"""A buffer for the pairs of a step. Pairs are written once and not copied."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vedette.native.buffers import empty_int32
from vedette.native.concatenation import concat_columns


@dataclass(frozen=True)
class JoinedRows:
    """Rows that join: positions of queries, and by stream the numbers of rows, counted from a base."""

    queries: NDArray[np.int32]
    rows: list[NDArray[np.int32]]

    def __len__(self) -> int:
        return len(self.queries)

    @property
    def nbytes(self) -> int:
        return self.queries.nbytes + sum(rows.nbytes for rows in self.rows)

    def take(self, kept: NDArray[Any] | slice) -> JoinedRows:
        return JoinedRows(self.queries[kept], [rows[kept] for rows in self.rows])

    @staticmethod
    def concat(many: Sequence[JoinedRows], n_streams: int) -> JoinedRows:
        if len(many) == 1:
            return many[0]
        if not many:
            return JoinedRows(empty_int32(0), [empty_int32(0) for _ in range(n_streams)])
        queries, *rows = concat_columns([(each.queries, *each.rows) for each in many])
        return JoinedRows(queries, rows)


class PairSink:
    """Columns of pairs of two streams, with room for about as many pairs as recent steps had."""

    def __init__(self) -> None:
        self.n = 0
        self._expected = 0
        self._columns: list[NDArray[np.int32]] = []

    def reserve(self, n: int) -> tuple[NDArray[np.int32], list[NDArray[np.int32]]]:
        """The columns of queries and of rows, by stream, with room for `n` more pairs."""
        room = len(self._columns[0]) if self._columns else 0
        if self.n + n > room:
            columns = [empty_int32(max(self.n + n, self._expected, 2 * self.n)) for _ in range(3)]
            for column, before in zip(columns, self._columns, strict=False):
                column[: self.n] = before[: self.n]
            self._columns = columns
        return self._columns[0], self._columns[1:]

    def take(self) -> list[JoinedRows]:
        """Return the pairs, if there are any, and empty the sink."""
        n, columns = self.n, self._columns
        self._expected = max(n + n // 8, self._expected * 7 // 8)
        self.n, self._columns = 0, []
        if not n:
            return []
        kept = [column[:n].copy() if 2 * n < len(column) else column[:n] for column in columns]
        return [JoinedRows(kept[0], kept[1:])]
