"""Border events as an Arrow table: key, time, query, event and reason. All except the time are dictionaries."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vedette.data.dictionaries import encode_distinct
from vedette.operators.border.event_columns import EventColumns
from vedette.operators.border.events import KINDS, REASONS
from vedette.operators.border.key_state import KeyState
from vedette.queries.set_view import SetView

TIME_TYPES = {"timestamp": pa.timestamp("us", tz="UTC"), "bigint": pa.int64(), "double": pa.float64()}
EVENT_BYTES = 18  # of an event in a table: the codes of key, query, event and reason, and the time
_MANY = 64  # a dictionary with more than 64 times the used values is replaced by a smaller one


def to_table(events: EventColumns, time_type: str, state: KeyState, view: SetView) -> pa.Table:
    """The events, with the ids of keys and queries."""
    type_ = TIME_TYPES[time_type]
    return pa.table(
        {
            "key": _encode(events.slots, state.keys.to_arrow(), may_repeat=False),
            "time": pa.array(events.times).view(type_) if time_type == "timestamp" else pa.array(events.times, type_),
            "query": _encode_queries(events.queries, view),
            "event": _dictionary(events.kinds, _KINDS),
            "reason": _dictionary(events.reasons, _REASONS),
        }
    )


_KINDS, _REASONS = pa.array(KINDS), pa.array(REASONS)


def _encode_queries(queries: NDArray[np.int32], view: SetView) -> pa.DictionaryArray:
    ids = view.ids.to_arrow()
    holds_removed = bool((queries >= view.first_retained).any())
    if holds_removed:
        ids = pa.concat_arrays([ids, view.retained.ids.to_arrow()])
    return _encode(queries, ids, may_repeat=holds_removed or view.versions.n_removed > 0)


def _encode(codes: NDArray[np.int32], values: pa.Array, *, may_repeat: bool) -> pa.DictionaryArray:
    """A dictionary array. `may_repeat`: a value may occur twice in `values`."""
    if may_repeat and len(values) <= _MANY * len(codes):
        return encode_distinct(codes, values)
    if may_repeat or len(values) > _MANY * len(codes):
        named, places = np.unique(codes, return_inverse=True)
        codes, values = places.astype(np.int32), values.take(pa.array(named))
        return encode_distinct(codes, values) if may_repeat else _dictionary(codes, values)
    return _dictionary(codes, values)


def _dictionary(codes: NDArray[Any], values: pa.Array) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(codes), values, safe=False)  # codes are known to be in range
