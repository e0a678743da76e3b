"""Fields of maps, from every container and file: the same rows match the same queries."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import vedette as vd
from vedette.data.schema import Schema
from vedette.files.rows import RowsFile

SCHEMA = "m map<string, double>, t map<string,string>"
ROWS: list[dict[str, Any]] = [
    {"m": {"price": 39.5, "x": 1.0}, "t": {"a": "b"}},
    {"m": {"price": 200.0}, "t": {"a": "xb", "b": "price"}},
    {"m": None, "t": {}},
    {"m": {"y": 7.0, "price": None}, "t": None},
    {"m": {}, "t": {"b": "x"}},
]
QUERIES = {
    "m['price'] < 40": [0],
    "m.price >= 40": [1],
    "element_at(m, 'price') IS NULL": [2, 3, 4],
    "try_element_at(m, 'x') = 1": [0],
    "m['price'] IN (200, 7)": [1],
    "NOT m['price'] < 40": [1],
    "m['Price'] IS NOT NULL": [],
    "map_contains_key(m, 'price')": [0, 1, 3],
    "NOT map_contains_key(m, 'price')": [4],
    "size(m) = 2": [0, 3],
    "cardinality(t) = 0": [2],
    "array_contains(map_keys(m), 'y')": [3],
    "exists(map_values(m), v -> v > 100)": [1],
    "t['a'] = 'b'": [0],
    "t['a'] LIKE 'x%'": [1],
    "t.a LIKE '%b%'": [0, 1],
    "m[t['b']] = 200": [1],
    "m['price'] + m['x'] > 40": [0],
    "m IS NULL": [2],
}
TABLE = pa.Table.from_pylist(
    [{name: held if held is None else list(held.items()) for name, held in row.items()} for row in ROWS],
    Schema.parse(SCHEMA).to_arrow(),
)
ENTRIES = {
    name: [row[name] and [{"key": key, "value": value} for key, value in row[name].items()] for row in ROWS]
    for name in ("m", "t")
}
ENTRIES["t"][2], ENTRIES["m"][4] = [], []
LISTS = {name: [row[name] for row in ROWS] for name in ("m", "t")}
BATCHES: dict[str, Any] = {
    "arrow": TABLE,
    "slice of arrow": pa.concat_tables([TABLE.slice(3), TABLE]).combine_chunks().slice(2),
    "lists of dicts": LISTS,
    "pandas": pd.DataFrame(LISTS),
    "numpy": {name: np.array(held, object) for name, held in LISTS.items()},
    "polars": pl.DataFrame(ENTRIES),
}


def make() -> vd.QuerySet:
    queries = vd.QuerySet(SCHEMA)
    queries.add_many(list(QUERIES), list(QUERIES))
    return queries


def found(rows: Any, queries: vd.QuerySet | None = None) -> dict[str, list[int]]:
    pairs = (queries or make()).match(rows).to_arrow().to_pylist()
    return {text: sorted(pair["row"] for pair in pairs if pair["query"] == text) for text in QUERIES}


@pytest.mark.parametrize("container", list(BATCHES))
def test_every_container_gives_the_same_matches(container: str) -> None:
    assert found(BATCHES[container]) == QUERIES


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_every_file_gives_the_same_matches(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"rows.{ending}"
    if ending == "parquet":
        pq.write_table(TABLE, path)
    else:
        path.write_text("".join(json.dumps(row | {"n": 1}) + "\n" for row in ROWS))
    rows = RowsFile.open(path, Schema.parse(SCHEMA), needs_others=False)

    assert found(pa.Table.from_batches(list(rows.batches))) == QUERIES


def test_single_rows_match_the_same_queries() -> None:
    queries = make()

    for number, row in enumerate(ROWS):
        assert set(queries.match_one(row)) == {text for text, rows in QUERIES.items() if number in rows}


def test_a_saved_set_matches_the_same(tmp_path: Path) -> None:
    make().save(tmp_path / "set")

    assert found(TABLE, vd.QuerySet.load(tmp_path / "set")) == QUERIES


def test_a_value_at_a_literal_key_is_found_by_index() -> None:
    queries = vd.QuerySet(SCHEMA)
    queries.add_many(range(1000), [f"m['price'] < {n} AND t['a'] = 'k{n}'" for n in range(1000)])

    shown = str(queries.explain())
    assert "1,000 boxes on t['a'], m['price']" in shown
    assert "residual" not in shown
    assert queries.match_one({"m": {"price": 5.5}, "t": {"a": "k7"}}) == [7]


def test_keys_follow_the_border_of_a_range() -> None:
    queries = vd.QuerySet("id bigint, ts bigint, m map<string,double>")
    queries.add("cheap", "m['price'] < 40")
    queries.add("known", "map_contains_key(m, 'price')")
    monitor = queries.border(key="id", time="ts")
    prices = [50.0, 30.0, None, 35.0]
    events = []
    for time, price in enumerate(prices):
        held = {} if price is None else {"price": price}
        events += monitor.step({"id": [1], "ts": [time], "m": [held]}).to_pylist()
        blob = monitor.save()
        monitor = queries.border(key="id", time="ts")
        monitor.load(blob)

    assert [(each["time"], each["query"], each["event"]) for each in events] == [
        *[(0, "known", "enter"), (1, "cheap", "enter"), (2, "cheap", "exit"), (2, "known", "exit")],
        *[(3, "cheap", "enter"), (3, "known", "enter")],
    ]


def test_windows_join_values_of_maps_and_local_times() -> None:
    fields = "id bigint, ts bigint, m map<string,double>, at timestamp_ntz, k string"
    pairs = vd.JoinQuerySet(left=fields, right=fields)
    texts = {
        "key": "left.k = right.k AND left.m['p'] < 5",
        "order": "left.m['p'] < right.m.p",
        "local": "left.at < right.at AND left.m.p > 1",
        "band": "left.m['p'] - right.m['p'] BETWEEN -1 AND 1",
        "contains": "map_contains_key(left.m, right.k)",
    }
    for name, text in texts.items():
        pairs.add(name, text, within=10)
    first, second, third = (dt.datetime(2024, 1, day) for day in (1, 2, 3))
    left = {"id": [1, 2], "ts": [0, 0], "m": [{"p": 3.0}, {"p": 8.0, "x": 1.0}], "at": [first, third], "k": ["x", "y"]}
    right = {"id": [3, 4], "ts": [0, 0], "m": [{"p": 3.5}, {}], "at": [second, None], "k": ["x", "y"]}
    expected = [("band", 1, 3), ("contains", 2, 3), ("key", 1, 3), ("local", 1, 3), ("order", 1, 3)]

    join = pairs.window(left_time="ts", right_time="ts", left_id="id", right_id="id")
    found = join.step(left=left).to_pylist()
    loaded = pairs.window(left_time="ts", right_time="ts", left_id="id", right_id="id")
    loaded.load(join.save())
    found += loaded.step(right=right).to_pylist()
    assert sorted((each["query"], each["left"], each["right"]) for each in found) == expected


def test_a_row_is_explained() -> None:
    queries = vd.QuerySet("m map<string,double>, at timestamp_ntz, days array<date>")
    queries.add(
        "a", "m['price'] < 40 AND at < TIMESTAMP_NTZ '2020-01-01 00:00:00' AND array_contains(days, DATE '2020-01-02')"
    )
    row = {"m": {"price": 50.0}, "at": dt.datetime(2021, 1, 1), "days": [dt.date(2020, 1, 2)]}

    why = queries.why("a", row)
    assert not why.holds
    assert "m['price'] < 40" in str(why)
    assert "TIMESTAMP_NTZ '2020-01-01 00:00:00'" in str(why)
    json.dumps(why.to_dict())


@pytest.mark.parametrize(
    ("held", "words"),
    [
        ([{5: 1.0}], "give dicts with strings as keys"),
        ([["a"]], "give dicts with strings as keys"),
        (pa.array([1.0]), "map<string,double> in the schema but double in the rows"),
        (pa.array([[("a", "b")]], pa.map_(pa.string(), pa.string())), "in the rows"),
        (pa.array([[{"key": None, "value": 1.0}]]), "a key that is null"),
    ],
)
def test_what_is_no_map_is_refused(held: Any, words: str) -> None:
    queries = vd.QuerySet("m map<string, double>")
    queries.add("a", "m['a'] > 1")

    with pytest.raises(vd.RowError, match=words):
        queries.match({"m": held})


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ("m map<bigint, string>", "keys of a map must be strings, not bigint"),
        ("m map<string>", "expected , in the schema"),
        ("m map", "map needs what it has, such as map<string, bigint>"),
        ("m map<string, array<int>>", "an array or a map of arrays is not supported"),
        ("m array<decimal(20,2)>", "decimals in arrays and maps have up to 18 digits"),
    ],
)
def test_a_map_that_is_not_supported_is_refused(schema: str, words: str) -> None:
    with pytest.raises(vd.SchemaError, match=words):
        vd.QuerySet(schema)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("m = m", "cannot compare field 'm'"),
        ("element_at(m, 5) = 1", "takes a string as the key of a map"),
        ("map_contains_key(5, 'a')", "needs a map here"),
        ("get(m, 'a') = 1", "needs an array here"),
        ("array_size(m) = 1", "needs an array here"),
    ],
)
def test_what_spark_refuses_of_maps_is_refused(text: str, words: str) -> None:
    with pytest.raises(vd.QueryError, match=words):
        make().check(text)


ARRAYS = {
    "int": ([1, 9], "exists(v, x -> x > 5)", "array_contains(v, 9)"),
    "tinyint": ([1, None, 9], "exists(v, x -> x > 5)", "array_position(v, 9Y) = 3"),
    "float": ([0.5, 9.0], "exists(v, x -> x > 0.5F)", "array_contains(v, 9F)"),
    "boolean": ([False, True], "exists(v, x -> x)", "v[1]"),
    "date": ([dt.date(2020, 1, 1)], "array_contains(v, DATE '2020-01-01')", "v[0] < DATE '2020-01-02'"),
    "timestamp": ([dt.datetime(2020, 1, 1)], "exists(v, x -> x = '2020-01-01 00:00:00')", "year(v[0]) = 2020"),
    "timestamp_ntz": ([dt.datetime(2020, 1, 1)], "exists(v, x -> x = '2020-01-01 00:00:00')", "year(v[0]) = 2020"),
    "decimal(5,2)": ([1, 9], "exists(v, x -> x > 8.99)", "v[1] = 9"),
    "binary": ([b"\x00", b"\xff"], "array_contains(v, X'FF')", "v[1] > X'00'"),
}


@pytest.mark.parametrize("element", list(ARRAYS))
def test_arrays_have_elements_of_any_type(element: str, tmp_path: Path) -> None:
    values, *texts = ARRAYS[element]
    queries = vd.QuerySet(f"v array<{element}>", time_zone="Europe/Berlin")
    queries.add_many(texts, texts)
    rows = {"v": [values, None, [], values[:1] * 0]}
    type_ = queries.schema.to_arrow().field("v").type
    arrow = pa.table({"v": pa.array(rows["v"], pa.list_(pa.timestamp("us")) if element == "timestamp" else type_)})

    assert sorted(pair["query"] for pair in queries.match(arrow).to_arrow().to_pylist()) == sorted(texts)
