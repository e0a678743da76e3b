"""Vedette itself, with the same output as the other contestants: lists of queries per row, or pairs of both columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

import vedette as vd
from benchmarks.answers import Answer
from benchmarks.peers import Peer
from benchmarks.workloads import Workload


class Vedette(Peer):
    name = "Vedette"

    def __init__(self, workload: Workload, index: str | None = None) -> None:
        super().__init__(workload)
        if index is not None:
            self.name = index  # type: ignore[misc]
        schema = ", ".join(f"{field} double" for field in workload.fields)
        self.queries = vd.QuerySet(schema) if index is None else vd.QuerySet(schema, index=index)
        self.queries.add_boxes(np.arange(workload.n_queries), boxes(workload), closed="both")

    def load(self, rows: Workload) -> None:
        self.rows = pa.table({field: pa.array(rows.rows[axis]) for axis, field in enumerate(rows.fields)})

    def match(self) -> Any:
        return self.queries.match(self.rows)

    def answer(self, result: Any) -> Answer:
        return Answer(result.positions, starts=result.starts)


class VedettePairs(Vedette):
    name = "Vedette, pairs"

    def match(self) -> Any:
        hits = self.queries.match(self.rows)
        return hits.rows, hits.positions

    def answer(self, result: Any) -> Answer:
        rows, positions = result
        return Answer(positions, rows)


def boxes(workload: Workload) -> dict[str, tuple[Any, Any]]:
    """The workload's boxes as arguments of `add_boxes`."""
    return {field: (workload.lows[axis], workload.highs[axis]) for axis, field in enumerate(workload.fields)}
