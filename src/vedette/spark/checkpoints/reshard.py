"""Writes a checkpoint with another number of shards. The old one is not changed.

The last micro-batch is run again, on a copy of the state before it, by a small stream with the same state variables:
it writes the state that the micro-batch has left, divided into other shards. So Spark itself writes the state, and the
number of the micro-batch stays the same, which matters to sinks that count them. Offsets, commits and logs of sources
are copied.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException
from pyspark.sql import functions as f

from vedette import __version__
from vedette.errors import PipelineError, SnapshotError
from vedette.spark.checkpoints.folder import Folder
from vedette.spark.checkpoints.operator_folder import STATE, copy_before, move_to_operator
from vedette.spark.checkpoints.state import CheckpointState, reading
from vedette.spark.failures import reason_of
from vedette.spark.partitions import PARTITIONS
from vedette.spark.shards.packing import label_shards
from vedette.spark.shards.transform import check_shards, make_seeder
from vedette.spark.shipping.query_sets import worker_function
from vedette.spark.workers.stored_shards import PIECES, SHARES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_WORKER = "vedette.spark.workers.stored_shards"
_SEEDS = "seeds"
_LOGS = ("offsets", "commits")
_NO_OFFSET = "-"  # of a source that has not begun, as Spark writes it
_SETTINGS = {
    # The whole state is written at once, and nothing remains for a background task.
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "false",
    # Pieces are up to 4 MB, and an Arrow batch is limited to 2 GB.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "64",
}


@dataclass(frozen=True)
class Resharded:
    """What was done."""

    n_before: int
    n_after: int
    batch: int


def reshard(spark: SparkSession, checkpoint: str, output: str, shards: int) -> Resharded:
    """Write a checkpoint with another number of shards to a new folder. The stream must not run meanwhile."""
    check_shards(shards)
    old, new = Folder(spark, checkpoint.rstrip("/")), Folder(spark, output.rstrip("/"))
    work = Folder(spark, f"{new.path}.resharding")
    if new.exists():
        raise PipelineError(f"{output} already exists; choose a folder that does not exist", option="output")
    if work.exists():
        raise PipelineError(f"{work.path} exists: another reshard is running or was interrupted; if it was, delete it")
    state = CheckpointState.find(spark, checkpoint)
    _check_finished(old, checkpoint, state.batch)
    _check_partitions(old, state.batch)
    plan = _make_plan(state, shards)
    try:
        copy_before(old, work, state.operator, state.batch)
        _write_seeds(state, plan, shards, f"{work.address}/{_SEEDS}")
        _run_again(spark, old, work, state)
        _finish(old, work, new, state)
    finally:
        work.delete()
    return Resharded(plan["n_before"], shards, state.batch)


def _make_plan(state: CheckpointState, shards: int) -> dict[str, Any]:
    """What workers need to know. Raises an error if the state cannot be divided so."""
    heads = state.heads()
    if not heads:
        raise SnapshotError(f"the checkpoint {state.checkpoint} has no shard with state; start with a new checkpoint")
    facts = heads[min(heads)]["facts"]
    if any(head["facts"] != facts for head in heads.values()):
        raise SnapshotError(f"the shards of {state.checkpoint} were written by different streams")
    if facts.get("layout") == "one" and shards != 1:
        raise PipelineError(f"is {shards}, but the join needs one shard: its layout is 'one'", option="shards")
    if facts["shards"] == shards:
        raise PipelineError(f"is {shards}, which the checkpoint already has", option="shards")
    kinds = {head["kind"] for head in heads.values()}
    versions = [head["versions"][1] for head in heads.values() if "versions" in head]
    return {
        "sender": __version__,
        "first": min(heads),
        "n_before": facts["shards"],
        "shards": shards,
        "facts": facts | {"shards": shards},
        "kind": kinds.pop() if len(kinds) == 1 else "",  # otherwise all shards follow the queries again
        "version": min(versions) if versions else None,
    }


def _check_finished(folder: Folder, checkpoint: str, batch: int) -> None:
    """Raise SnapshotError if a later micro-batch has begun.

    A sink of files may already have its answers. Spark then skips it, and continues with the state that it has left.
    """
    if max(map(int, _numbers(folder.list("offsets")))) > batch:
        raise SnapshotError(
            f"the stream of {checkpoint} was interrupted in micro-batch {batch + 1}; start it once more until that is "
            f"finished, for example with the trigger availableNow, then reshard"
        )


def _check_partitions(folder: Folder, batch: int) -> None:
    """Raise SnapshotError if the state before a micro-batch has another number of partitions than the state after."""
    numbers = [_read_metadata(folder, each)["conf"].get(PARTITIONS) for each in (batch - 1, batch) if each >= 0]
    if len(set(numbers)) > 1:
        raise SnapshotError(
            f"Spark changed the number of partitions in the last micro-batch, {batch}; run one more micro-batch first"
        )


def _write_seeds(state: CheckpointState, plan: dict[str, Any], shards: int, path: str) -> None:
    """Write the pieces of the new shards, and a row for each old one, whose state will be deleted."""
    divide, join = (worker_function(_WORKER, name, __version__, plan) for name in ("divide_shards", "join_shares"))
    shares = state.pieces().mapInArrow(divide, SHARES)
    in_order = shares.repartition("target").sortWithinPartitions("target", "source", "piece")
    seeds = in_order.mapInArrow(join, PIECES)
    labels = [[label, 0, 0, None] for label in label_shards(plan["n_before"])]
    old = state.spark.createDataFrame(labels, PIECES)
    with reading(state.checkpoint):
        seeds.union(old).write.parquet(path)


def _run_again(spark: SparkSession, old: Folder, work: Folder, state: CheckpointState) -> None:
    """Run the last micro-batch with the seeds as its rows."""
    old.copy("metadata", work)  # the id of the stream
    if state.batch > 0:
        previous = _read_metadata(old, state.batch - 1)
        commit = _with_ids(old.read(f"commits/{state.batch - 1}"), lambda ids: {"0": ids[str(state.operator)]})
        for before in range(max(state.batch - 2, 0), state.batch):  # Spark reads the last two
            work.write(f"offsets/{before}", f"v1\n{json.dumps(previous)}\n{_NO_OFFSET}")
            work.write(f"commits/{before}", commit)
    settings = _SETTINGS | (_read_metadata(old, 0)["conf"] if state.batch == 0 else {})
    seeds: DataFrame = spark.readStream.schema(f"{PIECES}").parquet(f"{work.address}/{_SEEDS}")
    if state.is_timed:
        early = f.timestamp_millis(f.lit(0))  # does not advance the watermark
        seeds = seeds.withColumn("time", early).withWatermark("time", "0 seconds").drop("time")
    mode = "EventTime" if state.is_timed else "None"
    done = seeds.groupBy("shard").transformWithStateInPandas(make_seeder(state.is_timed), "shard int", "Append", mode)
    with _set(spark, settings):
        writer = done.writeStream.format("noop").option("checkpointLocation", work.address)
        try:
            writer.trigger(availableNow=True).start().awaitTermination()
        except PySparkException as error:
            raise SnapshotError(f"the state cannot be written: {reason_of(error)}") from None
    if max(map(int, _numbers(work.list("commits")))) != state.batch:
        raise SnapshotError(f"Spark did not run micro-batch {state.batch} again; the state is not as expected")


def _finish(old: Folder, work: Folder, new: Folder, state: CheckpointState) -> None:
    """Replace the logs of the small stream by those of the stream, and give the folder its name."""
    seeded = json.loads(work.read(f"commits/{state.batch}").split("\n", 1)[1]).get("stateUniqueIds") or {}
    own = {str(state.operator): seeded.get("0")}
    commit = _with_ids(old.read(f"commits/{state.batch}"), lambda ids: ids | own)
    for name in work.list():
        if name != STATE:
            work.delete(name)
    for name in old.list():
        if name not in (STATE, *_LOGS):
            old.copy(name, work)
    for log in _LOGS:
        for name in _numbers(old.list(log)):
            if log == "offsets" or int(name) < state.batch:
                old.copy(f"{log}/{name}", work)
    work.write(f"commits/{state.batch}", commit)
    move_to_operator(old, work, new, state.operator)
    work.rename(new)


def _with_ids(commit: str, change: Callable[[dict[str, Any]], dict[str, Any]]) -> str:
    """A commit with other ids of the state's files, by operator. Some versions of Spark, as configured, record them."""
    version, text = commit.split("\n", 1)
    content = json.loads(text)
    if content.get("stateUniqueIds"):
        content["stateUniqueIds"] = change(content["stateUniqueIds"])
    return f"{version}\n{json.dumps(content, separators=(',', ':'))}"


def _read_metadata(folder: Folder, batch: int) -> dict[str, Any]:
    """The metadata of a micro-batch: its watermark, its time and its settings."""
    version, *lines = folder.read(f"offsets/{batch}").splitlines()
    if version != "v1" or not lines:
        raise SnapshotError(f"the log of offsets has format {version!r}, which this version of vedette does not know")
    return json.loads(lines[0])  # type: ignore[no-any-return]


def _numbers(names: list[str]) -> list[str]:
    return [name for name in names if name.isdecimal()]


@contextmanager
def _set(spark: SparkSession, settings: dict[str, str]) -> Iterator[None]:
    """Settings of the session inside the block."""
    before = {name: spark.conf.get(name, None) for name in settings}
    try:
        for name, value in settings.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, earlier in before.items():
            if earlier is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, earlier)
