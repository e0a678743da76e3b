"""Changes of a band join as an Arrow table: sign, query, left and right, all but the sign as dictionaries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vedette.data.ids import INTEGER, Ids
from vedette.operators.band_join.join import PairChanges
from vedette.operators.band_join.side import Side


def to_pair_table(
    changes: Sequence[PairChanges], queries: Ids, left: Side, right: Side, new: tuple[Any, Any] = (None, None)
) -> pa.Table:
    """One row per change, in the order of the changes. Ids are copied only if there are `new` ones.

    These are ids, of the left and of the right, that get the next slots.
    """
    names = [_with_new(_names(*each), more) for each, more in zip(_kinds(left, right), new, strict=True)]
    signs = _join([np.full(len(each), each.sign, np.int8) for each in changes], np.int8)
    arrays = [
        pa.array(signs),
        _dictionary(_join([each.queries for each in changes]), queries.to_arrow()),
        _dictionary(_join([each.lefts for each in changes]), names[0]),
        _dictionary(_join([each.rights for each in changes]), names[1]),
    ]
    return pa.Table.from_arrays(arrays, ["sign", "query", "left", "right"])


def to_unknown_table(unknown: Sequence[tuple[Side, Any]], schema: pa.Schema) -> pa.Table:
    """One row of sign 0 per id that has no value and was to be deleted. Other columns are null.

    The ids that one side lacks have the types of `schema`, that of a table of pairs.
    """
    n = sum(len(ids) for _, ids in unknown)
    signs, queries = pa.array(np.zeros(n, np.int8)), pa.nulls(n, schema.field("query").type)
    columns = []
    for sign, name in ((1, "left"), (-1, "right")):
        parts = [
            pa.array(ids) if side.sign == sign else pa.nulls(len(ids), schema.field(name).type.value_type)
            for side, ids in unknown
        ]
        types = {part.type for part in parts if part.null_count < len(part)}
        type_ = types.pop() if types else schema.field(name).type.value_type
        columns.append(pa.concat_arrays([part.cast(type_) for part in parts]).dictionary_encode())
    return pa.Table.from_arrays([signs, queries, *columns], ["sign", "query", "left", "right"])


def to_query_table(names: NDArray[np.int32], queries: Ids) -> pa.Table:
    """One row per query."""
    return pa.Table.from_arrays([_dictionary(names, queries.to_arrow())], ["query"])


def _join(parts: Sequence[NDArray[Any]], dtype: Any = np.int32) -> NDArray[Any]:
    return parts[0] if len(parts) == 1 else np.concatenate([np.empty(0, dtype), *parts])


def _kinds(left: Side, right: Side) -> tuple[tuple[Ids, str | None], tuple[Ids, str | None]]:
    """The ids of both sides, and their kind; a side without ids takes that of the other."""
    return (left.ids, left.ids.kind or right.ids.kind), (right.ids, right.ids.kind or left.ids.kind)


def _names(ids: Ids, kind: str | None) -> pa.Array:
    return ids.to_arrow() if ids.kind == kind else pa.array([], pa.int64() if kind == INTEGER else pa.large_string())


def _with_new(names: pa.Array, new: Any) -> pa.Array:
    if new is None or not len(new):
        return names
    return pa.concat_arrays([names, pa.array(new)]) if len(names) else pa.array(new)


def _dictionary(codes: NDArray[np.int32], names: pa.Array) -> pa.DictionaryArray:
    type_ = pa.dictionary(pa.int32(), names.type)
    return pa.DictionaryArray.from_buffers(type_, len(codes), [None, pa.py_buffer(codes)], names)
