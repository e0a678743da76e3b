"""Event ids: a hash of 128 bits of what an event is, the same in every process, batch and repetition.

It covers the name of the set, the query and its revision, the key, the event, its time, and an ordinal. The ordinal
separates events that are equal otherwise: it numbers the rows of a key that have the same time.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vedette.native.kernels import kernel
from vedette.operators.border.event_columns import EventColumns
from vedette.operators.border.key_state import KeyState
from vedette.operators.stable_ids import (
    HEX,
    ID_BYTES,
    Names,
    as_names,
    as_words,
    mix,
    mix_name,
    seed_of,
    to_ids,
    write_digits,
)
from vedette.queries.set_view import SetView

EXPIRY = -1  # the ordinal of an event that no row causes


class _Facts(NamedTuple):
    """By event: what else its id depends on."""

    revisions: NDArray[np.int64]
    kinds: NDArray[np.int8]
    times: NDArray[np.int64]
    ordinals: NDArray[np.int64]


def make_event_ids(
    set_name: str, events: EventColumns, ordinals: NDArray[np.int64], keys: KeyState, view: SetView
) -> pa.StringArray:
    """The id of each event, as 32 hexadecimal digits."""
    n = len(events)
    ids = view.ids.to_arrow()
    if (events.queries >= view.first_retained).any():
        ids = pa.concat_arrays([ids, view.retained.ids.to_arrow()])
    seed = seed_of(set_name)
    facts = _Facts(find_revisions(events.queries, view), events.kinds, as_words(events.times), ordinals)
    digits = np.empty((n, ID_BYTES), np.uint8)
    _write_ids(seed, as_names(keys.keys.to_arrow()), events.slots, as_names(ids), events.queries, facts, HEX, digits)
    return to_ids(digits)


def find_revisions(queries: NDArray[np.int32], view: SetView) -> NDArray[np.int64]:
    """The version that added each query, given by its number in events."""
    is_active = queries < view.first_retained
    revisions = np.zeros(len(queries), np.int64)
    revisions[is_active] = view.versions.added_at(queries[is_active])
    revisions[~is_active] = view.retained.added[queries[~is_active] - view.first_retained]
    return revisions


def count_ordinals(
    slots: NDArray[np.int32],
    times: NDArray[Any],
    latest_times: NDArray[Any],
    keys: KeyState,
    known: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """By row of a batch, in the order of keys and times: its ordinal, and the ordinals that its key has then.

    A row of a later time has 0, a row of the same time the next number. Rows that are late have numbers of their own,
    from 2^32 on. `known` has the ordinals of keys by slot.
    """
    ordinals, states = np.empty(len(slots), np.int64), np.empty(len(slots), np.int64)
    _count_ordinals(slots, times, latest_times, keys.has_row, keys.times, known, ordinals, states)
    return ordinals, states


@kernel
def _count_ordinals(
    slots: NDArray[np.int32],
    times: NDArray[Any],
    latest_times: NDArray[Any],
    has_row: NDArray[np.bool_],
    last_times: NDArray[Any],
    known: NDArray[np.int64],
    ordinals: NDArray[np.int64],
    states: NDArray[np.int64],
) -> None:
    ties = (np.int64(1) << 32) - 1
    for i in range(len(slots)):
        slot = slots[i]
        if i > 0 and slots[i - 1] == slot:
            latest, state = latest_times[i - 1], states[i - 1]
        elif has_row[slot]:
            latest, state = last_times[slot], known[slot]
        else:
            ordinals[i] = states[i] = 0
            continue
        if times[i] > latest:
            states[i] = state & ~ties
            ordinals[i] = 0
        elif times[i] == latest:
            states[i] = state + 1
            ordinals[i] = states[i] & ties
        else:
            states[i] = state + (np.int64(1) << 32)
            ordinals[i] = states[i] & ~ties


@kernel
def _write_ids(
    seed: NDArray[np.uint64],
    keys: Names,
    slots: NDArray[np.int32],
    query_ids: Names,
    queries: NDArray[np.int32],
    facts: _Facts,
    hex_digits: NDArray[np.uint8],
    digits: NDArray[np.uint8],
) -> None:
    revisions, kinds, times, ordinals = facts.revisions, facts.kinds, facts.times, facts.ordinals
    for event in range(len(slots)):
        a, b = seed[0], seed[1]
        a, b = mix_name(a, b, query_ids, queries[event])
        a, b = mix(a, b, np.uint64(revisions[event]))
        a, b = mix_name(a, b, keys, slots[event])
        a, b = mix(a, b, np.uint64(kinds[event]))
        a, b = mix(a, b, np.uint64(times[event]))
        a, b = mix(a, b, np.uint64(ordinals[event]))
        write_digits(a, b, hex_digits, digits[event])
