"""Border monitoring inside Spark: a transform from rows of keyed objects to events, where one enters or leaves a query.

Rows are packed by shard in one `mapInArrow`. On a stream a stateful operator keeps each shard's monitor in Spark's
state store; on a batch each shard is replayed from its first row to its last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal

from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from vedette.errors import PipelineError
from vedette.spark import packing
from vedette.spark.checks import (
    check_state_store,
    check_time_zone,
    check_watermark,
    find_columns,
    find_key,
    find_time,
)
from vedette.spark.shipping import Parcel, pack, worker_function

if TYPE_CHECKING:
    from pathlib import Path

    from vedette.engine.query_set import QuerySet

MOST_SHARDS = 10_000
# A function above a megabyte Spark sends as a broadcast variable, which its runner of stateful Python does not load.
STREAM_INLINE_BYTES = 256_000
BATCH_SHARDS = 4  # for each partition of a shuffle, where no state is kept: a shard is in memory at once
_WORKER = "vedette.spark.border_worker"


def border(
    queries: QuerySet,
    key: str,
    time: str,
    *,
    late: Literal["drop", "apply"] = "drop",
    null_key: Literal["error", "drop"] = "error",
    expire_after: str | float | None = None,
    dwell: str | float | None = None,
    margin: float | Mapping[str, float] | None = None,
    cross: bool = False,
    shards: int | None = None,
    snapshot_dir: str | Path | None = None,
) -> Callable[[DataFrame], DataFrame]:
    """A transform to events: `events = ticks.transform(vs.border(alerts, key="symbol", time="ts"))`.

    One row per event, with columns `key`, `time`, `query`, `event` ("enter", "exit" or "cross") and `reason`. The
    options are those of `QuerySet.border`. A stream keeps the last row of each key in Spark's state store, in `shards`
    parts (by default as many as the session's `spark.sql.shuffle.partitions`); a checkpoint fixes the number. A batch
    is sorted and replayed, keeps nothing, and gives the events that a stream of the same rows in order would.

    On a stream, `expire_after` and `dwell` need a watermark on the time column, set before the transform. It decides
    for keys that send no more rows. Where time is a number there can be no watermark, and on a batch there is none:
    there they are decided by the key's next row alone, and what no row decides is not reported.

    A set above 4 MB (on a stream: 256 KB) goes to the workers as a file in `snapshot_dir`, which they must see too.
    """
    if not hasattr(queries, "match_one"):
        raise PipelineError(f"vs.border takes a QuerySet; got {type(queries).__name__}")
    if shards is not None and (
        isinstance(shards, bool) or not isinstance(shards, int) or not 1 <= shards <= MOST_SHARDS
    ):
        raise PipelineError(f"shards is a whole number from 1 to {MOST_SHARDS:,}; got {shards!r}")
    options: dict[str, Any] = {
        "key": key,
        "time": time,
        "late": late,
        "null_key": null_key,
        "expire_after": expire_after,
        "dwell": dwell,
        "margin": dict(margin) if isinstance(margin, Mapping) else margin,
        "cross": cross,
    }
    monitor = queries.border(**options)  # raises where an option is wrong

    def transform(rows: DataFrame) -> DataFrame:
        check_time_zone(rows, queries)
        key_column, time_column = find_key(rows, queries, key), find_time(rows, queries, time)
        find_columns(rows, queries)
        monitor.options.check_durations(_wide(time_column).simpleString())
        is_timestamp = isinstance(time_column.dataType, t.TimestampType)
        is_timed = rows.isStreaming and is_timestamp and not (expire_after is None and dwell is None)
        if rows.isStreaming:
            check_state_store(rows)
        if is_timed:
            check_watermark(rows, time_column, "dwell" if expire_after is None else "expire_after")
        n_shards = shards or _default_shards(rows)
        answer = _answer_schema(key_column, time_column, queries)
        needed = _needed_columns(rows, queries, key_column, time_column)
        parcel = pack(queries, snapshot_dir, STREAM_INLINE_BYTES if rows.isStreaming else None)
        plan = {
            "parcel": vars(parcel).copy(),
            "options": options,
            "n_shards": n_shards,
            "key": [key_column.name, _wide(key_column).simpleString()],
            "time": [time_column.name, _wide(time_column).simpleString()],
            "answer": [column.dataType.simpleString() for column in answer.fields],
            "is_timed": is_timed,
        }
        packing_plan = {"columns": needed, "null_key": null_key, "labels": packing.label_shards(n_shards)}
        selected = _select(rows, needed, {column.name: _wide(column) for column in (key_column, time_column)})
        packed = selected.mapInArrow(worker_function(_WORKER, "pack_rows", parcel.sender, packing_plan), packing.SCHEMA)
        if not rows.isStreaming:
            in_order = packed.repartition("shard").sortWithinPartitions("shard", "part", "number")
            return in_order.mapInArrow(worker_function(_WORKER, "replay_shards", parcel.sender, plan), answer)
        time_mode = "EventTime" if is_timed else "None"
        return packed.groupBy("shard").transformWithStateInPandas(_processor(plan, parcel), answer, "Append", time_mode)

    return transform


def _default_shards(rows: DataFrame) -> int:
    n_partitions = int(rows.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1)
    return min(n_partitions * (1 if rows.isStreaming else BATCH_SHARDS), MOST_SHARDS)


def _needed_columns(rows: DataFrame, queries: QuerySet, key: t.StructField, time: t.StructField) -> list[str]:
    """The key, the time and the fields that queries use, in this order; no other column travels."""
    fields = {field.lower() for field in queries.fields}
    used = [column.name for column in rows.schema.fields if column.name.lower() in fields]
    return list(dict.fromkeys([key.name, time.name, *used]))


def _select(rows: DataFrame, names: list[str], types: dict[str, t.DataType]) -> DataFrame:
    """These columns under the names 0, 1, ...: `mapInArrow` cannot have names with dots."""
    columns = [f.col("`" + name.replace("`", "``") + "`") for name in names]
    cast = [column.cast(types[name]) if name in types else column for name, column in zip(names, columns, strict=True)]
    return rows.select(*(column.alias(str(place)) for place, column in enumerate(cast)))


def _wide(column: t.StructField) -> t.DataType:
    """The type in which a key or a time travels: monitors know bigint, double, timestamp and string."""
    if isinstance(column.dataType, t.TimestampType | t.DoubleType):
        return column.dataType
    if isinstance(column.dataType, t.FloatType):
        return t.DoubleType()
    return t.LongType() if isinstance(column.dataType, t.IntegralType) else t.StringType()


def _answer_schema(key: t.StructField, time: t.StructField, queries: QuerySet) -> t.StructType:
    key_type = t.StringType() if isinstance(_wide(key), t.StringType) else key.dataType
    query_type = t.LongType() if str(queries.ids.type) == "int64" else t.StringType()
    types = {"key": key_type, "time": time.dataType, "query": query_type, "event": t.StringType()}
    return t.StructType([t.StructField(name, types.get(name, t.StringType())) for name in (*types, "reason")])


def _processor(plan: dict[str, Any], parcel: Parcel) -> StatefulProcessor:
    """What keeps a shard's state in Spark's store. It too names nothing of this package until it runs."""
    step = worker_function(_WORKER, "step_shard", parcel.sender, plan)
    advance = worker_function(_WORKER, "advance_shard", parcel.sender, plan)
    head = t.StructType([t.StructField("content", t.StringType())])
    place = t.StructType([t.StructField("entry", t.LongType()), t.StructField("piece", t.IntegerType())])
    piece = t.StructType([t.StructField("content", t.BinaryType())])

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
