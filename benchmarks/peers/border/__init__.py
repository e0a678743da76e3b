"""Peers that find which boxes a key enters and which it leaves, one adapter file each.

Readings come in micro-batches. Boxes are indexed and batches brought into the form a peer likes best outside the clock;
finding each key's reading before, the events, and remembering the last reading are timed. Events are arrays of reading
number, query, and whether it is an exit; a batch's are dropped when the next one comes.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.answers import Answer, AnswerInParts, event_numbers
from benchmarks.peers import Peer
from benchmarks.workloads import Moves, Workload

Events = tuple[NDArray[np.integer], NDArray[np.integer], NDArray[np.bool_]]


class BorderPeer(Peer):
    """One tool in one formulation; `step` is what it does with a batch."""

    moves: Moves

    def load(self, rows: Workload) -> None:
        assert isinstance(rows, Moves)
        self.moves = rows
        self.batches = list(self.cut(rows))
        self.reset()

    def match(self) -> None:
        for batch in self.batches:
            self.step(batch)

    def answer(self, result: Any) -> AnswerInParts:
        return AnswerInParts(self._replay)

    def _replay(self) -> Iterator[Answer]:
        self.reset()
        for batch in self.batches:
            rows, queries, is_exit = self.events(batch, self.step(batch))
            yield Answer(event_numbers(queries, is_exit), rows)

    def cut(self, moves: Moves) -> Iterator[Any]:
        """The micro-batches, in the form that `step` likes best."""
        keys = moves.keys.astype(np.uint16 if moves.n_keys <= 1 << 16 else np.int32)  # the former sort by digits
        for part in moves.batches():
            yield np.arange(part.start, part.stop, dtype=np.int32), keys[part], moves.rows[:, part].copy()

    @abstractmethod
    def reset(self) -> None:
        """Reset all keys to their state before the first reading."""

    @abstractmethod
    def step(self, batch: Any) -> Any:
        """The events of the next batch, in the peer's own form."""

    def events(self, batch: Any, result: Any) -> Events:
        """What `step` returned as arrays."""
        return result  # type: ignore[no-any-return]


class ByKey:
    """The readings of a batch in the order of their keys, those of a key in the order of time."""

    def __init__(self, keys: NDArray[np.integer]) -> None:
        self.order = np.argsort(keys, kind="stable")
        self.all_keys = keys[self.order]
        begins = np.ones(len(keys), np.bool_)
        begins[1:] = self.all_keys[1:] != self.all_keys[:-1]
        self.firsts = np.flatnonzero(begins)  # where each key begins
        self.keys = self.all_keys[self.firsts]
        self.lasts = np.append(self.firsts[1:], len(keys)) - 1

    def before(self, after: NDArray[Any], last: NDArray[Any]) -> NDArray[Any]:
        """What was before each reading; `last` tells by key what was before the batch, and then what is after it."""
        before = np.empty_like(after)
        before[1:] = after[:-1]
        before[self.firsts] = last[self.keys]
        last[self.keys] = after[self.lasts]
        return before
