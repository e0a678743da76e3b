"""The first report of each query that is reported once for all keys: the earliest time, then the least key.

A batch is answered in pieces by key, so the first report is known after the last piece. The shards of a stream find
theirs in the same way, and a second step finds the first of all shards.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

_ORDER = [("query", "ascending"), ("time", "ascending"), ("key", "ascending")]


def find_first(queries: Any, times: Any, keys: Any) -> NDArray[np.int64]:
    """The positions of the first report of each query, by time and key. Of equal ones, the first counts."""
    table = pa.table({"query": queries, "time": times, "key": keys})
    order = pc.sort_indices(table, sort_keys=_ORDER)
    codes = table["query"].take(order).combine_chunks().dictionary_encode().indices.to_numpy()
    firsts = order.filter(pa.array(np.append(True, codes[1:] != codes[:-1])[: len(codes)]))
    return np.asarray(firsts.take(pc.sort_indices(table.take(firsts), sort_keys=_ORDER[1:])).to_numpy(), np.int64)


class FirstReports:
    """The first reports among those of the pieces so far."""

    def __init__(self) -> None:
        self._numbers: list[NDArray[np.int32]] = []
        self._tables: list[pa.Table] = []

    def add(self, queries: NDArray[np.int32], times: NDArray[Any], keys: pa.Array, table: pa.Table) -> int:
        """Add the reports of a piece, and a table of them. Returns how many cannot be the first."""
        firsts = find_first(queries, times, keys)
        self._numbers.append(queries[firsts])
        self._tables.append(table.take(pa.array(firsts)))
        return len(queries) - len(firsts)

    def take(self) -> tuple[pa.Table, int] | None:
        """The first report of each query, and how many of the others were not the first; None if there is none."""
        if not self._tables:
            return None
        table = pa.concat_tables(self._tables).unify_dictionaries()
        numbers = np.concatenate(self._numbers)
        self._numbers, self._tables = [], []
        keys = table["key"].cast(table.schema.field("key").type.value_type)
        firsts = find_first(numbers, table["time"], keys)
        return table.take(pa.array(firsts)), len(numbers) - len(firsts)
