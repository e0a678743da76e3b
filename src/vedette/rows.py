"""Rows as users hold them (Arrow, pandas, polars, dicts), read into columns.

In pandas a missing value is null, as for Arrow and Spark; in NumPy arrays NaN is a number. Timestamps without a zone
are wall-clock time in the zone of the query set.
"""

from __future__ import annotations

import datetime
from collections.abc import Collection, Mapping
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vedette.columns import Column, large_strings, null_column, read_column, writable
from vedette.errors import RowError, closest, nearest
from vedette.schema import Field, Schema, arrow_type

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MISSING = ("NAType", "NaTType")  # what pandas has for null, known without importing it
_NUMBERS = {"double": np.dtype(np.float64), "bigint": np.dtype(np.int64)}


def read_rows(
    rows: Any, schema: Schema, fields: Collection[str], time_zone: str, *, or_else: str = ", or use match_one"
) -> tuple[dict[str, Column], int]:
    """The columns of the named fields, and the number of rows. `or_else` is told to who gives values for columns."""
    table = as_mapping(rows)
    if isinstance(table, Mapping):
        n_rows = _common_length(table, or_else)
        names = list(table)
    else:
        n_rows = table.num_rows
        names = table.schema.names
    places = {str(name).lower(): place for place, name in reversed(list(enumerate(names)))}
    columns = {}
    for name in fields:
        place = places.get(name.lower())
        if place is None:
            known = sorted(map(str, names))
            have = f"{', '.join(known) or 'none'}{nearest(name, known)}"
            raise RowError(f"the rows lack field {name!r}, which queries use; they have: {have}")
        field = schema.find(name)
        assert field is not None
        values = table[names[place]] if isinstance(table, Mapping) else table.column(place)
        columns[name] = read_values(values, field, time_zone)
    return columns, n_rows


def read_row(row: Mapping[str, Any], schema: Schema, fields: Collection[str], time_zone: str) -> dict[str, Column]:
    """One row as columns of length one; a field that is absent or None is null."""
    if not isinstance(row, Mapping):
        raise RowError(f"a row is a dict of values by field; got {type(row).__name__}; use match for many rows")
    columns = {}
    for name in fields:
        value = row.get(name)
        if value is None and name not in row:
            value = _find_folded(row, name, schema)
        field = schema.find(name)
        assert field is not None
        columns[name] = _read_value(value, field, time_zone)
    return columns


def _find_folded(row: Mapping[str, Any], name: str, schema: Schema) -> Any:
    """The value under the name in another case, or None; raises where a name that is no field looks misspelt."""
    for key in row:
        if str(key).lower() == name.lower():
            return row[key]
    misspelt = closest(name, [str(key) for key in row if schema.find(str(key)) is None])
    if misspelt:
        raise RowError(
            f"the row lacks field {name!r}, which queries use, but has {misspelt!r}, which is no field; "
            f"rename it, or give {name!r} as None for null"
        )
    return None


