"""Loading: from a million boxes or texts to a set that can match."""

from __future__ import annotations

import statistics
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import sqlglot

import vedette as vd
from benchmarks.harness import AnswersDifferError, Bench, experiment
from benchmarks.peers.vedette import boxes
from benchmarks.workloads import MARKET_SCHEMA, intervals, market_rows, market_texts


@experiment("load-boxes")
def load_boxes(bench: Bench) -> None:
    """`add_boxes` of a million intervals and a first match of one row, against one `np.argsort` of their ends."""
    n_queries = bench.size(1_000_000, 100_000)
    for widths in ("uniform", "pareto"):
        workload = intervals(n_queries, 1, 10, widths)
        ids, bounds = np.arange(n_queries), boxes(workload)
        ends = np.concatenate([workload.lows[0], workload.highs[0]])
        row = {"x0": workload.rows[0]}

        def load(ids: Any = ids, bounds: Any = bounds, row: Any = row) -> Any:
            queries = vd.QuerySet("x0 double")
            queries.add_boxes(ids, bounds, closed="both")
            return queries.match(row)

        def sort(ends: Any = ends) -> Any:
            return np.argsort(ends)

        case = "uniform widths" if widths == "uniform" else "heavy-tailed widths"
        inside = np.flatnonzero((workload.lows[0] <= row["x0"][0]) & (row["x0"][0] <= workload.highs[0]))
        if sorted(load().positions.tolist()) != inside.tolist():
            raise AnswersDifferError("the first match after loading differs from brute force")
        sort()
        timings = bench.time_in_turns({"Vedette": load, "np.argsort": sort})
        seconds = {name: statistics.median(runs) for name, runs in timings.items()}
        for name, value in seconds.items():
            bench.record("load-boxes", case, name, value, n_queries=n_queries)
        ratio = seconds["Vedette"] / seconds["np.argsort"]
        bench.verdict("load-boxes", case, "times one `np.argsort` of the ends", ratio, 5)


@experiment("load-texts")
def load_texts(bench: Bench) -> None:
    """`add_many` of a million texts of five shapes, until the first match, against sqlglot's `parse_one` in a loop."""
    n_texts, n_sample = bench.size(1_000_000, 50_000), bench.size(4_000, 1_000)
    texts = market_texts(n_texts)
    ids = np.arange(n_texts)
    row = {name: values[:1] for name, values in market_rows(1).items()}

    def load() -> Any:
        queries = vd.QuerySet(MARKET_SCHEMA)
        queries.add_many(ids, texts)
        return queries

    def load_and_match() -> Any:
        return load().match(row)

    def parse() -> None:
        for text in texts[:n_sample]:
            sqlglot.parse_one(text, dialect="spark")

    _check_texts(texts[:300])
    parse()
    timings = bench.time_in_turns({"add_many": load, "match": load_and_match, "sqlglot": parse}, repeats=3)
    seconds = {name: statistics.median(runs) for name, runs in timings.items()}
    loop = seconds["sqlglot"] * n_texts / n_sample
    case = "five shapes"
    note = f"measured on {n_sample:,} texts and scaled up"
    bench.record("load-texts", case, "Vedette, add_many", seconds["add_many"], n_queries=n_texts)
    bench.record("load-texts", case, "Vedette, add_many and a first match", seconds["match"], n_queries=n_texts)
    bench.record("load-texts", case, "sqlglot.parse_one in a loop", loop, n_queries=n_texts, note=note)
    ratio = loop / seconds["match"]
    bench.verdict(
        "load-texts", case, "times faster than sqlglot's `parse_one`, first match included", ratio, 10, "at least"
    )


def _check_texts(texts: list[str]) -> None:
    """Compare the matches of these texts with the rows that DuckDB keeps for each."""
    rows = market_rows(2_000)
    queries = vd.QuerySet(MARKET_SCHEMA)
    queries.add_many(np.arange(len(texts)), texts)
    hits = queries.match(rows)
    found = {(int(row), int(query)) for row, query in zip(hits.rows, hits.positions, strict=True)}
    connection = duckdb.connect()
    columns = {"row": np.arange(2_000)} | {name: values for name, values in rows.items() if name != "symbol"}
    connection.register("trades", pa.table(columns | {"symbol": pa.array(rows["symbol"].tolist())}))
    expected = set()
    for query, text in enumerate(texts):
        lines = connection.sql(f"SELECT row FROM trades WHERE {text}").fetchall()
        expected |= {(int(row), query) for (row,) in lines}
    if found != expected:
        raise AnswersDifferError(f"Vedette finds {len(found):,} pairs of texts and rows and DuckDB {len(expected):,}")
