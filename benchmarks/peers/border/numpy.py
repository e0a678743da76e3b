"""NumPy: sorted lower ends, sorted upper ends, and each reading's place among both.

A move crosses the ends between its two places, which are adjacent. That is enough if no range is narrower than the
longest move of the batch; else a range must also contain the inner end of the move. Crossed ends are written in pieces
that stay in the cache.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.peers.border import BorderPeer, ByKey, Events
from benchmarks.workloads import Workload

PIECE = 1 << 16  # crossed ends, about


class NumpyEnds(BorderPeer):
    name = "NumPy, sorted ends"

    def __init__(self, workload: Workload) -> None:
        super().__init__(workload)
        lows, highs = workload.lows[0], workload.highs[0]
        by_low, by_high = np.argsort(lows), np.argsort(highs)
        self.lows, self.highs = lows[by_low], highs[by_high]
        self.narrowest = (highs - lows).min()
        # First all lower ends, then all upper ones: their queries, and the places of the other ends, reversed for upper
        # ends so that one comparison is enough for both.
        self.queries = np.concatenate([by_low, by_high]).astype(np.int32)
        self.others = np.concatenate([_places(by_high)[by_low], -1 - _places(by_low)[by_high]])
        self.numbers = np.arange(2 * PIECE, dtype=np.int32)

    def reset(self) -> None:
        self.last_values = self.moves.origins[0].copy()
        self.last_places = self.locate(self.last_values)

    def locate(self, values: NDArray[np.float64]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """How many lower ends are at or below each value, and how many upper ends below it."""
        return (
            np.searchsorted(self.lows, values, "right").astype(np.int32),
            np.searchsorted(self.highs, values, "left").astype(np.int32),
        )

    def step(self, batch: Any) -> Events:
        rows, keys, (values,) = batch
        by_key = ByKey(keys)
        rows, after = rows[by_key.order], values[by_key.order]
        before = by_key.before(after, self.last_values)
        is_up = after > before
        places = self.locate(after)
        (low_from, low_to), (high_from, high_to) = (
            _in_order(by_key.before(at, last), at) for at, last in zip(places, self.last_places, strict=True)
        )
        begins = np.concatenate([low_from, high_from + np.int32(len(self.lows))])
        counts = np.concatenate([low_to - low_from, high_to - high_from])
        is_exit = np.concatenate([~is_up, is_up])
        bounds = None
        if np.abs(after - before).max(initial=0) > self.narrowest:
            bounds = np.concatenate([high_to, -low_from])
        return self._write(np.concatenate([rows, rows]), begins, counts, is_exit, bounds)

    def _write(
        self,
        rows: NDArray[np.int32],
        begins: NDArray[np.int32],
        counts: NDArray[np.int32],
        is_exit: NDArray[np.bool_],
        bounds: NDArray[np.int32] | None,
    ) -> Events:
        """The runs of ends `begins[i]` to `begins[i] + counts[i]` as events."""
        ends = np.cumsum(counts, dtype=np.int64)
        total = int(ends[-1])
        found = np.empty(total, np.int32), np.empty(total, np.int32), np.empty(total, np.bool_)
        cuts = np.searchsorted(ends, np.arange(PIECE, total, PIECE))
        n = 0
        for first, last in zip([0, *cuts.tolist()], [*cuts.tolist(), len(ends)], strict=True):
            some = counts[first:last]
            base = ends[first - 1] if first else 0
            size = int(ends[last - 1] - base) if last > first else 0
            if size == 0:
                continue
            shifts = (begins[first:last] - (ends[first:last] - some - base)).astype(np.int32)
            at = np.repeat(shifts, some)
            at += self.numbers[:size] if size <= len(self.numbers) else np.arange(size, dtype=np.int32)
            piece = slice(n, n + size)
            if bounds is None:
                np.take(self.queries, at, out=found[0][piece], mode="clip")
                found[1][piece] = np.repeat(rows[first:last], some)
                found[2][piece] = np.repeat(is_exit[first:last], some)
                n += size
                continue
            kept = np.flatnonzero(self.others[at] >= np.repeat(bounds[first:last], some))
            runs = np.repeat(np.arange(first, last, dtype=np.int32), some)[kept]
            piece = slice(n, n + len(kept))
            np.take(self.queries, at[kept], out=found[0][piece], mode="clip")
            np.take(rows, runs, out=found[1][piece], mode="clip")
            np.take(is_exit, runs, out=found[2][piece], mode="clip")
            n += len(kept)
        return found[1][:n], found[0][:n], found[2][:n]


class NumpyEndsSorted(NumpyEnds):
    """The values are sorted first, so that the search is local."""

    name = "NumPy, sorted ends, values sorted first"

    def locate(self, values: NDArray[np.float64]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        order = np.argsort(values)
        located = super().locate(values[order])
        places = np.empty((2, len(values)), np.int32)
        places[:, order] = located
        return places[0], places[1]


class NumpyEndsTable(NumpyEnds):
    """The places of all integers in a table, instead of a search. Other values are not supported."""

    name = "NumPy, ends by whole number"

    def __init__(self, workload: Workload) -> None:
        super().__init__(workload)
        self.tables = super().locate(np.arange(self.highs[-1] + 2))

    def locate(self, values: NDArray[np.float64]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        numbers = np.minimum(values.astype(np.int32), len(self.tables[0]) - 1)
        return self.tables[0][numbers], self.tables[1][numbers]


def _places(order: NDArray[np.integer]) -> NDArray[np.int32]:
    """The place of each query in the order."""
    places = np.empty(len(order), np.int32)
    places[order] = np.arange(len(order), dtype=np.int32)
    return places


def _in_order(one: NDArray[np.int32], other: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    return np.minimum(one, other), np.maximum(one, other)
