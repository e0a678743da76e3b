"""Peers that find the boxes that a key enters and leaves, one adapter file each.

Readings come in micro-batches. Boxes are indexed, and batches are converted to the peer's best form, outside the
timing. Finding each key's previous reading, finding the events, and storing the last reading are timed. Events are
arrays of reading number, query, and whether it is an exit; those of a batch are dropped when the next one comes.
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
    """One tool in one formulation; `step` processes a batch."""

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
        """The micro-batches, in the best form for `step`."""
        keys = moves.keys.astype(np.uint16 if moves.n_keys <= 1 << 16 else np.int32)  # the former are sorted by radix
        for part in moves.batches():
            yield np.arange(part.start, part.stop, dtype=np.int32), keys[part], moves.rows[:, part].copy()

    @abstractmethod
    def reset(self) -> None:
        """Reset all keys to their state before the first reading."""

    @abstractmethod
    def step(self, batch: Any) -> Any:
        """The events of the next batch, in the peer's own form."""

    def events(self, batch: Any, result: Any) -> Events:
        """The result of `step` as arrays."""
        return result  # type: ignore[no-any-return]


class ByKey:
    """The readings of a batch ordered by key, those of a key in time order."""

    def __init__(self, keys: NDArray[np.integer]) -> None:
        self.order = np.argsort(keys, kind="stable")
        self.all_keys = keys[self.order]
        begins = np.ones(len(keys), np.bool_)
        begins[1:] = self.all_keys[1:] != self.all_keys[:-1]
        self.firsts = np.flatnonzero(begins)  # where each key begins
        self.keys = self.all_keys[self.firsts]
        self.lasts = np.append(self.firsts[1:], len(keys)) - 1

    def before(self, after: NDArray[Any], last: NDArray[Any]) -> NDArray[Any]:
        """The previous value of each reading. `last` has the values by key before the batch, and is updated."""
        before = np.empty_like(after)
        before[1:] = after[:-1]
        before[self.firsts] = last[self.keys]
        last[self.keys] = after[self.lasts]
        return before
