"""The worker of a match that has the moment of the batch as its last column, without Spark."""

from __future__ import annotations

import datetime as dt
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

import vedette as vd
from vedette.data.moments import NOW
from vedette.spark.workers import match

pytestmark = pytest.mark.fast
MOMENT = dt.datetime(2024, 2, 29, 12, tzinfo=dt.UTC)


def batch(ages: list[int], now: dt.datetime) -> pa.RecordBatch:
    times = pa.array([MOMENT - dt.timedelta(minutes=age) for age in ages], pa.timestamp("us", tz="Europe/Berlin"))
    moments = pa.array([now] * len(ages), pa.timestamp("us", tz="Europe/Berlin"))
    return pa.RecordBatch.from_arrays([pa.array(ages), times, moments], names=["age", "ts", "_now"])


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> None:
    queries = vd.QuerySet("ts timestamp")
    queries.add("recent", "ts > now() - INTERVAL 5 MINUTES")
    monkeypatch.setattr(match, "open_queries", lambda _: SimpleNamespace(queries=queries, version=None))


def test_each_batch_is_matched_at_its_moment_and_without_its_column(opened: None) -> None:
    batches = iter([batch([1, 4, 6], MOMENT), batch([], MOMENT), batch([1, 4, 6], MOMENT + dt.timedelta(minutes=3))])

    parts = list(match.match_batches({}, {"ts": 1, NOW: 2}, "pairs", 1 << 20, False, batches))

    assert [name for part in parts for name in part.schema.names] == ["age", "ts", "query"] * len(parts)
    assert [age for part in parts for age in part.column("age").to_pylist()] == [1, 4, 1]


def test_the_report_has_the_columns_of_the_answer(opened: None) -> None:
    batches = iter([batch([1, 6], MOMENT)])
    parts = list(match.match_batches({}, {"ts": 1, NOW: 2}, "list", 1 << 20, True, batches))

    assert all(part.num_columns == 4 for part in parts), "age, ts, queries and the report"
    assert [len(row) for row in parts[0].column("queries").to_pylist()] == [1, 0]


def test_a_set_with_now_is_refused_where_there_is_no_moment(opened: None) -> None:
    rows: Any = iter([batch([1], MOMENT).select(range(2))])

    with pytest.raises(vd.PipelineError, match=r"now\(\)"):
        list(match.match_batches({}, {"ts": 1}, "pairs", 1 << 20, False, rows))
