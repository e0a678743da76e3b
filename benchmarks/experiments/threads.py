"""Threads: the same answers with one thread and with two, by operator and size of batch."""

from __future__ import annotations

import statistics
from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

import vedette as vd
from benchmarks.experiments.moving import make_sets
from benchmarks.harness import AnswersDifferError, Bench, experiment, time_once
from benchmarks.peers.band_join import band_clusters
from benchmarks.peers.mtb_join import as_rows
from benchmarks.peers.vedette import boxes
from benchmarks.peers.window_join import STREAMS, range_joins
from benchmarks.workloads import Workload, intervals, small_boxes

N_THREADS = 2
TIMES, LARGE = 1.8, 100_000  # the target, for batches of at least this many rows
NOT_SLOWER = 0.95  # smaller batches take one thread; the rest is noise
QUERIES = 100_000
STEP = 0.1  # of a key's value, in widths of a query


class Work(ABC):
    """Batches of one operator with a number of threads. Equal seeds give equal batches."""

    def __init__(self, threads: int) -> None:
        self.threads = threads

    def prepare(self) -> None:  # noqa: B027  most are always ready
        """Prepare the next batch; not timed."""

    @abstractmethod
    def run(self) -> Any:
        """The timed part: the answer about the next batch."""


@experiment("threads")
def threads(bench: Bench) -> None:
    """One thread compared with two: match, border monitoring and the joins, by size of batch."""
    for case, n_rows, make in _cases(bench):
        _compare(bench, case, n_rows, make)


