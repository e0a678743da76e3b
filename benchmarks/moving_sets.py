"""Two sets of moving squares or cubes: the synthetic data of Zhang et al. (section 8.1, table 2).

All data follow from the seed. An object changes course with some probability at each timestamp, at the end of the
maximum update interval, and when it would leave the space at the next timestamp.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from vedette.operators.moving_join.motions import Motions

Distribution = Literal["uniform", "gaussian", "battlefield"]
DISTRIBUTIONS: tuple[Distribution, ...] = ("uniform", "gaussian", "battlefield")
DEVIATION = 1 / 6  # of Gaussian positions, as a share of the space


@dataclass(frozen=True)
class Step:
    """The updates of a timestamp: the objects of each set, in ascending order, and their new motions."""

    time: float
    a_places: NDArray[np.int32]
    a_motions: Motions
    b_places: NDArray[np.int32]
    b_motions: Motions


@dataclass(frozen=True)
class MovingSets:
    """The parameters of table 2; the defaults are the paper's.

    "uniform" and "gaussian" are distributions of positions; directions are random. On the "battlefield" the sets start
    in opposite halves and move towards each other. Objects continue from their positions. With `jumps`, as in the
    authors' generator, an updated object gets a new place, so that the distribution does not change.

    >>> sets = MovingSets(n_a=3, n_b=2, seed=7)
    >>> a, b = sets.start()
    >>> len(a), len(b), float((a.highs - a.lows).max().round(9))
    (3, 2, 5.0)
    >>> [(step.time, step.a_places.tolist()) for step in sets.steps(60) if len(step.a_places)]
    [(7.0, [2]), (32.0, [1]), (57.0, [0, 1])]
    """

    distribution: Distribution = "uniform"
    n_a: int = 10_000
    n_b: int = 10_000
    max_update_interval: int = 60
    max_speed: float = 1.0
    object_share: float = 0.005  # the side of an object, of that of the space
    update_probability: float = 0.01
    n_dims: int = 2
    space: float = 1000.0
    jumps: bool = False
    seed: int = 1

    def __post_init__(self) -> None:
        if self.distribution not in DISTRIBUTIONS:
            raise ValueError(f"distribution must be one of {', '.join(DISTRIBUTIONS)}; got {self.distribution!r}")

    @property
    def side(self) -> float:
        return self.object_share * self.space

    def start(self) -> tuple[Motions, Motions]:
        """Both sets at time 0."""
        return _Crowd.gather(self, 0).motions(), _Crowd.gather(self, 1).motions()

    def steps(self, n: int) -> Iterator[Step]:
        """The updates of timestamps 1 to `n`."""
        a, b = _Crowd.gather(self, 0), _Crowd.gather(self, 1)
        for time in range(1, n + 1):
            yield Step(float(time), *a.step(time), *b.step(time))


@dataclass
class _Crowd:
    """The state of one set: each object's position at its last update, its speed, and its next deadline."""

    sets: MovingSets
    number: int
    random: np.random.Generator
    lows: NDArray[np.float64]
    speeds: NDArray[np.float64]
    times: NDArray[np.float64]
    deadlines: NDArray[np.float64]

    @classmethod
    def gather(cls, sets: MovingSets, number: int) -> _Crowd:
        """The initial set; first deadlines are spread over the interval, as in a system that has run for a while."""
        random, n = np.random.default_rng([sets.seed, number]), (sets.n_a, sets.n_b)[number]
        empty = np.empty((sets.n_dims, n))
        deadlines = random.integers(1, sets.max_update_interval + 1, n).astype(np.float64)
        crowd = cls(sets, number, random, empty, empty.copy(), np.zeros(n), deadlines)
        crowd.lows[:], crowd.speeds[:] = crowd._draw_places(n, 0), crowd._draw_speeds(n)
        crowd._turn_back(np.arange(n))
        return crowd

    def motions(self) -> Motions:
        return Motions(
            self.lows.copy(), self.lows + self.sets.side, self.speeds.copy(), self.speeds.copy(), self.times.copy()
        )

    def step(self, time: int) -> tuple[NDArray[np.int32], Motions]:
        """Let some objects change course. Returns which, and their new motions."""
        sets = self.sets
        now = self.lows + self.speeds * (time - self.times)
        is_leaving = ((now + self.speeds < 0) | (now + self.speeds > sets.space - sets.side)).any(axis=0)
        is_changed = (self.random.random(len(self.times)) < sets.update_probability) | (time >= self.deadlines)
        places = np.flatnonzero(is_changed | is_leaving).astype(np.int32)
        if sets.jumps:
            self.lows[:, places] = self._draw_places(len(places), time)
        else:
            self.lows[:, places] = np.clip(now[:, places], 0, sets.space - sets.side)
        self.speeds[:, places] = self._draw_speeds(len(places))
        self.times[places], self.deadlines[places] = time, time + sets.max_update_interval
        self._turn_back(places)
        return places, self.motions().take(places)

    def _turn_back(self, places: NDArray[np.integer]) -> None:
        """Reverse the speeds of objects that would leave the space at the next timestamp."""
        following = self.lows[:, places] + self.speeds[:, places]
        is_leaving = (following < 0) | (following > self.sets.space - self.sets.side)
        self.speeds[:, places] = np.where(is_leaving, -1, 1) * self.speeds[:, places]

    def _draw_places(self, n: int, time: int) -> NDArray[np.float64]:
        """Lower corners."""
        sets, random = self.sets, self.random
        room = sets.space - sets.side
        if sets.distribution == "gaussian":
            return np.clip(random.normal(0.5, DEVIATION, (sets.n_dims, n)), 0, 1) * room
        places = random.uniform(0, room, (sets.n_dims, n))
        if sets.distribution == "battlefield":
            # Each half moves towards the other side, which it reaches after two intervals.
            advance = min(time / sets.max_update_interval / 2, 1.0)
            places[0] = places[0] / 2 + advance * room / 2
            if self.number == 1:
                places[0] = room - places[0]
        return places

    def _draw_speeds(self, n: int) -> NDArray[np.float64]:
        """Speeds in any direction, up to the maximum; on the battlefield mostly forwards."""
        sets, random = self.sets, self.random
        speeds = random.uniform(0, sets.max_speed, n)
        if sets.distribution != "battlefield":
            return speeds * _draw_directions(random, sets.n_dims, n)
        forwards = speeds * random.random(n)
        sidewards = np.sqrt(speeds**2 - forwards**2) / 2 * _draw_directions(random, sets.n_dims - 1, n)
        return np.concatenate([[forwards if self.number == 0 else -forwards], sidewards])


def _draw_directions(random: np.random.Generator, n_dims: int, n: int) -> NDArray[np.float64]:
    """Vectors of length 1 in uniformly random directions."""
    vectors = random.standard_normal((n_dims, n))
    lengths = np.sqrt((vectors**2).sum(axis=0))
    directions: NDArray[np.float64] = vectors / np.where(lengths > 0, lengths, 1)
    return directions
