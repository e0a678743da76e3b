"""Motions: rectangles, or boxes, whose every side moves at its own speed.

The model of Zhang et al. (VLDB Journal 2012), section 3.1: where an object is, is a linear function of time, until its
next update says otherwise. Sides need not keep their distance. What has shrunk until a low side passed its high side is
nothing any more, and meets nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vedette.native.kernels import kernel


@dataclass(frozen=True)
class Motions:
    """Moving rectangles as columns: two arrays of ends and two of speeds, (n_dims, n), and when each was so, (n,)."""

    lows: NDArray[np.float64]
    highs: NDArray[np.float64]
    low_speeds: NDArray[np.float64]
    high_speeds: NDArray[np.float64]
    times: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.times)

    @property
    def n_dims(self) -> int:
        return len(self.lows)

    @property
    def nbytes(self) -> int:
        arrays = self.lows, self.highs, self.low_speeds, self.high_speeds, self.times
        return sum(array.nbytes for array in arrays)

    @classmethod
    def empty(cls, n_dims: int, n: int = 0) -> Motions:
        """Room for `n` motions, all of them zero."""
        lows, highs, low_speeds, high_speeds = np.zeros((4, n_dims, n))
        return cls(lows, highs, low_speeds, high_speeds, np.zeros(n))

    @classmethod
    def concat(cls, many: Sequence[Motions]) -> Motions:
        """All motions of several, one after the other."""
        return cls(
            np.concatenate([each.lows for each in many], axis=1),
            np.concatenate([each.highs for each in many], axis=1),
            np.concatenate([each.low_speeds for each in many], axis=1),
            np.concatenate([each.high_speeds for each in many], axis=1),
            np.concatenate([each.times for each in many]),
        )

    def take(self, places: NDArray[Any]) -> Motions:
        """Some of them: by places, or by a mask."""
        return Motions(
            np.ascontiguousarray(self.lows[:, places]),
            np.ascontiguousarray(self.highs[:, places]),
            np.ascontiguousarray(self.low_speeds[:, places]),
            np.ascontiguousarray(self.high_speeds[:, places]),
            self.times[places],
        )

    def at(self, time: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The lows and highs of all at one time, (n_dims, n) each."""
        passed = time - self.times
        return self.lows + self.low_speeds * passed, self.highs + self.high_speeds * passed

    def rebased(self, time: float) -> Motions:
        """The same motions, told as of one time."""
        return Motions(*self.at(time), self.low_speeds, self.high_speeds, np.full(len(self), float(time)))


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
