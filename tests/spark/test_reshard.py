"""Checkpoints with another number of shards: streams continue from them, and nothing is lost or duplicated."""

from __future__ import annotations

import json
import shutil

import pytest
from pyspark.errors import StreamingQueryException
from spark import bands, fleets, quotes, ticks
from spark.streams import read_stream, write_batches

import vedette as vd
from vedette import spark as vs
from vedette.errors import PipelineError, SnapshotError
from vedette.spark.checkpoints.reshard import reshard
from vedette.spark.checkpoints.state import CheckpointState, read_shards
from vedette.spark.partitions import PARTITIONS

TIMES = {"left_time": "ts", "right_time": "ts"}
N_BATCHES = 12


def cut(rows, n):
    size = -(-rows.num_rows // n)
    return [rows.slice(start, size) for start in range(0, rows.num_rows, size)]


def make_border():
    alerts = ticks.make_queries()
    make = lambda rows, **more: rows.transform(vs.border(alerts, key="symbol", time="ts", **more))  # noqa: E731
    return {"rows": cut(ticks.make_rows(360), N_BATCHES)}, make


def make_expiring():
    """With timers: keys expire, and enters wait for their dwell time."""
    alerts, options = ticks.make_queries(), {"expire_after": "25 seconds", "dwell": "8 seconds", "margin": 1}

    def make(rows, **more):
        return rows.transform(vs.border(alerts, key="symbol", time="ts", **options, **more))

    return {"rows": cut(ticks.make_rows(360), N_BATCHES)}, make


def make_window_join(queries, **options):
    pairs = quotes.make_joins(queries)
    sides = {name: cut(quotes.make_rows(120, seed), N_BATCHES) for seed, name in enumerate(("left", "right"))}
    return sides, lambda left, right, **more: vs.window_join(left, right, pairs, **TIMES, **options, **more)


def make_band_join():
    queries = bands.make_bands()
    sides = {
        name: [bands.to_table(rows) for rows in bands.make_batches(N_BATCHES, 9, seed)]
        for seed, name in enumerate(("left", "right"), start=1)
    }
    return sides, lambda left, right, **more: vs.band_join(left, right, queries, op="op", **more)


def make_moving_join():
    sets = {
        name: [fleets.to_table(rows) for rows in fleets.cut(fleets.make_rows(24, 4, seed), N_BATCHES)]
        for seed, name in enumerate(("a", "b"), start=1)
    }
    return sets, lambda a, b, **more: vs.moving_join(a, b, max_update_interval=fleets.INTERVAL, **more)


OPERATORS = {
    "border": make_border,
    "expiring": make_expiring,
    "equality": lambda: make_window_join(quotes.EQUATED),
    "grid": lambda: make_window_join(quotes.ANY),
    "band join": make_band_join,
    "moving join": make_moving_join,
}
WATERMARKED = ("expiring", "equality")


class Stream:
    """A stream of files, which stops after some micro-batches and continues from a checkpoint."""

    def __init__(self, spark, directory, name):
        self.spark, self.directory, self.checkpoint = spark, directory, directory / "checkpoint"
        self.sources, self.make = OPERATORS[name]()
        self.watermark = "2 seconds" if name in WATERMARKED else None

    def run(self, first, last, *, sink=None, **options):
        """Process the micro-batches from `first` until before `last`. Returns all answers so far.

        They are in a sink of files, or in a folder of each micro-batch.
        """
        for source, batches in self.sources.items():
            write_batches(batches[first:last], self.directory / source, first)
        rows = [read_stream(self.spark, self.directory / source, self.watermark) for source in self.sources]
        writer = self.make(*rows, **options).writeStream
        if sink == "batches":
            writer = writer.foreachBatch(lambda frame, number: frame.write.parquet(f"{self.directory}/out/{number}"))
        else:
            writer = writer.format("parquet").option("path", str(self.directory / "out"))
        writer = writer.option("checkpointLocation", str(self.checkpoint)).trigger(availableNow=True)
        writer.start().awaitTermination()
        paths = list((self.directory / "out").glob("[0-9]*")) if sink == "batches" else [self.directory / "out"]
        answers = [tuple(row) for path in paths for row in self.spark.read.parquet(str(path)).collect()]
        return sorted(answers, key=repr)

    def reshard(self, shards):
        """Continue with another number of shards. The old checkpoint is deleted: nothing may refer to it."""
        other = self.checkpoint.with_name(f"with-{shards}-shards")
        done = reshard(self.spark, str(self.checkpoint), str(other), shards)
        shutil.rmtree(self.checkpoint)
        self.checkpoint = other
        return done


@pytest.fixture
def compacted(spark):
    """Spark compacts the logs of files with every second micro-batch, and not with every tenth."""
    names = [f"spark.sql.streaming.{log}.log.compactInterval" for log in ("fileSink", "fileSource")]
    for name in names:
        spark.conf.set(name, "2")
    yield
    for name in names:
        spark.conf.unset(name)


@pytest.mark.usefixtures("compacted")
@pytest.mark.parametrize(
    "name",
    [name if name in ("border", "band join") else pytest.param(name, marks=pytest.mark.matrix) for name in OPERATORS],
)
def test_a_stream_that_is_resharded_gives_the_answers_of_one_that_is_not(spark, tmp_path, name):
    n_batches = 5
    expected = Stream(spark, tmp_path / "whole", name).run(0, n_batches, shards=3)
    stream = Stream(spark, tmp_path / "resharded", name)

    stream.run(0, 3, shards=3)
    assert (stream.reshard(8).n_before, read_shards(spark, str(stream.checkpoint))) == (3, 8)
    answers = stream.run(3, n_batches, checkpoint=stream.checkpoint)

    assert answers == expected
    assert len(answers) > 20


@pytest.mark.matrix
def test_a_stream_continues_after_its_first_micro_batch_and_after_several_reshards(spark, tmp_path):
    expected = Stream(spark, tmp_path / "whole", "expiring").run(0, 6, shards=2)
    stream = Stream(spark, tmp_path / "resharded", "expiring")

    stream.run(0, 1, shards=2)
    stream.reshard(5)
    stream.run(1, 3, shards=5)
    stream.reshard(1)
    stream.run(3, 4, shards=1)
    stream.reshard(3)

    assert stream.run(4, 6, shards=3) == expected


def test_a_followed_set_keeps_its_versions(spark, tmp_path):
    """Keys report queries that were added while their shards changed."""
    registry = vd.Registry(f"sqlite:///{tmp_path}/alerts.db")
    registry.create("alerts", kind="border", schema=ticks.SCHEMA, ids="integer")
    registry.add_many("alerts", list(range(20)), [f"price BETWEEN {n} AND {n + 5}" for n in range(20)])
    follow = vs.border(registry.follow("alerts"), key="symbol", time="ts", shards=2)
    streams = {name: Stream(spark, tmp_path / name, "border") for name in ("whole", "resharded")}
    for stream in streams.values():
        stream.make = lambda rows, **more: rows.transform(follow)
        stream.run(0, 3)
    registry.add_many("alerts", list(range(20, 40)), [f"price BETWEEN {n} AND {n + 5}" for n in range(20, 40)])
    for id_ in range(5):
        registry.remove("alerts", id_)
    expected = streams["whole"].run(3, 6)

    streams["resharded"].reshard(7)
    follow = vs.border(registry.follow("alerts"), key="symbol", time="ts", shards=7)

    assert streams["resharded"].run(3, 6) == expected
    assert {"added", "removed"} <= {row[4] for row in expected}


def add_zones(registry, ids):
    for id_ in ids:
        registry.add("zones", id_, x_low=id_ % 5 - 4, x_high=id_ % 5, y_low=id_ % 3 - 3, y_high=id_ % 3)


@pytest.mark.matrix
def test_zones_stay_in_their_shards(spark, tmp_path):
    registry = vd.Registry(f"sqlite:///{tmp_path}/zones.db")
    registry.create("zones", kind="moving join", dimensions=2, ids="integer")
    streams = {name: Stream(spark, tmp_path / name, "moving join") for name in ("whole", "resharded")}
    add_zones(registry, range(8))
    for stream in streams.values():
        stream.sources.pop("b")
        stream.make = lambda a, **more: vs.moving_join(a, registry.follow("zones"), max_update_interval=6, **more)
        stream.run(0, 4, shards=3)
    streams["resharded"].reshard(8)
    add_zones(registry, range(8, 12))
    expected = streams["whole"].run(4, 8, shards=3)

    assert streams["resharded"].run(4, 8, shards=8) == expected
    assert len(expected) > 50


@pytest.mark.matrix
@pytest.mark.parametrize("place", ["before", "after"])
def test_other_stateful_operators_of_a_stream_keep_their_state(spark, tmp_path, place):
    """Spark numbers the operators of a stream from its end to its sources, or the other way round."""
    streams = {name: Stream(spark, tmp_path / name, "border") for name in ("whole", "resharded")}
    for name, stream in streams.items():
        own = stream.make
        if place == "before":
            stream.make = lambda rows, own=own, **more: own(rows.dropDuplicates(["price", "symbol"]), **more)
        else:
            stream.make = lambda rows, own=own, **more: own(rows, **more).dropDuplicates(["key", "query", "event"])
        stream.run(0, 3, shards=3)
        if name == "resharded":
            stream.reshard(5)
    expected = streams["whole"].run(3, 6, shards=3)

    answers = streams["resharded"].run(3, 6, shards=5)

    if place == "after":  # it keeps any of several equal events
        answers, expected = ([(row[0], *row[2:4]) for row in rows] for rows in (answers, expected))
    assert sorted(answers) == sorted(expected)
    assert len(expected) > 50


# Refusals.


def test_a_stream_that_was_interrupted_in_a_micro_batch_is_refused(spark, tmp_path):
    stream = Stream(spark, tmp_path, "border")
    stream.run(0, 2, shards=2)
    for name in ("1", ".1.crc"):
        (stream.checkpoint / "commits" / name).unlink()

    with pytest.raises(SnapshotError, match="was interrupted in micro-batch 1; start it once more until that is fini"):
        stream.reshard(6)


@pytest.fixture(scope="module")
def stopped(spark, tmp_path_factory):
    """A stream with a checkpoint of 3 shards."""
    stream = Stream(spark, tmp_path_factory.mktemp("stopped"), "border")
    stream.run(0, 2, shards=3)
    return stream


@pytest.mark.parametrize(
    ("shards", "message"),
    [
        (3, "shards is 3, which the checkpoint already has"),
        (0, "shards must be an integer from 1 to 10,000; got 0"),
        (10_001, "shards must be an integer from 1 to 10,000; got 10001"),
    ],
)
def test_an_unsuitable_number_is_refused(spark, stopped, tmp_path, shards, message):
    with pytest.raises(PipelineError, match=message):
        reshard(spark, str(stopped.checkpoint), str(tmp_path / "new"), shards)
    assert list(tmp_path.iterdir()) == []


def test_an_existing_output_is_refused(spark, stopped, tmp_path):
    with pytest.raises(PipelineError, match=f"output {tmp_path} already exists"):
        reshard(spark, str(stopped.checkpoint), str(tmp_path), 4)


@pytest.mark.parametrize("name", ["none", "rows"])
def test_a_folder_that_is_not_a_checkpoint_is_refused(spark, stopped, name):
    with pytest.raises(SnapshotError, match="has no state of a stateful transform; it must have one"):
        reshard(spark, str(stopped.directory / name), str(stopped.directory / "new"), 4)


def test_a_checkpoint_without_state_is_refused(spark, stopped, tmp_path):
    rows = read_stream(spark, stopped.directory / "rows").transform(vs.match(ticks.make_queries()))
    rows.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "c")).trigger(
        availableNow=True
    ).start().awaitTermination()

    with pytest.raises(SnapshotError, match="has no state of a stateful transform"):
        reshard(spark, str(tmp_path / "c"), str(tmp_path / "new"), 4)
    assert read_shards(spark, str(tmp_path / "c")) is None


