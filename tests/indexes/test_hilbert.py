from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from vedette.indexes.hilbert import (
    KEY_BITS,
    choose_bits,
    hilbert_keys,
    hilbert_order,
)

shapes = pytest.mark.parametrize(("n_axes", "n_bits"), [(1, 5), (2, 1), (2, 4), (3, 3), (4, 2), (5, 1), (7, 1)])


def whole_grid(n_axes, n_bits):
    return np.array(list(product(range(1 << n_bits), repeat=n_axes)), np.int32).T


@shapes
def test_each_place_has_a_key_of_its_own(n_axes, n_bits):
    keys = hilbert_keys(whole_grid(n_axes, n_bits), n_bits)

    assert sorted(keys.tolist()) == list(range(1 << (n_axes * n_bits)))


@shapes
def test_from_one_key_to_the_next_one_axis_changes_by_one(n_axes, n_bits):
    grid = whole_grid(n_axes, n_bits)
    walk = grid[:, np.argsort(hilbert_keys(grid, n_bits))]

    assert (np.abs(np.diff(walk, axis=1)).sum(axis=0) == 1).all()


@shapes
def test_every_cube_is_left_only_when_it_has_been_walked_through(n_axes, n_bits):
    grid = whole_grid(n_axes, n_bits)
    cubes = hilbert_keys(grid, n_bits) >> n_axes

    for cube in range(1 << (n_axes * (n_bits - 1))):
        places = {tuple(place) for place in (grid[:, cubes == cube] >> 1).T.tolist()}
        assert len(places) == 1


def test_keys_beyond_their_bits_are_refused():
    with pytest.raises(ValueError, match="a Hilbert key has 63 bits; 8 axes of 8 bits need more"):
        hilbert_keys(np.zeros((8, 1), np.int32), 8)


def test_bits_tell_points_apart_and_fit_the_key():
    for n_axes in (1, 2, 4, 8, 20, 100):
        for n_points in (1, 1_000, 10**6, 10**9):
            n_bits = choose_bits(n_axes, n_points)

            assert 1 <= n_bits <= 31
            assert n_bits * min(n_axes, KEY_BITS) <= KEY_BITS


@pytest.mark.parametrize("n_axes", [1, 2, 4, 12, 80])
def test_rows_in_hilbert_order_are_closer_to_each_other_than_as_they_came(n_axes):
    cells = np.random.default_rng(3).integers(0, 1000, (n_axes, 400)).astype(np.int32)
    order = hilbert_order(cells)

    assert sorted(order.tolist()) == list(range(400))
    ordered = cells[:, order]
    as_they_came, on_the_curve = (np.abs(np.diff(each, axis=1)).sum() for each in (cells, ordered))
    assert on_the_curve < (1.0 if n_axes > 8 else 0.8) * as_they_came


def test_rows_of_one_place_stay_as_they_came():
    assert hilbert_order(np.full((3, 5), 7, np.int32)).tolist() == [0, 1, 2, 3, 4]
    assert hilbert_order(np.empty((3, 0), np.int32)).tolist() == []
