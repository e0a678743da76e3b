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
import pyarrow.compute as pc

from vedette.data.arrow_values import UNREADABLE, is_missing, to_arrow
from vedette.data.columns import Column, large_strings, read_column, writable
from vedette.data.frames import ambiguous, as_frame, check_array, find_twins
from vedette.data.schema import INTEGER_BITS, Field, Schema, arrow_type, is_array, is_map
from vedette.errors import RowError, closest, nearest, shown

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_ONE_VALUE = {  # the value of a single row for a type
    **{name: f"a whole number from -2^{bits - 1} to 2^{bits - 1} - 1" for name, bits in INTEGER_BITS.items()},
    "double": "a float or an int",
    "float": "a float or an int",
    "decimal": "a decimal.Decimal or an int that fits the type",
    "boolean": "True or False",
    "string": "a str",
    "binary": "bytes",
    "date": "a datetime.date",
    "timestamp": "a datetime.datetime",
    "timestamp_ntz": "a datetime.datetime without a time zone",
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
        field = schema.find(name)
        assert field is not None
        values = frame.find(name)
        if values is None and field.path:
            values = find_part(frame.find(field.column), field)
        if values is None:
            raise lacks_field(name, frame.names)
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
        if value is None and field.path:
            value = _value_at(row, field)
        columns[name] = _read_value(value, field, time_zone)
    return columns


def find_part(values: Any, field: Field) -> Any:
    """The part of a column of structs that a field names; None if the column is None or lacks it."""
    if values is None:
        return None
    structs: Any = to_arrow(values, f"field {field.column!r} (struct)")
    for name in field.path[1:]:
        if pa.types.is_null(structs.type):
            return structs
        if not pa.types.is_struct(structs.type):
            raise RowError(f"field {field.name!r} is in a struct in the schema, but {structs.type} in the rows")
        places = [k for k in range(structs.type.num_fields) if structs.type.field(k).name.lower() == name.lower()]
        if len(places) > 1:
            raise ambiguous(field.name, [structs.type.field(k).name for k in places])
        if not places:
            return None
        structs = pc.struct_field(structs, places)
    return structs


def _value_at(row: Mapping[str, Any], field: Field) -> Any:
    """The value of a part of a struct in a row; None if a struct around it is null or lacks it."""
    held: Any = row
    for name in field.path:
        if held is None:
            return None
        if not isinstance(held, Mapping):
            raise RowError(f"field {field.name!r} is in a struct, so {name!r} must be in a dict; got {shown(held)}")
        held = held.get(name, next((held[key] for key in held if str(key).lower() == name.lower()), None))
    return held


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
        wanted = "a list" if is_array(field.type) else "a dict" if is_map(field.type) else _ONE_VALUE[kind]
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
    is_objects = str(getattr(values, "dtype", "")) == "object"
    if is_map(field.type) and is_objects:
        values = list(values)
    if isinstance(values, np.ndarray):
        if values.ndim != 1:
            raise RowError(f"field {field.name!r} is an array of {values.ndim} dimensions; a column has one")
        number = _NUMBERS.get(field.type.name)
        if number is not None and values.dtype == number:  # the dtype float64 equals None
            if isinstance(values, np.ma.MaskedArray):
                return Column(writable(values.data), ~np.ma.getmaskarray(values))
            return Column(writable(values))
    what = f"field {field.name!r} ({field.type})"
    if is_map(field.type) and isinstance(values, (list, tuple)):
        return read_column(_maps_of(values, field, what), field, time_zone)
    return read_column(to_arrow(values, what), field, time_zone)


def _maps_of(values: Iterable[Any], field: Field, what: str) -> pa.Array:
    """Dicts as maps: Arrow would make structs of them, with nulls for the keys that a dict lacks."""
    held = [None if is_missing(each) else list(each.items()) if isinstance(each, Mapping) else each for each in values]
    try:
        return pa.array(held, arrow_type(field.type))
    except UNREADABLE as error:
        raise RowError(f"{what} cannot be read: {error}; give dicts with strings as keys", field=field.name) from None


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
