from __future__ import annotations

from vedette.errors import QueryError


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
