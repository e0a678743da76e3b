"""The registry: how fast queries are added, and a registry of five million. See registry_follow for following."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow.parquet as pq

import vedette as vd
from benchmarks.experiments.registry_follow import ROWS, FedStream, make_rows, range_texts
from benchmarks.harness import AnswersDifferError, Bench, experiment, time_once
from benchmarks.streams import batch_files, write_batches
from benchmarks.workloads import MARKET_SCHEMA, market_texts
from tests import postgres
from vedette import spark as vs

ADDED_A_SECOND = 10_000
N_OWNERS, RARE, N_RARE = 1_000, "zoe", 5  # whose queries they are; one of them has few
PAGE = 100


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
                raise AnswersDifferError(f"query {place} of the registry has another text than the added one")
        registry.close()
        bench.record("registry-add", case, "Registry.add_many", statistics.median(seconds), runs=seconds, n_queries=n)
        rate = n / statistics.median(seconds)
        bench.verdict("registry-add", case, "queries a second", rate, ADDED_A_SECOND, "at least")


def _databases(bench: Bench) -> Iterator[tuple[str, vd.Registry]]:
    with tempfile.TemporaryDirectory() as folder:
        yield "SQLite", vd.Registry(f"sqlite:///{Path(folder, 'alerts.db')}")
    for fsync in ("off", "on"):
        try:
            # Settings that the tests' cluster turns off for speed are turned on again at its start.
            with mock.patch.dict(postgres._SETTINGS, fsync=fsync, full_page_writes=fsync):
                cluster = postgres.Cluster()
        except postgres.UnavailableError as error:
            bench.say(f"PostgreSQL is skipped: {error}")
            return
        try:
            yield f"PostgreSQL, fsync {fsync}", vd.Registry(cluster.new_database())
        finally:
            cluster.delete()


@experiment("registry-large")
def registry_large(bench: Bench) -> None:
    """A registry of five million queries on SQLite: add, list, one change, compact, follow, here and in Spark."""
    n, n_chunk = bench.size(5_000_000, 50_000), bench.size(500_000, 10_000)
    record = partial(bench.record, "registry-large", f"{n:,} queries")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        registry = vd.Registry(f"sqlite:///{folder / 'alerts.db'}")
        registry.create("alerts", schema=ROWS)
        record(f"add_many, {n_chunk:,} at a time", _time_adding(bench, registry, n, n_chunk), n_queries=n)
        bench.note("registry-large", f"{n:,} queries", "MB, the database", registry.stats().database_bytes / 1e6)
        record("compact", time_once(lambda: registry.compact("alerts")))
        followed = registry.follow("alerts")
        opened: list[Any] = []
        now = followed.current_version()
        record("open", time_once(lambda: opened.append(followed.open(now))))
        if len(opened[0]) != n:
            raise AnswersDifferError(f"the followed set has {len(opened[0]):,} queries instead of {n:,}")
        given: dict[str, Any] = {"text": "x BETWEEN -2 AND -1", "metadata": {"owner": "ann"}}
        one = [time_once(lambda k=k: registry.add("alerts", _id(n + k), **given)) for k in range(9)]
        record("add one", statistics.median(one))
        now = followed.current_version()
        record("advance by nine changes", time_once(lambda: followed.advance(opened[0], now)))
        if sorted(opened[0].match_one({"k": 0, "x": -1.5, "t": 0})) != [_id(n + k) for k in range(9)]:
            raise AnswersDifferError("the followed set lacks added queries")
        _time_lists(bench, registry, n)
        _time_stream(bench, registry, n, folder)


def _id(k: int) -> str:
    return f"alert-{k:08}"


def _time_adding(bench: Bench, registry: vd.Registry, n: int, n_chunk: int) -> float:
    """Seconds to add queries of many owners, and a few of a rare one, without the time to make their texts."""
    texts, owners = range_texts(n, 1), [{"owner": f"owner-{k}"} for k in range(N_OWNERS)]
    seconds = 0.0
    for start in range(0, n, n_chunk):
        chunk = range(start, start + n_chunk)
        metadata = [{"owner": RARE} if k % (n // N_RARE) == 1 else owners[k % N_OWNERS] for k in chunk]
        add = partial(registry.add_many, "alerts", [_id(k) for k in chunk], texts[start : start + n_chunk])
        seconds += time_once(partial(add, metadata=metadata))
        bench.say(f"{start + n_chunk:,} queries added")
    return seconds


def _time_lists(bench: Bench, registry: vd.Registry, n: int) -> None:
    """Pages by position, by prefix, by metadata, and of removed queries."""
    n_removed = min(1_000, n // 50)
    registry.remove_many("alerts", [_id(k * (n // n_removed)) for k in range(n_removed)])
    last = _id(n // 2)
    n_own = min(PAGE, n // N_OWNERS)
    pages: dict[str, tuple[int, dict[str, Any]]] = {
        "list the first page of 100": (PAGE, {}),
        "list a page of 100 from the middle": (PAGE, {"after": last}),
        "list by prefix, a page of 100": (PAGE, {"prefix": last[:-3]}),
        "list by an owner of one in 1,000, a page of 100": (n_own, {"metadata": {"owner": "owner-7"}}),
        f"list by an owner of {N_RARE} queries": (N_RARE, {"metadata": {"owner": RARE}}),
        "list what was removed, a page of 100": (PAGE, {"state": "removed"}),
        "list what is parked, which is nothing": (0, {"state": "parked"}),
    }
    for words, (n_found, options) in pages.items():
        page = partial(registry.list, "alerts", limit=PAGE, **options)
        if len(found := page()) != n_found:
            raise AnswersDifferError(f"{words}: {len(found)} queries instead of {n_found}")
        seconds = statistics.median(time_once(page) for _ in range(3))
        bench.record("registry-large", f"{n:,} queries", words, seconds)


def _time_stream(bench: Bench, registry: vd.Registry, n: int, folder: Path) -> None:
    """Micro-batches of two workers: the first, which starts them and opens the set, and later ones."""
    n_rows, n_changes = bench.size(300_000, 20_000), bench.size(1_000, 100)
    write_batches(folder / "rows", make_rows(n_rows, 4))
    files = batch_files(folder / "rows")
    spark = vs.session("benchmarks", master="local[2]")
    followed = registry.follow("alerts")
    stream = FedStream(spark, folder / "stream", files[0], vs.match(followed, output="list"))
    for place, words in enumerate(("first", "second", "third", f"fourth, after {n_changes:,} changes")):
        if place == 3:
            ids = [_id(2 * n + k) for k in range(n_changes)]
            registry.add_many("alerts", ids, range_texts(n_changes, 1e-3, seed=3))
        seconds, what = stream.feed(files[place]), f"a micro-batch that follows, the {words}"
        bench.record("registry-large", f"{n:,} queries", what, seconds, n_rows=n_rows)
    stream.stop()
    rows = spark.read.parquet(str(files[0])).transform(vs.match(followed, output="list"))
    found_in_spark = rows.selectExpr("sum(size(queries)) AS n").first()
    spark.stop()
    hits = followed.open(followed.current_version()).match(pq.read_table(files[0]))
    if found_in_spark is None or found_in_spark["n"] != int(hits.starts[-1]):
        raise AnswersDifferError(f"Spark finds {found_in_spark} matches and this process {int(hits.starts[-1]):,}")
