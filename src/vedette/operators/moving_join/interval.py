"""Which maximum update interval costs least (section 7), for the join over grids.

A long interval saves forced updates, but each update looks farther ahead. The number of updates is estimated from how
often objects have updated voluntarily so far. The cost of an update is estimated from the entries that it reads and the
pairs that it finds, with the sizes and speeds of a sample and the density that explains the current pairs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# Nanoseconds on the machine on which they were fitted, to intervals of 10 to 180 and 10k to 30k objects: ratios matter.
UPDATE, ENTRY, PAIR = 900.0, 10.0, 280.0
CELL = 1.25  # of a grid, in mean box widths
SAMPLE = 2048
NARROWEST = 1e-100  # an axis with a smaller extent is ignored


@dataclass
class UpdateRates:
    """How often the objects of a set update voluntarily, that is, before their deadline."""

    n_voluntary: int = 0
    n_forced: int = 0
    waited: float = 0.0  # the sum of the times between updates

    def note(self, waits: NDArray[np.float64], interval: float) -> None:
        n_forced = int(np.count_nonzero(waits >= interval * (1 - 1e-9)))
        self.n_forced += n_forced
        self.n_voluntary += len(waits) - n_forced
        self.waited += float(waits.sum())

    def rate(self, waiting: float) -> float:
        """Voluntary updates of an object per unit of time. Waits that ended in a forced update, or not yet, count, too.

        `waiting` is the sum of the times since the last updates.
        """
        waited = self.waited + waiting
        return self.n_voluntary / waited if waited > 0 else 0.0

    def to_numbers(self) -> tuple[int, int, float]:
        return self.n_voluntary, self.n_forced, self.waited

    def set_numbers(self, n_voluntary: int, n_forced: int, waited: float) -> None:
        self.n_voluntary, self.n_forced, self.waited = n_voluntary, n_forced, waited


@dataclass(frozen=True)
class Traffic:
    """What the cost depends on. Sizes and speeds of each set, and relative speeds of both, are means by dimension."""

    n: tuple[int, int]
    sizes: NDArray[np.float64]  # (2, n_dims)
    speeds: NDArray[np.float64]  # (2, n_dims)
    relative_speeds: NDArray[np.float64]
    n_pairs: int  # now
    extents: NDArray[np.float64]  # of the space, for the density if there are no pairs
    rates: tuple[float, float]  # of voluntary updates
    is_static: tuple[bool, bool]


def expected_costs(traffic: Traffic, intervals: NDArray[np.float64]) -> NDArray[np.float64]:
    """The cost of the updates per unit of time with each interval: equation (1), summed over both sets."""
    costs = np.zeros(len(intervals))
    for side in range(2):
        if not traffic.is_static[side]:
            rate = traffic.rates[side]
            costs += traffic.n[side] / _mean_wait(rate, intervals) * _update_cost(traffic, side, intervals)
    return costs


def _update_cost(traffic: Traffic, side: int, intervals: NDArray[np.float64]) -> NDArray[np.float64]:
    """Equation (2) with cells instead of nodes: entries read, twice, and pairs found, for one update of a set.

    A dimension without extent (all objects on a line or in a point) is left out.
    """
    is_wide = traffic.extents > NARROWEST
    n_others, n_dims = traffic.n[1 - side], int(np.count_nonzero(is_wide))
    reach = traffic.sizes.sum(axis=0)[is_wide]  # objects that are nearer than this intersect
    speeds = traffic.relative_speeds[is_wide]
    density = traffic.n_pairs / max(traffic.n[0] * traffic.n[1], 1)
    space = reach.prod() / density if density > 0 and reach.prod() > 0 else traffic.extents[is_wide].prod()
    ages = 0.0 if traffic.is_static[1 - side] else _mean_age(traffic.rates[1 - side], intervals)
    ahead = intervals - ages  # until the earlier end of both
    swept = reach.prod() + ahead * sum(speeds[d] * np.delete(reach, d).prod() for d in range(n_dims))
    pairs = np.minimum(n_others * swept / space, n_others)
    entries = np.full(len(intervals), float(n_others))
    for d in np.flatnonzero(is_wide[:2]):  # the axes of a grid
        own = traffic.sizes[side, d] + traffic.speeds[side, d] * intervals
        others = traffic.sizes[1 - side, d] + traffic.speeds[1 - side, d] * ahead
        entries *= np.minimum((own + (1 + 2 * CELL) * others) / space ** (1 / n_dims), 1.0)
    return UPDATE + 2 * ENTRY * entries + PAIR * pairs  # type: ignore[no-any-return]


def _mean_wait(rate: float, intervals: NDArray[np.float64]) -> NDArray[np.float64]:
    """The mean time between two updates of an object that updates at a rate, at the latest after an interval."""
    return -np.expm1(-rate * intervals) / rate if rate > 0 else intervals


def _mean_age(rate: float, intervals: NDArray[np.float64]) -> NDArray[np.float64]:
    """The mean time since the last update of an object."""
    is_short = rate * intervals < 1e-6
    updates = np.where(is_short, 1.0, rate * intervals)
    left = np.exp(-updates)
    return np.where(is_short, intervals / 2, intervals * (1 - left * (1 + updates)) / (updates * (1 - left)))
