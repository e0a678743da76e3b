"""Latency: one row at a time, and from the start of a process to its first answer."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import vedette as vd
from benchmarks.harness import AnswersDifferError, Bench, experiment
from benchmarks.peers.vedette import boxes
from benchmarks.workloads import MARKET_SCHEMA, intervals, market_rows, market_texts

HEAVY = ("numpy", "numba", "pyarrow", "sqlglot", "pandas", "pyspark")

FROM_TEXTS = """
import vedette as vd
alerts = vd.QuerySet("symbol string, price double, volume bigint")
alerts.add("cheap", "symbol = 'IBM' AND price < 40")
alerts.add("busy", "volume BETWEEN 1000 AND 2000 OR price >= 99.5")
hits = alerts.match({"symbol": ["IBM", "SAP"], "price": [39.0, 99.5], "volume": [5, 6]})
assert [line["query"] for line in hits.to_arrow().to_pylist()] == ["cheap", "busy"]
"""

FROM_FILE = """
import sys
import vedette as vd
alerts = vd.QuerySet.load(sys.argv[1])
print(len(alerts.match_one({"symbol": sys.argv[2], "price": float(sys.argv[3]), "volume": int(sys.argv[4])})))
"""

IMPORT = """
import sys, time
start = time.perf_counter()
import vedette
print(time.perf_counter() - start, *(name for name in sys.argv[1:] if name in sys.modules))
"""


@experiment("match-one")
def match_one(bench: Bench) -> None:
    """`match_one` at 100k queries, median over 2,000 rows."""
    n_queries, n_rows = bench.size(100_000, 20_000), bench.size(2_000, 500)
    workload = intervals(n_queries, n_rows, 10)
    plain = vd.QuerySet("x0 double")
    plain.add_boxes(np.arange(n_queries), boxes(workload), closed="both")
    _time_rows(bench, "intervals, 10 matches a row", plain, [{"x0": float(value)} for value in workload.rows[0]])
    market = vd.QuerySet(MARKET_SCHEMA)
    market.add_many(np.arange(n_queries), market_texts(n_queries))
    columns = [values.tolist() for values in market_rows(n_rows).values()]
    rows = [dict(zip(("symbol", "price", "volume"), line, strict=True)) for line in zip(*columns, strict=True)]
    _time_rows(bench, "market alerts of five shapes", market, rows)


def _time_rows(bench: Bench, case: str, queries: Any, rows: list[dict[str, Any]]) -> None:
    batch = {name: [row[name] for row in rows[:100]] for name in rows[0]}
    hits, all_ids = queries.match(batch), queries.ids.to_pylist()
    for i, row in enumerate(rows[:100]):
        ids = sorted(all_ids[place] for place in hits.positions[hits.starts[i] : hits.starts[i + 1]])
        if sorted(queries.match_one(row)) != ids:
            raise AnswersDifferError(f"match_one and match differ for {row}")
    seconds = []
    for row in rows:
        start = time.perf_counter()
        queries.match_one(row)
        seconds.append(time.perf_counter() - start)
    median, slowest = statistics.median(seconds), float(np.quantile(seconds, 0.99))
    bench.record("match-one", case, "Vedette", median, n_queries=len(queries), p99_seconds=slowest)
    bench.verdict("match-one", case, "microseconds, median", 1e6 * median, 50)


@experiment("cold-start")
def cold_start(bench: Bench) -> None:
    """From the start of a process to its first answer, and `import vedette` alone, with a warm Numba cache."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "alerts.vedette"
        market = vd.QuerySet(MARKET_SCHEMA)
        market.add_many(np.arange(bench.size(100_000, 20_000)), market_texts(bench.size(100_000, 20_000)))
        market.save(path)
        row = {name: values.tolist()[0] for name, values in market_rows(1).items()}
        arguments = [str(path), row["symbol"], str(row["price"]), str(row["volume"])]
        found = _run(FROM_FILE, *arguments)  # fills the cache
        if int(found) != len(market.match_one(row)):
            raise AnswersDifferError("a loaded set has other answers than the saved one")
        _run(FROM_TEXTS)
        runs = {
            "two texts, two rows": lambda: _run(FROM_TEXTS),
            "saved set, one row": lambda: _run(FROM_FILE, *arguments),
        }
        for case, times in bench.time_in_turns(runs).items():
            bench.record("cold-start", case, "the whole process", statistics.median(times))
            bench.verdict("cold-start", case, "seconds to the first answer", statistics.median(times), 3)
    imports = [_run(IMPORT, *HEAVY).split() for _ in range(bench.repeats)]
    loaded = imports[0][1:]
    bench.verdict("cold-start", "import vedette", "seconds", statistics.median(float(line[0]) for line in imports), 0.5)
    bench.verdict("cold-start", "import vedette", f"heavy packages imported of {len(HEAVY)}", len(loaded), 0)


def _run(script: str, *arguments: str) -> str:
    command = [sys.executable, "-c", script, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
