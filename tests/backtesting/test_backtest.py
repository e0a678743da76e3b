"""Backtests: tables by day and by query, compared with counts in plain Python."""

from __future__ import annotations

import datetime as dt
import random
from collections import Counter
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

import vedette as vd

SCHEMA = "symbol string, price double, ts timestamp"
START = dt.datetime(2026, 3, 27, 18, tzinfo=dt.UTC)
MEASURES = ("matches", "events", "keys", "notifications")
Row = dict[str, Any]
# By query: its text and the same in Python.
CHEAP = ("price < 40", lambda row: row["price"] is not None and row["price"] < 40)
LESS_CHEAP = ("price < 45", lambda row: row["price"] is not None and row["price"] < 45)
HIGH = ("price > 90 AND symbol <> 'B'", lambda row: (row["price"] or 0) > 90 and row["symbol"] != "B")
NEVER = ("price > 1000", lambda row: False)
BEFORE = {"cheap": CHEAP, "high": HIGH, "never": NEVER}
AFTER = {"cheap": LESS_CHEAP, "never": NEVER, "new": ("symbol = 'A'", lambda row: row["symbol"] == "A")}


def make_history(seed: int, n: int = 300) -> list[Row]:
    source = random.Random(seed)
    times = sorted(START + dt.timedelta(minutes=source.randrange(6 * 1440)) for _ in range(n))
    return [
        {"symbol": source.choice("ABC"), "price": source.choice([None, source.uniform(0, 100)]), "ts": time}
        for time in times
    ]


def as_table(rows: list[Row]) -> pa.Table:
    types = pa.schema([("symbol", pa.string()), ("price", pa.float64()), ("ts", pa.timestamp("us", "UTC"))])
    return pa.Table.from_pylist(rows, types)


def make_set(queries: dict[str, Any], time_zone: str = "UTC") -> vd.QuerySet:
    made = vd.QuerySet(SCHEMA, time_zone=time_zone)
    made.add_many(list(queries), [text for text, _ in queries.values()])
    return made


def count_plainly(rows: list[Row], queries: dict[str, Any], zone: str) -> tuple[Counter[Any], Counter[Any], Any, Any]:
    """Matches and events by (day, query), and the notified (day, query, key)."""
    matches, events, notices, keys = Counter(), Counter(), Counter(), set()
    inside: set[Any] = set()
    for row in rows:
        day = row["ts"].astimezone(ZoneInfo(zone)).date()
        for query, (_, test) in queries.items():
            pair = (row["symbol"], query)
            matches[day, query] += test(row)
            if test(row) != (pair in inside):
                events[day, query] += 1
                if test(row):
                    notices[day, query] += 1
                    keys.add((day, query, row["symbol"]))
                inside ^= {pair}
    return matches, events, notices, keys


@pytest.mark.parametrize(("seed", "zone"), [(1, "UTC"), (2, "America/New_York"), (3, "Asia/Kolkata")])
def test_the_tables_are_those_of_plain_counts(seed, zone):
    rows = make_history(seed)

    result = vd.backtest(make_set(BEFORE, zone), as_table(rows), time="ts", key="symbol")

    matches, events, notices, keys = count_plainly(rows, BEFORE, zone)
    for line in result.by_day_and_query.to_pylist():
        place = (line["day"], line["query"])
        wanted = [matches[place], events[place], len([key for key in keys if key[:2] == place]), notices[place]]
        assert [line[name] for name in MEASURES] == wanted
    for line in result.by_query.to_pylist():
        query = line["query"]
        assert line["matches"] == sum(n for (_, name), n in matches.items() if name == query)
        assert line["events"] == sum(n for (_, name), n in events.items() if name == query)
        assert line["keys"] == len({key for _, name, key in keys if name == query})
    assert result.by_query["query"].to_pylist() == sorted(BEFORE)
    days = Counter(row["ts"].astimezone(ZoneInfo(zone)).date() for row in rows)
    assert [(line["day"], line["rows"]) for line in result.by_day.to_pylist()] == sorted(days.items())
    assert result.totals["keys"] == len({key for _, _, key in keys})
    assert result.totals["matched_rows"] == sum(any(test(row) for _, test in BEFORE.values()) for row in rows)
    assert str(result).startswith("300 rows, 7 days: " if zone != "UTC" else "300 rows, ")


def test_a_change_shows_what_it_adds_and_takes_away():
    rows = make_history(4)

    result = vd.backtest(make_set(BEFORE), as_table(rows), time="ts", key="symbol", against=make_set(AFTER))

    lines = {line["query"]: line for line in result.by_query.to_pylist()}
    assert {query: line["change"] for query, line in lines.items()} == {
        "cheap": "kept", "high": "removed", "never": "kept", "new": "added"
    }  # fmt: skip
    nothing = ("", lambda row: False)
    sides = [count_plainly(rows, each, "UTC") for each in (BEFORE, AFTER)]
    for query, line in lines.items():
        old, new = (each.get(query, nothing)[1] for each in (BEFORE, AFTER))
        assert line["rows_only_before"] == sum(old(row) and not new(row) for row in rows)
        assert line["rows_only_after"] == sum(new(row) and not old(row) for row in rows)
        keys = [{key for _, name, key in side[3] if name == query} for side in sides]
        assert (line["keys_only_before"], line["keys_only_after"]) == (len(keys[0] - keys[1]), len(keys[1] - keys[0]))
        for name, (matches, events, notices, _) in zip(("before", "after"), sides, strict=True):
            for measure, counts in (("matches", matches), ("events", events), ("notifications", notices)):
                assert line[f"{measure}_{name}"] == sum(n for (_, each), n in counts.items() if each == query)
    assert result.is_change
    assert result.totals["keys_before"] == 3


