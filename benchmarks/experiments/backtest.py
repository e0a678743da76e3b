"""A backtest of a change over a long history in Spark: by day and query, in bounded memory."""

from __future__ import annotations

import time

import numpy as np
from pyspark.sql import functions as f

import vedette as vd
from benchmarks.harness import AnswersDifferError, Bench, experiment
from vedette import spark as vs

SCHEMA = "symbol string, price double, ts timestamp"
N_DAYS, N_KEYS, N_QUERIES = 30, 20_000, 10_000
_START = 1_772_000_000  # seconds
_SAMPLE = 200_000  # rows that are also tested in this process


@experiment("backtest")
def backtest(bench: Bench) -> None:
    """`vs.backtest` of 10k alerts before and after a change, over rows that Spark generates."""
    n_rows = bench.size(100_000_000, 1_000_000)
    before, after = _make_set(0), _make_set(1)
    spark = vs.session("benchmarks")
    step = N_DAYS * 86_400 / n_rows
    number, seconds = f.abs(f.hash("id")) % N_KEYS, f.col("id") * step
    wave = f.sin(2 * np.pi * (seconds / 86_400 + number / 7))  # each symbol rises and falls once a day
    rows = spark.range(n_rows).select(
        f.concat(f.lit("K"), number).alias("symbol"),
        (500 + 400 * wave + f.abs(f.hash("id", f.lit(1))) % 1000 / 100.0).alias("price"),
        f.timestamp_seconds(_START + seconds).alias("ts"),
    )
    _check(rows.limit(_SAMPLE), before, after)
    start = time.perf_counter()
    result = vs.backtest(rows, before, time="ts", against=after)
    seconds = time.perf_counter() - start
    bench.record("backtest", "matches", "vs.backtest", seconds, n_rows=n_rows, n_queries=N_QUERIES)
    start = time.perf_counter()
    with_events = vs.backtest(rows, before, time="ts", key="symbol", against=after)
    seconds = time.perf_counter() - start
    bench.record("backtest", "matches and events", "vs.backtest", seconds, n_rows=n_rows, n_queries=N_QUERIES)
    bench.note("backtest", "matches and events", "million matches before", result.totals["matches_before"] / 1e6)
    bench.note("backtest", "matches and events", "million events before", with_events.totals["events_before"] / 1e6)
    spark.stop()


def _make_set(seed: int) -> vd.QuerySet:
    """Alerts on the price of one symbol each. One in ten differs between the two seeds."""
    prices = np.random.default_rng(5).uniform(100, 900, N_QUERIES)
    prices[::10] += seed * 5
    made = vd.QuerySet(SCHEMA)
    made.add_many(
        np.arange(N_QUERIES), [f"symbol = 'K{number}' AND price < {price}" for number, price in enumerate(prices)]
    )
    return made


def _check(rows: object, before: vd.QuerySet, after: vd.QuerySet) -> None:
    """Raise unless Spark and this process have the same tables."""
    kept = rows.persist()  # type: ignore[attr-defined]
    here = vd.backtest(before, kept.toArrow().sort_by("ts"), time="ts", key="symbol", against=after)
    there = vs.backtest(kept, before, time="ts", key="symbol", against=after)
    kept.unpersist()
    if here.by_query != there.by_query or here.by_day != there.by_day:
        raise AnswersDifferError("vs.backtest and vd.backtest have other tables")
