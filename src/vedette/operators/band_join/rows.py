"""Reading the rows of a band join: ids, finite values, and which rows delete a value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from vedette.data.arrow_values import to_arrow
from vedette.data.columns import decode, large_strings
from vedette.data.frames import Frame, as_frame, check_array
from vedette.data.ids import INTEGER, STRING, item
from vedette.data.rows import find_ids, read_values
from vedette.data.schema import Field, Type
from vedette.errors import QueryError, RowError, count, nearest, shown
from vedette.operators.band_join.side import Side

_VALUE = Field("value", Type("double"))
SIDES = {1: "left", -1: "right"}


@dataclass(frozen=True)
class ValueRows:
    """Rows of one side in the order of arrival. Each inserts the value of an id, or deletes it."""

    ids: Any  # NDArray[np.int64] or pa.LargeStringArray; an id may occur several times
    values: NDArray[np.float64]  # not used in deletions
    deletes: NDArray[np.bool_]
    carried: pa.Table | None = None  # columns that answers carry


def read_rows(rows: Any, side: Side, *, has_ops: bool) -> ValueRows:
    """Rows with the columns `id` and `value`. With `has_ops`, a column `op` says which rows delete a value.

    Raises RowError if a row is invalid. Rows that delete a value need none.
    """
    name = SIDES[side.sign]
    frame = as_frame(rows)
    ids = _read_ids(_find_column(frame, "id", name), side, is_repeated=True)
    deletes = np.zeros(len(ids), np.bool_)
    if has_ops and "op" in frame:
        deletes = read_ops(_find_column(frame, "op", name), "op", name)
        _check_length(len(deletes), "ops", ids, name)
    if len(ids) and deletes.all():
        return ValueRows(ids, np.zeros(len(ids)), deletes)
    return ValueRows(ids, _read_values(_find_column(frame, "value", name), ids, name, deletes), deletes)


def read_ops(ops: Any, column: str, name: str) -> NDArray[np.bool_]:
    """Which rows of a side delete a value, by a column of 'insert' and 'delete' in upper or lower case."""
    try:
        found = decode(to_arrow(ops, column))
        texts = pc.utf8_lower(found.cast(pa.large_string()))
    except (RowError, pa.ArrowException):
        raise RowError(f"column {column!r} of the {name} rows must say 'insert' or 'delete' in each row") from None
    wrong = [each for each in pc.unique(texts).to_pylist() if each not in ("insert", "delete")]
    if wrong:
        got = "null" if wrong[0] is None else shown(wrong[0])
        raise RowError(f"column {column!r} of the {name} rows has {got}; a row must say 'insert' or 'delete'")
    return pc.equal(texts, "delete").to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


def read_new_values(rows: Any, side: Side) -> tuple[Any, NDArray[np.float64]]:
    """The ids and values of rows with the columns `id` and `value`; raises RowError if one is invalid.

    Raises RowError if an id already has a value, too.
    """
    name = SIDES[side.sign]
    frame = as_frame(rows)
    ids, values = (_find_column(frame, column, name) for column in ("id", "value"))
    one = _read_one(ids, values, side)
    if one is not None:
        return one
    read = _read_ids(ids, side)
    numbers = _read_values(values, read, name)
    if len(read):
        known = np.flatnonzero(side.find(read) >= 0)
        if len(known):
            raise known_id_error(item(read, int(known[0])), name)
    return read, numbers


def known_id_error(value_id: str | int, name: str) -> RowError:
    return RowError(
        f"is 'error', and {name} id {shown(value_id)} already has a value; delete it first, use another id, or use "
        f"'replace'",
        option="known_id",
    )


def unknown_ids_message(ids: Any, name: str) -> str:
    """Ids of a side that have no value and were to be deleted: how many, and the first ones."""
    few = ", ".join(shown(item(ids, place)) for place in range(min(len(ids), _FEW)))
    have = "has" if len(ids) == 1 else "have"
    return f"{count(len(ids), f'{name} id')} to delete {have} no value: {few}{', ...' if len(ids) > _FEW else ''}"


def _read_values(values: Any, ids: Any, name: str, deletes: NDArray[np.bool_] | None = None) -> NDArray[np.float64]:
    """The values of a side, all finite but those of deletions."""
    try:
        column = read_values(values, _VALUE, "UTC")
    except RowError:
        first: Any = next(iter(values), None)
        first = first.as_py() if hasattr(first, "as_py") else first
        raise RowError(f"the {name} values cannot be read as finite numbers; the first is {shown(first)}") from None
    _check_length(len(column), "values", ids, name)
    is_wrong = ~np.isfinite(column.values)
    if column.valid is not None:
        is_wrong |= ~column.valid
    if deletes is not None:
        is_wrong &= ~deletes
    if is_wrong.any():
        row = int(np.argmax(is_wrong))
        is_null = column.valid is not None and not column.valid[row]
        got = "null" if is_null else f"{column.values[row]:g}"
        raise RowError(
            f"the value of {name} row {row}, id {shown(item(ids, row))}, is {got}; values are finite numbers"
        )
    return np.array(column.values, np.float64)


def _check_length(n: int, what: str, ids: Any, name: str) -> None:
    if n != len(ids):
        raise RowError(f"the {name} rows have {len(ids)} ids but {n} {what}")


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
    return _read_ids(ids if type(ids) is list else find_ids(ids, f"the {SIDES[side.sign]} values to delete"), side)


def _read_ids(ids: Any, side: Side, *, is_repeated: bool = False) -> Any:
    """Ids of a side, strings or integers as its other ids. They are distinct unless `is_repeated`."""
    if type(ids) is list and len(ids) == 1:
        one = _read_one_id(ids[0], side)
        if one is not None:
            return one
    try:
        return side.ids.read_repeated(ids) if is_repeated else side.ids.read(ids)
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


_FEW = 10  # ids of a message
