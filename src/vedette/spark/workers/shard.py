"""Stateful operators inside Spark's Python workers: packs rows for shards, and steps the monitor of a shard.

`plan` comes from the driver. It has only plain values, so that a worker without this package can unpickle it. It names
the module of the operator, which has the functions of `Operator`.
"""

from __future__ import annotations

import datetime
import importlib
import itertools
from collections.abc import Generator, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Protocol, cast

import pyarrow as pa
from pyspark import TaskContext

from vedette.data.columns import decode
from vedette.data.row_sizes import cut_table
from vedette.spark.shards import packing
from vedette.spark.shards.state import FORMAT, ShardState
from vedette.spark.workers.following import STREAM, open_queries
from vedette.spark.workers.reports import ShardReport, add_empty

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql.streaming.stateful_processor import MapState, StatefulProcessorHandle, ValueState

_ARROW_TYPES = {
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "binary": pa.binary(),
}
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


class Operator(Protocol):
    """The functions of an operator's module."""

    def check_rows(self, batch: pa.RecordBatch, plan: dict[str, Any]) -> pa.RecordBatch:
        """The rows as they are sent to shards. Raises RowError if one is invalid. The plan is that of packing."""

    def note(self, batch: pa.RecordBatch, plan: dict[str, Any]) -> bytes:
        """A payload about checked rows for all shards; empty if there is none."""

    def make_monitor(self, plan: dict[str, Any]) -> Any:
        """An empty monitor."""

    def step(self, monitor: Any, sides: dict[int, pa.Table], shard: int, plan: dict[str, Any]) -> Iterable[pa.Table]:
        """The answers to the rows and notes of a micro-batch. All sides may be empty if only the queries changed.

        The monitor contains the rows after the last table is read.
        """

    def advance(
        self, monitor: Any, time: datetime.datetime, shard: int, plan: dict[str, Any]
    ) -> Generator[pa.Table, None, bool]:
        """The answers when time passes. Returns whether the monitor has changed."""

    def read_counts(self, monitor: Any, shard: int, plan: dict[str, Any]) -> dict[str, int]:
        """What the monitor has counted so far: `state_rows`, and others that only grow."""


def pack_rows(plan: dict[str, Any], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of a partition, packed for shards."""
    operator, context = _operator(plan), TaskContext.get()
    part = 0 if context is None else context.partitionId()
    if "bad_rows" in plan:
        from vedette.spark.workers.bad_rows import keep_good  # takes long to import

        batches = keep_good(plan["bad_rows"], batches)
    named = (batch.rename_columns(plan["columns"]) for batch in batches)
    return packing.pack(
        named,
        lambda batch: operator.check_rows(batch, plan),
        lambda batch: operator.note(batch, plan),
        plan["lines"],
        plan["notified"],
        plan["side"],
        part,
        plan.get("drops_nulls", False),
    )


def replay_shards(plan: dict[str, Any], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The answers of whole shards, from packed rows that are sorted by shard."""
    operator = _operator(plan)
    for shard, packed in itertools.groupby(_payloads(batches), key=lambda payload: payload[0]):
        sides = packing.read_payloads(payload[1:] for payload in packed)
        if sides:
            monitor, version = operator.make_monitor(plan), plan["parcel"].get("version")
            report = ShardReport(operator, monitor, shard, plan)
            for part in _answer(report.counted(operator.step(monitor, sides, shard, plan)), plan, version):
                yield from part.to_batches()
            for part in report.rows(_answer_types(plan), version):
                yield from part.to_batches()


def _payloads(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, int, int, int, bytes]]:
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
    """The answers to a shard's rows in one micro-batch. Updates its state."""
    operator = _operator(plan)
    state = _open_state(operator, plan, head, pieces, shard)
    names = [*packing.ORDER, "payload"]
    sides = packing.read_payloads(
        payload for frame in frames for payload in zip(*(frame[name] for name in names), strict=True)
    )
    if not sides and not state.is_new and not state.is_changed:
        return
    if state.is_new and plan["is_timed"]:
        handle.registerTimer(max(watermark_ms, 0) + 1)
    monitor = state.load()
    report = ShardReport(operator, monitor, shard, plan)
    yield from _frames(_answer(report.counted(operator.step(monitor, sides, shard, plan)), plan, state.version), plan)
    state.save(monitor)
    yield from _frames(report.rows(_answer_types(plan), state.version, is_full=state.is_full), plan)