@pytest.mark.parametrize("n_each", [1, 7, 100])
def test_other_batches_give_the_same_tables(n_each):
    table = as_table(make_history(5, 120))
    sets = {"queries": make_set(BEFORE), "against": make_set(AFTER)}
    whole = vd.backtest(rows=table, time="ts", key="symbol", dwell="3 hours", **sets)

    pieces = (table.slice(start, n_each) for start in range(0, len(table), n_each))
    cut = vd.backtest(rows=pieces, time="ts", key="symbol", dwell="3 hours", **sets)

    assert (cut.by_day, cut.by_query, cut.by_day_and_query) == (whole.by_day, whole.by_query, whole.by_day_and_query)
    assert cut.totals == whole.totals


def test_answers_above_the_limit_are_counted_in_pieces(monkeypatch):
    table = as_table(make_history(6))
    whole = vd.backtest(make_set(BEFORE), table, time="ts", against=make_set(AFTER))

    monkeypatch.setattr("vedette.backtesting.counts.max_answer_bytes", lambda: 64)
    cut = vd.backtest(make_set(BEFORE), table, time="ts", against=make_set(AFTER))

    assert cut.by_query == whole.by_query


def test_now_is_the_time_of_each_row():
    queries = vd.QuerySet("ordered timestamp, ts timestamp")
    queries.add("late", "ordered < now() - INTERVAL 2 DAYS")
    queries.add("morning", "hour(now()) < 12")
    rows = {"ts": [START + dt.timedelta(days=day) for day in range(5)], "ordered": [START] * 5}

    result = vd.backtest(queries, rows, time="ts")

    assert [line["matches"] for line in result.by_query.to_pylist()] == [2, 0]
    assert result.totals["events"] == 0


def test_ids_may_be_integers_and_queries_may_have_been_removed():
    queries = vd.QuerySet(SCHEMA)
    queries.add_many([3, 1, 2], ["price < 40", "price > 90", "price < 1"])
    queries.replace(3, "price > 90")
    queries.remove(2)
    after = vd.QuerySet(SCHEMA)
    after.add(3, "price > 90")

    result = vd.backtest(queries, as_table(make_history(7)), time="ts", against=after)

    assert result.by_query["query"].to_pylist() == [1, 3]
    assert result.by_query["change"].to_pylist() == ["removed", "kept"]
    assert result.by_query["rows_only_before"].to_pylist() == [result.by_query["matches_before"][0].as_py(), 0]


def test_empty_histories_and_sets_have_empty_tables():
    nothing = as_table([])

    result = vd.backtest(make_set(BEFORE), nothing, time="ts", key="symbol")

    assert (result.by_day.num_rows, result.by_query.num_rows, result.totals["rows"]) == (0, 3, 0)
    assert vd.backtest(vd.QuerySet(SCHEMA), as_table(make_history(8)), time="ts").totals["matches"] == 0


def test_the_result_is_plain_and_has_a_picture():
    result = vd.backtest(make_set(BEFORE), as_table(make_history(9)), time="ts", key="symbol", against=make_set(AFTER))

    plain = result.to_dict(2)

    assert plain["change"]
    assert len(plain["queries"]) == 2
    assert plain["days"][0]["day"] == "2026-03-27"
    for each in (result, vd.backtest(make_set(BEFORE), as_table(make_history(9)), time="ts")):
        assert each.picture().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"time": "price"}, vd.QueryError, "which is double; a backtest counts by day"),
        ({"time": "when"}, vd.RowError, "the rows have no column 'when' for the time"),
        ({"time": "ts", "dwell": "1 hour"}, vd.QueryError, "dwell is an option of events, which need a key"),
        ({"time": "ts", "key": "price"}, vd.QueryError, "a key must be a string or a whole number"),
        ({"time": "ts", "against": vd.QuerySet(SCHEMA, time_zone="Asia/Tokyo")}, vd.QueryError, "is in time zone"),
    ],
)
def test_a_backtest_without_what_it_needs_is_refused(options, error, words):
    with pytest.raises(error, match=words):
        vd.backtest(make_set(BEFORE), as_table(make_history(1)), **options)


def test_a_set_with_ids_of_another_type_is_refused():
    numbers = vd.QuerySet(SCHEMA)
    numbers.add(1, "price < 3")

    with pytest.raises(vd.QueryError, match="ids of another type"):
        vd.backtest(make_set(BEFORE), as_table(make_history(1)), time="ts", against=numbers)
