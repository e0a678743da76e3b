"""The pairs of a window join as an Arrow table: the query, and by stream the id of the row, as dictionaries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vedette.data.columns import Column, large_strings
from vedette.data.schema import Type
from vedette.operators.window_join.pair_sink import JoinedRows

if TYPE_CHECKING:
    from vedette.operators.window_join.query_set import JoinQuerySet

FEW = 4  # with fewer pairs than a fourth of the ids, only ids that occur are copied


def drop_repeats(pairs: JoinedRows, queries: JoinQuerySet) -> JoinedRows:
    """Each pair once per query, even if several branches of a query find it."""
    is_repeated = queries.is_repeated
    if not is_repeated.any():
        return pairs
    places = np.flatnonzero(is_repeated[pairs.queries])
    columns = [pairs.queries[places], *(rows[places] for rows in pairs.rows)]
    order = np.lexsort(columns)
    same = np.ones(len(places), np.bool_)
    same[:1] = False
    for column in columns:
        ordered = column[order]
        same[1:] &= ordered[1:] == ordered[:-1]
    keep = np.ones(len(pairs), np.bool_)
    keep[places[order[same]]] = False
    return pairs.take(np.flatnonzero(keep))


def to_table(pairs: JoinedRows, queries: JoinQuerySet, ids: Sequence[Column]) -> pa.Table:
    """One row per pair. `ids` are the ids of the rows, by stream and number."""
    arrays = [_dictionary(pairs.queries, queries.ids)]
    for rows, column in zip(pairs.rows, ids, strict=True):
        if FEW * len(rows) < len(column):
            named, places = np.unique(rows, return_inverse=True)
            arrays.append(_dictionary(places.reshape(-1).astype(np.int32), pa.array(column.take(named).values)))
        else:
            arrays.append(_dictionary(rows, pa.array(column.values)))
    return pa.Table.from_arrays(arrays, ["query", *queries.streams])


def join_values(parts: Sequence[Any], type_: Type | None) -> Column:
    """A copy of ids, concatenated."""
    if any(isinstance(part, np.ndarray) for part in parts) or (type_ is not None and type_.name == "bigint"):
        return Column(np.concatenate([np.empty(0, np.int64), *(part for part in parts if len(part))]))
    return Column(pa.concat_arrays([large_strings([]), *parts]))


def _dictionary(codes: NDArray[np.int32], values: pa.Array) -> pa.DictionaryArray:
    type_ = pa.dictionary(pa.int32(), values.type)
    return pa.DictionaryArray.from_buffers(type_, len(codes), [None, pa.py_buffer(np.ascontiguousarray(codes))], values)
