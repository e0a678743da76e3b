from __future__ import annotations

import inspect

import pytest

from vedette import errors
from vedette.errors import QueryError, VedetteError, closest, shown

HUGE = "x" * 200_000


def test_a_query_error_points_at_the_place():
    error = QueryError("unknown field 'tmp'", "temp > 30 AND tmp < 50", 14, 17)

    assert str(error) == "unknown field 'tmp'\n  temp > 30 AND tmp < 50\n                ^^^"


def test_a_query_error_names_its_query_and_keeps_its_place():
    error = QueryError("bad", "x >", 3, 4).in_query("hot")

    assert str(error) == "query 'hot': bad\n  x >\n     ^"


def test_a_long_text_is_cut_around_the_place():
    text = "x > 1 AND " * 50 + "y > 2"
    shown = str(QueryError("unknown field 'y'", text, 500, 501)).splitlines()

    assert len(shown[1]) <= 122
    assert shown[1][shown[2].index("^")] == "y"


def test_a_place_in_a_later_line_is_shown_in_that_line():
    assert str(QueryError("bad", "x > 1\nAND tmp < 2", 10, 13)).splitlines()[1:] == ["  AND tmp < 2", "      ^^^"]


@pytest.mark.parametrize(
    "kind", [each for _, each in inspect.getmembers(errors, inspect.isclass) if issubclass(each, VedetteError)]
)
def test_no_error_repeats_a_huge_input(kind):
    assert len(str(kind(f"unknown field {HUGE!r}; did you mean 'price'?"))) < 2500
    assert str(kind(f"unknown field {HUGE!r}; did you mean 'price'?")).endswith("did you mean 'price'?")


@pytest.mark.parametrize("place", [(), (100_000,), (100_000, 199_999)])
@pytest.mark.parametrize("text", [HUGE, "\n" * 200_000, "x\n" + HUGE])
def test_a_query_error_shortens_reason_text_and_id(text, place):
    error = QueryError(f"bad {HUGE}", text, *place).in_query(HUGE)

    assert len(str(error)) < 2500


def test_values_are_shown_shortened():
    assert len(shown(HUGE)) == 80
    assert shown(10**5000) == "an integer of 16,610 bits"
    assert shown("IBM") == "'IBM'"


def test_a_huge_name_is_not_searched_for_among_the_known_ones():
    assert closest(HUGE, ["x" * 199_999]) is None
