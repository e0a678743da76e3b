from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vedette.indexes.index import TooLargeError
from vedette.papers.bands import interval_tree
from vedette.papers.bands.interval_tree import IntervalTree

number = st.integers(-6, 6).map(float)


@given(st.lists(st.tuples(number, number), max_size=40), number)
def test_it_finds_what_brute_force_finds(intervals, wanted):
    ends = np.array(intervals, np.float64).reshape(-1, 2)
    tree = IntervalTree.build(ends[:, 0].copy(), ends[:, 1].copy())

    expected = [i for i, (first, last) in enumerate(intervals) if first <= wanted <= last]
    assert sorted(tree.stab(wanted).tolist()) == expected


def test_the_tree_is_not_deep():
    n = 500
    firsts = np.random.default_rng(1).random(n)
    tree = IntervalTree.build(firsts, firsts + 1e-6)
    depths = [0] * len(tree.nodes.centres)
    for node in range(len(tree.nodes.centres)):
        for below in (tree.nodes.lefts[node], tree.nodes.rights[node]):
            if below >= 0:
                depths[below] = depths[node] + 1

    assert len(tree) == n
    assert max(depths) <= n.bit_length()


def test_more_intervals_than_can_be_numbered_are_refused(monkeypatch):
    monkeypatch.setattr(interval_tree, "MOST", 3)

    with pytest.raises(TooLargeError, match="can hold 2\\^31 intervals; got 3"):
        IntervalTree.build(np.zeros(3), np.ones(3))
