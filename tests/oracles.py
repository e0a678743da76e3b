"""Reference answers in plain Python. They share no code with the package."""

from __future__ import annotations

import math
from itertools import pairwise


def match_boxes(firsts, lasts, ids, cells):
    """The sorted ids of the boxes that contain each row; `firsts[axis][box]`, `cells[axis][row]`, closed ranges."""
    n_axes, n_rows = len(cells), len(cells[0])
    return [
        sorted(
            int(ids[box])
            for box in range(len(ids))
            if all(firsts[axis][box] <= cells[axis][row] <= lasts[axis][box] for axis in range(n_axes))
        )
        for row in range(n_rows)
    ]


def locate(point, polygons):
    """'inside', 'border' or 'outside'; a polygon is its outer ring and its holes, a ring a closed list of points.

    Right for exact numbers: integers and fractions.
    """
    if any(on_segment(point, a, b) for rings in polygons for ring in rings for a, b in pairwise(ring)):
        return "border"
    inside = any(in_ring(point, rings[0]) and not any(in_ring(point, hole) for hole in rings[1:]) for rings in polygons)
    return "inside" if inside else "outside"


def on_segment(point, a, b):
    (x, y), (ax, ay), (bx, by) = point, a, b
    is_between = min(ax, bx) <= x <= max(ax, bx) and min(ay, by) <= y <= max(ay, by)
    return is_between and (bx - ax) * (y - ay) == (by - ay) * (x - ax)


def in_ring(point, ring):
    """Whether a ray from the point to the right crosses the ring an odd number of times; the point is not on it."""
    x, y = point
    crossings = 0
    for (ax, ay), (bx, by) in pairwise(ring):
        if (ay > y) != (by > y):
            side = (bx - ax) * (y - ay) - (by - ay) * (x - ax)  # positive: the point is left of the way upwards
            crossings += (side > 0) == (by > ay)
    return crossings % 2 == 1


def is_near(point, centre, radius):
    """Whether two points are at most the radius apart, for exact numbers."""
    return (point[0] - centre[0]) ** 2 + (point[1] - centre[1]) ** 2 <= radius**2


def metres_between(place, other):
    """The geodesic on the WGS 84 spheroid between two places (lon, lat), by GeographicLib."""
    from geographiclib.geodesic import Geodesic

    return Geodesic.WGS84.Inverse(place[1], place[0], other[1], other[0])["s12"]


def metres_on_sphere(place, other, radius=6371008.0):
    """The great circle between two places, by the angle between two directions in space."""
    a, b = (
        (math.cos(lat) * math.cos(lon), math.cos(lat) * math.sin(lon), math.sin(lat))
        for lon, lat in ((math.radians(lon), math.radians(lat)) for lon, lat in (place, other))
    )
    across = (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])
    return radius * math.atan2(math.hypot(*across), sum(x * y for x, y in zip(a, b, strict=True)))
