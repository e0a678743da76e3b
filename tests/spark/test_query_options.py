"""Options and metadata of the queries of followed sets, on batches and streams; one report for all keys."""

from __future__ import annotations

import time

import numpy as np
import pytest
from spark.streams import read_stream, run_stream, write_batches
from spark.test_following import SCHEMA, rows_of

import vedette as vd
from vedette import spark as vs

COLUMNS = ["key", "time", "query", "event", "reason", "held_back", "owner"]
OPTIONS = [
    {},
    {"cooldown": "20 seconds"},
    {"once": True},
    {"dwell": "5 seconds"},
    {"margin": 1.0, "cooldown": "5 seconds"},
]


@pytest.fixture
def registry(tmp_path):
    made = vd.Registry(f"sqlite:///{tmp_path / 'alerts.db'}")
    made.create("alerts", kind="border", schema=SCHEMA, ids="string")
    yield made
    made.close()


def random_rows(seed, n=60, start=0):
    random = np.random.default_rng(seed)
    symbols, prices = random.integers(0, 4, n), random.integers(0, 9, n)
    return rows_of(*((f"S{symbols[i]}", float(prices[i]), start + i) for i in range(n)))


def put(registry, queries, number, options, owner):
    """Add or replace a query in the registry, and in a set of this process."""
    given = {"metadata": {"owner": owner}, **options}
    name, text = f"q{number}", f"price BETWEEN {number} AND {number + 3}"
    if name in queries:
        registry.replace("alerts", name, text, **given)
        queries.replace(name, text, **given)
    else:
        registry.add("alerts", name, text, **given)
        queries.add(name, text, **given)


def from_spark(events):
    rows = events.select(*COLUMNS).collect()
    return sorted((row[0], row[1].timestamp(), *row[2:]) for row in rows)


def from_table(table):
    rows = table.select(COLUMNS).to_pylist()
    return sorted(
        (*(row[name] for name in COLUMNS[:1]), row["time"].timestamp(), *list(row.values())[2:]) for row in rows
    )


@pytest.fixture
def both(registry):
    """The same queries in the registry and in this process."""
    queries = vd.QuerySet(SCHEMA, name="alerts")
    for number, options in enumerate(OPTIONS):
        put(registry, queries, number, options, f"owner {number}")
    return registry, queries


def test_a_batch_has_the_options_and_metadata_of_a_followed_set(spark, both, tmp_path):
    registry, queries = both
    rows = random_rows(1)
    write_batches([rows], tmp_path / "rows")
    transform = vs.border(registry.follow("alerts"), key="symbol", time="ts", metadata=["owner"])
    events = spark.read.parquet(str(tmp_path / "rows")).transform(transform)
    monitor = queries.border(key="symbol", time="ts", metadata=["owner"])
    wanted = from_table(monitor.step(rows, advance=False))
    assert from_spark(events) == wanted
    assert len({event[2] for event in wanted}) == len(OPTIONS)
    assert any(event[5] for event in wanted)


def test_options_change_between_the_runs_of_a_stream(spark, both, tmp_path):
    registry, queries = both
    monitor = queries.border(key="symbol", time="ts", metadata=["owner"])
    wanted = []
    for batch in range(3):
        if batch:
            for number in range(len(OPTIONS)):
                put(registry, queries, number, OPTIONS[(number + batch) % len(OPTIONS)], f"owner {number} {batch}")
        rows = random_rows(batch, start=100 * batch)
        write_batches([rows], tmp_path / "rows", first=batch)
        stream = read_stream(spark, tmp_path / "rows", watermark="1 hour")
        transform = vs.border(registry.follow("alerts"), key="symbol", time="ts", metadata=["owner"], shards=3)
        events = run_stream(spark, stream.transform(transform), tmp_path)
        wanted += from_table(monitor.step(rows, advance=False))
        assert from_spark(events) == sorted(wanted)


FIRST = [("c", 0.0, 5), ("e", 0.0, 4), ("d", 0.0, 4), ("a", 9.0, 1)]
LATER = [(key, 0.0, 10) for key in "abfgh"]


def start_once(registry):
    registry.add("alerts", "low", "price < 1", once="query")
    registry.add("alerts", "all", "price < 5")


def reports(events, query="low"):
    return [(row.key, row.event) for row in events.where(f"query = '{query}'").collect()]


