"""`vedette backtest`: texts, files and versions of a set over a file of rows."""

from __future__ import annotations

import csv
import datetime as dt
import io
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import vedette as vd

START = dt.datetime(2026, 3, 2, 9, tzinfo=dt.UTC)
PRICES = [41.0, 39.0, 38.0, 44.0, 36.0, 50.0]


@pytest.fixture
def history(tmp_path):
    times = [START + dt.timedelta(hours=12 * hour) for hour in range(len(PRICES))]
    file = tmp_path / "history.parquet"
    pq.write_table(pa.table({"symbol": ["IBM"] * len(PRICES), "price": PRICES, "ts": times}), file)
    return file


def rows_of(out):
    return list(csv.DictReader(io.StringIO(out)))


def test_a_text_is_tested_over_a_history(run, history):
    code, out, _ = run("backtest", "--rows", history, "--where", "price < 40", "--key", "symbol", "--time", "ts")

    assert code == 0
    wanted = {"query": "where", "matches": "3", "events": "4", "keys": "1", "notifications": "2"}
    assert rows_of(out) == [wanted]
    by_day = rows_of(run("backtest", "--rows", history, "--where", "price < 40", "--time", "ts", "--by", "day")[1])
    assert [(line["day"], line["matches"]) for line in by_day] == [
        ("2026-03-02", "1"), ("2026-03-03", "1"), ("2026-03-04", "1")
    ]  # fmt: skip


def test_a_change_of_a_text_or_of_a_file_is_compared(run, history, tmp_path):
    asked = ("backtest", "--rows", history, "--key", "symbol", "--time", "ts")
    (line,) = rows_of(run(*asked, "--where", "price < 40", "--against", "price < 45")[1])
    assert (line["change"], line["rows_only_after"], line["notifications_before"], line["notifications_after"]) == (
        "kept", "2", "2", "1"
    )  # fmt: skip
    for name, text in (("old", "price < 40"), ("new", "price > 45")):
        (tmp_path / f"{name}.csv").write_text(f"id,where\n{name},{text}\n")
    told = json.loads(run(*asked, "--queries", tmp_path / "old.csv", "--against", tmp_path / "new.csv", "--json")[1])
    assert {line["query"]: line["change"] for line in told["queries"]} == {"old": "removed", "new": "added"}


def test_two_versions_of_a_set_are_compared(run, history, tmp_path):
    registry = vd.Registry(f"sqlite:///{tmp_path}/alerts.db")
    registry.create("alerts", schema="symbol string, price double, ts timestamp")
    registry.add("alerts", "cheap", "price < 40")
    registry.replace("alerts", "cheap", "price < 45")
    asked = ("backtest", "--rows", history, "--time", "ts", "--set", "alerts", "--registry", registry.database.url)

    (line,) = rows_of(run(*asked, "--version", "1", "--against", "2")[1])
    (now,) = rows_of(run(*asked)[1])

    assert (line["matches_before"], line["matches_after"], now["matches"]) == ("3", "5", "5")


def test_events_that_are_held_back_are_no_notifications(run, history):
    asked = ("backtest", "--rows", history, "--key", "symbol", "--time", "ts", "--where", "price < 40")

    for option in (["--cooldown", "5 days"], ["--once"]):
        (line,) = rows_of(run(*asked, *option)[1])
        assert (line["matches"], line["notifications"]) == ("3", "1")


def test_the_picture_and_the_table_are_written(run, history, tmp_path):
    out, picture = tmp_path / "out.parquet", tmp_path / "out.png"

    code, _, _ = run(
        "backtest", "--rows", history, "--where", "price < 40", "--key", "symbol", "--time", "ts", "--by", "day-query",
        "-o", out, "--picture", picture,
    )  # fmt: skip

    assert code == 0
    assert pq.read_table(out).num_rows == 3
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--time", "ts"], "give the queries as one of: --where TEXT, --queries FILE, --set NAME"),
        (["--time", "price", "--where", "price < 1"], "--time is 'price', which is double"),
        (["--time", "ts", "--where", "price < 1", "--by", "hour"], "--by must be one of: query, day, day-query"),
        (["--time", "ts", "--where", "price < 1", "--version", "3"], "--version needs --set"),
        (["--time", "ts", "--where", "price < 1", "--dwell", "1 hour"], "dwell is an option of events"),
        (["--time", "ts", "--where", "prize < 1"], "unknown field 'prize'"),
    ],
)
def test_what_cannot_be_tested_is_refused(run, history, words, message):
    code, _, err = run("backtest", "--rows", history, *words)

    assert (code, message in err) == (2, True), err
