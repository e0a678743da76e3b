"""Memory: bytes per one-dimensional query, as the set reports them and as the process grows."""

from __future__ import annotations

import json
import subprocess
import sys

from benchmarks.harness import Bench, experiment

# In its own process: memory that others have freed would hide the growth. A small set first, to not count code.
SCRIPT = """
import ctypes, gc, json, sys
import numpy as np
import vedette as vd
from benchmarks.peers.vedette import boxes
from benchmarks.workloads import intervals

def resident():
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096

def load(workload):
    queries = vd.QuerySet("x0 double")
    queries.add_boxes(np.arange(workload.n_queries), boxes(workload), closed="both")
    queries.match({"x0": workload.rows[0]})
    return queries

n, widths = int(sys.argv[1]), sys.argv[2]
load(intervals(10_000, 10, 10, widths))
workload = intervals(n, 10, 10, widths)
before = resident()
queries = load(workload)
grown = resident() - before
print(json.dumps({"told": queries.nbytes / n, "grown": grown / n}))
"""


@experiment("memory")
def memory(bench: Bench) -> None:
    """Bytes a query of a million intervals."""
    for n_queries in (bench.size(1_000_000, 200_000), 100_000):
        for widths in ("uniform", "pareto"):
            command = [sys.executable, "-c", SCRIPT, str(n_queries), widths]
            measured = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            kind = "uniform" if widths == "uniform" else "heavy-tailed"
            case = f"{n_queries // 1000:,}k intervals, {kind} widths"
            bench.verdict("memory", case, "bytes a query, as the set tells", measured["told"], 100)
            bench.verdict("memory", case, "bytes a query, as the process grows", measured["grown"], 100)
