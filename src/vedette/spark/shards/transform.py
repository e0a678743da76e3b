"""Shards on the driver: sends rows to shards, and returns their answers.

On a stream, a stateful operator stores each shard's monitor in Spark's state store. On a batch, each shard is replayed
from its first row to its last. Border monitoring and all joins use this.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pyspark
from pyspark.sql import functions as f
from pyspark.sql import types as t
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from vedette import __version__
from vedette.errors import PipelineError
from vedette.settings import settings
from vedette.spark.bad_rows import Judged
from vedette.spark.checks import quoted
from vedette.spark.declared import refused_in_flow, remember_columns
from vedette.spark.observation import COUNTED, observed, with_report
from vedette.spark.partitions import count_cores, count_partitions, warn_of_many
from vedette.spark.shards import packing
from vedette.spark.shipping.kernels import Sent, send_kernels
from vedette.spark.shipping.query_sets import worker_function

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame

MOST_SHARDS = 10_000
SHARDS_PER_CORE = 8  # of a stream: skew evens out, and the state fits more cores later
# Spark sends a function above a megabyte as a broadcast variable, which its stateful Python runner does not load.
STREAM_INLINE_BYTES = 256_000
_WORKER = "vedette.spark.workers.shard"
_STORED = "vedette.spark.workers.stored_shards"
_PACKED = t.StructType(  # packed rows; not a text, which Spark would have to parse
    [
        *(t.StructField(name, t.IntegerType()) for name in ("shard", *packing.ORDER)),
        t.StructField("payload", t.BinaryType()),
    ]
)


def check_shards(shards: Any) -> None:
    """Raise PipelineError unless this is a number of shards, or None."""
    if shards is not None and (
        isinstance(shards, bool) or not isinstance(shards, int) or not 1 <= shards <= MOST_SHARDS
    ):
        raise PipelineError(f"must be an integer from 1 to {MOST_SHARDS:,}; got {shards!r}", option="shards")


def choose_shards(
    rows: DataFrame,
    shards: int | None,
    checkpoint: str | Path | None,
    *,
    is_stream: bool,
    on_grid: bool = False,
    for_each: int = 1,
) -> int:
    """The number of shards: as given, as the checkpoint of a stream fixes it, or the default.

    By default, a stream has SHARDS_PER_CORE shards per core; on a grid, which copies rows, one per core. A batch has
    `for_each` per shuffle partition.
    """
    spark, fixed = rows.sparkSession, None
    if is_stream and checkpoint is not None:
        from vedette.spark.checkpoints.state import read_shards

        with refused_in_flow("shards", "pass shards= instead of checkpoint="):
            fixed = read_shards(spark, str(checkpoint))
    if fixed is not None:
        if shards not in (None, fixed):
            raise PipelineError(
                f"is {shards}, but the checkpoint {checkpoint} has {fixed} shards; omit the option, or write a "
                f"checkpoint with {shards}: vedette state reshard {checkpoint} --shards {shards} --output FOLDER",
                option="shards",
            )
        return fixed
    if shards is not None:
        return shards
    if not is_stream:
        return min(count_partitions(spark) * for_each, MOST_SHARDS)
    each = 1 if on_grid else SHARDS_PER_CORE
    with refused_in_flow("shards", f"pass a number, by default {each} per core; a checkpoint fixes it"):
        return min((count_cores(spark) or 1) * each, MOST_SHARDS)


def pack_rows(
    rows: DataFrame,
    columns: Sequence[t.StructField],
    sender: str,
    plan: dict[str, Any],
    judged: Judged | None = None,
) -> DataFrame:
    """Columns of the rows, cast to the given types and packed for shards. The first column decides the shard.

    `judged` says which rows are set aside before.
    """
    own = {column.name: column.dataType for column in rows.schema.fields}
    selected, sent = [], []
    for place, column in enumerate(columns):
        values = f.col(quoted(column.name))
        values = values if column.dataType == own[column.name] else values.cast(column.dataType)
        selected.append(values.alias(str(place)))  # `mapInArrow` does not allow dots in names
        is_text = isinstance(column.dataType, t.CharType | t.VarcharType)
        sent.append(t.StructField(str(place), t.StringType() if is_text else column.dataType))
    names = [column.name for column in columns]
    plan = {"columns": names, "side": 0} | plan
    if judged is not None:
        rows, added, for_worker = judged.apply(rows)
        plan |= for_worker
        for place, value in enumerate(added, len(sent)):
            selected.append(value.alias(str(place)))
            sent.append(t.StructField(str(place), t.StringType()))
    work = worker_function(_WORKER, "pack_rows", sender, plan, kernels=send_kernels(rows.sparkSession))
    return remember_columns(rows.select(*selected), t.StructType(sent)).mapInArrow(work, _PACKED)


def run(
    packed: DataFrame,
    sender: str,
    plan: dict[str, Any],
    answer: t.StructType,
    observe: Any = None,
    operator: str = "",
    *,
    is_stream: bool,
) -> DataFrame:
    """The answers of the shards to packed rows. What they count is observed under the name `observe`."""
    types = [(column.name, str(column.dataType.jsonValue())) for column in answer.fields]
    limits = {"batch_bytes": settings().answer_batch_bytes, "cache_bytes": settings().monitor_cache_bytes}
    plan = plan | limits | {"answer": types}
    columns, kernels = answer.names, send_kernels(packed.sparkSession)
    if observe is not None:
        plan["counted"] = COUNTED[operator][0]
        answer = with_report(answer, observe)
    if not is_stream:
        in_order = packed.repartition("shard").sortWithinPartitions("shard", *packing.ORDER)
        answers = remember_columns(in_order, _PACKED).mapInArrow(
            worker_function(_WORKER, "replay_shards", sender, plan, kernels=kernels), answer
        )
        return observed(answers, columns, observe, operator)
    with suppress(PipelineError), refused_in_flow("shards", ""):
        warn_of_many(packed.sparkSession)
    time_mode = "EventTime" if plan["is_timed"] else "None"
    shards = remember_columns(packed, _PACKED).groupBy("shard")
    if not hasattr(shards, "transformWithStateInPandas"):
        raise PipelineError(
            f"PySpark {pyspark.__version__} has no stateful streams in Python through Spark Connect; use Spark 4.1 or "
            f"later, or a session without Connect"
        )
    answers = shards.transformWithStateInPandas(make_processor(plan, sender, kernels), answer, "Append", time_mode)
    return observed(answers, columns, observe, operator)


def wide(column: t.StructField) -> t.StructField:
    """The column with the type in which keys, ids and times are sent: bigint, double, timestamp or string."""
    return t.StructField(column.name, _wide_type(column.dataType))


def _wide_type(type_: t.DataType) -> t.DataType:
    if isinstance(type_, t.TimestampType | t.DoubleType):
        return type_
    if isinstance(type_, t.FloatType):
        return t.DoubleType()
    return t.LongType() if isinstance(type_, t.IntegralType) else t.StringType()


def answer_type(column: t.StructField) -> t.DataType:
    """The type of keys, ids and times in answers: the column's own, or string."""
    return t.StringType() if isinstance(_wide_type(column.dataType), t.StringType) else column.dataType


