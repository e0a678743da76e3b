"""Border events: a key enters, leaves or crosses a query at a move, with the reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vedette.native.kernels import kernel
from vedette.operators.border.runs import CROSS as CROSS
from vedette.operators.border.runs import ENTER as ENTER
from vedette.operators.border.runs import EXIT as EXIT

KINDS = ("exit", "enter", "cross")  # by EXIT, ENTER and CROSS
REASONS = ("moved", "first", "added", "replaced", "removed", "expired", "time")
MOVED, FIRST, ADDED, REPLACED, REMOVED, EXPIRED, TIME = range(7)  # 0 is the usual reason


@dataclass(frozen=True)
class Events:
    """Columns of one length. A query is a position in the set or, from its length on, the number of a removed query."""

    moves: NDArray[np.int32]
    queries: NDArray[np.int32]
    kinds: NDArray[np.int8]
    reasons: NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.moves)

    @classmethod
    def none(cls) -> Events:
        return cls(np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.int8), np.empty(0, np.int8))

    @classmethod
    def of(cls, moves: NDArray[Any], queries: NDArray[Any], kind: int, reasons: NDArray[Any] | int) -> Events:
        """Events of one kind."""
        kinds = np.full(len(moves), kind, np.int8)
        reasons = np.full(len(moves), reasons, np.int8) if isinstance(reasons, int) else reasons.astype(np.int8)
        return cls(moves.astype(np.int32), queries.astype(np.int32), kinds, reasons)

    @classmethod
    def join(cls, many: Sequence[Events], n_moves: int) -> Events:
        """All events in the order of the moves; within a move exits come first, then enters, then crosses."""
        some = [each for each in many if len(each)]
        if not some:
            return cls.none()
        joined = some[0] if len(some) == 1 else cls.concat(some)
        if _is_in_order(joined.moves, joined.kinds):
            return joined
        return joined.take(_order(joined.moves, joined.kinds, n_moves))

    @classmethod
    def concat(cls, many: Sequence[Events]) -> Events:
        return cls(*(np.concatenate([getattr(each, field.name) for each in many]) for field in fields(cls)))

    def later(self, n_moves: int) -> Events:
        """The same events, if there are `n_moves` more moves before."""
        return self if n_moves == 0 else Events(self.moves + np.int32(n_moves), self.queries, self.kinds, self.reasons)

    def take(self, chosen: NDArray[np.bool_] | NDArray[np.int64]) -> Events:
        return Events(self.moves[chosen], self.queries[chosen], self.kinds[chosen], self.reasons[chosen])


@kernel
def _is_in_order(moves: NDArray[np.int32], kinds: NDArray[np.int8]) -> bool:
    for i in range(1, len(moves)):
        if moves[i] < moves[i - 1] or (moves[i] == moves[i - 1] and kinds[i] < kinds[i - 1]):
            return False
    return True


@kernel
def _order(moves: NDArray[np.int32], kinds: NDArray[np.int8], n_moves: int) -> NDArray[np.int64]:
    starts = np.zeros(3 * n_moves + 1, np.int64)
    for i in range(len(moves)):
        starts[3 * np.int64(moves[i]) + kinds[i] + 1] += 1
    for i in range(3 * n_moves):
        starts[i + 1] += starts[i]
    order = np.empty(len(moves), np.int64)
    for i in range(len(moves)):
        place = 3 * np.int64(moves[i]) + kinds[i]
        order[starts[place]] = i
        starts[place] += 1
    return order
