from __future__ import annotations

import datetime
import math
import re
from decimal import Decimal
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from vedette.data.rows import read_row, read_rows
from vedette.data.schema import Schema
from vedette.errors import RowError

SCHEMA = Schema.parse(
    "s string, x double, n bigint, d decimal(10,2), w decimal(30,2), b boolean, day date, ts timestamp"
)
NAMES = SCHEMA.names
NOON = datetime.datetime(2024, 7, 1, 12, tzinfo=datetime.UTC)
ROWS = [
    {
        "s": "é",
        "x": 1.5,
        "n": 2**60 + 1,
        "d": Decimal("-1.25"),
        "w": Decimal(10**20) + Decimal("0.01"),
        "b": True,
        "day": datetime.date(1969, 12, 31),
        "ts": NOON,
    },
    {"s": "", "x": -0.0, "n": -1, "d": Decimal("0"), "w": Decimal(-3), "b": False, "day": NOON.date(), "ts": NOON},
    dict.fromkeys(NAMES),
]
EXPECTED = {
    "s": ["é", "", None],
    "x": [1.5, 0.0, None],
    "n": [2**60 + 1, -1, None],
    "d": [-125, 0, None],
    "w": [10**22 + 1, -300, None],
    "b": [True, False, None],
    "day": [-1, 19905, None],
    "ts": [1719835200000000, 1719835200000000, None],
}


def values(columns):
    return {
        name: [
            (value.as_py() if isinstance(value, pa.Scalar) else value.item() if hasattr(value, "item") else value)
            if column.valid is None or column.valid[i]
            else None
            for i, value in enumerate(column.values)
        ]
        for name, column in columns.items()
    }


TABLE = pa.Table.from_pylist(ROWS, SCHEMA.to_arrow())
HOLDERS = {
    "table": TABLE,
    "batch": TABLE.to_batches()[0],
    "sliced": pa.concat_tables([TABLE.slice(2), TABLE, TABLE.slice(0, 1)]).slice(1, 3),
    "chunked": pa.concat_tables([TABLE.slice(0, 1), TABLE.slice(1)]),
    "polars": pl.from_arrow(TABLE),
    "dict of Arrow": {name: TABLE.column(name) for name in NAMES},
    "dict of lists": {name: [row[name] for row in ROWS] for name in NAMES},
    "dictionary-encoded": TABLE.set_column(0, "s", TABLE.column("s").dictionary_encode()),
}


@pytest.mark.parametrize("holder", HOLDERS)
def test_rows_of_any_container_read_the_same(holder):
    columns, n_rows = read_rows(HOLDERS[holder], SCHEMA, NAMES, "UTC")

    assert n_rows == 3
    assert values(columns) == EXPECTED


def test_single_rows_read_as_batches_do():
    for place, row in enumerate(ROWS):
        read = values(read_row(row, SCHEMA, NAMES, "UTC"))
        assert read == {name: [EXPECTED[name][place]] for name in NAMES}


def test_missing_in_pandas_is_null_and_nan_in_numpy_is_a_number():
    frame = pd.DataFrame({"x": [1.0, math.nan]})
    (from_pandas, _), (from_numpy, _) = (
        read_rows(rows, SCHEMA, ["x"], "UTC") for rows in (frame, {"x": np.array([1.0, math.nan])})
    )

    assert from_pandas["x"].valid.tolist() == [True, False]
    assert from_numpy["x"].valid is None
    assert math.isnan(from_numpy["x"].values[1])


def test_narrow_columns_are_widened():
    rows = {"x": np.array([1.5], np.float32), "n": np.array([7], np.int8), "d": np.array([3], np.int32)}

    columns, _ = read_rows(rows, SCHEMA, ["x", "n", "d"], "UTC")

    assert values(columns) == {"x": [1.5], "n": [7], "d": [300]}


def test_names_match_ignoring_case():
    columns, _ = read_rows({"X": np.array([1.0])}, SCHEMA, ["x"], "UTC")

    assert columns["x"].values.tolist() == [1.0]
    assert read_row({"X": 2.0}, SCHEMA, ["x"], "UTC")["x"].values.tolist() == [2.0]