def test_a_join_that_needs_one_shard_is_refused(spark, tmp_path):
    stream = Stream(spark, tmp_path, "grid")
    stream.run(0, 1, layout="one")

    with pytest.raises(PipelineError, match="shards is 4, but the join needs one shard: its layout is 'one'"):
        stream.reshard(4)


# The number of shards.


def test_a_checkpoint_keeps_its_number_of_shards(spark, tmp_path):
    """Without `shards` and with another number of partitions, as if the stream were started on another machine."""
    stream = Stream(spark, tmp_path, "border")
    stream.run(0, 1, shards=3)
    checkpoint = str(stream.checkpoint)

    assert read_shards(spark, checkpoint) == 3
    stream.run(1, 2, checkpoint=stream.checkpoint)
    stream.run(2, 3, shards=3, checkpoint=f"{checkpoint}/")
    assert {head["facts"]["shards"] for head in CheckpointState.find(spark, checkpoint).heads().values()} == {3}

    with pytest.raises(PipelineError, match=r"shards is 5, but the checkpoint .* has 3 shards; omit the option, or"):
        stream.run(3, 4, shards=5, checkpoint=checkpoint)
    with pytest.raises(StreamingQueryException, match="the checkpoint has 3 shards but the stream has 16; pass sh"):
        stream.run(3, 4)


