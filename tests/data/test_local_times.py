"""Fields of type timestamp_ntz, from every container and file: local times, whatever the zone of the set."""

from __future__ import annotations

import datetime as dt
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

# The second is skipped in New York, the third is there twice.
TIMES = [dt.datetime(2021, 3, 14, 1, 59), dt.datetime(2021, 3, 14, 2, 30), dt.datetime(2021, 11, 7, 1, 30), None]
TABLE = pa.table({"at": pa.array(TIMES, pa.timestamp("us"))})
QUERIES = {
    "at < TIMESTAMP_NTZ '2021-03-14 02:30:00'": [0],
    "at = '2021-03-14 02:30:00'": [1],
    "at >= DATE '2021-03-15'": [2],
    "at > TIMESTAMP '2021-03-14 03:00:00'": [2],  # the constant becomes a local time
    "at = TIMESTAMP '2021-03-14 03:30:00'": [],
    "at IN (TIMESTAMP '2021-03-14 03:30:00', TIMESTAMP '2021-11-07 01:30:00')": [1, 2],  # 02:30 is cast to 03:30
    "at < TIMESTAMP '2021-11-07 01:30:00-05:00'": [0, 1, 2],  # the second time that it is 01:30
    "at = TIMESTAMP '2021-11-07 01:30:00-04:00'": [2],  # the earlier one
    "at - INTERVAL 1 DAY < TIMESTAMP_NTZ '2021-03-13 02:30:00'": [0],
    "hour(at) = 2 AND minute(at) = 30": [1],
    "CAST(at AS date) = DATE '2021-03-14'": [0, 1],
    "CAST(at AS date) < TIMESTAMP '2021-03-15 00:00:00'": [0, 1],
    "CAST(at AS string) = '2021-11-07 01:30:00'": [2],
    "at IS NULL": [3],
    "at < localtimestamp()": [0, 1, 2],
}


def make() -> vd.QuerySet:
    queries = vd.QuerySet("at timestamp_ntz", time_zone="America/New_York")
    queries.add_many(list(QUERIES), list(QUERIES))
    return queries


def found(rows: Any, queries: vd.QuerySet | None = None) -> dict[str, list[int]]:
    pairs = (queries or make()).match(rows).to_arrow().to_pylist()
    return {text: sorted(pair["row"] for pair in pairs if pair["query"] == text) for text in QUERIES}


BATCHES: dict[str, Any] = {
    "arrow": TABLE,
    "arrow in nanoseconds": TABLE.cast(pa.schema([("at", pa.timestamp("ns"))])),
    "pandas": pd.DataFrame({"at": pd.to_datetime(pd.Series(TIMES))}),
    "polars": pl.DataFrame({"at": TIMES}),
    "numpy": {"at": np.array(TIMES, "datetime64[s]")},
    "lists": {"at": TIMES},
}


@pytest.mark.parametrize("container", list(BATCHES))
def test_every_container_gives_the_same_matches(container: str) -> None:
    assert found(BATCHES[container]) == QUERIES


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_every_file_gives_the_same_matches(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"rows.{ending}"
    if ending == "csv":
        pa_csv.write_csv(pa.table({"at": TABLE["at"], "n": [1, 2, 3, 4]}), path)
    elif ending == "parquet":
        pq.write_table(TABLE, path)
    else:
        path.write_text("".join(json.dumps({"at": None if time is None else str(time)}) + "\n" for time in TIMES))
    rows = RowsFile.open(path, Schema.parse("at timestamp_ntz"), needs_others=False)

    assert found(pa.Table.from_batches(list(rows.batches))) == QUERIES


def test_single_rows_match_the_same_queries() -> None:
    queries = make()

    for number, time in enumerate(TIMES):
        assert set(queries.match_one({"at": time})) == {text for text, rows in QUERIES.items() if number in rows}


def test_a_saved_set_keeps_the_type(tmp_path: Path) -> None:
    make().save(tmp_path / "set")

    assert found(TABLE, vd.QuerySet.load(tmp_path / "set")) == QUERIES


def test_a_time_with_a_zone_is_refused() -> None:
    zoned = TIMES[0].replace(tzinfo=dt.UTC)

    with pytest.raises(vd.RowError, match=r"timestamp_ntz in the schema but .*tz=UTC.*without a time zone, or declare"):
        make().match({"at": [zoned]})
    with pytest.raises(vd.RowError, match="without a time zone"):
        make().match_one({"at": zoned})


def test_ranges_are_indexed() -> None:
    queries = vd.QuerySet("at timestamp_ntz", time_zone="America/New_York")
    queries.add("a", "at < TIMESTAMP_NTZ '2021-03-14 02:30:00'")
    queries.add("b", "at < TIMESTAMP '2021-03-14 02:30:00'")

    assert "every row" not in str(queries.explain())
