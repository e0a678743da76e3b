"""Event ids: a hash of 128 bits of what an event is, the same in every process, batch and repetition.

It covers the name of the set, the query and its revision, the key, the event, its time, and an ordinal. The ordinal
separates events that are equal otherwise: it numbers the rows of a key that have the same time.
"""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vedette.data.columns import string_buffers
from vedette.native.kernels import kernel
from vedette.operators.border.event_columns import EventColumns
from vedette.operators.border.key_state import KeyState
from vedette.queries.set_view import SetView

ID_BYTES = 32  # hexadecimal digits
EXPIRY = -1  # the ordinal of an event that no row causes
_DIGITS = np.frombuffer(b"0123456789abcdef", np.uint8)


class _Names(NamedTuple):
    """Strings, or integers, of which the other arrays are empty."""

    numbers: NDArray[np.int64]
    offsets: NDArray[np.int64]
    data: NDArray[np.uint8]


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
    seed = np.frombuffer(hashlib.blake2b(set_name.encode(), digest_size=16).digest(), np.uint64)
    times = events.times + 0.0 if events.times.dtype == np.float64 else events.times  # there is one zero
    facts = _Facts(find_revisions(events.queries, view), events.kinds, times.view(np.int64), ordinals)
    digits = np.empty((n, ID_BYTES), np.uint8)
    _write_ids(seed, _names(keys.keys.to_arrow()), events.slots, _names(ids), events.queries, facts, _DIGITS, digits)
    offsets = np.arange(0, ID_BYTES * (n + 1), ID_BYTES, dtype=np.int64)
    return pa.Array.from_buffers(pa.large_string(), n, [None, pa.py_buffer(offsets), pa.py_buffer(digits)])


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


def _names(values: pa.Array) -> _Names:
    if pa.types.is_integer(values.type):
        return _Names(values.to_numpy(), np.zeros(1, np.int64), np.empty(0, np.uint8))
    return _Names(np.empty(0, np.int64), *string_buffers(values.cast(pa.large_string())))


@kernel
def _write_ids(
    seed: NDArray[np.uint64],
    keys: _Names,
    slots: NDArray[np.int32],
    query_ids: _Names,
    queries: NDArray[np.int32],
    facts: _Facts,
    hex_digits: NDArray[np.uint8],
    digits: NDArray[np.uint8],
) -> None:
    revisions, kinds, times, ordinals = facts.revisions, facts.kinds, facts.times, facts.ordinals
    for event in range(len(slots)):
        a, b = seed[0], seed[1]
        a, b = _mix_name(a, b, query_ids, queries[event])
        a, b = _mix(a, b, np.uint64(revisions[event]))
        a, b = _mix_name(a, b, keys, slots[event])
        a, b = _mix(a, b, np.uint64(kinds[event]))
        a, b = _mix(a, b, np.uint64(times[event]))
        a, b = _mix(a, b, np.uint64(ordinals[event]))
        a = _finish(a + b)
        b = _finish(b + a)
        for place in range(16):
            shift = np.uint64(60 - 4 * place)
            digits[event, place] = hex_digits[(a >> shift) & np.uint64(15)]
            digits[event, place + 16] = hex_digits[(b >> shift) & np.uint64(15)]


@kernel
def _mix_name(a: np.uint64, b: np.uint64, names: _Names, place: int) -> tuple[np.uint64, np.uint64]:
    """Both halves with a string, eight bytes at a time, and its length; or with an integer."""
    if len(names.numbers):
        return _mix(a, b, np.uint64(names.numbers[place]))
    start, end = names.offsets[place], names.offsets[place + 1]
    word = np.uint64(0)
    for at in range(start, end):
        word = (word << np.uint64(8)) | np.uint64(names.data[at])
        if (at - start) % 8 == 7:
            a, b = _mix(a, b, word)
            word = np.uint64(0)
    a, b = _mix(a, b, word)
    return _mix(a, b, np.uint64(end - start))


@kernel
def _mix(a: np.uint64, b: np.uint64, word: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Two words of state with one more word: the steps of Murmur3 for 128 bits, one constant per half."""
    a = (a ^ (word * np.uint64(0x87C37B91114253D5))) * np.uint64(0x9FB21C651E98DF25)
    a ^= a >> np.uint64(32)
    b = (b ^ (word * np.uint64(0x4CF5AD432745937F))) * np.uint64(0xD6E8FEB86659FD93)
    b ^= b >> np.uint64(29)
    return a + b, b


@kernel
def _finish(code: np.uint64) -> np.uint64:
    code = (code ^ (code >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    code = (code ^ (code >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return code ^ (code >> np.uint64(33))
