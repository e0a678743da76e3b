"""Columns in every container and dtype with their Python values, for `test_row_types`.

A column has a kind, which says which fields can read it. If a container can have a null, one is among the values.
"""

from __future__ import annotations

import datetime
import uuid
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

UTC = datetime.UTC
TOKYO = "Asia/Tokyo"
VALUES = {
    "integer": [0, 1, 7, 100],
    "float": [0.0, 1.5, -2.25, 100.0],
    "decimal": [Decimal("0.00"), Decimal("1.25"), Decimal("-999.99")],
    "boolean": [True, False, True],
    "string": ["", "é", "IBM", "longer than what a string view keeps beside its length"],
    "date": [datetime.date(1969, 12, 31), datetime.date(2024, 2, 29)],
    # In summer and winter: two and one hours ahead of UTC where the wall clock is Berlin's.
    "wall clock": [datetime.datetime(2024, 7, 1, 12), datetime.datetime(1969, 12, 31, 23, 59, 58)],
    "instant": [datetime.datetime(2024, 7, 1, 12, tzinfo=UTC), datetime.datetime(1969, 12, 31, 23, 59, 58, tzinfo=UTC)],
}
VALUES["unsigned"] = VALUES["integer"]  # of 64 bits, which a bigint may not hold


@dataclass(frozen=True)
class Held:
    """A column and its values in Python; None if no field can read it."""

    name: str
    kind: str
    column: Any
    values: list[Any] | None


def all_columns() -> list[Held]:
    return [*_python(), *_numpy(), *_pandas(), *_polars(), *_arrow()]


def plain_columns() -> dict[str, list[Any]]:
    """A list of Python values of each kind that some field can read."""
    return {kind: [*values, None] for kind, values in VALUES.items()}


OBJECTS = {
    "objects": [object(), object()],
    "bytes": [b"a", b"b"],
    "lists": [[1], [2]],
    "dicts": [{"a": 1}, {"a": 2}],
    "complex": [1j, 2j],
    "times": [datetime.time(1), datetime.time(2)],
    "durations": [datetime.timedelta(1), datetime.timedelta(2)],
    "UUIDs": [uuid.UUID(int=1), uuid.UUID(int=2)],
    "booleans and floats": [1.5, True],
    "booleans and integers": [7, True],
    "NumPy booleans and integers": [7, np.bool_(True)],
    "integers and booleans": [True, 7],
    "strings and integers": ["a", 7],
    "strings and bytes": ["a", b"b"],
    "strings and NaN": ["a", float("nan")],
    "decimals and floats": [Decimal("1.5"), 1.5],
    "dates and datetimes": [datetime.date(2024, 1, 1), datetime.datetime(2024, 1, 1, 5)],
    "datetimes and dates": [datetime.datetime(2024, 1, 1, 5), datetime.date(2024, 1, 1)],
    "wall clocks and instants": [VALUES["wall clock"][0], VALUES["instant"][0]],
    "instants and wall clocks": [VALUES["instant"][0], VALUES["wall clock"][0]],
    "integers beyond 64 bits": [2**70, 1],
    "lone surrogates": ["a", "\ud800"],
    "arrays": [np.array([1.0]), np.array([2.0])],
    "decimals that are not numbers": [Decimal("NaN"), Decimal("Infinity")],
}
MIXED = [name for name, values in OBJECTS.items() if " and " in name and "NaN" not in name and len({*values}) == 2]


