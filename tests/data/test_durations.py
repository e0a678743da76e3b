"""Durations as people write them, hostile ones included."""

from __future__ import annotations

import pytest

from vedette.data.durations import read_duration
from vedette.errors import QueryError


def test_pieces_of_a_duration_add_up():
    assert read_duration("1 hour 30 minutes", "dwell", "timestamp") == 5_400_000_000


@pytest.mark.parametrize("text", ["9" * 400 + " s", "9" * 5000 + " seconds", "1" + "0" * 30 + " weeks"])
def test_a_duration_beyond_all_bounds_is_refused_in_a_short_sentence(text):
    with pytest.raises(QueryError, match="a duration of 3,000 years at most") as refused:
        read_duration(text, "within", "timestamp")

    assert len(str(refused.value)) < 300


@pytest.mark.parametrize("time_type", ["double", "bigint"])
@pytest.mark.parametrize("value", [10**400, float("inf"), float("nan"), -1])
def test_a_number_beyond_all_bounds_is_refused(value, time_type):
    with pytest.raises(QueryError, match="number above 0"):
        read_duration(value, "within", time_type)


@pytest.mark.parametrize("text", ["--1 second", "- -1 second", "-" * 5000 + "1 second"])
def test_a_duration_has_at_most_one_sign(text):
    with pytest.raises(QueryError, match="must be a duration such as"):
        read_duration(text, "dwell", "timestamp")
