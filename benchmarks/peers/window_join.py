"""Window joins: queries over the last rows of two streams, and the rows that arrive in each step.

A peer is built over the queries and the windows. `run` is timed. It finds the pairs of the next rows, first those of
the left stream, then those of the right. Its result is in the peer's own form; `answer` converts it to columns outside
the timing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from benchmarks.answers import Answer, Digest

STREAMS = ("left", "right")
OPS = {">": np.greater, ">=": np.greater_equal, "=": np.equal, "<": np.less, "<=": np.less_equal}
Columns = tuple[NDArray[np.integer], NDArray[np.integer], NDArray[np.integer]]  # the query, and the row of each stream
_STEPS = 16  # of rows; then they are repeated


@dataclass(frozen=True)
class WindowWorkload:
    """Queries select inclusive ranges of the first attributes of both streams, and compare one attribute of each.

    They compare by an operator or by a band of the difference; the other one is None.
    """

    window: int
    rows: NDArray[np.float64]  # (streams, attributes, rows); the first `window` are in the windows from the start
    lows: NDArray[np.float64]  # (streams, attributes, queries)
    highs: NDArray[np.float64]
    joined: int  # the attribute
    ops: list[str] | None
    bands: NDArray[np.float64] | None  # (2, queries)

    @property
    def n_queries(self) -> int:
        return self.lows.shape[2]

    def take(self, stream: int, start: int, end: int) -> NDArray[np.float64]:
        """Rows of a stream by number; after the last it starts again with the first."""
        return self.rows[stream][:, np.arange(start, end) % self.rows.shape[2]]

    def texts(self) -> list[str]:
        parts = []
        for stream, name in enumerate(STREAMS):
            for attribute in range(self.lows.shape[1]):
                ends = self.lows[stream, attribute].tolist(), self.highs[stream, attribute].tolist()
                parts.append([f"{name}.x{attribute} BETWEEN {a!r} AND {b!r}" for a, b in zip(*ends, strict=True)])
        field = f"x{self.joined}"
        if self.bands is None:
            parts.append([f"left.{field} {op} right.{field}" for op in self.ops or []])
        else:
            shown = f"left.{field} - right.{field}"
            parts.append([f"{shown} BETWEEN {a!r} AND {b!r}" for a, b in self.bands.T.tolist()])
        return [" AND ".join(each) for each in zip(*parts, strict=True)]


def range_joins(
    n_queries: int, window: int, n_new: int, width: float, band: float | None, seed: int = 31
) -> WindowWorkload:
    """Ranges of one width on one field of both streams, and a comparison, or a band of one width, on another."""
    random = np.random.default_rng(seed)
    rows = random.random((2, 2, window + _STEPS * n_new))
    lows = random.random((2, 1, n_queries)) * (1 - width)
    begins = random.random(n_queries) - 0.5
    bands = None if band is None else np.stack([begins, begins + band])
    return WindowWorkload(window, rows, lows, lows + width, 1, None if bands is not None else ["<"] * n_queries, bands)


def random_joins(n_queries: int, window: int, n_new: int, n_attributes: int, seed: int = 32) -> WindowWorkload:
    """The joins of Lim et al., section 7.1: on each attribute an interval, open to the left, to the right, or closed.

    Values are uniform in [0, 1], so that 0 and 1 are the ends of open intervals.
    """
    random = np.random.default_rng(seed)
    rows = random.random((2, n_attributes, window + _STEPS * n_new))
    ends = np.sort(random.random((2, 2, n_attributes, n_queries)), axis=0)
    kinds = random.integers(0, 3, ends.shape[1:])
    lows, highs = np.where(kinds == 0, 0.0, ends[0]), np.where(kinds == 1, 1.0, ends[1])
    ops = [list(OPS)[place] for place in random.integers(0, len(OPS), n_queries)]
    return WindowWorkload(window, rows, lows, highs, 0, ops, None)


class WindowPeer(ABC):
    """One tool in one formulation. `note` is shown in the table."""

    name: ClassVar[str]
    note: ClassVar[str] = ""

    def __init__(self, workload: WindowWorkload, n_new: int) -> None:
        self.workload = workload
        self.n_new = n_new  # rows of each stream in a step
        self.position = workload.window  # the number of the next row of each stream

    def prepare(self) -> None:  # noqa: B027  most are always ready
        """Prepare the next step; not timed."""

    @abstractmethod
    def run(self) -> Any:
        """The timed part: the pairs of the next rows."""

    @abstractmethod
    def answer(self, result: Any) -> Columns:
        """The result of `run` as columns."""

    def digest(self, result: Any) -> Digest:
        return digest_columns(self.answer(result))

    def close(self) -> None:  # noqa: B027  most have nothing to free
        """Free the resources of the peer."""


def digest_columns(columns: Columns) -> Digest:
    """The digest of pairs of rows, each as one number."""
    queries, lefts, rights = (np.asarray(column, np.int64) for column in columns)
    return Answer(queries, lefts << 32 | rights).digest((1 << 63) - 1)


def brute_force(workload: WindowWorkload, position: int, n_new: int) -> Columns:
    """The pairs of a step, by comparing each new row with the whole window under each query."""
    found: list[Columns] = []
    for stream in range(2):
        end = position + n_new * stream  # right rows come after all left ones of the step
        start = end - workload.window
        rows = workload.take(1 - stream, start, end)
        for number in range(position, position + n_new):
            queries, places = _find(workload, stream, workload.take(stream, number, number + 1), rows)
            own, others = np.full(len(queries), number), start + places
            found.append((queries, own, others) if stream == 0 else (queries, others, own))
    queries, lefts, rights = (np.concatenate(each) for each in zip(*found, strict=True))
    return queries, lefts, rights


def _find(workload: WindowWorkload, stream: int, new: Any, rows: Any) -> tuple[Any, Any]:
    """The queries by which a new row joins, and the rows of the other stream that it joins with."""
    lows, highs = workload.lows, workload.highs
    n_selected = lows.shape[1]
    own = (lows[stream] <= new[:n_selected]) & (new[:n_selected] <= highs[stream])
    queries = np.flatnonzero(own.all(axis=0))
    keep = np.ones((len(queries), rows.shape[1]), np.bool_)
    for attribute in range(n_selected):
        low, high = (ends[1 - stream, attribute, queries][:, None] for ends in (lows, highs))
        keep &= (low <= rows[attribute]) & (rows[attribute] <= high)
    first, second = new[workload.joined], rows[workload.joined]
    if stream:
        first, second = second, first
    if workload.bands is not None:
        low, high = (ends[queries][:, None] for ends in workload.bands)
        keep &= (low <= first - second) & (first - second <= high)
    else:
        ops = np.array(workload.ops)[queries]
        for op, compare in OPS.items():
            keep[ops == op] &= compare(first, second)
    places, found = np.nonzero(keep)
    return queries[places], found
