"""A GeoJSON point with a property `radius` as a circle in metres."""

from __future__ import annotations

from typing import Any

import numpy as np

from vedette.errors import QueryError
from vedette.files.rings import read_number, read_point
from vedette.language.earth import HALF_EARTH
from vedette.language.fence_bounds import Bounds, find_bad_metres, find_strays
from vedette.language.geofences import SPHEROID

POINT = "Point"
RADIUS = "radius"


def write_circle(geometry: dict[str, Any], properties: dict[str, Any], point: str) -> str:
    """The query of a circle. `point` is the point of fields as a query has it. Raises QueryError."""
    if RADIUS not in properties:
        raise QueryError(f"its geometry is a Point without a property {RADIUS!r}, the radius of a circle in metres")
    lon, lat = read_point(geometry.get("coordinates"))
    radius = read_number(properties[RADIUS], f"its property {RADIUS!r} is")
    metres, x, y = (np.array([float(each)]) for each in (radius, lon, lat))
    faults = find_bad_metres(metres, HALF_EARTH[SPHEROID]) or find_strays(
        Bounds(x, x, y, y), "longitude", "latitude", slack=0
    )
    if faults:
        raise QueryError(faults[0])
    return f"ST_DWithin({point}, ST_Point({lon!r}, {lat!r}), {radius!r}, TRUE)"
