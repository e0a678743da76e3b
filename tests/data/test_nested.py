"""Fields of arrays and structs, in every container and operator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import vedette as vd
from vedette.data.schema import Schema
from vedette.errors import QueryError, RowError, SchemaError

FIELDS = "k bigint, t bigint, tags array<string>, o struct<a: bigint, c: struct<e: double, f: string>>"
QUERIES = {
    "a": "array_contains(tags, 'a')",
    "ab": "array_contains(tags, 'a') AND array_contains(tags, 'b')",
    "long": "exists(tags, x -> length(x) > 1)",
    "range": "exists(tags, x -> x BETWEEN 'b' AND 'c') AND o.a < 5",
    "part": "o.c.e > 2",
    "text": "o.c.f = 'x' OR o.a IS NULL",
}
ROWS: list[dict[str, Any]] = [
    {"k": 1, "t": 0, "tags": ["a", "b"], "o": {"a": 1, "c": {"e": 3.0, "f": "x"}}},
    {"k": 2, "t": 0, "tags": [], "o": {"a": 9, "c": None}},
    {"k": 3, "t": 0, "tags": None, "o": None},
    {"k": 4, "t": 0, "tags": [None, "bb", "c", "bb"], "o": {"a": None, "c": {"e": 1.0, "f": None}}},
    {"k": 1, "t": 1, "tags": ["c", "a"], "o": {"a": 1, "c": {"e": 1.0, "f": "x"}}},
    {"k": 4, "t": 1, "tags": ["a"], "o": {"a": 4, "c": {"e": 9.0, "f": "y"}}},
    {"k": 4, "t": 2, "tags": None, "o": {"a": 4, "c": {"e": None, "f": "y"}}},
]
EXPECTED = [
    {"a", "ab", "range", "part", "text"},
    set(),
    {"text"},
    {"long", "text"},
    {"a", "range", "text"},
    {"a", "part"},
    set(),
]
pytestmark = pytest.mark.fast


def query_set() -> vd.QuerySet:
    queries = vd.QuerySet(FIELDS)
    queries.add_many(list(QUERIES), list(QUERIES.values()))
    return queries


def found(queries: vd.QuerySet, rows: Any) -> list[set[str]]:
    answer: list[set[str]] = [set() for _ in ROWS]
    for pair in queries.match(rows).to_arrow().to_pylist():
        assert pair["query"] not in answer[pair["row"]]  # once
        answer[pair["row"]].add(pair["query"])
    return answer


def containers() -> dict[str, Any]:
    table = pa.Table.from_pylist(ROWS, schema=Schema.parse(FIELDS).to_arrow())
    large = table.set_column(2, "TAGS", table.column("tags").cast(pa.large_list(pa.large_string())))
    return {
        "arrow": table,
        "large lists": large,
        "chunks": pa.concat_tables([table.slice(0, 3), table.slice(3)]),
        "pandas": pd.DataFrame(ROWS),
        "polars": pl.from_arrow(table),
        "lists": {name: [row[name] for row in ROWS] for name in ROWS[0]},
        "flat columns": {
            "k": [row["k"] for row in ROWS],
            "tags": [row["tags"] for row in ROWS],
            "o.a": [None if row["o"] is None else row["o"]["a"] for row in ROWS],
            "o.c.e": [None if not (row["o"] and row["o"]["c"]) else row["o"]["c"]["e"] for row in ROWS],
            "o.c.f": [None if not (row["o"] and row["o"]["c"]) else row["o"]["c"]["f"] for row in ROWS],
        },
    }


@pytest.mark.parametrize("container", containers())
def test_nested_fields_are_read_from_every_container(container: str) -> None:
    assert found(query_set(), containers()[container]) == EXPECTED


def test_one_row_is_a_dict_of_dicts_and_lists() -> None:
    queries = query_set()
    for row, expected in zip(ROWS, EXPECTED, strict=True):
        assert set(queries.match_one(row)) == expected


def test_a_saved_set_and_a_changed_set_find_the_same() -> None:
    queries = query_set()
    path = vd.QuerySet.from_bytes(queries.to_bytes()) if hasattr(queries, "to_bytes") else queries
    assert found(path, containers()["arrow"]) == EXPECTED
    queries.add_many(np.arange(1000).astype(str), [f"array_contains(tags, 'word {i}')" for i in range(1000)])
    queries.remove("a")
    assert found(queries, containers()["arrow"]) == [each - {"a"} for each in EXPECTED]
    assert "elements of tags" in queries.explain()


def test_border_events_are_the_differences_of_matches() -> None:
    queries = query_set()
    monitor = queries.border(key="k", time="t")
    inside: dict[int, set[str]] = {}
    for start in (0, 4, 6):
        events = monitor.step(pa.Table.from_pylist(ROWS[start : {0: 4, 4: 6, 6: 7}[start]])).to_pylist()
        expected = set()
        for row, now in zip(ROWS[start:], EXPECTED[start : {0: 4, 4: 6, 6: 7}[start]], strict=False):
            before = inside.get(row["k"], set())
            expected |= {(row["k"], query, "exit") for query in before - now}
            expected |= {(row["k"], query, "enter") for query in now - before}
            inside[row["k"]] = now
        assert {(event["key"], event["query"], event["event"]) for event in events} == expected
        restored = queries.border(key="k", time="t")
        restored.load(monitor.save())
        monitor = restored


def test_joins_compare_nested_fields_of_two_streams() -> None:
    joins = vd.JoinQuerySet(left=f"id bigint, {FIELDS}", right="id bigint, t bigint, n bigint, tags array<string>")
    joins.add("both", "left.o.a = right.n AND arrays_overlap(left.tags, right.tags)", within=10)
    monitor = joins.window(left_time="t", right_time="t")
    left = pa.Table.from_pylist([{"id": place, **row} for place, row in enumerate(ROWS)])
    right = pa.table({"id": [0, 1], "t": [0, 2], "n": [1, 4], "tags": [["b"], ["c", "a"]]})
    answers = monitor.step(left=left.slice(0, 4), right=right.slice(0, 1)).to_pylist()
    again = joins.window(left_time="t", right_time="t")
    again.load(monitor.save())
    answers += again.step(left=left.slice(4), right=right.slice(1)).to_pylist()
    assert {(each["left"], each["right"]) for each in answers} == {(0, 0), (5, 1)}


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ({"tags": ["a"], "o": [None]}, "is array<string> in the schema but"),
        ({"tags": [[1]], "o": [None]}, "is array<string> in the schema but"),
        ({"tags": [["a"]], "o": [1]}, "'o.a' is in a struct in the schema, but int64 in the rows"),
        ({"tags": [["a"]], "o": [{"b": 1}]}, "the rows lack field 'o.a'"),
        ({"tags": [["a"]], "o": [{"a": "x", "c": None}]}, "'o.a' is bigint in the schema but"),
        ({"tags": [[["a"]]], "o": [None]}, "is array<string> in the schema but"),
    ],
)
def test_rows_of_another_form_are_refused_with_a_sentence(rows: dict[str, Any], words: str) -> None:
    with pytest.raises(RowError, match=words):
        query_set().match(rows)


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ("a struct", "struct needs what it has"),
        ("a struct<", "cannot read the schema at"),
        ("a struct<b: bigint", "expected a comma or >"),
        ("a struct<>", "cannot read the schema at"),
        ("a array<string", "expected >"),
        ("a array", "array needs what it has"),
        ("a array<nothing>", "unknown type 'nothing'"),
        ("a array<array<string>>", "an array or a map of arrays is not supported"),
        ("a struct<b: bigint, B: string>", "twice"),
        ("`a.b` bigint, a struct<b: bigint>", "twice"),
        ("a struct<" * 40 + "b: bigint" + ">" * 40, "more than 32 deep"),
        ("`a\0b` bigint", "NUL"),
    ],
)
def test_invalid_nested_schemas_are_refused_with_a_sentence(schema: str, words: str) -> None:
    with pytest.raises(SchemaError, match=words):
        Schema.parse(schema)


def test_a_nested_schema_is_written_as_it_is_read() -> None:
    text = "id bigint, o struct<a: bigint, c: struct<e: double, `x y`: string>, tags: array<string>>, p decimal(10,2)"
    schema = Schema.parse(text)
    assert str(schema) == text
    assert Schema.parse(str(schema)) == schema
    assert schema.names == ["id", "o.a", "o.c.e", "o.c.x y", "o.tags", "p"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("array_contains(tags, 1)", "cannot be compared with"),
        ("array_contains(tags, NULL)", "cannot be compared with NULL"),
        ("array_contains(o.a, 1)", "array_contains needs an array here"),
        ("exists(tags, 1)", "takes a condition on an element"),
        ("exists(tags, x -> x)", "a condition is needed here"),
        ("exists(tags, (x, y) -> x = y)", "one variable"),
        ("tags = 'a'", "cannot compare field 'tags'"),
        ("tags[0] = 1 AND tags['a'] = 'b'", "a place in an array is an int"),
        ("element_at(tags, 1L) = 'a'", "a place in an array is an int"),
        ("o = 1", "unknown field 'o'"),
        ("o.z = 1", "unknown field 'o.z'"),
        ("`o.a` = 1", "write o.a"),
        ("x -> x > 1", "-> is allowed in exists and forall only"),
        ("array('a') = tags", "array"),
        ("tags[0 = 'a'", r"a \[ without its \]"),
        ("exists(tags, x -> x.y = 1)", "is an element of an array, not a struct"),
    ],
)
def test_invalid_conditions_on_nested_fields_are_refused_with_a_sentence(text: str, words: str) -> None:
    with pytest.raises(QueryError, match=words):
        query_set().add("bad", text)


def test_a_condition_on_elements_cannot_take_all_memory() -> None:
    """A long string for each of many elements is bounded: the pair fails, and is counted."""
    queries = vd.QuerySet("tags array<string>, s string")
    queries.add("bomb", "exists(tags, x -> concat(x, s, s, s, s) = 'y')")
    matches = queries.match({"tags": [["a"] * 100_000], "s": ["x" * 100_000]})
    assert matches.to_arrow().num_rows == 0
    assert matches.n_failed == 1
