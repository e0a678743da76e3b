"""Four and eight fields: the random conjunctions of Lim et al., section 7 (figure 15)."""

from __future__ import annotations

from benchmarks import workloads
from benchmarks.harness import AtLeast, Bench, experiment
from benchmarks.peers import duckdb, numpy_scan, polars
from benchmarks.peers.vedette import VedettePairs

PEERS = [duckdb.DuckDB, duckdb.DuckDBFilter, polars.Polars, numpy_scan.NumpyScan]


@experiment("conjunctions", "mixed-conjunctions")
def conjunctions(bench: Bench) -> None:
    """Random conjunctions as in Lim et al., figure 15, over all attributes and over some of them, as pairs."""
    for all_used in (True, False):
        target = "conjunctions" if all_used else "mixed-conjunctions"
        goals = [AtLeast(60, "DuckDB", ("DuckDB",))] if all_used else []
        for n_attributes in (4, 8):
            for n_queries, n_rows in ((10_000, 10_000), (100_000, 1_000)):
                n_queries, n_rows = (bench.size(n, n // 5) for n in (n_queries, n_rows))
                workload = workloads.conjunctions(n_attributes, n_queries, n_rows, all_used)
                case = f"{n_attributes} attributes, {n_queries // 1000}k conjunctions"
                bench.race(target, case, workload, VedettePairs, PEERS, goals)