def to_fact(column: t.StructField) -> list[str]:
    """A column as it is recorded in a checkpoint."""
    return [column.name, _wide_type(column.dataType).simpleString()]


# The state variables of a shard: its head, and pieces of its base and deltas.
_HEAD = t.StructType([t.StructField("content", t.StringType())])
_PLACE = t.StructType([t.StructField("entry", t.LongType()), t.StructField("piece", t.IntegerType())])
_PIECE = t.StructType([t.StructField("content", t.BinaryType())])


def make_processor(plan: dict[str, Any], sender: str, kernels: Sent | None = None) -> StatefulProcessor:
    """The processor that stores a shard's state in Spark's store. It does not import this package until it runs."""
    step = worker_function(_WORKER, "step_shard", sender, plan, kernels=kernels)
    advance = worker_function(_WORKER, "advance_shard", sender, plan, kernels=kernels)
    head, place, piece = _HEAD, _PLACE, _PIECE

    class Shards(StatefulProcessor):
        def init(self, handle: Any) -> None:
            self._handle = handle
            self._head = handle.getValueState("head", head)
            self._pieces = handle.getMapState("pieces", place, piece)

        def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:  # noqa: N802, N803
            now = timerValues.getCurrentWatermarkInMs()
            yield from step(self._handle, self._head, self._pieces, int(key[0]), rows, now)

        def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Any]:  # noqa: N802, N803
            now = timerValues.getCurrentWatermarkInMs()
            yield from advance(self._handle, self._head, self._pieces, int(key[0]), now)

        def close(self) -> None:
            pass

    return Shards()


def make_seeder(is_timed: bool) -> StatefulProcessor:
    """A processor with the same state variables. It replaces the state of each shard by the pieces in its rows."""
    seed = worker_function(_STORED, "seed_shard", __version__)
    head, place, piece = _HEAD, _PLACE, _PIECE

    class Seeds(StatefulProcessor):
        def init(self, handle: Any) -> None:
            self._handle = handle
            self._head = handle.getValueState("head", head)
            self._pieces = handle.getMapState("pieces", place, piece)

        def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:  # noqa: N802, N803
            timer = max(timerValues.getCurrentWatermarkInMs(), 0) + 1 if is_timed else None
            seed(self._head, self._pieces, self._handle, rows, timer)
            yield from ()

        def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Any]:  # noqa: N802, N803
            yield from ()

        def close(self) -> None:
            pass

    return Seeds()
