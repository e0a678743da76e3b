"""Two fields: the rectangles of Wu, Chen and Yu (figure 13), and a million small boxes."""

from __future__ import annotations

from benchmarks import workloads
from benchmarks.harness import AtLeast, Bench, experiment
from benchmarks.peers import duckdb, numpy_scan, polars, rtree, strtree
from benchmarks.peers.vedette import VedettePairs

TREES = [strtree.STRtree, strtree.STRtreeSorted, rtree.Rtree]
SCANS = [duckdb.DuckDB, duckdb.DuckDBFilter, polars.Polars, numpy_scan.NumpyScan]


@experiment("rectangles")
def rectangles(bench: Bench) -> None:
    """Rectangles on the grid of Wu, Chen and Yu, figure 13: 32k with W = 20 and 256k with W = 40, as pairs."""
    goal = AtLeast(20, "STRtree", ("STRtree",))
    sizes = ((32_000, bench.size(250_000, 25_000), 20), (256_000, bench.size(10_000, 1_000), 40))
    for full, n_rows, max_side in sizes:
        n_queries = bench.size(full, full // 8)
        for placed in ("uniform", "90-10"):
            # Placed 90-10, a row meets about nine times as many.
            n = n_rows if placed == "uniform" else n_rows // 10
            workload = workloads.vcr_rectangles(n_queries, n, max_side, placed)
            case = f"{n_queries // 1000}k, {workload.name}"
            ours = bench.race("rectangles", case, workload, VedettePairs, [*TREES, *SCANS], [goal])
            assert isinstance(ours, VedettePairs)
            bench.verdict("rectangles", case, "bytes a query", ours.queries.nbytes / n_queries, 300)


@experiment("small-boxes")
def small_boxes(bench: Bench) -> None:
    """A million small boxes with five matches a row, as pairs."""
    workload = workloads.small_boxes(bench.size(1_000_000, 100_000), bench.size(1_000_000, 100_000), 5)
    others = [*TREES, numpy_scan.NumpyScan]
    ours = bench.race(
        "small-boxes", "small boxes", workload, VedettePairs, others, [AtLeast(12, "STRtree", ("STRtree",))]
    )
    assert isinstance(ours, VedettePairs)
    bench.note("small-boxes", "small boxes", "bytes a query", ours.queries.nbytes / workload.n_queries)
