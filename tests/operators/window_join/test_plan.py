"""What texts become: groups of branches with edges, links, conditions and selections."""

from __future__ import annotations

import numpy as np
import pytest

from vedette.data.schema import Schema
from vedette.language import compile_texts
from vedette.native.ordering import GREATEST, LEAST, keys_of_doubles
from vedette.operators.window_join.branches import EVERY_ROW, hops_from
from vedette.operators.window_join.plan import plan_joins
from vedette.operators.window_join.windows import read_windows

FIELDS = "i bigint, j bigint, x double, y double, m decimal(10,2), s string, z string"
TWO = ("left", "right")


def plan(*texts, streams=TWO, within=None, rows=None):
    schema = Schema.of_streams({stream: Schema.parse(FIELDS) for stream in streams})
    rows = 5 if within is None and rows is None else rows
    windows = read_windows(within, rows, list(streams), len(texts))
    return plan_joins(compile_texts(list(texts), schema), list(streams), windows)


def only_group(*texts, **options):
    ((signature, (branches,)),) = plan(*texts, **options).groups.items()
    return signature, branches


def edges_of(signature):
    return [
        (edge.streams, [link.name for link in edge.equalities], edge.link and edge.link.name)
        for edge in signature.edges
    ]


def ranges(branches, edge=0):
    return list(zip(branches.lows[edge].tolist(), branches.highs[edge].tolist(), strict=True))


def key(value):
    return int(keys_of_doubles(np.array([value]))[0])


def test_one_comparison_is_one_edge_with_its_link():
    signature, branches = only_group("left.x < right.x")
    assert edges_of(signature) == [((0, 1), [], "left.x with right.x")]
    assert signature.conditions == ()
    assert ranges(branches) == [(-1, -1)]
    assert branches.selections.tolist() == [[EVERY_ROW], [EVERY_ROW]]


def test_an_edge_leads_from_the_first_side_of_its_link_to_the_second():
    signature, _ = only_group("right.x - left.x < 3")
    assert edges_of(signature) == [((1, 0), [], "right.x - left.x")]


def test_equalities_are_one_code_and_a_difference_comes_before_a_sign():
    text = "left.s = right.s AND left.x < right.x AND left.i = right.i AND left.x - right.y < 3"
    signature, branches = only_group(text)
    assert edges_of(signature) == [((0, 1), ["left.i with right.i", "left.s with right.s"], "left.x - right.y")]
    assert [link.name for link in signature.conditions] == ["left.x with right.x"]
    assert ranges(branches) == [(LEAST, key(3.0) - 1)]
    assert branches.condition_lows.tolist() == branches.condition_highs.tolist() == [[-1]]


def test_equalities_alone_leave_the_order_open():
    signature, branches = only_group("left.s = right.s AND left.z = right.z")
    assert edges_of(signature) == [((0, 1), ["left.s with right.s", "left.z with right.z"], None)]
    assert ranges(branches) == [(LEAST, GREATEST)]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("<= 3", [(-3, 3)]),
        ("< 3", [(-2, 2)]),
        ("= 3", [(3, 3), (-3, -3)]),
        ("<> 3", [(-2, 2), (4, GREATEST), (-GREATEST, -4)]),
        ("> 3", [(4, GREATEST), (-GREATEST, -4)]),
        (">= 0", [(-GREATEST, GREATEST)]),
        ("> 0", [(1, GREATEST), (-GREATEST, -1)]),
        ("BETWEEN 2 AND 3", [(2, 3), (-3, -2)]),
        ("BETWEEN -5 AND 3", [(-3, 3)]),
        ("= 0", [(0, 0)]),
        (">= -9223372036854775808", [(-GREATEST, GREATEST)]),
    ],
)
def test_a_distance_that_is_not_too_small_is_two_ranges_of_the_difference(condition, expected):
    signature, branches = only_group(f"abs(left.i - right.i) {condition}")
    assert edges_of(signature) == [((0, 1), [], "left.i - right.i")]
    assert sorted(ranges(branches)) == sorted(expected)
    assert set(branches.queries.tolist()) == {0}


