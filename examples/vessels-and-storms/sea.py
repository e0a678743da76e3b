"""A synthetic bay: vessels on routes, and storm cells that drift, grow and fade. The same seed gives the same day.

Places are nautical miles east and north of the map's corner, times are minutes, speeds are miles per minute.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

EAST, NORTH = 240.0, 150.0
# The coast around the sea. It is convex, so every straight course from port to port is in the water.
COAST = [(66, 150), (30, 134), (10, 104), (5, 66), (17, 34), (48, 13), (96, 4), (150, 0)]
PORTS = {"Aldwick": (30, 134), "Brough": (10, 104), "Carrick": (5, 66), "Dunmore": (17, 34), "Ebwy": (96, 4)}
NAMES = (
    *("Alma", "Brio", "Cora", "Dora", "Esk", "Fram", "Gala", "Hebe", "Iris", "Juno", "Kite", "Lark"),
    *("Mira", "Nora", "Orla", "Puck", "Rhea", "Skua", "Tern", "Una", "Vega", "Wren", "Yara", "Zita"),
)
RADAR = 10  # minutes between two radar images of the storms
REPORT = (12, 26)  # minutes between two reports of a vessel that does not change course
AHEAD = 20  # minutes that an alert zone reaches ahead
SIDES = ("x_low", "x_high", "y_low", "y_high")
SPEEDS = ("vx_low", "vx_high", "vy_low", "vy_high")


@dataclass(frozen=True)
class Vessel:
    """A name, the watched radius in miles, and a route: places at times, with straight lines in between."""

    name: str
    radius: float
    times: np.ndarray
    points: np.ndarray  # (n, 2)

    def place(self, time: float) -> np.ndarray:
        return np.array([np.interp(time, self.times, self.points[:, axis]) for axis in range(2)])

    def velocity(self, time: float) -> np.ndarray:
        """The velocity from this time on."""
        leg = int(np.searchsorted(self.times, time, side="right"))
        if leg in (0, len(self.times)):
            return np.zeros(2)
        return (self.points[leg] - self.points[leg - 1]) / (self.times[leg] - self.times[leg - 1])

    def zone(self, time: float) -> tuple[float, ...]:
        """The alert zone: the places of the vessel in the next minutes, and some miles around them."""
        here = self.place(time)
        there = here + AHEAD * self.velocity(time)
        low, high = np.minimum(here, there) - self.radius, np.maximum(here, there) + self.radius
        return float(low[0]), float(high[0]), float(low[1]), float(high[1])


@dataclass(frozen=True)
class Storm:
    """A cell that appears, drifts along an arc, grows, fades and disappears."""

    id: int
    born: float
    life: float
    start: np.ndarray
    speed: float
    heading: float  # radians from east
    turn: float  # radians per minute
    largest: np.ndarray  # half its sides

    def lives(self, time: float) -> bool:
        return self.born < time < self.born + self.life

    def box(self, time: float) -> np.ndarray:
        """x_low, x_high, y_low, y_high."""
        age = time - self.born
        heading = self.heading + self.turn * age
        moved = np.array([np.sin(heading) - np.sin(self.heading), np.cos(self.heading) - np.cos(heading)])
        middle = self.start + self.speed / self.turn * moved
        half = self.largest * np.sin(np.pi * np.clip(age / self.life, 0, 1)) ** 2
        return np.stack([middle - half, middle + half], axis=1).ravel()

    def speeds(self, time: float) -> np.ndarray:
        """The speeds of the four sides, from two radar images."""
        return self.box(time + 0.5) - self.box(time - 0.5)


@dataclass(frozen=True)
class Sea:
    """Vessels and storms over some minutes."""

    seed: int
    minutes: int
    vessels: list[Vessel] = field(repr=False)
    storms: list[Storm] = field(repr=False)

    @classmethod
    def build(cls, seed: int, n_vessels: int, n_storms: int, minutes: int) -> Sea:
        random = np.random.default_rng([seed, 0])
        vessels = [_make_vessel(random, number, minutes) for number in range(n_vessels)]
        random = np.random.default_rng([seed, 1])
        return cls(seed, minutes, vessels, [_make_storm(random, number, minutes) for number in range(n_storms)])

    def reports(self) -> pa.Table:
        """The vessels' reports: alert zones and courses, at intervals and at every change of course."""
        random = np.random.default_rng([self.seed, 2])
        rows = []
        for vessel in self.vessels:
            times = np.cumsum(random.integers(*REPORT, self.minutes)).astype(float)
            times = np.unique([0.0, *times, *np.ceil(vessel.times)])
            for time in times[times <= self.minutes].tolist():
                vx, vy = vessel.velocity(time).tolist()
                rows.append((vessel.name, time, *vessel.zone(time), vx, vx, vy, vy))
        return _table(rows, ("id", "time", *SIDES, *SPEEDS))

    def pictures(self) -> pa.Table:
        """The radar's reports: cells and the speeds of their sides, and a last report when a cell has disappeared."""
        rows = []
        for storm in self.storms:
            seen = False
            for time in np.arange(0.0, self.minutes + 1, RADAR).tolist():
                if storm.lives(time):
                    rows.append((storm.id, time, *storm.box(time).tolist(), *storm.speeds(time).tolist(), False))
                elif seen:
                    rows.append((storm.id, time, *[None] * 8, True))
                seen = storm.lives(time)
        return _table(rows, ("id", "time", *SIDES, *SPEEDS, "removed"))


def _make_vessel(random: np.random.Generator, number: int, minutes: int) -> Vessel:
    """From a place in the bay to a port or out to sea, around a buoy, and on."""
    gates = [*PORTS.values(), (EAST, 40.0), (EAST, 110.0), (150.0, NORTH)]
    now, times = 0.0, [0.0]
    points = [np.array([random.uniform(50, 200), random.uniform(25, 130)])]
    speed = random.uniform(9, 24) / 60
    while now <= minutes:
        gate = np.array(gates[random.integers(len(gates))])
        buoy = np.array([random.uniform(70, 190), random.uniform(30, 120)])
        for target in (buoy, gate):
            now += float(np.hypot(*(target - points[-1]))) / speed
            times.append(now)
            points.append(target)
        now += random.uniform(30, 90)  # in port, or behind the horizon
        times.append(now)
        points.append(points[-1])
    name = NAMES[number % len(NAMES)] + (f" {number // len(NAMES) + 1}" if number >= len(NAMES) else "")
    return Vessel(name, float(random.choice([2.0, 3.0, 4.0])), np.array(times), np.array(points))


def _make_storm(random: np.random.Generator, number: int, minutes: int) -> Storm:
    """Most come from the north-east."""
    life = random.uniform(140, 320)
    return Storm(
        id=number + 1,
        born=random.uniform(-0.5 * life, minutes - 0.4 * life),
        life=life,
        start=np.array([random.uniform(110, 250), random.uniform(45, 150)]),
        speed=random.uniform(12, 26) / 60,
        heading=np.pi + random.uniform(-0.2, 0.8),
        turn=random.choice([-1, 1]) * random.uniform(0.001, 0.005),
        largest=np.array([random.uniform(10, 20), random.uniform(8, 16)]),
    )


def _table(rows: list[tuple], names: tuple[str, ...]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(names)
    kinds = {"removed": pa.bool_(), "id": None}
    arrays = [pa.array(values, kinds.get(name, pa.float64())) for name, values in zip(names, columns, strict=True)]
    return pa.table(arrays, names=list(names)).sort_by([("time", "ascending")])