def _cases(bench: Bench) -> Iterator[tuple[str, int, Any]]:
    """The words, the rows of a batch, and the class with its workload."""
    n_queries = bench.size(QUERIES, 5_000)
    rows = bench.some((1_000, 10_000, LARGE, 10 * LARGE)) if not bench.quick else (1_000, 40_000)
    for n_rows in rows:
        for n_matches in (1, 10):
            words = f"match, one field, {_some(n_matches, 'match', 'matches')} a row"
            yield words, n_rows, partial(MatchWork, *_boxes(intervals(n_queries, n_rows, n_matches)))
        yield (
            "match, two fields, 5 matches a row",
            n_rows,
            partial(MatchWork, *_boxes(small_boxes(n_queries, n_rows, 5))),
        )
    n_rows = bench.size(2 * LARGE, 40_000)
    yield "match, residuals", n_rows, partial(MatchWork, *_residuals(bench.size(20_000, 500), n_rows))
    queries = _ranges(n_queries)
    for n_rows in (bench.size(10_000, 1_000), bench.size(2 * LARGE, 40_000)):
        yield "border, steps of a tenth of the width", n_rows, partial(BorderWork, queries, n_rows)
    n_rows = bench.size(LARGE, 20_000)
    yield "window join", n_rows, partial(WindowWork, bench.size(1_000, 50), n_rows)
    yield "band join", n_rows, partial(BandWork, bench.size(1_000, 100), n_rows)
    yield "moving join, initial join", n_rows, partial(MovingWork, n_rows // 2)


def _compare(bench: Bench, case: str, n_rows: int, make: Any) -> None:
    """Compare answers, then time both in turns."""
    works = {n: make(n) for n in (1, N_THREADS)}
    seconds: dict[int, list[float]] = {n: [] for n in works}
    n_turns = bench.repeats * (1 if n_rows >= 10 * LARGE else 3 if n_rows >= LARGE else 20)
    for turn in range(n_turns):
        found = {n: _next(work).run() for n, work in works.items()}  # also for compilation, caches and memory
        _check(case, found)
        found.clear()
        for n in list(works) if turn % 2 else list(works)[::-1]:
            seconds[n].append(time_once(_next(works[n]).run))
    words = f"{case}, batches of {_some(n_rows, 'row', 'rows')}"
    medians = {n: statistics.median(runs) for n, runs in seconds.items()}
    for n, taken in medians.items():
        bench.record("threads", words, _some(n, "thread", "threads"), taken, ratio=taken / medians[1], n_rows=n_rows)
    faster, (measure, bound) = medians[1] / medians[N_THREADS], _goal(n_rows)
    bench.verdict("threads", words, measure, faster, bound, "at least")


def _next(work: Work) -> Work:
    """The work, ready for its next batch."""
    work.prepare()
    return work


def _goal(n_rows: int) -> tuple[str, float]:
    if n_rows >= LARGE:
        return f"times faster with {N_THREADS} threads", TIMES
    return f"times faster with {N_THREADS} threads, small batches", NOT_SLOWER


def _check(case: str, found: dict[int, Any]) -> None:
    """Raise AnswersDifferError unless both answers are the same, in the same order."""
    one, several = found[1], found[N_THREADS]
    if isinstance(one, pa.Table):
        is_same = one.equals(several)
    else:
        is_same = np.array_equal(one.starts, several.starts) and np.array_equal(one.positions, several.positions)
    if not is_same:
        raise AnswersDifferError(f"{case}: {N_THREADS} threads answer otherwise than one")


def _some(n: int, one: str, several: str) -> str:
    return f"{n:,} {one if n == 1 else several}"


def _boxes(workload: Workload) -> tuple[Any, Any]:
    """A set of boxes, and rows."""
    queries = vd.QuerySet(", ".join(f"{field} double" for field in workload.fields))
    queries.add_boxes(np.arange(workload.n_queries), boxes(workload), closed="both")
    return queries, dict(zip(workload.fields, workload.rows, strict=True))


def _residuals(n_queries: int, n_rows: int) -> tuple[Any, Any]:
    """A set with about three candidates a row, half of which a residual keeps, and rows."""
    random = np.random.default_rng(41)
    queries = vd.QuerySet("x double, s string")
    ends = [(i / n_queries, (i + 3) / n_queries) for i in range(n_queries)]
    texts = [f"x BETWEEN {low} AND {high} AND length(s) > {i % 5}" for i, (low, high) in enumerate(ends)]
    queries.add_many(range(n_queries), texts)
    strings = np.array(["a" * n for n in range(6)])[random.integers(0, 6, n_rows)]
    return queries, {"x": random.random(n_rows), "s": pa.array(strings)}


def _ranges(n_queries: int) -> Any:
    """A set of ranges for keys that move; ten contain a value."""
    queries = vd.QuerySet("k bigint, t bigint, x double")
    lows = np.random.default_rng(43).random(n_queries)
    queries.add_boxes(np.arange(n_queries), {"x": (lows, lows + 10 / n_queries)})
    return queries


class MatchWork(Work):
    def __init__(self, queries: Any, rows: Any, threads: int) -> None:
        super().__init__(threads)
        self.queries, self.rows = queries, rows

    def run(self) -> Any:
        return self.queries.match(self.rows, threads=self.threads)


class BorderWork(Work):
    """Each key moves a little in every batch."""

    def __init__(self, queries: Any, n_keys: int, threads: int) -> None:
        super().__init__(threads)
        self.random = np.random.default_rng(42)
        self.monitor = queries.border(key="k", time="t", threads=threads)
        self.keys, self.values = self.random.permutation(n_keys), self.random.random(n_keys)
        self.step, self.time = STEP * 10 / len(queries), 0

    def prepare(self) -> None:
        self.time += 1
        moved = self.values + self.random.normal(0, self.step, len(self.values))
        self.values = np.clip(moved, 0, 1)
        self.rows = {"k": self.keys, "t": np.full(len(self.keys), self.time), "x": self.values}

    def run(self) -> pa.Table:
        return self.monitor.step(self.rows)


class WindowWork(Work):
    """Ranges and bands over windows of 10,000 rows; as many new rows on both sides."""

    def __init__(self, n_queries: int, n_rows: int, threads: int) -> None:
        super().__init__(threads)
        window, self.n_new, self.position = 10_000, n_rows // 2, 0
        self.workload = range_joins(n_queries, window, self.n_new, 0.01, 0.02)
        schema = "id bigint, x0 double, x1 double"
        queries = vd.JoinQuerySet(left=schema, right=schema)
        queries.add_many(np.arange(n_queries), self.workload.texts(), rows=window)
        self.join = queries.window(left_id="id", right_id="id", threads=threads)

    def prepare(self) -> None:
        start, self.position = self.position, self.position + self.n_new
        self.rows = {}
        for number, stream in enumerate(STREAMS):
            x0, x1 = self.workload.take(number, start, self.position)
            self.rows[stream] = {"id": np.arange(start, self.position), "x0": x0, "x1": x1}

    def run(self) -> pa.Table:
        return self.join.step(**self.rows)


class BandWork(Work):
    """As many values on one side, then on the other, with 20 pairs each."""

    def __init__(self, n_bands: int, n_rows: int, threads: int) -> None:
        super().__init__(threads)
        workload = band_clusters(n_rows, n_bands, 100, n_rows, 20, 0.1)
        bands = vd.BandQuerySet()
        bands.add_many(np.arange(n_bands), workload.lows, workload.highs)
        self.join = bands.monitor(threads=threads)
        self.join.insert(left={"id": np.arange(n_rows), "value": workload.values})
        self.state = self.join.save()
        self.rows = {"id": np.arange(n_rows), "value": workload.rows}

    def prepare(self) -> None:
        self.join.load(self.state)

    def run(self) -> pa.Table:
        return self.join.insert(right=self.rows)


class MovingWork(Work):
    def __init__(self, n: int, threads: int) -> None:
        super().__init__(threads)
        sets = make_sets("uniform", n)
        self.a, self.b = (as_rows(np.arange(n), motions) for motions in sets.start())
        self.interval = sets.max_update_interval

    def prepare(self) -> None:
        self.join = vd.MovingJoin(max_update_interval=self.interval, threads=self.threads)

    def run(self) -> Any:
        return self.join.load(a=self.a, b=self.b, time=0)
