"""What moving joins do inside Spark's Python workers; `shard_worker` calls it."""

from __future__ import annotations

import datetime
from collections.abc import Generator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vedette.data.ids import Ids
from vedette.errors import RowError, count
from vedette.operators.moving_join.moving_join import SETS, MovingJoin
from vedette.operators.moving_join.rows import MovingTable, read_moving_rows
from vedette.spark.shards import packing
from vedette.spark.shipping.query_sets import check_sender
from vedette.spark.workers.moving_shard import MovingShard
from vedette.spark.workers.moving_updates import Updates, to_batch


def check_rows(batch: pa.RecordBatch, plan: dict[str, Any]) -> pa.RecordBatch:
    """The rows as they travel; raises where one cannot be taken."""
    ids, name = batch.column(0), SETS[plan["side"]]
    if ids.null_count:
        raise RowError(
            f"the id of set {name}, column {batch.schema.names[0]!r}, is null in {count(ids.null_count, 'row')}; "
            f"filter such rows out before the join"
        )
    table = MovingTable(dict(zip(plan["names"], batch.columns, strict=True)), name) if batch.num_rows else None
    read = read_moving_rows(table, None, Ids(), name, n_dims=plan["n_dims"], time=None, is_static=plan["is_static"])
    return to_batch(read, plan["n_dims"])


def note(batch: pa.RecordBatch, plan: dict[str, Any]) -> bytes:
    """The times of the rows, at which all shards step."""
    return packing.to_payload(pa.record_batch([pc.unique(batch.column("time"))], names=["time"]))


def make_monitor(plan: dict[str, Any]) -> MovingShard:
    check_sender(plan["sender"])
    return MovingShard(MovingJoin(**plan["options"]), plan["n_dims"], plan["late"])


def step(monitor: MovingShard, sides: dict[int, pa.Table], shard: int, plan: dict[str, Any]) -> list[pa.Table]:
    a, b = (Updates.read(sides[side]) if side in sides else None for side in range(2))
    notes = [sides[note].column(0).to_numpy() for note in map(packing.note_of, range(2)) if note in sides]
    return monitor.step(a, b, np.concatenate([*notes, np.empty(0)]))


def advance(monitor: MovingShard, time: datetime.datetime, plan: dict[str, Any]) -> Generator[pa.Table, None, bool]:
    """Time passes with the rows, not with the watermark."""
    yield from ()
    return False
