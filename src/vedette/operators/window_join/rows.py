"""Rows of a stream of a window join, read and ordered by time, then by id."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from vedette.data.columns import Column, large_strings, null_column
from vedette.data.frames import as_frame
from vedette.data.keyed_rows import read_keys, read_times
from vedette.data.rows import read_rows
from vedette.data.schema import Schema, Type
from vedette.errors import RowError
from vedette.operators.window_join.join import Batch


@dataclass(frozen=True)
class JoinRows:
    """Rows in their given order. `ids` is None if rows are identified by their number."""

    n: int
    times: NDArray[Any]
    time_type: str  # empty if it is unknown
    ids: Column | None
    columns: dict[str, Column]  # by stream and field
    carried: pa.Table | None = None  # columns that answers carry

    @classmethod
    def none(cls, types: dict[str, Type], is_numbered: bool) -> JoinRows:
        """No rows."""
        columns = {name: null_column(type_, 0) for name, type_ in types.items()}
        return cls(0, np.empty(0, np.int64), "", None if is_numbered else Column(large_strings([])), columns)

    @property
    def id_type(self) -> Type:
        return Type("bigint" if self.ids is None or isinstance(self.ids.values, np.ndarray) else "string")

    def in_order(self, kept: NDArray[np.bool_] | None, first_number: int, time_dtype: Any, *, by_time: bool) -> Batch:
        """The kept rows, ordered by time and id, or in the order of arrival.

        Rows without an id are identified by their number, from `first_number` on.
        """
        places = np.arange(self.n) if kept is None else np.flatnonzero(kept)
        all_times = self.times.astype(time_dtype)
        times = all_times[places]
        ids = Column(np.arange(first_number, first_number + self.n)) if self.ids is None else self.ids
        if by_time and (times[1:] <= times[:-1]).any():
            places = places[np.lexsort((_rank(ids.take(places)), times))]
        whole = len(places) == self.n and bool((np.diff(places) == 1).all())
        columns = self.columns if whole else {name: column.take(places) for name, column in self.columns.items()}
        carried = self.carried if whole or self.carried is None else self.carried.take(pa.array(places))
        return Batch(
            all_times if whole else all_times[places],
            ids if whole else ids.take(places),
            self.id_type,
            columns,
            carried,
        )


def read_join_rows(
    rows: Any, stream: str, schema: Schema, fields: list[str], time_zone: str, time: str | None, id_: str | None
) -> JoinRows:
    """The fields that queries use, the times and the ids of the rows of a stream."""
    try:
        frame = as_frame(rows)
        columns, n_rows = read_rows(frame, schema, fields, time_zone, or_else="")
        ids = None
        if id_ is not None:
            keys, codes = read_keys(frame, schema, time_zone, id_, "id")
            ids = keys if codes is None else keys.take(codes)
            if ids.valid is not None and not ids.valid.all():
                raise RowError(f"id {id_!r} is null in row {int(np.argmin(ids.valid))}; every row needs one")
            ids = Column(ids.values)
        times, time_type = np.zeros(n_rows, np.int64), "bigint"
        if time is not None:
            times, time_type = read_times(frame, schema, time_zone, time)
    except RowError as error:
        raise error.within(f"{stream} rows") from None
    return JoinRows(n_rows, times, time_type, ids, {f"{stream}.{name}": column for name, column in columns.items()})


def _rank(ids: Column) -> NDArray[Any]:
    """Numbers that have the order of the ids."""
    if isinstance(ids.values, np.ndarray):
        return ids.values
    return np.asarray(pc.rank(ids.values, tiebreaker="dense"))
