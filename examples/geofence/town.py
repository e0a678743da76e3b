"""A synthetic town: a grid of streets, zones, customers, and a fleet. The same seed gives the same day.

Coordinates are metres east and north of the town's corner.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa

SCHEMA = "vehicle string, engine string, x double, y double, ts timestamp"
BLOCK, COLUMNS, ROWS = 250.0, 16, 11  # metres between crossings, and how many there are
START = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)
SECONDS_BETWEEN = 5  # positions of one vehicle
NOISE = 4.0  # error of a position, in metres
KINDS = {"school": 8, "road works": 8, "depot": 3}  # and one low-emission zone

# The low-emission zone, and inside it the way to the station, where everyone may go.
LOW_EMISSION = [(1400, 700), (2350, 600), (2900, 1150), (2650, 2050), (1800, 2150), (1250, 1600), (1400, 700)]
STATION = [(1880, 1130), (2380, 1130), (2380, 1620), (1880, 1620), (1880, 1130)]


@dataclass(frozen=True)
class Zone:
    """A polygon, its outer ring first; then its holes."""

    id: str
    kind: str
    rings: list[list[tuple[float, float]]]
    only: str = ""  # the condition for vehicles to which it applies


@dataclass(frozen=True)
class Customer:
    """A place where vehicles may stop, and the radius that counts as being there."""

    id: str
    x: float
    y: float
    radius: float


@dataclass(frozen=True)
class Town:
    """Zones, customers and vehicles."""

    seed: int
    zones: list[Zone] = field(repr=False)
    customers: list[Customer] = field(repr=False)

    @classmethod
    def build(cls, seed: int, n_customers: int = 14) -> Town:
        random = np.random.default_rng([seed, 0])
        zones = [Zone("low emission", "low emission", [LOW_EMISSION, STATION], "engine = 'diesel'")]
        spots = _spread(random, sum(KINDS.values()) + n_customers)
        for kind, n in KINDS.items():
            zones += [Zone(f"{kind} {i + 1}", kind, [_outline(random, kind, *spots.pop())]) for i in range(n)]
        radii = random.integers(4, 8, n_customers) * 10.0
        customers = [Customer(f"customer {i + 1}", *spots.pop(), radius) for i, radius in enumerate(radii)]
        return cls(seed, zones, customers)

    def positions(self, n_vehicles: int, minutes: int) -> pa.Table:
        """The positions of the vehicles every few seconds, in time order."""
        random = np.random.default_rng([self.seed, 1])
        n = minutes * 60 // SECONDS_BETWEEN
        parts = []
        for number in range(n_vehicles):
            seconds = random.integers(0, SECONDS_BETWEEN) + np.arange(n) * SECONDS_BETWEEN
            x, y = self._drive(random, seconds)
            parts.append(
                {
                    "vehicle": [f"van {number + 1}"] * n,
                    "engine": ["diesel" if number % 3 == 0 else "electric"] * n,
                    "x": (x + random.normal(0, NOISE, n)).round(1),
                    "y": (y + random.normal(0, NOISE, n)).round(1),
                    "ts": pa.array((int(START.timestamp()) + seconds) * 1_000_000, pa.timestamp("us", tz="UTC")),
                }
            )
        return pa.concat_tables([pa.table(part) for part in parts]).sort_by("ts")

    def _drive(self, random: np.random.Generator, seconds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """A path from crossing to crossing: mostly straight on, with red lights, and stops at customers."""
        stops = {(customer.x, customer.y) for customer in self.customers}
        at = np.array([random.integers(COLUMNS), random.integers(ROWS)])
        ahead = _STEPS[random.integers(4)]
        now, times, places = 0.0, [0.0], [at * BLOCK]
        while now <= seconds[-1]:
            ahead = _turn(random, at, ahead)
            at = at + ahead
            now += BLOCK / random.uniform(8, 14)
            times.append(now)
            places.append(at * BLOCK)
            if tuple(at * BLOCK) in stops:
                pause = random.uniform(20, 300)
            else:
                pause = random.uniform(5, 30) if random.random() < 0.25 else 0.0
            now += pause
            times.append(now)
            places.append(at * BLOCK)
        xs, ys = np.array(places).T
        return np.interp(seconds, times, xs), np.interp(seconds, times, ys)

    def write_geojson(self, path: Path) -> None:
        """The polygons as GeoJSON. It has no circles, so the customers are not in it."""
        features = [
            {
                "type": "Feature",
                "id": zone.id,
                "properties": {"kind": zone.kind, "only": zone.only},
                "geometry": {"type": "Polygon", "coordinates": zone.rings},
            }
            for zone in self.zones
        ]
        path.write_text(json.dumps({"type": "FeatureCollection", "features": features}, indent=1), encoding="utf-8")


_STEPS = np.array([(1, 0), (0, 1), (-1, 0), (0, -1)])


def _turn(random: np.random.Generator, at: np.ndarray, ahead: np.ndarray) -> np.ndarray:
    """The next direction: straight on, left or right, but not out of town; back only if nothing else is possible."""
    left = np.array([-ahead[1], ahead[0]])
    ways, weights = [ahead, left, -left, -ahead], np.array([0.6, 0.2, 0.2, 1e-9])
    in_town = [bool(np.all(at + way >= 0) and np.all(at + way < (COLUMNS, ROWS))) for way in ways]
    weights = weights * in_town
    return ways[random.choice(4, p=weights / weights.sum())]


def _spread(random: np.random.Generator, n: int) -> list[tuple[float, float]]:
    """Crossings, no two of them next to each other."""
    chosen: list[tuple[int, int]] = []
    crossings = [(column, row) for column in range(COLUMNS) for row in range(ROWS)]
    for column, row in random.permutation(crossings).tolist():
        if all(abs(column - c) + abs(row - r) > 1 for c, r in chosen):
            chosen.append((column, row))
    return [(column * BLOCK, row * BLOCK) for column, row in chosen[:n]]


def _outline(random: np.random.Generator, kind: str, x: float, y: float) -> list[tuple[float, float]]:
    """A ring round a crossing: a school's is uneven, road works lie along a street, a depot is a rectangle."""
    if kind == "school":
        angles = np.sort(random.uniform(0, 2 * np.pi / 7, 7) + np.arange(7) * 2 * np.pi / 7)
        reach = random.uniform(80, 130, 7)
        points = np.column_stack([x + reach * np.cos(angles), y + reach * np.sin(angles)])
    else:
        long, wide = (random.uniform(90, 120), 25.0) if kind == "road works" else (105.0, 80.0)
        half = np.array([long, wide] if random.random() < 0.5 else [wide, long])
        points = np.array([x, y]) + half * np.array([(-1, -1), (1, -1), (1, 1), (-1, 1)])
    ring = [(float(px), float(py)) for px, py in points.round(1)]
    return [*ring, ring[0]]
