"""A synthetic region: zones of three customers, and vans that drive from one zone to another and stop there."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

SCHEMA = "van string, lon double, lat double, ts timestamp"
START = datetime(2026, 3, 2, 8, tzinfo=UTC)
EAST, NORTH = 4.35, 51.05  # the middle of the region, in degrees
METRES = 111_320.0  # of a degree of latitude
OWNERS = ("ann", "bob", "cleo")
_STEP_SECONDS = 10
_SPEED = 14.0  # metres per second


@dataclass(frozen=True)
class Zone:
    """A circle around a place. Its owner wants to know who stays there."""

    owner: str
    name: str
    lon: float
    lat: float
    radius: float  # metres

    @property
    def id(self) -> str:
        return f"{self.owner}/{self.name}"

    @property
    def text(self) -> str:
        """The condition: within so many metres of the place, on the WGS 84 spheroid."""
        return f"ST_DWithin(ST_Point(lon, lat), ST_Point({self.lon:.6f}, {self.lat:.6f}), {self.radius:g}, TRUE)"


def make_zones(seed: int, n_zones: int = 15) -> list[Zone]:
    chance = np.random.default_rng(seed)
    names = ("depot", "shop", "yard", "dock", "farm")
    zones = []
    for number in range(n_zones):
        lon, lat = _place(*chance.uniform(-9_000, 9_000, 2))
        owner, name = OWNERS[number % len(OWNERS)], names[number // len(OWNERS) % len(names)]
        zones.append(Zone(owner, name, lon, lat, float(chance.choice([300, 500, 800, 1200]))))
    return zones


def drive(zones: list[Zone], n_vans: int, minutes: int, seed: int) -> list[dict[str, object]]:
    """The positions of all vans, in the order of time. Vans drive to a random zone, stay there, and go on."""
    chance = np.random.default_rng(seed)
    rows = []
    for van in range(n_vans):
        at, stay = np.array(chance.uniform(-9_000, 9_000, 2)), 0
        goal = _metres(zones[chance.integers(len(zones))])
        for step in range(minutes * 60 // _STEP_SECONDS):
            lon, lat = _place(*(at + chance.normal(0, 4, 2)))
            moment = START + timedelta(seconds=step * _STEP_SECONDS)
            rows.append({"van": f"van {van + 1}", "lon": lon, "lat": lat, "ts": moment})
            way = goal - at
            far = float(np.hypot(*way))
            if far > _SPEED * _STEP_SECONDS:
                at = at + way / far * _SPEED * _STEP_SECONDS
                stay = int(chance.integers(1, 10)) * 60 // _STEP_SECONDS
            elif stay > 0:
                stay -= 1
            else:
                goal = _metres(zones[chance.integers(len(zones))])
    return sorted(rows, key=lambda row: (row["ts"], row["van"]))


def write_files(rows: list[dict[str, object]], folder: Path, n_files: int) -> None:
    """The positions as files of JSON lines. One van has lost its name, and one line was cut off."""
    folder.mkdir(parents=True)
    for number, part in enumerate(np.array_split(np.arange(len(rows)), n_files)):
        lines = [json.dumps(rows[i] | {"ts": rows[i]["ts"].isoformat()}) for i in part]
        if number == 1:
            lines += [lines[-1].replace(str(rows[part[-1]]["van"]), "").replace('""', "null"), lines[-1][:40]]
        (folder / f"{number:03}.json").write_text("\n".join(lines) + "\n")


def _place(x: float, y: float) -> tuple[float, float]:
    """Longitude and latitude of a point in metres from the middle."""
    return EAST + x / (METRES * np.cos(np.radians(NORTH))), NORTH + y / METRES


def _metres(zone: Zone) -> np.ndarray:
    return np.array([(zone.lon - EAST) * METRES * np.cos(np.radians(NORTH)), (zone.lat - NORTH) * METRES])
