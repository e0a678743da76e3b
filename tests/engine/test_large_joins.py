"""Pairs of window joins in pieces: the same pairs, however they are cut."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vedette import JoinQuerySet
from vedette.operators import window_join

TEXTS = [
    "left.x < right.x", "left.k = right.k", "left.k = right.k AND left.x - right.x BETWEEN -1 AND 2", "left.x > 2",
    "left.x * right.x > 6", "left.x > right.x OR left.k = right.k", "left.x <> right.x AND left.k < right.k",
]  # fmt: skip
rows = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2)), max_size=12)


def joins(texts, n=2):
    pairs = JoinQuerySet(left="x bigint, k bigint, t bigint", right="x bigint, k bigint, t bigint")
    for number, text in enumerate(texts):
        pairs.add(f"q{number}", text, **({"within": 6} if number % 2 else {"rows": 5}))
    return [pairs.window(left_time="t", right_time="t") for _ in range(n)]


def table(rows, time):
    return pa.table(
        {
            "x": pa.array([x for x, _ in rows], pa.int64()),
            "k": pa.array([k for _, k in rows], pa.int64()),
            "t": pa.array(range(time, time + len(rows)), pa.int64()),
        }
    )


@given(st.lists(st.sampled_from(TEXTS), min_size=1, max_size=8), st.lists(st.tuples(rows, rows), max_size=4), st.data())
@settings(max_examples=60, deadline=None)
def test_pieces_put_together_are_all_pairs_of_a_step(texts, batches, data):
    whole, pieces = joins(texts)
    most = data.draw(st.integers(1, 200))
    with pytest.MonkeyPatch.context() as patch:
        for number, (left, right) in enumerate(batches):
            given = {"left": table(left, 10 * number), "right": table(right, 10 * number)}
            patch.setattr(window_join, "CANDIDATES_AT_ONCE", 1 << 23)
            expected = whole.step(**given).to_pylist()
            patch.setattr(window_join, "CANDIDATES_AT_ONCE", 4)
            found = [line for each in pieces.step_batches(most, **given) for line in each.to_pylist()]

            assert sorted(found, key=str) == sorted(expected, key=str)
            assert pieces.save() == whole.save()


def test_a_step_with_very_many_pairs_comes_in_pieces_of_bounded_size(monkeypatch):
    monkeypatch.setattr(window_join, "CANDIDATES_AT_ONCE", 1 << 14)
    (join,) = joins(["left.x = right.x"] * 200, n=1)
    rows = {"x": np.zeros(200, np.int64), "k": np.zeros(200, np.int64), "t": np.arange(200)}

    sizes = [each.num_rows for each in join.step_batches(60_000, left=rows, right=rows)]

    assert sum(sizes) > 200_000
    assert max(sizes) * 12 <= 60_000 + 12 * (1 << 14)
