"""Band joins inside Spark's Python workers; see `vedette.spark.workers.shard`."""

from __future__ import annotations

import datetime
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vedette.data.columns import writable
from vedette.errors import RowError, count
from vedette.operators.band_join.rows import ValueRows, read_ops
from vedette.spark.workers.following import open_queries

if TYPE_CHECKING:
    from vedette.operators.band_join.monitor import BandMonitor
    from vedette.operators.band_join.query_set import BandQuerySet

SIDES = ("left", "right")


def check_rows(batch: pa.RecordBatch, plan: dict[str, Any]) -> pa.RecordBatch:
    """Ids, finite values, and which rows are deletions; raises RowError if a row is invalid."""
    side, (id_name, value_name) = SIDES[plan["side"]], batch.schema.names[:2]
    ids, values = batch.columns[:2]
    if ids.null_count:
        raise RowError(
            f"the {side} id, column {id_name!r}, is null in {count(ids.null_count, 'row')}; filter such rows out "
            f"before the join"
        )
    carried = plan.get("carried", ())
    n_own = batch.num_columns - len(carried)
    deletes = pa.repeat(False, batch.num_rows)
    if n_own > 2:
        deletes = pa.array(read_ops(batch.column(2), batch.schema.names[2], side))
    finite = pc.fill_null(pc.is_finite(values), False)
    is_wrong = pc.and_not(pc.invert(finite), deletes)
    n_wrong = pc.sum(is_wrong).as_py() or 0
    if n_wrong:
        row = pc.index(is_wrong, True).as_py()
        got = "null" if not values[row].is_valid else str(values[row])
        raise RowError(
            f"the {side} value, column {value_name!r}, is not a finite number in {count(n_wrong, 'row')}; the first is "
            f"{got}, with id {ids[row].as_py()!r}; filter such rows out before the join"
        )
    own = [ids, pc.if_else(finite, values, 0.0), deletes]
    return pa.record_batch([*own, *batch.columns[n_own:]], names=["id", "value", "deletes", *carried])


def note(batch: pa.RecordBatch, plan: dict[str, Any]) -> bytes:
    return b""


def make_monitor(plan: dict[str, Any]) -> BandMonitor:
    queries: BandQuerySet = open_queries(plan["parcel"]).queries
    return queries.monitor(**plan["options"])


def step(monitor: BandMonitor, sides: dict[int, pa.Table], shard: int, plan: dict[str, Any]) -> Iterator[pa.Table]:
    """The net change of a micro-batch. One of the shards that a row goes to handles unknown ids."""
    left, right = (_to_rows(sides[side], side, monitor) if side in sides else None for side in range(2))
    reported = [name for side, name in enumerate(SIDES) if shard in plan["reporters"][side]]
    return monitor.step_read(left, right, max_bytes=plan["batch_bytes"], sides_reported=reported)


def _to_rows(table: pa.Table, side: int, monitor: BandMonitor) -> ValueRows:
    """The rows that `check_rows` sent."""
    known = (monitor.left, monitor.right)[side].carried
    carried = table.select(range(3, table.num_columns))
    ids, values, deletes = (column.combine_chunks() for column in table.columns[:3])
    return ValueRows(
        writable(ids.to_numpy()) if pa.types.is_integer(ids.type) else ids.cast(pa.large_string()),
        values.to_numpy(),
        deletes.to_numpy(zero_copy_only=False),
        monitor.columns.read_rows(carried, SIDES[side], table.num_rows, known),
    )


def advance(
    monitor: BandMonitor, time: datetime.datetime, shard: int, plan: dict[str, Any]
) -> Generator[pa.Table, None, bool]:
    """Time alone changes nothing."""
    yield from ()
    return False


def read_counts(monitor: BandMonitor, shard: int, plan: dict[str, Any]) -> dict[str, int]:
    return {"unknown_ids": monitor.n_unknown, "state_rows": monitor.n_left + monitor.n_right}


def keep_distinct(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The distinct queries of a partition, with metadata and version, which are the same in all shards."""
    parts = list(batches)
    if parts:
        every = pa.Table.from_batches(parts).combine_chunks()
        encoded = every.column(0).combine_chunks().dictionary_encode()
        _, firsts = np.unique(encoded.indices.to_numpy(), return_index=True)
        yield from every.take(pa.array(firsts)).to_batches()
