"""Distances on the earth, in metres: geodesics on the WGS 84 spheroid, and great circles on a sphere.

A geodesic is compared with a limit without computing it, unless it is very close. It is at least as long as its chord,
the straight line through the earth. Its curvature is at most 1 / R, where R is the least radius of curvature of the
spheroid. So, by Schur's theorem, it is at most as long as the arc of a circle of radius R over that chord. For 5 km the
two bounds are 0.13 mm apart. pyproj computes only what lies between them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from vedette.language.earth import EQUATOR_RADIUS, LEAST_CURVATURE_RADIUS, SPHERE_RADIUS, SQUARED_ECCENTRICITY
from vedette.native.kernels import kernel
from vedette.native.prefetch import prefetch

_NEARER, _FARTHER, _UNDECIDED = -1, 1, 0
_ROUNDING = 1e-6  # metres; coordinates in space are rounded to some nanometres, geodesics to 15
_ARC_EXCESS = 1 / (24 * LEAST_CURVATURE_RADIUS**2)
_LONGEST = 2 * LEAST_CURVATURE_RADIUS**2  # the square of a chord; for longer ones, the upper bound is not used
_AHEAD = 16  # pairs for which a circle is prefetched


def geodesic_distances(
    lon: NDArray[np.float64], lat: NDArray[np.float64], other_lon: NDArray[np.float64], other_lat: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Distances on the spheroid; NaN if a coordinate is out of range or not finite."""
    distances = np.full(len(lon), np.nan)
    good = np.flatnonzero(_are_places(lon, lat) & _are_places(other_lon, other_lat))
    if len(good):
        distances[good] = _spheroid().inv(lon[good], lat[good], other_lon[good], other_lat[good])[2]
    return distances


def great_circle_distances(
    lon: NDArray[np.float64], lat: NDArray[np.float64], other_lon: NDArray[np.float64], other_lat: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Distances on the sphere, by the haversine formula; NaN if a coordinate is out of range or not finite."""
    good = _are_places(lon, lat) & _are_places(other_lon, other_lat)
    with np.errstate(invalid="ignore"):
        turns = np.abs(lon - other_lon)
        turns = np.radians(np.minimum(turns, 360 - turns))
        lats, other_lats = np.radians(lat), np.radians(other_lat)
        share = np.sin((lats - other_lats) / 2) ** 2 + np.cos(lats) * np.cos(other_lats) * np.sin(turns / 2) ** 2
        angles = 2 * np.arctan2(np.sqrt(share), np.sqrt(np.maximum(1 - share, 0)))
    return np.where(good, SPHERE_RADIUS * angles, np.nan)


@dataclass(frozen=True)
class Circles:
    """Circles on the spheroid: centres and limits as written, and in space for comparisons."""

    lons: NDArray[np.float64]
    lats: NDArray[np.float64]
    limits: NDArray[np.float64]
    in_space: NDArray[np.float64]  # per circle x, y, z and the limit, in metres

    @classmethod
    def of(cls, lons: NDArray[np.float64], lats: NDArray[np.float64], limits: NDArray[np.float64]) -> Self:
        x, y, metres = (
            np.array(each) for each in (lons, lats, limits)
        )  # read-only arrays are another type for kernels
        return cls(lons, lats, limits, _place_circles(x, y, metres))

    def compare(
        self, lon: NDArray[np.float64], lat: NDArray[np.float64], members: NDArray[np.int64]
    ) -> NDArray[np.int8]:
        """The sign of the distance of point j from the centre of circle `members[j]`, less the limit.

        As in Spark's order, NaN is greater than every number and equal to itself.
        """
        signs = _compare_chords(lon, lat, self.in_space, members)
        close = np.flatnonzero(signs == _UNDECIDED)
        if len(close):
            some = members[close]
            distances = geodesic_distances(lon[close], lat[close], self.lons[some], self.lats[some])
            signs[close] = compare_distances(distances, self.limits[some])
        return signs


def compare_distances(distances: NDArray[np.float64], limits: NDArray[np.float64]) -> NDArray[np.int8]:
    """The signs of distances less limits, in the same order."""
    above = (distances > limits) | (np.isnan(distances) & ~np.isnan(limits))
    below = (distances < limits) | (np.isnan(limits) & ~np.isnan(distances))
    return above.astype(np.int8) - below.astype(np.int8)


def _are_places(lon: NDArray[np.float64], lat: NDArray[np.float64]) -> NDArray[np.bool_]:
    return np.asarray((np.abs(lon) <= 180) & (np.abs(lat) <= 90))


@lru_cache(maxsize=1)
def _spheroid() -> Any:
    from pyproj import Geod

    return Geod(ellps="WGS84")


@kernel
def _compare_chords(
    lon: NDArray[np.float64], lat: NDArray[np.float64], circles: NDArray[np.float64], members: NDArray[np.int64]
) -> NDArray[np.int8]:
    """What the bounds decide; the rest is undecided, and so is a place that does not exist."""
    n = len(lon)
    signs = np.empty(n, np.int8)
    x, y, z, last_lon, last_lat = 0.0, 0.0, 0.0, np.nan, np.nan
    for j in range(n):
        if lon[j] != last_lon or lat[j] != last_lat:  # the pairs of a row follow each other
            last_lon, last_lat = lon[j], lat[j]
            x, y, z = _place(last_lon, last_lat)
        if j + _AHEAD < n:
            prefetch(circles, 4 * members[j + _AHEAD])
        at = 4 * members[j]
        dx, dy, dz, limit = x - circles[at], y - circles[at + 1], z - circles[at + 2], circles[at + 3]
        squared = dx * dx + dy * dy + dz * dz
        far, near = limit + _ROUNDING, limit - _ROUNDING
        near *= 1 - near * near * _ARC_EXCESS  # the chord of an arc that is so long is longer: sin(x) >= x - x^3 / 6
        if squared > far * far:
            signs[j] = _FARTHER
        elif near > 0 and squared < near * near and squared < _LONGEST:
            signs[j] = _NEARER
        else:
            signs[j] = _UNDECIDED
    return signs


@kernel
def _place_circles(
    lons: NDArray[np.float64], lats: NDArray[np.float64], limits: NDArray[np.float64]
) -> NDArray[np.float64]:
    placed = np.empty(4 * len(lons), np.float64)
    for i in range(len(lons)):
        placed[4 * i], placed[4 * i + 1], placed[4 * i + 2] = _place(lons[i], lats[i])
        placed[4 * i + 3] = limits[i]
    return placed


@kernel
def _place(lon: float, lat: float) -> tuple[float, float, float]:
    """A place in space, in metres from the centre of the spheroid. NaN if there is no such place."""
    if not (abs(lon) <= 180 and abs(lat) <= 90):
        return np.nan, np.nan, np.nan
    turn, angle = math.radians(lon), math.radians(lat)
    sine = math.sin(angle)
    normal = EQUATOR_RADIUS / math.sqrt(1 - SQUARED_ECCENTRICITY * sine * sine)
    from_axis = normal * math.cos(angle)
    return from_axis * math.cos(turn), from_axis * math.sin(turn), normal * (1 - SQUARED_ECCENTRICITY) * sine
