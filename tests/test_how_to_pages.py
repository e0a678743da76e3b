"""The examples of docs/how-to and docs/sql.md are run, and do what their comments say."""

from __future__ import annotations

import datetime as dt
import json
import time
from pathlib import Path
from typing import Any

import pytest
from docs_pages import blocks, run_command, run_python

from vedette.delivery.signing import Secret, headers


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_the_alerts_page_matches_and_emits_what_it_says():
    names = run_python("docs/how-to/alerts.md")

    assert names["alerts"].match_one({"symbol": "IBM", "price": 39.5, "volume": 100}) == ["cheap-ibm"]
    assert names["hits"].to_pylist() == [{"row": 0, "query": "cheap-ibm"}, {"row": 1, "query": "odd lot"}]
    assert names["found"].starts.tolist() == [0, 1, 3, 4]
    (event,) = names["events"].to_pylist()
    assert (event["key"], event["query"], event["event"], event["time"].minute) == ("IBM", "cheap-ibm", "enter", 1)


@pytest.mark.full
def test_the_alerts_page_runs_in_spark(spark):
    names = run_python("docs/how-to/alerts.md", spark=True)
    expected = [("IBM", "cheap-ibm"), ("SAP", "odd lot")]

    assert sorted((row.symbol, row.query) for row in names["pairs"].collect()) == expected
    assert sorted((row.symbol, *row.queries) for row in names["lists"].collect()) == expected
    assert sorted((row.key, row.query) for row in names["changes"].collect()) == expected
    assert [(row.query, row.version) for row in names["followed"].collect()] == [("cheap-ibm", 1)]
    names["registry"].close()


def test_the_backtest_page_counts_and_compares():
    names = run_python("docs/how-to/backtest.md")

    assert str(names["result"]).startswith("20,000 rows, 21 days: ")
    lines = {line["query"]: line for line in names["change"].by_query.to_pylist()}
    assert {query: line["change"] for query, line in lines.items()} == {
        "cheap": "kept", "cheap-ibm": "kept", "expensive": "removed", "very expensive": "added"
    }  # fmt: skip
    assert lines["cheap"]["rows_only_after"] > lines["cheap"]["rows_only_before"] == 0
    assert Path("change.png").stat().st_size > 10_000
    (shell,) = [block.code for block in blocks("docs/how-to/backtest.md") if block.language == "console"]
    printed = [run_command(line.removeprefix("$ "), {}) for line in shell.splitlines()]
    assert [len(text.splitlines()) for text in printed[:2]] == [2, 22]
    assert json.loads(printed[2])["change"]
    names["registry"].close()


@pytest.mark.full
def test_the_backtest_page_runs_in_spark(spark):
    names = run_python("docs/how-to/backtest.md", spark=True)

    assert names["same"].by_query == names["change"].by_query
    names["registry"].close()


def test_the_geofences_page_finds_the_zones_it_says():
    names = run_python("docs/how-to/geofences.md")

    assert names["zones"].match_one({"truck": "A", "lon": 4.3, "lat": 51.3}) == ["harbour"]
    assert names["zones"].match_one({"truck": "A", "lon": 3.75, "lat": 51.05}) == ["market"]
    (event,) = names["events"].to_pylist()
    assert (event["query"], event["event"]) == ("harbour", "enter")
    assert event["time"].replace(tzinfo=dt.UTC) == dt.datetime(2026, 3, 2, 14, 3, tzinfo=dt.UTC)


def test_the_joins_page_finds_the_pairs_it_says():
    names = run_python("docs/how-to/joins.md")

    assert names["found"].to_pylist() == [{"query": "spread", "left": 0, "right": 0}]
    assert names["changes"].to_pylist() == [{"sign": 1, "query": "above", "left": "r", "right": "s"}]