def advance_shard(
    plan: dict[str, Any],
    handle: StatefulProcessorHandle,
    head: ValueState,
    pieces: MapState,
    shard: int,
    watermark_ms: int,
) -> Iterator[pd.DataFrame]:
    """The answers when only the watermark advances. Sets the timer again for the next advance."""
    operator = _operator(plan)
    state = _open_state(operator, plan, head, pieces, shard)
    monitor = state.load()
    report = ShardReport(operator, monitor, shard, plan)
    has_changed = False

    def advance() -> Iterator[pa.Table]:
        nonlocal has_changed
        now = _EPOCH + datetime.timedelta(milliseconds=watermark_ms)
        has_changed = yield from operator.advance(monitor, now, shard, plan)

    yield from _frames(_answer(report.counted(advance()), plan, state.version), plan)
    if has_changed:
        state.save(monitor)
    else:
        state.keep(monitor)
    handle.registerTimer(watermark_ms + 1)
    yield from _frames(report.rows(_answer_types(plan), state.version, is_full=state.is_full), plan)


def _operator(plan: dict[str, Any]) -> Operator:
    return cast(Operator, importlib.import_module(plan["worker"]))


def _open_state(operator: Operator, plan: dict[str, Any], head: ValueState, pieces: MapState, shard: int) -> ShardState:
    context = TaskContext.get()
    stream = None if context is None else context.getLocalProperty(STREAM)
    kind = f"{plan['parcel']['token']} {plan['options']!r} late={plan.get('late')}"
    facts = {"format": FORMAT} | plan["facts"]
    place = stream, kind, shard  # a stream may have several operators
    state = ShardState(
        head,
        pieces,
        facts,
        lambda: operator.make_monitor(plan),
        place,
        kind,
        number=packing.spark_hash(shard) % facts["shards"],
        cache_bytes=plan["cache_bytes"],
    )
    state.open()
    if "followed" in plan["parcel"]:
        opened = open_queries(plan["parcel"], state.base_version)
        state.follow(opened.queries, opened.version)
    return state


def _answer(tables: Iterable[pa.Table], plan: dict[str, Any], version: int | None) -> Iterator[pa.Table]:
    """The tables in parts, with the types of the answer, and with a column for the version if there is one."""
    types = [type_ for _, type_ in _answer_types(plan)]
    for table in tables:
        for part in cut_table(table, plan["batch_bytes"]):
            if version is not None:
                part = part.append_column("version", pa.repeat(pa.scalar(version, pa.int64()), part.num_rows))
            columns = [
                decode(column.combine_chunks()).cast(type_) for column, type_ in zip(part.columns, types, strict=True)
            ]
            answer = pa.Table.from_arrays(columns, names=part.schema.names)
            yield add_empty(answer) if "counted" in plan else answer


def _answer_types(plan: dict[str, Any]) -> list[tuple[str, pa.DataType]]:
    """The columns of answers, without that of reports."""
    return [(name, _to_arrow_type(type_)) for name, type_ in plan["answer"]]


def _to_arrow_type(type_: str) -> pa.DataType:
    """The Arrow type of a column of an answer, of the name of its type in Spark's JSON."""
    if type_.startswith("decimal"):
        precision, scale = map(int, type_.removeprefix("decimal(").removesuffix(")").split(","))
        return pa.decimal128(precision, scale)
    return pa.string() if type_.startswith("string") else _ARROW_TYPES[type_]


def _frames(parts: Iterable[pa.Table], plan: dict[str, Any]) -> Iterator[pd.DataFrame]:
    import pandas as pd

    # Keeps strings in Arrow, without a Python object per string; and numbers if pandas would confuse null and NaN.
    kept = _MAY_BE_NULL if plan.get("is_nullable") else (pa.types.is_string,)
    for part in parts:
        yield part.to_pandas(
            types_mapper=lambda type_: pd.ArrowDtype(type_) if any(fits(type_) for fits in kept) else None
        )


_MAY_BE_NULL = (pa.types.is_string, pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean)
