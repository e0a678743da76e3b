"""Polars: `join_where` of moves with the ranges whose lower or whose upper end they cross.

Lazy, both joins in one query. The third condition, that the range contains the inner end of the move, is omitted if no
range is narrower than the longest move of the batch. Moves are paired by NumPy: `shift().over()` takes longer.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from benchmarks.peers.border import BorderPeer, ByKey, Events
from benchmarks.workloads import Workload


class PolarsCrossed(BorderPeer):
    name = "Polars"
    engine: Any = "in-memory"

    def __init__(self, workload: Workload) -> None:
        super().__init__(workload)
        lows, highs = workload.lows[0], workload.highs[0]
        self.narrowest = (highs - lows).min()
        numbers = np.arange(workload.n_queries, dtype=np.int32)
        self.ranges = pl.DataFrame({"query": numbers, "low": lows, "high": highs}).lazy()

    def reset(self) -> None:
        self.last_values = self.moves.origins[0].copy()

    def step(self, batch: Any) -> pl.DataFrame:
        rows, keys, (values,) = batch
        by_key = ByKey(keys)
        after = values[by_key.order]
        before = by_key.before(after, self.last_values)
        low, high, is_up = np.minimum(before, after), np.maximum(before, after), after > before
        moves = pl.DataFrame({"row": rows[by_key.order], "from": low, "to": high, "up": is_up}).lazy()
        lower = [pl.col("low") > pl.col("from"), pl.col("low") <= pl.col("to")]
        upper = [pl.col("high") >= pl.col("from"), pl.col("high") < pl.col("to")]
        if (high - low).max(initial=0) > self.narrowest:
            lower.append(pl.col("high") >= pl.col("to"))
            upper.append(pl.col("low") <= pl.col("from"))
        crossed = [
            moves.join_where(self.ranges, *lower).select("row", "query", exit=~pl.col("up")),
            moves.join_where(self.ranges, *upper).select("row", "query", exit=pl.col("up")),
        ]
        return pl.concat(crossed).collect(engine=self.engine)

    def events(self, batch: Any, result: pl.DataFrame) -> Events:
        return result["row"].to_numpy(), result["query"].to_numpy(), result["exit"].to_numpy()


class PolarsCrossedStreaming(PolarsCrossed):
    name = "Polars, streaming engine"
    engine = "streaming"
