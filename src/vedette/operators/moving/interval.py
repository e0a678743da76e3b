"""Which maximum update interval costs least (section 7), for the join over grids.

A long interval saves forced updates, but each update looks farther ahead. The number of updates follows from how often
objects update of themselves, as seen so far; the cost of one from how many entries it reads and how many pairs it
finds, with the sizes and speeds of a sample, and a density that explains the pairs of this moment.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# Nanoseconds on the machine on which they were measured, 10k and 100k objects a set; only their ratios matter.
UPDATE, ENTRY, PAIR = 1500.0, 1.3, 70.0
CELL = 1.25  # of a grid, in mean box widths
SAMPLE = 2048


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

    @property
    def rate(self) -> float:
        """Voluntary updates of an object in a unit of time, forced ones taken for voluntary ones that came too late."""
        return self.n_voluntary / self.waited if self.waited > 0 else 0.0

    def to_numbers(self) -> tuple[int, int, float]:
        return self.n_voluntary, self.n_forced, self.waited

    def set_numbers(self, n_voluntary: int, n_forced: int, waited: float) -> None:
        self.n_voluntary, self.n_forced, self.waited = n_voluntary, n_forced, waited
