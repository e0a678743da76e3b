"""Following a registry: its cost for the micro-batches of a stream."""

from __future__ import annotations

import math
import os
import statistics
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

import vedette as vd
from benchmarks.harness import AnswersDifferError, Bench, experiment
from benchmarks.streams import WARM_UP, batch_files, write_batches
from benchmarks.workloads import DOMAIN
from vedette import spark as vs
from vedette.registry.snapshots.bases import FEW_CHANGES, GROWN

MOST_UNCHANGED, MOST_CHANGED = 1.05, 1.15
N_CHANGES, N_VERSIONS = 1_000, 10  # between two micro-batches
N_FILES, N_KEYS = 8, 100_000
MAX_ROUNDS, ROUNDS_AFTER = 80, 5  # micro-batches until a new base exists, and after that
ROWS = "k bigint, x double, t bigint"
FROZEN, UNCHANGED, CHANGED = "vs.match of a set", "following, unchanged", "following, {:,} changes a batch"
TIMES, TIMES_CHANGED = "times a set that is not followed", "{}, with {:,} changes since the last batch"
Transform = Callable[[DataFrame], DataFrame]


@experiment("registry-follow")
def registry_follow(bench: Bench) -> None:
    """Micro-batches of 1M rows matched with 1M queries: a frozen set, a followed one, and one that changes."""
    n_queries, n_rows = bench.size(1_000_000, 20_000), bench.size(1_000_000, 50_000)
    n_changes = bench.size(N_CHANGES, 200)
    n_pairs = max(FEW_CHANGES, n_queries // GROWN) // n_changes - WARM_UP  # after these a new base is due
    changed, measure = CHANGED.format(n_changes), TIMES_CHANGED.format(TIMES, n_changes)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        registry = vd.Registry(f"sqlite:///{folder / 'alerts.db'}")
        for each in ("still", "changing"):
            add_ranges(registry, each, n_queries)
        write_batches(folder / "rows", make_rows(n_rows, N_FILES))
        files = batch_files(folder / "rows")
        spark = vs.session("benchmarks")
        still = registry.follow("still")
        transforms: dict[str, Transform] = {
            FROZEN: vs.match(still.open(still.current_version()), output="list"),
            UNCHANGED: vs.match(still, output="list"),
            changed: vs.match(registry.follow("changing"), output="list"),
        }
        _check_alike(spark, files[0], transforms)
        streams = {
            each: FedStream(spark, folder / f"stream-{number}", files[0], transform)
            for number, (each, transform) in enumerate(transforms.items())
        }
        turns = Turns(streams, files, {changed: make_changer(registry, "changing", n_queries, n_changes)})
        for _ in range(WARM_UP):
            turns.run()
        turns.seconds.clear()
        for _ in range(n_pairs):
            turns.run()
        case = f"{n_queries:,} queries, {n_rows:,} rows a batch"
        for each in streams:
            runs = turns.seconds[each]
            bench.record("registry-follow", case, each, statistics.median(runs), runs=runs, n_rows=n_rows)
        _note_pairs(bench, case, TIMES, Pairs.of(turns.seconds[UNCHANGED], turns.seconds[FROZEN]), MOST_UNCHANGED)
        _note_pairs(bench, case, measure, Pairs.of(turns.seconds[changed], turns.seconds[FROZEN]), MOST_CHANGED)
        streams.pop(UNCHANGED).stop()
        _cross_compaction(bench, case, registry, turns, changed, measure)
        spark.stop()


def _check_alike(spark: SparkSession, file: Path, transforms: Mapping[str, Transform]) -> None:
    rows = spark.read.parquet(str(file))
    found = [rows.transform(each).selectExpr("sum(size(queries))").first() for each in transforms.values()]
    if len(set(found)) > 1:
        raise AnswersDifferError(f"the sets find different numbers of queries: {found}")


def _note_pairs(bench: Bench, case: str, measure: str, pairs: Pairs, most: float) -> None:
    bench.verdict("registry-follow", case, f"{measure} (median of {pairs.n} pairs)", pairs.median, most)
    for words, value in (
        ("lower quartile", pairs.quartiles[0]),
        ("upper quartile", pairs.quartiles[1]),
        ("95% interval of the median, from", pairs.interval[0]),
        ("95% interval of the median, to", pairs.interval[1]),
    ):
        bench.note("registry-follow", case, f"{measure} ({words})", value)


def _cross_compaction(bench: Bench, case: str, registry: vd.Registry, turns: Turns, changed: str, measure: str) -> None:
    """Continue until a worker has written a new base in the background and the streams use it."""
    known, turns.seconds = _newest_base(registry, "changing"), {}
    n_after = n_rounds = 0
    while n_after < ROUNDS_AFTER:
        if n_rounds == MAX_ROUNDS:
            bench.say(f"no worker has written a new base in {n_rounds} micro-batches, so this is not measured")
            return
        n_after += _newest_base(registry, "changing") > known
        turns.run()
        n_rounds += 1
    case = f"{case}, while a new base is written and moved to"
    for name in turns.streams:
        bench.record("registry-follow", case, name, statistics.median(turns.seconds[name]), runs=turns.seconds[name])
    pairs = Pairs.of(turns.seconds[changed], turns.seconds[FROZEN])
    bench.note("registry-follow", case, f"{measure} (median of {pairs.n} pairs)", pairs.median)
    bench.note("registry-follow", case, f"{measure} (the greatest of {pairs.n} pairs)", pairs.greatest)
    bench.note("registry-follow", case, "seconds, the longest micro-batch that follows", max(turns.seconds[changed]))


def _newest_base(registry: vd.Registry, name: str) -> int:
    """The version of the newest base of a set."""
    return next(each.last_snapshot or 0 for each in registry.stats().sets if each.info.name == name)


# Streams, sets and rows that other experiments use, too.


class FedStream:
    """A running stream without a sink. It gets its files one by one, and each is a micro-batch."""

    def __init__(self, spark: SparkSession, folder: Path, like: Path, transform: Transform) -> None:
        self._folder = folder / "rows"
        self._folder.mkdir(parents=True)
        self._n_files = 0
        schema = spark.read.parquet(str(like)).schema
        rows = spark.readStream.schema(schema).parquet(str(self._folder)).transform(transform)
        writer = rows.writeStream.format("noop").option("checkpointLocation", str(folder / "checkpoint"))
        self._query = writer.trigger(processingTime="100 milliseconds").start()

    def feed(self, file: Path) -> float:
        """The seconds of a micro-batch of this file, which may be used again."""
        os.link(file, self._folder / f"batch-{self._n_files:04}.parquet")
        self._n_files += 1
        self._query.processAllAvailable()
        reports = [each for each in self._query.recentProgress if each["numInputRows"]]
        n_rows = pq.read_metadata(file).num_rows
        if not reports or reports[-1]["numInputRows"] != n_rows:
            raise AnswersDifferError(f"a micro-batch does not have the {n_rows:,} rows of its file")
        return float(reports[-1]["durationMs"]["addBatch"]) / 1000

    def stop(self) -> None:
        self._query.stop()


@dataclass
class Turns:
    """Streams that get the same files in turns. Their order changes from round to round."""

    streams: dict[str, FedStream]
    files: Sequence[Path]
    before: Mapping[str, Callable[[], None]]  # called before a micro-batch of a stream
    n_rounds: int = 0

    def __post_init__(self) -> None:
        self.seconds: dict[str, list[float]] = {}

    def run(self) -> None:
        """One micro-batch of each stream."""
        names = list(self.streams)
        file = self.files[self.n_rounds % len(self.files)]
        for place in range(len(names)):
            name = names[(self.n_rounds + place) % len(names)]
            if name in self.before:
                self.before[name]()
            self.seconds.setdefault(name, []).append(self.streams[name].feed(file))
        self.n_rounds += 1


@dataclass(frozen=True)
class Pairs:
    """The ratios of runs that were measured in turns."""

    n: int
    median: float
    quartiles: tuple[float, float]
    greatest: float
    interval: tuple[float, float]  # the 95 % interval of the median, from the ranks of the ratios

    @classmethod
    def of(cls, ours: Sequence[float], theirs: Sequence[float]) -> Pairs:
        ratios = sorted(mine / their for mine, their in zip(ours, theirs, strict=True))
        n = len(ratios)
        first = max(0, math.floor((n - 1.96 * math.sqrt(n)) / 2))
        low, median, high = (float(each) for each in np.quantile(ratios, (0.25, 0.5, 0.75)))
        return cls(n, median, (low, high), ratios[-1], (ratios[first], ratios[n - 1 - first]))


def add_ranges(registry: vd.Registry, name: str, n: int, kind: str = "match") -> None:
    """A new set of ranges with its base; a row is in one of them, on average."""
    registry.create(name, kind=kind, schema=ROWS)
    registry.add_many(name, np.arange(n), range_texts(n, 1))
    registry.compact(name)


def range_texts(n: int, n_matches: float, seed: int = 1) -> list[str]:
    lows = np.random.default_rng(seed).uniform(0, DOMAIN, n)
    width = n_matches * DOMAIN / n
    return [f"x BETWEEN {low!r} AND {low + width!r}" for low in lows.tolist()]


def make_rows(n_rows: int, n_batches: int) -> Iterator[pa.Table]:
    random = np.random.default_rng(2)
    for number in range(n_batches):
        at = np.arange(number * n_rows, (number + 1) * n_rows)
        yield pa.table({"k": at % N_KEYS, "x": random.uniform(0, DOMAIN, n_rows), "t": at})


def make_changer(registry: vd.Registry, name: str, n_queries: int, n_changes: int = N_CHANGES) -> Callable[[], None]:
    """A function that removes and adds `n_changes` queries, in several versions, at each call."""
    first, step = [0], n_changes // N_VERSIONS // 2

    def change() -> None:
        for _ in range(N_VERSIONS):
            at = first[0]
            first[0] += step
            with registry.change(name) as one:
                one.remove_many(np.arange(at, at + step))
                one.add_many(np.arange(n_queries + at, n_queries + at + step), range_texts(step, 1e-3, seed=at))

    return change
