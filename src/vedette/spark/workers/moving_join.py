"""Moving joins inside Spark's Python workers; see `vedette.spark.workers.shard`.

All shards step at the same times, whether they have rows then or not. So the answer does not depend on their number,
and they agree on which rows are late.
"""

from __future__ import annotations

import datetime
from collections.abc import Generator, Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from vedette.data.columns import writable
from vedette.data.ids import Ids
from vedette.errors import RowError, count
from vedette.operators.moving_join.batch import SETS
from vedette.operators.moving_join.motion_rows import SIDES, TIME
from vedette.operators.moving_join.moving_join import MovingJoin
from vedette.operators.moving_join.rows import MovingRows, MovingTable, read_moving_rows
from vedette.spark.shards import packing
from vedette.spark.shipping.query_sets import check_sender

_OWN = 3  # columns of a row besides sides and speeds


def check_rows(batch: pa.RecordBatch, plan: dict[str, Any]) -> pa.RecordBatch:
    """The rows as they are sent to shards; raises RowError if one is invalid."""
    ids, name = batch.column(0), SETS[plan["side"]]
    if ids.null_count:
        raise RowError(
            f"the id of set {name}, column {batch.schema.names[0]!r}, is null in {count(ids.null_count, 'row')}; "
            f"filter such rows out before the join"
        )
    own, carried = batch.columns[: len(plan["names"])], batch.columns[len(plan["names"]) :]
    table = MovingTable(dict(zip(plan["names"], own, strict=True)), name) if batch.num_rows else None
    read = read_moving_rows(table, None, Ids(), name, n_dims=plan["n_dims"], time=None, is_static=plan["is_static"])
    return to_batch(read, carried)


def to_batch(read: MovingRows, carried: Sequence[pa.Array] = ()) -> pa.RecordBatch:
    """Rows as they are sent: the id, whether the object is removed, the time, sides and speeds, carried columns."""
    numbers = [np.ascontiguousarray(read.rows[:, column]) for column in (TIME, *range(SIDES, read.rows.shape[1]))]
    columns = [pa.array(each) for each in (read.ids, read.removed, *numbers)]
    names = ["id", "removed", "time", *map(str, range(len(numbers) - 1 + len(carried)))]
    return pa.record_batch([*columns, *carried], names)


def read_sides(sides: dict[int, pa.Table], monitor: MovingJoin, n_dims: int) -> list[MovingRows]:
    """The rows of both sets, with the columns that answers carry."""
    return [from_table(sides.get(side), n_dims, monitor, name) for side, name in enumerate(SETS)]


def from_table(table: pa.Table | None, n_dims: int, monitor: MovingJoin, name: str) -> MovingRows:
    """The rows of a set that `to_batch` sent."""
    if table is None:
        return MovingRows.empty(n_dims)
    n_own, carried = _OWN + 4 * n_dims, None
    if table.num_columns > n_own:
        named = table.select(range(n_own, table.num_columns)).rename_columns(list(monitor.columns.of[name]))
        carried = monitor.columns.read_rows(named, name, table.num_rows, 0, monitor.carried_of(name))
    ids, removed, times, *sides = (column.combine_chunks() for column in table.columns[:n_own])
    rows = np.zeros((table.num_rows, SIDES + 4 * n_dims))
    rows[:, TIME] = times
    for column, values in enumerate(sides, SIDES):
        rows[:, column] = values
    is_number = pa.types.is_integer(ids.type)
    ids = writable(ids.to_numpy()) if is_number else ids.cast(pa.large_string())
    return MovingRows.make(ids, rows, removed.to_numpy(zero_copy_only=False), carried=carried)


def note(batch: pa.RecordBatch, plan: dict[str, Any]) -> bytes:
    """The times of the rows, at which all shards step."""
    return packing.to_payload(pa.record_batch([pc.unique(batch.column("time"))], names=["time"]))


def make_monitor(plan: dict[str, Any]) -> MovingJoin:
    check_sender(plan["sender"])
    return MovingJoin(**plan["options"], late=plan["late"])


def step(monitor: MovingJoin, sides: dict[int, pa.Table], shard: int, plan: dict[str, Any]) -> Iterable[pa.Table]:
    a, b = read_sides(sides, monitor, plan["n_dims"])
    return monitor.update_each(a, b, times_of(sides), plan["max_answer_bytes"])


def times_of(sides: dict[int, pa.Table]) -> NDArray[np.float64]:
    """The times of the rows of all shards."""
    notes = [sides[note].column(0).to_numpy() for note in map(packing.note_of, range(2)) if note in sides]
    return np.concatenate([*notes, np.empty(0)])


def advance(
    monitor: MovingJoin, time: datetime.datetime, shard: int, plan: dict[str, Any]
) -> Generator[pa.Table, None, bool]:
    """Time passes with the rows, not with the watermark."""
    yield from ()
    return False


def read_counts(monitor: MovingJoin, shard: int, plan: dict[str, Any]) -> dict[str, int]:
    """A row may go to several shards; one of them counts it if it is late."""
    late = sum(n for n, shards in zip(monitor.late_rows, plan["reporters"], strict=True) if shard in shards)
    return {"late": late, "state_rows": monitor.n_a + monitor.n_b}
