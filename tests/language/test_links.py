"""Which texts compare two streams by a link, and what remains to be checked on pairs."""

from __future__ import annotations

import json

import pytest

from vedette.data.boxes import CLOSED, OPEN, UNBOUNDED, Ranges
from vedette.data.schema import Schema
from vedette.language import compile_texts
from vedette.language.links import DIFFERENCE, DISTANCE, SIGN, Link

FIELDS = (
    "i bigint, j bigint, x double, y double, m decimal(10,2), n decimal(18,6), w decimal(38,10), b boolean, s string, "
    "d date, t timestamp"
)
PAIR = Schema.of_streams({"left": Schema.parse(FIELDS), "right": Schema.parse(FIELDS)})


def compiled(text):
    return compile_texts([text], PAIR)


def ranges_of(text):
    """Disjunct by disjunct, the range of each link and field in words."""
    found = []
    for block in compiled(text).blocks:
        for box in range(len(block)):
            found.append({name: in_words(ranges, box) for name, ranges in block.ranges.items()})
    return found


def in_words(ranges, box):
    if not isinstance(ranges, Ranges):
        return "null"
    low, high = ranges.lows[box], ranges.highs[box]
    first = {CLOSED: f"[{low}", OPEN: f"({low}", UNBOUNDED: "(.."}[int(ranges.low_ends[box])]
    last = {CLOSED: f"{high}]", OPEN: f"{high})", UNBOUNDED: "..)"}[int(ranges.high_ends[box])]
    return f"{first}, {last}"


@pytest.mark.parametrize(
    ("op", "signs"),
    [
        ("<", ["[-1, -1]"]),
        ("<=", ["[-1, 0]"]),
        ("=", ["[0, 0]"]),
        (">=", ["[0, 1]"]),
        (">", ["[1, 1]"]),
        ("<>", ["[-1, -1]", "[1, 1]"]),
    ],
)
@pytest.mark.parametrize("types", ["x y", "i j", "m m", "m n", "i x", "d t", "b b", "t t", "d d"])
def test_a_comparison_of_two_streams_is_a_range_of_signs(op, signs, types):
    first, second = types.split()
    text = f"left.{first} {op} right.{second}"
    (link,) = compiled(text).links.values()
    assert link.kind == SIGN
    assert link.streams == ("left", "right")
    assert ranges_of(text) == [{link.name: each} for each in signs]
    assert compiled(text).residuals == []


@pytest.mark.parametrize(("op", "negated"), [("<", ">="), ("<=", ">"), ("=", "<>"), ("<>", "="), (">", "<=")])
def test_a_negated_comparison_is_the_range_of_the_opposite_signs(op, negated):
    assert ranges_of(f"NOT (left.x {op} right.x)") == ranges_of(f"left.x {negated} right.x")
    assert ranges_of(f"NOT (NOT (left.x {op} right.x))") == ranges_of(f"left.x {op} right.x")


def test_strings_are_linked_where_they_are_equal_and_not_where_they_are_ordered():
    assert ranges_of("left.s = right.s") == [{"left.s with right.s": "[0, 0]"}]
    assert ranges_of("NOT (left.s <> right.s)") == [{"left.s with right.s": "[0, 0]"}]
    for text in ("left.s <> right.s", "NOT (left.s = right.s)", "left.s < right.s", "left.s >= right.s"):
        assert compiled(text).links == {}
        assert [residual.fields for residual in compiled(text).residuals] == [("left.s", "right.s")]


@pytest.mark.parametrize(
    ("text", "ranges"),
    [
        ("left.i - right.j BETWEEN -1 AND 5", ["[-1, 5]"]),
        ("left.i - right.j > 1", ["(1, ..)"]),
        ("3 >= left.i - right.j", ["(.., 3]"]),
        ("left.i - right.j = 2", ["[2, 2]"]),
        ("left.i - right.j <> 2", ["(.., 2)", "(2, ..)"]),
        ("left.i - right.j IN (1, 5)", ["[1, 1]", "[5, 5]"]),
        ("left.i - right.j IN (1, NULL)", ["[1, 1]"]),
        ("left.i - right.j NOT IN (1, 5)", ["(.., 1)", "(1, 5)", "(5, ..)"]),
        ("left.i - right.j NOT IN (1, NULL)", []),
        ("left.i - right.j < 1 AND left.i - right.j >= 0", ["[0, 1)"]),
        ("left.i - right.j < 1 AND left.i - right.j >= 1", []),
        ("left.i - right.j < NULL", []),
    ],
)
def test_a_difference_is_one_link_with_ranges_as_a_field_has_them(text, ranges):
    assert ranges_of(text) == [{"left.i - right.j": each} for each in ranges]
    assert [link.kind for link in compiled(text).links.values()] == [DIFFERENCE]
    assert compiled(text).residuals == []


