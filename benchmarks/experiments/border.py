"""Border monitoring: the figures of Lee et al., section 5, and events end to end compared with other tools."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks.harness import AtLeast, Bench, experiment
from benchmarks.peers.border import ncls, numpy, polars
from benchmarks.peers.border.cells import Bmq, BmqOnAxes, CellPeer, DiffRmqOnCells
from benchmarks.peers.border.diff_rmq import DiffRmq
from benchmarks.peers.border.vedette import VedetteBorder, VedetteCompared
from benchmarks.workloads import Moves, Workload, moving_keys, price_streams
from vedette.papers.border.containment_grid import CEI

N, W, FL = 100_000, 0.1, 0.01  # queries; width and average step in percent of the domain
PERCENTS = (0.01, 0.025, 0.05, 0.075, 0.1)
SIZES = (10_000, 25_000, 50_000, 75_000, 100_000)
LARGE, FEW_READINGS = 1_000_000, 10  # queries, and readings of a stream: today's larger setting
STEPS_OVER_WIDTH = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
WIDE = 10  # percent of the domain, on each of many axes: so that a reading is in some of 100k boxes of three axes, too
N_NAME, W_NAME, FL_NAME = "queries", "width of queries, % of the domain", "fluctuation level, % of the domain"
RIVALS = [partial(DiffRmqOnCells, index=name) for name in ("IS-list", "CEI", None)]

PEERS = [
    numpy.NumpyEnds,
    numpy.NumpyEndsSorted,
    numpy.NumpyEndsTable,
    polars.PolarsCrossed,
    polars.PolarsCrossedStreaming,
    ncls.NclsCrossed,
    ncls.NclsCompared,
    DiffRmq,
]


@experiment("bmq-fig6")
def bmq_fig6(bench: Bench) -> None:
    """Lee et al., figure 6: search efficiency and time against the number of queries."""
    for n in bench.some(SIZES):
        workload = _prices(bench, n=n)
        case = f"N = {workload.n_queries:,}"
        _race_figure(bench, "bmq-fig6", case, workload, workload.n_queries, N_NAME, is_below=True)
    large = _prices(bench, n=LARGE, n_readings=FEW_READINGS)
    _race_figure(bench, "bmq-fig6", f"N = {large.n_queries:,}", large, is_below=True)


@experiment("bmq-fig7")
def bmq_fig7(bench: Bench) -> None:
    """Lee et al., figure 7: search efficiency and time against the width of queries."""
    for width in bench.some(PERCENTS):
        case = f"W = {width:g}%"
        _race_figure(bench, "bmq-fig7", case, _prices(bench, width=width), width, W_NAME, is_below=width > FL)
    for width in (PERCENTS[0], PERCENTS[2]):
        large = _prices(bench, n=LARGE, width=width, n_readings=FEW_READINGS)
        _race_figure(bench, "bmq-fig7", f"W = {width:g}%, N = {large.n_queries:,}", large, is_below=width > FL)


@experiment("bmq-fig8")
def bmq_fig8(bench: Bench) -> None:
    """Lee et al., figure 8: search efficiency and time against the fluctuation level."""
    for step in bench.some(PERCENTS):
        case = f"FL = {step:g}%"
        _race_figure(bench, "bmq-fig8", case, _prices(bench, step=step), step, FL_NAME, is_below=step < W)
    for step in (PERCENTS[2], PERCENTS[-1]):
        large = _prices(bench, n=LARGE, step=step, n_readings=FEW_READINGS)
        _race_figure(bench, "bmq-fig8", f"FL = {step:g}%, N = {large.n_queries:,}", large, is_below=step < W)


@experiment("bmq-fig9")
def bmq_fig9(bench: Bench) -> None:
    """Lee et al., figure 9: memory of the index against the number and the width of queries."""
    for n in bench.some(SIZES):
        workload = _prices(bench, n=n, n_readings=1)
        _note_memory(bench, f"N = {workload.n_queries:,}", workload, workload.n_queries, N_NAME)
    for width in bench.some(PERCENTS):
        _note_memory(bench, f"W = {width:g}%", _prices(bench, width=width, n_readings=1), width, W_NAME)
    large = _prices(bench, n=LARGE, n_readings=1)
    _note_memory(bench, f"N = {large.n_queries:,}", large)


@experiment("bmq-axes")
def bmq_axes(bench: Bench) -> None:
    """Lee et al., section 4: RS lists on one to three axes, and DiffRMQ, against FL over W; and a million queries."""
    for n_axes in (1, 2, 3):
        for ratio in bench.some(STEPS_OVER_WIDTH):
            _race_axes(bench, n_axes, ratio, N, FEW_READINGS, is_drawn=True)
    for n_axes in (2, 3):
        for ratio in (STEPS_OVER_WIDTH[0], STEPS_OVER_WIDTH[3]):
            _race_axes(bench, n_axes, ratio, LARGE, 1)


@experiment("border-1d")
def border_1d(bench: Bench) -> None:
    """Events of 2,000 prices (random walks) over 100k ranges, in micro-batches, against other tools and DiffRMQ."""
    for step in (0.01, 0.03, 0.1):
        for width in (0.01, 0.03, 0.1):
            goals = [AtLeast(5, "the best of NumPy, Polars, ncls", ("NumPy", "Polars", "ncls"))]
            if step <= 1.001 * width / 10:
                goals.append(AtLeast(5, "DiffRMQ", ("DiffRMQ",)))
            elif step < width:
                goals.append(AtLeast(1, "DiffRMQ", ("DiffRMQ",)))
            case = f"FL = {step:g}%, W = {width:g}%"
            bench.race("border-1d", case, _prices(bench, width=width, step=step), VedetteBorder, PEERS, goals)


@experiment("border-2d")
def border_2d(bench: Bench) -> None:
    """Events of 100k keys (random walks) over a million boxes, in small and large steps, against DiffRMQ."""
    n_queries, n_keys = bench.size(1_000_000, 50_000), bench.size(100_000, 5_000)
    for kind, steps in (("small steps, a tenth of a side", 0.1), ("large steps, ten sides", 10)):
        workload = moving_keys(n_queries, n_keys, 10, 5, steps)
        goals = [AtLeast(0.95, "the same operator comparing all rows", ("Vedette, always",))]
        bench.race("border-2d", kind, workload, VedetteBorder, [VedetteCompared, DiffRmq], goals)


def _prices(
    bench: Bench, n: int = N, width: float = W, step: float = FL, n_readings: int = 1_000, n_axes: int = 1
) -> Moves:
    """The workload of section 5.1. A quick run has a tenth of the queries, streams and readings."""
    share = 10 if bench.quick else 1
    return price_streams(n // share, 2_000 // share, max(1, n_readings // share), width / 100, step / 100, n_axes)


def _race_axes(bench: Bench, n_axes: int, ratio: float, n: int, n_readings: int, *, is_drawn: bool = False) -> None:
    """Race RS lists with DiffRMQ. On one axis they are timed alone, because figures 6 to 8 have that race.

    A step has the same length for any number of axes, as in section 4.4.
    """
    workload = _prices(bench, n, WIDE, ratio * WIDE / n_axes**0.5, n_readings, n_axes)
    axes = f"{n_axes} {'axis' if n_axes == 1 else 'axes'}"
    case = f"{axes}, FL = {ratio:g} W" + ("" if is_drawn else f", N = {workload.n_queries:,}")
    point: dict[str, Any] = {"x": ratio, "x_name": f"FL over W, {axes}"} if is_drawn else {}
    rivals = [DiffRmqOnCells] if n_axes > 1 else []
    made: list[CellPeer] = []

    def keep(make: Callable[[Workload], CellPeer], workload: Workload) -> CellPeer:
        made.append(make(workload))
        return made[-1]

    ours, *others = [partial(keep, make) for make in (BmqOnAxes, *rivals)]
    bench.race("bmq-axes", case, workload, ours, others, y_name="microseconds a reading", **point)
    n_events = next(row["n_pairs"] for row in bench.rows if row["kind"] == "time" and row["case"] == case)
    bench.note("bmq-axes", case, "% of the entries read that are events, BMQ", 100 * n_events / made[0].count_read())
    for peer in made:
        bench.note("bmq-axes", case, f"MB, {peer.name}", peer.index.nbytes / 1e6)


def _race_figure(
    bench: Bench, target: str, case: str, workload: Moves, x: float | None = None, x_name: str = "", *, is_below: bool
) -> None:
    """Race BMQ with DiffRMQ over each index; in the paper BMQ wins if FL is below W. Drawn if there is an x."""
    goals = [AtLeast(1, "the fastest DiffRMQ", ("DiffRMQ",))] if is_below else []
    point: dict[str, Any] = {} if x is None else {"x": x, "x_name": x_name}
    ours = bench.race(target, case, workload, Bmq, RIVALS, goals, y_name="microseconds a reading", **point)
    assert isinstance(ours, Bmq)
    n_events = next(row["n_pairs"] for row in bench.rows if row["kind"] == "time" and row["case"] == case)
    diff_rmq = DiffRmqOnCells(workload)
    diff_rmq.load(ours.moves)
    for name, peer in (("BMQ", ours), ("DiffRMQ", diff_rmq)):  # DiffRMQ reads the same queries with any index
        share = 100 * n_events / peer.count_read()
        measure = f"% of the queries looked at that are events, {name}"
        bench.note(target, case, measure, share, contestant=name, y_name="search efficiency, %", **point)


def _note_memory(bench: Bench, case: str, workload: Moves, x: float | None = None, x_name: str = "") -> None:
    peers: list[CellPeer] = [Bmq(workload), *(make(workload) for make in RIVALS)]
    sizes = {peer.name: peer.index.nbytes for peer in peers}
    boxes = peers[0].boxes
    short = CEI.build(boxes.firsts, boxes.lasts, boxes.queries, boxes.n_cells, segment_cells=64)
    sizes["DiffRMQ over CEI, segments of 64 cells"] = short.nbytes
    for name, size in sizes.items():
        point: dict[str, Any] = {} if x is None else {"x": x, "x_name": x_name}
        bench.note("bmq-fig9", case, f"MB, {name}", size / 1e6, y_name="MB", contestant=name, **point)
