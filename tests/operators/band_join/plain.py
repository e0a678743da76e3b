"""Plain answers about bands, values that make rounding matter, and a workload."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

# Few distinct values, so that shared ends and exact hits happen often.
whole = st.integers(-4, 4).map(float)
# Differences of three-decimal values are rarely three-decimal values: 0.3 - 0.2 is 0.09999999999999998.
decimal = st.integers(-3000, 3000).map(lambda n: n / 1000)
far_decimal = st.integers(-300, 300).map(lambda n: 1e6 + n / 1000)
EXTREMES = [0.0, -0.0, 5e-324, -5e-324, 1e-300, 0.1, 0.2, 0.3, 1.0, 1e16, 1e16 + 2, -1e16, 1e308, -1e308, 1.7e308]
extreme = st.sampled_from([*EXTREMES, -1.7e308]) | st.floats(allow_nan=False, allow_infinity=False)
coarse = st.integers(-40, 40).map(lambda n: 1e15 + n / 8) | whole  # eighths are all there is between doubles
KINDS = [whole, decimal, far_decimal, coarse, extreme]


@st.composite
def problems(draw, max_values=25, max_bands=25):
    """Values, bands as pairs of ends, some of them infinite, and shifts, all of one kind."""
    number = draw(st.sampled_from(KINDS))
    values = draw(st.lists(number, max_size=max_values))
    difference = st.tuples(number, number).map(lambda pair: pair[0] - pair[1])
    end = number | difference | st.sampled_from([float("-inf"), float("inf")])
    bands = draw(st.lists(st.tuples(end, end).map(lambda pair: (min(pair), max(pair))), max_size=max_bands))
    return values, bands, draw(st.lists(number, min_size=1, max_size=4))


def pairs(values, bands, shift):
    """The places of values and bands where the shifted value, a rounded sum, is in the band."""
    return sorted(
        (i, j) for i, value in enumerate(values) for j, (low, high) in enumerate(bands) if low <= value + shift <= high
    )


def fewest_points(bands):
    """The size of the smallest stabbing set: by upper end, a point for each band that holds none so far."""
    n, point = 0, None
    for low, high in sorted(bands, key=lambda band: band[1]):
        if point is None or low > point:
            n, point = n + 1, high
    return n


def ends(bands):
    array = np.array(bands, np.float64).reshape(-1, 2)
    return np.ascontiguousarray(array[:, 0]), np.ascontiguousarray(array[:, 1])


def clusters(n_values, n_bands, n_clusters, width, seed=1, scattered=0.0):
    """Values in [0, 1), and bands around a few points, except for some that are anywhere."""
    random = np.random.default_rng(seed)
    points = random.uniform(-0.5, 0.5, n_clusters)[random.integers(0, n_clusters, n_bands)]
    is_scattered = random.random(n_bands) < scattered
    points[is_scattered] = random.uniform(-0.5, 0.5, int(is_scattered.sum()))
    lows, highs = points - random.exponential(width, n_bands), points + random.exponential(width, n_bands)
    return random.random(n_values), lows, highs