def test_wall_clock_time_is_in_the_zone_of_the_set():
    naive = np.array(["2024-07-01T14:00", "2024-10-27T02:30"], "datetime64[us]")
    (utc, _), (berlin, _) = (read_rows({"ts": naive}, SCHEMA, ["ts"], zone) for zone in ("UTC", "Europe/Berlin"))
    one = read_row({"ts": datetime.datetime(2024, 7, 1, 14)}, SCHEMA, ["ts"], "Europe/Berlin")

    assert (utc["ts"].values - berlin["ts"].values).tolist() == [2 * 3600 * 10**6] * 2  # the earlier of two 02:30
    assert one["ts"].values[0] == berlin["ts"].values[0]
    assert berlin["ts"].values[0] == NOON.timestamp() * 1e6
    assert read_row({"ts": naive[0]}, SCHEMA, ["ts"], "Europe/Berlin")["ts"].values[0] == berlin["ts"].values[0]
    aware = {"ts": NOON.astimezone(ZoneInfo("Asia/Tokyo"))}
    assert read_row(aware, SCHEMA, ["ts"], "Europe/Berlin")["ts"].values[0] == NOON.timestamp() * 1e6


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_wall_clock_time_that_never_was_is_as_far_after_the_gap(unit):
    naive = np.array(["2024-03-31T02:30", "2024-03-31T03:30", "2024-03-31T01:30", "NaT"], f"datetime64[{unit}]")
    columns, _ = read_rows({"ts": naive}, SCHEMA, ["ts"], "Europe/Berlin")
    one = read_row({"ts": datetime.datetime(2024, 3, 31, 2, 30)}, SCHEMA, ["ts"], "Europe/Berlin")

    gap, after, before, _ = columns["ts"].values.tolist()
    assert gap == after == before + 3600 * 10**6 == one["ts"].values[0]
    assert columns["ts"].valid.tolist() == [True, True, True, False]


def test_a_numpy_time_in_one_row_keeps_its_unit():
    at = np.datetime64("2024-07-01T12:00:00.000001999", "ns")

    assert read_row({"ts": at}, SCHEMA, ["ts"], "UTC")["ts"].values[0] == NOON.timestamp() * 1e6 + 1


@pytest.mark.parametrize("missing", [pd.NA, pd.NaT])
@pytest.mark.parametrize("name", SCHEMA.names)
def test_what_pandas_calls_missing_is_null_in_one_row(name, missing):
    assert read_row({name: missing}, SCHEMA, [name], "UTC")[name].valid.tolist() == [False]


def test_categories_of_polars_are_strings():
    frame = pl.DataFrame({"s": ["b", None, "a", "b"]}, schema={"s": pl.Categorical})

    for rows in (frame, frame[1:], pl.concat([frame, frame], rechunk=False)):
        assert values(read_rows(rows, SCHEMA, ["s"], "UTC")[0]) == {"s": rows["s"].to_list()}


def test_other_columns_of_a_frame_are_not_touched():
    frame = pd.DataFrame({"x": [1.0], "odd": [object()]})
    twice = pd.DataFrame([[1.0, 2.0, 3.0]], columns=["x", "y", "y"])

    assert [read_rows(rows, SCHEMA, ["x"], "UTC")[0]["x"].values.tolist() for rows in (frame, twice)] == [[1.0]] * 2


def test_integers_are_read_as_decimals_of_any_scale():
    schema = Schema.parse("w decimal(38,30)")

    columns, _ = read_rows({"w": np.array([1, -(10**7)])}, schema, ["w"], "UTC")

    assert columns["w"].values.tolist() == [10**30, -(10**37)]


def test_numbers_in_another_byte_order_are_read():
    rows = {"x": np.array([1.5], ">f8"), "n": np.array([7], ">i8")}

    assert values(read_rows(rows, SCHEMA, ["x", "n"], "UTC")[0]) == {"x": [1.5], "n": [7]}


def test_nanoseconds_are_floored_to_microseconds():
    rows = {"ts": pa.array([-1, 1999], pa.timestamp("ns", "UTC"))}

    assert read_rows(rows, SCHEMA, ["ts"], "UTC")[0]["ts"].values.tolist() == [-1, 1]


@pytest.mark.parametrize(
    "type_", ["string", "decimal(10,2)", "decimal(30,2)", "boolean", "date", "timestamp", "bigint"]
)
def test_an_array_of_floats_is_a_column_of_doubles_only(type_):
    schema = Schema.parse(f"f {type_}")
    floats = np.array([3900.0])

    with pytest.raises(RowError, match=f"field 'f' is {re.escape(type_)} in the schema but double in the rows"):
        read_rows({"f": floats}, schema, ["f"], "UTC")
    with pytest.raises(RowError, match=f"field 'f' is {re.escape(type_)}; cannot read"):
        read_row({"f": floats[0]}, schema, ["f"], "UTC")


def test_a_numpy_string_is_read_beyond_a_nul():
    texts = ["a\0b", "a", "\0"]

    for dtype in ("U3", ">U3", np.dtypes.StringDType()):
        columns, _ = read_rows({"s": np.array([*texts], dtype)}, SCHEMA, ["s"], "UTC")
        assert values(columns)["s"][:2] == texts[:2]


