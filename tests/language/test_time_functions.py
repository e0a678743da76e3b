"""Functions of dates and timestamps, as Spark has them, across changes of the clocks."""

from __future__ import annotations

from typing import Any

from language.spark_values import differences
from language.test_time_arithmetic import DAYS, MOMENTS, ZONES

from vedette.data.schema import Schema

SCHEMA = Schema.parse("d date, e date, t timestamp, u timestamp, j bigint, x double, s string, f string, b boolean")
TEXTS = [
    *("2020-01-31", "2021-03-14 02:30:00", "2021-11-07 01:30:00", "2021-10-31T02:30:00.5", "", None, "abc"),
    *("9999-12-31", "0001-01-01", "2020-02-30", "2020", "2020-3-1", " 2020-03-01 ", "2020-02-29 23:59:59.999999"),
]
UNITS = [
    *("YEAR", "yyyy", "yy", "Quarter", "MONTH", "mon", "mm", "week", "DAY", "dd", "hour", "minute", "second"),
    *("MILLISECOND", "microsecond", "", "xx", None, "years", " day"),
]
NUMBERS = [0, 1, -1, 12, -13, 31, 59, 2020, 9999, 10000, 1583020800, -62135596800, 2**31, None, 2**53, 24, 60]
N = len(MOMENTS)
ROWS: dict[str, list[Any]] = {
    "d": DAYS,
    "e": DAYS[5:] + DAYS[:5],
    "t": MOMENTS,
    "u": MOMENTS[5:] + MOMENTS[:5],
    "j": [NUMBERS[k % len(NUMBERS)] for k in range(N)],
    "x": [(None, 0.0, 1.5, -0.5, float("nan"), 1e18, float("inf"), 59.9999999, 60.0)[k % 9] for k in range(N)],
    "s": [TEXTS[k % len(TEXTS)] for k in range(N)],
    "f": [UNITS[k % len(UNITS)] for k in range(N)],
    "b": [(True, False, None)[k % 3] for k in range(N)],
}
OF_TIMES = [
    *("year", "month", "day", "dayofmonth", "dayofweek", "weekday", "dayofyear", "weekofyear", "quarter", "hour"),
    *("minute", "second", "last_day", "dayname", "monthname", "unix_date", "unix_micros", "unix_millis"),
    *("unix_seconds", "to_date", "to_timestamp", "unix_timestamp", "to_unix_timestamp", "date", "timestamp"),
]
OF_NUMBERS = ["date_from_unix_date", "timestamp_seconds", "timestamp_millis", "timestamp_micros", "from_unixtime"]
PARTS = [
    *("YEAR", "Y", "years", "yr", "yrs", "yearofweek", "QUARTER", "QTR", "MONTH", "mon", "mons", "months", "WEEK", "W"),
    *("weeks", "DAY", "d", "days", "dayofweek", "dow", "dayofweek_iso", "dow_iso", "doy", "HOUR", "h", "hours", "hr"),
    *("hrs", "MINUTE", "m", "min", "mins", "minutes", "SECOND", "s", "sec", "seconds", "secs", "epoch", "century"),
]
PARTS_OF_INTERVALS = ["YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND", "WEEK", "QUARTER"]
ADDED_UNITS = [
    *("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "DAYOFYEAR", "HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND"),
    "DECADE",
]
INTS = ["3", "-13", "0", "2147483647", "-2147483648", "NULL", "CAST(j % 5000 AS int)", "j", "x", "'3'", "3L", "1.5"]
ZONE_NAMES = [
    *(
        "'Europe/Berlin'",
        "'America/New_York'",
        "'+05:30'",
        "'UTC'",
        "'PST'",
        "'GMT+2'",
        "NULL",
        "s",
        "'nowhere'",
        "'Z'",
    ),
    *("'Asia/Kathmandu'", "'EST'", "'UTC+1'", "'-3'"),
]
FORMATS = [
    *("yyyy-MM-dd", "yyyy-MM-dd HH:mm:ss", "yyyy-MM-dd'T'HH:mm:ss.SSS", "yyyyMMdd", "yyyyMMddHHmmss", "dd/MM/yyyy"),
    *("d.M.yy", "y", "yy", "yyy", "yyyyy", "yyyyyy", "yyyyyyy", "M", "MM", "MMM", "MMMM", "MMMMM", "L", "LL", "LLL"),
    *("LLLL", "d", "dd", "ddd", "D", "DD", "DDD", "E", "EE", "EEE", "EEEE", "EEEEE", "a", "aa", "H", "HH", "HHH", "h"),
    *("hh", "k", "kk", "K", "KK", "m", "mm", "s", "ss", "S", "SS", "SSS", "SSSSSS", "SSSSSSSSS", "SSSSSSSSSS", "Q"),
    *("QQ", "QQQ", "QQQQ", "q", "qq", "X", "XX", "XXX", "x", "xx", "xxx", "xxxxx", "Z", "ZZZZ", "ZZZZZ", "G", "GGGG"),
    *(
        "VV",
        "V",
        "z",
        "O",
        "u",
        "Y",
        "w",
        "W",
        "F",
        "e",
        "n",
        "N",
        "A",
        "B",
        "p",
        "''",
        "'it''''s'",
        "yyyy[MM]",
        "hh:mm a",
    ),
    *(
        "EEE, d MMM yyyy HH:mm:ss",
        "'Q'q-yyyy",
        "yyyy#MM",
        "yyyy{MM}",
        "'open",
        "",
        "HH:mm:ss.SSSSSS",
        "[yyyy",
        "H'h'mm",
    ),
    *("yyyy年MM月", "ss.S", "yyyy-DDD", "MMM d, yyyy", "h:mm a", "yyyy-MM-dd HH:mm:ssXXX", "yyyy-MM-dd HH:mm:ss VV"),
]
PARSED = [
    *("2020-01-31", "2020-1-31", "20200131", "31/01/2020", "31.1.20", "2020-01-31 12:30:45", "2020-01-31T12:30:45.123"),
    *(
        "20200131123045",
        "2020",
        "99",
        "12020",
        "+12020",
        "-0001",
        "0000",
        "0001",
        "2021-02-29",
        "2020-02-29",
        "2020-13-01",
    ),
    *("2020-01-31 24:00:00", "2020-01-31 12:30:60", "", " 2020-01-31", "2020-01-31 ", None, "abc", "Jan", "january"),
    *(
        "JANUARY",
        "Mon",
        "monday",
        "AM",
        "pm",
        "12:30 PM",
        "12:30 am",
        "00:30 am",
        "1",
        "01",
        "001",
        "12",
        "24",
        "0",
        "60",
    ),
    *("2020-060", "2020-366", "2021-366", "Fri, 31 Jan 2020 12:30:45", "Mon, 31 Jan 2020 12:30:45", "Jan 31, 2020"),
    *("2020-01-31 12:30:45+02:00", "2020-01-31 12:30:45Z", "2020-01-31 12:30:45 Europe/Berlin", "45.1", "45.123456"),
    *("12:30:45.1234567", "12:30:45.123456", "2021-03-14 02:30:00", "2021-11-07 01:30:00", "2021-03-28 02:30:00", "+2"),
    *(
        "Q1-2020",
        "Q4-2020",
        "1st quarter",
        "Q2",
        "3",
        "12h05",
        "2020年01月",
        "\u0661\u0662",
        "2020#01",
        "1.2.3",
        "AD",
        "BC",
    ),
]
PARSED_SCHEMA = Schema.parse("s string")


def texts() -> list[str]:
    """Calls of all functions, with arguments of all types."""
    found = []
    for name in OF_TIMES:
        found += [f"{name}({arg})" for arg in ("d", "t", "s", "NULL", "j", "x", "b", "'2020-02-29'", "t - u")]
        found += [f"{name}(DATE '2024-02-29')", f"{name}(TIMESTAMP '2021-03-14 12:00:01.5')"]
    for name in OF_NUMBERS:
        found += [
            f"{name}({arg})" for arg in ("j", "x", "CAST(j % 100000 AS int)", "NULL", "s", "1.5", "3", "d", "'3'")
        ]
    for part in PARTS:
        found += [f"extract({part} FROM {arg})" for arg in ("d", "t")]
        found += [f"date_part('{part}', t)"]
    found += [f"extract({part} FROM {iv})" for part in PARTS_OF_INTERVALS for iv in ("(t - u)", "INTERVAL -14 MONTHS")]
    found += ["extract(YEAR FROM s)", "extract(YEAR FROM NULL)", "extract(SECOND FROM s)", "datepart('DAY', d)"]
    found += ["date_part(f, t)", "date_part(NULL, t)", "date_part('YEAR', j)", "extract(DAY FROM (d - e))"]
    for number in INTS:
        found += [f"{name}({arg}, {number})" for name in ("date_add", "date_sub", "add_months") for arg in ("d", "t")]
        found += [f"date_add({number}, d)", f"dateadd(d, {number})", f"date_add(s, {number})"]
        found += [f"make_date(2020, {number}, 1)", f"make_date({number}, 2, 3)", f"make_dt_interval({number})"]
        found += [f"make_ym_interval(1, {number})", f"make_timestamp(2021, 3, 14, 2, {number}, 30)"]
    for unit in ADDED_UNITS:
        found += [f"dateadd({unit}, {n}, {arg})" for n in ("3", "-25", "j", "x") for arg in ("t", "d")]
        found += [f"timestampadd({unit}, 1, s)", f"date_add({unit}, 2, t)", f"timestampdiff({unit}, t, u)"]
        found += [f"datediff({unit}, d, e)", f"date_diff({unit}, s, t)"]
    pairs = [("d", "e"), ("t", "u"), ("d", "t"), ("s", "d"), ("d", "NULL"), ("d", "'2020-01-01'"), ("j", "d")]
    for name in ("datediff", "date_diff", "months_between"):
        found += [f"{name}({a}, {b})" for a, b in pairs]
    found += [f"months_between(t, u, {flag})" for flag in ("true", "false", "b", "NULL", "1")]
    days = ["'MO'", "'tue'", "'Wednesday'", "'TH'", "'FRI'", "'sa'", "'SUNDAY'", "'xx'", "''", "NULL", "f", "3"]
    found += [f"next_day({arg}, {day})" for arg in ("d", "t", "s") for day in days]
    for unit in [*(f"'{unit}'" for unit in UNITS if unit is not None), "NULL", "f", "3"]:
        found += [f"date_trunc({unit}, {arg})" for arg in ("t", "d", "s", "NULL")]
        found += [f"trunc({arg}, {unit})" for arg in ("t", "d", "s", "NULL")]
    found += [
        f"{name}({arg}, {zone})"
        for name in ("from_utc_timestamp", "to_utc_timestamp")
        for arg in ("t", "s")
        for zone in ZONE_NAMES
    ]
    found += ["make_date(j, j, j)", "make_date(2020, 2, 30)", "make_date(10000, 1, 1)", "make_date('2020', 2, 3)"]
    found += [
        "make_date(0, 1, 1)",
        "make_date(-1, 1, 1)",
        "make_date(CAST(j % 3000 AS int), 2, 29)",
        "make_date(1.5, 1, 1)",
    ]
    for second in (
        "0",
        "59.9999999",
        "60",
        "60.000001",
        "61",
        "-1",
        "x",
        "1.5",
        "NULL",
        "'1'",
        "59",
        "CAST(x AS decimal(16,6))",
    ):
        found += [
            f"make_timestamp(2021, 11, 7, 1, 30, {second})",
            f"make_timestamp(2021, 3, 14, 2, 59, {second}, 'CET')",
        ]
    found += [
        "make_timestamp(2021, 13, 1, 0, 0, 0)",
        "make_timestamp(2021, 1, 1, 24, 0, 0)",
        "make_timestamp(1, 1, 1, 0, 0, 0)",
    ]
    found += [
        "make_timestamp(2021, 1, 1, 0, 0, 0, s)",
        "try_make_timestamp(2021, 13, 1, 0, 0, 0)",
        "make_timestamp(9999, 12, 31, 23, 59, 60)",
    ]
    found += ["make_timestamp(d, INTERVAL 1 HOUR)", "make_timestamp_ltz(2021, 3, 14, 2, 30, 0)", "current_timezone()"]
    found += [
        "make_dt_interval()",
        "make_dt_interval(1, 2, 3, 4.5)",
        "make_dt_interval(1, 25, 61, x)",
        "make_dt_interval(j)",
    ]
    found += ["make_ym_interval()", "make_ym_interval(1)", "make_ym_interval(1, -13)", "make_dt_interval(106751992)"]
    found += ["try_to_timestamp(s)", "try_to_date(s)", "to_timestamp_ltz(s)", "unix_timestamp(s, 'yyyy-MM-dd')"]
    found += [
        "to_date(d, 'yyyy')",
        "to_timestamp(t, 'yyyy')",
        "to_date(t, 'MM')",
        "unix_timestamp(d, 'yyyy')",
        "unix_timestamp(t, f)",
    ]
    found += [
        "from_unixtime(j, 'yyyy')",
        "date_format(d, f)",
        "date_format(s, 'yyyy')",
        "date_format(j, 'yyyy')",
        "date_format(NULL, 'y')",
    ]
    found += [
        "date_format(t, NULL)",
        "to_timestamp(s, NULL)",
        "to_timestamp(NULL, 'yyyy')",
        "to_date(j, 'yyyy')",
        "to_date(NULL)",
    ]
    return found


def quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def formatted() -> list[str]:
    return [f"date_format({arg}, {quoted(each)})" for each in FORMATS for arg in ("t", "d")]


def parsed() -> list[str]:
    names = ("to_timestamp", "to_date", "unix_timestamp")
    return [f"{names[k % 3]}(s, {quoted(each)})" for k, each in enumerate(FORMATS)] + [
        f"try_to_timestamp(s, {quoted(each)})" for each in FORMATS
    ]


def test_functions_of_times_are_those_of_spark(spark: Any) -> None:
    found = [each for zone in ZONES[1:2] for each in differences(spark, texts(), SCHEMA, ROWS, zone, refusals=False)]

    assert found == [], f"{len(found)} differ\n" + "\n".join(found[:20])


def test_times_are_written_in_spark_s_patterns(spark: Any) -> None:
    found = differences(spark, formatted(), SCHEMA, ROWS, "America/New_York", refusals=False)

    assert found == [], f"{len(found)} differ\n" + "\n".join(found[:20])


def test_times_are_read_in_spark_s_patterns(spark: Any) -> None:
    rows = {"s": PARSED}
    found = differences(spark, parsed(), PARSED_SCHEMA, rows, "America/New_York", refusals=False)

    assert found == [], f"{len(found)} differ\n" + "\n".join(found[:20])
