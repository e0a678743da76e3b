"""Spatial Join CQ: table 3 and figures 15 to 17 of Lim et al., and the same with a million queries."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from benchmarks.harness import Bench, experiment
from benchmarks.peers.on_cells import OnCells, SJBatch, SJImmediate
from benchmarks.workloads import Workload, conjunctions

BATCHES = (2_000, 4_000, 6_000, 8_000, 10_000)  # N_batch_data
CLUSTERS = (64, 128, 256, 512, 768, 1024, 1536)  # N_dc
SIZES = (10_000, 25_000, 50_000, 75_000, 100_000)  # N_query
SHARES = (0.125, 0.25, 0.5, 0.75, 1.0)  # R_pred
SKEWS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)  # R_skew
N_BATCH = 10_000
PAPER_SIZE = {4: 200, 8: 400}  # N_dc of figure 15, by attributes
LARGE, FEW_ROWS = 1_000_000, 1_000  # queries, and rows of a batch: today's larger setting
LIMIT_SECONDS = 8.0  # of one run: enough for IBS to match all rows
MOST_OVER_BEST, LEAST_OVER_IBS = 1.2, 15
TIME = "microseconds a row"


@experiment("sjcq-table3")
def sjcq_table3(bench: Bench) -> None:
    """Lim et al., table 3: the best size of data clusters, N_dc, by batch and attributes; and the one chosen."""
    for n_attributes in (4, 8):
        for n_rows in bench.some(BATCHES):
            workload = conjunctions(n_attributes, bench.size(10_000, 2_000), bench.size(n_rows, n_rows // 5))
            case = f"N_attr = {n_attributes}, N_batch_data = {workload.n_rows:,}"
            _sweep(bench, "sjcq-table3", case, workload)
    for n_attributes in (4, 8):
        workload = _make_large(bench, n_attributes)
        case = f"N_attr = {n_attributes}, N_batch_data = {workload.n_rows:,}, N_query = {workload.n_queries:,}"
        _sweep(bench, "sjcq-table3", case, workload)


@experiment("sjcq-fig15")
def sjcq_fig15(bench: Bench) -> None:
    """Lim et al., figure 15: SJ-Batch, SJ-Immediate and IBS against the number of queries."""
    for n_attributes in (4, 8):
        ratios = []
        for n_queries in (*bench.some(SIZES), LARGE):
            n_rows = N_BATCH if n_queries < LARGE else FEW_ROWS
            workload = conjunctions(
                n_attributes, bench.size(n_queries, n_queries // 20), bench.size(n_rows, n_rows // 5)
            )
            case = f"N_attr = {n_attributes}, N_query = {workload.n_queries:,}"
            x_name = f"queries, {n_attributes} attributes"
            point = {"x": workload.n_queries, "x_name": x_name, "y_name": TIME} if n_queries < LARGE else {}
            ratios.append(_race(bench, "sjcq-fig15", case, workload, **point))
        case = f"N_attr = {n_attributes}"
        times = f"times faster than IBS, SJ-Batch at N_query = {bench.size(SIZES[0], SIZES[0] // 20):,}"
        bench.verdict("sjcq-fig15", case, times, ratios[0], LEAST_OVER_IBS, "at least")
        times = f"times faster than IBS, SJ-Batch at N_query = {bench.size(SIZES[-1], SIZES[-1] // 20):,}"
        bench.verdict("sjcq-fig15", case, times, ratios[-2], ratios[0], "at least")


@experiment("sjcq-fig16")
def sjcq_fig16(bench: Bench) -> None:
    """Lim et al., figure 16: the same against the share of attributes that have predicates."""
    for share in SHARES:
        workload = _constrain(conjunctions(8, bench.size(50_000, 2_500), bench.size(N_BATCH, 1_000)), share)
        case = f"R_pred = {share:g}"
        _race(
            bench, "sjcq-fig16", case, workload, x=share, x_name="attributes with predicates, share of 8", y_name=TIME
        )
    for share in (0.5, 1.0):
        workload = _constrain(_make_large(bench, 8), share)
        _race(bench, "sjcq-fig16", f"R_pred = {share:g}, N_query = {workload.n_queries:,}", workload)


@experiment("sjcq-fig17")
def sjcq_fig17(bench: Bench) -> None:
    """Lim et al., figure 17: the same against the share of rows in a tenth of the domain."""
    for skew in SKEWS:
        workload = _gather(conjunctions(4, bench.size(100_000, 5_000), bench.size(N_BATCH, 1_000)), skew)
        case = f"R_skew = {skew:.0%}"
        _race(bench, "sjcq-fig17", case, workload, x=100 * skew, x_name="rows in a tenth of the domain, %", y_name=TIME)
    for skew in (0.0, 1.0):
        workload = _gather(_make_large(bench, 4), skew)
        _race(bench, "sjcq-fig17", f"R_skew = {skew:.0%}, N_query = {workload.n_queries:,}", workload)


def _make_large(bench: Bench, n_attributes: int) -> Workload:
    return conjunctions(n_attributes, bench.size(LARGE, LARGE // 20), bench.size(FEW_ROWS, FEW_ROWS // 5))


def _race(bench: Bench, target: str, case: str, workload: Workload, **point: Any) -> float:
    """Race SJ-Batch, with the chosen N_dc and with the paper's, with the others. Returns its lead over IBS."""
    ours = SJBatch(workload)
    others = [
        partial(SJBatch, n_dc=PAPER_SIZE[len(workload.rows)], like=ours),
        partial(SJImmediate, like=ours),
        partial(OnCells, name="IBS"),
        OnCells,
    ]
    bench.race(target, case, workload, lambda _: ours, others, limit_seconds=_limit(bench), **point)
    seconds = {row["contestant"]: row["seconds"] for row in bench.rows if _is_time(row, target, case)}
    ratio = float(seconds["IBS"] / seconds["SJ-Batch"])
    bench.note(target, case, "times faster than IBS, SJ-Batch", ratio)
    bench.note(target, case, "times faster than IBS, SJ-Immediate", seconds["IBS"] / seconds["SJ-Immediate"])
    return ratio


