"""When two motions intersect, for motions in columns. The product's joins use `meet_rows` for motions in rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vedette.native.kernels import kernel
from vedette.papers.moving.swept_region import HIGH, HIGH_SPEED, LOW, LOW_SPEED


@kernel
def meet(
    a_sides: NDArray[np.float64],
    a_times: NDArray[np.float64],
    a: int,
    b_sides: NDArray[np.float64],
    b_times: NDArray[np.float64],
    b: int,
    start: float,
    end: float,
) -> tuple[float, float]:
    """The first and the last moment within [start, end] at which motion `a` of one set and `b` of another intersect.

    Both moments are inclusive, and touching is intersecting (Figure 5). If they never intersect, the first is after the
    last. `end` may be infinite. Swapping the two motions gives the same answer to the last bit. Sides and times are the
    fields of `Slots`: reading them from a tuple for every pair takes longer than comparing.
    """
    first, last = 0.0, end - start
    a_age, b_age = start - a_times[a], start - b_times[b]
    for d in range(a_sides.shape[1]):
        a_low_speed, a_high_speed = a_sides[LOW_SPEED, d, a], a_sides[HIGH_SPEED, d, a]
        b_low_speed, b_high_speed = b_sides[LOW_SPEED, d, b], b_sides[HIGH_SPEED, d, b]
        a_low, a_high = a_sides[LOW, d, a] + a_low_speed * a_age, a_sides[HIGH, d, a] + a_high_speed * a_age
        b_low, b_high = b_sides[LOW, d, b] + b_low_speed * b_age, b_sides[HIGH, d, b] + b_high_speed * b_age
        first, last = narrow(first, last, a_high - b_low, a_high_speed - b_low_speed)
        first, last = narrow(first, last, b_high - a_low, b_high_speed - a_low_speed)
        first, last = narrow(first, last, a_high - a_low, a_high_speed - a_low_speed)
        first, last = narrow(first, last, b_high - b_low, b_high_speed - b_low_speed)
        if first > last:
            return np.inf, -np.inf
    return min(start + first, end), end if last >= end - start else min(start + last, end)


@kernel
def narrow(first: float, last: float, gap: float, speed: float) -> tuple[float, float]:
    """The part of [first, last] in which a gap that is `gap` at 0 and grows by `speed` is not negative."""
    if speed > 0.0:
        first = max(first, -gap / speed)
    elif speed < 0.0:
        last = min(last, gap / -speed)
    elif gap < 0.0:
        last = -np.inf
    return first, last
