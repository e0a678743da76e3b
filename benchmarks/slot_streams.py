"""Streams of the four stateful operators, to compare executors of several slots with executors of one.

Called as `python -m benchmarks.slot_streams FOLDER MASTER SETTINGS [OPERATOR ...]`: runs the streams of the folder, one
after another, in a session with that master, and prints for each operator what its micro-batches reported, as JSON.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

import vedette as vd
from benchmarks.streams import batch_files, write_batches
from vedette import spark as vs

N_SHARDS, N_GRID_SHARDS = 16, 4
NAME = "slots"  # of the observed metrics
PAIR = "id bigint, s bigint, x double, t bigint"


@dataclass(frozen=True)
class Size:
    """How large the streams are. All batches but the first touch a small part of the state."""

    n_state: int  # keys, values or objects of a stream, and rows in a window
    n_touched: int  # per batch
    n_batches: int
    n_queries: int


@dataclass(frozen=True)
class Reports:
    """What the micro-batches of a stream reported, in order."""

    seconds: list[float]
    n_steps: list[int]  # of shards
    n_full: list[int]  # steps that loaded the whole state, or built an index over all of it
    n_answers: list[int]

    def share_full(self, n_first: int) -> float:
        """The share of full steps after the first batches."""
        return sum(self.n_full[n_first:]) / sum(self.n_steps[n_first:])


@dataclass(frozen=True)
class Operator:
    answers: str  # what the operator calls them
    make_sides: Callable[[Size], dict[str, Iterator[pa.Table]]]
    transform: Callable[..., DataFrame]  # of the size and the streams


def write_streams(folder: Path, size: Size) -> None:
    """Write the files of every operator, one per micro-batch."""
    for name, operator in OPERATORS.items():
        (folder / name).mkdir()
        for side, batches in operator.make_sides(size).items():
            write_batches(folder / name / side, batches)
    (folder / "size").write_text(json.dumps(asdict(size)))


def run_streams(spark: SparkSession, folder: Path, names: list[str]) -> dict[str, Reports]:
    """Run the streams that `write_streams` has written, one after another."""
    size = Size(**json.loads((folder / "size").read_text()))
    return {name: _run(spark, folder / name, OPERATORS[name], size) for name in names}


def _run(spark: SparkSession, folder: Path, operator: Operator, size: Size) -> Reports:
    streams = []
    for side in sorted(folder.iterdir()):
        schema = spark.read.parquet(str(batch_files(side)[0])).schema
        streams.append(spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(side)))
    with tempfile.TemporaryDirectory() as checkpoint:
        writer = operator.transform(size, *streams).writeStream.format("noop").option("checkpointLocation", checkpoint)
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
    progress = [each for each in query.recentProgress if each["numInputRows"]]
    counts = [each["observedMetrics"][NAME] for each in progress]
    columns = [[each[name] for each in counts] for name in ("shard_steps", "full_loads", operator.answers)]
    return Reports([each["durationMs"]["addBatch"] / 1000 for each in progress], *columns)


def _border_sides(size: Size) -> dict[str, Iterator[pa.Table]]:
    """All keys once, then some of them in every batch, which move a little."""

    def rows() -> Iterator[pa.Table]:
        rng = np.random.default_rng(1)
        values = rng.random(size.n_state) * 1000
        keys = np.arange(size.n_state)
        for batch in range(size.n_batches):
            values[keys] += rng.normal(0, 0.1, len(keys))
            yield pa.table({"k": keys, "x": values[keys], "t": np.full(len(keys), batch)})
            keys = rng.permutation(size.n_state)[: size.n_touched]

    return {"rows": rows()}


def _border(size: Size, rows: DataFrame) -> DataFrame:
    alerts = vd.QuerySet("k bigint, x double, t bigint")
    lows = np.random.default_rng(2).random(size.n_queries) * 1000
    alerts.add_boxes(np.arange(size.n_queries), {"x": (lows, lows + 1)})
    return rows.transform(vs.border(alerts, key="k", time="t", shards=N_SHARDS, observe=NAME))


def _window_sides(size: Size) -> dict[str, Iterator[pa.Table]]:
    """A full window, then a small part of it in every batch."""

    def rows(seed: int) -> Iterator[pa.Table]:
        rng, start, n_rows = np.random.default_rng(seed), 0, size.n_state
        for _ in range(size.n_batches):
            ids = np.arange(start, start + n_rows)
            symbols, x = rng.integers(0, 1_000, n_rows), rng.random(n_rows) * 100
            yield pa.table({"id": ids, "s": symbols, "x": x, "t": ids})
            start, n_rows = start + n_rows, size.n_touched

    return {"left": rows(3), "right": rows(4)}


def _window_join(size: Size, left: DataFrame, right: DataFrame) -> DataFrame:
    pairs = vd.JoinQuerySet(left=PAIR, right=PAIR)
    n_queries = min(size.n_queries, 100)
    lows = 10 + np.random.default_rng(5).random(n_queries) * 50
    texts = [f"left.s = right.s AND left.x - right.x BETWEEN {low!r} AND {low + 0.01!r}" for low in lows.tolist()]
    pairs.add_many(np.arange(n_queries), texts, within=size.n_state)
    columns = {"left_time": "t", "right_time": "t", "left_id": "id", "right_id": "id"}
    return vs.window_join(left, right, pairs, shards=N_SHARDS, observe=NAME, **columns)


def _band_sides(size: Size) -> dict[str, Iterator[pa.Table]]:
    """All values, then new values for some of the ids."""

    def rows(seed: int) -> Iterator[pa.Table]:
        rng = np.random.default_rng(seed)
        ids = np.arange(size.n_state)
        for _ in range(size.n_batches):
            yield pa.table({"id": ids, "value": rng.random(len(ids)) * 1e6})
            ids = rng.permutation(size.n_state)[: size.n_touched]

    return {"left": rows(6), "right": rows(7)}


def _band_join(size: Size, left: DataFrame, right: DataFrame) -> DataFrame:
    bands, n_queries = vd.BandQuerySet(), min(size.n_queries, 100)
    lows = np.random.default_rng(8).random(n_queries) * 100
    bands.add_many(np.arange(n_queries), lows, lows + 0.01)
    return vs.band_join(left, right, bands, known_id="replace", shards=N_GRID_SHARDS, observe=NAME)


def _moving_sides(size: Size) -> dict[str, Iterator[pa.Table]]:
    """All objects, then a new course of some of them at every time."""

    def rows(seed: int) -> Iterator[pa.Table]:
        rng = np.random.default_rng(seed)
        ids = np.arange(size.n_state)
        for batch in range(size.n_batches):
            n = len(ids)
            columns: dict[str, Any] = {"id": ids, "time": np.full(n, float(batch))}
            for axis in "xy":
                low, speed = rng.random(n) * 10_000, rng.uniform(-1, 1, n)
                columns |= {f"{axis}_low": low, f"{axis}_high": low + 1}
                columns |= {f"v{axis}_low": speed, f"v{axis}_high": speed}
            yield pa.table(columns)
            ids = rng.permutation(size.n_state)[: size.n_touched]

    return {"a": rows(9), "b": rows(10)}


def _moving_join(size: Size, a: DataFrame, b: DataFrame) -> DataFrame:
    return vs.moving_join(a, b, max_update_interval=2.0 * size.n_batches, shards=N_GRID_SHARDS, observe=NAME)


OPERATORS = {
    "border": Operator("events", _border_sides, _border),
    "window join": Operator("pairs", _window_sides, _window_join),
    "band join": Operator("changes", _band_sides, _band_join),
    "moving join": Operator("changes", _moving_sides, _moving_join),
}


def main() -> None:
    folder, master, settings, *names = sys.argv[1:]
    spark = vs.session("slots", master=master, **json.loads(settings))
    reports = run_streams(spark, Path(folder), names or list(OPERATORS))
    spark.stop()
    print(json.dumps({name: asdict(each) for name, each in reports.items()}))


if __name__ == "__main__":
    main()
