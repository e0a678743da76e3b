"""Columns by name: which containers are frames, and names that differ only in case."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import vedette as vd

TWICE = "the rows have 2 columns named 'x', ignoring case: 'x', 'X'; keep or rename one of them"
FRAMES = {
    "dict": {"x": [1.0], "X": [2.0]},
    "table": pa.table({"x": [1.0], "X": [2.0]}),
    "batch": pa.RecordBatch.from_pydict({"x": [1.0], "X": [2.0]}),
    "pandas": pd.DataFrame({"x": [1.0], "X": [2.0]}),
    "polars": pl.DataFrame({"x": [1.0], "X": [2.0]}),
}


@pytest.fixture
def above_zero():
    queries = vd.QuerySet("x double, y double")
    queries.add("above", "x > 0")
    return queries


@pytest.mark.parametrize("name", FRAMES)
def test_columns_that_differ_only_in_case_are_refused_where_a_query_uses_them(above_zero, name):
    with pytest.raises(vd.RowError) as caught:
        above_zero.match(FRAMES[name])
    assert str(caught.value) == TWICE


@pytest.mark.parametrize(
    "rows",
    [
        pd.DataFrame([[1.0, 2.0]], columns=["x", "x"]),
        pa.Table.from_arrays([pa.array([1.0]), pa.array([2.0])], names=["x", "x"]),
    ],
)
def test_columns_of_one_name_are_refused_where_a_query_uses_them(above_zero, rows):
    with pytest.raises(vd.RowError, match="the rows have 2 columns named 'x', ignoring case: 'x', 'x'; keep or"):
        above_zero.match(rows)


def test_columns_that_differ_only_in_case_do_no_harm_where_no_query_uses_them(above_zero):
    rows = {"x": [1.0], "Y": [2.0], "y": [3.0]}

    assert above_zero.match(rows).ids.to_pylist() == ["above"]
    assert above_zero.match_one({"x": 1.0, "Y": 2.0, "y": 3.0}) == ["above"]


def test_fields_of_one_row_that_differ_only_in_case_are_refused(above_zero):
    for row in ({"x": 1.0, "X": -1.0}, {"X": 1.0, "x": -1.0}):
        with pytest.raises(vd.RowError, match="the rows have 2 columns named 'x', ignoring case"):
            above_zero.match_one(row)


@pytest.mark.parametrize("twin", ["K", "T", "X"])
def test_keys_times_and_fields_that_differ_only_in_case_are_refused_by_border_monitoring(above_zero, twin):
    monitor = above_zero.border(key="k", time="t")

    with pytest.raises(vd.RowError, match=f"2 columns named '{twin.lower()}', ignoring case"):
        monitor.step({"k": [1], "t": [1], "x": [1.0], twin: [2]})


@pytest.mark.parametrize("twin", ["I", "T", "X"])
def test_ids_times_and_fields_that_differ_only_in_case_are_refused_by_window_joins(twin):
    pairs = vd.JoinQuerySet(left="x double", right="x double")
    pairs.add("same", "left.x = right.x", within=5)
    join = pairs.window(left_time="t", right_time="t", left_id="i", right_id="i")
    rows = {"i": [1], "t": [1], "x": [1.0]}

    with pytest.raises(vd.RowError, match=f"right rows: the rows have 2 columns named '{twin.lower()}', ignoring case"):
        join.step(left=rows, right={**rows, twin: [2]})


@pytest.mark.parametrize("twin", ["ID", "Value"])
def test_columns_that_differ_only_in_case_are_refused_by_band_joins(twin):
    join = vd.BandQuerySet().monitor()

    with pytest.raises(vd.RowError, match=f"left rows: the rows have 2 columns named '{twin.lower()}'"):
        join.insert(left={"id": [1], "value": [1.0], twin: [2]})
    with pytest.raises(vd.RowError, match="the rows have 2 columns named 'id'"):
        join.delete(left={"id": [1], "ID": [2]})


@pytest.mark.parametrize("twin", ["ID", "X", "Vy", "TIME", "Removed"])
def test_columns_that_differ_only_in_case_are_refused_by_moving_joins(twin):
    rows = {"id": [1], "x": [0.0], "y": [0.0], "vx": [0.0], "vy": [0.0], "time": [0.0], "removed": [False]}
    moving = vd.MovingJoin(max_update_interval=60)

    with pytest.raises(vd.RowError, match=f"set a: the rows have 2 columns named '{twin.lower()}'"):
        moving.update(a={**rows, twin: rows[twin.lower()]}, time=0)


@pytest.mark.parametrize(
    "column", [{1.0, 2.0}, {1.0: 2}, b"ab", bytearray(b"ab"), memoryview(b"ab"), "ab", 5, np.array(5)]
)
def test_a_column_that_is_not_an_array_is_refused(above_zero, column):
    with pytest.raises(vd.RowError, match=r"field 'x' (is .*|is a (set|dict)), not an array; give"):
        above_zero.match({"x": column})


@pytest.mark.parametrize("rows", [pa.array([1.0]), pa.chunked_array([[1.0]]), pl.Series("x", [1.0]), 5, "x", None])
def test_rows_of_an_unknown_container_are_refused(above_zero, rows):
    with pytest.raises(vd.RowError, match=r"rows (must be an Arrow table|of type)"):
        above_zero.match(rows)


def test_columns_of_polars_that_arrow_lacks_do_no_harm_where_no_query_uses_them(above_zero):
    wide = pl.Series("wide", [1], pl.Int128)
    frame = pl.DataFrame([pl.Series("x", [1.0]), wide, pl.Series("thing", [object()], pl.Object)])

    assert above_zero.match(frame).ids.to_pylist() == ["above"]
    with pytest.raises(vd.RowError, match=r"field 'x' \(double\) cannot be read \(Int128\): .* cast the column"):
        above_zero.match(frame.select(x=pl.col("wide")))