def test_a_date_in_milliseconds_is_at_midnight_or_refused():
    day = 86_400_000

    columns, _ = read_rows({"day": pa.array([day, -day, None, 2**33 * day], pa.date64())}, SCHEMA, ["day"], "UTC")

    assert values(columns) == {"day": [1, -1, None, 2**33]}
    with pytest.raises(RowError, match=r"field 'day' is date but row 1, of type date64\[ms\], is not at midnight"):
        read_rows({"day": pa.array([0, 1], pa.date64())}, SCHEMA, ["day"], "UTC")


def test_wall_clock_time_in_a_dictionary_is_in_the_zone_of_the_set():
    naive = pa.array([NOON.replace(tzinfo=None)], pa.timestamp("us"))

    for stored in (naive, naive.dictionary_encode(), pa.RunEndEncodedArray.from_arrays([1], naive)):
        columns, _ = read_rows({"ts": stored}, SCHEMA, ["ts"], "Europe/Berlin")
        assert columns["ts"].values.tolist() == [NOON.timestamp() * 1e6 - 2 * 3600 * 10**6]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("value", [2**63 - 1, -(2**63) + 1, 2**62])
def test_a_timestamp_that_is_too_far_away_is_read_exactly_or_refused(unit, value):
    times = pa.array([value, None], pa.timestamp(unit))
    micros = value * {"s": 10**6, "ms": 1000, "us": 1}.get(unit, 0) or value // 1000
    for zone in ("UTC", "Europe/Berlin"):
        if abs(micros) < 2**63 - (0 if zone == "UTC" else 2 * 86_400_000_000):
            read = read_rows({"ts": times}, SCHEMA, ["ts"], zone)[0]["ts"].values[0]
            assert abs(read - micros) <= 2 * 3600 * 10**6
        else:
            with pytest.raises(RowError, match="field 'ts' has a timestamp"):
                read_rows({"ts": times}, SCHEMA, ["ts"], zone)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ({"y": [1.0]}, "the rows lack field 'x', which queries use; they have: y"),
        (pd.DataFrame({"x": [1.0], "n": [1.5]}), r'bigint in the schema but double in the rows.*astype\("Int64"\)'),
        ({"x": ["a"]}, "field 'x' is double in the schema but string in the rows; cast the column"),
        ({"x": [1.0], "y": [1.0, 2.0]}, r"differ in length \(x: 1, y: 2\)"),
        ({"x": 1.0}, "field 'x' is 1.0, not an array; give arrays of one value, or use match_one"),
        ({"x": "1.0"}, "field 'x' is '1.0', not an array; give arrays of one value, or use match_one"),
        ({"x": np.zeros((2, 2))}, "field 'x' is an array of 2 dimensions; a column has one"),
        ({1: [1.0]}, "the rows lack field 'x', which queries use; they have: 1"),
        ({"x": ["\ud800"]}, r"field 'x' \(double\) cannot be read"),
        ([{"x": 1.0}], "rows must be an Arrow table or batch, a pandas or polars frame, or a dict of arrays; got list"),
    ],
)
def test_rows_that_do_not_fit_are_refused(rows, words):
    with pytest.raises(RowError, match=words):
        read_rows(rows, SCHEMA, ["x", "n"] if "n" in rows else ["x"], "UTC")


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"x": "much"}, "field 'x' is double; cannot read 'much' as one"),
        ({"n": 1.5}, "field 'n' is bigint; cannot read 1.5 as one"),
        ({"n": 2**70}, "field 'n' is bigint; cannot read"),
        ({"n": True}, "field 'n' is bigint; cannot read True as one"),
        ({"n": math.nan}, "field 'n' is bigint; cannot read nan as one"),
        ({"ts": 5}, "field 'ts' is timestamp; cannot read 5 as one"),
        ({"ts": "\ud800"}, "field 'ts' is timestamp; cannot read"),
        ({"d": True}, r"field 'd' is decimal\(10,2\); cannot read True as one"),
        ({"d": Decimal("1.005")}, r"field 'd' is decimal\(10,2\); cannot read"),
        ({"x": Decimal("sNaN")}, r"field 'x' is double; cannot read Decimal\('sNaN'\) as one"),
        ({"x": Decimal("1.5")}, r"field 'x' is double; cannot read Decimal\('1.5'\) as one"),
        ({"n": "7" * 100_000}, "field 'n' is bigint; cannot read '777.{1,100}777' as one; give a whole number"),
        ({"ts": "2024-01-02"}, "'ts' is timestamp; cannot read '2024-01-02' as one; give a datetime.datetime$"),
    ],
)
def test_a_row_that_does_not_fit_is_refused(row, words):
    with pytest.raises(RowError, match=words):
        read_row(row, SCHEMA, list(row), "UTC")


def test_one_row_is_a_dict():
    with pytest.raises(RowError, match="a row must be a dict of values by field; got list; use match for many rows"):
        read_row([{"x": 1.0}], SCHEMA, ["x"], "UTC")
