"""Border monitoring inside Spark's Python workers; see `vedette.spark.workers.shard`."""

from __future__ import annotations

import datetime
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from vedette.errors import RowError, count
from vedette.spark.workers.following import open_queries

if TYPE_CHECKING:
    from vedette.operators.border.monitor import BorderMonitor
    from vedette.queries.query_set import QuerySet


def check_rows(batch: pa.RecordBatch, plan: dict[str, Any]) -> pa.RecordBatch:
    """The rows with a key, the first column. Raises RowError if a time, the second column, is null."""
    keys, times = batch.columns[:2]
    key, time = batch.schema.names[:2]
    if keys.null_count and plan["null_key"] == "error":
        raise RowError(
            f"is 'error', and the key, column {key!r}, is null in {count(keys.null_count, 'row')}; filter such rows "
            f"out before the transform, or use 'drop'",
            option="null_key",
            field=key,
        )
    if keys.null_count:
        kept = batch.filter(keys.is_valid())
        times = kept.column(1)
        batch = batch if plan.get("counts_nulls") else kept  # the monitor drops and counts them
    if times.null_count:
        raise RowError(
            f"the time, column {time!r}, is null in {count(times.null_count, 'row')}; filter such rows out before the "
            f"transform"
        )
    return batch


def note(batch: pa.RecordBatch, plan: dict[str, Any]) -> bytes:
    return b""


def make_monitor(plan: dict[str, Any]) -> BorderMonitor:
    queries: QuerySet = open_queries(plan["parcel"]).queries
    return queries.border(**plan["options"])


def step(monitor: BorderMonitor, sides: dict[int, pa.Table], shard: int, plan: dict[str, Any]) -> Iterator[pa.Table]:
    if sides:
        yield from monitor.step_batches(sides[0], advance=False, max_bytes=plan["batch_bytes"])


def advance(monitor: BorderMonitor, time: datetime.datetime, plan: dict[str, Any]) -> Generator[pa.Table, None, bool]:
    n_keys, n_passed, n_events = monitor.n_keys, monitor.n_passed, 0
    for events in monitor.advance_batches(time, max_bytes=plan["batch_bytes"]):
        n_events += events.num_rows
        yield events
    return n_events > 0 or monitor.n_keys != n_keys or monitor.n_passed != n_passed


def read_counts(monitor: BorderMonitor, shard: int, plan: dict[str, Any]) -> dict[str, int]:
    counts = {
        "late": monitor.n_late,
        "null_keys": monitor.n_null_keys,
        "failed": monitor.n_failed,
        "held_back": monitor.n_held_back,
    }
    return counts | {"state_rows": monitor.n_keys}
