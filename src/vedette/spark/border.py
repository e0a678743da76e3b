"""Border monitoring inside Spark: a transform from rows of keyed objects to enter and exit events.

Keys are spread over shards by their hash. `vedette.spark.shards` runs the shards, on a stream and on a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

from vedette.errors import PipelineError
from vedette.operators.border.options import HELD_BACK
from vedette.operators.stable_ids import EVENT_ID
from vedette.spark.bad_rows import BadRows, is_no_time, is_null
from vedette.spark.checks import (
    check_state_store,
    check_watermark,
    find_carried,
    find_columns,
    find_name,
    find_time,
    has_watermark,
    quoted,
)
from vedette.spark.declared import Declared, remember_columns
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
from vedette.spark.shipping.query_sets import worker_function
from vedette.spark.shipping.query_source import QuerySource
from vedette.spark.workers.border import FIRST

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import Observation

    from vedette.data.schema import Schema
    from vedette.queries.query_set import QuerySet
    from vedette.registry.read.followed import Followed
    from vedette.registry.registry import Registry

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
    margin: float | str | Mapping[str, float] | None = None,
    cross: bool = False,
    columns: Sequence[str] | None = None,
    event_id: bool | None = None,
    metadata: Sequence[str] | None = None,
    cooldown: str | float | None = None,
    once: bool | Literal["query"] = False,
    held_back: bool | None = None,
    shards: int | None = None,
    checkpoint: str | Path | None = None,
    on_bad_row: Literal["error", "drop", "dead-letter"] = "error",
    dead_letters: str | Path | Registry | None = None,
    snapshot_dir: str | Path | None = None,
    observe: str | Observation | None = None,
    schema: t.StructType | str | None = None,
    streaming: bool | None = None,
) -> Callable[[DataFrame], DataFrame]:
    """A transform to events: `events = ticks.transform(vs.border(alerts, key="symbol", time="ts"))`.

    One row per event, with columns `key`, `time`, `query`, `event` ("enter", "exit" or "cross") and `reason`, then the
    `columns` of the row that caused it, the `metadata` of the query, and `event_id`. The options are those of
    `QuerySet.border`; no column that they do not need is sent to workers. A stream stores the last row of each key in
    Spark's state store, in `shards` parts (default: 8 per core). A checkpoint fixes the number; if `checkpoint` names
    the stream's checkpoint, it is read from there. A batch is sorted and replayed, and produces the events of a stream
    of the same rows in order. It stores nothing.

    On a stream, `expire_after`, `dwell` and queries with now() need a watermark on the time column, set before the
    transform: it advances time for keys without new rows. On a batch, and if the time is a number, there is no
    watermark. Then only the next row of a key advances its time, and later events are not reported.

    A set above 4 MB (on a stream: 256 KB) is sent to the workers as a file: in `snapshot_dir`, which they must be able
    to read, or, without it, as an artifact of the session. A set of kind border from `registry.follow` is followed
    while it changes; events then have a last column `version`.

    `on_bad_row` says what happens to a row that cannot be processed: it stops the stream ("error"), is dropped, or
    becomes a "dead-letter" with the reason in `dead_letters`, a folder or a registry. See docs/spark.md.

    `observe` is a name under which Spark reports what workers count, or an `Observation`; see docs/spark.md.

    `schema` and `streaming` declare the columns of the rows and whether they are a stream, where Spark cannot be asked:
    in a flow of a declarative pipeline. See docs/declarative-pipelines.md.
    """
    given = QuerySource.read(queries, "vs.border", "border")
    check_shards(shards)
    check_observe(observe)
    bad_rows = BadRows.read(on_bad_row, dead_letters, observe, "border")
    declared = Declared.read(schema, streaming)
    options: dict[str, Any] = {
        "key": key,
        "time": time,
        "late": late,
        "null_key": null_key,
        "expire_after": expire_after,
        "dwell": dwell,
        "margin": dict(margin) if isinstance(margin, Mapping) else margin,
        "cross": cross,
        "columns": None if columns is None else list(columns),
        "event_id": event_id,
        "metadata": None if metadata is None else list(metadata),
        "cooldown": cooldown,
        "once": once,
        "held_back": held_back,
    }
    monitor = given.queries.border(**options)  # raises if an option is invalid

    def transform(rows: DataFrame) -> DataFrame:
        check_session(rows, given.queries)
        rows, is_stream = declared.apply(rows), declared.is_streaming(rows)
        fields = given.queries.schema
        key_column, time_column = find_name(rows, fields, key, "key"), find_time(rows, fields, time)
        find_columns(rows, fields, given.fields, follows=given.followed is not None)
        carried = find_carried(rows, monitor.options.carried)
        monitor.check_time_type(wide(time_column).dataType.simpleString())
        is_timestamp = isinstance(time_column.dataType, t.TimestampType)
        because = _needs_time(given, expire_after, dwell)
        may_need_time = given.followed is not None and has_watermark(time_column)  # a query with now() may be added
        is_timed = is_stream and is_timestamp and (because is not None or may_need_time)
        if is_stream:
            check_state_store(rows, "vs.border")
        is_once_per_query = given.has_once_per_query(once)
        if is_stream and is_once_per_query and (given.followed is None or given.followed.version is not None):
            raise PipelineError(
                "'query' on a stream needs a set that is followed without a fixed version, because the query is "
                "removed after its report; put the queries into a registry and pass registry.follow(...)",
                option="once",
            )
        if is_timed and because and declared.schema is None:  # otherwise only Spark knows the watermark, and checks it
            check_watermark(rows, time_column, because)
        n_shards = choose_shards(rows, shards, checkpoint, is_stream=is_stream, for_each=BATCH_SHARDS)
        sent = given if metadata else given.without_metadata()
        parcel = sent.pack(rows, snapshot_dir, STREAM_INLINE_BYTES if is_stream else None, is_stream=is_stream)
        lines = packing.by_key(n_shards)
        packing_plan = {
            "worker": _WORKER,
            "null_key": null_key,
            "counts_nulls": observe is not None,
            "lines": lines,
            "notified": lines[0],
        }
        needed = _needed_columns(rows, given.queries.schema, given.fields, key_column, time_column, carried)
        reasons = is_null("the key", key_column) | is_no_time("the time", time_column)
        packed = pack_rows(rows, needed, parcel["sender"], packing_plan, bad_rows.judge(reasons))
        columns_of_state = {"key": to_fact(key_column), "time": to_fact(time_column)}
        holds = given.holds_back(cooldown is not None or bool(once)) if held_back is None else held_back
        plan = {
            "worker": _WORKER,
            "parcel": parcel,
            "options": options | {"held_back": holds},
            "facts": {"operator": "border monitor", "shards": n_shards} | columns_of_state | given.facts,
            "is_timed": is_timed,
            "is_stream": is_stream,
            "is_nullable": bool(carried),
            "marks_first": is_once_per_query,
        }
        texts = [*(metadata or ()), *([EVENT_ID] if monitor.options.has_event_ids else [])]
        added = [t.StructField(HELD_BACK, t.LongType())] if holds else []
        named = zip(monitor.options.carried, carried, strict=True)
        added += [t.StructField(name, column.dataType) for name, column in named]
        added = [*added, *(t.StructField(name, t.StringType()) for name in texts)]
        mark = [t.StructField(FIRST, t.BooleanType())] if is_once_per_query else []
        answer = _answer_schema(key_column, time_column, [*added, *mark], given)
        events = run(packed, parcel["sender"], plan, answer, observe, "border", is_stream=is_stream)
        return _keep_first(events, answer, parcel, is_noted=is_stream) if is_once_per_query else events

    return transform


def _keep_first(events: DataFrame, columns: t.StructType, parcel: dict[str, Any], *, is_noted: bool) -> DataFrame:
    """The events, with the first of the reports that shards have marked. A stream notes them in the registry."""
    fields = [field for field in columns.fields if field.name != FIRST]
    plan = {"columns": columns.names, "parcel": parcel if is_noted else None}
    numbered = events.select(*(f.col(quoted(name)).alias(str(place)) for place, name in enumerate(columns.names)))
    place, by = (str(columns.names.index(name)) for name in ("key", "query"))
    together = numbered.repartition(f.when(f.col(str(columns.names.index(FIRST))), f.hash(by)).otherwise(f.hash(place)))
    numbers = t.StructType([t.StructField(str(place), each.dataType) for place, each in enumerate(columns.fields)])
    choose = worker_function(_WORKER, "keep_first", parcel["sender"], plan)
    return remember_columns(together, numbers).mapInArrow(choose, t.StructType(fields))


def _needs_time(given: QuerySource, expire_after: Any, dwell: Any) -> str | None:
    """What makes time pass for keys without new rows, or None."""
    if expire_after is not None or (dwell is None and given.has_option("expire_after")):
        return "expire_after"
    if dwell is not None or given.has_option("dwell"):
        return "dwell"
    return "a query with now()" if given.queries.uses_now else None


def _needed_columns(
    rows: DataFrame,
    schema: Schema,
    used: Sequence[str],
    key: t.StructField,
    time: t.StructField,
    carried: Sequence[t.StructField],
) -> list[t.StructField]:
    """The key, the time, the fields that queries use, and columns of events. No other column is sent to the shards."""
    fields = {field.column.lower() for field in schema if field.name in used}
    fields |= {column.name.lower() for column in carried}
    columns = {key.name: wide(key), time.name: wide(time)}
    for column in rows.schema.fields:
        if column.name.lower() in fields:
            columns.setdefault(column.name, column)
    return list(columns.values())


def _answer_schema(
    key: t.StructField, time: t.StructField, added: Sequence[t.StructField], given: QuerySource
) -> t.StructType:
    types = {"key": answer_type(key), "time": answer_type(time), "query": given.id_type}
    own = [t.StructField(name, types.get(name, t.StringType())) for name in (*types, "event", "reason")]
    return t.StructType([*own, *added, *given.added_columns])
