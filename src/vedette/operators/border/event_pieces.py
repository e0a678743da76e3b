"""The events of a batch of moves, which is cut into pieces for threads.

How moves are processed is decided for the whole batch, so the events and their order do not depend on the pieces.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from vedette.native.budget import BOUND, OverBudgetError, bounded, check_bytes
from vedette.native.threads import count_pieces, cut, run_pieces
from vedette.operators.border.differences import MOVES_AT_ONCE
from vedette.operators.border.event_table import EVENT_BYTES
from vedette.operators.border.events import Events
from vedette.operators.border.finder import BorderFinder, EventPlan, RowsOf, Seen
from vedette.operators.border.moves import Moves
from vedette.operators.border.runs import Runs
from vedette.queries.set_view import SetView

PIECE_MOVES = 1 << 13  # at least, of a piece: fewer moves are not worth another thread
Found = TypeVar("Found")


def find_pieces(
    finder: BorderFinder,
    view: SetView,
    moves: Moves,
    seen: Seen,
    rows_of: RowsOf,
    convert: Callable[[Runs, list[Events], Moves], Found],
    *,
    crosses: bool,
) -> tuple[list[tuple[int, Found]], int]:
    """For consecutive pieces, their first move and the events as `convert` returns them; and the failed comparisons.

    `rows_of` returns the rows that moves refer to.
    """
    n_pieces = count_pieces(len(moves), PIECE_MOVES)
    plan = finder.plan(view, moves, seen, rows_of if n_pieces > 1 else None, crosses=crosses)
    cuts = _cut(len(moves), n_pieces, MOVES_AT_ONCE if plan.has_residuals else 1)
    n_pieces = len(cuts) - 1
    most = BOUND.n_bytes // n_pieces

    def find_moves(part: Moves, plan: EventPlan) -> tuple[Found, int]:
        runs, special, n_failed = finder.find_events(view, part, rows_of(part), plan)
        check_bytes(EVENT_BYTES * (len(runs) + sum(map(len, special))))
        return convert(runs, special, part), n_failed

    def find(piece: int) -> tuple[int, Found, int]:
        start, stop = cuts[piece], cuts[piece + 1]
        part = moves.part(start, stop)
        with bounded(most):
            return start, *find_moves(part, plan.part(start, stop))

    if n_pieces > 1:
        try:
            found = run_pieces(find, n_pieces)
            return [(start, events) for start, events, _ in found], sum(n_failed for _, _, n_failed in found)
        except OverBudgetError:  # if no piece exceeds its share, all events are within the bound
            pass
    events, n_failed = find_moves(moves, plan)
    return [(0, events)], n_failed


def _cut(n: int, n_pieces: int, step: int) -> list[int]:
    """Where to cut `n` moves, at multiples of a step.

    A row at which moves are cut is matched twice, and failures of residuals are counted for it twice. So such moves are
    cut only where they would be cut for comparisons anyway.
    """
    n_steps = -(-n // step)
    return [min(n, step * each) for each in cut(n_steps, max(1, min(n_pieces, n_steps)))]
