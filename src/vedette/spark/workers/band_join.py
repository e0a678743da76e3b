"""What band joins do inside Spark's Python workers; `shard_worker` calls it."""

from __future__ import annotations

import datetime
import itertools
import logging
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from vedette.data.columns import decode
from vedette.errors import RowError, count
from vedette.spark.workers.band_changes import BandChanges, find_changes
from vedette.spark.workers.following import open_queries

if TYPE_CHECKING:
    from vedette.operators.band_join.monitor import BandMonitor
    from vedette.operators.band_join.query_set import BandQuerySet

SIDES = ("left", "right")
_FEW = 10  # ids that are named where there are more
_log = logging.getLogger(__name__)


def check_rows(batch: pa.RecordBatch, plan: dict[str, Any]) -> pa.RecordBatch:
    """Ids, finite values, and whether each is a deletion; raises where a row cannot be taken."""
    side, (id_name, value_name) = SIDES[plan["side"]], batch.schema.names[:2]
    ids, values = batch.columns[:2]
    if ids.null_count:
        raise RowError(
            f"the {side} id, column {id_name!r}, is null in {count(ids.null_count, 'row')}; filter such rows out "
            f"before the join"
        )
    deletes = _read_ops(batch, side)
    finite = pc.fill_null(pc.is_finite(values), False)
    is_wrong = pc.and_not(pc.invert(finite), deletes)
    n_wrong = pc.sum(is_wrong).as_py() or 0
    if n_wrong:
        row = pc.index(is_wrong, True).as_py()
        got = "null" if not values[row].is_valid else str(values[row])
        raise RowError(
            f"the {side} value, column {value_name!r}, is no finite number in {count(n_wrong, 'row')}, first {got} of "
            f"id {ids[row].as_py()!r}; filter such rows out before the join"
        )
    return pa.record_batch([ids, pc.if_else(finite, values, 0.0), deletes], names=["id", "value", "deletes"])


def _read_ops(batch: pa.RecordBatch, side: str) -> pa.BooleanArray:
    """Whether each row is a deletion, by the third column if there is one."""
    if batch.num_columns == 2:
        return pa.repeat(False, batch.num_rows)
    ops, name = pc.utf8_lower(batch.column(2)), batch.schema.names[2]
    wrong = [each for each in pc.unique(ops).to_pylist() if each not in ("insert", "delete")]
    if wrong:
        got = "null" if wrong[0] is None else repr(wrong[0])
        raise RowError(f"column {name!r} of the {side} rows holds {got}; a row says 'insert' or 'delete'")
    return pc.equal(ops, "delete")


def note(batch: pa.RecordBatch, plan: dict[str, Any]) -> bytes:
    return b""


def make_monitor(plan: dict[str, Any]) -> BandMonitor:
    queries: BandQuerySet = open_queries(plan["parcel"]).queries
    return queries.monitor(**plan["options"])


def step(monitor: BandMonitor, sides: dict[int, pa.Table], shard: int, plan: dict[str, Any]) -> Iterator[pa.Table]:
    """What the rows change in the end: first what goes, then what comes."""
    replaces = plan["known_id"] == "replace"
    changes = {
        name: find_changes(sides[side], getattr(monitor, name), name, replaces)
        for side, name in enumerate(SIDES)
        if side in sides
    }
    told = _tell_unknown(changes, shard, plan)
    deleted = {name: each.deleted for name, each in changes.items() if len(each.deleted)}
    inserted = {
        name: {"id": each.inserted, "value": each.values} for name, each in changes.items() if len(each.inserted)
    }
    tables = _change(monitor, deleted, inserted, plan["batch_bytes"])
    if plan["options"]["report"] == "queries":
        names = pa.chunked_array([decode(each.column(0).combine_chunks()) for each in tables])
        tables = iter([pa.table([pc.unique(names)], names=["query"])])
    return itertools.chain(told, tables)


def _change(monitor: BandMonitor, deleted: dict[str, Any], inserted: dict[str, Any], most: int) -> Iterator[pa.Table]:
    if deleted:
        yield from monitor.delete_batches(**deleted, max_bytes=most)
    if inserted:
        yield from monitor.insert_batches(**inserted, max_bytes=most)
    if not deleted and not inserted:
        yield from monitor.refresh_batches(max_bytes=most)


def _tell_unknown(changes: dict[str, BandChanges], shard: int, plan: dict[str, Any]) -> list[pa.Table]:
    """What is said of ids that were to be deleted and had no value, by one of the shards that a row goes to."""
    tables = []
    for side, name in enumerate(SIDES):
        if name not in changes or not len(changes[name].unknown) or shard not in plan["tellers"][side]:
            continue
        ids = pa.array(changes[name].unknown)
        shown = ", ".join(map(repr, ids[:_FEW].to_pylist())) + (", ..." if len(ids) > _FEW else "")
        message = f"{count(len(ids), f'{name} id')} to be deleted had no value: {shown}"
        if plan["unknown_id"] == "error":
            raise RowError(f"is 'error', and {message}; use 'log' or 'report' to continue", option="unknown_id")
        if plan["unknown_id"] == "log":
            _log.warning(message)
        else:
            none = pa.nulls(len(ids))
            columns = [pa.repeat(pa.scalar(0, pa.int8()), len(ids)), none, *((ids, none) if side == 0 else (none, ids))]
            tables.append(pa.table(columns, names=["sign", "query", "left", "right"]))
    return tables


def advance(monitor: BandMonitor, time: datetime.datetime, plan: dict[str, Any]) -> Generator[pa.Table, None, bool]:
    """Time alone changes nothing."""
    yield from ()
    return False


def keep_distinct(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Each query of a partition once, with the version, which is the same for all."""
    parts = list(batches)
    if parts:
        names = pc.unique(pa.chunked_array([batch.column(0) for batch in parts]))
        versions = [
            pa.repeat(batch.column(1)[0], len(names)) for batch in parts if batch.num_columns > 1 and batch.num_rows
        ]
        columns = [names, *versions[:1]] if len(names) else [column.slice(0, 0) for column in parts[0].columns]
        yield pa.record_batch(columns, names=parts[0].schema.names)
