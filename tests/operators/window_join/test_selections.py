"""What joins select from each stream."""

from __future__ import annotations

import vedette as vd


def test_a_range_of_a_field_applies_to_fields_that_are_equal_to_it():
    pairs = vd.JoinQuerySet(a="s string, x double", b="s string, x double", c="s string, x double")
    pairs.add("q", "a.s = b.s AND b.s = c.s AND c.s = 'IBM' AND a.x < b.x", rows=10)

    assert all(f"1 selection on {stream}.s: " in pairs.explain() for stream in "abc")

    join = pairs.window()
    rows = {"s": ["IBM", "SAP"], "x": [1.0, 2.0]}
    found = join.step(a=rows, b={"s": ["IBM", "SAP"], "x": [5.0, 5.0]}, c=rows).to_pylist()
    assert found == [{"query": "q", "a": 0, "b": 0, "c": 0}]


def test_a_range_of_its_own_stays_as_it_is():
    pairs = vd.JoinQuerySet(left="n bigint", right="n bigint")
    pairs.add("q", "left.n = right.n AND left.n > 1 AND right.n < 5", rows=10)

    numbers = {"n": [0, 2, 4, 6]}
    found = pairs.window().step(left=numbers, right=numbers).to_pylist()
    assert [(line["left"], line["right"]) for line in found] == [(1, 1), (2, 2)]
