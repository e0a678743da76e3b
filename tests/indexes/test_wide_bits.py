from __future__ import annotations

import numpy as np
import pytest

from vedette.indexes.wide_bits import begin_between, keep_between, transpose_square, write_ones
from vedette.native.kernels import kernel


@kernel
def turn(words, turned, at):
    transpose_square(words, turned, at, 8)


def bits_of(words):
    return [[(int(word) >> place) & 1 for place in range(64)] for word in words]


@pytest.mark.parametrize("share", [0.0, 0.05, 0.5, 1.0])
def test_a_square_is_turned(share):
    random = np.random.default_rng(3)
    chosen = random.random((64, 64)) < share
    words = np.array([sum(1 << c for c in range(64) if row[c]) for row in chosen], np.uint64).view(np.int64)
    turned = np.full(80, 7, np.int64)

    turn(words, turned, 8)

    assert bits_of(turned[8:72]) == [list(column) for column in zip(*bits_of(words), strict=True)]
    assert turned[:8].tolist() == turned[72:].tolist() == [7] * 8


@kernel
def find_between(words, bitmaps, places):
    begin_between(words, 4, bitmaps, places[0], places[1])
    keep_between(words, 4, bitmaps, places[2], places[3])


def test_bits_in_which_two_bitmaps_differ_are_kept():
    bitmaps = np.random.default_rng(5).integers(-(2**63), 2**63, (6, 8))
    words = np.zeros((2, 6), np.int64)

    find_between(words, bitmaps, np.array([0, 8, 20, 40]))

    expected = (bitmaps[0, :4] ^ bitmaps[1, :4]) & (bitmaps[2, 4:] ^ bitmaps[5, :4])
    assert words.reshape(-1).tolist() == [0, 0, 0, 0, *expected.tolist(), 0, 0, 0, 0]


@pytest.mark.parametrize("n_ones", [0, 1, 3, 4, 5, 15, 16, 17, 40, 64])
@pytest.mark.parametrize("room", [0, 1, 5, 100])
def test_numbers_at_set_bits_are_written_and_nothing_beyond_the_end(n_ones, room):
    random = np.random.default_rng(n_ones)
    places = np.sort(random.permutation(64)[:n_ones])
    word = np.array([sum(1 << int(place) for place in places)], np.uint64).view(np.int64)[0]
    source = np.arange(100, 180, dtype=np.int32)
    target = np.full(200, -1, np.int32)
    end = 3 + n_ones + room

    assert write_ones(word, source, 10, target, np.int64(3), np.int64(end)) == 3 + n_ones
    assert target[3 : 3 + n_ones].tolist() == (110 + places).tolist()
    assert set(target[:3].tolist()) == {-1}
    assert set(target[end:].tolist()) == {-1}
