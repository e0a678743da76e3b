"""A forced index answers for every group that it suits; where it does not, `explain` says why."""

from __future__ import annotations

import numpy as np
import pytest

import vedette as vd
from vedette.indexes.index import TooLargeError
from vedette.indexes.names import INDEXES
from vedette.papers.constructs.construct_rectangles import VCR

RANDOM = np.random.default_rng(11)
KEYS = np.array([f"k{i}" for i in range(20)])
SCHEMA = "key string, x double, y double, z double"


def ranges(n, width=0.05):
    lows = RANDOM.random(n)
    return lows, lows + width


def query_set(index, *groups):
    """A set of boxes in groups, each given as its number of boxes and its fields."""
    queries = vd.QuerySet(SCHEMA, index=index)
    for n, *fields in groups:
        keys = RANDOM.choice(KEYS, n)
        start = len(queries)
        bounds = {name: (keys, keys) if name == "key" else ranges(n) for name in fields}
        queries.add_boxes(np.arange(start, start + n), bounds)
    return queries


def indexes_by_fields(queries):
    groups = [group for part in queries._compiled().compiled for group in part.groups]
    return {tuple(sorted(group.fields)): type(group.index) for group in groups}


@pytest.mark.parametrize(
    ("index", "fields", "words"),
    [
        ("VCR", "x", "VCR was requested but supports 2 fields; this group has 1; "),
        ("VCR", "xyz", "VCR was requested but supports 2 fields; this group has 3; "),
        ("SCI", "xy", "SCI was requested but supports 1 field; this group has 2; "),
        ("Verified", "x", "Verified was requested but supports 2 fields or more; this group has 1; "),
        ("Keyed", "x", "Keyed was requested but supports 2 fields; this group has 1; "),
        ("Keyed", "xy", "Keyed was requested but needs a selective field with one value in every box; "),
        ("Lists", "xy", "Lists was requested but needs a single field, and boxes short enough to be listed in every "),
        ("Quadtree", ("key", "x"), "Quadtree was requested but needs two fields on which boxes are ranges, and not "),
    ],
)
def test_the_plan_says_why_an_index_does_not_fit(index, fields, words):
    reported = query_set(index, (500, *fields)).explain()

    assert f" bytes per box: {words}" in reported
    assert "about" in reported.split(words)[1]  # and then why another one does


@pytest.mark.parametrize("index", ["VCR", "Scan"])
def test_boxes_on_no_field_have_no_index_and_the_plan_shows_it(index):
    queries = vd.QuerySet(SCHEMA, index=index)
    queries.add("apart", "x > y")
    fields = {"VCR": "2 fields", "Scan": "1 field or more"}[index]

    words = f"{index} was requested but supports {fields}; this group has none; they constrain no field: every row"
    assert words in queries.explain()


def test_an_index_that_would_be_too_large_is_not_used_and_the_plan_shows_it(monkeypatch):
    def refuse(*_):
        raise TooLargeError("there would be 4294967296 virtual construct rectangles and can be 2^31")

    monkeypatch.setattr(VCR, "build", refuse)
    queries = query_set("VCR", (500, "x", "y"))

    words = "VCR was requested but would be too large: there would be 4294967296 virtual construct rectangles and can"
    assert words in queries.explain()
    assert indexes_by_fields(queries) != {("x", "y"): VCR}


@pytest.mark.parametrize(
    ("index", "fields"),
    [("SCI", "x"), ("VCR", "xy"), ("MLGF", "xyz"), ("Keyed", ("key", "x")), ("Quadtree", "xyz"), ("Buckets", "xy")],
)
def test_of_an_index_that_suits_nothing_is_excused(index, fields):
    reported = query_set(index, (500, *fields)).explain()

    assert "was requested but" not in reported
    assert f": {index}, " in reported or f"{index} on " in reported


@pytest.mark.parametrize(
    ("index", "groups"),
    [
        ("SCI", [(100, "x"), (100, "y")]),
        ("Buckets", [(2_000, "x"), (30, "y"), (1, "z")]),
        ("VCR", [(100, "x", "y"), (100, "y", "z")]),
        ("Keyed", [(100, "key", "x"), (100, "key", "y")]),
    ],
)
def test_groups_that_it_suits_are_not_put_together(index, groups):
    queries = query_set(index, *groups)

    assert indexes_by_fields(queries) == {tuple(sorted(fields)): INDEXES[index] for _, *fields in groups}


def test_groups_that_it_does_not_suit_are_put_together_as_ever():
    queries = query_set("SCI", (100, "x"), (50, "x", "y"), (50, "y", "z"))

    found = indexes_by_fields(queries)

    assert set(found) == {("x",), ("x", "y", "z")}
    assert found[("x",)] is INDEXES["SCI"]


@pytest.mark.parametrize("index", ["MLGF", "R-tree", "Scan"])
def test_an_index_on_any_number_of_fields_answers_for_all_together(index):
    queries = query_set(index, (100, "x"), (100, "y"), (100, "key", "z"))

    assert set(indexes_by_fields(queries).values()) == {INDEXES[index]}


def test_groups_kept_apart_answer_as_one_by_one():
    """With a query of several boxes that a row may be in at once, and one with a residual."""
    on_x, on_y = ranges(60), ranges(60)
    queries = vd.QuerySet("x double, y double", index="LCI")
    queries.add_boxes(np.arange(60), {"x": on_x})
    queries.add_boxes(np.arange(60, 120), {"y": on_y})
    queries.add(120, "x < 0.5 OR y < 0.5")
    queries.add(121, "x < 0.5 AND x + y > 0.5")
    rows = RANDOM.random((100, 2))

    hits = queries.match({"x": rows[:, 0], "y": rows[:, 1]})

    expected = []
    for row, (x, y) in enumerate(rows.tolist()):
        expected += [(row, query) for query in range(60) if on_x[0][query] <= x <= on_x[1][query]]
        expected += [(row, 60 + query) for query in range(60) if on_y[0][query] <= y <= on_y[1][query]]
        expected += [(row, 120)] if x < 0.5 or y < 0.5 else []
        expected += [(row, 121)] if x < 0.5 and x + y > 0.5 else []
    assert sorted(zip(hits.rows.tolist(), hits.ids.to_pylist(), strict=True)) == expected
