"""Cooldown and once: after an enter was reported, further events of the key and the query are held back.

After a reported enter, further enters of the key into the query, and their exits, are counted instead of reported until
the cooldown has passed. The next reported event says how many were held back. With `once`, the first enter is the only
event. A key that expires is forgotten, and starts anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vedette.native.hashing import empty_slots
from vedette.native.kernels import kernel
from vedette.operators.border.events import ENTER, EXIT
from vedette.operators.border.moves import Moves

_IS_HELD = 1  # a state: the key is inside, and its enter was held back


class Cooling(NamedTuple):
    """Pairs whose cooldown runs, or that were held back since: columns of one length."""

    slots: NDArray[np.int32]
    queries: NDArray[np.int32]
    times: NDArray[Any]  # of the last enter that was reported
    states: NDArray[np.int8]
    n_held: NDArray[np.int64]  # events held back since the last report

    def take(self, chosen: NDArray[Any]) -> Cooling:
        return Cooling(*(column[chosen] for column in self))


@dataclass(frozen=True)
class Held:
    """Which events are reported, and how many were held back before each; and the pairs to keep."""

    is_reported: NDArray[np.bool_]
    n_held: NDArray[np.int64]  # by event
    cooling: Cooling
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


def hold_back(told: Told, opened: Cooling, last_epochs: NDArray[np.int32]) -> Held:
    """Apply cooldowns. `opened` are the pairs of the keys of these events; `last_epochs` has the last one by slot."""
    n, most = len(told.slots), len(told.slots) + len(opened.slots)
    kept = Cooling(*(np.concatenate([column, np.zeros(n, column.dtype)]) for column in opened))
    kept_epochs = np.zeros(most, np.int32)
    is_reported, n_held = np.ones(n, np.bool_), np.zeros(n, np.int64)
    n_pairs = _hold_back(told, kept, kept_epochs, len(opened.slots), empty_slots(most), is_reported, n_held)
    stays = np.flatnonzero(kept_epochs[:n_pairs] == last_epochs[kept.slots[:n_pairs]])
    return Held(is_reported, n_held, kept.take(stays), int(n - np.count_nonzero(is_reported)))


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
    kept: Cooling,
    epochs: NDArray[np.int32],
    n_pairs: int,
    table: NDArray[np.int32],
    is_reported: NDArray[np.bool_],
    n_held: NDArray[np.int64],
) -> int:
    """Follow the events of each pair. Returns the number of pairs in `kept`, which were `n_pairs` before."""
    slots, queries, kinds, times = told.slots, told.queries, told.kinds, told.times
    event_epochs, cooldowns, are_once = told.epochs, told.cooldowns, told.are_once
    kept_slots, kept_queries, last, states, counts = kept.slots, kept.queries, kept.times, kept.states, kept.n_held
    for pair in range(n_pairs):
        table[_find(table, kept_slots, kept_queries, kept_slots[pair], kept_queries[pair])] = pair
    for event in range(len(slots)):
        if cooldowns[event] < 0 and not are_once[event]:
            continue
        place = _find(table, kept_slots, kept_queries, slots[event], queries[event])
        pair = table[place]
        is_new = pair < 0 or epochs[pair] != event_epochs[event]
        if kinds[event] == EXIT:
            if is_new:
                continue  # of an enter before the option was set
            is_held = states[pair] == _IS_HELD or are_once[event]
            states[pair] = 0
        else:
            is_held = not is_new and (are_once[event] or times[event] < last[pair] + cooldowns[event])
            if pair < 0:
                pair = table[place] = n_pairs
                n_pairs += 1
                kept_slots[pair], kept_queries[pair] = slots[event], queries[event]
            if is_new:
                epochs[pair], counts[pair] = event_epochs[event], 0
            if not is_held:
                last[pair] = times[event]
            states[pair] = _IS_HELD if is_held and kinds[event] == ENTER else 0
        if is_held:
            is_reported[event] = False
            counts[pair] += 1
        else:
            n_held[event] = counts[pair]
            counts[pair] = 0
    return n_pairs


@kernel
def _find(table: NDArray[np.int32], slots: NDArray[np.int32], queries: NDArray[np.int32], slot: int, query: int) -> int:
    """The place of a pair in a hash table of pairs, or the free place where it belongs."""
    mask = len(table) - 1
    code = np.uint64(np.int64(slot) << 32 | np.int64(query)) * np.uint64(0x9E3779B97F4A7C15)
    place = np.int64(code >> np.uint64(33)) & mask
    while table[place] >= 0 and (slots[table[place]] != slot or queries[table[place]] != query):
        place = (place + 1) & mask
    return int(place)
