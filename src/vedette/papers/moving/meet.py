"""When two motions intersect, from columns of motions. Joins over rows use `meet_rows` of the product."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vedette.native.kernels import kernel


@kernel
def meet(
    a_lows: NDArray[np.float64],
    a_highs: NDArray[np.float64],
    a_low_speeds: NDArray[np.float64],
    a_high_speeds: NDArray[np.float64],
    a_times: NDArray[np.float64],
    a: int,
    b_lows: NDArray[np.float64],
    b_highs: NDArray[np.float64],
    b_low_speeds: NDArray[np.float64],
    b_high_speeds: NDArray[np.float64],
    b_times: NDArray[np.float64],
    b: int,
    start: float,
    end: float,
) -> tuple[float, float]:
    """When within [start, end] motion `a` of one set and `b` of another intersect: a first and a last moment.

    Both belong to it, and touching is intersecting (Figure 5). Where they never do, the first is after the last. `end`
    may be infinite. The two may change places: the answer is the same to the last bit.
    """
    first, last = 0.0, end - start
    for d in range(len(a_lows)):
        a_low = a_lows[d, a] + a_low_speeds[d, a] * (start - a_times[a])
        a_high = a_highs[d, a] + a_high_speeds[d, a] * (start - a_times[a])
        b_low = b_lows[d, b] + b_low_speeds[d, b] * (start - b_times[b])
        b_high = b_highs[d, b] + b_high_speeds[d, b] * (start - b_times[b])
        first, last = narrow(first, last, a_high - b_low, a_high_speeds[d, a] - b_low_speeds[d, b])
        first, last = narrow(first, last, b_high - a_low, b_high_speeds[d, b] - a_low_speeds[d, a])
        first, last = narrow(first, last, a_high - a_low, a_high_speeds[d, a] - a_low_speeds[d, a])
        first, last = narrow(first, last, b_high - b_low, b_high_speeds[d, b] - b_low_speeds[d, b])
        if first > last:
            return np.inf, -np.inf
    return min(start + first, end), end if last >= end - start else min(start + last, end)


@kernel
def narrow(first: float, last: float, gap: float, speed: float) -> tuple[float, float]:
    """The part of [first, last] in which a gap that is `gap` at 0 and widens at `speed` is not below zero."""
    if speed > 0.0:
        first = max(first, -gap / speed)
    elif speed < 0.0:
        last = min(last, gap / -speed)
    elif gap < 0.0:
        last = -np.inf
    return first, last
