"""Virtual constructs: figures 6, 7, 12 and 13 of Wu, Chen and Yu, and the same with a million queries.

The paper gives the domain of figures 6 and 7, R = 5000, but not the numbers and widths of queries; here widths are
uniform in 1 to 200. Rows lie between integers, as in section 3.1.
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
from vedette.papers.constructs.construct_intervals import LCI
from vedette.papers.constructs.construct_rectangles import VCR

R, W = 5_000, 200
SIZES = (1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000)
LARGE = 1_000_000  # queries, and their domain: today's larger setting
INTERVALS = ("LCI-BV", "LCI", "SCI", "Dlist", "CEI", "IS-list")
LENGTHS = (1, 2, 4, 8, 16, 32, 64, 128)
RECTANGLES = (8_000, 16_000, 32_000, 64_000, 128_000, 256_000)
WIDE_RECTANGLES = (8_000, 32_000, 128_000)  # with W = 40
SIDES = (1, 2, 4, 8, 16, 32)
PAPER_SIDE = {20: 8, 40: 16}  # L by W, section 3.5
PLACES = (GRID_SIDE + 2,) * 2  # the whole grid
LEAST_OVER_R_TREE, MOST_OVER_BEST = 3, 1.3
CHOSEN = "L as chosen"
TIME = "microseconds a row"

Make = Callable[[Workload], Peer]


@experiment("vci-fig6")
def vci_fig6(bench: Bench) -> None:
    """Wu, Chen and Yu, figure 6: search time of interval indexes, R = 5000, LCI by its L; and a million queries."""
    for n_queries in bench.some(SIZES):
        workload = _intervals(bench.size(n_queries, n_queries // 8), R, W, bench.size(200_000, 5_000))
        case = f"{workload.n_queries:,} queries"
        _race_intervals(bench, "vci-fig6", case, workload, **_point(workload.n_queries, f"queries, R = {R:,}"))
    n, n_rows = bench.size(LARGE, LARGE // 50), bench.size(200_000, 5_000)
    workload = _intervals(n, n, W, n_rows)
    _race_intervals(bench, "vci-fig6", f"{n:,} queries, R = {n:,}", workload)
    few = _intervals(bench.size(32_000, 4_000), R, W, n_rows)
    _sweep(bench, "vci-fig6", f"LCI, {few.n_queries:,} queries", few, "LCI", LENGTHS, f"L, {few.n_queries:,} queries")
    _sweep(bench, "vci-fig6", f"LCI, {n:,} queries, R = {n:,}", workload, "LCI", LENGTHS)


@experiment("vci-fig7")
def vci_fig7(bench: Bench) -> None:
    """Wu, Chen and Yu, figure 7: memory of interval indexes, R = 5000; and a million queries."""
    for n_queries in bench.some(SIZES):
        workload = _intervals(bench.size(n_queries, n_queries // 8), R, W, 1)
        case = f"{workload.n_queries:,} queries"
        peers = [make(workload) for make in _make_intervals()]
        _note_memory(bench, "vci-fig7", case, peers, workload, f"queries, R = {R:,}")
    n = bench.size(LARGE, LARGE // 50)
    workload = _intervals(n, n, W, 1)
    _note_memory(
        bench, "vci-fig7", f"{n:,} queries, R = {n:,}", [make(workload) for make in _make_intervals()], workload
    )


@experiment("vcr-fig12")
def vcr_fig12(bench: Bench) -> None:
    """Wu, Chen and Yu, figure 12: time and memory of VCR against its greatest side L, and the L that is chosen."""
    for max_side in PAPER_SIDE:
        workload = vcr_rectangles(bench.size(32_000, 4_000), bench.size(100_000, 4_000), max_side)
        _sweep(bench, "vcr-fig12", f"W = {max_side}", workload, "VCR", SIDES, f"L, W = {max_side}")
    for max_side in PAPER_SIDE:
        workload = vcr_rectangles(bench.size(LARGE, LARGE // 50), bench.size(1_000, 200), max_side)
        case = f"W = {max_side}, {workload.n_queries:,} queries"
        _sweep(bench, "vcr-fig12", case, workload, "VCR", SIDES[1:])  # with L = 1 a query would be in hundreds of lists


@experiment("vcr-fig13")
def vcr_fig13(bench: Bench) -> None:
    """Wu, Chen and Yu, figure 13: VCR and R-trees against the number of queries, as they overlap; and a million."""
    for max_side, sizes in ((20, (*bench.some(RECTANGLES), LARGE)), (40, bench.some(WIDE_RECTANGLES))):
        longest = PAPER_SIDE[max_side]
        makes: list[Make] = [
            _build(VCR, "VCR"),
            _build(VCR, f"VCR, L = {longest}", longest=longest, n_places=PLACES),
            _build(VCR, "VCR, overlapped decomposition", decomposition="overlapped"),
            _build(
                VCR, f"VCR, L = {longest}, overlapped", longest=longest, n_places=PLACES, decomposition="overlapped"
            ),
            *(partial(OnCells, name=name, units=True) for name in ("R-tree", "packed R-tree")),
            partial(OnCells, units=True),
        ]
        for placed in ("uniform", "90-10"):
            goals = [AtLeast(LEAST_OVER_R_TREE, "R-tree", ("R-tree",))] if placed == "90-10" else []
            for n_queries in sizes:
                # Few rows if each is in thousands of rectangles.
                n_rows = bench.size(20_000 if placed == "uniform" and n_queries < LARGE else 1_000, 250)
                workload = vcr_rectangles(bench.size(n_queries, n_queries // 20), n_rows, max_side, placed)
                under, over = ("", "") if max_side == 20 else (f"W = {max_side}, ", f", W = {max_side}")
                case = f"{under}{placed}, {workload.n_queries:,} queries"
                x_name = f"queries, {placed}{over}" if n_queries < LARGE else ""
                point = _point(workload.n_queries, x_name) if x_name else {}
                peers = [make(workload) for make in makes]
                _race(bench, "vcr-fig13", case, workload, peers, goals, **point)
                _note_memory(bench, "vcr-fig13", case, peers, workload, x_name)
                for peer in peers:
                    if peer.name.startswith(
                        f"VCR, L = {longest}"
                    ):  # section 3.3: fewer by the overlapped decomposition
                        n_used = int(np.count_nonzero(peer.index.sizes))
                        bench.note("vcr-fig13", case, f"construct rectangles in use, {peer.name}", n_used)


def _intervals(n_queries: int, domain: int, max_width: int, n_rows: int, seed: int = 33) -> Workload:
    """Intervals of uniform widths between integers, and rows that are not integers."""
    random = np.random.default_rng(seed)
    lows = random.integers(0, domain - 1, n_queries)
    highs = np.minimum(lows + random.integers(1, max_width + 1, n_queries), domain - 1)
    rows = random.uniform(0, domain - 1, n_rows)
    return Workload("integers", lows[None, :].astype(float), highs[None, :].astype(float), rows[None, :])


def _make_intervals() -> list[Make]:
    return [partial(OnCells, name=name, units=True) for name in INTERVALS] + [partial(OnCells, units=True)]


def _race_intervals(bench: Bench, target: str, case: str, workload: Workload, **point: Any) -> None:
    _race(bench, target, case, workload, [make(workload) for make in _make_intervals()], **point)


def _race(
    bench: Bench,
    target: str,
    case: str,
    workload: Workload,
    peers: Sequence[Peer],
    goals: Sequence[AtLeast] = (),
    **point: Any,
) -> dict[str, float]:
    """Race contestants that are already built; the first is ours. Returns their seconds."""
    ours, *others = [lambda _, peer=peer: peer for peer in peers]  # type: ignore[misc]
    n_before = len(bench.rows)
    bench.race(target, case, workload, ours, others, goals, **point)
    return {row["contestant"]: row["seconds"] for row in bench.rows[n_before:] if row["kind"] == "time"}


def _sweep(
    bench: Bench, target: str, case: str, workload: Workload, name: str, lengths: Sequence[int], x_name: str = ""
) -> None:
    """Race indexes with every L and one with the chosen L, which is judged by time times memory."""
    kind = {"LCI": LCI, "VCR": VCR}[name]
    places = PLACES if kind is VCR else None
    makes = [_build(kind, CHOSEN)]
    makes += [_build(kind, f"L = {longest}", longest=longest, n_places=places) for longest in bench.some(lengths)]
    peers = [make(workload) for make in makes]
    seconds = _race(bench, target, case, workload, peers)
    products = {}
    for peer in peers:
        size, longest = peer.index.nbytes, int(peer.index.longest)
        products[peer.name] = seconds[peer.name] * size
        point: dict[str, Any] = {"x": longest, "x_name": x_name} if x_name else {}
        point["contestant"] = f"{name}, {CHOSEN}" if peer.name == CHOSEN else name
        for measure, value in ((TIME, 1e6 * seconds[peer.name] / workload.n_rows), ("MB", size / 1e6)):
            bench.note(target, case, f"{measure}, {peer.name}", value, y_name=measure, **point)
    chosen = products.pop(CHOSEN)
    best = min(products, key=lambda each: products[each])
    measure = f"time times memory with the L that is chosen, {peers[0].index.longest}, over the best ({best})"
    bench.verdict(target, case, measure, chosen / products[best], MOST_OVER_BEST)


def _point(x: float, x_name: str) -> dict[str, Any]:
    return {"x": x, "x_name": x_name, "y_name": TIME}


def _build(kind: type[LCI | VCR], shown: str, **options: Any) -> Callable[[Workload], OnCells]:
    return partial(OnCells, build=partial(kind.build, **options), units=True, shown=shown)


def _note_memory(
    bench: Bench, target: str, case: str, peers: Sequence[Peer], workload: Workload, x_name: str = ""
) -> None:
    for peer in peers:
        assert isinstance(peer, OnCells)
        point: dict[str, Any] = {"x": workload.n_queries, "x_name": x_name, "y_name": "MB"} if x_name else {}
        bench.note(target, case, f"MB, {peer.name}", peer.index.nbytes / 1e6, contestant=peer.name, **point)
