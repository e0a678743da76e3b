"""Random schemas, rows and predicates.

`Maker` draws from a `random.Random`, so a seed repeats a run; the hypothesis strategies below drive the same maker. A
predicate comes as a pair of texts: ours, and the one Spark is given. They differ where ANSI mode would fail the whole
job because of one row: Spark gets the `try_` form, which is null for that row.
"""

from __future__ import annotations

import datetime as dt
import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from array_conditions import FIELDS as ARRAYS
from array_conditions import POOLS as ELEMENTS
from array_conditions import ArrayMaker, items
from hypothesis import strategies as st

from vedette.language.casts import CASTS

SCHEMA = (
    "i bigint, j bigint, x double, y double, m decimal(10,2), n decimal(18,6), w decimal(38,10), b boolean, c boolean, "
    "s string, z string, r string, d date, e date, t timestamp, u timestamp, k int, h smallint, a tinyint, f float, "
    "v binary, g timestamp_ntz, o map<string,double>, q map<string,string>, l array<int>, p array<string>"
)

NESTED = f"{SCHEMA}, {ARRAYS}, st struct<c: bigint, s: string, p: struct<q: double, d: date>>"
TYPES = {name: type_ for name, type_ in map(str.split, SCHEMA.split(", ")) if type_.partition("(")[0] in CASTS}

INTEGERS = [
    *(
        -(2**63),
        -(2**63) + 1,
        -(2**53) - 1,
        -(2**53),
        -(2**31),
        -7,
        -2,
        -1,
        0,
        1,
        2,
        3,
        4,
        5,
        10,
        100,
        2**31 - 1,
        2**31,
    ),
    *(2**53 - 1, 2**53, 2**53 + 1, 2**53 + 2, 2**53 + 3, 10**18, 2**62, 2**63 - 513, 2**63 - 512, 2**63 - 1),
]
SMALL = [-7, -3, -2, -1, 0, 1, 2, 3, 4, 5, 10, 12, 25, 100]
DOUBLES = [
    *(
        float("nan"),
        float("inf"),
        float("-inf"),
        -0.0,
        0.0,
        5e-324,
        -5e-324,
        0.1,
        0.3,
        0.30000000000000004,
        1.0,
        1.5,
        2.0,
    ),
    *(
        2.5,
        3.0,
        4.0,
        100.0,
        -1.0,
        -1.5,
        -2.5,
        1e300,
        -1e300,
        2.0**53,
        2.0**53 + 2,
        2.0**63,
        -(2.0**63),
        1e18,
        0.01,
        1.005,
    ),
]
FLOATS = [float("nan"), float("inf"), float("-inf"), -0.0, 0.0, 1.0, -1.5, 2.5, 100.0, 2.0**-149, 3.4028234663852886e38]
FLOATS += [0.10000000149011612, 0.30000001192092896, -0.30000001192092896, 16777216.0]  # the floats 0.1 and 0.3
MONEY = [
    "0",
    "0.01",
    "-0.01",
    "0.1",
    "1",
    "1.5",
    "2.5",
    "-1.5",
    "3",
    "100",
    "99999999.99",
    "-99999999.99",
    "0.3",
    "4.99",
]
FINE = [
    "0",
    "0.000001",
    "-0.000001",
    "0.1",
    "0.3",
    "1",
    "1.5",
    "2.5",
    "3",
    "999999999999.999999",
    "-999999999999.999999",
    "4.99",
]
WIDE = [
    "0",
    "0.0000000001",
    "1",
    "1.5",
    "2.5",
    "-1.5",
    "3",
    "9007199254740993",
    "9223372036854775807.5",
    "9" * 28 + "." + "9" * 10,
    "-" + "9" * 28 + "." + "9" * 10,
    "0.1",
    "100",
]
TEXTS = [
    "",
    " ",
    "a",
    "ab",
    "abc",
    "abd",
    "b",
    "B",
    "ba",
    " a ",
    "a%b",
    "a_b",
    "a\\b",
    "it's",
    "é",
    "É",
    "日本",
    "\U0001f600",
    "\ud7ff",
    "\uffff",
    "ab\U0010ffff",
    "\U0010ffff",
    "ab\ud7ff",
    "Zebra",
    "a\nb",
]
MIXED = [  # numbers of all types, and strings that can be cast to each
    *(
        "'5'",
        "'1'",
        "'-1'",
        "'9007199254740993'",
        "-7L",
        "3",
        "9007199254740993",
        "1.5",
        "2.50BD",
        "1e0",
        "9007199254740992e0",
    ),
    *("9223372036854775808", "-9223372036854775809", "9223372036854775807", "-9223372036854775808L", "NULL"),
]
NUMERALS = [
    "1",
    "2",
    " 3 ",
    "-1",
    "+5",
    "1.5",
    "2.50",
    "1e2",
    "NaN",
    "inf",
    "-Infinity",
    "",
    "abc",
    "true",
    "no",
    "9007199254740993",
    "9223372036854775808",
    "2020-01-01",
    "2020-02-30",
    "2020-03-01 12:30:00",
    "1.5d",
    "0x1",
    "1_000",
    "4",
    "t",
    "0",
    *("\u0661\u0662", "\uff13", "\u0967e\u0968", "\U0001d7d9", "\u00b2", "3\u00a0", "\x7f4", "5\x7f", "\x1f2"),
    *("1e-999999999", "1e999999999", "0e999999999", "1e-2147483648", "1e0000000000002", "0.005", "-0.005", "1e38"),
    *("9" * 4301, "0" * 4301 + "3", "1." + "0" * 4301, "0." + "9" * 4301, "1" + "0" * 4301 + "e-4301", "-" + "9" * 40),
    *("0x1p2", "0X.8P3d", "+NaN", "-nan", "nan ", "1f", "2D", "3dd", "1e400", "+.5e1", ".", "1e", "--1", "Infinityd"),
    *("5881580-07-12", "12020-1-1", "2020-01-01T1:2:3 PST", "2020-01-01 1:2:3.1234567890", "2020-01-01T24", "+2020"),
]
DAYS = [dt.date(2020, 1, 1) + dt.timedelta(days) for days in (-1, 0, 1, 59, 60)] + [
    *(dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(1970, 1, 1), dt.date(1969, 12, 31), dt.date(2018, 11, 4)),
    *(dt.date(2021, 3, 14), dt.date(2021, 11, 7), dt.date(1900, 1, 1)),
]
MOMENTS = [
    dt.datetime(2020, 1, 1) + dt.timedelta(microseconds=shift)
    for shift in (0, -1, 1, 5 * 3600 * 10**6, 5 * 3600 * 10**6 - 1, 12 * 3600 * 10**6, 86400 * 10**6)
] + [
    *(
        dt.datetime(1970, 1, 1),
        dt.datetime(1969, 12, 31, 23, 59, 59, 999999),
        dt.datetime(2021, 3, 14, 7),
        dt.datetime(2021, 11, 7, 5, 30),
    ),
    *(
        dt.datetime(2018, 11, 4, 3),
        dt.datetime(2018, 11, 4, 2, 59, 59),
        dt.datetime(1900, 1, 1),
        dt.datetime(2021, 11, 7, 6, 30),
    ),
    *(dt.datetime(2021, 3, 14, 5), dt.datetime(2021, 3, 14, 4), dt.datetime(9999, 12, 30, 1), dt.datetime(2, 1, 1)),
]

