"""Border monitoring inside Spark's Python workers; see `vedette.spark.workers.shard`."""

from __future__ import annotations

import datetime
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from vedette.errors import RowError, count
from vedette.operators.border.first_reports import find_first
from vedette.spark.workers.following import current_batch, open_queries

ALL_PARTS = -1  # the reports are the first of all shards
FIRST = "_vedette_first"  # a column: the event is the first report of a shard for a query with once="query"

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
    monitor = queries.border(**plan["options"])
    monitor.removes_done = False  # the driver removes queries; a task may be repeated
    return monitor


def step(monitor: BorderMonitor, sides: dict[int, pa.Table], shard: int, plan: dict[str, Any]) -> Iterator[pa.Table]:
    if sides:
        for events in monitor.step_batches(sides[0], advance=False, max_bytes=plan["batch_bytes"]):
            yield _mark_first(monitor, events, shard, plan)


def advance(
    monitor: BorderMonitor, time: datetime.datetime, shard: int, plan: dict[str, Any]
) -> Generator[pa.Table, None, bool]:
    n_keys, n_passed, n_events = monitor.n_keys, monitor.n_passed, 0
    for events in monitor.advance_batches(time, max_bytes=plan["batch_bytes"]):
        n_events += events.num_rows
        yield _mark_first(monitor, events, ALL_PARTS - 1 - shard, plan)
    return n_events > 0 or monitor.n_keys != n_keys or monitor.n_passed != n_passed


def _mark_first(monitor: BorderMonitor, events: pa.Table, part: int, plan: dict[str, Any]) -> pa.Table:
    """The events. If queries are reported once for all keys, a column marks the shard's first reports.

    A stream that began before there were such queries has no second step to choose among shards. There, the first part
    that notes a report in the registry emits it. The rows of a shard are one part, and its timers are another.
    """
    if plan["marks_first"]:
        return events.append_column(FIRST, pa.repeat(pa.scalar(bool(monitor.done)), events.num_rows))
    if monitor.done and plan["is_stream"] and "followed" in plan["parcel"]:
        return _note(events, plan["parcel"], monitor.queries.version, part)
    return events


def keep_first(plan: dict[str, Any], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The events of all shards in a partition, without the column that marks first reports, which are chosen among."""
    marked, found = plan["columns"].index(FIRST), []
    names = [name for name in plan["columns"] if name != FIRST]
    for batch in batches:
        is_first = batch.column(marked)
        others = pa.Table.from_batches([batch]).remove_column(marked).rename_columns(names)
        if is_first.true_count:
            found.append(others.filter(is_first))
            others = others.filter(pc.invert(is_first))
        yield from others.to_batches()
    if found:
        reports = pa.concat_tables(found)
        reports = reports.take(pa.array(find_first(reports["query"], reports["time"], reports["key"])))
        if plan["parcel"] is not None:
            reports = _note(reports, plan["parcel"], reports["version"][0].as_py())
        yield from reports.combine_chunks().to_batches()


def _note(reports: pa.Table, parcel: dict[str, Any], version: int, part: int = ALL_PARTS) -> pa.Table:
    """Those of the reports that this micro-batch may emit; they are noted in the registry."""
    from vedette.registry.read.followed import Followed

    ids = reports["query"].to_pylist()
    emitted = set(Followed.from_plain(parcel["followed"]).note_reports(*current_batch(), version, ids, part))
    return reports.filter(pa.array([query_id in emitted for query_id in ids], pa.bool_()))


def read_counts(monitor: BorderMonitor, shard: int, plan: dict[str, Any]) -> dict[str, int]:
    counts = {
        "late": monitor.n_late,
        "null_keys": monitor.n_null_keys,
        "failed": monitor.n_failed,
        "held_back": monitor.n_held_back,
    }
    return counts | {"state_rows": monitor.n_keys}
