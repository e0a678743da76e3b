"""Bounds that move with now(): a million queries, against the same queries with fixed bounds."""

from __future__ import annotations

import datetime as dt
import statistics
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import vedette as vd
from benchmarks.harness import AnswersDifferError, Bench, experiment, time_once

NOON = dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC)
MOST = 1.5  # times the time of fixed bounds
MATCHES = 10  # of a row, on average
SCHEMA = "k bigint, price double, ts timestamp"
STEPS = 10  # of a border monitor, one minute each


@experiment("now")
def now(bench: Bench) -> None:
    """1M queries `ts > now() - INTERVAL n SECONDS`, also with a price, against fixed bounds; and border steps."""
    n_queries, n_rows = bench.size(1_000_000, 20_000), bench.size(1_000_000, 20_000)
    source = np.random.default_rng(16)
    seconds = source.permutation(n_queries) + 1
    oldest = n_queries - 2 * MATCHES
    ages = source.integers(oldest, n_queries, n_rows)
    _match(bench, "one field", seconds, ages, None)
    prices = source.uniform(0, 100, n_queries)
    width = 200 * MATCHES / n_queries
    limits = [f" AND price BETWEEN {price!r} AND {price + width!r}" for price in prices.tolist()]
    _match(bench, "with a price", seconds, source.integers(0, n_queries, n_rows), limits)
    _border(bench, bench.size(1_000_000, 20_000), bench.size(100_000, 5_000))


def _match(
    bench: Bench, name: str, seconds: NDArray[np.int64], ages: NDArray[np.int64], limits: list[str] | None
) -> None:
    """The same rows, which match the same queries."""
    source = np.random.default_rng(17)
    rows = pa.table({"k": np.arange(len(ages)), "price": source.uniform(0, 100, len(ages)), "ts": _before(ages)})
    sets = {}
    for kind, bounds in _bounds(seconds).items():
        sets[kind] = vd.QuerySet(SCHEMA)
        texts = bounds if limits is None else [bound + limit for bound, limit in zip(bounds, limits, strict=True)]
        sets[kind].add_many(np.arange(len(seconds)), texts)
    runs: dict[str, Callable[[], Any]] = {kind: partial(each.match, rows, now=NOON) for kind, each in sets.items()}
    moving, fixed = (run() for run in runs.values())
    if not np.array_equal(moving.starts, fixed.starts) or _digest(moving) != _digest(fixed):
        raise AnswersDifferError("moving bounds match other rows than fixed ones")
    times = {kind: statistics.median(each) for kind, each in bench.time_in_turns(runs).items()}
    case = f"match, {name}, {len(seconds):,} queries, {len(ages):,} rows"
    for kind, value in times.items():
        bench.record("now", case, kind, value, n_queries=len(seconds), n_rows=len(ages), n_pairs=len(moving.positions))
    bench.verdict("now", case, "times the time with fixed bounds", times["moving"] / times["fixed"], MOST)


def _digest(matches: Any) -> int:
    """A number that depends on which queries each row has, not on their order."""
    rows = np.repeat(np.arange(len(matches.starts) - 1), np.diff(matches.starts))
    with np.errstate(over="ignore"):
        return int((matches.positions.astype(np.uint64) * (2 * rows.astype(np.uint64) + 1)).sum())


def _border(bench: Bench, n_queries: int, n_keys: int) -> None:
    """Queries `k = ? AND ts > bound`. Every key has a row a minute, and no bound passes one."""
    seconds = np.random.default_rng(18).integers(120, 3600, n_queries)
    keys = [f"k = {number % n_keys} AND " for number in range(n_queries)]
    times: dict[str, list[float]] = {}
    n_events = {}
    for kind, bounds in _bounds(seconds).items():
        queries = vd.QuerySet(SCHEMA)
        queries.add_many(np.arange(n_queries), [key + bound for key, bound in zip(keys, bounds, strict=True)])
        monitor = queries.border(key="k", time="ts")
        n_events[kind], times[kind] = 0, []
        for minute in range(STEPS):
            moment = NOON + dt.timedelta(minutes=minute)
            rows = pa.table({"k": np.arange(n_keys), "price": np.zeros(n_keys), "ts": pa.array([moment] * n_keys)})
            events = []

            def step() -> None:
                events.append(monitor.step(rows))  # noqa: B023
                events.append(monitor.advance(moment))  # noqa: B023

            times[kind].append(time_once(step))
            n_events[kind] += sum(each.num_rows for each in events)
    if n_events["moving"] != n_events["fixed"]:
        raise AnswersDifferError(f"moving bounds have other events than fixed ones: {n_events}")
    medians = {kind: statistics.median(each[1:]) for kind, each in times.items()}
    case = f"border, {n_queries:,} queries, {n_keys:,} rows a step"
    for kind, value in medians.items():
        bench.record("now", case, kind, value, n_queries=n_queries, n_rows=n_keys)
    bench.verdict("now", case, "times the time with fixed bounds", medians["moving"] / medians["fixed"], MOST)


def _bounds(seconds: NDArray[np.int64]) -> dict[str, list[str]]:
    fixed = (NOON.replace(tzinfo=None) - dt.timedelta(seconds=each) for each in seconds.tolist())
    return {
        "moving": [f"ts > now() - INTERVAL {each} SECONDS" for each in seconds.tolist()],
        "fixed": [f"ts > TIMESTAMP '{each}'" for each in fixed],
    }


def _before(ages: NDArray[np.int64]) -> pa.Array:
    """Times that are so many seconds before noon."""
    noon = int(NOON.timestamp())
    return pa.array((noon - ages) * 1_000_000).cast(pa.timestamp("us", "UTC"))
