"""Inside Spark: `vs.match` against passing the rows through Python unchanged, and against Spark's own join."""

from __future__ import annotations

import statistics
from functools import partial
from typing import Any

import numpy as np
from pyspark.sql import DataFrame, SparkSession

import vedette as vd
from benchmarks.harness import AnswersDifferError, Bench, experiment
from benchmarks.peers.spark_join import broadcast_join, make_queries, make_rows, pass_through, run
from benchmarks.peers.vedette import boxes
from benchmarks.workloads import DOMAIN, Workload, disjoint_intervals, intervals
from vedette import spark as vs


@experiment("spark-one", "spark-ten")
def spark_identity(bench: Bench) -> None:
    """`vs.match` with list output against an identity `mapInArrow` over the same rows."""
    n_queries, n_rows = bench.size(100_000, 20_000), bench.size(4_000_000, 400_000)
    spark = vs.session("benchmarks")
    rows = make_rows(spark, n_rows, DOMAIN)
    for target, workload, bound in (
        ("spark-one", disjoint_intervals(n_queries, 1), 1.5),
        ("spark-ten", intervals(n_queries, 1, 10), 2.5),
    ):
        queries = _query_set(workload)
        hits = rows.transform(vs.match(queries, output="list"))
        matches_a_row = _check_lists(rows, hits, queries) / n_rows
        frames = {"vs.match, list output": hits, "identity mapInArrow": pass_through(rows)}
        case = f"{matches_a_row:.1f} matches a row"
        seconds = _time_frames(bench, frames)
        for name, value in seconds.items():
            bench.record(target, case, name, value, n_queries=n_queries, n_rows=n_rows)
        ratio = seconds["vs.match, list output"] / seconds["identity mapInArrow"]
        bench.verdict(target, case, "times the identity `mapInArrow`", ratio, bound)
    spark.stop()


@experiment("spark-join")
def spark_join(bench: Bench) -> None:
    """`vs.match` with pairs against Spark's broadcast nested-loop join, both warm."""
    n_queries, n_rows = bench.size(100_000, 20_000), bench.size(100_000, 20_000)
    spark = vs.session("benchmarks")
    workload = intervals(n_queries, 1, 1)
    queries, table = _query_set(workload), make_queries(spark, workload)
    rows = make_rows(spark, n_rows, DOMAIN).cache()
    rows.count()
    n_small, n_large = n_rows // 50, n_rows // 10
    slices = {n: _slice(spark, rows, n) for n in (n_small, n_large)}
    _check_pairs(slices[n_small], queries, table)
    frames = {"vs.match, pairs": rows.transform(vs.match(queries))}
    frames |= {f"join of {n:,} rows": broadcast_join(part, table) for n, part in slices.items()}
    seconds = _time_frames(bench, frames)
    small, large = seconds[f"join of {n_small:,} rows"], seconds[f"join of {n_large:,} rows"]
    join = large + (large - small) / (n_large - n_small) * (n_rows - n_large)  # the fixed cost of a job counts once
    note = f"measured on {n_small:,} and {n_large:,} rows and carried on in a straight line"
    case = "pairs"
    ours = seconds["vs.match, pairs"]
    bench.record("spark-join", case, "vs.match, pairs", ours, n_queries=n_queries, n_rows=n_rows, ratio=1.0)
    bench.record(
        "spark-join",
        case,
        "broadcast nested-loop join",
        join,
        n_queries=n_queries,
        n_rows=n_rows,
        ratio=join / ours,
        note=note,
    )
    bench.verdict("spark-join", case, "times faster than Spark's join", join / ours, 100, "at least")
    spark.stop()


def _query_set(workload: Workload) -> Any:
    queries = vd.QuerySet("row bigint, x0 double, y double")
    queries.add_boxes(np.arange(workload.n_queries), boxes(workload), closed="both")
    return queries


def _time_frames(bench: Bench, frames: dict[str, DataFrame]) -> dict[str, float]:
    for _ in range(2):  # Java compiles, and Python workers load the set
        for frame in frames.values():
            run(frame)
    timings = bench.time_in_turns({name: partial(run, frame) for name, frame in frames.items()})
    return {name: statistics.median(runs) for name, runs in timings.items()}


def _slice(spark: SparkSession, rows: DataFrame, n_rows: int) -> DataFrame:
    """The first rows, cached in as many partitions as there are cores."""
    part = rows.where(f"row < {n_rows}").repartition(spark.sparkContext.defaultParallelism).cache()
    assert part.count() == n_rows
    return part


def _check_lists(rows: DataFrame, hits: DataFrame, queries: Any) -> int:
    """Compare Spark's answer with a match in this process, over all rows. Returns the number of pairs."""
    sums = "sum(size(queries)) AS n", "sum((row % 1009) * aggregate(queries, 0L, (a, q) -> a + q)) AS total"
    found = hits.selectExpr(*sums).first()
    assert found is not None
    table = rows.toArrow()
    here = queries.match(table)
    total = int(np.sum((table["row"].to_numpy() % 1009)[here.rows] * here.positions.astype(np.int64)))
    if (found["n"], found["total"]) != (len(here.positions), total):
        raise AnswersDifferError(f"Spark finds {found['n']:,} pairs and this process {len(here.positions):,}")
    return len(here.positions)


def _check_pairs(rows: DataFrame, queries: Any, table: DataFrame) -> None:
    """Compare the pairs of `vs.match` with those of Spark's join."""
    ours, theirs = (
        sorted((line["row"], line["query"]) for line in frame.select("row", "query").collect())
        for frame in (rows.transform(vs.match(queries)), broadcast_join(rows, table))
    )
    if ours != theirs:
        raise AnswersDifferError(f"vs.match finds {len(ours):,} pairs and Spark's join {len(theirs):,}")
