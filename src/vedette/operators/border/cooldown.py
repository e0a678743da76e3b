"""Cooldown and once: after an enter was reported, further events of the key and the query are held back.

After a reported enter, further enters of the key into the query, and their exits, are counted instead of reported until
the cooldown has passed. The next reported event says how many were held back. With `once`, the first enter is the only
event. A key that expires is forgotten, and starts anew.

Events and pairs are ordered by key, so the pairs of a key are read, followed and written in one place in memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vedette.native.buffers import empty_int8, empty_int32, empty_int64
from vedette.native.kernels import kernel
from vedette.operators.border.events import ENTER, EXIT
from vedette.operators.border.moves import Moves
from vedette.operators.border.pair_table import NumberedPairs, take_rows

_IS_HELD = 1  # a state: the key is inside, and its enter was held back
_FEW = 16  # pairs and events of a key that are compared one by one; a hash table finds more


class Cooling(NamedTuple):
    """Pairs whose cooldown runs, or that were held back since: columns of one length."""

    slots: NDArray[np.int32]
    queries: NDArray[np.int32]
    times: NDArray[Any]  # of the last enter that was reported
    states: NDArray[np.int8]
    n_held: NDArray[np.int64]  # events held back since the last report
    cooldowns: NDArray[Any]
    are_once: NDArray[np.bool_]
    epochs: NDArray[np.int32]  # as those of events


@dataclass(frozen=True)
class Held:
    """Which events are reported, and how many were held back before each; and the pairs to keep."""

    is_reported: NDArray[np.bool_]
    n_held: NDArray[np.int64]  # by event
    kept: NumberedPairs  # by slot
    n_dropped: int  # events that were held back


class Told(NamedTuple):
    """Events, of which those of a key are in order."""

    slots: NDArray[np.int32]
    queries: NDArray[np.int32]
    kinds: NDArray[np.int8]
    times: NDArray[Any]
    epochs: NDArray[np.int32]  # how often the key expired before the event
    cooldowns: NDArray[Any]  # below 0: none
    are_once: NDArray[np.bool_]


class _Run(NamedTuple):
    """The pairs of one key. There is room for all, but few keys have so many, so little of it is used."""

    queries: NDArray[np.int32]
    times: NDArray[Any]
    states: NDArray[np.int8]
    n_held: NDArray[np.int64]
    epochs: NDArray[np.int32]
    cooldowns: NDArray[Any]
    are_once: NDArray[np.bool_]


def hold_back(told: Told, opened: Cooling, last_epochs: NDArray[np.int32], latest: NDArray[Any]) -> Held:
    """Apply cooldowns. `opened` are the pairs of the keys of these events.

    `last_epochs` and `latest` have the last epoch and the latest time by slot.
    """
    if not _is_sorted(opened.slots):
        order = np.argsort(opened.slots, kind="stable")
        opened = take_rows(opened, order)
    if not _is_sorted(told.slots):
        order = np.argsort(told.slots, kind="stable")
        held = hold_back(take_rows(told, order), opened, last_epochs, latest)
        is_reported, n_held = np.empty_like(held.is_reported), np.empty_like(held.n_held)
        is_reported[order], n_held[order] = held.is_reported, held.n_held
        return Held(is_reported, n_held, held.kept, held.n_dropped)
    n, most = len(told.slots), len(opened.slots) + int(np.count_nonzero(told.kinds != EXIT))
    kind = told.times.dtype
    times: NDArray[Any] = empty_int64(most).view(kind)
    kept = NumberedPairs(empty_int32(most), empty_int32(most), times, empty_int8(most), empty_int64(most))
    types = (np.int32, kind, np.int8, np.int64, np.int32, kind, np.bool_)
    room: Any = (np.empty(most, each) for each in types)
    run = _Run(*room)
    is_reported, n_held = np.ones(n, np.bool_), np.zeros(n, np.int64)
    n_kept, n_dropped = _hold_back(told, opened, last_epochs, latest, run, kept, is_reported, n_held)
    return Held(is_reported, n_held, kept.first(n_kept), n_dropped)


def count_expiries(moves: Moves) -> NDArray[np.int32]:
    """By move: how often its key expired before it, in this batch."""
    away = (moves.after < 0).astype(np.int32)
    before = np.cumsum(away) - away
    if not len(moves):
        return before.astype(np.int32)
    firsts = np.flatnonzero(np.append(True, moves.slots[1:] != moves.slots[:-1]))
    return (before - np.repeat(before[firsts], np.diff(np.append(firsts, len(moves))))).astype(np.int32)


def find_last_epochs(moves: Moves, epochs: NDArray[np.int32], n_slots: int) -> NDArray[np.int32]:
    """By slot: how often the key has expired after its last move."""
    last = np.zeros(n_slots, np.int32)
    last[moves.slots] = epochs + (moves.after < 0)  # the last move of a key is written last
    return last


@kernel
def _hold_back(
    told: Told,
    opened: Cooling,
    last_epochs: NDArray[np.int32],
    latest: NDArray[Any],
    run: _Run,
    kept: NumberedPairs,
    is_reported: NDArray[np.bool_],
    n_held: NDArray[np.int64],
) -> tuple[int, int]:
    """Follow the events of each pair, key by key. Returns the numbers of pairs in `kept`, and of events held back."""
    slots, queries, kinds, times, event_epochs, event_cooldowns, event_once = told
    open_slots, open_queries, open_times, open_states, open_held, open_cooldowns, open_once, open_epochs = opened
    run_queries, last, states, counts, epochs, cooldowns, are_once = run
    kept_slots, kept_queries, kept_times, kept_states, kept_held = kept
    table = np.empty(0, np.int32)
    event = first = n_kept = n_dropped = 0
    while event < len(slots) or first < len(open_slots):
        slot = slots[event] if event < len(slots) else open_slots[first]
        if first < len(open_slots):
            slot = min(slot, open_slots[first])
        n = 0
        while first < len(open_slots) and open_slots[first] == slot:
            run_queries[n], last[n], states[n] = open_queries[first], open_times[first], open_states[first]
            counts[n], cooldowns[n], are_once[n] = open_held[first], open_cooldowns[first], open_once[first]
            epochs[n] = open_epochs[first]
            first += 1
            n += 1
        end = event
        while end < len(slots) and slots[end] == slot:
            end += 1
        is_large = n + end - event > _FEW
        if is_large:
            table = _index(run_queries, n, n + end - event)
        for each in range(event, end):
            if event_cooldowns[each] < 0 and not event_once[each]:
                continue
            query, pair, place = queries[each], 0, 0
            if is_large:
                place = _find(table, run_queries, query)
                pair = table[place]
            else:
                while pair < n and run_queries[pair] != query:
                    pair += 1
                pair = pair if pair < n else -1
            is_new = pair < 0 or epochs[pair] != event_epochs[each]
            if kinds[each] == EXIT:
                if is_new:
                    continue  # of an enter before the option was set
                is_held = states[pair] == _IS_HELD or event_once[each]
                states[pair] = 0
            else:
                is_held = not is_new and (event_once[each] or times[each] < last[pair] + event_cooldowns[each])
                if pair < 0:
                    pair = n
                    n += 1
                    run_queries[pair], cooldowns[pair], are_once[pair] = query, event_cooldowns[each], event_once[each]
                    if is_large:
                        table[place] = pair
                if is_new:
                    epochs[pair], counts[pair] = event_epochs[each], 0
                if not is_held:
                    last[pair] = times[each]
                states[pair] = _IS_HELD if is_held and kinds[each] == ENTER else 0
            if is_held:
                is_reported[each] = False
                n_dropped += 1
                counts[pair] += 1
            else:
                n_held[each] = counts[pair]
                counts[pair] = 0
        event = end
        for pair in range(n):
            is_running = counts[pair] > 0 or states[pair] > 0 or last[pair] + cooldowns[pair] > latest[slot]
            if epochs[pair] == last_epochs[slot] and (are_once[pair] or (cooldowns[pair] >= 0 and is_running)):
                kept_slots[n_kept], kept_queries[n_kept], kept_times[n_kept] = slot, run_queries[pair], last[pair]
                kept_states[n_kept], kept_held[n_kept] = states[pair], counts[pair]
                n_kept += 1
    return n_kept, n_dropped


@kernel
def _index(queries: NDArray[np.int32], n: int, most: int) -> NDArray[np.int32]:
    """A hash table of the first queries, with room for the most that there may be."""
    size = 2
    while size < 2 * most:
        size *= 2
    table = np.full(size, -1, np.int32)
    for pair in range(n):
        table[_find(table, queries, queries[pair])] = pair
    return table


@kernel
def _find(table: NDArray[np.int32], queries: NDArray[np.int32], query: int) -> int:
    """The place of a query in a hash table, or the free place where it belongs."""
    mask = len(table) - 1
    place = np.int64((np.uint64(query) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(33)) & mask
    while table[place] >= 0 and queries[table[place]] != query:
        place = (place + 1) & mask
    return int(place)


@kernel
def _is_sorted(slots: NDArray[np.int32]) -> bool:
    for place in range(1, len(slots)):  # noqa: SIM110  a kernel
        if slots[place] < slots[place - 1]:
            return False
    return True
