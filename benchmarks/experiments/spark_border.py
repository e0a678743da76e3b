"""Border monitoring inside Spark: a stream of micro-batches against passing the same rows through Python unchanged."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import vedette as vd
from benchmarks.harness import AnswersDifferError, Bench, experiment
from benchmarks.peers.spark_join import pass_through
from benchmarks.streams import WARM_UP, batch_files, time_batches, write_batches
from benchmarks.workloads import DOMAIN
from vedette import spark as vs

FENCES, RADIUS_KM = 23_000, 5.0
KM_PER_DEGREE = 111.2


@experiment("spark-border")
def spark_border(bench: Bench) -> None:
    """`vs.border` in warm micro-batches with few events, without a sink, against an identity `mapInArrow`."""
    n_rows, n_keys = bench.size(1_000_000, 50_000), bench.size(100_000, 5_000)
    n_queries = bench.size(100_000, 5_000)
    queries = _intervals(n_queries, 0.001)
    with tempfile.TemporaryDirectory() as folder:
        write_batches(Path(folder), _walks(n_rows, n_keys, WARM_UP + bench.repeats, DOMAIN * 1e-7))
        spark = vs.session("benchmarks")
        case = f"{n_rows:,} rows a batch, {n_keys:,} keys, {n_queries:,} queries"
        n_events = _check_events(spark, Path(folder), queries)
        bench.say(f"{case}: {n_events:,} events in the first two batches")
        seconds = {
            "vs.border": time_batches(spark, [Path(folder)], vs.border(queries, key="k", time="t")),
            "identity mapInArrow": time_batches(spark, [Path(folder)], pass_through),
        }
        for name, value in seconds.items():
            bench.record("spark-border", case, name, value, n_queries=n_queries, n_rows=n_rows)
        ratio = seconds["vs.border"] / seconds["identity mapInArrow"]
        bench.verdict("spark-border", case, "times the identity `mapInArrow`", ratio, 2.5)
        spark.stop()


@experiment("spark-state")
def spark_state(bench: Bench) -> None:
    """A micro-batch that touches 10k keys, with 1M keys in the state and with 10k."""
    n_touched, n_many = bench.size(10_000, 1_000), bench.size(1_000_000, 50_000)
    queries, n_warm = _intervals(bench.size(100_000, 5_000), 0.001), bench.size(4 * WARM_UP, WARM_UP)
    spark = vs.session("benchmarks")
    seconds = {}
    for n_keys in (n_touched, n_many):
        with tempfile.TemporaryDirectory() as folder:
            write_batches(Path(folder), _touches(n_keys, n_touched, n_warm + 2 * bench.repeats))
            name = f"{n_keys:,} keys in the state"
            transform = vs.border(queries, key="k", time="t")
            seconds[name] = time_batches(spark, [Path(folder)], transform, n_warm=n_warm)
        bench.record("spark-state", "10k keys touched", name, seconds[name], n_queries=len(queries), n_rows=n_touched)
    few, many = seconds.values()
    bench.verdict("spark-state", "10k keys touched", "times the batch with 10k keys in the state", many / few, 2.0)
    spark.stop()


@experiment("geofences")
def geofences(bench: Bench) -> None:
    """23,000 circles of 5 km, enter and exit, position updates through `vs.border`: updates per second."""
    n_fences, n_rows = bench.size(FENCES, 2_000), bench.size(1_000_000, 20_000)
    rng = np.random.default_rng(23)
    queries = vd.QuerySet("k bigint, lon double, lat double, t bigint")
    xs, ys = rng.uniform(-20, 20, n_fences), rng.uniform(-20, 20, n_fences)
    radius = RADIUS_KM / KM_PER_DEGREE
    texts = [
        f"ST_DWithin(ST_Point(lon, lat), ST_Point({x:.6f}, {y:.6f}), {radius:.6f})" for x, y in zip(xs, ys, strict=True)
    ]
    queries.add_many(np.arange(n_fences), texts)
    with tempfile.TemporaryDirectory() as folder:
        write_batches(Path(folder), _vehicles(n_rows, n_rows // 10, WARM_UP + bench.repeats))
        spark = vs.session("benchmarks")
        case = f"{n_fences:,} circles of {RADIUS_KM:g} km, {n_rows // 10:,} vehicles"
        n_events = _check_events(spark, Path(folder), queries)
        bench.say(f"{case}: {n_events:,} events in the first two batches")
        seconds = time_batches(spark, [Path(folder)], vs.border(queries, key="k", time="t"))
        bench.record("geofences", case, "vs.border", seconds, n_queries=n_fences, n_rows=n_rows)
        bench.note("geofences", case, "updates a second", n_rows / seconds)
        spark.stop()


def _intervals(n_queries: int, share: float) -> Any:
    rng = np.random.default_rng(1)
    lows = rng.uniform(0, DOMAIN, n_queries)
    queries = vd.QuerySet("k bigint, x double, t bigint")
    queries.add_boxes(np.arange(n_queries), {"x": (lows, lows + share * DOMAIN)})
    return queries


def _walks(n_rows: int, n_keys: int, n_batches: int, step: float) -> Iterator[pa.Table]:
    """Keys in turns, each a random walk."""
    rng = np.random.default_rng(2)
    at = rng.uniform(0, DOMAIN, n_keys)
    keys = np.tile(np.arange(n_keys), n_rows // n_keys)
    for batch in range(n_batches):
        steps = rng.normal(0, step, (n_rows // n_keys, n_keys))
        values = at + np.cumsum(steps, axis=0)
        at = values[-1]
        times = np.arange(n_rows) // n_keys + batch * (n_rows // n_keys)
        yield pa.table({"k": keys, "x": values.ravel(), "t": times})


def _touches(n_keys: int, n_touched: int, n_batches: int) -> Iterator[pa.Table]:
    """All keys once, then some of them in every batch."""
    rng = np.random.default_rng(3)
    values = rng.uniform(0, DOMAIN, n_keys)
    yield pa.table({"k": np.arange(n_keys), "x": values, "t": np.zeros(n_keys, np.int64)})
    for batch in range(1, n_batches):
        keys = rng.permutation(n_keys)[:n_touched]
        values[keys] += rng.normal(0, DOMAIN * 1e-7, n_touched)
        yield pa.table({"k": keys, "x": values[keys], "t": np.full(n_touched, batch)})


def _vehicles(n_rows: int, n_keys: int, n_batches: int) -> Iterator[pa.Table]:
    """Vehicles on straight lines at 20 m/s, a position every 30 seconds."""
    rng = np.random.default_rng(4)
    x, y = rng.uniform(-20, 20, n_keys), rng.uniform(-20, 20, n_keys)
    heading = rng.uniform(0, 2 * np.pi, n_keys)
    step = 0.6 / KM_PER_DEGREE
    times = np.arange(n_rows // n_keys)[:, None]
    for batch in range(n_batches):
        moments = times + batch * len(times)
        lon, lat = x + moments * step * np.cos(heading), y + moments * step * np.sin(heading)
        keys = np.tile(np.arange(n_keys), len(times))
        yield pa.table({"k": keys, "lon": lon.ravel(), "lat": lat.ravel(), "t": np.repeat(moments[:, 0], n_keys)})


def _check_events(spark: SparkSession, folder: Path, queries: Any) -> int:
    """Compare Spark's events of the first two batches with a monitor in this process. Returns their number."""
    files = [str(path) for path in batch_files(folder)[:2]]
    sums = "count(*) AS n", "sum((key % 1009) * (query % 9973) * if(event = 'enter', 1, 2) + time) AS total"
    found = spark.read.parquet(*files).transform(vs.border(queries, key="k", time="t")).selectExpr(*sums).first()
    assert found is not None
    monitor = queries.border(key="k", time="t")
    n, total = 0, 0
    for file in files:
        events = monitor.step(pq.read_table(file))
        key, query = (events[name].cast(pa.int64()).to_numpy() for name in ("key", "query"))
        weight = np.where(pc.equal(events["event"].cast(pa.string()), "enter").to_numpy(), 1, 2)
        n, total = (
            n + events.num_rows,
            total + int(np.sum((key % 1009) * (query % 9973) * weight + events["time"].to_numpy())),
        )
    if (found["n"], found["total"]) != (n, total):
        raise AnswersDifferError(f"Spark finds {found['n']:,} events and this process {n:,}")
    return n
