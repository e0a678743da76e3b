"""Border monitoring inside Spark: a transform from rows of keyed objects to enter and exit events.

Keys are spread over shards by their hash. `vedette.spark.shards` runs the shards, on a stream and on a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from pyspark.sql import DataFrame
from pyspark.sql import types as t

from vedette.spark.checks import (
    check_state_store,
    check_watermark,
    find_columns,
    find_name,
    find_time,
)
from vedette.spark.observation import check_observe
from vedette.spark.session_checks import check_session
from vedette.spark.shards import packing
from vedette.spark.shards.transform import (
    STREAM_INLINE_BYTES,
    answer_type,
    check_shards,
    choose_shards,
    pack_rows,
    run,
    to_fact,
    wide,
)
from vedette.spark.shipping.query_source import QuerySource

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import Observation

    from vedette.queries.query_set import QuerySet
    from vedette.registry.read.followed import Followed

BATCH_SHARDS = 4  # per shuffle partition, on a batch: the rows of a shard are in memory together
_WORKER = "vedette.spark.workers.border"


def border(
    queries: QuerySet | Followed,
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
    checkpoint: str | Path | None = None,
    snapshot_dir: str | Path | None = None,
    observe: str | Observation | None = None,
) -> Callable[[DataFrame], DataFrame]:
    """A transform to events: `events = ticks.transform(vs.border(alerts, key="symbol", time="ts"))`.

    One row per event, with columns `key`, `time`, `query`, `event` ("enter", "exit" or "cross") and `reason`. The
    options are those of `QuerySet.border`. A stream stores the last row of each key in Spark's state store, in `shards`
    parts (default: 8 per core). A checkpoint fixes the number; if `checkpoint` names the stream's checkpoint, it is
    read from there. A batch is sorted and replayed, and produces the events of a stream of the same rows in order. It
    stores nothing.

    On a stream, `expire_after` and `dwell` need a watermark on the time column, set before the transform: it advances
    time for keys without new rows. On a batch, and if the time is a number, there is no watermark. Then only the next
    row of a key advances its time, and later events are not reported.

    A set above 4 MB (on a stream: 256 KB) is sent to the workers as a file: in `snapshot_dir`, which they must be able
    to read, or, without it, as an artifact of the session. A set of kind border from `registry.follow` is followed
    while it changes; events then have a last column `version`.

    `observe` is a name under which Spark reports what workers count, or an `Observation`; see docs/spark.md.
    """
    given = QuerySource.read(queries, "vs.border", "border")
    check_shards(shards)
    check_observe(observe)
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
    monitor = given.queries.border(**options)  # raises if an option is invalid

    def transform(rows: DataFrame) -> DataFrame:
        check_session(rows, given.queries)
        schema = given.queries.schema
        key_column, time_column = find_name(rows, schema, key, "key"), find_time(rows, schema, time)
        find_columns(rows, schema, given.fields, follows=given.followed is not None)
        monitor.options.check_durations(wide(time_column).dataType.simpleString())
        is_timestamp = isinstance(time_column.dataType, t.TimestampType)
        is_timed = rows.isStreaming and is_timestamp and not (expire_after is None and dwell is None)
        if rows.isStreaming:
            check_state_store(rows, "vs.border")
        if is_timed:
            check_watermark(rows, time_column, "dwell" if expire_after is None else "expire_after")
        n_shards = choose_shards(rows, shards, checkpoint, for_each=BATCH_SHARDS)
        parcel = given.pack(rows, snapshot_dir, STREAM_INLINE_BYTES if rows.isStreaming else None)
        lines = packing.by_key(n_shards)
        packing_plan = {
            "worker": _WORKER,
            "null_key": null_key,
            "counts_nulls": observe is not None,
            "lines": lines,
            "notified": lines[0],
        }
        needed = _needed_columns(rows, given, key_column, time_column)
        packed = pack_rows(rows, needed, parcel["sender"], packing_plan)
        columns = {"key": to_fact(key_column), "time": to_fact(time_column)}
        plan = {
            "worker": _WORKER,
            "parcel": parcel,
            "options": options,
            "facts": {"operator": "border monitor", "shards": n_shards} | columns | given.facts,
            "is_timed": is_timed,
        }
        answer = _answer_schema(key_column, time_column, given)
        return run(packed, parcel["sender"], plan, answer, observe, "border")

    return transform


def _needed_columns(
    rows: DataFrame, given: QuerySource, key: t.StructField, time: t.StructField
) -> list[t.StructField]:
    """The key, the time and the fields that queries use, in this order. No other column is sent to the shards."""
    fields = {field.lower() for field in given.fields}
    columns = {key.name: wide(key), time.name: wide(time)}
    for column in rows.schema.fields:
        if column.name.lower() in fields:
            columns.setdefault(column.name, column)
    return list(columns.values())


def _answer_schema(key: t.StructField, time: t.StructField, given: QuerySource) -> t.StructType:
    types = {"key": answer_type(key), "time": answer_type(time), "query": given.id_type}
    own = [t.StructField(name, types.get(name, t.StringType())) for name in (*types, "event", "reason")]
    return t.StructType([*own, *given.added_columns])
