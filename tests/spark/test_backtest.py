"""Backtests in Spark: the same tables as in this process."""

from __future__ import annotations

import pyarrow.parquet as pq
import pytest
from backtesting.test_backtest import AFTER, BEFORE, as_table, make_history, make_set

import vedette as vd
from vedette import spark as vs


@pytest.fixture(scope="module")
def history(spark):
    rows = make_history(11, 400)
    return rows, spark.createDataFrame(as_table(rows)).repartition(3)


@pytest.mark.fast
def test_a_change_is_the_same_in_spark_and_here(history):
    rows, frame = history
    sets = {"queries": make_set(BEFORE), "against": make_set(AFTER)}
    options = {"time": "ts", "key": "symbol", "dwell": "2 hours"}

    here = vd.backtest(rows=as_table(rows), **sets, **options)
    there = vs.backtest(frame, **sets, **options)

    for name in ("by_day", "by_query", "by_day_and_query"):
        assert getattr(there, name).to_pylist() == getattr(here, name).to_pylist()
    assert there.totals == here.totals


def test_matches_need_no_key_and_now_is_the_time_of_each_row(history):
    rows, frame = history
    queries = vd.QuerySet("symbol string, price double, ts timestamp")
    queries.add_many([1, 2], ["hour(now()) < 6 AND price < 50", "price > 99"])

    there = vs.backtest(frame, queries, time="ts")

    assert there.by_query == vd.backtest(queries, as_table(rows), time="ts").by_query
    assert there.totals["matches"] > 0


def test_streams_and_other_times_are_refused(spark, history):
    with pytest.raises(vd.QueryError, match="needs a batch, not a stream"):
        vs.backtest(spark.readStream.format("rate").load(), make_set(BEFORE), time="timestamp")
    with pytest.raises(vd.QueryError, match="which is double; a backtest counts by day"):
        vs.backtest(history[1], make_set(BEFORE), time="price")


def test_the_command_writes_the_same_in_spark_and_here(run, spark, tmp_path):
    pq.write_table(as_table(make_history(12, 200)), tmp_path / "history.parquet")
    asked = ("backtest", "--rows", tmp_path / "history.parquet", "--where", "price < 40", "--against", "price < 50")
    options = ("--key", "symbol", "--time", "ts", "--by", "day-query", "-q")

    here = run(*asked, *options)

    assert here[0] == 0
    assert run(*asked, *options, "--spark") == here
