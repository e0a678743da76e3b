"""The quadtree where boxes crowd, or are much longer than wide."""

from __future__ import annotations

import numpy as np
import oracles
import pytest
from numba.core import config

from vedette.indexes.index import TooLargeError, sample_boxes
from vedette.indexes.leaves import choose_leaf
from vedette.indexes.quadtree import Quadtree

SLOW = bool(config.DISABLE_JIT)


def found(matches):
    return [
        sorted(matches.positions[low:high].tolist())
        for low, high in zip(matches.starts[:-1], matches.starts[1:], strict=True)
    ]


def test_crowded_leaves_split_and_answer_the_same():
    random = np.random.default_rng(1)
    n, n_cells = (400, 1 << 10) if SLOW else (20_000, 1 << 18)
    corners = np.abs(random.normal(0, n_cells / 300, (2, n))).astype(np.int32) + n_cells // 3
    corners[:, ::100] = random.integers(0, n_cells - 100, (2, len(corners[0, ::100])))
    firsts, lasts = corners, corners + random.integers(0, 6, (2, n)).astype(np.int32)
    index = Quadtree.build(firsts, lasts, np.arange(n, dtype=np.int32), [n_cells, n_cells])
    cells = np.concatenate([firsts[:, :200], lasts[:, :200], corners[:, -20:] - 1], axis=1)

    assert index.table.min() < 0, "nothing was split"
    assert found(index.match(cells)) == oracles.match_boxes(*map(np.ndarray.tolist, (firsts, lasts)), range(n), cells)
    assert index.nbytes <= 300 * n


def test_rows_far_apart_in_number_of_matches_all_fit():
    # The first rows match nothing, so that the room guessed from them is too small.
    n = 300
    firsts, lasts = np.full((2, n), 100, np.int32), np.full((2, n), 200, np.int32)
    cells = np.zeros((2, 3000), np.int32)
    cells[:, 2000:] = 150
    matches = Quadtree.build(firsts, lasts, np.arange(n, dtype=np.int32), [402, 402]).match(cells)

    assert np.diff(matches.starts).tolist() == [0] * 2000 + [n] * 1000
    assert sorted(matches.positions[-n:]) == list(range(n))


def test_long_and_narrow_boxes_get_long_and_narrow_leaves():
    random = np.random.default_rng(1)
    firsts = np.stack([random.integers(0, 100_000, 5_000), np.zeros(5_000, np.int64)]).astype(np.int32)
    lasts = firsts + np.array([[20], [19_999]], np.int32)
    leaf = choose_leaf(firsts, lasts, [100_022, 20_000])

    assert leaf.shift_x <= 7
    assert leaf.shift_y == 15
    assert leaf.bytes_per_box <= 240
    assert Quadtree.build(firsts, lasts, np.arange(5_000, dtype=np.int32), [100_022, 20_000]).nbytes <= 300 * 5_000


def test_boxes_that_would_be_listed_in_far_too_many_leaves_are_refused():
    n, n_cells = 2000, 1 << 20
    firsts = np.zeros((2, n), np.int32)
    lasts = np.full((2, n), n_cells - 1, np.int32)
    firsts[:, ::2] = np.arange(0, n, 2) * 500
    lasts[:, ::2] = firsts[:, ::2] + 1

    with pytest.raises(TooLargeError, match="too many leaves"):
        Quadtree.build(firsts, lasts, np.arange(n, dtype=np.int32), [n_cells, n_cells])


def test_a_sample_includes_all_shapes_of_alternating_boxes():
    assert set(sample_boxes(600_000, 2048) % 6) == {0, 1, 2, 3, 4, 5}
    assert sample_boxes(10, 2048).tolist() == list(range(10))
