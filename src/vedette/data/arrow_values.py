"""Values of a column in any container, as an Arrow array of their own type.

Arrow infers the type of Python objects and converts mixed ones silently: a boolean among floats becomes 1.0, a datetime
among dates loses its time. Such columns are refused here.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from vedette.data.frames import library_of
from vedette.errors import RowError

_MISSING = ("NAType", "NaTType")  # the types of null in pandas, by name: pandas is not imported
UNREADABLE = (
    pa.ArrowException,
    ArithmeticError,
    TypeError,
    ValueError,
)  # what Arrow and NumPy raise for invalid values


def to_arrow(values: Any, what: str) -> pa.Array | pa.ChunkedArray:
    """The values as an Arrow array. Raises RowError, which begins with `what`, if they have no Arrow type.

    Empty lists, NumPy arrays and pandas objects, whose type means nothing, get the null type.
    """
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        return values
    try:
        if isinstance(values, np.ndarray):
            return _from_numpy(values) if len(values) else pa.nulls(0)
        library = library_of(values)
        if library == "polars":
            return _from_polars(values)
        if len(values) == 0:
            return pa.nulls(0)
        return _from_pandas(values) if library == "pandas" else _from_objects(values)
    except UNREADABLE as error:
        held = f" ({values.dtype})" if hasattr(values, "dtype") else ""
        raise RowError(f"{what} cannot be read{held}: {error}") from None


def is_missing(value: Any) -> bool:
    """Whether a Python value is null: None, or a null of pandas or NumPy."""
    if value is None or value is np.ma.masked or type(value).__name__ in _MISSING:
        return True
    return isinstance(value, np.datetime64) and bool(np.isnat(value))


def _from_polars(values: Any) -> pa.ChunkedArray:
    if str(getattr(values, "dtype", "")).startswith("Object"):  # Arrow would get their addresses
        raise TypeError("Python objects have no Arrow type; cast the column")
    try:
        return pa.chunked_array(values)
    except pa.ArrowException:
        raise TypeError("the type has no counterpart in Arrow; cast the column") from None


def _from_pandas(values: Any) -> pa.Array:
    dtype = str(getattr(values, "dtype", ""))
    if dtype == "category":
        held = getattr(values, "array", values)  # a Series or an Index has an array
        codes = pa.array(held.codes, mask=held.codes < 0)
        return pa.DictionaryArray.from_arrays(codes, to_arrow(held.categories, "its categories"))
    return _from_objects(values) if dtype == "object" else pa.array(values)


def _from_numpy(values: Any) -> pa.Array:
    if values.dtype.kind == "O":
        return _from_objects(values.tolist())
    if values.dtype.kind == "U":  # Arrow would truncate a string at its first NUL
        return pa.array(values.tolist(), pa.large_string())
    if values.dtype.kind == "M" and np.datetime_data(values.dtype)[0] not in ("D", "s", "ms", "us", "ns"):
        raise TypeError("units of time are D, s, ms, us and ns; cast the array to datetime64[us]")
    if not values.dtype.isnative:
        values = values.astype(values.dtype.newbyteorder("="))
    return pa.array(values)


def _from_objects(values: Any) -> pa.Array:
    try:
        array = pa.array(values)
    except UNREADABLE:
        values = list(values)
        if not any(value is not None and is_missing(value) for value in values):
            raise
        values = [None if is_missing(value) else value for value in values]
        array = pa.array(values)
    _check_kinds(values, array.type)
    return array


def _check_kinds(values: Iterable[Any], type_: pa.DataType) -> None:
    """Raise TypeError if Arrow has converted values of several kinds to one."""
    if pa.types.is_integer(type_) or pa.types.is_floating(type_):
        if not {bool, np.bool_}.isdisjoint(map(type, values)):
            raise TypeError("it has booleans and numbers")
    elif pa.types.is_date(type_):
        if any(isinstance(value, datetime.datetime) and not is_missing(value) for value in values):
            raise TypeError("it has dates and timestamps")
    elif pa.types.is_timestamp(type_):
        times = (value for value in values if isinstance(value, datetime.datetime) and not is_missing(value))
        if len({value.utcoffset() is None for value in times}) > 1:
            raise TypeError("it has timestamps with and without a time zone")
