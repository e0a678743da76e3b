"""Circles on the earth: boxes of longitudes and latitudes around them.

The spheroid is WGS 84; the sphere has the mean radius that Apache Sedona uses. A box is never too small:

- The length of a curve between two latitudes is at least that of the meridian between them. The radius of curvature of
  a meridian grows with the latitude, so its value at the circle's latitude nearest the equator bounds the difference.
- A parallel becomes shorter with the latitude, so its radius at the circle's latitude nearest a pole bounds the
  difference of longitudes. A circle that contains a pole has all longitudes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

EQUATOR_RADIUS = 6378137.0
FLATTENING = 1 / 298.257223563
SQUARED_ECCENTRICITY = FLATTENING * (2 - FLATTENING)
LEAST_CURVATURE_RADIUS = EQUATOR_RADIUS * (1 - SQUARED_ECCENTRICITY)  # of a meridian at the equator
SPHERE_RADIUS = 6371008.0
HALF_EARTH = {"st_distancespheroid": 20003931.458625448, "st_distancesphere": np.pi * SPHERE_RADIUS}  # the farthest
_ROUNDING = 1e-5  # metres; distances are rounded by less than a micrometre


class Boxes(NamedTuple):
    """Closed boxes, one per circle. A circle across the antimeridian continues in a second range of longitudes."""

    lon_lows: NDArray[np.float64]
    lon_highs: NDArray[np.float64]
    lat_lows: NDArray[np.float64]
    lat_highs: NDArray[np.float64]
    more_lows: NDArray[np.float64]
    more_highs: NDArray[np.float64]
    crosses: NDArray[np.bool_]


def boxes_of_circles(
    lons: NDArray[np.float64], lats: NDArray[np.float64], metres: NDArray[np.float64], *, on_sphere: bool
) -> Boxes:
    """The boxes of all points that are at most so many metres from the centres."""
    return widen_boxes(lons, lons, lats, lats, metres, on_sphere=on_sphere)


def widen_boxes(
    lon_lows: NDArray[np.float64],
    lon_highs: NDArray[np.float64],
    lat_lows: NDArray[np.float64],
    lat_highs: NDArray[np.float64],
    metres: NDArray[np.float64],
    *,
    on_sphere: bool,
) -> Boxes:
    """The boxes of all points that are at most so many metres from boxes within [-180, 180] and [-90, 90]."""
    reach = metres * (1 + 1e-12) + _ROUNDING
    widest = np.degrees(reach / (SPHERE_RADIUS if on_sphere else LEAST_CURVATURE_RADIUS))
    is_over_equator = (lat_lows - widest <= 0) & (lat_highs + widest >= 0)
    nearest = np.where(is_over_equator, 0.0, np.minimum(np.abs(lat_lows), np.abs(lat_highs)) - widest)
    up = np.degrees(reach / _meridian_radius(nearest, on_sphere))
    lat_lows, lat_highs = lat_lows - up, lat_highs + up
    farthest = np.maximum(np.abs(lat_lows), np.abs(lat_highs))
    with np.errstate(divide="ignore", over="ignore"):
        wide = np.degrees(reach / np.maximum(_parallel_radius(farthest, on_sphere), 0.0))
    lows, highs = lon_lows - wide, lon_highs + wide
    everywhere = (farthest >= 90) | (highs - lows >= 360)
    lows, highs = np.where(everywhere, -180.0, lows), np.where(everywhere, 180.0, highs)
    west, east = lows < -180, highs > 180
    return Boxes(
        lon_lows=np.maximum(lows, -180.0),
        lon_highs=np.minimum(highs, 180.0),
        lat_lows=np.maximum(lat_lows, -90.0),
        lat_highs=np.minimum(lat_highs, 90.0),
        more_lows=np.where(west, lows + 360, -180.0),
        more_highs=np.where(east, highs - 360, 180.0),
        crosses=west | east,
    )


def metres_per_degree(lats: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The lengths of a degree at latitudes on the spheroid: to the east, and to the north."""
    return np.radians(_parallel_radius(lats, False)), np.radians(_meridian_radius(lats, False))


def _meridian_radius(lats: NDArray[np.float64], on_sphere: bool) -> NDArray[np.float64]:
    """The radius of curvature of a meridian."""
    if on_sphere:
        return np.full(len(lats), SPHERE_RADIUS)
    return LEAST_CURVATURE_RADIUS / (1 - SQUARED_ECCENTRICITY * np.sin(np.radians(lats)) ** 2) ** 1.5


def _parallel_radius(lats: NDArray[np.float64], on_sphere: bool) -> NDArray[np.float64]:
    """The radius of a parallel."""
    if on_sphere:
        return SPHERE_RADIUS * np.cos(np.radians(lats))
    return EQUATOR_RADIUS * np.cos(np.radians(lats)) / np.sqrt(1 - SQUARED_ECCENTRICITY * np.sin(np.radians(lats)) ** 2)
