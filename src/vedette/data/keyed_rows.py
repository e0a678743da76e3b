"""Rows of a stream with keys and times: the columns needed in addition to the fields that queries use."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vedette.data.arrow_values import to_arrow
from vedette.data.columns import Column, large_strings, null_column
from vedette.data.frames import Frame, as_frame
from vedette.data.rows import read_rows, read_values
from vedette.data.schema import Field, Schema, Type
from vedette.errors import RowError, nearest, shown

TIME_TYPES = {"timestamp": np.int64, "bigint": np.int64, "double": np.float64}  # and their physical types
KEY_TYPES = ("string", "bigint")
MAX_TIME = 1 << 62  # of the absolute value, so that differences and sums with durations fit into 64 bits
_AN = {"key": "a key", "id": "an id"}


@dataclass(frozen=True)
class KeyedRows:
    """Columns of one length."""

    keys: Any  # NDArray[np.int64], or a pa.LargeStringArray; with codes, the distinct keys
    codes: NDArray[np.int32] | None  # of each row: the place of its key in `keys`
    times: NDArray[Any]
    time_type: str  # of TIME_TYPES
    columns: dict[str, Column]  # the fields that queries use
    n_null_keys: int  # rows that were dropped because they have no key
    kept: NDArray[np.int64] | None = None  # the rows that have a key, if some were dropped

    def __len__(self) -> int:
        return len(self.times)


def read_keyed_rows(
    rows: Any, schema: Schema, fields: Collection[str], time_zone: str, *, key: str, time: str, drops_null_keys: bool
) -> KeyedRows:
    """The fields, keys and times of rows. `key` and `time` name columns, which need not be in the schema."""
    frame = as_frame(rows)
    columns, _ = read_rows(frame, schema, fields, time_zone, or_else="")
    keys, codes = read_keys(frame, schema, time_zone, key)
    times, time_type = read_times(frame, schema, time_zone, time)
    if keys.valid is None or keys.valid.all():
        return KeyedRows(keys.values, codes, times, time_type, columns, 0)
    kept = np.flatnonzero(keys.valid)
    if not drops_null_keys:
        raise RowError(
            f"is 'error', and the key {key!r} is null in row {int(np.argmin(keys.valid))}; give every row a key, or "
            f"use 'drop'",
            option="null_key",
            field=key,
        )
    columns = {name: column.take(kept) for name, column in columns.items()}
    return KeyedRows(keys.take(kept).values, None, times[kept], time_type, columns, len(times) - len(kept), kept)


def read_time(value: Any, time_type: str, time_zone: str) -> Any:
    """One time in the type of the rows' times: a datetime for timestamps, else a number."""
    try:
        column = read_values([value], Field("time", Type(time_type)), time_zone)
    except RowError:
        column = null_column(Type(time_type), 1)
    if column.valid is not None or column.values[0] != column.values[0]:
        wanted = {"timestamp": "datetime", "bigint": "whole number", "double": "number"}[time_type]
        raise RowError(f"a time must be a {wanted}; got {shown(value)}")
    return column.values[0]


def read_near_time(value: Any, time_type: str, time_zone: str) -> Any:
    """The same, and the time must be in the range of rows' times."""
    read = read_time(value, time_type, time_zone)
    if _are_far(np.array([read]), time_type):
        raise RowError(f"a time must be {_TIME_RANGES[time_type]}; got {shown(value)}")
    return read


def read_keys(
    frame: Frame, schema: Schema, time_zone: str, name: str, role: str = "key"
) -> tuple[Column, NDArray[np.int32] | None]:
    """The keys of the rows. For a dictionary: the keys that are used, and the code of each row."""
    values, field = _find_column(frame, schema, name, role)
    if field.type.name == "null":
        return Column(large_strings([""] * len(values)), np.zeros(len(values), np.bool_)), None
    if field.type.name not in KEY_TYPES:
        raise RowError(f"{role} {name!r} is {field.type}; {_AN[role]} must be a string or a whole number")
    if isinstance(values, pa.ChunkedArray) and values.num_chunks == 1:
        values = values.chunk(0)
    is_plain = not isinstance(values, pa.DictionaryArray) or values.null_count > 0
    if is_plain or values.dictionary.null_count > 0 or len(values.dictionary) > len(values):
        return read_values(values, field, time_zone), None
    codes = values.indices.cast(pa.int32()).to_numpy()
    used = np.zeros(len(values.dictionary), np.bool_)
    used[codes] = True
    names = values.dictionary
    if pa.types.is_string_view(names.type):  # of polars; Arrow cannot filter it
        names = names.cast(pa.large_string())
    keys = read_values(names.filter(pa.array(used)), field, time_zone)
    return keys, (np.cumsum(used, dtype=np.int32) - 1)[codes]


def read_times(frame: Frame, schema: Schema, time_zone: str, name: str) -> tuple[NDArray[Any], str]:
    """The times of the rows, without nulls, and their type; the type is empty if there are no rows."""
    values, field = _find_column(frame, schema, name, "time")
    if field.type.name == "null":
        if len(values):
            raise RowError(f"time {name!r} is missing in row 0; every row needs one")
        return np.empty(0, np.int64), ""
    if field.type.name not in TIME_TYPES:
        raise RowError(f"time {name!r} is {field.type}; a time must be a timestamp or a number (bigint or double)")
    column = read_values(values, field, time_zone)
    missing = np.zeros(len(column), np.bool_) if column.valid is None else ~column.valid
    if field.type.name == "double":
        missing |= np.isnan(column.values)
    if missing.any():
        raise RowError(f"time {name!r} is missing in row {int(np.argmax(missing))}; every row needs one")
    if _are_far(column.values, field.type.name):
        row = next(row for row in range(len(column)) if _are_far(column.values[row : row + 1], field.type.name))
        what = "infinite" if field.type.name == "double" else "beyond 2^62"
        raise RowError(f"time {name!r} is {what} in row {row}; a time must be {_TIME_RANGES[field.type.name]}")
    return column.values, field.type.name


_TIME_RANGES = {
    "timestamp": "less than 2^62 microseconds from 1970",
    "bigint": "less than 2^62 from 0",
    "double": "finite",
}


def _are_far(times: NDArray[Any], time_type: str) -> bool:
    """Whether some times are out of range. NaN does not occur."""
    farthest = np.inf if time_type == "double" else MAX_TIME
    return bool(len(times)) and bool(times.max() >= farthest or times.min() <= -farthest)


def _find_column(frame: Frame, schema: Schema, name: str, role: str) -> tuple[Any, Field]:
    """The column of a role and its field. If the schema has no such field, the type is that of the values."""
    values = frame.find(name)
    if values is None:
        known = sorted(frame.names)
        have = f"{', '.join(known)}{nearest(name, known)}"
        raise RowError(f"the rows have no column {name!r} for the {role}; they have: {have}")
    field = schema.find(name)
    if field is None:
        values = to_arrow(values, f"{role} {name!r}")
        return values, Field(name, Type(_type_of(values.type)))
    return values, Field(field.name, field.type.widest)


def _type_of(type_: pa.DataType) -> str:
    """The type name of a column that is not in the schema."""
    if isinstance(type_, (pa.DictionaryType, pa.RunEndEncodedType)):
        type_ = type_.value_type
    kinds = pa.types
    if kinds.is_integer(type_):
        return "bigint"
    if kinds.is_floating(type_):
        return "double"
    if kinds.is_timestamp(type_):
        return "timestamp"
    is_text = kinds.is_string(type_) or kinds.is_large_string(type_) or kinds.is_string_view(type_)
    return "string" if is_text else str(type_)