@pytest.mark.full
def test_the_joins_page_runs_in_spark(spark):
    names = run_python("docs/how-to/joins.md", spark=True)

    assert [tuple(row) for row in names["spreads"].collect()] == [("spread", "l1", "r1")]
    assert [tuple(row) for row in names["held"].collect()] == [(1, "above", "l1", "r1")]


def test_the_moving_objects_page_predicts_what_it_says():
    names = run_python("docs/how-to/moving-objects.md")

    assert names["meetings"].to_pylist() == [{"sign": 1, "a": "Ada", "b": 7, "start": 14.0, "end": 20.0}]
    assert names["ahead"].to_pylist() == [{"a": "Ada", "b": 7}]
    assert {"sign": -1, "a": "Ada", "b": 7, "start": 14.0, "end": 20.0} in names["changes"].to_pylist()
    (event,) = names["events"].to_pylist()
    assert (event["a"], event["event"], event["b"], event["time"]) == (1, "enter", "harbour", 10.0)


@pytest.mark.full
def test_the_moving_objects_page_runs_in_spark(spark):
    names = run_python("docs/how-to/moving-objects.md", spark=True)

    assert [tuple(row) for row in names["intervals"].collect()] == [(1, "Ada", "7", 14.0, 20.0)]
    assert [tuple(row) for row in names["now"].collect()] == [("Ada", "7")]


def test_the_kafka_page_has_a_valid_pipeline_file(tmp_path):
    from vedette.pipeline.file import ReadFile

    (text,) = [block.code for block in blocks("docs/how-to/kafka.md") if block.language == "toml"]
    (tmp_path / "alerts.toml").write_text(text)

    read = ReadFile.read(tmp_path / "alerts.toml", {"BROKER": "localhost:9092", "PASSWORD": "secret"})

    assert read.plan.streams[""].format == "kafka"


@pytest.mark.full
def test_the_sql_page_returns_what_it_says(spark):
    names = run_python("docs/sql.md", spark=True)

    assert names["functions"] == ["vedette_match_alerts", "vedette_queries"]
    assert [tuple(row) for row in names["kept"].collect()] == [(1, "IBM", 39.5, "cheap-ibm")]
    assert [tuple(row) for row in names["low"].collect()] == [(9.5, "low", 1)]
    pairs = {(row.symbol, row.price, row.query, row.version) for row in names["pairs"].collect()}
    assert pairs == {("IBM", 39.5, "cheap-ibm", 3)}  # of the last version: the page has added a query since
    assert sorted((row.id, *row.queries) for row in names["lists"].collect()) == [(1, "cheap-ibm"), (2,), (3,)]
    queries = {row.id: (row["where"], row.metadata) for row in names["queries"].collect()}
    assert queries["cheap-sap"] == ('symbol = "SAP" AND price < 9', '{"owner": "ann"}')
    assert [row.state for row in names["history"].where("id = 'cheap-sap'").collect()] == ["replaced", "active"]
    assert [(row.version, row.n_added) for row in names["versions"].collect()] == [(0, 0), (1, 1), (2, 1), (3, 1)]
    names["registry"].close()


def test_the_webhooks_page_verifies_what_is_signed():
    (code,) = (block.code for block in blocks("docs/how-to/webhooks.md") if "def verify" in block.code)
    (derived,) = (block.code for block in blocks("docs/how-to/webhooks.md") if block.code.startswith("key = "))
    names: dict[str, Any] = {}
    exec(code + derived, names)
    secret, body = Secret(b"a secret of enough length"), b'{"group":null,"events":[]}'
    signed = headers(secret, "msg_1", int(time.time()), body)

    assert names["verify"](secret.key, signed, body)["events"] == []
    assert names["key"] == Secret(b"the secret").of_group("ann").key
    for seconds, key in ((time.time(), b"another secret"), (time.time() - 600, secret.key)):
        with pytest.raises(ValueError, match=r"wrong signature|too old"):
            names["verify"](key, headers(secret, "msg_1", int(seconds), body), body)