def _sweep(bench: Bench, target: str, case: str, workload: Workload) -> None:
    """Race all sizes of clusters with the chosen one, which is judged by the best."""
    ours = SJBatch(workload)
    others = [partial(SJBatch, n_dc=n_dc, like=ours) for n_dc in CLUSTERS if n_dc < 2 * workload.n_rows]
    bench.race(target, case, workload, lambda _: ours, others)
    seconds = {row["contestant"]: row["seconds"] for row in bench.rows if _is_time(row, target, case)}
    chosen = seconds.pop("SJ-Batch")
    best = min(seconds, key=lambda name: seconds[name])
    bench.note(target, case, "the best N_dc", float(best.split()[-1]))
    bench.note(target, case, "microseconds a row with it", 1e6 * seconds[best] / workload.n_rows)
    bench.verdict(target, case, "time with the N_dc that is chosen over that", chosen / seconds[best], MOST_OVER_BEST)


def _limit(bench: Bench) -> float:
    return bench.limit_seconds if bench.quick else LIMIT_SECONDS


def _is_time(row: dict[str, object], target: str, case: str) -> bool:
    return row["kind"] == "time" and row["target"] == target and row["case"] == case


def _constrain(workload: Workload, share: float, seed: int = 31) -> Workload:
    """The same queries with conditions on only this share of the attributes, different ones for each query."""
    n_attributes = len(workload.lows)
    random = np.random.default_rng(seed).random(workload.lows.shape)
    is_used = np.argsort(np.argsort(random, axis=0), axis=0) < round(share * n_attributes)
    lows, highs = np.where(is_used, workload.lows, -np.inf), np.where(is_used, workload.highs, np.inf)
    return Workload(workload.name, lows, highs, workload.rows)


def _gather(workload: Workload, skew: float, seed: int = 32) -> Workload:
    """The same with this share of the rows within a tenth of the domain of each attribute."""
    random = np.random.default_rng(seed)
    is_near = random.random(workload.n_rows) < skew
    rows = np.where(is_near, 0.45 + 0.1 * workload.rows, workload.rows)
    return Workload(workload.name, workload.lows, workload.highs, rows)