@pytest.mark.parametrize(
    "text",
    [
        "abs(left.i - right.i) < 0",
        "abs(left.i - right.i) = -1",
        "abs(left.i - right.i) <= -9223372036854775808",
        "abs(left.i - right.i) < -9223372036854775808",
        "abs(left.i - right.i) > 9223372036854775807",
        "left.i - right.i < -9223372036854775808",
        "left.i - right.i > 9223372036854775807",
        "abs(left.x - right.x) < 0",
        "abs(left.x - right.x) <= -1",
    ],
)
def test_a_range_that_no_value_is_in_is_empty(text):
    for many in plan(text).groups.values():
        assert all(low > high for branches in many for low, high in ranges(branches))


def test_ranges_of_doubles_are_ranges_of_their_keys_with_zero_once():
    _, branches = only_group("abs(left.x - right.x) <= 0")
    assert ranges(branches) == [(-1, 0)]  # -1 is the key of -0.0, which no value has
    _, branches = only_group("abs(left.x - right.x) < 1.5")
    assert ranges(branches) == [(key(-1.5) + 1, key(1.5) - 1)]
    _, branches = only_group("abs(left.x - right.x) > 1.5")
    assert ranges(branches) == [(key(1.5) + 1, GREATEST), (LEAST, key(-1.5) - 1)]
    _, branches = only_group("left.x - right.x > -0.0D")
    assert ranges(branches) == [(1, GREATEST)]


def test_two_distances_are_four_branches_of_one_query():
    _, branches = only_group("abs(left.i - right.i) > 3 AND abs(left.j - right.j) > 5")
    both = sorted(
        zip(ranges(branches), branches.condition_lows[0].tolist(), branches.condition_highs[0].tolist(), strict=True)
    )
    i, j = [(4, GREATEST), (-GREATEST, -4)], [(6, GREATEST), (-GREATEST, -6)]
    assert both == sorted((a, *b) for a in i for b in j)


def test_texts_with_the_same_links_form_one_group():
    texts = [f"left.x - right.x < {n} AND left.i > {n}" for n in range(20)]
    _, branches = only_group(*texts)
    assert branches.queries.tolist() == list(range(20))
    assert branches.selections[0].tolist() == list(range(20))


def test_an_equality_and_an_order_on_one_link_are_two_groups():
    groups = plan("left.i - right.i < 3", "left.i = right.i", "left.i <= right.i").groups
    assert [edges_of(signature) for signature in groups] == [
        [((0, 1), [], "left.i - right.i")],
        [((0, 1), ["left.i with right.i"], None)],
        [((0, 1), [], "left.i with right.i")],
    ]


def test_windows_of_different_kinds_are_different_groups_and_of_different_lengths_are_not():
    texts = ["left.x < right.x"] * 5
    groups = plan(*texts, within=["1 second", 5, 7.5, "2 hours", "1 s"]).groups
    found = {signature.is_duration: branches.queries.tolist() for signature, (branches,) in groups.items()}
    assert found == {(False, False): [1, 2], (True, True): [0, 3, 4]}
    ((signature, (branches,)),) = plan("left.x < right.x", within={"left": 2.5}, rows={"right": 7}).groups.items()
    assert signature.counts == (False, True)
    assert branches.units.tolist() == [[2], [7]]
    assert branches.numbers.tolist() == [[2.5], [7.0]]


def test_branches_that_select_the_same_share_a_selection():
    texts = ["left.x < 3", "left.x < 5", "left.x < 3", "left.x <= 3", "left.x < 5"]
    (branches,) = [branches for many in plan(*texts).groups.values() for branches in many][:1]
    by_query = dict(zip(branches.queries.tolist(), branches.selections[0].tolist(), strict=True))
    assert by_query[0] == by_query[2] != by_query[1] == by_query[4]
    assert len(set(by_query.values())) == 2


