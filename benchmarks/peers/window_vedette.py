"""Vedette itself: `JoinQuerySet.window`, rows in and a table of pairs out, by each of its algorithms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

import vedette as vd
from benchmarks.peers.window_join import STREAMS, Columns, WindowPeer, WindowWorkload

_KEEPER = -1  # a query that matches nothing; it keeps rows until the other queries are added


class VedetteWindows(WindowPeer):
    """Windows are full before the first step; each step processes the next rows."""

    name = "Vedette"
    index: str | None = None

    def __init__(self, workload: WindowWorkload, n_new: int) -> None:
        super().__init__(workload, n_new)
        n = workload.rows.shape[1]
        schema = ", ".join(["id bigint", *(f"x{attribute} double" for attribute in range(n))])
        self.queries = vd.JoinQuerySet(left=schema, right=schema, index=self.index)
        nothing = " AND ".join(f"{stream}.x{attribute} = -9" for stream in STREAMS for attribute in range(n))
        self.queries.add(_KEEPER, f"{nothing} AND left.x0 = right.x0", rows=workload.window)
        self.join = self.queries.window(left_id="id", right_id="id")
        self.join.step(**self._rows(0, workload.window))
        self.queries.add_many(np.arange(workload.n_queries), workload.texts(), rows=workload.window)
        self.queries.remove(_KEEPER)
        self.join.follow()

    def prepare(self) -> None:
        self.rows = self._rows(self.position, self.position + self.n_new)
        self.position += self.n_new

    def run(self) -> pa.Table:
        return self.join.step(**self.rows)

    def answer(self, result: pa.Table) -> Columns:
        query, left, right = (column.combine_chunks().dictionary_decode().to_numpy() for column in result.columns)
        return query, left, right

    def _rows(self, start: int, end: int) -> dict[str, Any]:
        rows = {}
        for number, stream in enumerate(STREAMS):
            values = self.workload.take(number, start, end)
            rows[stream] = {"id": np.arange(start, end)} | {f"x{i}": column for i, column in enumerate(values)}
        return rows


class SJJoinWindows(VedetteWindows):
    name = "SJ-Join"
    index = "SJ-Join"


class IBSJSWindows(VedetteWindows):
    name = "IBS-JS"
    index = "IBS-JS"