def test_a_new_stream_has_eight_shards_per_core_for_any_number_of_partitions(spark, tmp_path):
    before = spark.conf.get(PARTITIONS)
    spark.conf.set(PARTITIONS, "3")
    try:
        stream = Stream(spark, tmp_path, "border")
        stream.run(0, 1, checkpoint=stream.checkpoint)
        state = CheckpointState.find(spark, str(stream.checkpoint))
    finally:
        spark.conf.set(PARTITIONS, before)

    assert (state.facts()["shards"], state.n_partitions) == (16, 3)


@pytest.mark.parametrize(("name", "n_shards"), [("grid", 2), ("equality", 16)])
def test_a_grid_has_one_shard_per_core(spark, tmp_path, name, n_shards):
    stream = Stream(spark, tmp_path, name)
    stream.run(0, 1)

    assert read_shards(spark, str(stream.checkpoint)) == n_shards


# What is shown.


@pytest.mark.fast
def test_the_shards_of_a_stream_are_shown(spark, tmp_path, run, run_with_summary):
    stream = Stream(spark, tmp_path, "border")
    stream.run(0, 2, shards=3)
    n_keys = len(set(stream.sources["rows"][0]["symbol"].to_pylist() + stream.sources["rows"][1]["symbol"].to_pylist()))

    code, out, err = run_with_summary("state", "show", stream.checkpoint, "--json")

    assert code == 0, err
    shown = json.loads(out)
    assert [shown[name] for name in ("operator", "batch", "partitions", "shards")] == ["border monitor", 1, 2, 3]
    shards = shown["by_shard"]
    assert sum(shard["keys"] for shard in shards) == shown["rows"] == n_keys
    assert sum(shard["bytes"] for shard in shards) == shown["bytes"] > 500
    assert {shard["version"] for shard in shards} == {1}
    assert max(shard["skew"] for shard in shards) == shown["skew"] >= 1
    assert sum(shard["skew"] for shard in shards) == pytest.approx(3, abs=0.02)
    assert {shard["partition"] for shard in shards} <= {0, 1}
    assert err.startswith("vedette: border monitor with 3 shards, 3 with state, in 2 partitions, after micro-batch 1: ")
    lines = run("state", "show", stream.checkpoint, "--csv")[1].splitlines()
    assert lines[0] == "shard,partition,keys,rows,version,entries,bytes,skew"
    assert len(lines) == 4


