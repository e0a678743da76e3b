"""A few rows with keys and times as columns, if their values are of the expected types.

Reading rows of any form costs more than a step of ten of them. Rows in other forms, rows with nulls in their keys, and
rows with errors are not read here: `read_keyed_rows` reads them, or raises the error.
"""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vedette.data.columns import Column, read_column, writable
from vedette.data.keyed_rows import MAX_TIME, KeyedRows
from vedette.data.one_row import DTYPES, KEY_TYPES, MICROSECONDS, PYTHON_TYPES, OneRowReader, find_places
from vedette.data.rows import read_values
from vedette.data.schema import Field, Type
from vedette.errors import RowError
from vedette.native.kernels import kernel

_ARROW_TYPES = {
    "double": (pa.float64(),),
    "bigint": (pa.int64(),),
    "string": (pa.large_string(), pa.string()),
}
_FIELDS = {name: Field(name, Type(name)) for name in _ARROW_TYPES}
_INSTANTS = pa.timestamp("us", tz="UTC")


def read_few_rows(rows: Any, reader: OneRowReader, most: int) -> KeyedRows | None:
    """The rows of the reader's stream, at most so many, or None if they must be read as those of any batch."""
    if type(rows) is dict:
        names, columns = tuple(rows), list(rows.values())
        if not 0 < _count_rows(columns) <= most:
            return None
    elif isinstance(rows, (pa.RecordBatch, pa.Table)) and 0 < rows.num_rows <= most:
        names, columns = tuple(rows.schema.names), rows.columns
    else:
        return None
    places = find_places(names, reader.wanted)
    if places is None:
        return None
    try:
        keys = _read_plain(columns[places[0]], KEY_TYPES[reader.key_kind])
        times = _read_times(columns[places[1]], reader)
        if keys is None or times is None or not _are_near(times, MAX_TIME if times.dtype == np.int64 else np.inf):
            return None
        fields = zip(reader.fields, places[2:], strict=True)
        values = {field.name: _read_values(columns[place], field, reader.time_zone) for field, place in fields}
        return KeyedRows(keys, None, times, reader.time_type, values, 0)
    except (RowError, ValueError, OverflowError):  # a value that Arrow or NumPy cannot hold, or with no UTF-8
        return None


def _count_rows(columns: list[Any]) -> int:
    """The length of columns that are lists and arrays of one length; -1 if some are not."""
    lengths = {
        len(column) if type(column) is list or (type(column) is np.ndarray and column.ndim == 1) else -1
        for column in columns
    }
    return lengths.pop() if len(lengths) == 1 else -1


def _read_values(column: Any, field: Field, time_zone: str) -> Column:
    if field.type.name in PYTHON_TYPES:
        values = _read_plain(column, field.type.name)
        if values is not None:
            return Column(values)
    return read_values(column, field, time_zone)


def _read_plain(column: Any, kind: str) -> Any:
    """The values of a column in their physical form, or None if some are null or of another type."""
    if type(column) is list:
        if set(map(type, column)) != {PYTHON_TYPES[kind]}:
            return None
        if kind == "string":
            return pa.array(column, pa.large_string())
        return np.array(column, DTYPES[kind])
    if type(column) is np.ndarray:
        if kind == "string":
            return pa.array(column.tolist(), pa.large_string()) if column.dtype.kind == "U" else None
        return writable(column) if column.dtype == DTYPES[kind] else None
    array = _only_chunk(column)
    if array is None or array.type not in _ARROW_TYPES[kind] or array.null_count:
        return None
    return read_column(array, _FIELDS[kind]).values


def _read_times(column: Any, reader: OneRowReader) -> NDArray[Any] | None:
    if reader.time_type != "timestamp":
        times: NDArray[Any] | None = _read_plain(column, reader.time_type)
        return times
    is_utc = reader.time_zone == "UTC"
    if type(column) is list:
        if any(type(each) is not datetime.datetime or each.tzinfo is not datetime.UTC for each in column):
            return None
        column = pa.array(column, _INSTANTS)
    elif type(column) is np.ndarray:
        return writable(column).view(np.int64) if is_utc and column.dtype == MICROSECONDS else None
    array = _only_chunk(column)
    if array is None or not pa.types.is_timestamp(array.type) or array.null_count:
        return None
    if array.type.unit != "us" or (array.type.tz is None and not is_utc):
        return None
    found: NDArray[np.int64] = read_column(array.view(pa.int64()), _FIELDS["bigint"]).values
    return found


def _only_chunk(column: Any) -> pa.Array | None:
    if isinstance(column, pa.ChunkedArray):
        return column.chunk(0) if column.num_chunks == 1 else None
    return column


@kernel
def _are_near(times: NDArray[Any], farthest: Any) -> bool:
    """Whether all times are between the two limits. NaN is not."""
    is_near = True
    for time in times:
        is_near &= -farthest < time < farthest
    return is_near
