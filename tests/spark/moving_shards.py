"""Shards of moving joins in this process, and what they tell of plain rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from spark import fleets

import vedette as vd
from vedette.data.ids import Ids
from vedette.operators.moving_join.rows import MovingTable, read_moving_rows
from vedette.spark.workers.moving_shard import MovingShard
from vedette.spark.workers.moving_updates import Updates, to_batch


def make_shard(n_dims=2, late="apply", **options):
    return MovingShard(vd.MovingJoin(fleets.INTERVAL, **options), n_dims, late)


def step(shard, a=(), b=(), times=(), n_dims=2, ids=fleets.NUMBERS):
    """The lines that rows change, and other times heard of."""
    times = np.array([*(time for _, time, _ in (*a, *b)), *times], np.float64)
    tables = shard.step(_updates(a, n_dims, ids), _updates(b, n_dims, ids), times)
    return [line for table in tables for line in fleets.as_lines(table.to_pylist())]


def _updates(rows, n_dims, ids):
    if not rows:
        return None
    table = MovingTable(fleets.to_table(rows, n_dims, ids), "a")
    read = read_moving_rows(table, None, Ids(), "a", n_dims=n_dims, time=None, is_static=False)
    return Updates.read(pa.Table.from_batches([to_batch(read, n_dims)]))
