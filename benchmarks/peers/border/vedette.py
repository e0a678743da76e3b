"""Vedette itself: `QuerySet.border`, a table of readings in and a table of events out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

import vedette as vd
from benchmarks.peers.border import BorderPeer, Events
from benchmarks.peers.vedette import boxes
from benchmarks.workloads import Moves, Workload
from vedette.operators.border.finder import BorderFinder


class VedetteBorder(BorderPeer):
    name = "Vedette"

    def __init__(self, workload: Workload) -> None:
        super().__init__(workload)
        self.queries = vd.QuerySet(", ".join(f"{field} double" for field in workload.fields))
        self.queries.add_boxes(np.arange(workload.n_queries), boxes(workload), closed="both")

    def cut(self, moves: Moves) -> Iterator[pa.Table]:
        for part in moves.batches():
            yield _table(moves, moves.keys[part], np.arange(part.start, part.stop), moves.rows[:, part])

    def reset(self) -> None:
        self.monitor = self.queries.border(key="key", time="ts")
        keys = np.arange(self.moves.n_keys)
        self.monitor.step(_table(self.moves, keys, np.full(len(keys), -1), self.moves.origins))

    def step(self, batch: pa.Table) -> pa.Table:
        return self.monitor.step(batch)

    def events(self, batch: pa.Table, result: pa.Table) -> Events:
        is_exit = pc.equal(result["event"].cast(pa.string()), "exit")
        queries = result["query"].cast(pa.int64())
        return tuple(column.to_numpy() for column in (result["time"], queries, is_exit))  # type: ignore[return-value]


class VedetteCompared(VedetteBorder):
    """The same, but always matching both readings of every move: DiffRMQ in our own operator."""

    name = "Vedette, always comparing"

    def reset(self) -> None:
        super().reset()  # steps once, which creates the boundaries of all parts
        for borders in self.queries.shared(BorderFinder)._borders.values():
            borders.follows = False


def _table(moves: Moves, keys: NDArray[Any], times: NDArray[np.int64], values: NDArray[np.float64]) -> pa.Table:
    """Readings as rows; the time of a reading is its number."""
    columns = {field: pa.array(np.ascontiguousarray(values[axis])) for axis, field in enumerate(moves.fields)}
    return pa.table({"key": pa.array(keys.astype(np.int64)), "ts": pa.array(times)} | columns)
