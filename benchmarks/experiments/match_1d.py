"""One field: intervals against values, with 1, 10 and 100 matches a row."""

from __future__ import annotations

from benchmarks.harness import AtLeast, Bench, experiment
from benchmarks.peers import Peer, duckdb, ncls, numpy_scan, polars, superintervals
from benchmarks.peers.vedette import Vedette, VedettePairs
from benchmarks.workloads import intervals

PAIR_PEERS: list[type[Peer]] = [
    duckdb.DuckDB,
    duckdb.DuckDBIntegers,
    polars.Polars,
    polars.PolarsStreaming,
    ncls.Ncls,
    ncls.NclsSorted,
    numpy_scan.NumpyScan,
]
LIST_CORES: list[type[Peer]] = [superintervals.SuperintervalsCore, superintervals.SuperintervalsCoreSorted]
PAIR_CORES: list[type[Peer]] = [superintervals.SuperintervalsPairs, superintervals.SuperintervalsPairsSorted]
if not superintervals.HAS_CORE:
    LIST_CORES = PAIR_CORES = [superintervals.Superintervals]
JOINS = ("DuckDB", "Polars", "ncls")


@experiment("intervals-one")
def intervals_one(bench: Bench) -> None:
    """Intervals with one match a row, as pairs."""
    workload = intervals(bench.size(100_000, 20_000), bench.size(1_000_000, 100_000), 1)
    others = [*PAIR_PEERS, *PAIR_CORES]
    goals = [
        AtLeast(4, "the best of DuckDB, Polars, ncls", JOINS),
        AtLeast(2, "superintervals", ("superintervals",)),
    ]
    bench.race("intervals-one", "uniform widths", workload, VedettePairs, others, goals)


@experiment("intervals-ten")
def intervals_ten(bench: Bench) -> None:
    """Intervals with ten matches a row, as lists; the joins give pairs, which is less work for them."""
    others: list[type[Peer]] = [*PAIR_PEERS, superintervals.Superintervals, *LIST_CORES]
    goals = [
        AtLeast(8, "the best of DuckDB, Polars, ncls", JOINS),
        AtLeast(2, "superintervals", ("superintervals",)),
    ]
    for n_queries in (100_000, 1_000_000):
        for widths in ("uniform", "pareto"):
            n_rows = bench.size(1_000_000, 20_000)
            workload = intervals(n_queries if not bench.quick else n_queries // 10, n_rows, 10, widths)
            kind = "uniform" if widths == "uniform" else "heavy-tailed"
            case = f"{workload.n_queries // 1000:,}k, {kind} widths"
            bench.race("intervals-ten", case, workload, Vedette, others, goals)
    workload = intervals(bench.size(1_000_000, 100_000), bench.size(1_000_000, 20_000), 10).sorted_rows()
    case = f"{workload.n_queries // 1000:,}k, uniform widths, rows sorted by the field"
    in_order: list[type[Peer]] = [ncls.Ncls, *LIST_CORES[:1]]
    bench.race("intervals-ten", case, workload, Vedette, in_order, goals[1:])


@experiment("intervals-hundred")
def intervals_hundred(bench: Bench) -> None:
    """Intervals with a hundred matches a row, as lists."""
    for widths in ("uniform", "pareto"):
        workload = intervals(bench.size(100_000, 20_000), bench.size(200_000, 20_000), 100, widths)
        kind = "uniform" if widths == "uniform" else "heavy-tailed"
        bench.race("intervals-hundred", f"{kind} widths", workload, Vedette, [*PAIR_PEERS, *LIST_CORES])
