"""The geometry of a GeoJSON feature as WKT, with all digits."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from vedette.errors import QueryError, shortened

GEOMETRIES = ("Polygon", "MultiPolygon")
_COLLECTION = "GeometryCollection"
_GREATEST = sys.float_info.max
_MIN_POINTS = 4  # of a closed ring
_MAX_NESTED = 100  # levels of collections

Ring = list[str]  # points as WKT


def write_polygons(geometry: Any, *, repair: bool = False) -> tuple[str, bool]:
    """The polygons of a geometry as WKT, and whether they were repaired.

    With `repair`, open rings are closed, rings of fewer than three points are dropped, and only the polygons of a
    GeometryCollection are kept. Raises QueryError if the geometry is invalid or has no polygon.
    """
    if not isinstance(geometry, dict):
        raise QueryError("it has no geometry")
    kind = geometry.get("type")
    if kind == _COLLECTION and repair:
        polygons = [rings for each in _members(geometry) for rings in _polygons_of(each)]
    elif kind in GEOMETRIES:
        polygons = _polygons_of(geometry)
    else:
        hint = "; --repair, or repair=True, keeps its polygons" if kind == _COLLECTION else ""
        what = shortened(str(kind), 40)
        fences = "a Polygon, a MultiPolygon or a Point with a radius"
        raise QueryError(f"its geometry is a {what}; a geofence is {fences}{hint}")
    faults = list(_find_faults(polygons))
    if faults and not repair:
        raise QueryError(f"invalid geometry: {faults[0]}")
    if faults:
        polygons = [_close(rings) for rings in polygons]
        polygons = [rings for rings in polygons if rings]
    if not polygons:
        raise QueryError(f"invalid geometry: {faults[0] if faults else 'it has no polygon'}; it cannot be repaired")
    written = ["(" + ", ".join("(" + ", ".join(ring) + ")" for ring in rings) + ")" for rings in polygons]
    text = f"POLYGON {written[0]}" if kind == "Polygon" else f"MULTIPOLYGON ({', '.join(written)})"
    return text, bool(faults) or kind == _COLLECTION


def _members(collection: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The polygons of a collection and of the collections in it."""
    waiting: list[tuple[Any, int]] = [(collection, 0)]
    while waiting:
        geometry, depth = waiting.pop()
        kind = geometry.get("type") if isinstance(geometry, dict) else None
        if kind in GEOMETRIES:
            yield geometry
        if kind == _COLLECTION:
            if depth == _MAX_NESTED:
                raise QueryError(f"its collections are nested more than {_MAX_NESTED} levels deep")
            parts = geometry.get("geometries")
            waiting += [(each, depth + 1) for each in reversed(parts)] if isinstance(parts, list) else []


def _polygons_of(geometry: dict[str, Any]) -> list[list[Ring]]:
    coordinates = geometry.get("coordinates")
    polygons = [coordinates] if geometry["type"] == "Polygon" else _items(coordinates, "a list of polygons")
    return [
        [
            [_write_point(point) for point in _items(ring, "a list of points")]
            for ring in _items(rings, "a list of rings")
        ]
        for rings in polygons
    ]


def _find_faults(polygons: list[list[Ring]]) -> Iterator[str]:
    """The faults of rings that WKT cannot represent."""
    for number, rings in enumerate(polygons, start=1):
        for place, ring in enumerate(rings, start=1):
            where = f"ring {place}" if len(polygons) == 1 else f"ring {place} of polygon {number}"
            if ring[0] != ring[-1]:
                yield f"{where} is not closed: its first point is {ring[0]}, its last point {ring[-1]}"
            elif len(ring) < _MIN_POINTS:
                yield f"{where} has too few points: {len(ring)}; a closed ring needs at least {_MIN_POINTS}"


def _close(rings: list[Ring]) -> list[Ring]:
    """Closed rings with enough points; none if the first, the shell, has too few."""
    closed = [ring if ring[0] == ring[-1] else [*ring, ring[0]] for ring in rings]
    return [ring for ring in closed if len(ring) >= _MIN_POINTS] if len(closed[0]) >= _MIN_POINTS else []


def _items(value: Any, wanted: str) -> Sequence[Any]:
    if not isinstance(value, list) or not value:
        raise QueryError(f"its coordinates have {_written(value)} instead of {wanted}")
    return value


def _write_point(point: Any) -> str:
    x, y = read_point(point)
    return f"{x!r} {y!r}"


def read_point(point: Any) -> tuple[float, float]:
    """The first two coordinates of a point. Raises QueryError."""
    if not isinstance(point, list) or len(point) < 2:
        raise QueryError(f"its coordinates have {_written(point)} instead of a point such as [4.35, 50.85]")
    return read_number(point[0], "its coordinates have"), read_number(point[1], "its coordinates have")


def read_number(number: Any, has: str) -> float:
    """A finite number. Raises QueryError, which begins with `has`."""
    if not isinstance(number, int | float) or isinstance(number, bool) or not abs(number) <= _GREATEST:
        raise QueryError(f"{has} {_written(number)} instead of a number")
    return number


def _written(value: Any) -> str:
    return shortened(json.dumps(value), 40)
