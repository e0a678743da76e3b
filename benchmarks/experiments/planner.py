"""The planner: every index forced on every workload, and how far the planner's choice is from the best.

Indexes of the literature are also in the matrix, for comparison: the planner uses them only on request, or MLGF within
a `Dual`.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator

import numpy as np

from benchmarks.harness import Bench, experiment
from benchmarks.peers.vedette import Vedette
from benchmarks.workloads import (
    DOMAIN,
    Workload,
    boxes_around_towns,
    boxes_of_widths,
    conjunctions,
    intervals,
    keyed_ranges,
    small_boxes,
    vcr_rectangles,
)
from vedette.indexes.names import INDEXES, PAPER_INDEXES

MEDIAN, WORST = 1.1, 2.0  # of the time of the choice over the best time
LIMIT_SECONDS = 0.3  # of a run: slow indexes need not be measured exactly
WARM = 2_000  # boxes over which each index is built once before it is timed


@experiment("planner")
def planner(bench: Bench) -> None:
    """Time of the planner's choice over the best time of any index, by workload; times to build, and memory."""
    regrets = {case: _measure(bench, case, workload) for case, workload in _workloads(bench)}
    n = f"{len(regrets)} workloads"
    bench.verdict("planner", n, "the choice over the best, median", statistics.median(regrets.values()), MEDIAN)
    bench.verdict("planner", n, "the choice over the best, worst", max(regrets.values()), WORST)


class Built(Vedette):
    """A set with the planner's choice or with a forced index, and its build time."""

    def __init__(self, workload: Workload, index: str | None = None) -> None:
        start = time.perf_counter()
        super().__init__(workload, index)
        self.queries.match({field: workload.rows[axis, :1] for axis, field in enumerate(workload.fields)})
        self.build_seconds = time.perf_counter() - start
        self.bytes_a_query = self.queries.nbytes / workload.n_queries
        made = type(self.queries._compiled().compiled[0].groups[0].index)
        self.index = next(name for name, index_class in INDEXES.items() if index_class is made)
        if index in PAPER_INDEXES:
            self.note = "for comparison"  # type: ignore[misc]


def _measure(bench: Bench, case: str, workload: Workload) -> float:
    """Time the planner's choice and all other indexes that support these boxes. Returns its time over the best."""
    few = Workload(workload.name, workload.lows[:, :WARM], workload.highs[:, :WARM], workload.rows[:, :1])
    for name in INDEXES:
        Built(few, name)
    ours = Built(workload)
    forced = [Built(workload, name) for name in INDEXES if name != ours.index]
    peers = [ours, *(peer for peer in forced if peer.index == peer.name)]  # otherwise another index is used instead
    n_before = len(bench.rows)
    makes = [lambda _, peer=peer: peer for peer in peers]  # type: ignore[misc]
    bench.race("planner", case, workload, makes[0], makes[1:], limit_seconds=LIMIT_SECONDS)
    times = bench.rows[n_before:]
    for row, peer in zip(times, peers, strict=True):
        row |= {"index": peer.index, "is_chosen": peer is ours}
        row |= {"build_seconds": peer.build_seconds, "bytes_a_query": peer.bytes_a_query}
        row["contestant"] = f"Vedette: {peer.index}" if peer is ours else peer.index
    best = min(times, key=lambda row: float(row["seconds"]))
    regret = float(times[0]["seconds"] / best["seconds"])
    bench.note("planner", case, f"the choice, {ours.index}, over the best, {best['index']}", regret)
    return regret


def _workloads(bench: Bench) -> Iterator[tuple[str, Workload]]:
    """Cases from one field to twelve, with boxes few and many, narrow and wide, and with few and many matches."""
    size, n_rows = bench.size, bench.size(200_000, 10_000)
    yield "1-d, 300 narrow", intervals(300, n_rows, 1)
    yield "1-d, 300 wide", intervals(300, n_rows, 30)
    yield "1-d, 5k, 50 matches", intervals(5_000, n_rows, 50)
    yield "1-d, 100k narrow, 1 match", intervals(size(100_000, 10_000), n_rows, 1)
    yield "1-d, 100k heavy-tailed, 10 matches", intervals(size(100_000, 10_000), n_rows, 10, "pareto")
    yield "1-d, 20k heavy-tailed, 200 matches", intervals(size(20_000, 5_000), n_rows // 4, 200, "pareto")
    yield "1-d, 20k wide, a tenth matches", intervals(size(20_000, 4_000), n_rows // 20, size(2_000, 400))
    yield "1-d, 30k on 5,000 places", _round(intervals(size(30_000, 5_000), n_rows // 10, size(600, 100)), 5_000)
    yield "2-d, 500 boxes", small_boxes(500, n_rows, 5)
    yield "2-d, 32k on a grid, W = 20", vcr_rectangles(size(32_000, 4_000), n_rows, 20)
    yield "2-d, 64k on a grid, W = 40, 90-10", vcr_rectangles(size(64_000, 8_000), n_rows // 100, 40, "90-10")
    yield "2-d, 200k small", small_boxes(size(200_000, 20_000), n_rows, 5)
    yield "2-d, 50k around towns", boxes_around_towns(size(50_000, 10_000), n_rows, 20)
    yield "2-d, 20k large, 1k matches", small_boxes(size(20_000, 4_000), n_rows // 20, size(1_000, 200))
    yield "2-d, 100k, an equality and a range", keyed_ranges(size(100_000, 10_000), n_rows, 5)
    yield "2-d, 20k, an equality and a wide range", keyed_ranges(size(20_000, 10_000), n_rows // 2, 100, 50)
    yield "3 fields, 50k, one narrow", boxes_of_widths((0.0002, 0.5, 0.5), size(50_000, 10_000), n_rows // 2)
    yield "4 fields, 50k small", boxes_of_widths((0.05,) * 4, size(50_000, 5_000), n_rows // 10)
    yield "4 fields, 1k conjunctions", conjunctions(4, 1_000, n_rows // 10)
    many, batch = size(100_000, 10_000), size(10_000, 2_000)
    yield "4 fields, 100k conjunctions, a large batch", conjunctions(4, many, batch)
    yield "4 fields, 100k conjunctions, rows close together", _draw_together(conjunctions(4, many, batch))
    yield "8 fields, 50k conjunctions, a large batch", conjunctions(8, many // 2, batch)
    yield "4 fields, 10k conjunctions", conjunctions(4, size(10_000, 4_000), n_rows // 50)
    yield "8 fields, 100k conjunctions", conjunctions(8, size(100_000, 10_000), n_rows // 200)
    yield "8 fields, 20k, two narrow", boxes_of_widths((0.02, 0.02, *(0.6,) * 6), size(20_000, 5_000), n_rows // 10)
    yield "12 fields, 20k conjunctions", conjunctions(12, size(20_000, 5_000), n_rows // 100)


def _draw_together(workload: Workload) -> Workload:
    """The same with all rows within a tenth of each field's domain, which is from 0 to 1."""
    return Workload(workload.name, workload.lows, workload.highs, 0.45 + 0.1 * workload.rows)


def _round(workload: Workload, n_places: int) -> Workload:
    """The same intervals with ends at `n_places` places of the domain."""
    step = DOMAIN / n_places
    lows, highs = (np.floor(ends / step) * step for ends in (workload.lows, workload.highs))
    return Workload(workload.name, lows, highs, workload.rows)
