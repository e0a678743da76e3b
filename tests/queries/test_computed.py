"""Expressions that many queries compare with constants are evaluated once per row, and looked up in an index."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import vedette as vd
from vedette.language.computed import MAX_COMPUTED

SCHEMA = "symbol string, price double, volume bigint, ts timestamp"
WORDS = ["IBM", "ibm", "Sap", "", "Ä"]
rng = np.random.default_rng(7)
ROWS = {
    "symbol": [None if k % 11 == 0 else WORDS[k % 5] for k in range(200)],
    "price": [None if k % 13 == 0 else float(value) for k, value in enumerate(rng.integers(-9, 9, 200) / 2)],
    "volume": [None if k % 17 == 0 else int(value) for k, value in enumerate(rng.integers(-5, 60, 200))],
    "ts": [dt.datetime(2024, 1, 1, tzinfo=dt.UTC) + dt.timedelta(hours=5 * k) for k in range(200)],
}
TABLE = pa.table({**ROWS, "ts": pa.array(ROWS["ts"], pa.timestamp("us", "UTC"))})


def day_of(row: dict[str, Any]) -> str:
    return str(row["ts"].date())


CASES = [
    ("lower(symbol) = '{}'", ["ibm", "sap", "x", "ä"], lambda r, k: r["symbol"] and r["symbol"].lower() == k),
    ("lower(symbol) LIKE '{}%'", ["i", "s"], lambda r, k: r["symbol"] and r["symbol"].lower().startswith(k)),
    ("abs(price) < {}", ["1", "2.5"], lambda r, k: r["price"] is not None and abs(r["price"]) < float(k)),
    ("NOT abs(price) < {}", ["1"], lambda r, k: r["price"] is not None and abs(r["price"]) >= float(k)),
    ("volume % 7 = {}", ["3", "-2"], lambda r, k: r["volume"] is not None and np.fmod(r["volume"], 7) == int(k)),
    ("length(symbol) >= {}", ["1", "2.5"], lambda r, k: r["symbol"] is not None and len(r["symbol"]) >= float(k)),
    ("CAST(ts AS DATE) = DATE '{}'", ["2024-01-02", "2024-02-01"], lambda r, k: day_of(r) == k),
    ("month(ts) IN ({}, 12)", ["1", "2"], lambda r, k: r["ts"].month == int(k)),
    (
        "price * volume BETWEEN {} AND 50",
        ["1", "20"],
        lambda r, k: None not in (r["price"], r["volume"]) and int(k) <= r["price"] * r["volume"] <= 50,
    ),
    (
        "volume > 3 AND upper(symbol) = '{}'",
        ["IBM"],
        lambda r, k: None not in (r["symbol"], r["volume"]) and r["volume"] > 3 and r["symbol"].upper() == k,
    ),
]


@pytest.mark.parametrize(("text", "literals", "keeps"), CASES, ids=[case[0] for case in CASES])
def test_a_comparison_of_an_expression_is_a_box(text: str, literals: list[str], keeps: Any) -> None:
    queries = vd.QuerySet(SCHEMA)
    queries.add_many(literals, [text.format(each) for each in literals])
    rows = [{name: ROWS[name][k] for name in ROWS} for k in range(200)]
    expected = {(row, each) for row in range(200) for each in literals if keeps(rows[row], each)}

    found = queries.match(TABLE).to_arrow().to_pylist()

    assert {(pair["row"], pair["query"]) for pair in found} == expected
    assert "no field" not in queries.explain()
    assert {each for each in literals if each in queries.match_one(rows[3])} == {q for r, q in expected if r == 3}
    assert queries.check(text.format(literals[0])) == []


def test_the_expression_is_computed_only_for_rows_in_a_narrow_range() -> None:
    queries = vd.QuerySet(SCHEMA)
    queries.add("narrow", "price = 3 AND lower(symbol) = 'ibm'")

    assert "lower" not in queries.explain()


def test_few_expressions_are_computed_however_many_there_are() -> None:
    queries = vd.QuerySet(SCHEMA)
    for k in range(3 * MAX_COMPUTED):
        queries.add(k, f"volume % {k + 2} = 1")

    assert queries.explain().count("axis") == MAX_COMPUTED
    assert queries.match_one({"volume": 7}) == [k for k in range(3 * MAX_COMPUTED) if 7 % (k + 2) == 1]


def test_saved_sets_and_changes_keep_computed_fields(tmp_path: Path) -> None:
    queries = vd.QuerySet(SCHEMA)
    queries.add_many(np.arange(100), [f"lower(symbol) = 'w{k}'" for k in range(100)])
    queries.match(TABLE)
    queries.save(tmp_path / "set")
    loaded = vd.QuerySet.load(tmp_path / "set")
    loaded.add(100, "lower(symbol) = 'ibm'")
    loaded.remove(3)

    assert loaded.match_one({"symbol": "IBM"}) == [100]
    assert loaded.match_one({"symbol": "W3"}) == []
    assert loaded.match_one({"symbol": "W4"}) == [4]
    assert "lower(symbol)" in loaded.explain()


def test_values_that_cannot_be_computed_are_null_and_counted_once_per_row() -> None:
    queries = vd.QuerySet(SCHEMA)
    queries.add_many([1, 2], ["100 / volume > 3", "100 / volume > 4"])
    hits = queries.match({"volume": np.array([0, 10, 25]), "symbol": ["a"] * 3})

    assert hits.to_arrow()["query"].to_pylist() == [1, 2, 1]
    assert hits.n_failed == 1


def test_border_monitoring_follows_computed_fields() -> None:
    queries = vd.QuerySet(SCHEMA)
    queries.add_many(["a", "b"], ["abs(price) < 2", "abs(price) < 5"])
    monitor = queries.border(key="symbol", time="ts")
    moments = pa.array([1, 2, 3], pa.timestamp("us", "UTC"))

    events = monitor.step(pa.table({"symbol": ["k"] * 3, "price": [1.0, -3.0, 9.0], "ts": moments})).to_pylist()

    assert [(each["query"], each["event"]) for each in events] == [
        ("a", "enter"),
        ("b", "enter"),
        ("a", "exit"),
        ("b", "exit"),
    ]


def test_why_shows_the_condition_and_not_the_computed_field(tmp_path: Path) -> None:
    queries = vd.QuerySet(SCHEMA)
    queries.add("a", "lower(symbol) = 'ibm'")

    assert queries.why("a", {"symbol": "IBM"}).holds
    assert "lower(symbol) = 'ibm'" in str(queries.why("a", {"symbol": "SAP"}))