def _python():
    for kind, values in VALUES.items():
        if kind != "unsigned":
            yield Held(f"list of {kind}", kind, [*values, None], [*values, None])
            yield Held(f"tuple of {kind}", kind, tuple(values), values)
            yield Held(f"object array of {kind}", kind, np.array([*values, None], object), [*values, None])
    for name, values in OBJECTS.items():
        yield Held(f"list of {name}", "other", values, None)
        array = np.empty(len(values), object)
        array[:] = values
        yield Held(f"object array of {name}", "other", array, None)
        if name not in ("strings and NaN", "decimals that are not numbers"):  # in pandas NaN is null
            yield Held(f"object Series of {name}", "other", pd.Series(array, dtype=object), None)
        if name in MIXED:
            categories = pd.Categorical([0, 1]).rename_categories(pd.Index(array, dtype=object))
            yield Held(f"categories of {name}", "other", pd.Series(categories), None)
            yield Held(f"Categorical of {name}", "other", categories, None)
            yield Held(f"CategoricalIndex of {name}", "other", pd.CategoricalIndex(categories), None)
    yield Held("list of nulls", "null", [None, None], [None, None])
    for missing in (pd.NA, pd.NaT, np.datetime64("NaT")):
        yield Held(f"list of {missing!r}", "null", [missing, missing], [None, None])
    yield Held("list of NaT with a unit", "wall clock", [np.datetime64("NaT", "us")], [None])
    wall_clock = VALUES["wall clock"]
    yield Held("list with NaT", "wall clock", [wall_clock[0], pd.NaT], [wall_clock[0], None])
    yield Held("list of Timestamps", "wall clock", [*map(pd.Timestamp, wall_clock), pd.NaT], [*wall_clock, None])
    yield Held("list of NumPy times", "wall clock", list(np.array(wall_clock, "M8[us]")), wall_clock)
    yield Held("list with NA", "integer", [1, pd.NA], [1, None])
    yield Held("list of NumPy floats", "float", list(np.array([1.5, 2.0])), [1.5, 2.0])
    yield Held("range", "integer", range(3), [0, 1, 2])


NUMPY = {
    "integer": ["i1", "i2", "i4", "i8", "u1", "u2", "u4"],
    "unsigned": ["u8"],
    "float": ["f2", "f4", "f8"],
    "boolean": ["?"],
    "string": ["U"],
    "date": ["M8[D]"],
    "wall clock": ["M8[s]", "M8[ms]", "M8[us]", "M8[ns]"],
}


def _numpy():
    for kind, dtypes in NUMPY.items():
        for dtype in dtypes:
            array = np.array(VALUES[kind], dtype)
            values = VALUES[kind]
            yield Held(f"NumPy {dtype}", kind, array, values)
            twice = np.repeat(array, 2)
            yield Held(f"NumPy {dtype} strided", kind, twice[::2], values)
            yield Held(f"NumPy {dtype} backwards", kind, array[::-1], values[::-1])
            swapped = array.astype(array.dtype.newbyteorder(">"))
            yield Held(f"NumPy {dtype} byte-swapped", kind, swapped, values)
            constant = array.copy()
            constant.flags.writeable = False
            yield Held(f"NumPy {dtype} read-only", kind, constant, values)
            masked = np.ma.array(array, mask=np.arange(len(array)) == 1)
            yield Held(f"NumPy {dtype} masked", kind, masked, [values[0], None, *values[2:]])
    times = np.array(["2024-07-01T12", "NaT"], "M8[us]")
    yield Held("NumPy with NaT", "wall clock", times, [VALUES["wall clock"][0], None])
    strings = np.array(VALUES["string"], np.dtypes.StringDType())
    yield Held("NumPy StringDType", "string", strings, VALUES["string"])
    for dtype in ("S2", "c8", "c16", "g", "V4", [("a", "i4")], "m8[s]", "m8[us]"):
        yield Held(f"NumPy {dtype}", "other", np.zeros(2, dtype), None)
    for unit in ("Y", "M", "W", "h", "m", "ps", "as"):
        yield Held(f"NumPy M8[{unit}]", "other", np.array([1, 2], f"M8[{unit}]"), None)