def test_a_followed_query_is_reported_once_by_all_shards_and_batches_and_then_removed(spark, registry, tmp_path):
    start_once(registry)
    write_batches([rows_of(*FIRST), rows_of(*LATER)], tmp_path / "rows")
    followed = registry.follow("alerts")
    transform = vs.border(followed, key="symbol", time="ts", shards=4)
    batch = spark.read.parquet(str(tmp_path / "rows")).transform(transform)
    assert reports(batch) == [("d", "enter")]
    assert "version" in batch.columns
    events = run_stream(spark, read_stream(spark, tmp_path / "rows").transform(transform), tmp_path)
    assert reports(events) == [("d", "enter")]
    assert len(reports(events, "all")) == 8
    assert [query.id for query in registry.list("alerts")] == ["all", "low"]  # nothing removes it
    listener = vs.RemoveReported(followed)
    spark.streams.addListener(listener)
    try:
        write_batches([rows_of(("i", 0.0, 20))], tmp_path / "rows", first=2)
        run_stream(spark, read_stream(spark, tmp_path / "rows").transform(transform), tmp_path)
        until = time.monotonic() + 30
        while "low" in registry.find_ids("alerts", ["low"]) and time.monotonic() < until:
            time.sleep(0.1)
    finally:
        spark.streams.removeListener(listener)
    assert [query.id for query in registry.list("alerts")] == ["all"]
    assert reports(events) == [("d", "enter")]
    registry.add("alerts", "low", "price < 1", once="query")
    write_batches([rows_of(("j", 0.0, 30), ("k", 0.0, 31))], tmp_path / "rows", first=3)
    run_stream(spark, read_stream(spark, tmp_path / "rows").transform(transform), tmp_path)
    assert sorted(reports(spark.read.parquet(str(tmp_path / "answers")))) == [("d", "enter"), ("j", "enter")]


def test_a_repeated_batch_reports_the_same_also_after_the_removal(spark, registry, tmp_path):
    start_once(registry)
    write_batches([rows_of(*FIRST)], tmp_path / "rows")
    found = []

    def run():
        transform = vs.border(registry.follow("alerts"), key="symbol", time="ts", shards=4)
        events = read_stream(spark, tmp_path / "rows").transform(transform)
        writer = events.writeStream.foreachBatch(lambda frame, number: found.append((number, reports(frame))))
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True)
        query = writer.start()
        query.awaitTermination()
        return query.id

    def forget_commit():
        """As if the driver had died before the commit."""
        for name in ("0", ".0.crc"):
            (tmp_path / "checkpoint" / "commits" / name).unlink()

    stream = run()
    forget_commit()
    run()
    assert registry.remove_reported("alerts", {stream: 0}) == ["low"]
    assert registry.remove_reported("alerts", {stream: 0}) == []
    forget_commit()
    run()
    assert found == [(0, [("d", "enter")])] * 3


def test_a_query_that_is_added_to_a_running_stream_is_reported_by_one_shard(spark, registry, tmp_path):
    registry.add("alerts", "all", "price < 5")
    transform = vs.border(registry.follow("alerts"), key="symbol", time="ts", shards=4)
    registry.add("alerts", "low", "price < 1", once="query")
    write_batches([rows_of(*FIRST), rows_of(*LATER)], tmp_path / "rows")
    events = run_stream(spark, read_stream(spark, tmp_path / "rows").transform(transform), tmp_path)
    ((key, event),) = reports(events)
    assert key in "cde"
    assert event == "enter"


def test_a_stream_needs_a_followed_set_for_one_report(spark, registry, tmp_path):
    start_once(registry)
    write_batches([rows_of(*FIRST)], tmp_path / "rows")
    local = vd.QuerySet(SCHEMA)
    local.add("low", "price < 1", once="query")
    batch = spark.read.parquet(str(tmp_path / "rows")).transform(vs.border(local, key="symbol", time="ts"))
    assert reports(batch) == [("d", "enter")]
    assert "low" in local
    for queries in (local, registry.follow("alerts", version=2)):
        with pytest.raises(vd.PipelineError, match="once 'query' on a stream needs a set that is followed"):
            read_stream(spark, tmp_path / "rows").transform(vs.border(queries, key="symbol", time="ts"))
    with pytest.raises(vd.PipelineError, match="needs a set that is followed"):
        vs.RemoveReported(local)
