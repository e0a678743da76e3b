"""One row with a key and a time, read without columns, if its values are of the expected types.

Reading columns costs the same for one row as for a thousand. Rows in other forms, and rows with errors, are not read
here: `read_keyed_rows` reads them, or raises the error.
"""

from __future__ import annotations

import datetime
import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from vedette.data.columns import Column, large_strings
from vedette.data.ids import INTEGER, STRING
from vedette.data.keyed_rows import MAX_TIME
from vedette.data.rows import read_values
from vedette.data.schema import Field
from vedette.errors import RowError

PYTHON_TYPES: dict[str, Any] = {"double": float, "bigint": int, "string": str}
_SCALARS = {
    "double": (pa.DoubleScalar,),
    "bigint": (pa.Int64Scalar,),
    "string": (pa.StringScalar, pa.LargeStringScalar),
}
DTYPES = {"double": np.dtype(np.float64), "bigint": np.dtype(np.int64)}
KEY_TYPES = {STRING: "string", INTEGER: "bigint"}
MICROSECONDS = np.dtype("datetime64[us]")
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MICROSECOND = datetime.timedelta(microseconds=1)


class OneRow(NamedTuple):
    key: str | int
    time: int | float
    values: dict[str, Any]  # by field: a float or an int for a double or a bigint, else a column of length one


@dataclass(frozen=True)
class OneRowReader:
    """Reads rows of a stream one by one."""

    key: str
    key_kind: str  # as of `Ids`
    time: str
    time_type: str
    fields: tuple[Field, ...]
    time_zone: str

    def read(self, rows: Any) -> OneRow | None:
        """The row of a batch of one row, or None if the batch must be read as columns."""
        if type(rows) is dict:
            names, columns = tuple(rows), list(rows.values())
            for column in columns:
                is_list = type(column) is list and len(column) == 1
                if not is_list and not (type(column) is np.ndarray and column.shape == (1,)):
                    return None
        elif isinstance(rows, (pa.RecordBatch, pa.Table)) and rows.num_rows == 1:
            names, columns = tuple(rows.schema.names), rows.columns
        else:
            return None
        places = find_places(names, self.wanted)
        if places is None:
            return None
        try:
            key = _read_plain(columns[places[0]], KEY_TYPES[self.key_kind])
            time = self._read_time(columns[places[1]])
            if key is None or time is None:
                return None
            str(key).encode()  # raises if it has no UTF-8
            return OneRow(
                key,
                time,
                {
                    field.name: _read_value(columns[place], field, self.time_zone)
                    for field, place in zip(self.fields, places[2:], strict=True)
                },
            )
        except (RowError, UnicodeError):
            return None

    @cached_property
    def wanted(self) -> tuple[str, ...]:
        return tuple(name.lower() for name in (self.key, self.time, *(field.name for field in self.fields)))

    def _read_time(self, column: Any) -> int | float | None:
        """The time, or None if it is of another type or out of range."""
        time: Any = self._read_timestamp(column) if self.time_type == "timestamp" else None
        if self.time_type != "timestamp":
            time = _read_plain(column, self.time_type)
        if time is None or (math.isinf(time) if self.time_type == "double" else abs(time) >= MAX_TIME):
            return None
        return None if time != time else time

    def _read_timestamp(self, column: Any) -> int | None:
        """Microseconds since 1970, if the column has an instant, or a time in UTC."""
        is_utc = self.time_zone == "UTC"
        if type(column) is list:
            value = column[0]
            is_instant = type(value) is datetime.datetime and value.tzinfo is datetime.UTC
            return (value - _EPOCH) // _MICROSECOND if is_instant else None
        if type(column) is np.ndarray:
            return int(column.view(np.int64)[0]) if is_utc and column.dtype == MICROSECONDS else None
        scalar = column[0]
        if type(scalar) is not pa.TimestampScalar or scalar.type.unit != "us":
            return None
        found: int | None = scalar.value if is_utc or scalar.type.tz is not None else None
        return found


@lru_cache(maxsize=256)
def find_places(names: tuple[Any, ...], wanted: tuple[str, ...]) -> tuple[int, ...] | None:
    """Where the wanted columns are, or None if one is missing or a name occurs twice, ignoring case."""
    if not all(type(name) is str for name in names):
        return None
    places = {name.lower(): place for place, name in enumerate(names)}
    if len(places) < len(names) or not places.keys() >= set(wanted):
        return None
    return tuple(places[name] for name in wanted)


def _read_value(column: Any, field: Field, time_zone: str) -> Any:
    kind = field.type.name
    if kind in PYTHON_TYPES:
        value = _read_plain(column, kind)
        if value is not None:
            return Column(large_strings([value])) if kind == "string" else value
    return read_values(column, field, time_zone)


def _read_plain(column: Any, kind: str) -> Any:
    """The value of a column of one value, or None if it is null or of another type."""
    if type(column) is list:
        value: Any = column[0]
    elif type(column) is np.ndarray:
        if column.dtype != DTYPES[kind] if kind != "string" else column.dtype.kind != "U":
            return None
        value = column.item()
    else:
        scalar = column[0]
        value = scalar.as_py() if type(scalar) in _SCALARS[kind] else None
    if type(value) is not PYTHON_TYPES[kind] or (kind == "bigint" and not -(1 << 63) <= value < 1 << 63):
        return None
    return None if value != value and type(column) is list else value  # Arrow reads NaN in lists