def test_selections_of_strings_with_exclusive_ends_are_distinct():
    texts = [f"left.s >= '{a}'" for a in ("a", "b", "a")] + ["left.s LIKE 'a%'", "left.s LIKE '\U0010ffff%'"]
    made = plan(*texts)
    assert made.selections[0].n == 4
    chosen = {
        int(query): int(selection)
        for many in made.groups.values()
        for branches in many
        for query, selection in zip(branches.queries, branches.selections[0], strict=True)
    }
    assert chosen[0] == chosen[2]
    assert len(set(chosen.values())) == 4


def test_an_or_on_one_stream_is_a_branch_for_each_selection():
    _, branches = only_group("left.x < 3 AND right.y IN (1, 2)")
    assert branches.queries.tolist() == [0, 0]
    assert len(set(branches.selections[0].tolist())) == 1
    assert len(set(branches.selections[1].tolist())) == 2


def test_null_can_be_selected():
    made = plan("left.x IS NULL AND right.s IS NOT NULL AND left.i < right.i")
    assert [each.n for each in made.selections] == [1, 1]


def test_residuals_of_one_stream_belong_to_its_selections_and_others_to_pairs():
    made = plan("left.x * 2 < left.y AND right.x > 3", "left.x * 3 < left.y AND right.x > 3", "left.x * 2 < right.y")
    assert [len(each.residuals) for each in made.selections] == [1, 0]
    assert made.selections[0].residuals[0].queries.tolist() == [0, 1]
    (residual,) = made.residuals
    assert residual.queries.tolist() == [2]
    assert residual.fields == ("left.x", "right.y")


def test_a_condition_without_fields_is_checked_on_pairs():
    (residual,) = plan("5 % 3 = 2 AND left.x < right.x").residuals
    assert residual.fields == ()


def test_a_condition_that_is_never_true_has_no_branch():
    for text in ("false", "left.x < 1 AND left.x > 2", "left.i - right.i < 0 AND left.i - right.i > 5"):
        assert plan(text).groups == {}
    assert plan().groups == {}


def test_without_links_every_row_meets_every_row():
    signature, branches = only_group("left.x > 1 AND right.y > 2")
    assert edges_of(signature) == [((0, 1), [], None)]
    assert branches.selections.tolist() == [[0], [0]]


THREE = ("a", "b", "c")


def test_three_streams_are_joined_along_a_tree_with_equalities_first():
    signature, _ = only_group("a.x < b.x AND b.s = c.s AND a.i - c.i < 4", streams=THREE)
    assert edges_of(signature) == [((1, 2), ["b.s with c.s"], None), ((0, 2), [], "a.i - c.i")]
    assert [link.name for link in signature.conditions] == ["a.x with b.x"]


def test_a_stream_that_nothing_links_is_joined_with_the_first():
    signature, _ = only_group("b.x < c.x", streams=THREE)
    assert edges_of(signature) == [((1, 2), [], "b.x with c.x"), ((0, 1), [], None)]


@pytest.mark.parametrize(
    "text",
    [
        "a.x < b.x AND b.x < c.x",
        "a.x < b.x AND b.s = c.s AND a.i - c.i < 4",
        "c.x = a.x AND b.y - a.y < 2",
        "a.x + b.x < c.x",
        "a.x > 3",
    ],
)
def test_from_each_stream_a_probe_reaches_all_others_once(text):
    signature, _ = only_group(text, streams=THREE)
    for start in range(3):
        known = {start}
        for hop in hops_from(signature.edges, start):
            assert hop.from_stream in known
            assert hop.to_stream not in known
            assert signature.edges[hop.edge].streams == (
                (hop.from_stream, hop.to_stream) if hop.is_first else (hop.to_stream, hop.from_stream)
            )
            known.add(hop.to_stream)
        assert known == {0, 1, 2}
