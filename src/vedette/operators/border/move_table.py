"""The events of one move of a key as an Arrow table, as `to_table` returns them, from arrays that are made once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from vedette.data.ids import INTEGER, STRING, Ids, join_strings
from vedette.operators.border.event_table import TIME_TYPES
from vedette.operators.border.events import KINDS, REASONS

MOST = 4096  # events of each kind
_DTYPES = {"timestamp": np.int64, "bigint": np.int64, "double": np.float64}
_ID_TYPES = {STRING: pa.large_string(), INTEGER: pa.int64()}
_KINDS, _REASONS = pa.array(KINDS), pa.array(REASONS)
_EXITS_THEN_ENTERS = pa.array(np.repeat(np.arange(2, dtype=np.int8), MOST))
_MOVED = pa.DictionaryArray.from_arrays(pa.array(np.zeros(2 * MOST, np.int8)), _REASONS, safe=False)
_FIRST = pa.array(np.zeros(2 * MOST, np.int32))
_IN_ORDER = pa.array(np.arange(2 * MOST, dtype=np.int32))


class MoveTables:
    """Makes tables for times and ids of these kinds."""

    def __init__(self, time_type: str, key_kind: str, queries: Ids) -> None:
        self._dtype, self._time_type = _DTYPES[time_type], TIME_TYPES[time_type]
        self._key_type, self._queries = _ID_TYPES[key_kind], queries
        query_type = _ID_TYPES[queries.kind or STRING]
        words = pa.dictionary(pa.int8(), pa.string())
        self._schema = pa.schema(
            {
                "key": pa.dictionary(pa.int32(), self._key_type),
                "time": self._time_type,
                "query": pa.dictionary(pa.int32(), query_type),
                "event": words,
                "reason": words,
            }
        )
        self.empty = self._schema.empty_table()

    def make(self, key: str | int, time: Any, exits: list[int], enters: list[int]) -> pa.Table:
        """The table of the queries that a key leaves and enters, each at most `MOST`, by their positions."""
        n = len(exits) + len(enters)
        if n == 0:
            return self.empty
        keys = join_strings([key.encode()]) if isinstance(key, str) else pa.array([key], self._key_type)
        times = pa.py_buffer(np.full(n, time, self._dtype))
        queries = self._queries.pick(exits + enters)
        kinds = _EXITS_THEN_ENTERS.slice(MOST - len(exits), n)
        columns = [
            pa.DictionaryArray.from_arrays(_FIRST.slice(0, n), keys, safe=False),
            pa.Array.from_buffers(self._time_type, n, [None, times]),
            pa.DictionaryArray.from_arrays(_IN_ORDER.slice(0, n), queries, safe=False),
            pa.DictionaryArray.from_arrays(kinds, _KINDS, safe=False),
            _MOVED.slice(0, n),
        ]
        return pa.Table.from_arrays(columns, schema=self._schema)
