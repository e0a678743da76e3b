from __future__ import annotations

import math

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st
from operators.band_join.plain import decimal, extreme, far_decimal

from vedette.papers.bands.rounding import greatest_shift, least_shift

number = decimal | far_decimal | extreme
bound = number | st.sampled_from([math.inf, -math.inf])


@given(number, bound)
@example(1e16, 1e16)  # very many shifts round to one sum
@example(1.0, 1.0)
@example(0.3, 0.1)
@example(-1.7e308, 1.7e308)
@example(0.0, 5e-324)
def test_the_least_shift_is_enough_and_the_double_below_is_not(value, bound):
    shift = float(least_shift(value, bound))

    assert value + shift >= bound
    assert shift == -math.inf or value + math.nextafter(shift, -math.inf) < bound


@given(number, bound)
@example(1e16, 1e16)
@example(0.1, -0.2)
def test_the_greatest_shift_is_not_too_much_and_the_double_above_is(value, bound):
    shift = float(greatest_shift(value, bound))

    assert value + shift <= bound
    assert shift == math.inf or value + math.nextafter(shift, math.inf) > bound


def test_moving_the_end_to_the_other_side_would_answer_differently():
    """Why no structure compares r with s + a: so many of a million pairs of three-decimal values differ."""
    random = np.random.default_rng(1)
    left, right, low = (random.integers(0, 10_000, 1_000_000) / 1000 for _ in range(3))
    low = np.where(random.random(len(low)) < 0.1, np.round(left - right, 3), low)

    differs = (left - right >= low) != (left >= right + low)

    assert differs.sum() > 88
