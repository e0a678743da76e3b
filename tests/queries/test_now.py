"""Queries that compare with now(): one moment per batch, found by an index."""

from __future__ import annotations

import datetime as dt
import pickle
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import vedette as vd

NOW = dt.datetime(2024, 2, 29, 12, tzinfo=dt.UTC)
SECONDS = [-86_400 * 40, -86_401, -86_400, -86_399, -301, -300, -299, -1, 0, 1, 300, 86_400]
ROWS = pa.table(
    {
        "ts": pa.array([*(NOW + dt.timedelta(seconds=each) for each in SECONDS), None], pa.timestamp("us", tz="UTC")),
        "x": pa.array(np.arange(len(SECONDS) + 1, dtype=np.float64)),
    }
)


def kept(text: str, now: dt.datetime = NOW, zone: str = "UTC") -> list[int | None]:
    """The seconds of the rows that a query keeps."""
    queries = vd.QuerySet("ts timestamp, x double", time_zone=zone)
    queries.add("q", text)
    found = queries.match(ROWS, now=now)
    rows = [row for row in range(len(SECONDS) + 1) if found.starts[row + 1] > found.starts[row]]
    return [([*SECONDS, None])[row] for row in rows]


@pytest.mark.parametrize(
    ("text", "test"),
    [
        ("ts > now() - INTERVAL 5 MINUTES", lambda s: s > -300),
        ("ts >= current_timestamp - INTERVAL 5 MINUTES", lambda s: s >= -300),
        ("now() - INTERVAL 5 MINUTES < ts", lambda s: s > -300),
        ("NOT ts > now() - INTERVAL 5 MINUTES", lambda s: s <= -300),
        ("ts BETWEEN now() - INTERVAL 5 MINUTES AND now()", lambda s: -300 <= s <= 0),
        ("ts + INTERVAL 5 MINUTES > now()", lambda s: s > -300),
        ("now() - ts < INTERVAL 5 MINUTES", lambda s: s > -300),
        ("ts - now() > INTERVAL -5 MINUTES", lambda s: s > -300),
        ("INTERVAL 5 MINUTES > now() - ts AND x < 100", lambda s: s > -300),
        ("ts = now()", lambda s: s == 0),
        ("ts <> current_timestamp()", lambda s: s != 0),
        ("ts > now() - INTERVAL 1 DAY", lambda s: s > -86_400),
        ("ts < now() - INTERVAL 1 MONTH", lambda s: s < -86_400 * 31),
        ("CAST(ts AS date) = current_date", lambda s: -43_200 <= s < 43_200),
        ("now() > TIMESTAMP '2024-02-29 11:59:59'", lambda s: True),
        ("now() < TIMESTAMP '2024-02-29 11:59:59'", lambda s: False),
        ("hour(now()) = 12 AND ts IS NOT NULL", lambda s: True),
    ],
)
def test_a_query_with_now_keeps_the_rows_that_it_should(text: str, test: Any) -> None:
    expected = [each for each in SECONDS if test(each)]

    assert [each for each in kept(text) if each is not None] == expected


def test_days_and_months_before_now_are_those_of_the_calendar() -> None:
    after_the_change = dt.datetime(2024, 3, 31, 12, tzinfo=dt.UTC)  # 14:00 in Berlin; a day before is 23 hours ago
    queries = vd.QuerySet("ts timestamp", time_zone="Europe/Berlin")
    queries.add("day", "ts > now() - INTERVAL 1 DAY")
    rows = {"ts": [after_the_change - dt.timedelta(hours=hours) for hours in (22, 23, 24)]}

    found = queries.match(rows, now=after_the_change)

    assert np.diff(found.starts).tolist() == [1, 0, 0]
    assert "every row" not in queries.explain(), "there is a box, wider than the condition"


def test_bounds_that_move_with_now_are_found_by_an_index() -> None:
    queries = vd.QuerySet("ts timestamp, x double")
    texts = [f"ts > now() - INTERVAL {k} SECONDS AND ts <= now() - INTERVAL {k - 1} SECONDS" for k in range(1, 2001)]
    queries.add_many(range(len(texts)), texts)
    rows = {"ts": [NOW - dt.timedelta(seconds=each + 0.5) for each in range(0, 2000, 7)]}

    found = queries.match(rows, now=NOW)

    assert found.positions.tolist() == list(range(0, 2000, 7))
    assert "ts - now()" in queries.explain()
    assert queries.fields == ["ts"]
    assert queries.uses_now


def test_saved_sets_keep_their_moving_bounds(tmp_path: Any) -> None:
    queries = vd.QuerySet("ts timestamp, x double")
    queries.add("recent", "ts > now() - INTERVAL 5 MINUTES")
    queries.add("today", "CAST(ts AS date) = current_date()")
    queries.save(tmp_path / "set")
    rows = {"ts": [NOW]}

    for copy in (vd.QuerySet.load(tmp_path / "set"), pickle.loads(pickle.dumps(queries))):
        assert sorted(copy.match(rows, now=NOW).positions.tolist()) == [0, 1]
        assert copy.match(rows, now=NOW + dt.timedelta(minutes=5)).positions.tolist() == [1]


def test_one_row_and_pieces_see_the_moment_that_is_given() -> None:
    queries = vd.QuerySet("ts timestamp, x double")
    queries.add("recent", "ts > now() - INTERVAL 5 MINUTES")

    assert queries.match_one({"ts": NOW}, now=NOW) == ["recent"]
    assert queries.match_one({"ts": NOW}) == [], "by default, now is the clock"
    assert sum(len(piece.positions) for piece in queries.match_batches({"ts": [NOW, NOW]}, 16, now=NOW)) == 2
    with pytest.raises(vd.RowError, match=r"now must be a datetime.datetime"):
        queries.match({"ts": [NOW]}, now=5)  # type: ignore[arg-type]


def test_extreme_times_are_before_or_after_every_bound() -> None:
    queries = vd.QuerySet("ts timestamp, x double")
    queries.add("recent", "ts > now() - INTERVAL 5 MINUTES")
    column = pa.array([-(2**63), 2**63 - 1, None], pa.int64()).cast(pa.timestamp("us", tz="UTC"))

    assert np.diff(queries.match(pa.table({"ts": column}), now=NOW).starts).tolist() == [0, 1, 0]


def test_now_is_refused_where_it_has_no_moment() -> None:
    pairs = vd.JoinQuerySet(left="ts timestamp, id bigint", right="ts timestamp, id bigint")
    with pytest.raises(vd.QueryError, match="over several streams; compare the times of the streams with each other"):
        pairs.add("q", "left.ts > now() AND left.id = right.id", within="10 seconds")
    taken = vd.QuerySet("`now()` double, ts timestamp")
    with pytest.raises(vd.QueryError, match="rename the field"):
        taken.add("q", "ts > now()")