@pytest.mark.matrix
@pytest.mark.parametrize(("name", "parts"), [("grid", 1), ("band join", 1), ("moving join", 1)])
def test_the_rows_of_joins_are_shown_with_their_copies(spark, tmp_path, run, name, parts):
    stream = Stream(spark, tmp_path, name)
    stream.run(0, 2, shards=4)

    code, out, err = run("state", "show", stream.checkpoint, "--json")

    assert code == 0, err
    shown = json.loads(out)
    assert (shown["shards"], len(shown["by_shard"])) == (4, 4)
    assert shown["rows"] == sum(shard["rows"] for shard in shown["by_shard"]) > 0
    assert {shard["keys"] for shard in shown["by_shard"]} == {None}


def test_a_folder_without_state_is_refused_in_one_sentence(spark, tmp_path, run):
    code, out, err = run("state", "show", tmp_path / "none")

    assert (code, out) == (2, "")
    assert err == f"vedette: the checkpoint {tmp_path}/none has no state of a stateful transform; it must have one\n"


def test_the_command_writes_a_checkpoint(spark, stopped, tmp_path, run, summary_of):
    summary = summary_of("state", "reshard", stopped.checkpoint, "--shards", 7, "--output", tmp_path / "new")

    assert summary.startswith("3 shards became 7 after micro-batch ")
    assert read_shards(spark, str(tmp_path / "new")) == 7
    code, _, err = run("state", "reshard", stopped.checkpoint, "--shards", 7, "--output", tmp_path / "new")
    assert (code, err) == (
        2, f"vedette: --output {tmp_path}/new already exists; choose a folder that does not exist\n"
    )  # fmt: skip


# Spark's own repartitioning of a checkpoint.


@pytest.mark.matrix
@pytest.mark.parametrize("name", ["expiring", "band join"])
def test_shards_and_partitions_of_a_checkpoint_change_independently(spark, tmp_path, name):
    expected = Stream(spark, tmp_path / "whole", name).run(0, 6, shards=3)
    stream = Stream(spark, tmp_path / "other", name)
    stream.run(0, 2, shards=3, sink="batches")

    stream.reshard(8)
    spark._streamingCheckpointManager.repartition(str(stream.checkpoint), 5)
    with pytest.raises(SnapshotError, match=r"Spark changed the number of partitions in the last micro-batch, \d"):
        stream.reshard(4)
    stream.run(2, 4, shards=8, sink="batches")
    assert CheckpointState.find(spark, str(stream.checkpoint)).n_partitions == 5
    stream.reshard(4)

    assert stream.run(4, 6, shards=4, sink="batches") == expected


@pytest.mark.matrix
def test_a_sink_of_files_cannot_be_read_after_spark_has_repartitioned(spark, tmp_path):
    """Spark leaves a gap in the log of the sink. If this test fails, Spark has changed, and so must docs/spark.md."""
    stream = Stream(spark, tmp_path, "border")
    stream.run(0, 2, shards=3)
    spark._streamingCheckpointManager.repartition(str(stream.checkpoint), 3)

    with pytest.raises(Exception, match=r"_spark_metadata/2.* does(n't| not) exist"):
        stream.run(2, 3, shards=3)