POOLS: dict[str, list[Any]] = {
    "i": INTEGERS,
    "j": SMALL,
    "x": DOUBLES,
    "y": DOUBLES,
    "m": [Decimal(text).quantize(Decimal("0.01")) for text in MONEY],
    "n": [Decimal(text).quantize(Decimal("0.000001")) for text in FINE],
    "w": [Decimal(text) for text in WIDE],
    "b": [True, False],
    "c": [True, False],
    "s": TEXTS,
    "z": TEXTS,
    "r": NUMERALS,
    "d": DAYS,
    "e": DAYS,
    "t": [moment.replace(tzinfo=dt.UTC) for moment in MOMENTS],
    "u": [moment.replace(tzinfo=dt.UTC) for moment in MOMENTS],
    "k": [-(2**31), -(2**31) + 1, -7, -1, 0, 1, 2, 3, 5, 100, 65536, 2**31 - 2, 2**31 - 1],
    "h": [-(2**15), -300, -1, 0, 1, 2, 3, 5, 128, 2**15 - 1],
    "a": [-128, -127, -7, -1, 0, 1, 2, 3, 5, 100, 127],
    "f": FLOATS,
    "v": [b"", b"a", b"ab", b"B", b"\x00", b"\x7f", b"\x80", b"\xff\x00", "\u00e9".encode(), "\U0001f600".encode()],
    "g": [*MOMENTS, dt.datetime(2021, 3, 14, 2, 30), dt.datetime(2021, 11, 7, 1, 30), dt.datetime(2018, 11, 4, 0, 30)],
}

KEYS = ["a", "b", "ab", ""]
POOLS |= {  # arrays, and maps as lists of pairs
    "o": [[], [("a", 1.5)], [("b", -0.0), ("a", None)], [("a", float("nan")), ("ab", 3.0)], [("", 2.0), ("b", 100.0)]],
    "q": [[], [("a", "ab")], [("a", None), ("b", "")], [("b", "it's"), ("ab", "a"), ("a", "b")]],
    "l": [[], [None], [1, 2, 3], [3, None, 5], [-7, 100, 100], [2**31 - 1]],
    "p": [[], ["a"], [None, "b"], ["ab", "", "a"], ["it's", "it's", None]],
}
NESTED_CONDITIONS = [  # of which {0} is a number, {1} a text, {2} a key, {3} a comparison
    *("o['{2}'] {3} {0}", "o.{2} {3} {0}", "element_at(o, '{2}') IN ({0}, 1.5)", "o['{2}'] BETWEEN 0 AND {0}"),
    *("o['{2}'] IS NULL", "try_element_at(o, '{2}') IS NOT NULL", "NOT o['{2}'] {3} {0}", "q['{2}'] {3} {1}"),
    *("q['{2}'] LIKE 'a%'", "q.{2} LIKE '%b%'", "q['{2}'] IN ({1}, 'ab')", "startswith(q['{2}'], {1})"),
    *("map_contains_key(o, '{2}')", "map_contains_key(q, s)", "size(o) {3} 1", "cardinality(q) = 2", "o[s] {3} {0}"),
    *(
        "o[q['{2}']] {3} {0}",
        "o['{2}'] {3} x",
        "array_contains(map_keys(q), s)",
        "exists(map_values(o), n -> n {3} {0})",
    ),
    *("array_contains(map_values(q), {1})", "forall(map_keys(o), n -> n <> {1})", "o IS NULL", "q IS NOT NULL"),
    *(
        "array_contains(l, {0})",
        "array_contains(l, k)",
        "exists(l, n -> n {3} {0} AND n < 50)",
        "forall(l, n -> n {3} {0})",
    ),
    *(
        "exists(l, n -> n {3} j)",
        "array_contains(p, {1})",
        "arrays_overlap(p, array('a', 'b'))",
        "exists(p, n -> n LIKE 'a%')",
    ),
    *("size(l) {3} 1", "try_element_at(l, 2) {3} {0}", "get(l, 0) {3} {0}", "array_position(p, {1}) = 1", "l IS NULL"),
]


