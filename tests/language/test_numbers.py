"""Numbers of all types, literals, functions and casts give the values of Spark, over hostile rows."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from language.spark_columns import compare

import vedette as vd
from vedette.data.schema import Schema

SCHEMA = Schema.parse(
    "y tinyint, h smallint, i int, l bigint, f float, x double, m decimal(10,2), w decimal(38,10), b boolean, "
    "s string, d date, t timestamp"
)
_BOTH = [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, 0.1, 1e-3, 9.999e-4, 1e7, 9999999.0, -0.7]
_BOTH += [float("nan"), float("inf"), float("-inf")]
_DOUBLES = [*_BOTH, 1e16, 1e22, 123456.789, 3.141592653589793, 5e-324, 1.7976931348623157e308, 1e18]
_FLOATS = [*_BOTH, 123456.79, 3.1415927, 1.401298464324817e-45, 3.4028234663852886e38, 16777216.0]
_TEXTS = [
    "0",
    "1",
    "-1",
    " 7 ",
    "1.5",
    "127",
    "128",
    "1e2",
    "NaN",
    "abc",
    "",
    "0.1",
    "1.00000005960464477540",
    "ff",
    "-1F",
]
_WIDE = [
    "0",
    "1.5",
    "-2.5",
    "9007199254740993",
    "9223372036854775808",
    "16777217.0000000001",
    "16777217",
    "0.0000000001",
]
POOLS: dict[str, list[Any]] = {
    "y": [0, 1, -1, 2, 5, 7, 10, 64, 127, -128, -127, 100],
    "h": [0, 1, -1, 2, 300, 32767, -32768, 128, -129, 1000],
    "i": [0, 1, -1, 2, 5, 7, 2**31 - 1, -(2**31), 65536, 20, 21, 100, -7, 2**30],
    "l": [0, 1, -1, 2, 5, 7, 2**63 - 1, -(2**63), 2**53 + 1, 2**31, 2**62, 20, 255],
    "f": _FLOATS,
    "x": _DOUBLES,
    "m": [Decimal(each) for each in ("0.00", "1.00", "-1.50", "2.50", "0.10", "99999999.99", "-99999999.99", "127.50")],
    "w": [Decimal(each) for each in (*_WIDE, "9" * 28 + "." + "9" * 10)],
    "b": [True, False],
    "s": _TEXTS,
    "d": [dt.date(1970, 1, 1), dt.date(2024, 2, 29), dt.date(9999, 12, 31), dt.date(1, 1, 1)],
    "t": [
        dt.datetime(1970, 1, 1, tzinfo=dt.UTC),
        dt.datetime(1969, 12, 31, 23, 59, 59, 999999, dt.UTC),
        dt.datetime(2024, 2, 29, 12, 30, 0, 120000, dt.UTC),
        dt.datetime(9999, 12, 31, 23, 59, 59, tzinfo=dt.UTC),
        dt.datetime(1, 1, 1, tzinfo=dt.UTC),
    ],
}
N_ROWS = 26
ROWS = {name: [None, *(pool[k % len(pool)] for k in range(N_ROWS))] for name, pool in POOLS.items()}
NUMBERS = ["y", "h", "i", "l", "f", "x", "m", "w"]
INTEGERS = NUMBERS[:4]
TYPES = {
    **{"y": "tinyint", "h": "smallint", "i": "int", "l": "bigint", "f": "float", "x": "double", "m": "decimal(10,2)"},
    **{"w": "decimal(38,10)", "b": "boolean", "s": "string", "d": "date", "t": "timestamp"},
}


def same(*texts: str) -> list[tuple[str, str]]:
    return [(text, text) for text in texts]


def check(spark: Any, pairs: list[tuple[str, str]], **options: Any) -> None:
    found = compare(spark, pairs, SCHEMA, ROWS, **options)
    assert not found, f"{len(found)} of {len(pairs)} differ\n" + "\n".join(found[:30])


def test_arithmetic_has_the_types_and_overflows_of_spark(spark: Any) -> None:
    functions = {"+": "try_add", "-": "try_subtract", "*": "try_multiply", "/": "try_divide", "%": "try_mod"}
    operands = [*NUMBERS, "7Y", "-7S", "3", "2L", "1.5F", "2.5", "1e1", "'2'"]
    pairs = [
        (f"{a} {op} {b}", f"{function}({a}, {b})")
        for a, b in product(operands, NUMBERS)
        for op, function in functions.items()
        if a != b
    ]
    pairs += [(f"{a} {op} {a}", f"{functions[op]}({a}, {a})") for a in NUMBERS for op in "+-*/"]
    pairs += same(*(f"pmod({a}, {b})" for a in NUMBERS for b in ("3", "-3Y", "-4S", "2.5", "1.5F", "2e0")))
    pairs += same(*(f"{a} DIV 3" for a in INTEGERS))
    check(spark, pairs)


def test_comparisons_have_the_types_of_spark(spark: Any) -> None:
    literals = "127Y -128Y 300S -32768S 2147483648 1.5F 0.1F 0.1 1e-1 '127' 128"
    operands = [*NUMBERS, *literals.split()]
    pairs = same(*(f"{a} {op} {b}" for a, b in product(NUMBERS, operands) for op in ("=", "<", "<=>") if a != b))
    pairs += same(*(f"{a} IN (1Y, 300S, 0.5F, {b})" for a, b in product(NUMBERS, ("1", "2.5", "1e0", "NULL"))))
    pairs += same(*(f"coalesce({a}, {b})" for a, b in product(NUMBERS, NUMBERS)))
    pairs += same(*(f"greatest({a}, {b})" for a, b in product(NUMBERS, NUMBERS)))
    check(spark, pairs)


def crossed(template: str, *choices: str) -> list[str]:
    """The template with each combination of the choices, which are lists separated by spaces."""
    return [template.format(*each) for each in product(*(words.split() for words in choices))]


ALL = "y h i l f x m w"
WHOLE = "y h i l"
EXACT = [
    *crossed("{}({})", "sqrt sign isnan radians degrees rint", f"{ALL}"),
    *crossed("{}({})", "round bround positive", ALL),
    *crossed("{}({})", "floor ceil", f"{WHOLE} m w"),
    *crossed("{}(x % 1000, {})", "floor ceil", "0 1 2 3 -1 -2"),
    *crossed("{}({}, {})", "floor ceil", f"{WHOLE} m", "0 1 -1"),
    *crossed("{}({}, {})", "round bround", "f x m w", "0 1 2 5 20 -1 -3"),
    *crossed("{}({} % 50, {})", "round bround", WHOLE, "1 -1 -2 -3 -20"),
    *("pi()", "e()", "x < pi()", "x * e()", "f = pi()", "i < e()"),
    *crossed("nanvl({}, {})", "f x i m", "f x i m"),
    *crossed("factorial({})", "y h i 5 -1 NULL 20L 2.9 '3'"),
    *crossed("width_bucket({}, {}, {})", "x f i", "0,10 10,0 1.5,1.5 x,5 -1,x", "5 0 1L l"),
    *crossed("{} {} {}", WHOLE, "& | ^", f"{WHOLE} 7 3Y 5L"),
    *crossed("~{}", WHOLE),
    *crossed("{} {} {}", f"{WHOLE} 7 7Y 1.5 '6'", "<< >> >>>", "y h i 2 33 -1 2L 2.5"),
    *("i + 1L << 2 & 7 ^ 3 | 1", "l | 1 ^ 2 & 3 << 1 >> 1", "~i & -7 | 2", "1 | 2 ^ 3 & i", "i >>> 1 >> 1 << 1"),
    *crossed("{}({}, {})", "shiftleft shiftright shiftrightunsigned", "i l y", "1 y i '3'"),
    *crossed("bit_count({})", f"{WHOLE} b TRUE 5 NULL"),
    *crossed("getbit({})", "y,7 h,15 i,31 l,63 l,0 i,pmod(i,32)"),
    *crossed("hex({})", f"{WHOLE} s '\u00e9\U0001f600' NULL"),
    *crossed("bin({})", WHOLE),
    *crossed("conv({}, {})", "s 'ff' '-15' 'zz9' i '-1' '' '-0'", "10,16 16,10 36,2 10,-10 16,-36 1,10 10,37 2,8"),
    *("nvl2(i, y, h)", "nvl2(s, 1, 2.5)", "nvl2(x, 'a', s)", "nvl2(NULL, 1, 2)"),
    *("equal_null(i, y)", "equal_null(s, NULL)", "equal_null(x, f)"),
    *("decode(y, 1, 'one', NULL, 'none', 'other')", "decode(s, '0', 1, '1', 2.5)", "decode(i, y, x, h, f)"),
    *("decode(NULL, NULL, 1)", "(x > 1) IS UNKNOWN", "b IS NOT UNKNOWN", "(i = y) IS UNKNOWN", "i IS UNKNOWN"),
    *("-128Y", "-32768S", "127Y", "1.5F", "-0.1F", "1e10F", ".5F", "1F", "16777217F", "3.4028234e38F"),
    *(
        "round(x, 5000)",
        "floor(abs(m), -5000)",
        "1.00000005960464477540F",
        "7S + 7S",
        "abs(f)",
        "-f",
        "abs(x)",
        "-x",
        "negative(f)",
    ),
]
ONE_ARGUMENT = "exp expm1 ln log log2 log10 log1p cbrt sin cos tan asin acos atan sinh cosh tanh"
NEAR = [
    *crossed("{}({})", ONE_ARGUMENT, "f x i m"),
    *crossed("{}({})", "asinh acosh atanh", "f x i"),
    *crossed("{}({}, {})", "power pow atan2 hypot log", "f x i m", "f x i m"),
]


@pytest.mark.fast
def test_functions_of_numbers_give_the_values_of_spark(spark: Any) -> None:
    check(spark, same(*EXACT))


@pytest.mark.fast
def test_functions_of_mathematics_differ_by_at_most_the_last_bit(spark: Any) -> None:
    check(spark, same(*NEAR), ulps=1)
    check(spark, same(*crossed("{}({})", "cot sec csc", "f x i m")), ulps=2)  # which divide by such a result


CASTS = [
    (f"CAST({a} AS {to})", f"try_cast({a} AS {to})")
    for a in TYPES
    for to in (*TYPES.values(), "decimal(3,3)", "decimal(38,0)", "decimal(20,5)")
]


@pytest.mark.fast
@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_casts_give_the_values_of_spark(spark: Any, zone: str) -> None:
    pairs = CASTS if zone == "UTC" else [pair for pair in CASTS if "t AS" in pair[0] or "timestamp" in pair[0]]
    check(spark, pairs, zone=zone)


@pytest.mark.fast
def test_strings_are_made_of_numbers_as_in_spark(spark: Any) -> None:
    operands = [*TYPES, "1.50", "7Y", "1.5F", "0.1F", "1e10", "1e-5", "5", "DATE '2024-02-29'"]
    check(spark, same(*(f"concat({a}, '!')" for a in operands), *(f"length({a})" for a in operands)))


REFUSED = [
    *(
        "y = 128Y",
        "h = 32768S",
        "f = 1e39F",
        "f = 3.4028235e38F",
        "x = 1.5Y",
        "x = 1.5S",
        "x = 1e2S",
        "i = 1e2L",
    ),
    *("x & 1 = 1", "m | 1 = 1", "b ^ b", "~x = 1", "~s = 1", "getbit(x, 2) = 1"),
    *("sin(b) = 1", "sin(d) = 1", "power(x) = 1", "pi(1) = 1", "conv(s, 10) = '1'"),
    *("decode(i, 1) = 1", "CAST(d AS int) = 1", "CAST(b AS timestamp) = t", "CAST(d AS double) = 1"),
    *("CAST(i AS date) = d", "round(x, i) = 1", "nanvl(b, x) = 1"),
    *(
        "bit_count(x) = 1",
        "floor(x, 2Y) = 1",
        "x = 1.7976931348623158e308",
        "shiftleft(b, 1) = 1",
        "width_bucket(b, 0, 1, 2) = 1",
    ),
]


def test_what_spark_refuses_is_refused(spark: Any) -> None:
    found = compare(spark, same(*REFUSED), SCHEMA, ROWS)
    assert not found, "\n".join(found)


def test_saved_sets_keep_operators_and_functions_of_numbers(tmp_path: Path) -> None:
    texts = [f"({text}) IS NOT NULL" for text in EXACT]
    queries = vd.QuerySet(SCHEMA)
    queries.add_many(texts, texts)
    queries.save(tmp_path / "set")
    row = {name: column[5] for name, column in ROWS.items()}

    assert sorted(vd.QuerySet.load(tmp_path / "set").match_one(row)) == sorted(queries.match_one(row))
