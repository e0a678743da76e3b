"""Vehicles on the streets of a synthetic town, similar to the truck and bus sets of Zhang et al.

Section 8.1: a trajectory is a list of locations at equal times. An object follows a trajectory from location to
location, reports its new course at each, and turns around at the ends. The paper has 276 trajectories of trucks and 145
of buses, a location every 30 seconds, about 400 a day. Here trucks drive between customers and wait there; buses drive
along lines, stop often, and wait where a line turns.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from benchmarks.moving_sets import Step
from vedette.operators.moving_join.motions import Motions

Fleet = Literal["truck", "bus"]
N_ROUTES: dict[Fleet, int] = {"truck": 276, "bus": 145}
N_LOCATIONS = 400  # of a route
LEG_TIME = 30  # from one location to the next
N_BLOCKS = 16  # of the town, along each side
CLOSED = 0.15  # share of the streets of the regular plan that do not exist


@dataclass(frozen=True)
class Town:
    """Junctions and their neighbours; `hops[t, j]` is the next junction after `j` on a shortest way to `t`."""

    places: NDArray[np.float64]  # (2, n_junctions)
    hops: NDArray[np.int32]

    @classmethod
    def lay_out(cls, seed: int, space: float = 1000.0) -> Town:
        random = np.random.default_rng([seed, 10])
        n = N_BLOCKS + 1
        rows, columns = np.divmod(np.arange(n * n), n)
        block = space / (N_BLOCKS + 1)
        shifts = random.uniform(-0.3, 0.3, (2, n * n))
        places = (np.stack([columns, rows]) + 0.5 + shifts) * block
        streets = [(j, j + 1) for j in range(n * n) if (j + 1) % n] + [(j, j + n) for j in range(n * n - n)]
        order = random.permutation(len(streets))
        neighbours = _keep_connected([streets[i] for i in order], round(CLOSED * len(streets)), n * n)
        return cls(places, np.stack([_find_hops(neighbours, target) for target in range(n * n)]))

    def find_way(self, start: int, target: int) -> list[int]:
        """Junctions on a shortest way, including both ends."""
        way = [start]
        while way[-1] != target:
            way.append(int(self.hops[target, way[-1]]))
        return way


@dataclass(frozen=True)
class StreetSets:
    """Two sets of vehicles on the same routes; each `step` is a second.

    >>> sets = StreetSets("bus", n_a=4, n_b=4, seed=3)
    >>> a, b = sets.start()
    >>> sum(len(step.a_places) for step in sets.steps(60))  # each at a location every 30 seconds
    8
    """

    fleet: Fleet = "truck"
    n_a: int = 10_000
    n_b: int = 10_000
    max_update_interval: int = 60
    max_speed: float = 1.0
    object_share: float = 0.005
    space: float = 1000.0
    seed: int = 1

    def __post_init__(self) -> None:
        if self.fleet not in N_ROUTES:
            raise ValueError(f"fleet must be one of {', '.join(N_ROUTES)}; got {self.fleet!r}")

    @property
    def side(self) -> float:
        return self.object_share * self.space

    @cached_property
    def routes(self) -> NDArray[np.float64]:
        """(n_routes, n_locations, 2): the locations of each route, in order."""
        town, random = Town.lay_out(self.seed, self.space), np.random.default_rng([self.seed, 11])
        return np.stack([_drive(town, random, self.fleet, self.max_speed) for _ in range(N_ROUTES[self.fleet])])

    def start(self) -> tuple[Motions, Motions]:
        """Both sets at time 0, somewhere between two locations."""
        return _Traffic.set_out(self, 0).motions(0), _Traffic.set_out(self, 1).motions(0)

    def steps(self, n: int) -> Iterator[Step]:
        """The updates of timestamps 1 to `n`."""
        a, b = _Traffic.set_out(self, 0), _Traffic.set_out(self, 1)
        for time in range(1, n + 1):
            yield Step(float(time), *a.step(time), *b.step(time))


@dataclass
class _Traffic:
    """The state of one set: each vehicle's route, last location and its time, direction, and last update."""

    sets: StreetSets
    routes: NDArray[np.int64]
    at: NDArray[np.int64]
    directions: NDArray[np.int64]
    left: NDArray[np.int64]
    updated: NDArray[np.int64]

    @classmethod
    def set_out(cls, sets: StreetSets, number: int) -> _Traffic:
        random, n = np.random.default_rng([sets.seed, 12, number]), (sets.n_a, sets.n_b)[number]
        routes = random.integers(0, len(sets.routes), n)
        at, directions = random.integers(1, N_LOCATIONS - 1, n), random.choice([-1, 1], n)
        return cls(sets, routes, at, directions, -random.integers(0, LEG_TIME, n), np.zeros(n, np.int64))

    def step(self, time: int) -> tuple[NDArray[np.int32], Motions]:
        """Let vehicles that reach a location drive on to the next. Returns those that update, and their motions."""
        is_there = time - self.left >= LEG_TIME
        self.at[is_there] += self.directions[is_there]
        self.left[is_there] = time
        is_at_end = (self.at == 0) | (self.at == N_LOCATIONS - 1)
        self.directions[is_there & is_at_end] *= -1
        places = np.flatnonzero(is_there | (time - self.updated >= self.sets.max_update_interval)).astype(np.int32)
        self.updated[places] = time
        return places, self.motions(time).take(places)

    def motions(self, time: int) -> Motions:
        """The motions of all vehicles as of a time."""
        here = self.sets.routes[self.routes, self.at].T
        there = self.sets.routes[self.routes, self.at + self.directions].T
        speeds = (there - here) / LEG_TIME
        lows = here - self.sets.side / 2 + speeds * (time - self.left)
        return Motions(lows, lows + self.sets.side, speeds, speeds.copy(), np.full(len(self.at), float(time)))


