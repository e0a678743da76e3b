"""Strings as numbers: the expected values are what Spark casts them to."""

from __future__ import annotations

import math
import time

import pytest

from vedette import QuerySet
from vedette.data.schema import Type
from vedette.errors import QueryError
from vedette.language.numerals import decimal_of, double_of, integer_of
from vedette.language.times import parse_date, parse_timestamp

MONEY = Type("decimal", 10, 2)
NINES, ZEROS = "9" * 4301, "0" * 4301


@pytest.mark.parametrize(
    ("text", "unscaled"),
    [
        ("\u0661\u0662\u0663", 12300),
        ("\uff11\uff12", 1200),
        ("1e\u0662", 10000),
        ("\U0001d7d9", None),
        ("\u00b2", None),
        ("1e-999999999", 0),
        ("1e-2147483647", 0),
        ("1e-2147483648", None),
        ("1.5e-2147483647", None),
        ("1e999999999", None),
        ("0e999999999", 0),
        ("0e2147483648", None),
        ("1e0000000000005", 10000000),
        ("1e" + ZEROS + "5", 10000000),
        (ZEROS + "1", 100),
        (NINES, None),
        ("0." + NINES, 100),
        ("0." + ZEROS + "1", 0),
        ("1" + ZEROS + "e-4301", 100),
        ("1." + ZEROS + "e4301", None),
        ("-0.005", -1),
        ("0.00499" + NINES, 0),
        ("99999999.994", 9999999999),
        ("99999999.995", None),
        ("\x7f1", None),
        ("\x1f1\t", 100),
        *((text, None) for text in ("", ".", "+", "e5", "1e", "1e+", "--1", "1_000", "1 1", "0x1", "NaN")),
    ],
)
def test_a_string_becomes_the_decimal_that_spark_makes_of_it(text: str, unscaled: int | None) -> None:
    assert decimal_of(text, MONEY) == unscaled


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (NINES, math.inf),
        (ZEROS + "1", 1.0),
        ("1e99999999999", math.inf),
        ("0x1p3", 8.0),
        ("0X.8P1d", 1.0),
        ("-0x1p99999", -math.inf),
        ("1.5d", 1.5),
        ("1F", 1.0),
        ("1dd", None),
        ("+Infinity", math.inf),
        (" -inf ", -math.inf),
        ("Infinityd", None),
        ("\x7f1", None),
        ("1_000", None),
        ("\u0661", None),
        ("+nan", None),
    ],
)
def test_a_string_becomes_the_double_that_spark_makes_of_it(text: str, value: float | None) -> None:
    assert double_of(text) == value


@pytest.mark.parametrize("text", ["NaN", "nan", "nan ", "+NaN", "-NaN"])
def test_a_string_becomes_nan_as_in_spark(text: str) -> None:
    assert math.isnan(double_of(text) or 0)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (ZEROS + "7", 7),
        (NINES, None),
        ("-" + NINES, None),
        ("\x7f-7", -7),
        ("\u0667", None),
        ("1.5", None),
        ("+", None),
    ],
)
def test_a_string_becomes_the_integer_that_spark_makes_of_it(text: str, value: int | None) -> None:
    assert integer_of(text, 64) == value


@pytest.mark.parametrize("tail", ["x", "e", ".x", "e5x"])
def test_a_long_string_that_is_not_a_number_fails_fast(tail: str) -> None:
    began = time.perf_counter()
    for digit in "09":
        text = digit * 1_000_000 + tail
        assert (integer_of(text, 64), double_of(text), decimal_of(text, MONEY)) == (None, None, None)
    assert time.perf_counter() - began < 5


def test_dates_and_zones_end_where_those_of_spark_end() -> None:
    assert parse_date("5881580-07-11") == 2**31 - 1
    assert parse_date("5881580-07-12") is None
    assert parse_timestamp("2020-01-01T1:2:3 PST", "UTC") == 1577869323000000
    assert parse_timestamp("2020-07-01T1:2:3 MST", "UTC") == parse_timestamp("2020-07-01T1:2:3-07:00", "UTC")
    assert parse_timestamp("2020-01-01T1:2:3 localtime", "UTC") is None


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("s > 5", [1]),
        ("s > 5e0", [0, 1]),
        ("s > m", [0, 1]),
        ("CAST(s AS decimal(38,0)) > 5", [1]),
        ("try_cast(s AS bigint) IS NULL", [0, 2]),
        ("s = 'abc'", [2]),
    ],
)
def test_a_row_with_thousands_of_digits_does_not_stop_the_batch(text: str, kept: list[int]) -> None:
    queries = QuerySet("s string, m decimal(10,2)")
    queries.add("q", text)

    matches = queries.match({"s": [NINES, ZEROS + "7", "abc"], "m": [None if "m" not in text else 5] * 3})

    assert matches.rows.tolist() == kept


@pytest.mark.parametrize("number", [NINES, NINES + "L", "0." + NINES, NINES + ".5", "1." + ZEROS, NINES + "BD"])
@pytest.mark.parametrize("template", ["i < {}", "x = {}", "i + {} > 1", "({} IS NULL) OR x > 1", "i IN (1, {})"])
def test_a_literal_of_thousands_of_digits_is_refused_in_a_sentence(number: str, template: str) -> None:
    queries = QuerySet("i bigint, x double")
    with pytest.raises(QueryError, match=r"more than 38 digits|beyond 64 bits") as refused:
        queries.add("q", template.format(number))
    assert len(str(refused.value)) < 2000


@pytest.mark.parametrize("number", ["7", "7L", "7.5", "7.5BD", "7e0"])
def test_leading_zeros_of_a_literal_do_not_count(number: str) -> None:
    texts = ["i <= {} AND x >= {}", "i + {} > 14", "x * {} > 50"]
    plain, padded = QuerySet("i bigint, x double"), QuerySet("i bigint, x double")
    plain.add_many([1, 2, 3], [text.format(number, number) for text in texts])
    padded.add_many([1, 2, 3], [text.format(ZEROS + number, ZEROS + number) for text in texts])
    rows = {"i": [7, 8], "x": [7.5, 7.5]}

    assert padded.match(rows).to_arrow() == plain.match(rows).to_arrow()