PANDAS = {
    "integer": ["Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "int64[pyarrow]", "uint8[pyarrow]"],
    "unsigned": ["UInt64", "uint64[pyarrow]"],
    "float": ["Float32", "Float64", "double[pyarrow]", "float[pyarrow]"],
    "boolean": ["boolean", "bool[pyarrow]"],
    "string": ["string", "string[pyarrow]", "object"],
    "decimal": [pd.ArrowDtype(pa.decimal128(5, 2)), "object"],
    "date": [pd.ArrowDtype(pa.date32()), "object"],
    "wall clock": ["datetime64[ns]", "datetime64[us]", "datetime64[s]", pd.ArrowDtype(pa.timestamp("ms")), "object"],
    "instant": ["datetime64[ns, Asia/Tokyo]", "datetime64[us, UTC]", pd.ArrowDtype(pa.timestamp("us", TOKYO))],
}


def _pandas():
    for kind, dtypes in NUMPY.items():
        for dtype in dtypes:
            if dtype not in ("f2", "M8[D]", "U"):
                yield Held(f"Series {dtype}", kind, pd.Series(np.array(VALUES[kind], dtype)), VALUES[kind])
    for kind, dtypes in PANDAS.items():
        values = [*VALUES[kind], None]
        for dtype in dtypes:
            yield Held(f"Series {dtype} of {kind}", kind, pd.Series(values, dtype=dtype), values)
            yield Held(f"extension array {dtype} of {kind}", kind, pd.array(values, dtype=dtype), values)
        series = pd.Series(values, dtype=dtypes[0])
        yield Held(f"Series sliced of {kind}", kind, series[1:], values[1:])
    yield Held("Series of floats with NaN", "float", pd.Series([1.5, np.nan]), [1.5, None])
    yield Held("Series of booleans with None", "boolean", pd.Series([True, None], dtype=object), [True, None])
    for kind in ("integer", "float", "string", "boolean", "wall clock", "instant"):
        values = VALUES[kind]
        categories = pd.Series(pd.Categorical([*values, None]))
        yield Held(f"categories of {kind}", kind, categories, [*values, None])
        yield Held(f"Index of {kind}", kind, pd.Index(values), values)
    yield Held("RangeIndex", "integer", pd.RangeIndex(3), [0, 1, 2])
    sparse = pd.Series(pd.arrays.SparseArray([1.5, 0.0]))
    for name, series in {
        "intervals": pd.interval_range(0, 2),
        "periods": pd.period_range("2024", periods=2, freq="D"),
        "durations": pd.to_timedelta([1, 2]),
        "sparse": sparse,
        "complex": np.zeros(2, complex),
        "mixed categories": pd.Categorical([1.5, "a"]),
        "bytes": pd.array([b"a", b"b"], dtype=pd.ArrowDtype(pa.binary())),
    }.items():
        yield Held(f"Series of {name}", "other", pd.Series(series), None)
    yield Held("MultiIndex", "other", pd.MultiIndex.from_tuples([(1, 2), (3, 4)]), None)


POLARS = {
    "integer": [pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32],
    "unsigned": [pl.UInt64],
    "float": [pl.Float32, pl.Float64],
    "boolean": [pl.Boolean],
    "string": [pl.String, pl.Categorical, pl.Enum(VALUES["string"])],
    "decimal": [pl.Decimal(5, 2)],
    "date": [pl.Date],
    "wall clock": [pl.Datetime("ms"), pl.Datetime("us"), pl.Datetime("ns")],
    "instant": [pl.Datetime("us", "UTC"), pl.Datetime("ms", TOKYO)],
}


def _polars():
    for kind, dtypes in POLARS.items():
        values = [*VALUES[kind], None]
        for dtype in dtypes:
            series = pl.Series("f", VALUES["instant"] if kind == "instant" else VALUES[kind])
            if kind == "instant":
                series = series.dt.convert_time_zone(dtype.time_zone)
            series = series.extend_constant(None, 1).cast(dtype)
            yield Held(f"polars {dtype}", kind, series, values)
            yield Held(f"polars {dtype} sliced", kind, series[1:], values[1:])
            chunked = pl.concat([series, series[:1]], rechunk=False)
            yield Held(f"polars {dtype} chunked", kind, chunked, [*values, values[0]])
    yield Held("polars Null", "null", pl.Series("f", [None, None]), [None, None])
    for dtype, values in {
        pl.Int128: [1, 2],
        pl.Binary: [b"a", b"b"],
        pl.Duration: [datetime.timedelta(1)] * 2,
        pl.Time: [datetime.time(1)] * 2,
        pl.List(pl.Int64): [[1], [2]],
        pl.Struct({"a": pl.Int64}): [{"a": 1}] * 2,
        pl.Object: [object(), object()],
    }.items():
        yield Held(f"polars {dtype}", "other", pl.Series("f", values, dtype), None)


ARROW = {
    "integer": [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32()],
    "unsigned": [pa.uint64()],
    "float": [pa.float16(), pa.float32(), pa.float64()],
    "boolean": [pa.bool_()],
    "string": [pa.string(), pa.large_string(), pa.string_view()],
    "decimal": [pa.decimal32(5, 2), pa.decimal64(5, 2), pa.decimal128(5, 2), pa.decimal256(5, 2)],
    "date": [pa.date32(), pa.date64()],
    "wall clock": [pa.timestamp(unit) for unit in ("s", "ms", "us", "ns")],
    "instant": [pa.timestamp(unit, zone) for unit in ("s", "ms", "us", "ns") for zone in ("UTC", TOKYO, "+02:00")],
}
ARROW_OTHER = {
    "binary": pa.array([b"a", b"b"]),
    "large binary": pa.array([b"a", b"b"], pa.large_binary()),
    "binary view": pa.array([b"a", b"b"], pa.binary_view()),
    "fixed-size binary": pa.array([b"a", b"b"], pa.binary(1)),
    "list": pa.array([[1], [2]]),
    "struct": pa.array([{"a": 1}, {"a": 2}]),
    "map": pa.array([[("a", 1)], []], pa.map_(pa.string(), pa.int64())),
    "time32": pa.array([1, 2], pa.time32("s")),
    "time64": pa.array([1, 2], pa.time64("us")),
    "interval": pa.array([(1, 2, 3), (1, 2, 3)], pa.month_day_nano_interval()),
    "bool8": pa.array([0, 1], pa.int8()).cast(pa.bool8()),
    "uuid": pa.array([uuid.UUID(int=1).bytes] * 2, pa.binary(16)).cast(pa.uuid()),
    "union": pa.UnionArray.from_sparse(pa.array([0, 0], pa.int8()), [pa.array([1, 2]), pa.array(["a", "b"])]),
    "dictionary of binary": pa.array([b"a", b"b"]).dictionary_encode(),
    "runs of binary": pc.run_end_encode(pa.array([b"a", b"b"])),
    **{f"duration {unit}": pa.array([1, 2], pa.duration(unit)) for unit in ("s", "ms", "us", "ns")},
}


def _arrow():
    for kind, types in ARROW.items():
        values = [*VALUES[kind], None]
        for type_ in types:
            array = pa.array(values, type_)
            yield Held(f"Arrow {type_}", kind, array, values)
            longer = pa.concat_arrays([array, array[:2]])
            yield Held(f"Arrow {type_} sliced", kind, longer[1:-1], [*values, *values][1 : len(longer) - 1])
            yield Held(f"Arrow {type_} chunked", kind, pa.chunked_array([array[:1], array[1:]]), values)
            yield Held(f"Arrow {type_} without chunks", kind, pa.chunked_array([], type_), [])
            yield Held(f"Arrow {type_} empty", kind, array[:0], [])
            yield Held(f"Arrow {type_} of nulls", kind, pa.nulls(2, type_), [None, None])
            codes = pa.array([*range(len(values) - 1), None, 0], pa.int8())
            encoded = pa.DictionaryArray.from_arrays(codes, array)
            yield Held(f"Arrow dictionary of {type_}", kind, encoded, [*values, values[0]])
            yield Held(f"Arrow dictionary of {type_} sliced", kind, encoded[1:], [*values, values[0]][1:])
            with_null = pa.DictionaryArray.from_arrays(pa.array([len(values) - 1, 0], pa.uint32()), array)
            yield Held(f"Arrow dictionary of {type_} with a null", kind, with_null, [None, values[0]])
            ends = pa.array(range(2, 2 * len(values) + 1, 2), pa.int32())
            runs = pa.RunEndEncodedArray.from_arrays(ends, array)
            twice = [value for value in values for _ in range(2)]
            yield Held(f"Arrow runs of {type_}", kind, runs, twice)
            yield Held(f"Arrow runs of {type_} sliced", kind, runs[1:4], twice[1:4])
    yield Held("Arrow null", "null", pa.nulls(2), [None, None])
    yield Held("Arrow dictionary of null", "null", pa.nulls(2).dictionary_encode(), [None, None])
    for name, array in ARROW_OTHER.items():
        yield Held(f"Arrow {name}", "other", array, None)
        yield Held(f"Arrow {name} empty", "other", array[:0], None)