def test_constants_of_another_type_become_ranges_of_what_spark_would_accept():
    assert ranges_of("left.i - right.j < 1.5") == [{"left.i - right.j": "(.., 2)"}]
    assert ranges_of("left.i - right.j >= 1.5e0") == [{"left.i - right.j": "[2, ..)"}]
    near = ranges_of("left.i - right.j = 9007199254740992e0")
    assert near == [{"left.i - right.j": "[9007199254740992, 9007199254740993]"}]
    cents = "cast(left.m as decimal(11,2)) - cast(right.m as decimal(11,2))"
    assert ranges_of("left.m - right.m <= 1.5") == [{cents: "(.., 150]"}]
    assert ranges_of("left.m - right.m = 1.005") == []


def test_a_distance_is_a_link_of_its_own_whose_ranges_two_differences_are():
    (link,) = compiled("abs(left.x - right.y) <= 0.5").links.values()
    assert (link.name, link.kind) == ("abs(left.x - right.y)", DISTANCE)
    assert ranges_of("abs(left.x - right.y) <= 0.5") == [{"abs(left.x - right.y)": "(.., 0.5]"}]
    assert (link.difference.name, link.difference.kind) == ("left.x - right.y", DIFFERENCE)


def test_the_sides_of_a_link_are_expressions_of_one_stream_each_without_literals():
    for text, name in {
        "left.x + left.y < right.x": "(left.x + left.y) with right.x",
        "right.i * right.j - left.i > 3": "(right.i * right.j) - left.i",
        "round(left.x, 1) = round(right.x, 1)": "round(left.x, 1) with round(right.x, 1)",
        "CAST(left.i AS DOUBLE) < right.x": "cast(left.i as double) with right.x",
        "left.s = right.i": "left.s with right.i",
    }.items():
        assert list(compiled(text).links) == [name]
        assert compiled(text).residuals == []


@pytest.mark.parametrize(
    "text",
    [
        "left.x > right.y * 1.01",
        "left.x + 1 < right.x",
        "left.x + right.x < right.y",
        "left.x - right.x < left.y",
        "left.x - right.y < left.y - right.x",
        "left.x <=> right.x",
        "left.i - right.i <=> 1",
        "(left.x - right.x) IS NULL",
        "left.x IN (right.x, right.y)",
        "left.w = right.w",
        "left.n - right.n < 5",
        "left.i < right.m",
    ],
)
def test_a_condition_that_is_not_a_link_is_a_residual_of_pairs(text):
    (residual,) = compiled(text).residuals
    assert {name.partition(".")[0] for name in residual.fields} == {"left", "right"}
    (block,) = compiled(text).blocks
    assert block.ranges == {}


def test_residuals_of_one_stream_are_separate_from_those_of_two():
    text = "left.x * 2 > left.y AND right.x * 2 > right.y AND left.x > right.x * 1.01 AND left.y * 3 < right.y"
    fields = sorted(residual.fields for residual in compiled(text).residuals)
    assert fields == [("left.x", "left.y"), ("left.x", "left.y", "right.x", "right.y"), ("right.x", "right.y")]


def test_branches_of_an_or_have_links_and_selections_of_their_own():
    text = "left.x < right.x AND left.i = 3 OR left.s = right.s OR right.j IS NULL"
    assert ranges_of(text) == [
        {"left.i": "[3, 3]", "left.x with right.x": "[-1, -1]"},
        {"left.s with right.s": "[0, 0]"},
        {"right.j": "null"},
    ]


def test_texts_of_one_shape_have_one_link():
    texts = [f"left.x - right.x BETWEEN {low} AND {low + 1}.5" for low in range(50)]
    found = compile_texts(texts, PAIR)
    assert list(found.links) == ["left.x - right.x"]
    (block,) = found.blocks
    assert block.ranges["left.x - right.x"].lows.tolist() == list(range(50))


def test_a_schema_of_one_stream_has_no_links():
    found = compile_texts(["x < y"], Schema.parse(FIELDS))
    assert found.links == {}
    assert [residual.fields for residual in found.residuals] == [("x", "y")]


@pytest.mark.parametrize(
    "text",
    [
        "left.x < right.x",
        "abs(left.m - right.m) < 3",
        "round(left.x, 1) = round(right.x, 1)",
        "CAST(left.i AS DOUBLE) - right.x > 1",
        "coalesce(left.i, left.j) = right.i",
    ],
)
def test_a_link_that_went_through_json_is_the_same_link(text):
    (link,) = compiled(text).links.values()
    again = Link.from_json(json.loads(json.dumps(link.to_json())))
    assert again == link
    assert hash(again) == hash(link)
