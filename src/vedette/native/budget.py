"""A bound on the memory of an answer, checked before the memory is allocated.

Indexes count matches before they write them. `buffers.output_int32` compares that count with the bound of the current
thread and raises `OverBudgetError` instead of allocating; the caller then asks about fewer rows. An answer within the
bound costs one comparison. Without a bound nothing is checked.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

UNBOUNDED = 1 << 62
GROWTH = 16  # a piece has at most this many times the rows of the piece before it


class OverBudgetError(Exception):
    """An answer would take about `n_bytes`, which is more than the bound. This error never leaves the package."""

    def __init__(self, n_bytes: int) -> None:
        super().__init__(f"an answer of {n_bytes:,} bytes exceeds the bound")
        self.n_bytes = n_bytes


class _Bound(threading.local):
    n_bytes: int = UNBOUNDED


BOUND = _Bound()  # of the current thread


@contextmanager
def bounded(n_bytes: int) -> Iterator[None]:
    """Limit the answers that are found inside the block. Do not yield inside it: the bound belongs to the thread."""
    before, BOUND.n_bytes = BOUND.n_bytes, n_bytes
    try:
        yield
    finally:
        BOUND.n_bytes = before


def check_bytes(n_bytes: int) -> None:
    """Raise OverBudgetError if `n_bytes` exceeds the bound."""
    if n_bytes > BOUND.n_bytes:
        raise OverBudgetError(n_bytes)


class Sized(Protocol):
    @property
    def nbytes(self) -> int: ...


Answer = TypeVar("Answer", bound=Sized)


class Pieces:
    """Answers about a few rows at a time, of about `target` bytes each and never of more than `most`.

    `n_next` is the number of rows to ask about next. It depends on the size of the previous answer.
    """

    def __init__(self, n_first: int, target: int, most: int) -> None:
        self.n_next = max(1, n_first)
        self.target = min(target, most)
        self.most = most

    def of(self, find: Callable[[int, int], Answer], n_rows: int) -> Iterator[tuple[int, int, Answer]]:
        """For consecutive rows: the first row, the row after the last, and the result of `find(first, last)`.

        `find` is called with a bound of `most` bytes. If it exceeds the bound, it is called again with fewer rows. A
        single row has no bound: its answer is no larger than the queries. There is at least one piece, even without
        rows.
        """
        start = 0
        while start < n_rows or start == 0:
            end = min(start + self.n_next, n_rows)
            try:
                with bounded(self.most if end - start > 1 else UNBOUNDED):
                    found = find(start, end)
            except OverBudgetError as error:
                self.n_next = max(1, min((end - start) // 2, (end - start) * self.target // error.n_bytes))
                continue
            fitting = self.target * (end - start) // max(1, found.nbytes)
            self.n_next = max(1, min(fitting, GROWTH * self.n_next))
            yield start, end, found
            if end == n_rows:
                return
            start = end


def cut_by_bytes(n_bytes: NDArray[Any], most: int) -> list[int]:
    """Where to cut elements of these sizes, so that each part has at most `most` bytes or is a single element."""
    ends = np.cumsum(n_bytes, dtype=np.int64)
    cuts: list[int] = []
    start = done = 0
    while len(ends) and ends[-1] - done > most:
        start = max(start + 1, int(np.searchsorted(ends, done + most, side="right")))
        if start == len(ends):
            break
        cuts.append(start)
        done = int(ends[start - 1])
    return cuts
