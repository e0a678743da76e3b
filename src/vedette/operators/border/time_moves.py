"""Moves that time makes: a key stays at its row, and a bound that moves with now() passes it.

Such a move is from the row to the same row with a later moment. It comes before the move to the key's next row, also if
both have the same time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from vedette.data.columns import Column
from vedette.native.kernels import kernel
from vedette.operators.border.deadlines import Deadline, Deadlines
from vedette.operators.border.key_state import KeyState
from vedette.operators.border.moves import Moves
from vedette.operators.border.moving_bounds import Moments, Passing, join_passing
from vedette.operators.border.moving_queries import Following
from vedette.operators.border.row_moments import RowMoments

_PAST = int(np.iinfo(np.int64).min)


def read_reached(keys: KeyState, deadlines: Deadlines, slots: NDArray[np.int32]) -> Moments:
    """The moment that each key has reached: its last row, or the last move that time made after it."""
    return np.maximum(keys.times[slots], deadlines.read_passed(slots))


def follow_time(
    moves: Moves,
    keys: KeyState,
    deadlines: Deadlines,
    following: Following,
    rows_of: Callable[[Moves], dict[str, Column]],
    *,
    stops: bool,
) -> tuple[Moves, Moments]:
    """The moves, with those that time makes between them; and the next moments of the rows that were examined.

    `rows_of` returns the rows of moves. With `stops`, every row is repeated at the moment of the next row.
    """
    n_known, latest = len(moves.known), moves.latest_times
    if deadlines.reached is not None:
        latest = np.maximum(latest, deadlines.reached)
    moments = _find_moments(moves.before, moves.after, latest, moves.known, keys.times, deadlines.at(moves.known))
    until = _find_ends(moves.before, moves.after, moves.times, moments)
    since, may_pass = _find_open(moments, until, moves.known, deadlines.at(moves.known))
    kept = n_known + np.flatnonzero(may_pass[n_known:])
    if len(kept):
        may_pass[kept] = following.find_next(rows_of(_only_rows(moves, kept)), since[kept]) <= until[kept]
    rows = np.flatnonzero(may_pass)
    passing = Passing(rows, rows, rows)
    if len(rows):
        passing = following.find(rows_of(_only_rows(moves, rows)), since[rows], until[rows])
        passing = passing._replace(rows=rows[passing.rows])
    if stops:
        ends = np.flatnonzero(until > moments)
        ends = ends[np.isin(ends, moves.before[moves.after >= 0])]
        passing = join_passing([passing, Passing(ends, until[ends], passing.nexts)], len(passing.nexts))
    return _repeat_rows(moves, moments, passing), passing.nexts


def _only_rows(moves: Moves, rows: NDArray[np.int64]) -> Moves:
    """Some of the rows, which are in order, without moves."""
    n_known = len(moves.known)
    known, kept = rows[rows < n_known], rows[rows >= n_known] - n_known
    return replace(moves, known=moves.known[known], kept=moves.kept[kept], passed=None)


def _repeat_rows(moves: Moves, moments: Moments, passing: Passing) -> Moves:
    """The moves with the rows repeated at their later moments."""
    n_known, n_rows = len(moves.known), len(moments)
    counts = np.bincount(passing.rows, minlength=n_rows)
    if not len(passing.rows):
        return replace(moves, passed=RowMoments(moments, np.zeros(n_rows, np.bool_)))
    firsts = np.arange(n_rows) + np.cumsum(counts) - counts
    is_repeated = np.ones(n_rows + len(passing.rows), np.bool_)
    is_repeated[firsts] = False
    row_moments = np.empty(len(is_repeated), np.int64)
    row_moments[~is_repeated], row_moments[is_repeated] = moments, passing.moments
    n_before = np.where(moves.before < 0, 0, counts[moves.before])
    each = np.repeat(np.arange(len(moves)), 1 + n_before)
    number = np.arange(len(each)) - np.repeat(np.cumsum(1 + n_before) - 1 - n_before, 1 + n_before)
    is_of_time = number < n_before[each]
    before, after = moves.before[each], moves.after[each]
    before = np.where(before < 0, -1, firsts[before] + number)
    after = np.where(is_of_time, before + 1, np.where(after < 0, -1, firsts[after]))
    times = np.where(is_of_time, row_moments[after], moves.times[each])
    n_known_copies, n_kept_copies = 1 + counts[:n_known], 1 + counts[n_known:]
    return Moves(
        before,
        after,
        moves.slots[each],
        times,
        np.repeat(moves.known, n_known_copies),
        np.repeat(moves.kept, n_kept_copies),
        np.repeat(moves.kept_slots, n_kept_copies),
        np.repeat(moves.latest_times, n_kept_copies),
        moves.n_late,
        RowMoments(row_moments, is_repeated),
    )


@kernel
def _find_moments(
    before: NDArray[np.int64],
    after: NDArray[np.int64],
    latest_times: NDArray[np.int64],
    known: NDArray[np.int32],
    key_times: NDArray[np.int64],
    deadline: Deadline,
) -> NDArray[np.int64]:
    """By row: the greatest time of its key so far. Those of the known rows are what the keys have reached."""
    n_known = len(known)
    moments = np.empty(n_known + len(latest_times), np.int64)
    for row in range(n_known):
        moments[row] = max(key_times[known[row]], deadline.passed[known[row]])
    moments[n_known:] = latest_times
    for move in range(len(before)):
        if before[move] >= 0 and after[move] >= n_known:
            moments[after[move]] = max(moments[after[move]], moments[before[move]])
    return moments


@kernel
def _find_ends(
    before: NDArray[np.int64], after: NDArray[np.int64], times: NDArray[np.int64], moments: NDArray[np.int64]
) -> NDArray[np.int64]:
    """By row: the moment at which its key moves on, or the past if it stays."""
    ends = np.full(len(moments), _PAST)
    for move in range(len(before)):
        if before[move] >= 0:
            ends[before[move]] = moments[after[move]] if after[move] >= 0 else times[move]
    return ends


@kernel
def _find_open(
    moments: NDArray[np.int64], until: NDArray[np.int64], known: NDArray[np.int32], deadline: Deadline
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """By row: since when time was not examined, and whether it may have made a move until its key moves on."""
    since, may_pass = moments.copy(), np.empty(len(moments), np.bool_)
    for row in range(len(moments)):
        if row < len(known):
            since[row] = max(since[row], deadline.checked[known[row]])
        is_due = row >= len(known) or deadline.nexts[known[row]] <= until[row]
        may_pass[row] = until[row] > since[row] and is_due
    return since, may_pass
