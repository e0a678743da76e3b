"""ncls: nested containment lists in C, searched for the ends that a move crosses, or for the ranges before and after.

The first has two lists of ends, each a range of one integer, and finds those that a move overlaps. A range must then
also contain the inner end of the move, unless no range is narrower than the longest move of the batch. The second finds
all ranges at both readings and drops those in both by an anti-join of Polars.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from ncls import NCLS
from numpy.typing import NDArray

from benchmarks.peers.border import BorderPeer, ByKey, Events
from benchmarks.workloads import Workload

PIECE = 10_000  # moves searched at once: the result stays in the cache


class Ncls(BorderPeer):
    def __init__(self, workload: Workload) -> None:
        super().__init__(workload)
        self.lows, self.highs = workload.lows[0].astype(np.int64), workload.highs[0].astype(np.int64)
        self.numbers = np.arange(workload.n_queries)

    def reset(self) -> None:
        self.last_values = self.moves.origins[0].astype(np.int64)

    def step(self, batch: Any) -> Events:
        rows, keys, (values,) = batch
        by_key = ByKey(keys)
        after = values[by_key.order].astype(np.int64)
        return self.cross(rows[by_key.order], by_key.before(after, self.last_values), after)

    def cross(self, rows: NDArray[np.int32], before: NDArray[np.int64], after: NDArray[np.int64]) -> Events:
        raise NotImplementedError


class NclsCrossed(Ncls):
    name = "ncls, crossed ends"

    def __init__(self, workload: Workload) -> None:
        super().__init__(workload)
        self.narrowest = (self.highs - self.lows).min()
        self.lower, self.upper = (NCLS(ends, ends + 1, self.numbers) for ends in (self.lows, self.highs))

    def cross(self, rows: NDArray[np.int32], before: NDArray[np.int64], after: NDArray[np.int64]) -> Events:
        moved = np.flatnonzero(before != after)
        rows, before, after = rows[moved], before[moved], after[moved]
        pieces = [slice(start, start + PIECE) for start in range(0, max(1, len(rows)), PIECE)]
        found = [self._cross(rows[piece], before[piece], after[piece]) for piece in pieces]
        return tuple(np.concatenate(column) for column in zip(*found, strict=True))  # type: ignore[return-value]

    def _cross(self, rows: NDArray[np.int32], before: NDArray[np.int64], after: NDArray[np.int64]) -> Events:
        low, high, is_up = np.minimum(before, after), np.maximum(before, after), after > before
        moves = np.arange(len(rows))
        at_lower, into = self.lower.all_overlaps_both(low + 1, high + 1, moves)
        at_upper, out_of = self.upper.all_overlaps_both(low, high, moves)
        if (high - low).max(initial=0) > self.narrowest:
            kept = self.highs[into] >= high[at_lower]
            at_lower, into = at_lower[kept], into[kept]
            kept = self.lows[out_of] <= low[at_upper]
            at_upper, out_of = at_upper[kept], out_of[kept]
        is_exit = np.concatenate([~is_up[at_lower], is_up[at_upper]])
        return rows[np.concatenate([at_lower, at_upper])], np.concatenate([into, out_of]), is_exit


class NclsCompared(Ncls):
    name = "ncls, matches compared"

    def __init__(self, workload: Workload) -> None:
        super().__init__(workload)
        self.lists = NCLS(self.lows, self.highs + 1, self.numbers)

    def cross(self, rows: NDArray[np.int32], before: NDArray[np.int64], after: NDArray[np.int64]) -> Events:
        moves = np.arange(len(rows))
        left, entered = (
            pl.DataFrame(dict(zip(("move", "query"), self.lists.all_overlaps_both(at, at + 1, moves), strict=True)))
            for at in (before, after)
        )
        entered, left = (
            entered.join(left, on=["move", "query"], how="anti"),
            left.join(entered, on=["move", "query"], how="anti"),
        )
        is_exit = np.repeat([False, True], [len(entered), len(left)])
        events = pl.concat([entered, left])
        return rows[events["move"].to_numpy()], events["query"].to_numpy(), is_exit
