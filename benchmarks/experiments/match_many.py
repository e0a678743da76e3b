"""Four and eight fields: the random conjunctions of Lim et al., section 7 (figure 15)."""

from __future__ import annotations

from benchmarks import workloads
from benchmarks.harness import AtLeast, Bench, experiment
from benchmarks.peers import duckdb, numpy_scan, polars
from benchmarks.peers.vedette import VedettePairs

PEERS = [duckdb.DuckDB, duckdb.DuckDBFilter, polars.Polars, numpy_scan.NumpyScan]


@experiment("conjunctions")
def conjunctions(bench: Bench) -> None:
    """Random conjunctions as in Lim et al., figure 15: a tenth to a fifth of all pairs match, as pairs."""
    for n_attributes in (4, 8):
        for n_queries, n_rows in ((10_000, 10_000), (100_000, 1_000)):
            workload = workloads.conjunctions(n_attributes, n_queries, n_rows if not bench.quick else n_rows // 5)
            case = f"{n_attributes} attributes, {n_queries // 1000}k conjunctions"
            bench.race("conjunctions", case, workload, VedettePairs, PEERS, [AtLeast(60, "DuckDB", ("DuckDB",))])
