"""Border events as an Arrow table: key, time, query, event and reason. All except the time are dictionaries."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vedette.data.dictionaries import encode_distinct
from vedette.operators.border.events import KINDS, REASONS, Events
from vedette.operators.border.finder import reasons_of
from vedette.operators.border.key_state import KeyState
from vedette.operators.border.moves import Moves
from vedette.operators.border.runs import Runs
from vedette.queries.set_view import SetView

TIME_TYPES = {"timestamp": pa.timestamp("us", tz="UTC"), "bigint": pa.int64(), "double": pa.float64()}
EVENT_BYTES = 18  # of an event in a table: the codes of key, query, event and reason, and the time
_MANY = 64  # a dictionary with more than 64 times the used values is replaced by a smaller one


def to_table(
    events: Events, slots: NDArray[np.int32], times: NDArray[Any], time_type: str, state: KeyState, view: SetView
) -> pa.Table:
    """The events, with the slots of their keys and their times."""
    return _table(slots, times, time_type, events.queries, events.kinds, events.reasons, state, view)


def runs_to_table(runs: Runs, moves: Moves, time_type: str, state: KeyState, view: SetView) -> pa.Table:
    """The events of moves, as a table."""
    slots, times, kinds = runs.columns(moves.slots, moves.times)
    return _table(slots, times, time_type, runs.queries, kinds, reasons_of(runs, moves), state, view)


def _table(
    slots: NDArray[np.int32],
    times: NDArray[Any],
    time_type: str,
    queries: NDArray[np.int32],
    kinds: NDArray[np.int8],
    reasons: NDArray[np.int8],
    state: KeyState,
    view: SetView,
) -> pa.Table:
    type_ = TIME_TYPES[time_type]
    return pa.table(
        {
            "key": _encode(slots, state.keys.to_arrow(), may_repeat=False),
            "time": pa.array(times).view(type_) if time_type == "timestamp" else pa.array(times, type_),
            "query": _encode_queries(queries, view),
            "event": _dictionary(kinds, _KINDS),
            "reason": _dictionary(reasons, _REASONS),
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
