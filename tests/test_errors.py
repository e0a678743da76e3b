from __future__ import annotations

import copy
import inspect
import pickle

import pytest

from vedette import errors
from vedette.errors import QueryError, VedetteError, closest, shown

HUGE = "x" * 200_000


def test_a_query_error_points_at_the_place():
    error = QueryError("unknown field 'tmp'", "temp > 30 AND tmp < 50", 14, 17)

    assert str(error) == "unknown field 'tmp'\n  temp > 30 AND tmp < 50\n                ^^^"
    assert (error.position, error.end) == (14, 17)


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


KINDS = [each for _, each in inspect.getmembers(errors, inspect.isclass) if issubclass(each, VedetteError)]


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_says_what_it_is_about(kind):
    about = {"option": "late", "field": "price", "query": "hot"}

    error = kind("is 'drop' or 'apply'; got 'no'", **about)

    assert {name: getattr(error, name) for name in about} == about
    assert str(error) == "late is 'drop' or 'apply'; got 'no'"
    assert [getattr(kind("bad"), name) for name in (*about, "position")] == [None] * 4


@pytest.mark.parametrize("kind", KINDS)
def test_context_is_added_to_an_error_without_editing_its_message(kind):
    error = kind("is negative", option="dwell", field="ts").within("line 3").within("alerts.csv")

    assert str(error.with_option("--dwell")) == "alerts.csv: line 3: --dwell is negative"
    assert str(error.in_query("hot")) == "query 'hot': alerts.csv: line 3: dwell is negative"
    assert (type(error), error.option, error.field, error.in_query("hot").query) == (kind, "dwell", "ts", "hot")
    assert str(kind("bad").with_option("--dwell")) == "bad"


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda error: pickle.loads(pickle.dumps(error))])
@pytest.mark.parametrize("kind", KINDS)
def test_an_error_is_the_same_after_pickling(kind, copied):
    error = kind("x" * 3000, option="late", field="price").in_query("hot").within("alerts.csv").with_option("--late")
    if hasattr(error, "is_retryable"):
        error.is_retryable = True
    if hasattr(error, "broken"):
        error.broken = [("a", QueryError("bad", "x >", 3, 4))]
    if hasattr(error, "text"):
        error = error.in_text("y" * 5000, 4000, 4001)

    same = copied(error)

    assert (type(same), str(same), same.args) == (type(error), str(error), error.args)
    facts, known = dict(vars(same)), dict(vars(error))
    assert str(facts.pop("broken", "")) == str(known.pop("broken", ""))
    assert facts == known


@pytest.mark.parametrize("kind", KINDS)
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
