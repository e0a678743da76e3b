"""Ways to match inside Spark: `vs.match`, `observe=` and the functions of SQL, against an identity `mapInArrow`."""

from __future__ import annotations

import statistics
import tempfile
from functools import partial
from typing import Any

import numpy as np
from pyspark.sql import DataFrame

import vedette as vd
from benchmarks.harness import AnswersDifferError, Bench, experiment
from benchmarks.peers.spark_join import make_rows, pass_through, run
from benchmarks.workloads import DOMAIN, disjoint_intervals
from vedette import spark as vs

SCHEMA = "row bigint, x0 double, y double"
IDENTITY = "identity mapInArrow"


@experiment("spark-sql")
def spark_sql(bench: Bench) -> None:
    """`vs.match`, `observe=` and the functions of SQL against an identity `mapInArrow` over the same rows."""
    n_queries, n_rows = bench.size(100_000, 20_000), bench.size(4_000_000, 400_000)
    workload = disjoint_intervals(n_queries, 1)
    texts = [f"x0 BETWEEN {low!r}D AND {high!r}D" for low, high in zip(*_ends(workload), strict=True)]
    with tempfile.TemporaryDirectory() as folder:
        registry = vd.Registry(f"sqlite:///{folder}/sets.db")
        registry.create("ranges", schema=SCHEMA, ids="integer")
        registry.add_many("ranges", list(range(n_queries)), texts)
        spark = vs.session("benchmarks")
        rows = make_rows(spark, n_rows, DOMAIN)
        rows.createOrReplaceTempView("numbers")
        vs.register(spark, registry)
        queries = vd.QuerySet(SCHEMA)
        queries.add_many(np.arange(n_queries), texts)
        frames = {
            "list": {
                "vs.match": rows.transform(vs.match(queries, "list")),
                "vs.match, followed": rows.transform(vs.match(registry.follow("ranges"), "list")),
                "vs.match, observe=": rows.transform(vs.match(queries, "list", observe="counts")),
                "vedette_queries": spark.sql("SELECT *, vedette_queries('ranges', struct(*)) AS queries FROM numbers"),
            },
            "pairs": {
                "vs.match": rows.transform(vs.match(queries)),
                "vs.match, observe=": rows.transform(vs.match(queries, observe="counts")),
                "vedette_match_ranges": spark.sql("SELECT * FROM vedette_match_ranges(TABLE(numbers))"),
            },
        }
        expected = _sums_here(rows, queries)
        for output, ways in frames.items():
            for name, frame in ways.items():
                _check(frame, output, name, expected)
            case = f"{output}, {expected[0] / n_rows:.1f} matches a row"
            seconds = _time(bench, ways | {IDENTITY: pass_through(rows)})
            for name, value in seconds.items():
                bench.record("spark-sql", case, name, value, n_queries=n_queries, n_rows=n_rows)
            for name in ways:
                bench.note("spark-sql", case, f"times the identity, {name}", seconds[name] / seconds[IDENTITY])
        spark.stop()
        registry.close()


def _ends(workload: Any) -> tuple[list[float], list[float]]:
    return workload.lows[0].astype(float).tolist(), workload.highs[0].astype(float).tolist()


def _time(bench: Bench, frames: dict[str, DataFrame]) -> dict[str, float]:
    for _ in range(2):  # Java compiles, and Python workers load the set
        for frame in frames.values():
            run(frame)
    timings = bench.time_in_turns({name: partial(run, frame) for name, frame in frames.items()})
    return {name: statistics.median(runs) for name, runs in timings.items()}


def _sums_here(rows: DataFrame, queries: Any) -> tuple[int, int]:
    """The number of pairs, and a sum over them, of a match in this process."""
    table = rows.toArrow()
    here = queries.match(table)
    total = int(np.sum((table["row"].to_numpy() % 1009)[here.rows] * here.positions.astype(np.int64)))
    return len(here.positions), total


def _check(frame: DataFrame, output: str, name: str, expected: tuple[int, int]) -> None:
    """Raise unless Spark finds the same pairs."""
    pairs = frame.selectExpr("row", "explode(queries) AS query") if output == "list" else frame
    found = pairs.selectExpr("count(*) AS n", "sum((row % 1009) * CAST(query AS BIGINT)) AS total").first()
    if found is None or (found["n"], found["total"]) != expected:
        raise AnswersDifferError(f"{name} finds {found and found['n']} pairs and this process {expected[0]:,}")
