"""Border monitoring of rows that come one by one, or a few at a time."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import vedette as vd
from benchmarks.harness import AnswersDifferError, Bench, experiment

N_KEYS = 2_000
FORMS = ("lists", "arrays")  # dicts of them
SIZES = {10: 150, 100: 300, 1_000: 1_000}  # rows of a step, and the microseconds that it may take
CHECKED_ROWS = 200  # compared with brute force
MEDIAN, SLOWEST = 60, 150  # microseconds for one row

KNOWN, QUIET, MANY, NEW = "known keys", "known keys, no events", "known keys, events in every step", "new keys"
Event = tuple[str, int, int, str]
Rows = dict[str, Any]


@dataclass(frozen=True)
class Zones:
    """Queries over `x` and `y`, with their closed ranges. A query without a range of a field has an infinite one."""

    name: str
    lows: NDArray[np.float64]  # (2, queries)
    highs: NDArray[np.float64]
    move: float  # the mean distance of a move on each field; about half of these moves cause an event

    def make_set(self) -> vd.QuerySet:
        queries = vd.QuerySet("k string, x double, y double, t bigint")
        is_bounded = np.isfinite(self.lows)
        for kind in np.unique(is_bounded, axis=1).T:
            chosen = np.flatnonzero((is_bounded == kind[:, None]).all(axis=0))
            fields = [axis for axis in range(2) if kind[axis]]
            boxes = {"xy"[axis]: (self.lows[axis, chosen], self.highs[axis, chosen]) for axis in fields}
            queries.add_boxes(chosen, boxes, closed="both")
        return queries

    def inside(self, place: NDArray[np.float64]) -> NDArray[np.bool_]:
        return ((self.lows <= place[:, None]) & (place[:, None] <= self.highs)).all(axis=0)


@experiment("border-steps")
def border_steps(bench: Bench) -> None:
    """`border` of one row a step, and of 10 to 1,000 rows, at 100k queries: median and 99th percentile."""
    n_queries, n_steps = bench.size(100_000, 5_000), bench.size(4_000, 40)
    for zones in make_zones(n_queries):
        queries = zones.make_set()
        for keys, factor in ((KNOWN, 1), (QUIET, 1e-4), (MANY, 20), (NEW, 1)):
            for form in FORMS:
                batches = Batches(zones, form, 1, factor, keys == NEW)
                seconds = time_steps(queries, batches, n_steps)
                case = f"{zones.name}, one row, {keys}, {form}"
                median, slowest = _record(bench, case, seconds, n_queries, 1)
                bench.verdict("border-steps", case, "microseconds, median", median, MEDIAN)
                bench.verdict("border-steps", case, "microseconds, 99th percentile", slowest, SLOWEST)
                again = Batches(zones, form, 1, factor, keys == NEW)
                seconds = time_steps(queries, again, n_steps // 2, has_other_work=True)
                for measure, share in (("median", 0.5), ("99th percentile", 0.99)):
                    value = 1e6 * float(np.quantile(seconds, share))
                    bench.note("border-steps", case, f"microseconds, {measure}, with other work between steps", value)
        for n_rows, most in SIZES.items():
            for form in FORMS:
                seconds = time_steps(queries, Batches(zones, form, n_rows), n_steps // 10)
                case = f"{zones.name}, {n_rows:,} rows, {form}"
                median, _ = _record(bench, case, seconds, n_queries, n_rows)
                bench.verdict("border-steps", case, "microseconds, median", median, most)


def make_zones(n: int) -> list[Zones]:
    """Ranges of one field; boxes of two fields; and ranges of one field or the other."""
    source = np.random.default_rng(18)
    starts = source.uniform(0, 1, (2, n))
    lows, highs = np.full((2, n), -np.inf), np.full((2, n), np.inf)
    lows[0], highs[0] = starts[0], starts[0] + 10 / n
    side = n**-0.5
    other = np.arange(n) % 2
    either = [
        np.where(other == np.arange(2)[:, None], ends, out)
        for ends, out in ((starts, -np.inf), (starts + 20 / n, np.inf))
    ]
    return [
        Zones("one field", lows, highs, 0.3 / n),
        Zones("boxes of two fields", starts, starts + side, 0.3 * side),
        Zones("two fields, each query one", *either, 0.3 / n),
    ]


@dataclass
class Batches:
    """Batches of keys that walk at random, each key at most once per batch."""

    zones: Zones
    form: str  # of FORMS
    n_rows: int
    factor: float = 1  # of the length of moves
    are_new: bool = False  # every row has a new key

    def __post_init__(self) -> None:
        self._source = np.random.default_rng(5)
        self._places = self._source.uniform(0, 1, (2, N_KEYS))
        self._names = np.array([f"key-{number}" for number in range(N_KEYS)])
        self._time = 0

    def first(self) -> Rows:
        """The first rows of all keys."""
        return self._make(np.arange(N_KEYS), self._names)

    def next(self) -> Rows:
        self._time += 1
        keys = self._source.choice(N_KEYS, self.n_rows, replace=False)
        self._places[:, keys] += self._source.normal(0, self.zones.move * self.factor, (2, self.n_rows))
        names = self._names[keys]
        return self._make(keys, np.array([f"{name}-{self._time}" for name in names]) if self.are_new else names)

    def _make(self, keys: NDArray[Any], names: NDArray[Any]) -> Rows:
        x, y = self._places[:, keys]
        rows = {"k": names, "x": x, "y": y, "t": np.full(len(keys), self._time)}
        return {name: values.tolist() for name, values in rows.items()} if self.form == "lists" else rows


def time_steps(queries: vd.QuerySet, batches: Batches, n_steps: int, *, has_other_work: bool = False) -> list[float]:
    """Seconds of each step, after some that are compared with brute force.

    Rows are made before. With `has_other_work`, each batch is made between two steps, which leaves less of a step in
    the caches, as the other work of a service does.
    """
    monitor = queries.border(key="k", time="t")
    first = batches.first()
    monitor.step(first)
    places = {key: np.array([x, y]) for key, x, y in zip(first["k"], first["x"], first["y"], strict=True)}
    for _ in range(-(-CHECKED_ROWS // batches.n_rows)):
        rows = batches.next()
        found, expected = set(_read(monitor.step(rows))), set(_find_events(batches.zones, rows, places))
        if found != expected:
            raise AnswersDifferError(f"{len(found)} events and {len(expected)} by brute force, {batches}")
    for _ in range(n_steps // 10):
        monitor.step(batches.next())
    seconds = []
    made = (batches.next() for _ in range(n_steps))
    for rows in made if has_other_work else list(made):
        start = time.perf_counter()
        monitor.step(rows)
        seconds.append(time.perf_counter() - start)
    return seconds


def _find_events(zones: Zones, rows: Rows, places: dict[str, NDArray[np.float64]]) -> Iterator[Event]:
    """The events of rows, comparing each with every query."""
    for key, x, y, moment in zip(*(rows[name] for name in "kxyt"), strict=True):
        new, old = np.array([x, y]), places.get(str(key))
        is_inside, was_inside = zones.inside(new), zones.inside(old) if old is not None else False
        places[str(key)] = new
        for query in np.flatnonzero(is_inside != was_inside).tolist():
            yield str(key), int(moment), query, "enter" if is_inside[query] else "exit"


def _read(events: Any) -> Iterator[Event]:
    for event in events.to_pylist():
        yield event["key"], event["time"], event["query"], event["event"]


def _record(bench: Bench, case: str, seconds: list[float], n_queries: int, n_rows: int) -> tuple[float, float]:
    median, slowest = statistics.median(seconds), float(np.quantile(seconds, 0.99))
    bench.record("border-steps", case, "Vedette", median, n_queries=n_queries, n_rows=n_rows, p99_seconds=slowest)
    return 1e6 * median, 1e6 * slowest
