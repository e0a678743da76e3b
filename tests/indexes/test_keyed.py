"""What a keyed index refuses, and keys without boxes."""

from __future__ import annotations

import numpy as np
import pytest

from vedette.indexes.keyed import Keyed
from vedette.indexes.lists import Lists


def test_a_range_of_keys_is_refused():
    firsts, lasts = np.array([[1], [0]], np.int32), np.array([[2], [3]], np.int32)

    with pytest.raises(ValueError, match="one cell on axis 0; these have more"):
        Keyed.build(firsts, lasts, np.zeros(1, np.int32), [4, 4])


def test_a_key_without_boxes_and_a_cell_outside_its_keys_boxes_match_nothing():
    firsts, lasts = np.array([[1, 5], [4, 6]], np.int32), np.array([[1, 5], [6, 6]], np.int32)
    index = Keyed.build(firsts, lasts, np.array([7, 8], np.int32), [8, 10])
    cells = np.array([[0, 1, 1, 1, 3, 5, 5, 5, 7], [5, 3, 4, 7, 5, 5, 6, 7, 9]], np.int32)
    matches = index.match(cells)

    assert np.diff(matches.starts).tolist() == [0, 0, 1, 0, 0, 0, 1, 0, 0]
    assert matches.positions.tolist() == [7, 8]


def test_lists_too_long_for_their_counters_are_refused():
    n = 3000
    firsts, lasts = np.zeros((1, n), np.int32), np.full((1, n), 999_999, np.int32)

    with pytest.raises(ValueError, match="3000000000 entries; the maximum is 2\\^31: use buckets"):
        Lists.build(firsts, lasts, np.zeros(n, np.int32), [1_000_002])
