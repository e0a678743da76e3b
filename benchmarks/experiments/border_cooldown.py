"""Options of queries: a million different cooldowns in border monitoring, against none."""

from __future__ import annotations

import statistics
import time
from typing import Any

import numpy as np
import pyarrow as pa

import vedette as vd
from benchmarks.harness import AnswersDifferError, Bench, experiment

MOST = 1.5  # times the time without cooldowns
WIDTH, STEP, DOMAIN = 0.001, 0.002, 1000.0  # a key is in about one query, and leaves it at most steps
N_STEPS = 6


@experiment("border-cooldown")
def border_cooldown(bench: Bench) -> None:
    """A million ranges with a million different cooldowns, over 200,000 keys that move about twice a range's width."""
    n, n_keys = bench.size(1_000_000, 20_000), bench.size(200_000, 5_000)
    source = np.random.default_rng(7)
    lows = source.uniform(0, DOMAIN, n)
    batches = _walk(source, n_keys)
    plain, cooling = (_make(lows, each) for each in ({}, {"cooldown": source.permutation(n) + 1}))
    times: dict[str, list[float]] = {"none": [], "different": []}
    for _ in range(bench.repeats):
        for name, queries in (("none", plain), ("different", cooling)):
            seconds, counted = _run(queries, batches)
            times[name].append(seconds)
            if name == "none":
                n_events = counted
            elif counted != n_events:
                raise AnswersDifferError("reported and held-back events are not all events")
    none, different = (statistics.median(each) for each in times.values())
    case = f"{n:,} queries"
    bench.record("border-cooldown", case, "no cooldown", none, n_queries=n, n_rows=n_keys * (N_STEPS - 1))
    bench.record("border-cooldown", case, "a cooldown for each query", different)
    bench.verdict("border-cooldown", case, "times the time without", different / none, MOST, "at most")


def _make(lows: Any, options: dict[str, Any]) -> vd.QuerySet:
    queries = vd.QuerySet("k bigint, x double, t bigint")
    queries.add_boxes(np.arange(len(lows)), {"x": (lows, lows + WIDTH)}, **options)
    return queries


def _walk(source: np.random.Generator, n_keys: int) -> list[pa.Table]:
    places, batches = source.uniform(0, DOMAIN, n_keys), []
    for step in range(N_STEPS):
        columns = {"k": np.arange(n_keys), "x": places, "t": np.full(n_keys, step * 1000)}
        batches.append(pa.table(columns))
        places = np.clip(places + source.normal(0, STEP, n_keys), 0, DOMAIN)
    return batches


def _run(queries: vd.QuerySet, batches: list[pa.Table]) -> tuple[float, int]:
    """The CPU time of all steps after the first, and the events, with those that were held back."""
    monitor = queries.border(key="k", time="t", threads=1)
    n_events, start = monitor.step(batches[0]).num_rows, time.process_time()
    for batch in batches[1:]:
        n_events += monitor.step(batch).num_rows
    return time.process_time() - start, n_events + monitor.n_held_back
