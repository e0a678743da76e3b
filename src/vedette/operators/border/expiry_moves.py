"""Moves of keys that were silent, if queries differ in how long a key may be silent.

A key that was silent for too long has left some queries at its next row, but not others. Its move becomes up to three:
away from the queries whose silence is over, between its rows for the others, and in again for the former. Each concerns
only those queries (see `Windows`). The first makes events at different times, so they are put in order here.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vedette.operators.border.events import Events
from vedette.operators.border.key_state import KeyState
from vedette.operators.border.moves import Moves
from vedette.operators.border.silences import Silences, Windows, elapsed
from vedette.operators.border.silent_keys import SilentKeys


def split_silences(
    moves: Moves,
    keys: KeyState,
    silent: SilentKeys,
    silences: Silences,
    version: int,
    *,
    clock: Any = None,
    forgets: bool = True,
) -> Moves:
    """The moves, cut by the silences of queries.

    Without `forgets`, keys that go away only leave the queries whose silence is over at the time of the move. `clock`
    is the time at which a batch begins.
    """
    shortest = min(silences.shortest, silent.least_default)
    windows, firsts = _find_windows(moves, keys, silent, silences, version, shortest)
    has_row, is_away, is_of_time = moves.before >= 0, moves.after < 0, moves.are_of_time
    until = (
        moves.times if clock is None else np.where(is_of_time | is_away, moves.times, np.maximum(moves.times, clock))
    )
    ends = np.where(is_away & forgets, silences.top, elapsed(until, windows.since))
    ends = np.where(is_of_time, ends, np.maximum(ends, windows.lows))  # rows before the time of `advance`
    leaves = has_row & ~is_away & (firsts < ends)
    stays = has_row & ~is_away & (shortest < ends)
    if not (leaves.any() or stays.any() or is_away.any()):
        return moves
    returns = stays & ~is_of_time
    n_copies = 1 + leaves.astype(np.int64) + returns
    each = np.repeat(np.arange(len(moves)), n_copies)
    number = np.arange(len(each)) - np.repeat(np.cumsum(n_copies) - n_copies, n_copies)
    goes = leaves[each] & (number == 0)
    comes = returns[each] & (number == n_copies[each] - 1)
    lows = np.where(goes | is_away[each], windows.lows[each], np.where(comes, 0, np.where(stays[each], ends[each], 0)))
    highs = np.where(goes | comes | is_away[each], ends[each], silences.top)
    times = np.where(goes, windows.since[each] + np.where(goes, ends[each], 0), moves.times[each])
    return replace(
        moves,
        before=np.where(comes, -1, moves.before[each]),
        after=np.where(goes, -1, moves.after[each]),
        slots=moves.slots[each],
        times=times.astype(moves.times.dtype),
        windows=windows.take(each)._replace(lows=lows.astype(silences.kind), highs=highs.astype(silences.kind)),
    )


def _find_windows(
    moves: Moves, keys: KeyState, silent: SilentKeys, silences: Silences, version: int, shortest: Any
) -> tuple[Windows, NDArray[Any]]:
    """By move: what is known about the row before it, with the silence that was judged as `lows`; and the first silence
    after which the key may leave a query."""
    known, n_kept = silent.read(moves.known), len(moves.kept)
    latest = np.concatenate([keys.times[moves.known], moves.latest_times])
    judged = np.concatenate([known.judged, np.zeros(n_kept, silences.kind)])
    nexts = np.concatenate([known.nexts, np.full(n_kept, shortest)])
    defaults = np.concatenate([known.defaults, np.full(n_kept, silences.default)])
    if moves.passed is not None and moves.passed.is_repeated.any():
        again = moves.passed.is_repeated
        judged = np.where(again, np.maximum(judged, moves.passed.moments - latest), judged)
        nexts = np.where(again, shortest, nexts)  # bounds may have passed since it was found
    seen = moves.find_versions(keys.versions, version)
    rows = moves.before
    if not len(latest):
        none = np.zeros(len(moves), silences.kind)
        return Windows(none, none, none, seen, none), none
    windows = Windows(judged[rows], judged[rows], latest[rows], seen, defaults[rows])
    return windows, np.maximum(nexts, judged)[rows]


def time_events(events: Events, moves: Moves, silences: Silences) -> tuple[Events, NDArray[Any]]:
    """The events in order, and their times: a key leaves each query when its silence is over."""
    times, windows = moves.times[events.moves], moves.windows
    if windows is None:
        return events, times
    at = np.flatnonzero(moves.after[events.moves] < 0)
    own = windows.silences_of(silences, events.moves[at], events.queries[at])
    is_finite = own < silences.never
    over = windows.since[events.moves[at]] + np.where(is_finite, own, 0)
    times[at] = np.where(is_finite, np.minimum(over, times[at]), times[at])
    order = np.lexsort((np.where(moves.after[events.moves] < 0, times, 0), events.moves))
    return events.take(order), times[order]


def last_times(events: Events, times: NDArray[Any], moves: Moves) -> Moves:
    """The moves, of which those that leave queries one after the other have the time of the last event."""
    if moves.windows is None:
        return moves
    limits = np.iinfo(np.int64) if times.dtype == np.int64 else np.finfo(np.float64)
    lasts = np.where(moves.after < 0, times.dtype.type(limits.min), moves.times)
    np.maximum.at(lasts, events.moves, times)
    return replace(moves, times=lasts)


def find_epochs(moves: Moves, silences: Silences, starts: NDArray[Any], queries: NDArray[Any]) -> NDArray[np.int32]:
    """For queries, from a move of a key on: one more than the move with which the silence is over, or 0."""
    windows = moves.windows
    assert windows is not None
    ends = np.flatnonzero((moves.after < 0) | ((moves.before < 0) & (windows.highs < silences.top)))
    places = np.searchsorted(ends, starts)
    epochs = np.zeros(len(queries), np.int32)
    waiting = np.flatnonzero(places < len(ends))
    slots = moves.slots[np.minimum(starts, max(0, len(moves) - 1))]
    while len(waiting):
        at = ends[places[waiting]]
        is_same = moves.slots[at] == slots[waiting]
        waiting, at = waiting[is_same], at[is_same]
        is_over = windows.silences_of(silences, at, queries[waiting]) < windows.highs[at]
        epochs[waiting[is_over]] = 1 + at[is_over]
        waiting = waiting[~is_over]
        places[waiting] += 1
        waiting = waiting[places[waiting] < len(ends)]
    return epochs


def event_epochs(events: Events, moves: Moves, silences: Silences) -> NDArray[np.int32]:
    """Of each event."""
    epochs = np.zeros(len(events), np.int32)
    starts = events.moves + (moves.after[events.moves] >= 0)
    last = np.append(moves.slots, -1)[np.minimum(starts, len(moves))]
    some = np.flatnonzero(last == moves.slots[events.moves])
    epochs[some] = find_epochs(moves, silences, starts[some], events.queries[some])
    return epochs
