"""Dwell: an enter is emitted only after the key has been inside for the dwell time, and its exit only then.

The time of the enter event is the time of entering plus the dwell time. It is decided at the key's next row, before the
changes of that row, or by `advance`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vedette.native.kernels import kernel
from vedette.operators.border.events import CROSS, ENTER, Events
from vedette.operators.border.moves import Moves
from vedette.operators.border.pair_table import KeyQueryPairs

_DROPPED, _REPORTED, _OPEN = 0, 1, 2  # outcomes of an event


@dataclass(frozen=True)
class Settled:
    """The events to report, and the enters that stay open."""

    events: Events
    times: NDArray[Any]  # of the events
    ordinals: NDArray[np.int64]
    is_delayed: NDArray[np.bool_]  # the event is an enter after its dwell time, before the changes of its move
    stays: Events
    since: NDArray[Any]  # the times of entering
    staying_ordinals: NDArray[np.int64]


def settle_dwell(
    events: Events,
    event_times: NDArray[Any],
    ordinals: NDArray[np.int64],
    moves: Moves,
    dwells: NDArray[Any],
    open_dwells: NDArray[Any],
    opened: KeyQueryPairs,
    open_queries: NDArray[np.int32],
) -> Settled:
    """The events after the dwell times of their queries, below 0 if a query has none.

    `event_times` are the times of the events. `opened` are the enters that were open before, of the keys of these
    moves, with the dwell times `open_dwells`.
    """
    passes, n_open = (events.kinds == CROSS) | (dwells < 0), len(opened)
    passing, borders = events.take(passes), events.take(~passes)
    was_open = np.arange(n_open + len(borders)) < n_open
    all_moves = np.concatenate([moves.first_of(opened.slots), borders.moves])
    queries = np.concatenate([open_queries, borders.queries])
    kinds = np.concatenate([np.full(n_open, ENTER, np.int8), borders.kinds])
    reasons = np.concatenate([opened.reasons, borders.reasons])
    times = np.concatenate([opened.times.astype(moves.times.dtype), event_times[~passes]])
    order = np.lexsort((~was_open, all_moves, queries, moves.slots[all_moves]))  # open enters come first
    everything = Events(all_moves, queries, kinds, reasons).take(order)
    times, was_open = times[order], was_open[order]
    all_ordinals = np.concatenate([opened.ordinals, ordinals[~passes]])[order]
    dwell = np.concatenate([np.maximum(open_dwells, 0), dwells[~passes]])[order]
    slots = moves.slots[everything.moves]
    is_first = np.ones(len(order), np.bool_)
    is_first[1:] = (slots[1:] != slots[:-1]) | (everything.queries[1:] != everything.queries[:-1])
    # The moves at which an enter can be decided: after its own, up to the last of its key.
    starts = everything.moves + np.where(was_open, 0, 1)
    outcomes = np.zeros(len(order), np.int8)
    due_moves = everything.moves.copy()
    ends = moves.ends[everything.moves]
    _settle(is_first, everything.kinds, times, starts, ends, everything.moves, moves.times, dwell, outcomes, due_moves)
    reported = outcomes == _REPORTED
    enters = reported & (everything.kinds == ENTER)
    times_out = np.where(enters, times + dwell, times).astype(times.dtype)
    settled = Events(due_moves, everything.queries, everything.kinds, everything.reasons).take(reported)
    ranks = np.where(settled.kinds == ENTER, -1, settled.kinds)  # delayed enters come before the changes of their move
    out_times = np.concatenate([times_out[reported], event_times[passes]])
    out_ordinals = np.concatenate([all_ordinals[reported], ordinals[passes]])
    all_ranks, all_moves = np.concatenate([ranks, passing.kinds]), np.concatenate([settled.moves, passing.moves])
    by_rank = np.where(moves.after[all_moves] < 0, 0, all_ranks)  # of a silent key, all are in the order of their times
    order = np.lexsort((all_ranks, out_times, by_rank, all_moves))
    stays = outcomes == _OPEN
    return Settled(
        Events.concat([settled, passing]).take(order),
        out_times[order],
        out_ordinals[order],
        all_ranks[order] < 0,
        everything.take(stays),
        times[stays],
        all_ordinals[stays],
    )


@kernel
def _settle(
    is_first: NDArray[np.bool_],
    kinds: NDArray[np.int8],
    times: NDArray[Any],
    starts: NDArray[np.int32],
    ends: NDArray[np.int64],
    event_moves: NDArray[np.int32],
    move_times: NDArray[Any],
    dwell: NDArray[Any],
    outcomes: NDArray[np.int8],
    due_moves: NDArray[np.int32],
) -> None:
    """Process the events of each pair in order. An enter waits until its dwell time is over or the key leaves."""
    n = len(is_first)
    waiting = -1
    for event in range(n):
        if is_first[event]:
            waiting = -1
        if kinds[event] == ENTER:
            waiting = event
            outcomes[event] = _OPEN
        elif waiting < 0:
            outcomes[event] = _REPORTED  # its enter was reported
        else:
            is_due = times[event] >= times[waiting] + dwell[waiting]
            outcomes[event] = _REPORTED if is_due else _DROPPED
            outcomes[waiting] = _REPORTED if is_due else _DROPPED
            ends[waiting] = event_moves[event] + 1
            if is_due:
                due = times[waiting] + dwell[waiting]
                due_moves[waiting] = _find_due(starts[waiting], ends[waiting], due, move_times)
            waiting = -1
        if waiting >= 0 and (event == n - 1 or is_first[event + 1]):
            due_move = _find_due(starts[waiting], ends[waiting], times[waiting] + dwell[waiting], move_times)
            if due_move >= 0:
                outcomes[waiting] = _REPORTED
                due_moves[waiting] = due_move


@kernel
def _find_due(start: int, end: int, time: Any, move_times: NDArray[Any]) -> int:
    """The first of the moves [start, end) at that time or later, or -1."""
    for move in range(start, end):
        if move_times[move] >= time:
            return move
    return -1
