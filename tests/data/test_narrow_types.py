"""Fields of narrow types, from every container and file: the same rows match the same queries."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

import vedette as vd
from vedette.data.schema import Schema
from vedette.files.rows import RowsFile

SCHEMA = "y tinyint, h smallint, i int, f float"
TABLE = pa.table(
    {
        "y": pa.array([127, -128, None, 0], pa.int8()),
        "h": pa.array([32767, -32768, None, 7], pa.int16()),
        "i": pa.array([2**31 - 1, -(2**31), None, 5], pa.int32()),
        "f": pa.array([0.1, -0.5, None, 3.4e38], pa.float32()),
    }
)
LISTS = TABLE.to_pydict()
QUERIES = {
    "y = 127": [0],
    "y < -127.5": [1],
    "y > 1000": [],
    "y < 1000": [0, 1, 3],
    "h >= 32767S": [0],
    "h <> 7": [0, 1],
    "h IN (7, 32767L, 1e0)": [0, 3],
    "i = 2147483647": [0],
    "i < 3000000000": [0, 1, 3],
    "i BETWEEN -2147483648 AND 5": [1, 3],
    "f = 0.1F": [0],
    "f = 0.1": [],
    "f > 0.1": [0, 3],
    "f < 0.1": [1],
    "f IS NULL": [2],
    "y + y < 0 OR y + y > 0": [],  # both overflow in 8 bits
    "h + 1 = 32768": [0],  # the literal is an int
    "i * 2L > 10": [0],
    "f * 2F > 1e38F": [3],
}  # `f * 2F` of the last row is infinite


def masked(values: list[Any], dtype: str | None = None) -> Any:
    plain = np.array([0 if each is None else each for each in values], dtype)
    return np.ma.masked_array(plain, [each is None for each in values])


def frame(*dtypes: str) -> pd.DataFrame:
    return pd.DataFrame({name: pd.array(LISTS[name], dtype) for name, dtype in zip("yhif", dtypes, strict=True)})


WIDE = pa.schema([("y", "int64"), ("h", "int64"), ("i", "int64"), ("f", "float64")])
BATCHES: dict[str, Any] = {
    "arrow": TABLE,
    "record batch": TABLE.to_batches()[0],
    "wider arrow": TABLE.cast(WIDE),
    "pandas": frame("Int8", "Int16", "Int32", "Float32"),
    "pandas of 64 bits": frame("Int64", "Int64", "Int64", "Float64"),
    "polars": pl.from_arrow(TABLE),
    "lists": LISTS,
    "numpy": {name: masked(LISTS[name], dtype) for name, dtype in zip("yhif", ("i1", "i2", "i4", "f4"), strict=True)},
    "numpy of 64 bits": {name: masked(values) for name, values in LISTS.items()},
}


def make() -> vd.QuerySet:
    queries = vd.QuerySet(SCHEMA)
    queries.add_many(list(QUERIES), list(QUERIES))
    return queries


def found(rows: Any) -> dict[str, list[int]]:
    pairs = make().match(rows).to_arrow().to_pylist()
    return {text: sorted(pair["row"] for pair in pairs if pair["query"] == text) for text in QUERIES}


@pytest.mark.parametrize("container", list(BATCHES))
def test_every_container_gives_the_same_matches(container: str) -> None:
    assert found(BATCHES[container]) == QUERIES


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_every_file_gives_the_same_matches(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"rows.{ending}"
    if ending == "csv":
        pa_csv.write_csv(TABLE, path)
    elif ending == "parquet":
        pq.write_table(TABLE, path)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in TABLE.to_pylist()))
    rows = RowsFile.open(path, Schema.parse(SCHEMA), needs_others=False)

    assert found(pa.Table.from_batches(list(rows.batches))) == QUERIES


def test_single_rows_match_the_same_queries() -> None:
    queries = make()

    for number, row in enumerate(TABLE.to_pylist()):
        assert set(queries.match_one(row)) == {text for text, rows in QUERIES.items() if number in rows}


@pytest.mark.parametrize(("name", "value"), [("y", 128), ("h", -32769), ("i", 2**31)])
def test_an_integer_beyond_its_type_is_refused(name: str, value: int) -> None:
    queries = make()
    rows = LISTS | {name: [0, 0, 0, value]}

    with pytest.raises(vd.RowError, match=f"field '{name}' is .*, but row 3 has {value}; its values are from"):
        queries.match(rows)
    with pytest.raises(vd.RowError, match=f"field '{name}' is .*; cannot read {value} as one; give a whole number"):
        queries.match_one({name: value})


def test_saved_sets_keep_narrow_types() -> None:
    queries = make()
    loaded = vd.QuerySet.from_bytes(queries.to_bytes()) if hasattr(vd.QuerySet, "from_bytes") else queries

    assert str(loaded.schema) == SCHEMA


def test_boxes_may_be_given_for_narrow_types() -> None:
    queries = vd.QuerySet(SCHEMA)
    queries.add_boxes(["a", "b"], {"i": ([5, -np.inf], [np.inf, 0.5]), "f": ([0.0, -1.0], [np.inf, 0.0])})

    assert queries.match_one({"i": 5, "f": 0.25}) == ["a"]
    assert queries.match_one({"i": 0, "f": -0.5}) == ["b"]


def test_keys_and_times_may_be_narrow() -> None:
    queries = vd.QuerySet("k int, t smallint, f float")
    queries.add("high", "f > 1")
    monitor = queries.border(key="k", time="t")
    rows = pa.table(
        {"k": pa.array([1, 1], pa.int32()), "t": pa.array([1, 2], pa.int16()), "f": pa.array([2, 0], pa.float32())}
    )

    assert monitor.step(rows).column("event").to_pylist() == ["enter", "exit"]
