"""The matches of a large batch, which is cut into pieces for threads.

A thread writes the matches of its piece into the answer as soon as those of the pieces before it are counted. Where an
index counts matches before it writes them, they are written once. Others are copied while they are still in the cache.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from vedette.data.matches import Matches
from vedette.native.budget import BOUND, OverBudgetError, bounded
from vedette.native.buffers import empty_int32, empty_int64, output_int32
from vedette.native.threads import count_pieces, cut, run_pieces

PIECE_ROWS = 1 << 14  # at least, of a piece that a thread matches: fewer rows are not worth another thread
ROOM = 1.05  # for this many times the matches that the first pieces let expect


class Piece(Protocol):
    """Matches of consecutive rows, written or only counted."""

    @property
    def starts(self) -> NDArray[np.int64]: ...

    @property
    def n_failed(self) -> int: ...

    def write(self, positions: NDArray[np.int32]) -> None:
        """Write the matches into an array of exactly their number, whose memory may continue: nothing else changes."""


def match_pieces(
    find: Callable[[int, int], Matches], n_rows: int, count: Callable[[int, int], Piece] | None = None
) -> Matches:
    """The answer of `find(0, n_rows)`. A large batch is cut into pieces for threads.

    `count`, if given, counts the matches that `find` returns. The answer, or OverBudgetError, does not depend on the
    number of threads, if that of a row does not depend on the other rows that `find` is called with.
    """
    n_pieces = count_pieces(n_rows, PIECE_ROWS)
    if n_pieces == 1:
        return find(0, n_rows)
    cuts = cut(n_rows, n_pieces)
    answer = _Answer(cuts)
    most = BOUND.n_bytes // (1 if count else n_pieces)  # what is only counted takes no memory yet

    def find_piece(piece: int) -> None:
        with bounded(most):
            found = (count or find)(cuts[piece], cuts[piece + 1])
        answer.add(piece, found)

    try:
        run_pieces(find_piece, n_pieces)
    except OverBudgetError:  # if no piece exceeds its share, the whole answer is within the bound
        return find(0, n_rows)
    return answer.to_matches()


class _Answer:
    """The matches of all pieces. Each is written by the thread that knows where it starts."""

    def __init__(self, cuts: Sequence[int]) -> None:
        self._cuts = cuts
        self._lock = threading.Lock()
        self._pieces: list[Piece | None] = [None] * (len(cuts) - 1)
        self._places = [0]  # where each piece begins, and where the last one ends, as far as they are known
        self._starts = empty_int64(cuts[-1] + 1)
        self._starts[0] = 0
        self._positions: NDArray[np.int32] | None = None

    def add(self, number: int, piece: Piece) -> None:
        """Write the piece, or let another thread do it later."""
        with self._lock:
            self._pieces[number] = piece
            first = last = len(self._places) - 1
            while last < len(self._pieces) and (following := self._pieces[last]) is not None:
                self._places.append(self._places[-1] + int(following.starts[-1]))
                last += 1
            if self._positions is None and last > first:
                expected = int(ROOM * self._places[-1] * self._cuts[-1] / self._cuts[last])
                self._positions = empty_int32(min(max(expected, self._places[-1]), BOUND.n_bytes // 4))
        for each in range(first, last):
            self._write(each, self._positions)

    def to_matches(self) -> Matches:
        n_found = self._places[-1]
        if self._positions is None or n_found > len(self._positions):  # there was no room for the last pieces
            positions = output_int32(n_found)
            run_pieces(lambda piece: self._write(piece, positions), len(self._pieces))
            self._positions = positions
        n_failed = sum(piece.n_failed for piece in self._pieces if piece is not None)
        return Matches(self._starts, self._positions[:n_found], n_failed=n_failed)

    def _write(self, number: int, positions: NDArray[np.int32] | None) -> None:
        piece, start, end = self._pieces[number], self._places[number], self._places[number + 1]
        if piece is None or positions is None or end > len(positions):
            return
        piece.write(positions[start:end])
        rows = slice(self._cuts[number] + 1, self._cuts[number + 1] + 1)
        np.add(piece.starts[1:], start, out=self._starts[rows])
