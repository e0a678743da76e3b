"""Virtual constructs: figures 6, 7, 12 and 13 of Wu, Chen and Yu, and the same with a million queries.

The report gives the domain of figures 6 and 7, R = 5000, and not the numbers and widths of queries; here widths are
uniform in 1 to 200. Rows lie between the whole numbers, as in section 3.1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from benchmarks.harness import AtLeast, Bench, experiment
from benchmarks.peers import Peer
from benchmarks.peers.on_cells import OnCells
from benchmarks.workloads import GRID_SIDE, Workload, vcr_rectangles
from vedette.indexes import VCR

R, W = 5_000, 200
SIZES = (1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000)
LARGE = 1_000_000  # queries, and their domain: the setting of today
INTERVALS = ("LCI-BV", "LCI", "SCI", "Dlist", "CEI", "IS-list")
RECTANGLES = (8_000, 16_000, 32_000, 64_000, 128_000, 256_000)
SIDES = (1, 2, 4, 8, 16, 32)
PAPER_SIDE = {20: 8, 40: 16}  # L by W, section 3.5
LEAST_OVER_R_TREE, MOST_OVER_BEST = 3, 1.3
TIME = "microseconds a row"

Make = Callable[[Workload], Peer]


@experiment("vci-fig6")
def vci_fig6(bench: Bench) -> None:
    """Wu, Chen and Yu, figure 6: search time of interval indexes, R = 5000; and a million queries."""
    for n_queries in SIZES:
        workload = _intervals(bench.size(n_queries, n_queries // 8), R, W, bench.size(200_000, 5_000))
        case = f"{workload.n_queries:,} queries"
        _race_intervals(bench, "vci-fig6", case, workload, **_point(workload.n_queries, f"queries, R = {R:,}"))
    n = bench.size(LARGE, LARGE // 50)
    _race_intervals(bench, "vci-fig6", f"{n:,} queries, R = {n:,}", _intervals(n, n, W, bench.size(200_000, 5_000)))


@experiment("vci-fig7")
def vci_fig7(bench: Bench) -> None:
    """Wu, Chen and Yu, figure 7: memory of interval indexes, R = 5000; and a million queries."""
    for n_queries in SIZES:
        workload = _intervals(bench.size(n_queries, n_queries // 8), R, W, 1)
        case = f"{workload.n_queries:,} queries"
        _note_memory(bench, "vci-fig7", case, _make_intervals(), workload, f"queries, R = {R:,}")
    n = bench.size(LARGE, LARGE // 50)
    _note_memory(bench, "vci-fig7", f"{n:,} queries, R = {n:,}", _make_intervals(), _intervals(n, n, W, 1))


@experiment("vcr-fig12")
def vcr_fig12(bench: Bench) -> None:
    """Wu, Chen and Yu, figure 12: time and memory of VCR against the greatest side L, and the L that is chosen."""
    for max_side in PAPER_SIDE:
        workload = vcr_rectangles(bench.size(32_000, 4_000), bench.size(100_000, 4_000), max_side)
        case = f"W = {max_side}"
        makes = [_vcr(longest=longest, n_places=(GRID_SIDE + 2,) * 2, shown=f"L = {longest}") for longest in SIDES]
        ours = bench.race("vcr-fig12", case, workload, _vcr(shown="L as chosen"), makes)
        assert isinstance(ours, OnCells)
        products = {}
        for make in (_vcr(shown="L as chosen"), *makes):
            peer = make(workload)
            seconds = next(row["seconds"] for row in bench.rows if _is_time(row, case, peer.name))
            products[peer.name] = seconds * peer.index.nbytes
            point: dict[str, Any] = {"x": int(peer.index.longest), "x_name": f"L, W = {max_side}"}
            point["contestant"] = "VCR, L as chosen" if peer.name == "L as chosen" else "VCR"
            values = {TIME: 1e6 * seconds / workload.n_rows, "MB": peer.index.nbytes / 1e6}
            for measure, value in values.items():
                bench.note("vcr-fig12", case, f"{measure}, {peer.name}", value, y_name=measure, **point)
        chosen = products.pop("L as chosen")
        best = min(products, key=lambda name: products[name])
        measure = f"time times memory with the L that is chosen, {ours.index.longest}, over the best ({best})"
        bench.verdict("vcr-fig12", case, measure, chosen / products[best], MOST_OVER_BEST)


@experiment("vcr-fig13")
def vcr_fig13(bench: Bench) -> None:
    """Wu, Chen and Yu, figure 13: VCR and R-trees against the number of queries, as they overlap; and a million."""
    max_side = 20
    longest = PAPER_SIDE[max_side]
    paper = _vcr(longest=longest, n_places=(GRID_SIDE + 2,) * 2, shown=f"VCR, L = {longest}")
    overlapped = _vcr(shown="VCR, overlapped decomposition", decomposition="overlapped")
    trees = [partial(OnCells, name=name, units=True) for name in ("R-tree", "packed R-tree")]
    others: list[Make] = [paper, overlapped, *trees, partial(OnCells, units=True)]
    for placed in ("uniform", "90-10"):
        goals = [AtLeast(LEAST_OVER_R_TREE, "R-tree", ("R-tree",))] if placed == "90-10" else []
        for n_queries in (*RECTANGLES, LARGE):
            n_rows = bench.size(20_000 if n_queries < LARGE else 2_000, 500)
            workload = vcr_rectangles(bench.size(n_queries, n_queries // 20), n_rows, max_side, placed)
            case = f"{placed}, {workload.n_queries:,} queries"
            x_name = f"queries, {placed}"
            point = _point(workload.n_queries, x_name) if n_queries < LARGE else {}
            bench.race("vcr-fig13", case, workload, _vcr(shown="VCR"), others, goals, **point)
            _note_memory(bench, "vcr-fig13", case, [_vcr(shown="VCR"), *others], workload, x_name if point else "")


def _intervals(n_queries: int, domain: int, max_width: int, n_rows: int, seed: int = 33) -> Workload:
    """Intervals of uniform widths between whole numbers, and rows that are none."""
    random = np.random.default_rng(seed)
    lows = random.integers(0, domain - 1, n_queries)
    highs = np.minimum(lows + random.integers(1, max_width + 1, n_queries), domain - 1)
    rows = random.uniform(0, domain - 1, n_rows)
    return Workload("integers", lows[None, :].astype(float), highs[None, :].astype(float), rows[None, :])


def _make_intervals() -> list[Make]:
    return [partial(OnCells, name=name, units=True) for name in INTERVALS] + [partial(OnCells, units=True)]


def _race_intervals(bench: Bench, target: str, case: str, workload: Workload, **point: Any) -> None:
    ours, *others = _make_intervals()
    bench.race(target, case, workload, ours, others, **point)


def _point(x: float, x_name: str) -> dict[str, Any]:
    return {"x": x, "x_name": x_name, "y_name": TIME}


def _vcr(shown: str, **options: Any) -> Make:
    return partial(OnCells, build=partial(VCR.build, **options), units=True, shown=shown)


def _is_time(row: dict[str, Any], case: str, contestant: str) -> bool:
    return row["kind"] == "time" and row["case"] == case and row["contestant"] == contestant


def _note_memory(
    bench: Bench, target: str, case: str, makes: Sequence[Make], workload: Workload, x_name: str = ""
) -> None:
    for make in makes:
        peer = make(workload)
        assert isinstance(peer, OnCells)
        point: dict[str, Any] = {"x": workload.n_queries, "x_name": x_name, "y_name": "MB"} if x_name else {}
        bench.note(target, case, f"MB, {peer.name}", peer.index.nbytes / 1e6, contestant=peer.name, **point)
