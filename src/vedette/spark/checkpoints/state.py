"""Reads the shards of a checkpoint with Spark's own reader of state, locally, on a cluster and through Connect.

The number of shards is recorded in the state itself, in the head of every shard: a checkpoint that is copied or
written by another number of partitions keeps it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from pyspark.errors import PySparkException
from pyspark.sql import functions as f

from vedette import __version__
from vedette.errors import SnapshotError
from vedette.spark.failures import reason_of
from vedette.spark.java_errors import Py4JError
from vedette.spark.shards.stored_shard import HEAD, read_head
from vedette.spark.shipping.query_sets import worker_function
from vedette.spark.workers.stored_shards import DESCRIPTION

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_OPERATOR = "transformWithStateInPandasExec"
_WORKER = "vedette.spark.workers.stored_shards"
_UNESCAPED = "/:@!$&'()*+,;=~"  # in paths of addresses
_VARIABLES = {"head", "pieces"}


@dataclass(frozen=True)
class CheckpointState:
    """The state of a stream's stateful transform after the last committed micro-batch."""

    spark: SparkSession
    checkpoint: str
    operator: int  # Spark's number of the stateful operator
    n_partitions: int
    batch: int
    is_timed: bool

    @classmethod
    def find(cls, spark: SparkSession, checkpoint: str) -> CheckpointState:
        """Raises SnapshotError unless the checkpoint has state of exactly one stateful transform."""
        if not is_readable(checkpoint):
            raise SnapshotError(
                f"Spark cannot read state in the folder {checkpoint!r}, because its path has a space or another "
                f"character that addresses escape"
            )
        found = cls.find_all(spark, checkpoint)
        if len(found) != 1:
            why = "has no state of a stateful transform" if not found else f"has {len(found)} stateful transforms"
            raise SnapshotError(f"the checkpoint {checkpoint} {why}; it must have one")
        return found[0]

    @classmethod
    def find_all(cls, spark: SparkSession, checkpoint: str) -> list[CheckpointState]:
        """The state of each stateful transform of the stream; empty if no micro-batch has finished."""
        with reading(checkpoint):
            if not has_commits(spark, checkpoint):
                return []
            found = spark.read.format("state-metadata").load(checkpoint).collect()
        return [
            cls(
                spark,
                checkpoint,
                row["operatorId"],
                row["numPartitions"],
                row["maxBatchId"],
                json.loads(row["operatorProperties"])["timeMode"] == "EventTime",
            )
            for row in found
            if _is_own(row)
        ]

    def heads(self) -> dict[int, dict[str, Any]]:
        """The heads of all shards, by label."""
        with reading(self.checkpoint):
            rows = self._read("head").selectExpr("key.shard", "value.content").collect()
        return {shard: read_head(content) for shard, content in rows}

    def facts(self) -> dict[str, Any] | None:
        """The facts of the stream, from one shard; None if no shard has state."""
        with reading(self.checkpoint):
            rows = self._read("head").selectExpr("value.content").limit(1).collect()
        return read_head(rows[0][0])["facts"] if rows else None

    def pieces(self, *more: str) -> DataFrame:
        """All pieces of all shards, sorted by shard: shard, entry, piece, content, and more columns."""
        heads = self._read("head").selectExpr(
            "key.shard", f"{HEAD}L AS entry", f"{HEAD} AS piece", "CAST(value.content AS binary) AS content", *more
        )
        pieces = self._read("pieces").selectExpr(
            "key.shard", "user_map_key.entry", "user_map_key.piece", "user_map_value.content", *more
        )
        return heads.union(pieces).repartition("shard").sortWithinPartitions("shard", "entry", "piece")

    def describe(self) -> list[dict[str, Any]]:
        """The shards in the order of their labels, with the columns of DESCRIPTION."""
        plan = {"sender": __version__}
        function = worker_function(_WORKER, "describe_shards", __version__, plan)
        with reading(self.checkpoint):
            rows = self.pieces("partition_id").mapInArrow(function, DESCRIPTION).collect()
        return sorted((row.asDict() for row in rows), key=lambda row: row["shard"])

    def _read(self, variable: str) -> DataFrame:
        reader = self.spark.read.format("statestore").option("operatorId", self.operator)
        return reader.option("stateVarName", variable).option("batchId", self.batch).load(self.checkpoint)


@contextmanager
def reading(checkpoint: str) -> Iterator[None]:
    """Raise SnapshotError, with one sentence, for errors of Spark and of workers in the block."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise SnapshotError(f"cannot read the checkpoint {checkpoint}: {reason_of(error)}") from None


def is_readable(checkpoint: str) -> bool:
    """Whether Spark's reader of state finds the folder. It escapes the path as an address, and then finds nothing."""
    return quote(checkpoint, safe=_UNESCAPED) == checkpoint


def has_commits(spark: SparkSession, checkpoint: str) -> bool:
    """Whether a micro-batch of the checkpoint has finished."""
    path = re.sub(r"([\[\]{}*?\\])", r"\\\1", checkpoint.rstrip("/")) + "/commits"
    try:
        return bool(spark.read.text(path).limit(1).select(f.lit(1)).collect())
    except PySparkException as error:
        if error.getCondition() == "PATH_NOT_FOUND":
            return False
        raise


def read_shards(spark: SparkSession, checkpoint: str) -> int | None:
    """The number of shards that a checkpoint fixes; None if it has no state yet, or if Spark cannot read it."""
    if not is_readable(checkpoint):
        return None
    found = CheckpointState.find_all(spark, checkpoint)
    facts = found[0].facts() if len(found) == 1 else None
    return None if facts is None else int(facts["shards"])


def _is_own(row: Any) -> bool:
    if row["operatorName"] != _OPERATOR or not row["operatorProperties"]:
        return False
    variables = json.loads(row["operatorProperties"])["stateVariables"]
    return {each["stateName"] for each in variables} >= _VARIABLES