def _read_value(value: Any, field: Field, time_zone: str) -> Column:
    kind = field.type.name
    if kind == "double" and isinstance(value, float):
        return Column(np.array([value]))
    if kind == "bigint" and type(value) is int and -(1 << 63) <= value < 1 << 63:
        return Column(np.array([value]))
    if type(value).__name__ in _MISSING:
        value = None
    if kind == "timestamp" and isinstance(value, datetime.datetime):
        aware = value if value.tzinfo else value.replace(tzinfo=ZoneInfo(time_zone))
        return Column(np.array([(aware - _EPOCH) // datetime.timedelta(microseconds=1)]))
    if kind == "double" and isinstance(value, Decimal):
        return Column(np.array([float(value)]))
    try:
        if kind == "string" and isinstance(value, str):
            return Column(large_strings([value]))
        if isinstance(value, np.generic):
            return read_values(np.array([value]), field, time_zone)
        if kind == "decimal" and isinstance(value, (int, Decimal)) and not isinstance(value, bool):
            return read_column(pa.array([Decimal(value)], arrow_type(field.type)), field)
        return read_values([value], field, time_zone)
    except (RowError, pa.ArrowException, OverflowError, TypeError, UnicodeError):
        raise RowError(f"field {field.name!r} is {field.type}; cannot read {value!r} as one") from None


def as_mapping(rows: Any) -> Any:
    """Rows as an Arrow table or batch, or as a mapping from names to columns."""
    if isinstance(rows, (pa.Table, pa.RecordBatch, Mapping)):
        return rows
    module = type(rows).__module__.partition(".")[0]
    if module == "pandas" and hasattr(rows, "columns"):
        return {str(name): rows.iloc[:, place] for place, name in reversed(list(enumerate(rows.columns)))}
    if hasattr(rows, "__arrow_c_stream__"):  # polars, DuckDB relations, whoever speaks Arrow
        return pa.table(rows)
    raise RowError(
        f"rows are an Arrow table or batch, a pandas or polars frame, or a dict of arrays; got {type(rows).__name__}"
    )


def find_column(table: Any, name: str) -> Any:
    """A column of what `as_mapping` gave, whatever the case of its letters; None where there is none."""
    names = list(table) if isinstance(table, Mapping) else table.schema.names
    for place, known in enumerate(names):
        if str(known).lower() == name.lower():
            return table[known] if isinstance(table, Mapping) else table.column(place)
    return None


def column_names(table: Any) -> list[str]:
    """The names of the columns, sorted, as errors list them."""
    return sorted(map(str, table if isinstance(table, Mapping) else table.schema.names))


def find_ids(ids: Any, what: str) -> Any:
    """Ids alone, as a list or an array of them, or those of rows with a column `id`."""
    is_one = isinstance(ids, (str, bytes, bytearray, pa.Scalar)) or getattr(ids, "ndim", 1) == 0
    if is_one or not (hasattr(ids, "__iter__") or hasattr(ids, "__arrow_c_stream__")):
        raise RowError(f"{what} are a list of ids, or rows with a column 'id'; got {ids!r}; for one, give [{ids!r}]")
    if not isinstance(ids, (pa.Table, pa.RecordBatch, Mapping)) and not hasattr(type(ids), "columns"):
        return ids
    table = as_mapping(ids)
    column = find_column(table, "id")
    if column is None:
        known = column_names(table)
        have = f"{', '.join(known) or 'none'}{nearest('id', known)}"
        raise RowError(f"{what} are a list of ids, or rows with a column 'id'; these rows have: {have}")
    check_array(column, "id")
    return column


def check_array(values: Any, name: str, or_else: str = "") -> None:
    """Raise where one value stands in the place of a column."""
    if isinstance(values, (str, bytes)) or not hasattr(values, "__len__") or getattr(values, "ndim", 1) == 0:
        raise RowError(f"field {name!r} holds {values!r}, not an array; give arrays of one value{or_else}")


def _common_length(arrays: Mapping[Any, Any], or_else: str) -> int:
    for name, values in arrays.items():
        check_array(values, name, or_else)
    lengths = {len(values) for values in arrays.values()}
    if len(lengths) > 1:
        each = ", ".join(f"{name}: {len(values)}" for name, values in arrays.items())
        raise RowError(f"the arrays of the rows differ in length ({each})")
    return lengths.pop() if lengths else 0


def read_values(values: Any, field: Field, time_zone: str) -> Column:
    """One field's values, however they are held."""
    if isinstance(values, np.ndarray):
        if values.ndim != 1:
            raise RowError(f"field {field.name!r} is an array of {values.ndim} dimensions; a column has one")
        if not values.dtype.isnative:
            values = values.astype(values.dtype.newbyteorder("="))
    if isinstance(values, np.ndarray) and values.dtype == _NUMBERS.get(field.type.name):
        if isinstance(values, np.ma.MaskedArray):
            return Column(writable(values.data), ~np.ma.getmaskarray(values))
        return Column(writable(values))
    if not isinstance(values, (pa.Array, pa.ChunkedArray)):
        if len(values) == 0:  # pandas and NumPy make up a type for nothing
            return null_column(field.type, 0)
        try:
            values = pa.array(values)
        except (pa.ArrowException, OverflowError, TypeError, UnicodeError) as error:
            raise RowError(f"field {field.name!r} ({field.type}) cannot be read: {error}") from None
    if field.type.name == "timestamp" and pa.types.is_timestamp(values.type) and values.type.tz is None:
        values = _in_zone(values, time_zone)
    return read_column(values, field)


def _in_zone(wall_clock: pa.Array | pa.ChunkedArray, time_zone: str) -> pa.Array | pa.ChunkedArray:
    """Wall-clock times as instants, as in Spark: the earlier of two; in a gap, by the offset before it."""
    if time_zone == "UTC":
        return wall_clock
    try:
        return pc.assume_timezone(wall_clock, time_zone, ambiguous="earliest")
    except pa.ArrowInvalid:
        instants = pc.assume_timezone(wall_clock, time_zone, ambiguous="earliest", nonexistent="earliest")
        skipped = pc.subtract(wall_clock, pc.local_timestamp(instants))  # how far into a gap, from just before it
        return pc.add(instants, skipped)
