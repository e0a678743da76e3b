"""Changes of a band join as an Arrow table: sign, query, left and right, all but the sign as dictionaries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vedette.ids import INTEGER, Ids
from vedette.operators.band_join import PairChanges
from vedette.operators.band_join_side import Side


def to_pair_table(changes: Sequence[PairChanges], queries: Ids, left: Side, right: Side) -> pa.Table:
    """One line a change, in the order of the changes. The ids are not copied."""
    signs = _join([np.full(len(each), each.sign, np.int8) for each in changes], np.int8)
    arrays = [
        pa.array(signs),
        _dictionary(_join([each.queries for each in changes]), queries, queries.kind),
        _dictionary(_join([each.lefts for each in changes]), left.ids, left.ids.kind or right.ids.kind),
        _dictionary(_join([each.rights for each in changes]), right.ids, right.ids.kind or left.ids.kind),
    ]
    return pa.Table.from_arrays(arrays, ["sign", "query", "left", "right"])


def to_query_table(names: NDArray[np.int32], queries: Ids) -> pa.Table:
    """One line a query."""
    return pa.Table.from_arrays([_dictionary(names, queries, queries.kind)], ["query"])


def _join(parts: Sequence[NDArray[Any]], dtype: Any = np.int32) -> NDArray[Any]:
    return parts[0] if len(parts) == 1 else np.concatenate([np.empty(0, dtype), *parts])


def _dictionary(codes: NDArray[np.int32], ids: Ids, kind: str | None) -> pa.DictionaryArray:
    """Ids by their places; where there are none, `kind` tells what they would be."""
    values = ids.to_arrow() if ids.kind == kind else pa.array([], pa.int64() if kind == INTEGER else pa.large_string())
    type_ = pa.dictionary(pa.int32(), values.type)
    return pa.DictionaryArray.from_buffers(type_, len(codes), [None, pa.py_buffer(codes)], values)
