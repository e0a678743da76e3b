"""Trucks that drive from city to city for ever, and zones around the cities. The same seed gives the same fleet.

They drive much faster than real ones, so that one sees them move on a map of a continent.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

SCHEMA = "truck string, lon double, lat double, load bigint, ts timestamp"
OWNERS = ("ann", "bob", "cleo", "dan")
CITIES = {
    "Amsterdam": (4.90, 52.37), "Antwerp": (4.40, 51.22), "Barcelona": (2.17, 41.39), "Basel": (7.59, 47.56),
    "Berlin": (13.40, 52.52), "Bilbao": (-2.93, 43.26), "Bordeaux": (-0.58, 44.84), "Brno": (16.61, 49.20),
    "Brussels": (4.35, 50.85), "Budapest": (19.04, 47.50), "Copenhagen": (12.57, 55.68), "Dresden": (13.74, 51.05),
    "Frankfurt": (8.68, 50.11), "Gdansk": (18.65, 54.35), "Genoa": (8.93, 44.41), "Hamburg": (9.99, 53.55),
    "Krakow": (19.94, 50.06), "Leipzig": (12.37, 51.34), "Lille": (3.06, 50.63), "Ljubljana": (14.51, 46.06),
    "Lodz": (19.46, 51.76), "Lyon": (4.84, 45.76), "Madrid": (-3.70, 40.42), "Marseille": (5.37, 43.30),
    "Milan": (9.19, 45.46), "Munich": (11.58, 48.14), "Nantes": (-1.55, 47.22), "Nuremberg": (11.08, 49.45),
    "Paris": (2.35, 48.86), "Poznan": (16.93, 52.41), "Prague": (14.44, 50.08), "Rome": (12.50, 41.90),
    "Rotterdam": (4.48, 51.92), "Stuttgart": (9.18, 48.78), "Toulouse": (1.44, 43.60), "Turin": (7.69, 45.07),
    "Venice": (12.32, 45.44), "Vienna": (16.37, 48.21), "Warsaw": (21.01, 52.23), "Zaragoza": (-0.88, 41.65),
    "Zagreb": (15.98, 45.81), "Zurich": (8.54, 47.38),
}  # fmt: skip
KINDS = ("depot", "yard", "customer", "port", "no-go area", "toll road")
METRES = 111_320.0  # of a degree of latitude
_SPEED = (900.0, 1_600.0)  # metres per second
_STAY_SECONDS = (6.0, 25.0)  # in a city


class LiveFleet:
    """Trucks, and where each of them goes next."""

    def __init__(self, seed: int, n_trucks: int) -> None:
        self._random = random = np.random.default_rng([seed, 3])
        self._places = np.array(list(CITIES.values()))
        self.names = [f"truck {number + 1:03d}" for number in range(n_trucks)]
        starts = random.integers(len(CITIES), size=n_trucks)
        self._goals = np.array([self._choose(start) for start in starts])
        share = random.random((n_trucks, 1))
        self._at = (1 - share) * self._places[starts] + share * self._target(self._goals)
        self._speeds = random.uniform(*_SPEED, n_trucks)
        self._loads = random.integers(1, 25, n_trucks)
        self._stays = np.zeros(n_trucks)  # seconds until it leaves
        self._aims = self._target(self._goals)

    def zones(self, n: int) -> list[dict[str, Any]]:
        """Zones as `POST /queries` takes them: polygons, and circles in metres, in the cities and along the roads."""
        return [self._zone(number) for number in range(n)]

    def _zone(self, number: int) -> dict[str, Any]:
        random, names = self._random, list(CITIES)
        which = int(random.integers(len(CITIES)))
        if random.random() < 0.4:
            at = self._places[which] + random.normal(0, 0.25, 2)
        else:
            share = random.random()
            at = (
                (1 - share) * self._places[which] + share * self._places[self._choose(which)] + random.normal(0, 0.2, 2)
            )
        kind = KINDS[int(random.integers(len(KINDS)))]
        reach = float(random.lognormal(8.2, 0.6))  # metres
        if random.random() < 0.5:
            fence = f"ST_DWithin(ST_Point(lon, lat), ST_Point({at[0]:.5f}, {at[1]:.5f}), {round(reach, -2):.0f}, TRUE)"
        else:
            fence = f"ST_Within(ST_Point(lon, lat), ST_GeomFromText('{_polygon(random, at, reach)}'))"
        where = f"{fence} AND load >= 18" if kind == "toll road" else fence
        options: dict[str, Any] = {}
        if kind in ("customer", "yard"):
            options = {"dwell": "2 seconds"}
        elif kind == "no-go area":
            options = {"cooldown": "1 minute"}
        metadata = {"owner": OWNERS[number % len(OWNERS)], "kind": kind, "near": names[which]}
        return {"id": f"{kind} {number:04d}", "where": where, "metadata": metadata, **options}

    def drive(self, seconds: float) -> None:
        """Move all trucks."""
        shrinks = np.cos(np.radians(self._at[:, 1]))
        ways = (self._aims - self._at) * np.column_stack([shrinks, np.ones(len(shrinks))]) * METRES
        far = np.hypot(ways[:, 0], ways[:, 1])
        step = np.where(self._stays > 0, 0.0, np.minimum(far, self._speeds * seconds))
        self._at += (self._aims - self._at) * (step / np.maximum(far, 1.0))[:, None]
        self._stays = np.maximum(0.0, self._stays - seconds)
        for truck in np.flatnonzero((far < 1000) & (self._stays == 0)).tolist():
            self._goals[truck] = self._choose(int(self._goals[truck]))
            self._aims[truck] = self._target(self._goals[truck])
            self._stays[truck] = self._random.uniform(*_STAY_SECONDS)
            self._loads[truck] = self._random.integers(1, 25)

    def reports(self, which: NDArray[np.int64], now: datetime) -> list[dict[str, Any]]:
        """The rows of some trucks."""
        places, ts = self._at[which].round(5).tolist(), now.isoformat()
        return [
            {"truck": self.names[truck], "lon": lon, "lat": lat, "load": int(self._loads[truck]), "ts": ts}
            for truck, (lon, lat) in zip(which.tolist(), places, strict=True)
        ]

    def _choose(self, city: int) -> int:
        """Another city, a near one more often."""
        far = np.hypot(*(self._places - self._places[city]).T)
        chances = np.exp(-far / 2.5) * (far > 0)
        return int(self._random.choice(len(far), p=chances / chances.sum()))

    def _target(self, goals: Any) -> NDArray[np.float64]:
        """Places in the cities."""
        target: NDArray[np.float64] = self._places[goals] + self._random.normal(0, 0.08, (*np.shape(goals), 2))
        return target


def _polygon(random: np.random.Generator, at: NDArray[np.float64], reach: float) -> str:
    """An uneven ring around a place, as WKT."""
    n = int(random.integers(4, 9))
    angles = np.sort(random.uniform(0, 2 * np.pi / n, n) + np.arange(n) * 2 * np.pi / n)
    reaches = reach * random.uniform(0.6, 1.3, n) / METRES
    xs = at[0] + reaches * np.cos(angles) / np.cos(np.radians(at[1]))
    ys = at[1] + reaches * np.sin(angles)
    points = [f"{x:.5f} {y:.5f}" for x, y in zip(xs, ys, strict=True)]
    return f"POLYGON (({', '.join([*points, points[0]])}))"
