"""Values of a band join as owners hold them: ids, and finite numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vedette.errors import QueryError, RowError, nearest
from vedette.ids import item
from vedette.operators.band_join_side import Side
from vedette.rows import as_mapping, read_values
from vedette.schema import Field, Type

_VALUE = Field("value", Type("double"))
SIDES = {1: "left", -1: "right"}


def read_new_values(rows: Any, side: Side) -> tuple[Any, NDArray[np.float64]]:
    """The ids and values of rows with the columns `id` and `value`; raises RowError where one cannot be taken."""
    name = SIDES[side.sign]
    table = as_mapping(rows)
    ids, values = (_find_column(table, column, name) for column in ("id", "value"))
    read = read_ids(ids, side)
    try:
        column = read_values(values, _VALUE, "UTC")
    except RowError:
        first = next(iter(values)).as_py() if hasattr(values, "type") else next(iter(values))
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
                f"{name} id {item(read, int(there[0]))!r} has a value already; delete it first, or use another id"
            )
    return read, np.array(column.values, np.float64)


def read_ids(ids: Any, side: Side) -> Any:
    """The ids of values of a side, distinct and of its kind."""
    try:
        return side.ids.read(ids)
    except QueryError as error:
        raise RowError(f"{SIDES[side.sign]} ids: {error.reason}") from None


def _find_column(table: Any, name: str, side: str) -> Any:
    names = list(table) if isinstance(table, Mapping) else table.schema.names
    for place, known in enumerate(names):
        if str(known).lower() == name:
            return table[known] if isinstance(table, Mapping) else table.column(place)
    known = sorted(map(str, names))
    have = f"{', '.join(known) or 'none'}{nearest(name, known)}"
    raise RowError(f"the {side} rows lack column {name!r}; they need id and value, and have: {have}")
