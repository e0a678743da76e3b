"""Which maximum update interval costs least (section 7), for the join over grids.

A long interval saves forced updates, but each update looks farther ahead. The number of updates follows from how often
objects update of themselves, as seen so far; the cost of one from how many entries it reads and how many pairs it
finds, with the sizes and speeds of a sample, and a density that explains the pairs of this moment.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# Nanoseconds on the machine on which they were fitted, to intervals of 10 to 180 and 10k to 30k objects: ratios matter.
UPDATE, ENTRY, PAIR = 900.0, 10.0, 280.0
CELL = 1.25  # of a grid, in mean box widths
SAMPLE = 2048
NARROWEST = 1e-100  # along which all lie in one place, and none is found by it


@dataclass
class UpdateRates:
    """How often the objects of a set update of themselves: before they must."""

    n_voluntary: int = 0
    n_forced: int = 0
    waited: float = 0.0  # all time between updates

    def note(self, waits: NDArray[np.float64], interval: float) -> None:
        n_forced = int(np.count_nonzero(waits >= interval * (1 - 1e-9)))
        self.n_forced += n_forced
        self.n_voluntary += len(waits) - n_forced
        self.waited += float(waits.sum())

    def rate(self, waiting: float) -> float:
        """Voluntary updates of an object in a unit of time. Who was forced, or still waits, has waited in vain.

        `waiting` is all time since the last updates.
        """
        waited = self.waited + waiting
        return self.n_voluntary / waited if waited > 0 else 0.0

    def to_numbers(self) -> tuple[int, int, float]:
        return self.n_voluntary, self.n_forced, self.waited

    def set_numbers(self, n_voluntary: int, n_forced: int, waited: float) -> None:
        self.n_voluntary, self.n_forced, self.waited = n_voluntary, n_forced, waited


@dataclass(frozen=True)
class Traffic:
    """What the cost depends on, as means by dimension: of a set's sizes and speeds, of both sets' relative speeds."""

    n: tuple[int, int]
    sizes: NDArray[np.float64]  # (2, n_dims)
    speeds: NDArray[np.float64]  # (2, n_dims)
    relative_speeds: NDArray[np.float64]
    n_pairs: int  # at this moment
    extents: NDArray[np.float64]  # of the space, where there is no pair to tell the density
    rates: tuple[float, float]  # of voluntary updates
    stands: tuple[bool, bool]


def expected_costs(traffic: Traffic, intervals: NDArray[np.float64]) -> NDArray[np.float64]:
    """What the updates of a unit of time cost with each interval: equation (1), summed over both sets."""
    costs = np.zeros(len(intervals))
    for side in range(2):
        if not traffic.stands[side]:
            rate = traffic.rates[side]
            costs += traffic.n[side] / _mean_wait(rate, intervals) * _update_cost(traffic, side, intervals)
    return costs


def _update_cost(traffic: Traffic, side: int, intervals: NDArray[np.float64]) -> NDArray[np.float64]:
    """Equation (2) with cells for nodes: entries read, twice, and pairs found, for one update of a set.

    A dimension along which nothing is apart, of objects on a line or in one point, is left out.
    """
    is_wide = traffic.extents > NARROWEST
    n_others, n_dims = traffic.n[1 - side], int(np.count_nonzero(is_wide))
    reach = traffic.sizes.sum(axis=0)[is_wide]  # who is nearer than this, intersects
    speeds = traffic.relative_speeds[is_wide]
    density = traffic.n_pairs / max(traffic.n[0] * traffic.n[1], 1)
    space = reach.prod() / density if density > 0 and reach.prod() > 0 else traffic.extents[is_wide].prod()
    ages = 0.0 if traffic.stands[1 - side] else _mean_age(traffic.rates[1 - side], intervals)
    ahead = intervals - ages  # as long as both are looked at
    swept = reach.prod() + ahead * sum(speeds[d] * np.delete(reach, d).prod() for d in range(n_dims))
    pairs = np.minimum(n_others * swept / space, n_others)
    entries = np.full(len(intervals), float(n_others))
    for d in np.flatnonzero(is_wide[:2]):  # the axes of a grid
        own = traffic.sizes[side, d] + traffic.speeds[side, d] * intervals
        others = traffic.sizes[1 - side, d] + traffic.speeds[1 - side, d] * ahead
        entries *= np.minimum((own + (1 + 2 * CELL) * others) / space ** (1 / n_dims), 1.0)
    return UPDATE + 2 * ENTRY * entries + PAIR * pairs  # type: ignore[no-any-return]


def _mean_wait(rate: float, intervals: NDArray[np.float64]) -> NDArray[np.float64]:
    """The mean time between two updates of an object that updates at a rate, and at the latest after an interval."""
    return -np.expm1(-rate * intervals) / rate if rate > 0 else intervals


def _mean_age(rate: float, intervals: NDArray[np.float64]) -> NDArray[np.float64]:
    """How long ago an object has updated, on average over time."""
    is_short = rate * intervals < 1e-6
    updates = np.where(is_short, 1.0, rate * intervals)
    left = np.exp(-updates)
    return np.where(is_short, intervals / 2, intervals * (1 - left * (1 + updates)) / (updates * (1 - left)))
