"""Reading the rows of a band join: ids and finite numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vedette.data.columns import large_strings
from vedette.data.frames import Frame, as_frame, check_array
from vedette.data.ids import INTEGER, STRING, item
from vedette.data.rows import find_ids, read_values
from vedette.data.schema import Field, Type
from vedette.errors import QueryError, RowError, nearest
from vedette.operators.band_join.side import Side

_VALUE = Field("value", Type("double"))
SIDES = {1: "left", -1: "right"}


def read_new_values(rows: Any, side: Side) -> tuple[Any, NDArray[np.float64]]:
    """The ids and values of rows with the columns `id` and `value`; raises RowError if one is invalid."""
    name = SIDES[side.sign]
    frame = as_frame(rows)
    ids, values = (_find_column(frame, column, name) for column in ("id", "value"))
    one = _read_one(ids, values, side)
    if one is not None:
        return one
    read = read_ids(ids, side)
    try:
        column = read_values(values, _VALUE, "UTC")
    except RowError:
        first: Any = next(iter(values), None)
        first = first.as_py() if hasattr(first, "as_py") else first
        raise RowError(f"the {name} values cannot be read as finite numbers; the first is {first!r}") from None
    if len(column) != len(read):
        raise RowError(f"the {name} rows have {len(read)} ids but {len(column)} values")
    is_wrong = ~np.isfinite(column.values)
    if column.valid is not None:
        is_wrong |= ~column.valid
    if is_wrong.any():
        row = int(np.argmax(is_wrong))
        is_null = column.valid is not None and not column.valid[row]
        got = "null" if is_null else f"{column.values[row]:g}"
        raise RowError(f"the value of {name} row {row}, id {item(read, row)!r}, is {got}; values are finite numbers")
    if len(read):
        there = np.flatnonzero(side.find(read) >= 0)
        if len(there):
            raise RowError(
                f"{name} id {item(read, int(there[0]))!r} already has a value; delete it first, or use another id"
            )
    return read, np.array(column.values, np.float64)


def _read_one(ids: Any, values: Any, side: Side) -> tuple[Any, NDArray[np.float64]] | None:
    """One valid new value in plain lists: common in streams, and five times as fast."""
    if type(ids) is not list or type(values) is not list or len(ids) != 1 or len(values) != 1:
        return None
    value = values[0]
    if type(value) is not float or not -np.inf < value < np.inf:
        return None
    read = _read_one_id(ids[0], side)
    return None if read is None or side.find(read)[0] >= 0 else (read, np.array([value]))


def _read_one_id(value_id: Any, side: Side) -> Any:
    if type(value_id) is int and -(1 << 63) <= value_id < 1 << 63 and side.ids.kind != STRING:
        return np.array([value_id], np.int64)
    if type(value_id) is str and value_id.isascii() and side.ids.kind != INTEGER:
        return large_strings([value_id])
    return None


def read_deleted(ids: Any, side: Side) -> Any:
    """The ids of values to delete, given alone or as rows with a column `id`."""
    return read_ids(ids if type(ids) is list else find_ids(ids, f"the {SIDES[side.sign]} values to delete"), side)


def read_ids(ids: Any, side: Side) -> Any:
    """Distinct ids of a side, strings or integers as its other ids."""
    if type(ids) is list and len(ids) == 1:
        one = _read_one_id(ids[0], side)
        if one is not None:
            return one
    try:
        return side.ids.read(ids)
    except QueryError as error:
        raise RowError(f"{SIDES[side.sign]} ids: {error.reason}") from None


def _find_column(frame: Frame, name: str, side: str) -> Any:
    try:
        column = frame.find(name)
        if column is not None:
            check_array(column, name)
            return column
    except RowError as error:
        raise error.within(f"{side} rows") from None
    known = sorted(frame.names)
    have = f"{', '.join(known) or 'none'}{nearest(name, known)}"
    raise RowError(f"the {side} rows lack column {name!r}; they need id and value, and have: {have}")
