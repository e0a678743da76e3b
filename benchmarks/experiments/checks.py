"""Checks of untrusted input: one very long query, and the validation of a saved query set."""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import vedette as vd
from benchmarks.harness import AnswersDifferError, Bench, experiment, time_once
from benchmarks.peers.vedette import boxes
from benchmarks.workloads import MARKET_SCHEMA, intervals, market_rows, market_texts

LONGEST_SECONDS, VALIDATION = 2, 1.1  # for 10,000 terms; a load with validation over one without


@experiment("long-query")
def long_query(bench: Bench) -> None:
    """`add` of one query of 10,000 terms joined by AND, and its first match."""
    n_terms = bench.size(10_000, 1_000)
    texts = {
        "comparisons": " AND ".join(f"x <> {value}" for value in range(n_terms)),
        "comparisons of expressions": " AND ".join(f"x + {value} <> 0.5" for value in range(n_terms)),
    }

    def add(text: str) -> vd.QuerySet:
        queries = vd.QuerySet("x double")
        queries.add("long", text)
        if queries.match_one({"x": 7.5}) != ["long"] or queries.match_one({"x": None}):
            raise AnswersDifferError("a query of many terms matches wrong rows")
        return queries

    for name, text in texts.items():
        add(text)
        seconds = statistics.median(time_once(lambda text=text: add(text)) for _ in range(bench.repeats))
        case = f"{n_terms:,} {name}"
        bench.verdict("long-query", case, "seconds", seconds, LONGEST_SECONDS)


@experiment("validation")
def validation(bench: Bench) -> None:
    """The first load of a saved set on a host, which validates it, and the later ones, each with a first match."""
    n_queries = bench.size(1_000_000, 50_000)
    ids = np.arange(n_queries)
    workload = intervals(n_queries, 1, 10)
    plain, market = vd.QuerySet("x0 double"), vd.QuerySet(MARKET_SCHEMA)
    plain.add_boxes(ids, boxes(workload), closed="both")
    market.add_many(ids, market_texts(n_queries))
    row = {"x0": workload.rows[0]}
    market_row = {name: values[:1] for name, values in market_rows(1).items()}
    with tempfile.TemporaryDirectory() as folder:
        for case, queries, rows in (("intervals", plain, row), ("market alerts", market, market_row)):
            _time_loads(bench, f"{n_queries:,} {case}", queries, rows, Path(folder) / "set")


def _time_loads(bench: Bench, case: str, queries: vd.QuerySet, rows: Any, path: Path) -> None:
    expected = queries.match(rows).positions.tolist()
    first, later = [], []
    for _ in range(bench.repeats):
        path.unlink(missing_ok=True)
        queries.save(path)  # a new file, so that its first load validates it
        if vd.QuerySet.load(_copy(path)).match(rows).positions.tolist() != expected:
            raise AnswersDifferError("a loaded set finds other matches than the one that was saved")
        first.append(time_once(lambda: vd.QuerySet.load(path).match(rows)))
        later.append(min(time_once(lambda: vd.QuerySet.load(path).match(rows)) for _ in range(2)))
    seconds = {"first load, with validation": statistics.median(first), "later loads": statistics.median(later)}
    for name, value in seconds.items():
        bench.record("validation", case, name, value, n_queries=len(queries))
    ratio = seconds["first load, with validation"] / seconds["later loads"]
    bench.verdict("validation", case, "times a load without validation, once per file and host", ratio, VALIDATION)


def _copy(path: Path) -> Path:
    copy = path.with_name("copy")
    copy.write_bytes(path.read_bytes())
    return copy
