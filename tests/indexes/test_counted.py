"""Matches that are counted first and written later: those of `match`, and nothing beside them changes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.profiles import examples
from vedette.indexes.buckets import Buckets
from vedette.indexes.counted import CountsFirst
from vedette.indexes.keyed import Keyed
from vedette.indexes.lists import Lists
from vedette.indexes.names import INDEXES

MARK = -7


@pytest.mark.parametrize("made", [Lists, Buckets, Keyed])
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=60), st.lists(st.integers(0, 9), max_size=40))
@examples(0.5)
def test_pieces_are_written_without_touching_their_neighbours(made, ranges, values):
    firsts = np.array([[min(each) for each in ranges]], np.int32)
    lasts = np.array([[max(each) for each in ranges]], np.int32)
    cells, n_cells = np.array([values], np.int32).reshape(1, -1), [10]
    if made is Keyed:
        keys = np.zeros_like(firsts)
        firsts, lasts, cells = (
            np.stack([keys[0], firsts[0]]),
            np.stack([keys[0], lasts[0]]),
            np.stack([cells[0] * 0, cells[0]]),
        )
        n_cells = [2, 10]
    index = made.build(firsts, lasts, np.arange(len(ranges), dtype=np.int32), n_cells)
    expected = index.match(cells)

    counted = index.count(cells)
    whole = np.full(counted.n_found + 64, MARK, np.int32)
    counted.write(whole[32 : 32 + counted.n_found])

    assert counted.starts.tolist() == expected.starts.tolist()
    assert whole[32:-32].tolist() == expected.positions.tolist() == counted.to_matches().positions.tolist()
    assert (whole[:32] == MARK).all()
    assert (whole[-32:] == MARK).all()


def test_the_indexes_that_count_first_are_known():
    assert {name for name, made in INDEXES.items() if issubclass(made, CountsFirst)} == {"Lists", "Buckets", "Keyed"}
