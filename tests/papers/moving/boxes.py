"""Random moving boxes, few distinct numbers so that ties and touching edges are common, and their form as arrays."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from numba import config

from vedette.operators.moving_join.motions import Motions

SLOW = bool(config.DISABLE_JIT)

position = st.integers(-12, 12).map(lambda n: n / 2)
side = st.integers(0, 6).map(lambda n: n / 2)
speed = st.sampled_from([0.0, 0.0, 0.0, 0.5, -0.5, 1.0, -1.0, 2.0, -3.0])


@st.composite
def boxes(draw, n_dims, time=0.0):
    """A box told as of now or earlier; its sides may go apart, or pass each other one day."""
    lows = [draw(position) for _ in range(n_dims)]
    highs = [low + draw(side) for low in lows]
    low_speeds = [draw(speed) for _ in range(n_dims)]
    high_speeds = [draw(st.just(v) | speed) for v in low_speeds]
    return lows, highs, low_speeds, high_speeds, time - draw(st.sampled_from([0.0, 0.0, 1.0, 2.5]))


@st.composite
def two_sets(draw, max_size=20, time=0.0):
    n_dims = draw(st.sampled_from([2, 3]))
    return [draw(st.lists(boxes(n_dims, time), min_size=1, max_size=max_size)) for _ in range(2)]


def random_box(random, n_dims, time):
    """The same from a seeded generator of the standard library, for streams."""
    lows = [random.randint(-12, 12) / 2 for _ in range(n_dims)]
    highs = [low + random.randint(0, 6) / 2 for low in lows]
    low_speeds = [random.choice([0.0, 0.0, 0.5, -0.5, 1.0, -1.0, 2.0, -3.0]) for _ in range(n_dims)]
    high_speeds = [v if random.random() < 0.7 else random.choice([0.0, 0.5, -0.5, 1.0]) for v in low_speeds]
    return lows, highs, low_speeds, high_speeds, float(time)


def as_motions(many, n_dims=2):
    many = list(many)
    if not many:
        return Motions.empty(n_dims)
    columns = [np.ascontiguousarray(np.array([box[k] for box in many], np.float64).T) for k in range(4)]
    return Motions(*columns, np.array([box[4] for box in many], np.float64))


def as_batch(changed, n_dims):
    """Places and motions of a dict of boxes."""
    return np.array(list(changed), np.int32), as_motions(changed.values(), n_dims)


def as_dict(pairs):
    """Pairs with their intervals, each once."""
    found = dict(
        zip(
            zip(pairs.a.tolist(), pairs.b.tolist(), strict=True),
            zip(pairs.starts.tolist(), pairs.ends.tolist(), strict=True),
            strict=True,
        )
    )
    assert len(found) == len(pairs.a)
    return found


def assert_same(found, expected):
    """The same pairs, and the same intervals but for rounding."""
    assert sorted(found) == sorted(expected)
    for pair, interval in expected.items():
        assert np.allclose(found[pair], [float(end) for end in interval], rtol=1e-9, atol=1e-9), pair