def quote(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


NUMBER_TYPES = ["bigint", "int", "smallint", "tinyint", "double", "float", "decimal(10,2)", "decimal(38,10)"]
# Operands beside a null: none of them fails, whatever they are cast to.
OPERANDS = ["j", "3L", "3", "x", "1.5e0", "m", "w", "1.5", "12345678901234567890.5", "b", "TRUE", "'1'", "d", "t", "g"]
NULL_VALUES = [
    *("({} + {})", "({} - {})", "({} * {})", "({} / {})", "({} % {})", "({} DIV {})", "pmod({}, {})", "mod({}, {})"),
    *("try_add({}, {})", "try_divide({}, {})", "try_multiply({}, {})", "try_subtract({}, {})", "try_mod({}, {})"),
    *("coalesce({}, {})", "nullif({}, {})", "least({}, {})", "greatest({}, {}, {})", "ifnull({}, {})", "nvl({}, {})"),
    *("concat({}, {})", "({} || {})", "substring({}, 2)", "substring({}, -3, 2)", "if({}, {}, {})", "if(b, {}, {})"),
    *("CASE WHEN {} THEN {} ELSE {} END", "CASE WHEN b THEN {} WHEN c THEN {} END", "CASE {} WHEN {} THEN {} END"),
    *("-{}", "abs({})", "ceil({})", "floor({})", "sign({})", "sqrt({})", "round({})", "round({}, 1)", "length({})"),
    *("upper({})", "trim({})", "year({})", "dayofweek({})", "hour({})", "second({})"),
    *(f"CAST({{}} AS {to})" for to in (*NUMBER_TYPES, "boolean", "string", "date", "timestamp", "timestamp_ntz")),
    *(f"try_cast({{}} AS {to})" for to in (*NUMBER_TYPES, "boolean", "string", "date", "timestamp", "timestamp_ntz")),
]
TEXT_CALLS = [  # of two strings; none of them fails
    *(
        "concat_ws({}, {}, 'x', NULL)",
        "concat_ws({}, 'x', {})",
        "replace({}, {}, 'xy')",
        "replace({}, 'a', {})",
        "trim({}, {})",
    ),
    *("translate({}, {}, 'xy')", "translate({}, 'ab', {})", "btrim({}, {})", "ltrim({}, {})", "rtrim({}, {})"),
    *("substring_index({}, {}, j)", "substring_index({}, {}, -1)", "split_part({}, {}, 1)", "split_part({}, {}, -2)"),
    *(
        "left(concat({}, {}), j)",
        "right(concat({}, {}), 2)",
        "lpad({}, 5, {})",
        "rpad({}, j, {})",
        "repeat({} || {}, 2)",
    ),
    *(
        "overlay({}, {}, 2)",
        "overlay({}, {}, j, 1)",
        "reverse({} || {})",
        "initcap({} || {})",
        "elt(2, {}, {})",
        "md5({} || {})",
    ),
    *(
        "trim(BOTH {} FROM {})",
        "trim(LEADING {} FROM {})",
        "overlay({} PLACING {} FROM 2 FOR 1)",
        "substring({} || {} FROM 2)",
    ),
    *(
        "regexp_replace({}, '[ab]+', {})",
        "regexp_extract({} || {}, '(a|b)(.)', 2)",
        "regexp_replace({} || {}, '(.)', '$1-')",
    ),
    *("mask({} || {})", "mask({} || {}, NULL, 'l', '#', '.')", "format_string('%s|%-5s|%S', {0}, {1}, {0})"),
    *(
        "url_encode({} || {})",
        "url_decode(url_encode({} || {}))",
        "to_base32({} || {})",
        "base64(unbase64(base64({} || {})))",
    ),
    *("ucase({} || {})", "lcase({} || {})", "regexp_substr({} || {}, 'b.*')", "sha({} || {})", "{} || {} || char(a)"),
    *("make_valid_utf8({} || {})", "validate_utf8({} || {})", "try_validate_utf8({} || {})", "{} || {} || space(2)"),
    *("base64(to_binary({} || {}, 'utf-8'))", "hex(try_to_binary({} || {}, 'hex'))", "nvl2({}, {}, 'n')"),
    *("sha2({} || {}, 256)", "soundex({} || {})", "sha1({} || {})", "chr(ascii({} || {}))", "lower(upper({} || {}))"),
]
TEXT_NUMBERS = [
    *("hash({}, {})", "xxhash64({}, {})", "jaro_winkler_similarity({}, {})"),
    "position({} IN {})",
    *(
        "instr({}, {})",
        "locate({}, {})",
        "locate({}, {}, 2)",
        "position({}, {}, j)",
        "find_in_set({}, {})",
        "crc32({} || {})",
    ),
    *(
        "levenshtein({}, {})",
        "levenshtein({}, {}, 2)",
        "octet_length({} || {})",
        "bit_length({} || {})",
        "ascii({} || {})",
    ),
]
NULL_CONDITIONS = [
    *("{} = {}", "{} <> {}", "{} < {}", "{} >= {}", "{} <=> {}", "{} IS DISTINCT FROM {}", "{} IN ({})"),
    *("{} NOT IN ({}, {})", "{} LIKE {}", "startswith({}, {})", "contains({}, {})", "({}) AND ({})", "({}) OR ({})"),
    *("({}) AND ({}) AND ({})", "({}) OR ({}) OR ({}) OR ({})", "{} BETWEEN {} AND {}", "{} NOT BETWEEN {} AND {}"),
    *("isnan({})", "NOT ({})", "({}) IS NULL", "({}) IS TRUE", "isnotnull({})"),
]


# Values that are the same to the last bit, and never fail.
_EXACT_NUMBERS = """
    (k & 7); (i | j); (h ^ a); (~k); (a << 2); (k >> 3); (i >>> 1); (j & 3 | k ^ 1 << 2); (~a & -8Y);
    shiftleft(i, a); shiftright(h, 2); shiftrightunsigned(k, a); bit_count(i); bit_count(b); getbit(k, 3);
    bround(x, 1); bround(m); bround(n, 3); floor(m, 1); ceil(n, 2); floor(a, -1); rint(x); degrees(f); radians(y);
    nanvl(x, y); nanvl(f, f); nanvl(x, j); factorial(a); width_bucket(x, 0, 10, 4); positive(f); pi(); (e() + f);
    CAST(d - e AS int); CAST(t - u AS bigint); CAST(t - g AS decimal(20,3)); CAST((t - d) * 2 AS decimal(20,0));
    hash(i, x, m, b, d, t, g, k, h, a, f, v, w, s); xxhash64(i, x, m, b, d, t, g, k, h, a, f, v, w, s); hash(x, f);
    abs(f); (-x); sign(f); width_bucket(f, 10, y, a); round(f, 1); round(h % 50, -1); bit_get(k, 2); ceiling(m);
    signum(f); unix_date(d); unix_seconds(t); unix_millis(u); to_unix_timestamp(t); dayofmonth(e); date_diff(d, e);
    datepart('YEAR', t); char_length(s); character_length(z); nullifzero(j); zeroifnull(k); regexp_count(s, 'a|b');
    regexp_instr(z, 'b'); len(s); octet_length(v); try_add(i, j); try_multiply(i, k); try_subtract(a, h); (x - y);
    try_divide(m, j); try_mod(i, j); (x * y); (f + f); nvl(j, 2); ifnull(x, m); (m + n); (m * 1.5); mod(j, 7)
"""
EXACT_NUMBERS = [each.strip() for each in _EXACT_NUMBERS.split(";")]
# Tests of functions whose last bit may differ, away from where that decides.
_NUMBER_TESTS = """
    ln(x) IS NULL; log10(f) > 0.7; log2(a) < 0.5; log1p(j) IS NULL; log(2, k) > 1.3; log(x, 3) IS NULL;
    exp(a) > 1.5; expm1(f) < -0.4; power(j, 2) > 2.5; pow(x, 0.5) IS NULL; cbrt(k) < 1.1; hypot(x, y) > 2.7;
    sin(j) > 0.5; cos(a) <= 0.4; tan(j) < 1; cot(a) > 0.1; sec(j) > 1.5; csc(a) < -1.1; isnan(asin(j));
    acos(f) > 1; atan(x) > 1.2; atan2(j, x) < 0.5; sinh(a) > 2; cosh(j) < 2; tanh(x) > 0.9; isnan(acosh(x));
    asinh(j) > 1; isnan(atanh(a)); equal_null(k, a); equal_null(s, z); b IS UNKNOWN; (x > y) IS NOT UNKNOWN;
    luhn_check(CAST(i AS string)); is_valid_utf8(s); d < current_date; t <= current_timestamp;
    now() > t - INTERVAL 1 DAY; curdate() >= e; now() - u > INTERVAL 5 DAYS;
    current_date() - d > INTERVAL 9 DAYS; t < now() - INTERVAL 2 MONTHS;
    make_ym_interval(1, j) > INTERVAL 13 MONTHS; INTERVAL 1 YEAR <> INTERVAL 12 MONTHS; length(space(a)) > 2;
    INTERVAL '1-2' YEAR TO MONTH * j < INTERVAL 5 MONTHS; CASE j WHEN 1 THEN b WHEN 2 THEN c ELSE x > y END;
    find_in_set(s, 'a,ab,b') > 1; NOT s ILIKE ALL ('%A%', '%b%'); s LIKE ANY ('a%', NULL);
    concat_ws('-', s, z) LIKE '%-%'
"""
# Regular expressions, with and without a string that every match contains.
PATTERNS = """
    a; ^a; b$; ab; a.b; [ab]+; a|b; (a|b)c; .*b.*; (?i)AB; \\s; \\d+; [^a]; ^$; a{2}; a?b;
    [[:alpha:]]; é; \\p{L}b; it's; %
"""
NUMBER_TESTS = [each.strip() for each in _NUMBER_TESTS.split(";")]
REGEXES = [quote(each.strip()) for each in PATTERNS.split(";")]
DAY_CALLS = [
    *("({} + 3)", "({} - 40)", "({} + INTERVAL 1 DAY)", "({} - INTERVAL 13 MONTHS)", "date_add({}, 30)", "to_date({})"),
    *("date_sub({}, -2)", "add_months({}, -1)", "last_day({})", "next_day({}, 'Fri')", "trunc({}, 'QUARTER')"),
    *("({} + INTERVAL '1-2' YEAR TO MONTH)", "(INTERVAL 2 WEEKS + {})", "trunc({}, 'week')"),
    *("date_from_unix_date(unix_date({}))", "try_to_date(CAST({} AS string))", "date({})"),
    *("make_date(2020, 1, day({}))", "try_to_date(date_format({}, 'dd/MM/yyyy'), 'dd/MM/yyyy')"),
]
MOMENT_CALLS = [
    *("({} + INTERVAL 90 MINUTES)", "({} - INTERVAL 1 DAY)", "({} - INTERVAL '1 02:03:04.5' DAY TO SECOND)"),
    *("({} + INTERVAL 1 MONTH)", "date_trunc('HOUR', {})", "date_trunc('WEEK', {})", "timestampadd(HOUR, 25, {})"),
    *("to_utc_timestamp({}, 'Europe/Berlin')", "from_utc_timestamp({}, '+05:30')", "to_timestamp({})"),
    *("({} - INTERVAL '25 hours')", "dateadd(QUARTER, -1, {})", "date_trunc('DAY', {})"),
    *("timestamp_seconds(unix_seconds({}))", "timestamp_millis(unix_millis({}))", "timestamp_micros(unix_micros({}))"),
    *("try_make_timestamp(2020, a, 31, hour({}), 30, 1.5)", "to_timestamp_ltz({})", "timestamp({})"),
    *("make_timestamp(2020, 12, 31, hour({}), 0, 59.25)", "try_to_timestamp(CAST({} AS string))"),
    *("make_timestamp_ltz(2021, 3, 14, hour({}), 0, 1)", "try_make_timestamp_ltz(2021, 11, 7, 1, minute({}), 0)"),
]
LOCAL_CALLS = [
    *("({} + INTERVAL 90 MINUTES)", "({} - INTERVAL 1 DAY)", "({} + INTERVAL '1-1' YEAR TO MONTH)"),
    *(
        "to_timestamp_ntz({})",
        "timestampadd(HOUR, 25, {})",
        "dateadd(MONTH, -1, {})",
        "convert_timezone('Asia/Kathmandu', {})",
    ),
    "convert_timezone('Europe/Berlin', 'America/New_York', {})",
]
TIME_NUMBERS = [
    *("year({})", "month({})", "day({})", "dayofweek({})", "hour({})", "minute({})", "second({})", "quarter({})"),
    *(
        "dayofyear({})",
        "weekofyear({})",
        "weekday({})",
        "extract(DOW FROM {})",
        "date_part('DAY', {})",
        "unix_micros({})",
    ),
    *("datediff({}, DATE '2020-01-01')", "extract(SECOND FROM {})", "unix_timestamp({})", "months_between({}, t)"),
    *("timestampdiff(HOUR, {}, u)", "timestampdiff(MONTH, {}, u)"),
]
TIME_TEXTS = [
    "date_format({}, 'yyyy-MM-dd HH:mm:ss.SSS')",
    "dayname({})",
    "monthname({})",
    "date_format({}, 'E d MMM a')",
    "from_unixtime(unix_timestamp({}), 'yyyy-MM-dd HH')",
]
NUMBER_TEXTS = [
    *("format_number({}, 2)", "format_number({}, 0)", "format_number({}, j)", "format_string('%s', {})"),
]
FORMATS = [
    *(
        "format_string('%d:%5d:%,d:%x', i, j, k, k)",
        "format_string('%.3f|%10.1f|%e', x, y, f)",
        "printf('%b %s', b, c)",
    ),
    *("format_string('%(d %+d %08d %o', j, h, a, i)", "format_string('%+.2f %(,.0f', y, x)"),
]
SPANS = [
    *("INTERVAL 90 MINUTES", "INTERVAL 1 DAY", "INTERVAL -36 HOURS", "INTERVAL '10 00:00:01' DAY TO SECOND", "(t - u)"),
    *("(d - e)", "(t - d)", "(e - t)", "INTERVAL 1 DAY * 2.5", "INTERVAL 1 WEEK / 7", "-(t - u)", "abs(d - e)"),
    *("(g - t)", "(d - g)", "(g - TIMESTAMP_NTZ '2021-03-14 02:30:00')"),
    *(
        "(t - TIMESTAMP '2020-01-01 00:00:00')",
        "make_dt_interval(1, 2)",
        "CASE WHEN b THEN t - u ELSE INTERVAL 1 DAY END",
    ),
]
MOVED = ["t - INTERVAL 1 HOUR", "t + INTERVAL 1 DAY", "INTERVAL '1' SECOND + t", "t - INTERVAL 2 MONTHS", "now()"]


@dataclass(frozen=True)
class Pair:
    """A text of ours and the text Spark is given."""

    ours: str
    spark: str

    def __str__(self) -> str:
        return self.ours

    @staticmethod
    def same(text: str) -> Pair:
        return Pair(text, text)


def fill(template: str, *parts: Pair, spark: str | None = None) -> Pair:
    """A template filled with both spellings of its parts."""
    return Pair(
        template.format(*(part.ours for part in parts)), (spark or template).format(*(part.spark for part in parts))
    )


@dataclass
class Maker:
    """Draws rows and predicates. A hostile one also draws nulls everywhere, and texts that Spark refuses."""

    random: random.Random
    hostile: bool = False
    nested: bool = False  # over NESTED instead of SCHEMA

    def pick(self, *choices: Any) -> Any:
        return self.random.choice(choices)

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    # -- rows

    def rows(self, n: int) -> dict[str, list[Any]]:
        """Columns of n rows, a tenth of the values null; the first row is all null."""
        columns: dict[str, list[Any]] = {
            name: [None if k == 0 or self.chance(0.1) else self.random.choice(pool) for k in range(n)]
            for name, pool in POOLS.items()
        }
        if self.nested:
            columns |= {name: [items(self.random, pool) for _ in range(n)] for name, pool in ELEMENTS.items()}
            columns["st"] = [self._struct() for _ in range(n)]
        return columns

    def _struct(self) -> dict[str, Any] | None:
        one = lambda name: None if self.chance(0.1) else self.random.choice(POOLS[name])  # noqa: E731
        inner = None if self.chance(0.2) else {"q": one("x"), "d": one("d")}
        return None if self.chance(0.1) else {"c": one("j"), "s": one("s"), "p": inner}

    # -- literals

    def literal(self, family: str) -> Pair:
        """A literal to compare with a field of the family: number, string, date, timestamp or boolean."""
        if self.hostile and self.chance(0.04):
            return self.null(family)
        return Pair.same(getattr(self, f"_{family}")())

    def null(self, family: str) -> Pair:
        """NULL, plain or with a type, or a value that is always null."""
        types = {
            "number": NUMBER_TYPES,
            "text": ["string"],
            "bytes": ["binary"],
            "day": ["date"],
            "moment": ["timestamp"],
            "local": ["timestamp_ntz"],
        }
        type_ = self.random.choice(types.get(family, ["boolean"]))
        cannot = self.pick("'a'", "''", "'1e'", "'--1'", "'2020-02-30'") if family != "text" else "NULL"
        typed = [f"CAST(NULL AS {type_})", f"try_cast({cannot} AS {type_})", "CASE WHEN b THEN NULL END"]
        return Pair.same(self.random.choice(["NULL", "NULL", "coalesce(NULL, NULL)", "nullif(NULL, 1)", *typed]))

    def null_atom(self) -> Pair:
        """Any operator or function with a null among its operands, in any place."""
        template = self.random.choice([*NULL_CONDITIONS, *NULL_VALUES])
        n = template.count("{}")
        operands = [self.random.choice(OPERANDS) for _ in range(n)]
        family = self.pick("number", "text", "day", "moment", "local", "truth")
        operands[self.random.randrange(n)] = self.null(family).ours
        text = template.format(*operands)
        if template in NULL_CONDITIONS:
            return Pair.same(self.pick("{}", "NOT ({})", "({}) IS NULL").format(text))
        closing = self.pick(
            "{} IS NULL", "{} IS NOT NULL", "{} = {}", "{} <=> NULL", "{} + 1.5 IS NULL", "lower({}) = 'a'"
        )
        return Pair.same(closing.replace("{}", text))

    def _number(self) -> str:
        style = self.random.random()
        if style < 0.3:
            return str(self.random.choice(INTEGERS if self.chance(0.4) else SMALL))
        if style < 0.5:
            text = self.random.choice([*MONEY, *FINE, "2.55", ".5", "1.", "0.30000000000000004", "1.10", "007.5"])
            return text + self.pick("", "", "BD") if text[-1] != "." else text
        if style < 0.7:
            value = self.random.choice(DOUBLES)
            if value != value or value in (float("inf"), float("-inf")):
                return self.pick("1e308", "-1E308")
            text = repr(value)
            return text if "e" in text else text + self.pick("e0", "D", "E+0")
        if style < 0.8:
            return str(self.random.choice(INTEGERS)) + "L"
        if style < 0.87:
            return self.pick("127Y", "-128Y", "3y", "300S", "-32768S", "5s", "0.1F", "-0.3f", "1e0F", "16777217F")
        return self.pick(
            "99999999999999999999",
            "1e16",
            "9007199254740992e0",
            "9007199254740993.0",
            "-1e-3",
            "1e2",
            "2.5E1",
            "0.005",
            "123456789012345678901234567890.12345678",
            "-0.0",
            "-0e0",
            "0.1",
            "-99999999999999999999",
            "9223372036854775807.5",
            "-9223372036854775809",
            "9223372036854775808",
            "-9223372036854775808.5",
            "1.0000000000000000000000000001",
        )

    def _text(self) -> str:
        return quote(self.random.choice(TEXTS))

    def _day(self) -> str:
        return f"DATE '{self.random.choice(DAYS).isoformat()}'"

    def _moment(self) -> str:
        moment = self.random.choice(MOMENTS)
        zone = self.pick("", "", "", "Z", "+02:00", " UTC", " Europe/Paris", "-0330")
        text = moment.isoformat(sep=self.pick(" ", "T"))
        if zone and "." not in text and text.count(":") < 2:
            zone = ""
        return f"TIMESTAMP '{text}{zone}'"

    def _local(self) -> str:
        zone = self.pick("", "", "", "Z", "+02:00", " Europe/Paris")
        text = self.random.choice(POOLS["g"]).isoformat(sep=" ")
        return f"{self.pick('TIMESTAMP_NTZ', 'timestamp_ntz')} '{text}{zone}'"

    def _bytes(self) -> str:
        return self.pick("X'61'", "x'6162'", "X''", "X'80'", "X'FF00'", "X'7'", "'a'", "unhex('C3A9')")

    def _truth(self) -> str:
        return self.pick("TRUE", "FALSE", "true", "false")

    def quoted(self, family: str) -> Pair:
        """A string literal that Spark can cast to the family's type."""
        if family == "number":
            return Pair.same(
                self.pick(
                    "'1.5'",
                    "'2'",
                    "' 3 '",
                    "'1e2'",
                    "'NaN'",
                    "'-Infinity'",
                    "'0.1'",
                    "'9007199254740993'",
                    "'1.5d'",
                    "'0x1p1'",
                )
            )
        if family == "truth":
            return Pair.same(self.pick("'true'", "'f'", "' YES '", "'0'"))
        if family == "day":
            return Pair.same(self.pick("'2020-01-01'", "'2020'", "' 2020-1-1 '", "'2020-03'", "'2020-01-01T12:00'"))
        if family in ("moment", "local"):
            return Pair.same(
                self.pick(
                    "'2020-01-01'", "'2020-01-01 05:00:00'", "'2020-01-01T00:00:00.000001'", "'2021-3-14 2:30:00'"
                )
            )
        return Pair.same(self._text())

    # -- conditions

    def struct_atom(self) -> Pair:
        """A condition on an array, or on a part of a struct, of NESTED."""
        if self.chance(0.6):
            return Pair.same(ArrayMaker(self.random, {"tags": "s", "ns": "i", "xs": "x"}).leaf())
        name, family = self.pick(("st.c", "number"), ("st.s", "text"), ("st.p.q", "number"), ("ST.p.d", "day"))
        if self.chance(0.2):
            return Pair.same(f"{name} IS {self.pick('', 'NOT ')}NULL")
        return fill(f"{name} {self.operator()} {{}}", self.expression(family, 1, safe=True))

    def cast_atom(self) -> Pair:
        """A field of any type in any other."""
        types = [name for name in TYPES if name != "v"]  # bytes that are not UTF-8 are no strings here
        name, other = self.pick(*types), self.pick(*types)
        to = self.random.choice(CASTS[TYPES[name].partition("(")[0]])
        if to == "decimal":
            to = self.pick("decimal(5,1)", "decimal(38,10)", "decimal(20,0)")
        if to not in (*CASTS[TYPES[other].partition("(")[0]], TYPES[other]) or self.chance(0.3):
            return Pair.same(f"try_cast({name} AS {to}) IS {self.pick('', 'NOT ')}NULL")
        return Pair.same(f"try_cast({name} AS {to}) {self.operator()} try_cast({other} AS {to})")

    def predicate(self, depth: int = 2) -> Pair:
        style = self.random.random()
        if self.nested and self.chance(0.05):
            return self.struct_atom()
        if depth and style < 0.25:
            parts = [self.predicate(depth - 1) for _ in range(self.random.randint(2, 3))]
            return fill(" AND ".join(["({})"] * len(parts)), *parts)
        if depth and style < 0.45:
            parts = [self.predicate(depth - 1) for _ in range(self.random.randint(2, 3))]
            return fill(" OR ".join(["({})"] * len(parts)), *parts)
        if depth and style < 0.55:
            return fill(self.pick("NOT ({})", "NOT({})", "!({})"), self.predicate(depth - 1))
        if depth and style < 0.6:
            return self.loose()
        if depth and style < 0.61:
            return self.wide()
        if style < 0.78:
            return self.box_atom()
        if style < 0.82:
            return self.nested_atom()
        if style < 0.85 and self.hostile:
            return self.null_atom()
        return self.residual_atom()

    def loose(self) -> Pair:
        """Conditions joined without parentheses, so that precedence decides."""
        parts = [self.box_atom() if self.chance(0.8) else self.chain() for _ in range(self.random.randint(2, 5))]
        text = self.pick("", "", "NOT ") + "{}"
        for _ in parts[1:]:
            text += f" {self.pick('AND', 'OR', 'and', 'Or')} {self.pick('', '', 'NOT ', 'not ')}{{}}"
        return fill(text, *parts)

    def wide(self) -> Pair:
        """A product of disjunctions that has too many boxes, or one long list of values."""
        if self.chance(0.5):
            ors = [fill("({} OR {} OR {})", *(self.box_atom() for _ in range(3))) for _ in range(5)]
            return fill(" AND ".join(["{}"] * 5), *ors)
        name = self.pick("i", "s", "x", "m")
        family = FAMILIES[name]  # without nulls: beside more than ten values Spark takes NaN as not null
        items = [Pair.same(getattr(self, f"_{family}")()) for _ in range(90)]
        rest = fill("{} OR {}", self.box_atom(), self.box_atom())
        listed = fill(f"{name} {self.pick('', 'NOT ')}IN ({', '.join(['{}'] * 90)})", *items)
        return fill("{} AND ({})", listed, rest)

    def chain(self) -> Pair:
        """Arithmetic on doubles without parentheses: none of it can fail."""
        text = ""
        for step in range(self.random.randint(2, 4)):
            text += "" if step == 0 else self.pick(" + ", " - ", " * ", "-", "+", "*")
            text += self.pick("x", "y", "-x", "- y", "2e0", "-1.5D", "abs(-y)", "x % 3", "y / 2e0")
        text += f" {self.pick('<', '>=', '=', '<>')} {self.pick('x', '-y', '1.5', '-2', 'x * 2')}"
        return Pair.same(text.replace("--", "- -"))

    def operator(self) -> str:
        return self.pick("=", "<>", "!=", "<", "<=", ">", ">=", "<=>", "==")

    def box_atom(self) -> Pair:
        """A comparison of one field with literals."""
        name = self.pick(*(name for name in FAMILIES if name != "r"))
        family = FAMILIES[name]
        style = self.random.random()
        field = Pair.same(self.spelled(name))
        if style < 0.45:
            parts = (field, self.beside(name, family))
            flipped = self.chance(0.2)
            return fill(f"{{0}} {self.operator()} {{1}}", *(reversed(parts) if flipped else parts))
        not_ = self.pick("", "", "NOT ")
        if style < 0.6:
            return fill(
                f"{{}} {not_}BETWEEN {{}} AND {{}}", field, self.beside(name, family), self.beside(name, family)
            )
        if style < 0.75:
            items = [self.beside(name, family) for _ in range(self.random.randint(1, 4))]
            if family == "number" and self.chance(0.2):  # the type of the list depends on the order of its items
                items = [Pair.same(self.pick(*MIXED)) for _ in range(self.random.randint(2, 4))]
            if self.chance(0.15):
                items.append(Pair.same("NULL"))
            return fill(f"{{}} {not_}IN ({', '.join(['{}'] * len(items))})", field, *items)
        if style < 0.85:
            return fill(
                self.pick("{} IS NULL", "{} IS NOT NULL", "isnull({})", "isnotnull({})", "{} <=> NULL", "{} = NULL"),
                field,
            )
        if family == "truth":
            return fill(self.pick("{}", "NOT {}", "{} IS TRUE", "{} IS NOT TRUE", "{} IS FALSE", "{} = TRUE"), field)
        if family == "text":
            return fill(f"{{}} {not_}LIKE {{}}", field, self.pattern())
        return fill("{} " + self.pick("<", ">=") + " {}", field, self.beside(name, family))

    def spelled(self, name: str) -> str:
        return self.pick(name, name, name, name.upper(), f"`{name}`")

    def beside(self, name: str, family: str) -> Pair:
        """A literal to compare a field with, now and then of another type."""
        style = self.random.random()
        if name == "i" and style < 0.1:
            return Pair.same(self.pick("'5'", "' -7 '", "'9007199254740993'"))
        if style < 0.1 and name not in ("i", "j", "k", "h", "a"):
            return self.quoted(family)
        if style < 0.3 and family in ("day", "moment", "local"):
            return self.literal(self.pick("day", "moment", "local"))
        return self.literal(family)

    def pattern(self) -> Pair:
        return Pair.same(
            self.pick(
                "'a%'",
                "'ab%'",
                "'%'",
                "''",
                "'abc'",
                "'%b'",
                "'a_%'",
                "'_'",
                "'a\\\\%b'",
                "'a\\\\_%'",
                "'%a%'",
                "'\U0010ffff%'",
                "'\ud7ff%'",
                "'ab\U0010ffff%'",
                "'it''s%'",
                "'a%%'",
                "'A%'",
                "'/%%' ESCAPE '/'",
                "'a/_b' ESCAPE '/'",
                '"a%"',
                "r'a%'",
                "NULL",
                *(["'a\\\\'", "'a\\\\b'", "'/' ESCAPE '/'"] if self.hostile and self.chance(0.2) else []),
            )
        )

    # -- residuals

    def time_atom(self) -> Pair:
        """Intervals compared, or a moved time compared with a constant or a field."""
        if self.chance(0.4):
            return Pair.same(f"{self.pick(*SPANS)} {self.operator()} {self.pick(*SPANS)}")
        sides = [Pair.same(self.pick(*MOVED)), self.expression("moment", 1, safe=True)]
        self.random.shuffle(sides)
        return fill(f"{{}} {self.operator()} {{}}", *sides)

    def nested_atom(self) -> Pair:
        """A condition on an array or a map."""
        number, text = self.pick("1", "2L", "-7", "2.5e0", "100", "0e0"), quote(self.pick("a", "ab", "", "b", "it's"))
        template = self.pick(*NESTED_CONDITIONS)
        keys = KEYS[:3] if ".{2}" in template else KEYS
        return Pair.same(template.format(number, text, self.pick(*keys), self.pick("=", "<>", "<", ">=", "<=>")))

    def residual_atom(self) -> Pair:
        style = self.random.random()
        if self.chance(0.08):
            return self.time_atom()
        if self.chance(0.05):
            return self.cast_atom()
        if self.chance(0.05):
            text = self.field(self.pick("s", "z")) if self.chance(0.7) else self.expression("text", 1, safe=True)
            test = self.pick("{} RLIKE {}", "{} REGEXP {}", "regexp_like({}, {})", "NOT {} RLIKE {}")
            return fill(test, text, Pair.same(self.random.choice(REGEXES)))
        family = self.pick("number", "number", "number", "text", "day", "moment", "local", "truth", "bytes")
        if style < 0.05:
            families = self.random.sample(("day", "moment", "local"), 2)
            sides = [self.expression(each, 1, safe=True) for each in families]
            return fill(f"{{}} {self.operator()} {{}}", *sides)
        if style < 0.1:
            distinct = self.pick("{} IS DISTINCT FROM {}", "{} IS NOT DISTINCT FROM {}")
            return fill(distinct, *(self.expression(family, 1, safe=True) for _ in range(2)))
        if style < 0.6:
            op = self.operator()  # where an operand fails, <=> is null here and never null in Spark's try_ form
            safe = op == "<=>"
            return fill(f"{{}} {op} {{}}", self.expression(family, 2, safe=safe), self.expression(family, 1, safe=safe))
        if style < 0.68:
            return fill(
                "{} " + self.pick("", "NOT ") + "BETWEEN {} AND {}", *(self.expression(family, 1) for _ in range(3))
            )
        if style < 0.76:
            return fill("{} " + self.pick("", "NOT ") + "IN ({}, {})", *(self.expression(family, 1) for _ in range(3)))
        if style < 0.82:
            return fill(self.pick("{} IS NULL", "{} IS NOT NULL"), self.expression(family, 2, safe=True))
        if style < 0.9:
            return self.cast_string()
        return fill(
            self.pick(
                *(
                    "{} LIKE {}",
                    "startswith({}, {})",
                    "endswith({}, {})",
                    "contains({}, {})",
                    "{} NOT LIKE {}",
                    "{} ILIKE {}",
                ),
                *(
                    "{} NOT ILIKE {}",
                    "{} LIKE ANY ({}, '%B')",
                    "{} LIKE ALL ({}, '%a%', '_%')",
                    "{} NOT ILIKE ANY ({}, 'A')",
                ),
            ),
            self.expression("text", 1),
            self.pick(
                *map(
                    Pair.same,
                    ("'a%'", "'%b%'", "'a'", "NULL", *(["'a\\\\'"] if self.hostile and self.chance(0.1) else [])),
                )
            ),
        )

    def cast_string(self) -> Pair:
        """The string field of numerals compared with another type: most of its values cannot be cast."""
        op = self.pick("=", "<>", "<", "<=", ">", ">=")
        to, literal = self.pick(
            ("bigint", Pair.same(str(self.random.choice(SMALL)))),
            ("bigint", self.field("i")),
            ("double", Pair.same(self.pick("1.5", "1e2", "2.5", "0.0"))),
            ("double", self.field(self.pick("x", "m"))),
            ("boolean", self.literal("truth")),
            ("boolean", self.field("b")),
            ("date", self.literal("day")),
            ("date", self.field("d")),
            ("timestamp", self.literal("moment")),
            ("timestamp", self.field("t")),
            ("timestamp_ntz", self.pick(self.literal("local"), self.field("g"))),
        )
        return fill(f"{{}} {op} {{}}", Pair("r", f"try_cast(r AS {to})"), literal)

    def field(self, name: str) -> Pair:
        return Pair.same(name)

    def expression(self, family: str, depth: int, *, safe: bool = False) -> Pair:
        """An expression of the family; a `safe` one cannot fail for a row."""
        names = [name for name, its in FAMILIES.items() if its == family and name != "r"]
        if depth == 0 or self.chance(0.3):
            return self.literal(family) if self.chance(0.3) else self.field(self.random.choice(names))
        style = self.random.random()
        if style < 0.3:
            return self._choice(family, depth, names)
        make: Callable[[int, bool], Pair] = getattr(self, f"_{family}_expression")
        return make(depth, safe)

    def _choice(self, family: str, depth: int, names: list[str]) -> Pair:
        one = lambda: self.expression(family, depth - 1, safe=True)  # noqa: E731
        style = self.pick("coalesce", "if", "case", "nullif", "least", "greatest")
        if style == "if":
            return fill("if({}, {}, {})", self.box_atom(), one(), one())
        if style == "case" and self.hostile and self.chance(0.05):
            return fill("CASE WHEN NULL THEN {} WHEN {} THEN {} END", one(), self.box_atom(), one())
        if style == "case":
            return fill("CASE WHEN {} THEN {} WHEN {} THEN {} END", self.box_atom(), one(), self.box_atom(), one())
        if self.chance(0.2):
            return fill(
                self.pick("nvl2({}, {}, {})", "decode({}, {}, {})"), self.field(self.pick(*names)), one(), one()
            )
        return fill(style + "({}, {})", self.field(self.random.choice(names)), one())

    def _number_expression(self, depth: int, safe: bool) -> Pair:
        a, b = self.expression("number", depth - 1, safe=safe), self.expression("number", depth - 1, safe=safe)
        style = self.random.random()
        if style < 0.4 and not safe:
            op, function = self.pick(
                ("+", "try_add"), ("-", "try_subtract"), ("*", "try_multiply"), ("/", "try_divide"), ("%", "try_mod")
            )
            return fill(f"({{}} {op} {{}})", a, b, spark=f"{function}({{}}, {{}})")
        if style < 0.5:
            return fill(
                f"({{}} {self.pick('%', '/')} {self.pick('2', '3', '7', '2.5', '1.5e0', '-4')})",
                self.field(self.pick("j", "m", "n", "x", "w")),
            )
        if style < 0.6:
            text = lambda: self.expression("text", depth - 1, safe=safe)  # noqa: E731
            return fill(self.pick("length({})", "length(trim({}))", *TEXT_NUMBERS), text(), text())
        if style < 0.7:
            return fill(self.pick(*TIME_NUMBERS), self.expression(self.pick("day", "moment", "local"), depth - 1))
        if style < 0.8:
            name = self.pick("j", "x", "m", "n", "w")
            function = self.pick("abs", "floor", "ceil", "sign", "sqrt", "-", "negative")
            if name == "x" and function in ("floor", "ceil"):
                if safe:
                    function = "abs"
                else:
                    fits = ">= -9223372036854775808D AND (x < 9223372036854775808D OR isnan(x))"
                    return Pair(f"{function}(x)", f"(CASE WHEN x {fits} THEN {function}(x) END)")
            if name == "w" and function in ("abs", "-", "negative"):  # Spark rounds to 34 digits here, and we refuse
                name = "n"
            return fill(function + "({})", self.field(name))
        if style < 0.9:
            return fill(f"round({{}}, {self.pick(0, 1, 2, -1)})", self.field(self.pick("j", "m", "n", "x")))
        if style < 0.93:
            return Pair.same(self.random.choice(EXACT_NUMBERS))
        if style < 0.95:
            return fill(f"pmod({{}}, {self.pick('3', '-4', '2.5', '2e0')})", self.field(self.pick("j", "m", "x", "i")))
        to = self.pick("bigint", "int", "smallint", "tinyint", "float", "double", "decimal(12,3)", "decimal(38,2)")
        # Spark drops the cast of an int or a bigint to float below a cast to double.
        name = self.pick(*("jmnwrxhaft" if to == "float" else "ijmnwrxkhaft")) if not safe else "a"
        return Pair(f"CAST({name} AS {to})", f"try_cast({name} AS {to})")

    def _text_expression(self, depth: int, safe: bool) -> Pair:
        a, b = self.expression("text", depth - 1, safe=safe), self.expression("text", depth - 1, safe=safe)
        style = self.random.random()
        if style < 0.15:
            return fill(self.pick("concat({}, {})", "({} || {})"), a, b)
        if style < 0.45:
            return fill(self.pick(*TEXT_CALLS), a, b)
        if style < 0.6:
            return fill(self.pick("lower({})", "upper({})", "trim({})", "ltrim({})", "rtrim({})"), a)
        if style < 0.85:
            tail = self.pick("1", "2, 1", "-2", "0, 2", "-5, 4", "1, 0", "2, -1")
            return fill(f"{self.pick('substring', 'substr')}({{}}, {tail})", a)
        if style < 0.86:
            return fill(self.pick(*TIME_TEXTS), self.field(self.pick("d", "t", "g")))
        if style < 0.87:
            return fill(self.pick(*NUMBER_TEXTS), self.field(self.pick(*"ijkhaxyfmnw")))
        if style < 0.875:
            return Pair.same(self.pick(*FORMATS))
        if style < 0.885:
            return fill(self.pick("hex({})", "md5({})", "sha2({}, 256)"), self.field("v"))
        if style < 0.9:
            return fill(self.pick("hex({})", "bin({})", "conv({}, 10, -16)"), self.field(self.pick("i", "j", "k", "a")))
        return fill("CAST({} AS STRING)", self.field(self.pick(*"ibmwdntuxfkhag")))

    def _bytes_expression(self, depth: int, safe: bool) -> Pair:
        return fill(self.pick("CAST({} AS BINARY)", "unhex(hex({}))"), self.expression("text", depth - 1, safe=True))

    def _day_expression(self, depth: int, safe: bool) -> Pair:
        if self.chance(0.6):
            return fill(self.pick(*DAY_CALLS), self.expression("day", depth - 1, safe=safe))
        return fill("CAST({} AS DATE)", self.expression(self.pick("moment", "local"), depth - 1, safe=safe))

    def _moment_expression(self, depth: int, safe: bool) -> Pair:
        if self.chance(0.6):
            return fill(self.pick(*MOMENT_CALLS), self.expression("moment", depth - 1, safe=safe))
        return fill("CAST({} AS TIMESTAMP)", self.expression(self.pick("day", "local"), depth - 1, safe=safe))

    def _local_expression(self, depth: int, safe: bool) -> Pair:
        if self.chance(0.6):
            return fill(self.pick(*LOCAL_CALLS), self.expression("local", depth - 1, safe=safe))
        return fill("CAST({} AS TIMESTAMP_NTZ)", self.expression(self.pick("day", "moment"), depth - 1, safe=safe))

    def _truth_expression(self, depth: int, safe: bool) -> Pair:
        if self.chance(0.2):
            return fill("isnan({})", self.field(self.pick("x", "y", "f")))
        if self.chance(0.1):
            return Pair.same(f"({self.random.choice(NUMBER_TESTS)})")
        if self.chance(0.3):
            return fill("CAST({} AS BOOLEAN)", self.field(self.pick("j", "m", "x")))
        return fill("({})", self.box_atom())


FAMILIES = {
    **dict.fromkeys("ijxymnwkhaf", "number"),
    **dict.fromkeys("bc", "truth"),
    **dict.fromkeys("szr", "text"),
    **dict.fromkeys("de", "day"),
    **dict.fromkeys("tu", "moment"),
    "v": "bytes",
    "g": "local",
}


TOKENS = re.split(
    r"\s+",
    """AND OR NOT IN BETWEEN LIKE IS NULL TRUE FALSE CASE WHEN THEN ELSE END CAST AS bigint DATE TIMESTAMP INTERVAL
    ESCAPE SYMMETRIC ALL ANY EXISTS DISTINCT FROM DIV RLIKE ILIKE SELECT WITH OVER COLLATE AT ( ) , = <> < <= > >= <=> +
    - * / % || | & ^ ~ ! . ; -- /* */ == != @ # $ { } ? : :: ::bigint i x s b d t m 1 2.5 1e0 'a' 'true' '2020-01-01'
    nosuch length( abs( rand() i.x x[1] 1L 2BD 3Y "a" `s` DESC ASC""",
)


def mutate(text: str, source: random.Random) -> str:
    """The text with a few of its tokens dropped, doubled, moved or replaced."""
    tokens = re.findall(r"'(?:[^'\\]|\\.|'')*'|\w+|<=>|[<>!=]=|<>|\|\||\s+|.", text, re.DOTALL)
    for _ in range(source.randint(1, 2)):
        place = source.randrange(len(tokens))
        act = source.randrange(4)
        if act == 0:
            del tokens[place]
        elif act == 1:
            tokens.insert(place, f" {source.choice(TOKENS)} ")
        elif act == 2:
            tokens[place] = f" {source.choice(TOKENS)} "
        else:
            other = source.randrange(len(tokens))
            tokens[place], tokens[other] = tokens[other], tokens[place]
        if not tokens:
            break
    return "".join(tokens)


def predicates(depth: int = 2) -> st.SearchStrategy[Pair]:
    """Random predicates over SCHEMA."""
    return st.randoms(use_true_random=False).map(lambda source: Maker(source).predicate(depth))


def rows(n: int) -> st.SearchStrategy[dict[str, list[Any]]]:
    """Random columns over SCHEMA."""
    return st.randoms(use_true_random=False).map(lambda source: Maker(source).rows(n))
