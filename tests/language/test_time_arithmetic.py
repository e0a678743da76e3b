"""Intervals, and arithmetic of dates and timestamps, as Spark does it."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from language.spark_values import differences

from vedette.data.schema import Schema

SCHEMA = Schema.parse("d date, e date, t timestamp, u timestamp, j bigint, x double, m decimal(10,2), s string")
ZONES = ("America/New_York", "Europe/Berlin")


def moment(*parts: int) -> dt.datetime:
    return dt.datetime(*parts, tzinfo=dt.UTC)  # type: ignore[misc, arg-type]


MOMENTS = [
    None,
    *(moment(2021, 3, 13, 7, 30), moment(2021, 3, 14, 7), moment(2021, 3, 14, 6, 59, 59, 999999)),  # New York
    *(moment(2021, 11, 6, 5, 30), moment(2021, 11, 7, 5, 30), moment(2021, 11, 7, 6, 30), moment(2021, 11, 8, 6, 30)),
    *(moment(2021, 3, 27, 1, 30), moment(2021, 3, 28, 1), moment(2021, 10, 30, 0, 30), moment(2021, 10, 31, 0, 30)),
    *(moment(2021, 10, 31, 1, 30), moment(1970, 1, 1), moment(1969, 12, 31, 23, 59, 59, 999999), moment(2020, 2, 29)),
    *(moment(2, 1, 1), moment(9998, 12, 31, 23, 59, 59, 999999), moment(2020, 1, 31, 12), moment(1900, 1, 1)),
    *(moment(1893, 3, 31, 23, 30), moment(2021, 4, 14, 6, 30), moment(2050, 7, 1, 12), moment(1945, 5, 24, 1)),
]
DAYS = [None if each is None else each.date() for each in MOMENTS]
DAYS[7:9] = [dt.date(1, 1, 1), dt.date(9999, 12, 31)]
ROWS: dict[str, list[Any]] = {
    "d": DAYS,
    "e": DAYS[::-1],
    "t": MOMENTS,
    "u": MOMENTS[::-1],
    "j": [(None, 0, 1, -1, 3, -7, 1000, 2**31 - 1, -(2**31), 2**63 - 1)[k % 10] for k in range(len(MOMENTS))],
    "x": [(None, 0.0, 1.5, -0.5, float("nan"), 1e18, float("inf"), 0.1, -2.5)[k % 9] for k in range(len(MOMENTS))],
    "m": [None if k % 7 == 0 else f"{(k - 9) / 4:.2f}" for k in range(len(MOMENTS))],
    "s": [("2020-01-31", "1", "", None)[k % 4] for k in range(len(MOMENTS))],
}
ROWS["m"] = [None if each is None else __import__("decimal").Decimal(each) for each in ROWS["m"]]

LITERALS = [
    *("5 MINUTES", "'5' MINUTE", "'5 minutes'", "-5 MINUTES", "- 5 MINUTES", "+5 MINUTES", "-'5' MINUTE"),
    *("'-5' MINUTE", "-'-5' MINUTE", "-'+5' MINUTE", "1 DAY 2 HOURS", "1 DAY -2 HOURS", "1 MONTH 2 DAYS"),
    *("1 YEAR 2 MONTHS", "1 WEEK", "1.5 SECONDS", "1.5 MINUTES", "1. SECONDS", ".5 SECONDS", "'1.123456789' SECONDS"),
    *("'1.1234567899' SECONDS", "'-1.1234567' SECONDS", "' 5 ' MINUTE", "'- 5' MINUTE", "'' MINUTE", "'5x' MINUTE"),
    *("'1 2' MINUTE", "5L MINUTES", "5e0 MINUTES", "5 NANOSECONDS", "5 MILLISECONDS", "5 MICROSECONDS", "1 QUARTER"),
    *("1 DAY 1 DAY", "2 HOURS 1 DAY", "'1 02:03:04' DAY TO SECOND", "'1 02:03:04.123456789' DAY TO SECOND"),
    *("'1 2:3:4' DAY TO SECOND", "'1 24:3:4' DAY TO SECOND", "'1 23:60:4' DAY TO SECOND"),
    *("'-1 02:03:04' DAY TO SECOND", "-'1 02:03:04' DAY TO SECOND", "-'-1 02:03:04' DAY TO SECOND"),
    *("'+1 02:03:04' DAY TO SECOND", "'|1 02:03:04' DAY TO SECOND", "' 1 02:03:04 ' DAY TO SECOND"),
    *("'1  02:03:04' DAY TO SECOND", "'1 02' DAY TO HOUR", "'1 02:03' DAY TO MINUTE", "'25:03' HOUR TO MINUTE"),
    *("'25:03:04.5' HOUR TO SECOND", "'61:04.5' MINUTE TO SECOND", "'61:4' MINUTE TO SECOND", "'1-2' YEAR TO MONTH"),
    *("'1-12' YEAR TO MONTH", "'-1-2' YEAR TO MONTH", "'1-2' YEARS TO MONTHS", "'1 02:03:04' DAYS TO SECONDS"),
    *("1 DAY TO SECOND", "'1' DAY TO DAY", "'106751991' DAY", "'106751992' DAY", "'5' DAY TO SECOND", "'1-2' DAY"),
    *("'106751991 04:00:54.775807' DAY TO SECOND", "'-106751991 04:00:54.775808' DAY TO SECOND"),
    *("'106751991 04:00:54.775808' DAY TO SECOND", "'178956970-7' YEAR TO MONTH", "'178956970-8' YEAR TO MONTH"),
    *("9223372036854775807 MICROSECONDS", "9223372036854775808 MICROSECONDS", "2147483648 DAYS", "2147483647 DAYS"),
    *("2147483648 MONTHS", "99999999999 HOURS", "''", "5", "'5'", "'1 day 2 hours'", "'1 day -2 hours'", "'1day'"),
    *("'interval 3 days'", "'3 days 1 month'", "'1 DAYS  2 Hour '", "'1.5 seconds'", "'.5 second'", "'1. second'"),
    *("'. second'", "'+ 1 second'", "'1 week 1 year'", "'2 years'", "'1 second,'", "' 1 day'", "'1 da'", "'1 dayss'"),
    *("'2562047788:00' HOUR TO MINUTE", "'2562047789:00' HOUR TO MINUTE", "'1:2:3' MINUTE TO SECOND"),
    *("'1 millisecond 2 microseconds'", "-1 MONTH 13 MONTHS", "'1' YEAR '2' MONTH", "1 day 2 hour 3 minute 4 second"),
]
INTERVALS = [
    *("INTERVAL 1 HOUR", "INTERVAL 23 HOURS", "INTERVAL 24 HOURS", "INTERVAL 1 DAY", "INTERVAL 2 DAYS 30 MINUTES"),
    *("INTERVAL -90 MINUTES", "INTERVAL '0.000001' SECOND", "INTERVAL 106751990 DAYS", "INTERVAL 0 DAYS"),
    *("INTERVAL -47 HOURS", "INTERVAL 1 MONTH", "INTERVAL -13 MONTHS", "INTERVAL 0 MONTHS", "INTERVAL 10000 YEARS"),
]
OTHERS = ["3", "-3", "2147483647", "CAST(j % 4000 AS int)", "j", "x", "m", "s", "'3'", "'2020-01-01'", "NULL", "d", "t"]
NUMBERS = ["2", "-1", "0", "7", "1.5", "0.0000001", "1.5D", "x", "j", "m", "'2'", "NULL", "9223372036854775807"]


def arithmetic() -> list[str]:
    """Operators with operands of all types."""
    texts = []
    for time in ("t", "d", "TIMESTAMP '2021-03-13 02:30:00'", "DATE '2020-01-31'"):
        texts += [f"{time} {sign} {interval}" for sign in "+-" for interval in INTERVALS]
        texts += [f"{time} {sign} {other}" for sign in "+-" for other in OTHERS]
        texts += [f"{other} + {time}" for other in (*INTERVALS[:3], *OTHERS)]
        texts += [f"{other} - {time}" for other in (INTERVALS[0], *OTHERS)]
    for interval in ("INTERVAL 1 DAY", "INTERVAL -3 MONTHS", "(t - u)", "(d - e)"):
        texts += [f"{interval} * {number}" for number in NUMBERS] + [f"{number} * {interval}" for number in NUMBERS]
        texts += [f"{interval} / {number}" for number in NUMBERS] + [f"2 / {interval}", f"{interval} % 2"]
        texts += [f"{interval} {op} {other}" for op in ("+", "-", "div", "<", "=") for other in INTERVALS[::3]]
        texts += [f"-{interval}", f"abs({interval})", f"{interval} > NULL", f"{interval} > '1'", f"{interval} > 1"]
        texts += [f"{interval} + 3", f"{interval} - NULL", f"NULL - {interval}", f"NULL + {interval}"]
        texts += [f"d + {interval}", f"t - {interval}", f"coalesce({interval}, INTERVAL 1 HOUR)"]
        texts += [
            f"if(j > 0, {interval}, INTERVAL 1 DAY)",
            f"{interval} IS NULL",
            f"nullif({interval}, INTERVAL 1 DAY)",
        ]
        texts += [f"least({interval}, INTERVAL 1 HOUR)", f"{interval} IN (INTERVAL 24 HOURS, INTERVAL 1 HOUR)"]
        texts += [f"{interval} AND TRUE", f"{interval} || 'a' = 'b' AND FALSE", f"length({interval}) > 0 AND FALSE"]
    texts += ["try_add(d, 2147483647)", "try_subtract(d, 2147483647)", "try_divide(INTERVAL 1 DAY, 0)"]
    texts += [
        "try_multiply(INTERVAL 1 DAY, j)",
        "try_add(t, INTERVAL 1 DAY)",
        "try_subtract(t, u)",
        "mod(INTERVAL 1 DAY, 3)",
    ]
    texts += ["d + INTERVAL 1 DAY * 2", "d + (e - d)", "t - INTERVAL 1 DAY - INTERVAL 1 HOUR", "t + (u - t)"]
    return texts


@pytest.mark.fast
def test_intervals_are_read_as_spark_reads_them(spark: Any) -> None:
    texts = [f"INTERVAL {literal}" for literal in LITERALS] + [f"-INTERVAL {literal}" for literal in LITERALS[:8]]
    texts += [f"d + INTERVAL {literal}" for literal in LITERALS[:20]]
    one_row = {name: column[:1] for name, column in ROWS.items()}

    assert differences(spark, texts, SCHEMA, one_row, "UTC") == []


def test_arithmetic_of_times_is_that_of_spark(spark: Any) -> None:
    found = [each for zone in ZONES for each in differences(spark, arithmetic(), SCHEMA, ROWS, zone, refusals=False)]

    assert found == [], f"{len(found)} differ\n" + "\n".join(found[:20])
