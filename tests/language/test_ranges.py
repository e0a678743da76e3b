"""Ranges of field values against counting: the cast of every value near a constant, compared with it."""

from __future__ import annotations

import datetime as dt
from fractions import Fraction
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import vedette as vd
from vedette.data.boxes import CLOSED, UNBOUNDED
from vedette.data.schema import INTEGER_BITS, Type
from vedette.language.ranges import (
    Cut,
    after_prefix,
    decimal_in_doubles,
    integers_in_decimals,
    integers_in_doubles,
    integers_in_integers,
    limits_of,
)
from vedette.language.times import Zone, days_of, parse_date, parse_timestamp

COMPARE = {
    "=": lambda a, b: a == b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def holds(cut: Cut, op: str, value: int) -> bool:
    band = cut.band(op)
    above = (
        band.low_ends[0] == UNBOUNDED or value > band.lows[0] or (band.low_ends[0] == CLOSED and value == band.lows[0])
    )
    below = (
        band.high_ends[0] == UNBOUNDED
        or value < band.highs[0]
        or (band.high_ends[0] == CLOSED and value == band.highs[0])
    )
    return bool(band.alive[0] and above and below)


@given(
    st.one_of(st.integers(-(2**64), 2**64).map(float), st.floats(allow_nan=False)),
    st.integers(-1100, 1100),
    st.sampled_from(sorted(COMPARE)),
    st.sampled_from(sorted(INTEGER_BITS)),
)
def test_an_integer_is_compared_with_a_double_as_doubles(constant: float, shift: int, op: str, name: str) -> None:
    near = 0 if not np.isfinite(constant) else int(constant)
    least, greatest = limits_of(Type(name))
    value = min(max(near + shift, least), greatest)

    assert holds(integers_in_doubles(np.array([constant]), Type(name)), op, value) == COMPARE[op](
        float(value), constant
    )


@given(
    st.integers(-(2**63), 2**63 - 1) | st.integers(-200, 200),
    st.integers(-3, 3),
    st.sampled_from(sorted(COMPARE)),
    st.sampled_from(sorted(INTEGER_BITS)),
)
def test_an_integer_is_compared_with_one_beyond_its_type(constant: int, shift: int, op: str, name: str) -> None:
    least, greatest = limits_of(Type(name))
    value = min(max(constant + shift, least), greatest)

    assert holds(integers_in_integers(np.array([constant]), Type(name)), op, value) == COMPARE[op](value, constant)


def test_nan_is_above_every_bigint() -> None:
    cut = integers_in_doubles(np.array([float("nan")]), Type("bigint"))

    assert holds(cut, "<", 2**63 - 1)
    assert not holds(cut, "=", 2**63 - 1)
    assert not holds(cut, ">=", 2**63 - 1)


@given(
    st.floats(-1e40, 1e40) | st.integers(-(10**6), 10**6).map(lambda n: n / 100),
    st.integers(-3, 3),
    st.sampled_from(sorted(COMPARE)),
    st.sampled_from([(10, 2), (15, 0), (18, 6), (38, 10), (38, 38)]),
)
def test_a_decimal_is_compared_with_a_double_as_doubles(
    constant: float, shift: int, op: str, size: tuple[int, int]
) -> None:
    field = Type("decimal", *size)
    top = 10**field.precision - 1
    value = min(max(int(Fraction(constant) * 10**field.scale) + shift, -top), top)

    found = holds(decimal_in_doubles(np.array([constant]), field), op, value)

    assert found == COMPARE[op](float(Fraction(value, 10**field.scale)), constant)


@given(
    st.integers(-(10**22), 10**22),
    st.integers(0, 18),
    st.integers(-2, 2),
    st.sampled_from(sorted(COMPARE)),
    st.sampled_from([Type("bigint"), Type("decimal", 10, 2), Type("decimal", 18, 6)]),
)
def test_numbers_with_a_point_are_compared_exactly(unscaled: int, scale: int, shift: int, op: str, field: Type) -> None:
    digits = str(abs(unscaled)).rjust(scale + 1, "0")
    raw = f"{digits[: len(digits) - scale]}.{digits[len(digits) - scale :]}" if scale else f"{digits}."
    places = field.scale if field.name == "decimal" else 0
    bottom, top = (
        (-(2**63), 2**63 - 1) if field.name == "bigint" else (1 - 10**field.precision, 10**field.precision - 1)
    )
    value = min(max(int(Fraction(unscaled, 10**scale) * 10**places) + shift, bottom), top)

    found = holds(integers_in_decimals([raw], unscaled < 0, field, exact=False), op, value)

    assert found == COMPARE[op](Fraction(value, 10**places), Fraction(unscaled, 10**scale))


@given(st.text(max_size=4), st.text(max_size=3))
def test_what_begins_with_a_prefix_lies_before_the_next_one(prefix: str, more: str) -> None:
    after = after_prefix(prefix)

    assert after is None or prefix + more < after
    assert after is None or not after.startswith(prefix)


def test_the_next_prefix_passes_over_surrogates_and_the_last_character() -> None:
    assert after_prefix("a\ud7ff") == "a\ue000"
    assert after_prefix("a\U0010ffff\U0010ffff") == "b"
    assert after_prefix("\U0010ffff") is None
    assert after_prefix("") is None


@given(st.dates())
def test_days_count_as_the_calendar_does(date: dt.date) -> None:
    assert days_of(date.year, date.month, date.day) == (date - dt.date(1970, 1, 1)).days
    assert parse_date(date.isoformat()) == (date - dt.date(1970, 1, 1)).days


@given(
    st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2100, 1, 1)),
    st.sampled_from(["UTC", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe"]),
)
def test_timestamps_are_read_in_their_zone(moment: dt.datetime, zone: str) -> None:
    instant = (moment.replace(tzinfo=ZoneInfo(zone)) - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(
        microseconds=1
    )

    assert parse_timestamp(moment.isoformat(" "), zone) == instant
    assert (
        parse_timestamp(
            f"{moment.isoformat()} {zone}" if moment.microsecond else f"{moment:%Y-%m-%dT%H:%M:%S} {zone}", "UTC"
        )
        == instant
    )


@pytest.mark.parametrize(
    "text",
    ["", "2020-13-01", "2020-02-30", "10:00", "T10:00", "2020-01-01 25:00", "2020-01-01 1:1:61", "20-01-01", "x"],
)
def test_what_spark_cannot_read_as_a_timestamp_is_none(text: str) -> None:
    assert parse_timestamp(text, "UTC") is None


def test_years_beyond_the_calendar_are_folded_into_it() -> None:
    zone = Zone("America/New_York")
    far = days_of(12_024, 7, 1)
    assert far is not None
    assert zone.midnight(far) - far * 86_400_000_000 == 4 * 3_600_000_000  # summer time, as in 2024


def test_a_long_decimal_of_a_list_is_rounded_to_the_type_of_the_whole_list() -> None:
    queries = vd.QuerySet("k int")
    queries.add("with a bigint", "k IN (1.0000000000000000000000000001, 9223372036854775295)")
    queries.add("with an int", "k IN (1.0000000000000000000000000001, 5)")

    assert queries.match_one({"k": 1}) == ["with a bigint"]  # as decimal(38,18)
    assert queries.match_one({"k": 5}) == ["with an int"]
