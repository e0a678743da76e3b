"""What runs inside Spark's Python workers for border monitoring: rows are packed by shard, and a shard's monitor steps.

`plan` is what the driver told, plain values only, so that a worker without this package can still read it.
"""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark import TaskContext

from vedette.columns import decode
from vedette.spark import packing
from vedette.spark.shard_state import FORMAT, ShardState
from vedette.spark.shipping import Parcel, unpack

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql.streaming.stateful_processor import MapState, StatefulProcessorHandle, ValueState

    from vedette.engine.monitor import BorderMonitor

EVENTS_AT_ONCE = 1 << 19  # in one batch of the answer

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_ARROW_TYPES = {
    "string": pa.string(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "timestamp": pa.timestamp("us", tz="UTC"),
}


def pack_rows(plan: dict[str, Any], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of a partition, packed by shard."""
    context = TaskContext.get()
    part = 0 if context is None else context.partitionId()
    named = (batch.rename_columns(plan["columns"]) for batch in batches)
    return packing.pack(named, plan["labels"], part, plan["null_key"])


def replay_shards(plan: dict[str, Any], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The events of whole shards, whose packed rows follow one another."""
    for _, packed in itertools.groupby(_payloads(batches), key=lambda payload: payload[0]):
        rows = packing.read_payloads(payload[1:] for payload in packed)
        if rows is not None:
            for events in _answer(_make_monitor(plan).step(rows, advance=False), plan):
                yield from events.to_batches()


def _payloads(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, int, int, bytes]]:
    for batch in batches:
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def step_shard(
    plan: dict[str, Any],
    handle: StatefulProcessorHandle,
    head: ValueState,
    pieces: MapState,
    shard: int,
    frames: Iterable[pd.DataFrame],
    watermark_ms: int,
) -> Iterator[pd.DataFrame]:
    """The events of a shard's rows in one micro-batch; its state moves on."""
    state = _open_state(plan, head, pieces, shard)
    rows = packing.read_payloads(
        payload for frame in frames for payload in zip(frame["part"], frame["number"], frame["payload"], strict=True)
    )
    if rows is None and not state.is_new:
        return
    if state.is_new and plan["is_timed"]:
        handle.registerTimer(max(watermark_ms, 0) + 1)
    monitor = state.load()
    events = None if rows is None else monitor.step(rows, advance=False)
    state.save(monitor)
    yield from _frames(events, plan)


def advance_shard(
    plan: dict[str, Any],
    handle: StatefulProcessorHandle,
    head: ValueState,
    pieces: MapState,
    shard: int,
    watermark_ms: int,
) -> Iterator[pd.DataFrame]:
    """The events that the watermark alone decides. The timer is set again, for the next time the watermark moves."""
    state = _open_state(plan, head, pieces, shard)
    monitor = state.load()
    n_keys = monitor.n_keys
    events = monitor.advance(_EPOCH + datetime.timedelta(milliseconds=watermark_ms))
    if events.num_rows or monitor.n_keys != n_keys:
        state.save(monitor)
    else:
        state.keep(monitor)
    handle.registerTimer(watermark_ms + 1)
    yield from _frames(events, plan)


def _make_monitor(plan: dict[str, Any]) -> BorderMonitor:
    return unpack(Parcel(**plan["parcel"])).border(**plan["options"])


def _open_state(plan: dict[str, Any], head: ValueState, pieces: MapState, shard: int) -> ShardState:
    facts = {"format": FORMAT, "shards": plan["n_shards"], "key": plan["key"], "time": plan["time"]}
    context = TaskContext.get()
    stream = None if context is None else context.getLocalProperty("sql.streaming.queryId")
    kind = (plan["parcel"]["token"], repr(plan["options"]))
    state = ShardState(head, pieces, facts, lambda: _make_monitor(plan), (stream, shard), kind)
    state.open()
    return state


def _answer(events: pa.Table, plan: dict[str, Any]) -> Iterator[pa.Table]:
    """The events in the types of the answer, a part at a time."""
    types = [_ARROW_TYPES[name] for name in plan["answer"]]
    for start in range(0, events.num_rows, EVENTS_AT_ONCE):
        part = events.slice(start, EVENTS_AT_ONCE).combine_chunks()
        columns = [
            decode(column.combine_chunks()).cast(type_) for column, type_ in zip(part.columns, types, strict=True)
        ]
        yield pa.Table.from_arrays(columns, names=part.schema.names)


def _frames(events: pa.Table | None, plan: dict[str, Any]) -> Iterator[pd.DataFrame]:
    if events is None:
        return
    import pandas as pd

    text = pd.ArrowDtype(pa.string())  # strings stay Arrow's, and no Python object is made of each
    for part in _answer(events, plan):
        yield part.to_pandas(types_mapper=lambda type_: text if pa.types.is_string(type_) else None)
