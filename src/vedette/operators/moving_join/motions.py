"""Motions: rectangles, or boxes, whose every side moves at its own speed.

The model of Zhang et al. (VLDB Journal 2012), section 3.1: the position of an object is a linear function of time until
its next update. The sides of an object may have different speeds. An object whose low side has passed its high side has
vanished, and intersects nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Motions:
    """Moving rectangles as columns: two arrays of sides and two of speeds, (n_dims, n), and the times, (n,)."""

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
        """The motions of all, in order."""
        return cls(
            np.concatenate([each.lows for each in many], axis=1),
            np.concatenate([each.highs for each in many], axis=1),
            np.concatenate([each.low_speeds for each in many], axis=1),
            np.concatenate([each.high_speeds for each in many], axis=1),
            np.concatenate([each.times for each in many]),
        )

    def take(self, places: NDArray[Any]) -> Motions:
        """Some motions: by places, or by a mask."""
        return Motions(
            np.ascontiguousarray(self.lows[:, places]),
            np.ascontiguousarray(self.highs[:, places]),
            np.ascontiguousarray(self.low_speeds[:, places]),
            np.ascontiguousarray(self.high_speeds[:, places]),
            self.times[places],
        )

    def at(self, time: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The lows and highs at one time, (n_dims, n) each."""
        passed = time - self.times
        return self.lows + self.low_speeds * passed, self.highs + self.high_speeds * passed

    def rebased(self, time: float) -> Motions:
        """The same motions with their sides at one time."""
        return Motions(*self.at(time), self.low_speeds, self.high_speeds, np.full(len(self), float(time)))
