"""Times moved by constants as boxes, calculations of literals, and saved sets with functions of times."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import vedette as vd
from vedette.data.schema import Schema
from vedette.errors import QueryError
from vedette.language import compile_texts

pytestmark = pytest.mark.fast
SCHEMA = Schema.parse("d date, ts timestamp, x double, s string")
MICROS = 1_000_000
MIDNIGHT = 1_709_164_800 * MICROS  # 2024-02-29 00:00 UTC


def compiled(text: str, zone: str = "UTC") -> Any:
    return compile_texts([text], SCHEMA, zone)


@pytest.mark.parametrize(
    ("text", "field", "low", "high"),
    [
        ("ts - INTERVAL 1 HOUR >= TIMESTAMP '2024-02-29 00:00:00'", "ts", MIDNIGHT + 3600 * MICROS, None),
        ("TIMESTAMP '2024-02-29 00:00:00' <= ts - INTERVAL 1 HOUR", "ts", MIDNIGHT + 3600 * MICROS, None),
        ("ts - INTERVAL 1 DAY >= TIMESTAMP '2024-02-29 00:00:00'", "ts", MIDNIGHT + 86_400 * MICROS, None),
        ("ts >= TIMESTAMP '2024-02-29 00:00:00' + INTERVAL 1 HOUR", "ts", MIDNIGHT + 3600 * MICROS, None),
        ("ts <= TIMESTAMP '2024-02-29 00:00:00' - INTERVAL 1 MONTH", "ts", None, MIDNIGHT - 31 * 86_400 * MICROS),
        ("d >= DATE '2024-02-29' - 9", "d", 19_773, None),
        ("d - 3 <= DATE '2024-02-29'", "d", None, 19_785),
        ("d - INTERVAL 1 WEEK <= DATE '2024-02-29'", "d", None, 19_789),
        ("x <= 2e0 * 20", "x", None, 40.0),
    ],
)
def test_a_moved_time_is_a_range_of_its_field(text: str, field: str, low: Any, high: Any) -> None:
    found = compiled(text)

    assert not found.residuals
    (block,) = found.blocks
    ranges = block.ranges[field]
    if low is not None:
        assert ranges.lows.tolist() == [low]
    if high is not None:
        assert ranges.highs.tolist() == [high]


@pytest.mark.parametrize(
    ("text", "zone"),
    [
        ("ts - INTERVAL 1 DAY > TIMESTAMP '2024-03-31 00:00:00'", "Europe/Berlin"),
        ("ts + INTERVAL 2 MONTHS < TIMESTAMP '2024-03-31 00:00:00'", "UTC"),
        ("d + INTERVAL 1 MONTH = DATE '2024-02-29'", "UTC"),
    ],
)
def test_days_and_months_of_the_calendar_are_a_wider_range_and_a_residual(text: str, zone: str) -> None:
    found = compiled(text, zone)

    assert len(found.residuals) == 1
    assert len(found.blocks[0].ranges) == 1


def test_an_hour_is_exact_in_every_zone() -> None:
    assert not compiled("ts - INTERVAL 23 HOURS > TIMESTAMP '2024-03-31 00:00:00'", "Europe/Berlin").residuals


def test_sums_that_leave_their_type_match_nothing() -> None:
    queries = vd.QuerySet("d date, ts timestamp")
    texts = [
        "ts + INTERVAL 1 HOUR > TIMESTAMP '2024-01-01 00:00:00'",
        "d - 3 < DATE '2024-01-01'",
        "ts - INTERVAL 1 HOUR < ts",
    ]
    queries.add_many(["a", "b", "c"], texts)
    import pyarrow as pa

    ts = pa.array([2**63 - 1, -(2**63), 0], pa.int64()).cast(pa.timestamp("us", tz="UTC"))
    d = pa.array([2**31 - 1, -(2**31), -(2**31) + 3], pa.int32()).cast(pa.date32())
    found = queries.match(pa.table({"d": d, "ts": ts}))

    by_row = [sorted(found.positions[found.starts[row] : found.starts[row + 1]].tolist()) for row in range(3)]
    assert by_row == [[2], [], [1, 2]]


def test_texts_that_differ_in_their_intervals_share_a_shape() -> None:
    texts = [f"ts > TIMESTAMP '2024-01-01 00:00:00' - INTERVAL {n} HOURS" for n in range(4)]

    found = compile_texts(texts, SCHEMA)

    assert not found.residuals
    assert [len(block) for block in found.blocks] == [4]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "ts > INTERVAL 5 MINUTES",
            "cannot compare field 'ts' (timestamp) with a literal of type interval day to second",
        ),
        ("d + x > d", "a date takes days as an int or as an interval"),
        ("s + INTERVAL 1 DAY > ts", "cast the string to a date"),
        ("INTERVAL x DAYS > INTERVAL 1 DAY", "INTERVAL takes literals"),
        ("ts > d - INTERVAL '1 25:00:00' DAY TO SECOND", "25 is too large for HOUR here"),
        ("INTERVAL 1.5 HOURS > INTERVAL 1 DAY", "only seconds have a fraction"),
        ("extract(EPOCH FROM ts) > 0", "'EPOCH' is not a part of field 'ts' (timestamp)"),
        ("date_format(ts, s) = 'a'", "takes its pattern as a literal"),
        ("date_format(ts, 'yyyy G') = 'a'", "the letter 'G' is not supported"),
        ("to_date(s, 'yyyy EEE') = d", "the letter 'E' is not supported"),
        ("to_date(s, 'dM') = d", "'d' and 'M' need a separator between them"),
        ("dateadd(EON, 1, ts) > ts", "takes a unit first: microsecond"),
        ("from_utc_timestamp(ts, 'Mars/Base') > ts", "'Mars/Base' is not a time zone"),
        ("hour(x) = 1", "hour takes a date or timestamp here, not field 'x' (double)"),
        ("CAST(ts - ts AS string) = 'a'", "a cast of interval day to second to string is not supported"),
    ],
)
def test_what_is_not_supported_is_refused_with_its_name(text: str, words: str) -> None:
    with pytest.raises(QueryError) as caught:
        compiled(text)

    assert words in str(caught.value)


def test_saved_sets_keep_functions_of_times(tmp_path: Any) -> None:
    queries = vd.QuerySet("d date, ts timestamp, s string", time_zone="Europe/Berlin")
    texts = {
        "shift": "ts + INTERVAL 1 DAY > to_timestamp(s, 'dd.MM.yyyy HH:mm')",
        "text": "date_format(ts, 'EEE yyyy') = 'Thu 2024'",
        "units": "timestampdiff(DAY, d, ts) = 0 AND extract(SECOND FROM ts) < 1",
        "age": "ts - d < INTERVAL 13 HOURS * 2",
    }
    queries.add_many(list(texts), list(texts.values()))
    rows = {"d": [dt.date(2024, 2, 29)], "ts": [dt.datetime(2024, 2, 29, 11, tzinfo=dt.UTC)], "s": ["01.03.2024 11:59"]}
    queries.save(tmp_path / "set")

    loaded = vd.QuerySet.load(tmp_path / "set")

    assert (
        sorted(loaded.match(rows).positions.tolist()) == sorted(queries.match(rows).positions.tolist()) == [0, 1, 2, 3]
    )


def test_offsets_that_are_asked_for_once_per_day_are_those_of_each_second() -> None:
    from vedette.language.times import Zone

    source = np.random.default_rng(3)
    for name in ("Europe/Berlin", "America/New_York", "Pacific/Apia", "Africa/Casablanca", "America/Sao_Paulo"):
        zone = Zone(name)
        changes = [
            instant
            for instant in range(-(10**9), 2 * 10**9, 43_200)
            if zone.offset(instant * MICROS) != zone.offset((instant + 43_200) * MICROS)
        ]
        instants = np.array(changes, np.int64).repeat(20) + source.integers(-90_000, 90_000, 20 * len(changes))

        assert zone.offsets(instants * MICROS).tolist() == [zone.offset(int(each) * MICROS) for each in instants]


def test_a_truncated_timestamp_that_leaves_its_type_fails() -> None:
    queries = vd.QuerySet("ts timestamp")
    queries.add_many([1, 2, 3], [f"date_trunc('{unit}', ts) IS NOT NULL" for unit in ("WEEK", "SECOND", "DAY")])
    queries.add(4, "months_between(ts, ts) = 0")
    rows = {"ts": np.array([-(2**63), 0], np.int64).view("datetime64[us]")}

    assert queries.match({"ts": rows["ts"][1:]}).ids.to_pylist() == [1, 2, 3, 4]
    assert queries.match({"ts": pa.array([-(2**63)], pa.int64()).cast(pa.timestamp("us"))}).n_failed == 4
