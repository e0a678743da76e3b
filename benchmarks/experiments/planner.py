"""The planner: every index forced on every workload, and how far the planner's choice is from the best."""

from __future__ import annotations

from functools import partial

from benchmarks.harness import Bench, experiment
from benchmarks.peers.vedette import Vedette
from benchmarks.workloads import Workload, conjunctions, intervals, keyed_ranges, small_boxes, vcr_rectangles
from vedette.indexes import INDEXES


@experiment("planner")
def planner(bench: Bench) -> None:
    """Time of the planner's choice over the best time of any index, by workload."""
    for case, workload in _workloads(bench).items():
        forced = [partial(Vedette, index=name) for name in INDEXES if _can(name, workload)]
        bench.race("planner", case, workload, Vedette, forced)
        seconds = {
            row["contestant"]: row["seconds"] for row in bench.rows if row["kind"] == "time" and row["case"] == case
        }
        best = min(seconds, key=lambda name: seconds[name])
        bench.note("planner", case, f"the choice over the best ({best})", seconds[Vedette.name] / seconds[best])


def _can(name: str, workload: Workload) -> bool:
    """Whether the index, forced, answers for these boxes itself; where it cannot, the planner's choice would."""
    small = Workload(workload.name, workload.lows[:, :2000], workload.highs[:, :2000], workload.rows[:, :1])
    return name in Vedette(small, index=name).queries.explain()


def _workloads(bench: Bench) -> dict[str, Workload]:
    n_rows = bench.size(200_000, 20_000)
    return {
        "300 intervals": intervals(300, n_rows, 1),
        "1-d, 100k, 1 match": intervals(bench.size(100_000, 20_000), n_rows, 1),
        "1-d, 100k, 10 matches, heavy-tailed": intervals(bench.size(100_000, 20_000), n_rows, 10, "pareto"),
        "1-d, 20k, a tenth matches": intervals(bench.size(20_000, 5_000), n_rows // 20, bench.size(2_000, 500)),
        "2-d, 32k rectangles, W = 20": vcr_rectangles(bench.size(32_000, 8_000), n_rows, 20),
        "2-d, 256k rectangles, W = 40, 90-10": vcr_rectangles(bench.size(256_000, 32_000), n_rows // 20, 40, "90-10"),
        "2-d, 200k small boxes": small_boxes(bench.size(200_000, 50_000), n_rows, 5),
        "2-d, 100k, an equality and a range": keyed_ranges(bench.size(100_000, 20_000), n_rows, 5),
        "4 attributes, 10k conjunctions": conjunctions(4, bench.size(10_000, 5_000), n_rows // 50),
        "8 attributes, 100k conjunctions": conjunctions(8, bench.size(100_000, 20_000), n_rows // 200),
    }
