"""Rows of users (Arrow, pandas, polars, dicts), read into columns.

In pandas a missing value is null, as for Arrow and Spark; in NumPy arrays NaN is a number. Timestamps without a zone
are wall-clock time in the zone of the query set.
"""

from __future__ import annotations

import datetime
from collections.abc import Collection, Iterable, Mapping
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa

from vedette.data.arrow_values import UNREADABLE, is_missing, to_arrow
from vedette.data.columns import Column, large_strings, read_column, writable
from vedette.data.frames import ambiguous, as_frame, check_array, find_twins
from vedette.data.schema import Field, Schema, arrow_type
from vedette.errors import RowError, closest, nearest, shown

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_ONE_VALUE = {  # the value of a single row for a type
    "bigint": "a whole number from -2^63 to 2^63 - 1",
    "double": "a float or an int",
    "decimal": "a decimal.Decimal or an int that fits the type",
    "boolean": "True or False",
    "string": "a str",
    "date": "a datetime.date",
    "timestamp": "a datetime.datetime",
}
_NUMBERS = {"double": np.dtype(np.float64), "bigint": np.dtype(np.int64)}


def read_rows(
    rows: Any, schema: Schema, fields: Collection[str], time_zone: str, *, or_else: str = ", or use match_one"
) -> tuple[dict[str, Column], int]:
    """The columns of the named fields, and the number of rows.

    `or_else` is the advice for a caller that passes values instead of columns.
    """
    frame = as_frame(rows)
    n_rows = frame.count_rows(or_else)
    columns = {}
    for name in fields:
        values = frame.find(name)
        if values is None:
            raise lacks_field(name, frame.names)
        field = schema.find(name)
        assert field is not None
        columns[name] = read_values(values, field, time_zone)
    return columns, n_rows


def lacks_field(name: str, names: Iterable[str]) -> RowError:
    """The error for a field that queries use and the rows do not have. `names` are the rows' columns."""
    known = sorted(names)
    have = f"{', '.join(known) or 'none'}{nearest(name, known)}"
    return RowError(f"the rows lack field {name!r}, which queries use; they have: {have}", field=name)


def read_row(row: Mapping[str, Any], schema: Schema, fields: Collection[str], time_zone: str) -> dict[str, Column]:
    """One row as columns of length one. A field that is missing or None is null."""
    if not isinstance(row, Mapping):
        raise RowError(f"a row must be a dict of values by field; got {type(row).__name__}; use match for many rows")
    twins = find_twins(tuple(row))
    columns = {}
    for name in fields:
        if twins and name.lower() in twins:
            raise ambiguous(name, map(str, row))
        value = row.get(name)
        if value is None and name not in row:
            value = _find_folded(row, name, schema)
        field = schema.find(name)
        assert field is not None
        columns[name] = _read_value(value, field, time_zone)
    return columns


def _find_folded(row: Mapping[str, Any], name: str, schema: Schema) -> Any:
    """The value of the field, ignoring case, or None. Raises if another name in the row looks like a misspelling."""
    for key in row:
        if str(key).lower() == name.lower():
            return row[key]
    misspelt = closest(name, [str(key) for key in row if schema.find(str(key)) is None])
    if misspelt:
        raise RowError(
            f"the row lacks field {name!r}, which queries use, but has {misspelt!r}, which is not a field; "
            f"rename it, or give {name!r} as None for null"
        )
    return None


def _read_value(value: Any, field: Field, time_zone: str) -> Column:
    kind = field.type.name
    if kind == "double" and isinstance(value, float):
        return Column(np.array([value]))
    if kind == "bigint" and type(value) is int and -(1 << 63) <= value < 1 << 63:
        return Column(np.array([value]))
    try:
        if is_missing(value):
            return read_values([None], field, time_zone)
        if kind == "timestamp" and isinstance(value, datetime.datetime):
            aware = value if value.tzinfo else value.replace(tzinfo=ZoneInfo(time_zone))
            return Column(np.array([(aware - _EPOCH) // datetime.timedelta(microseconds=1)]))
        if kind == "string" and isinstance(value, str):
            return Column(large_strings([value]))
        if isinstance(value, np.generic):
            return read_values(np.array([value]), field, time_zone)
        if kind == "decimal" and isinstance(value, (int, Decimal)) and not isinstance(value, bool):
            return read_column(pa.array([Decimal(value)], arrow_type(field.type)), field)
        return read_values([value], field, time_zone)
    except UNREADABLE:
        wanted = _ONE_VALUE[kind]
        raise RowError(
            f"field {field.name!r} is {field.type}; cannot read {shown(value)} as one; give {wanted}"
        ) from None


def find_ids(ids: Any, what: str) -> Any:
    """Ids from a list or an array, or from rows with a column `id`."""
    is_one = isinstance(ids, (str, bytes, bytearray, pa.Scalar)) or getattr(ids, "ndim", 1) == 0
    if is_one or not (hasattr(ids, "__iter__") or hasattr(ids, "__arrow_c_stream__")):
        one = shown(ids)
        raise RowError(f"{what} must be a list of ids, or rows with a column 'id'; got {one}; for one id, give [{one}]")
    if not isinstance(ids, (pa.Table, pa.RecordBatch, Mapping)) and not hasattr(type(ids), "columns"):
        return ids
    frame = as_frame(ids)
    column = frame.find("id")
    if column is None:
        known = sorted(frame.names)
        have = f"{', '.join(known) or 'none'}{nearest('id', known)}"
        raise RowError(f"{what} must be a list of ids, or rows with a column 'id'; these rows have: {have}")
    check_array(column, "id")
    return column


def read_values(values: Any, field: Field, time_zone: str) -> Column:
    """The values of one field, from any container."""
    if isinstance(values, np.ndarray):
        if values.ndim != 1:
            raise RowError(f"field {field.name!r} is an array of {values.ndim} dimensions; a column has one")
        number = _NUMBERS.get(field.type.name)
        if number is not None and values.dtype == number:  # the dtype float64 equals None
            if isinstance(values, np.ma.MaskedArray):
                return Column(writable(values.data), ~np.ma.getmaskarray(values))
            return Column(writable(values))
    return read_column(to_arrow(values, f"field {field.name!r} ({field.type})"), field, time_zone)


def find_unreadable(values: Any, field: Field, time_zone: str) -> tuple[int, Any]:
    """The place of a value that makes a column unreadable, and the value. The values are known to be unreadable."""
    held = values.to_pylist() if hasattr(values, "to_pylist") else list(values)
    first, last = 0, len(held)
    while last - first > 1:
        middle = (first + last) // 2
        try:
            read_values(held[first:middle], field, time_zone)
            first = middle
        except RowError:
            last = middle
    return first, held[first]
