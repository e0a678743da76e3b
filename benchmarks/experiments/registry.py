"""The registry: how fast queries are added, what following them costs a pipeline, and a registry of five million."""

from __future__ import annotations

import contextlib
import os
import shutil
import statistics
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import vedette as vd
from benchmarks.harness import AnswersDifferError, Bench, experiment, time_once
from benchmarks.streams import WARM_UP, batch_files, write_batches
from benchmarks.workloads import DOMAIN, MARKET_SCHEMA, market_texts
from tests.postgres import UnavailableError, cluster
from vedette import spark as vs

ADDED_A_SECOND, MOST_UNCHANGED, MOST_CHANGED, MOST_BASES = 10_000, 1.05, 1.15, 1.5
N_CHANGES, N_VERSIONS = 1_000, 10  # between two micro-batches
N_WORKERS = 4
ROWS = "k bigint, x double, t bigint"


@experiment("registry-add")
def registry_add(bench: Bench) -> None:
    """`add_many` of 100k texts of five shapes, on SQLite and on PostgreSQL."""
    n = bench.size(100_000, 5_000)
    texts = market_texts(n)
    for case, registry in _databases(bench):
        names = [f"alerts-{run}" for run in range(3)]
        seconds = []
        for name in names:
            registry.create(name, schema=MARKET_SCHEMA)
            seconds.append(time_once(partial(registry.add_many, name, np.arange(n), texts)))
        for place in (0, n // 2, n - 1):
            if registry.get(names[0], place).text != texts[place]:
                raise AnswersDifferError(f"query {place} of the registry has another text than was added")
        bench.record("registry-add", case, "Registry.add_many", statistics.median(seconds), n_queries=n)
        rate = n / statistics.median(seconds)
        bench.verdict("registry-add", case, "queries a second", rate, ADDED_A_SECOND, "at least")


@experiment("registry-follow")
def registry_follow(bench: Bench) -> None:
    """Micro-batches of 1M rows matched with 1M queries: a frozen set, a followed one, and one that changes."""
    n_queries, n_rows = bench.size(1_000_000, 20_000), bench.size(1_000_000, 50_000)
    n_batches = WARM_UP + bench.size(9, 3)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        registry = vd.Registry(f"sqlite:///{folder / 'alerts.db'}")
        for each in ("still", "changing"):
            registry.create(each, schema=ROWS)
            registry.add_many(each, np.arange(n_queries), _ranges(n_queries, 1))
            registry.compact(each)
        still, changing = registry.follow("still"), registry.follow("changing")
        write_batches(folder / "rows", _rows(n_rows, n_batches))
        spark = vs.session("benchmarks")
        contestants: dict[str, tuple[Callable[..., Any], Callable[[], None]]] = {
            "vs.match of a set": (vs.match(still.open(still.current_version()), output="list"), _nothing),
            "following, unchanged": (vs.match(still, output="list"), _nothing),
            "following, 1,000 changes a batch": (vs.match(changing, output="list"), _changer(registry, n_queries)),
        }
        first = spark.read.parquet(str(batch_files(folder / "rows")[0]))
        found = [first.transform(each).selectExpr("sum(size(queries))").first() for each, _ in contestants.values()]
        if len(set(found)) > 1:
            raise AnswersDifferError(f"the sets find different numbers of queries: {found}")
        seconds = _time_in_turns(spark, folder, contestants)
        spark.stop()
    case = f"{n_queries:,} queries, {n_rows:,} rows a batch"
    medians = {name: statistics.median(runs[WARM_UP:]) for name, runs in seconds.items()}
    for name, runs in seconds.items():
        bench.record("registry-follow", case, name, medians[name], runs=runs[WARM_UP:], n_rows=n_rows)
    frozen, unchanged, changed = medians.values()
    bench.verdict("registry-follow", case, "times a set that is not followed", unchanged / frozen, MOST_UNCHANGED)
    measure = "times a set that is not followed, with 1,000 changes since the last batch"
    bench.verdict("registry-follow", case, measure, changed / frozen, MOST_CHANGED)


@experiment("registry-workers")
def registry_workers(bench: Bench) -> None:
    """What four workers of one host that follow 1M queries keep of the base, as proportional set size."""
    n_queries = bench.size(1_000_000, 20_000)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        registry = vd.Registry(f"sqlite:///{folder / 'alerts.db'}")
        registry.create("alerts", schema=ROWS)
        registry.add_many("alerts", np.arange(n_queries), _ranges(n_queries, 1))
        registry.compact("alerts")
        spark = vs.session("benchmarks", master=f"local[{N_WORKERS}]")
        rows = spark.range(200_000 * N_WORKERS, numPartitions=N_WORKERS).selectExpr(
            "id AS k", "double(id) AS x", "id AS t"
        )
        rows.transform(vs.match(registry.follow("alerts"), output="list")).write.format("noop").mode("append").save()
        sizes = _mapped_sizes(".queries")
        spark.stop()
    if len(sizes) < N_WORKERS:
        raise AnswersDifferError(f"{len(sizes)} workers have the base, and not {N_WORKERS}")
    n_bytes = max(size for size, _ in sizes)
    case = f"{n_queries:,} queries, {len(sizes)} workers"
    bench.note("registry-workers", case, "MB, the base", n_bytes / 1e6)
    shared = sum(proportional for _, proportional in sizes)
    bench.verdict(
        "registry-workers", case, "times the base, in the memory of all workers", shared / n_bytes, MOST_BASES
    )


@experiment("registry-large")
def registry_large(bench: Bench) -> None:
    """A registry of five million queries on SQLite: add, list, one change, compact, follow."""
    n, n_chunk = bench.size(5_000_000, 50_000), bench.size(500_000, 10_000)
    case = f"{n:,} queries"
    with tempfile.TemporaryDirectory() as name:
        registry = vd.Registry(f"sqlite:///{Path(name, 'alerts.db')}")
        registry.create("alerts", schema=ROWS)
        texts = _ranges(n, 1)

        def add() -> None:
            for start in range(0, n, n_chunk):
                registry.add_many("alerts", np.arange(start, start + n_chunk), texts[start : start + n_chunk])
                bench.say(f"{start + n_chunk:,} queries added")

        bench.record("registry-large", case, f"add_many, {n_chunk:,} at a time", time_once(add), n_queries=n)
        bench.note("registry-large", case, "MB, the database", Path(name, "alerts.db").stat().st_size / 1e6)
        bench.record("registry-large", case, "compact", time_once(lambda: registry.compact("alerts")))
        followed = registry.follow("alerts")
        opened: list[Any] = []
        now = followed.current_version()
        bench.record("registry-large", case, "open", time_once(lambda: opened.append(followed.open(now))))
        if len(opened[0]) != n:
            raise AnswersDifferError(f"{len(opened[0]):,} queries stand in the set that is followed, and not {n:,}")
        pages = [time_once(lambda at=at: registry.list("alerts", after=at, limit=100)) for at in (0, n // 2, n - 200)]
        bench.record("registry-large", case, "list a page of 100", statistics.median(pages))
        one = [
            time_once(lambda k=k: registry.add("alerts", n + k, "x BETWEEN 1 AND 2", metadata={"owner": "ann"}))
            for k in range(9)
        ]
        bench.record("registry-large", case, "add one", statistics.median(one))
        now = followed.current_version()
        bench.record("registry-large", case, "follow nine changes", time_once(lambda: followed.advance(opened[0], now)))
        hits = opened[0].match({"k": np.arange(2), "x": np.array([1.5, -5.0]), "t": np.arange(2)})
        if set(range(n, n + 9)) - set(hits.ids.slice(0, int(hits.starts[1])).to_pylist()):
            raise AnswersDifferError("the set that is followed lacks queries that were added")


def _databases(bench: Bench) -> Iterator[tuple[str, vd.Registry]]:
    with tempfile.TemporaryDirectory() as folder:
        yield "SQLite", vd.Registry(f"sqlite:///{Path(folder, 'alerts.db')}")
    try:
        yield "PostgreSQL", vd.Registry(cluster().new_database())
    except UnavailableError as error:
        bench.say(f"PostgreSQL is left out: {error}")


def _ranges(n: int, n_matches: float, seed: int = 1) -> list[str]:
    lows = np.random.default_rng(seed).uniform(0, DOMAIN, n)
    width = n_matches * DOMAIN / n
    return [f"x BETWEEN {low!r} AND {low + width!r}" for low in lows.tolist()]


def _rows(n_rows: int, n_batches: int) -> Iterator[pa.Table]:
    random = np.random.default_rng(2)
    for _ in range(n_batches):
        yield pa.table({"k": np.arange(n_rows), "x": random.uniform(0, DOMAIN, n_rows), "t": np.arange(n_rows)})


def _nothing() -> None:
    """Nothing changes."""


def _changer(registry: vd.Registry, n_queries: int) -> Callable[[], None]:
    """What removes and adds so many queries, under several versions, each time it is called."""
    first, step = [0], N_CHANGES // N_VERSIONS // 2

    def change() -> None:
        for _ in range(N_VERSIONS):
            at = first[0]
            first[0] += step
            with registry.change("changing") as one:
                one.remove_many(np.arange(at, at + step))
                one.add_many(np.arange(n_queries + at, n_queries + at + step), _ranges(step, 1e-3, seed=at))

    return change


def _time_in_turns(
    spark: Any, folder: Path, contestants: dict[str, tuple[Callable[..., Any], Callable[[], None]]]
) -> dict[str, list[float]]:
    """Seconds of each micro-batch of each stream; they get their files, and so run, in turns."""
    files = batch_files(folder / "rows")
    schema = spark.read.parquet(str(files[0])).schema
    streams = {}
    for number, (name, (transform, change)) in enumerate(contestants.items()):
        place = folder / f"stream-{number}"
        place.mkdir()
        rows = spark.readStream.schema(schema).parquet(str(place))
        writer = (
            transform(rows)
            .writeStream.format("noop")
            .option("checkpointLocation", str(folder / f"checkpoint-{number}"))
        )
        streams[name] = place, change, writer.trigger(processingTime="100 milliseconds").start()
    for number, file in enumerate(files):
        for place, change, query in streams.values():
            change()
            shutil.copy(file, place / f".{number}")
            os.rename(place / f".{number}", place / file.name)
            query.processAllAvailable()
    seconds = {}
    for name, (_, _, query) in streams.items():
        runs = [each["durationMs"]["addBatch"] / 1000 for each in query.recentProgress if each["numInputRows"]]
        query.stop()
        if len(runs) != len(files):
            raise AnswersDifferError(f"the stream of {name} ran {len(runs)} batches of {len(files)}")
        seconds[name] = runs
    return seconds


def _mapped_sizes(ending: str) -> list[tuple[int, int]]:
    """Of each other process that maps a file with this ending: the bytes it maps, and its share of those in memory."""
    found = []
    for process in Path("/proc").iterdir():
        if not process.name.isdigit() or int(process.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            sizes = [0, 0]
            is_ours = False
            for line in (process / "smaps").read_text().splitlines():
                words = line.split()
                if "-" in words[0] and not words[0].endswith(":"):
                    is_ours = words[-1].endswith(ending)
                elif is_ours and words[0] in ("Size:", "Pss:"):
                    sizes[words[0] == "Pss:"] += 1024 * int(words[1])
            if sizes[0]:
                found.append((sizes[0], sizes[1]))
    return found
