"""Window joins inside Spark's Python workers; see `vedette.spark.workers.shard`.

A shard gets only a part of the rows, so all shards get the latest time of each packed batch. Clocks advance after
the step, so they equal those of a join in one shard.
"""

from __future__ import annotations

import datetime
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from vedette.errors import RowError, count
from vedette.spark.shards import packing
from vedette.spark.workers.following import open_queries

if TYPE_CHECKING:
    from vedette.operators.window_join.monitor import JoinMonitor
    from vedette.operators.window_join.query_set import JoinQuerySet


def check_rows(batch: pa.RecordBatch, plan: dict[str, Any]) -> pa.RecordBatch:
    """The rows, unchanged. Raises RowError if an id or a time is null."""
    for role in ("id", "time"):
        name = plan[role]
        n_null = 0 if name is None else batch.column(name).null_count
        if n_null:
            raise RowError(
                f"the {plan['stream']} {role}, column {name!r}, is null in {count(n_null, 'row')}; filter such rows "
                f"out before the join"
            )
    return batch


def note(batch: pa.RecordBatch, plan: dict[str, Any]) -> bytes:
    """The latest time of the rows."""
    if plan["time"] is None or not batch.num_rows:
        return b""
    latest = pc.max(batch.column(plan["time"]))
    return packing.to_payload(pa.record_batch([pa.array([latest.as_py()], latest.type)], names=["latest"]))


def make_monitor(plan: dict[str, Any]) -> JoinMonitor:
    queries: JoinQuerySet = open_queries(plan["parcel"]).queries
    monitor = queries.window(**plan["options"])
    if plan["time_type"]:
        monitor.set_time_type(plan["time_type"])
    return monitor


def step(monitor: JoinMonitor, sides: dict[int, pa.Table], shard: int, plan: dict[str, Any]) -> Iterator[pa.Table]:
    streams = list(enumerate(plan["streams"]))
    rows = {stream: sides[side] for side, stream in streams if side in sides}
    if rows:
        yield from monitor.step_batches(plan["batch_bytes"], **rows)
    notes = {stream: sides.get(packing.note_of(side)) for side, stream in streams}
    latest = {stream: pc.max(each.column(0)).as_py() for stream, each in notes.items() if each is not None}
    if latest:
        monitor.advance(**latest)


def advance(
    monitor: JoinMonitor, time: datetime.datetime, shard: int, plan: dict[str, Any]
) -> Generator[pa.Table, None, bool]:
    """The watermark makes no pairs, but removes expired rows, even if one of the streams is silent."""
    clocks = list(monitor.join.clocks)
    monitor.advance(time)
    yield from ()
    return monitor.join.clocks != clocks


def read_counts(monitor: JoinMonitor, shard: int, plan: dict[str, Any]) -> dict[str, int]:
    """A row may go to several shards; one of them counts it if it is late."""
    late = sum(n for n, shards in zip(monitor.late_rows, plan["reporters"], strict=True) if shard in shards)
    return {"late": late, "failed": monitor.n_failed, "state_rows": monitor.n_rows}
