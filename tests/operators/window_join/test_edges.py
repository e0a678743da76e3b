"""Window joins where types, numbers and lists end."""

from __future__ import annotations

import pyarrow as pa
import pytest

import vedette as vd


def rows_of(table):
    return sorted(tuple(line.values()) for line in table.to_pylist())


def test_strings_that_are_equated_all_round_join():
    pairs = vd.JoinQuerySet(a="s string", b="s string", c="s string")
    pairs.add("round", "a.s = b.s AND b.s = c.s AND a.s = c.s", rows=10)
    join = pairs.window()

    found = join.step(a={"s": ["5", "05", None]}, b={"s": ["5", "05", None]}, c={"s": ["05", None, "6"]})

    assert rows_of(found) == [("round", 1, 1, 0)]


def test_a_string_equality_beside_a_chain_is_checked():
    pairs = vd.JoinQuerySet(a="s string, k bigint", b="s string, k bigint", c="s string, k bigint")
    pairs.add("q", "a.k = b.k AND b.k = c.k AND a.s = c.s", rows=10)
    join = pairs.window()

    one = {"s": ["x", "y"], "k": [1, 1]}
    found = join.step(a=one, b={"s": [None], "k": [1]}, c=one)

    assert rows_of(found) == [("q", 0, 0, 0), ("q", 1, 0, 1)]


def test_a_window_of_a_whole_number_is_not_rounded():
    length = 2**53 + 1
    pairs = vd.JoinQuerySet(left="x double", right="x double")
    pairs.add("q", "true", within=length)
    join = pairs.window(left_time="t", right_time="t")

    found = join.step(left={"x": [1.0], "t": [0]}, right={"x": [1.0, 1.0], "t": [length, length + 1]})

    assert rows_of(found) == [("q", 0, 0)]


def test_a_row_whose_age_is_rounded_to_the_window_stays_in_it_when_its_list_is_full():
    pairs = vd.JoinQuerySet(left="x double", right="x double")
    pairs.add("q", "left.x < right.x", within=1.0)
    join = pairs.window(left_time="t", right_time="t")
    join.step(left={"x": [0.0], "t": [-1e-17]}, right={"x": [-5.0], "t": [-1e-17]})
    join.step(right={"x": [-5.0], "t": [1.0]})
    for place in range(40):
        join.step(left={"x": [9.0], "t": [0.5 + place / 1000]})

    assert rows_of(join.step(right={"x": [5.0], "t": [1.0]})) == [("q", 0, 2)]  # 1 + 1e-17 is 1


def test_a_state_whose_fields_were_of_other_types_is_refused():
    doubles, wholes = (vd.JoinQuerySet(left=f"x {type_}", right=f"x {type_}") for type_ in ("double", "bigint"))
    for pairs in (doubles, wholes):
        pairs.add("q", "left.x < right.x", rows=10)
    saved = doubles.window()
    saved.step(left={"x": [1.5]})
    join = wholes.window()
    join.step(left={"x": [1]})

    with pytest.raises(vd.SnapshotError, match=r"saved with left\.x as double; here it is bigint"):
        join.load(saved.save())
    assert join.n_rows == 1


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("hour(left.ts) = hour(right.ts)", [(0, 1), (1, 0)]),
        ("year(left.ts) < year(right.ts)", [(0, 1)]),
        ("length(left.s) = length(right.s)", [(0, 0), (1, 1)]),
        ("length(left.s) = right.n", [(0, 1), (1, 0)]),
        ("cast(hour(left.ts) AS bigint) - cast(hour(right.ts) AS bigint) >= 10", [(0, 0)]),
    ],
)
def test_parts_of_times_and_lengths_are_looked_up(text, found):
    """They are of Spark's type int, which no field has."""
    pairs = vd.JoinQuerySet(left="ts timestamp, s string, n bigint", right="ts timestamp, s string, n bigint")
    pairs.add("q", text, rows=10)
    assert "residual" not in pairs.explain()
    left = {"ts": ["2025-12-31T23:10:00", "2026-01-01T05:20:00", None], "s": ["one", "three", None], "n": [1, 2, 3]}
    right = {"ts": ["2025-06-01T05:59:59", "2026-06-01T23:00:00", None], "s": ["two", "seven", None], "n": [5, 3, None]}
    times = {"left": left, "right": right}
    for rows in times.values():
        rows["ts"] = pa.array(rows["ts"], pa.string()).cast(pa.timestamp("us"))

    assert rows_of(pairs.window().step(**times)) == [("q", *pair) for pair in found]