def _keep_connected(streets: list[tuple[int, int]], n_closed: int, n_junctions: int) -> list[list[int]]:
    """The neighbours of each junction after closing the first streets that are not needed to connect the town."""
    joined = list(range(n_junctions))

    def find(junction: int) -> int:
        while joined[junction] != junction:
            joined[junction] = joined[joined[junction]]
            junction = joined[junction]
        return junction

    neighbours: list[list[int]] = [[] for _ in range(n_junctions)]
    for place in reversed(range(len(streets))):
        one, other = streets[place]
        is_needed = find(one) != find(other)
        joined[find(one)] = find(other)
        if is_needed or place >= n_closed:
            neighbours[one].append(other)
            neighbours[other].append(one)
    return neighbours


def _find_hops(neighbours: list[list[int]], target: int) -> NDArray[np.int32]:
    """For every junction, the next one on a way with the fewest streets to the target."""
    hops = np.full(len(neighbours), -1, np.int32)
    hops[target] = target
    todo = deque([target])
    while todo:
        junction = todo.popleft()
        for other in neighbours[junction]:
            if hops[other] < 0:
                hops[other] = junction
                todo.append(other)
    return hops


def _drive(town: Town, random: np.random.Generator, fleet: Fleet, max_speed: float) -> NDArray[np.float64]:
    """Locations at equal times of one vehicle's day."""
    n_junctions = town.places.shape[1]
    end = LEG_TIME * (N_LOCATIONS - 1)
    here = int(random.integers(n_junctions))
    points, times = [town.places[:, here]], [0.0]
    stops = random.integers(0, n_junctions, 6)  # of a bus line, which is a loop
    for leg in range(10_000):
        target = int(random.integers(n_junctions)) if fleet == "truck" else int(stops[leg % len(stops)])
        for junction in town.find_way(here, target)[1:]:
            point = town.places[:, junction]
            length = float(np.hypot(*(point - points[-1])))
            times.append(times[-1] + length / (max_speed * random.uniform(0.4, 1.0)))
            points.append(point)
            if fleet == "bus":
                times.append(times[-1] + random.uniform(0, LEG_TIME))
                points.append(point)
        here = target
        times.append(times[-1] + LEG_TIME * random.uniform(2, 10 if fleet == "truck" else 3))
        points.append(points[-1])
        if times[-1] >= end:
            break
    when = np.arange(N_LOCATIONS) * float(LEG_TIME)
    xs, ys = np.array(points).T
    return np.stack([np.interp(when, times, xs), np.interp(when, times, ys)], axis=1)
