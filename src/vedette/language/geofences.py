"""Geofences: whether a point of two fields lies in a polygon, or within a distance of a point.

Indexes find the box around the fence; the fence itself is a residual, checked on the points in the box. Coordinates are
planar, in the units of the fields, unless a distance is in metres on the earth: then they are longitudes and latitudes
in degrees. A comparison of such a distance with a literal is a geofence, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vedette.language.expressions import BOOLEAN, DOUBLE, NULL, STRING, Typed, Written
from vedette.language.types import NUMERIC

if TYPE_CHECKING:
    from vedette.language.analysis import Analyser

POLYGON_TESTS = ("st_contains", "st_intersects")  # as typed: x, y, polygon
FENCES = (*POLYGON_TESTS, "st_dwithin")  # this one: x, y, and the circle's x, y and radius
SPHEROID, SPHERE = "st_distancespheroid", "st_distancesphere"  # as typed: longitude, latitude, and those of the other
DISTANCES = (SPHEROID, SPHERE)
_FLIPPED = {"=": "=", "<>": "<>", "<": ">", ">": "<", "<=": ">=", ">=": "<="}
_CIRCLE = "ST_DWithin(ST_Point(lon, lat), ST_Point(4.35, 50.85), 0.5)"
_CIRCLE_IN_METRES = "ST_DWithin(ST_Point(lon, lat), ST_Point(4.35, 50.85), 500, TRUE)"


class Metres(NamedTuple):
    """The value of a node of a geofence that is widened by a margin on the earth."""

    margin: float


class DistanceTest(NamedTuple):
    """A comparison of a distance in metres with a limit: distance, op, limit."""

    distance: Typed
    op: str
    limit: Typed

    @property
    def on_sphere(self) -> bool:
        return self.distance.op == SPHERE


def distance_test(node: Typed) -> DistanceTest | None:
    """What a comparison of a distance in metres tests. None for other nodes."""
    if node.op not in _FLIPPED:
        return None
    left, right = node.args
    if left.op in DISTANCES:
        return DistanceTest(left, node.op, right)
    return DistanceTest(right, _FLIPPED[node.op], left) if right.op in DISTANCES else None


def is_fence(node: Typed) -> bool:
    """Whether a node is a geofence or a distance in metres: its literals are checked when a query is added."""
    test = distance_test(node)
    return node.op in (*FENCES, *DISTANCES) if test is None else slot_in(test.limit) is not None


def slot_in(node: Typed) -> int | None:
    """The slot of a number that is a literal, or of a literal under a cast that Spark inserted."""
    inner = node.args[0] if node.op == "cast" and node.value is None else node
    return inner.slot if inner.op == "slot" else None


# -- typing


def read_fence(analyser: Analyser, node: Written) -> Typed:
    """The typed tree of a function about geometries."""
    op = node.op
    if op in ("st_point", "st_geomfromtext"):
        name = "ST_Point" if op == "st_point" else "ST_GeomFromText"
        users = "ST_Contains, ST_Within, ST_Intersects or ST_DWithin"
        analyser.refuse(node, f"{name} can be used only inside {users}")
    if op == "st_dwithin":
        return _read_circle(analyser, node)
    if op in DISTANCES:
        return _read_distance(analyser, node, op, *node.args)
    first, second = node.args
    if op == "st_within" or (op == "st_intersects" and first.op == "st_point"):
        first, second = second, first
    if first.op == "st_point" and second.op == "st_geomfromtext":
        analyser.refuse(node, "ST_Contains takes the polygon first, ST_Within the point; swap the two")
    polygon = _read_polygon(analyser, first)
    x, y = _read_point(analyser, second)
    return analyser.made(node, "st_contains" if op == "st_within" else op, BOOLEAN, x, y, polygon)


def _read_polygon(analyser: Analyser, node: Written) -> Typed:
    if node.op != "st_geomfromtext":
        analyser.refuse(node, "a polygon is needed here: ST_GeomFromText('POLYGON ((0 0, 4 0, 4 3, 0 0))')")
    (text,) = node.args
    if text.op != "literal" or analyser.kinds[text.slot].name != "string":
        analyser.refuse(text, "ST_GeomFromText takes a text in quotes, such as 'POLYGON ((0 0, 4 0, 4 3, 0 0))'")
    return analyser.made(text, "slot", STRING, slot=text.slot)


def _read_point(analyser: Analyser, node: Written) -> list[Typed]:
    if node.op != "st_point":
        analyser.refuse(node, "a point is needed here: ST_Point(lon, lat)")
    return [_read_number(analyser, arg, "ST_Point takes numbers") for arg in node.args]


def _read_circle(analyser: Analyser, node: Written) -> Typed:
    first, second, radius = node.args[:3]
    in_metres = len(node.args) == 4 and _read_truth(analyser, node, node.args[3])
    if radius.op != "literal":
        place = node if radius.start < 0 else radius  # NULL has no place
        example = _CIRCLE_IN_METRES if in_metres else _CIRCLE
        analyser.refuse(place, f"ST_DWithin needs a radius that is a number literal, such as {example}")
    reach = _read_number(analyser, radius, "a radius must be a number")
    if in_metres:  # as Sedona defines it
        return analyser.made(node, "<=", BOOLEAN, _read_distance(analyser, node, SPHEROID, first, second), reach)
    point, centre = (first, second) if _is_written_out(second) else (second, first)
    if not _is_written_out(centre):
        analyser.refuse(node, f"ST_DWithin needs a centre of two number literals, such as {_CIRCLE}")
    x, y = _read_point(analyser, point)
    return analyser.made(node, "st_dwithin", BOOLEAN, x, y, *_read_point(analyser, centre), reach)


def _read_truth(analyser: Analyser, node: Written, written: Written) -> bool:
    if written.op != "constant" or written.name == "null":
        place = node if written.start < 0 else written
        analyser.refuse(place, "the fourth argument of ST_DWithin is TRUE, for metres on the earth, or FALSE")
    return written.name == "true"


def _read_distance(analyser: Analyser, node: Written, op: str, first: Written, second: Written) -> Typed:
    """A distance in metres. If one of the points is a literal, it is the second."""
    point, other = (second, first) if _is_written_out(first) else (first, second)
    return analyser.made(node, op, DOUBLE, *_read_point(analyser, point), *_read_point(analyser, other))


def _is_written_out(node: Written) -> bool:
    return node.op == "st_point" and all(arg.op == "literal" for arg in node.args)


def _read_number(analyser: Analyser, node: Written, wanted: str) -> Typed:
    typed = analyser.read(node)
    if typed.type != NULL and typed.type.name not in NUMERIC:
        analyser.refuse(node, f"{wanted}, not {analyser.shown(typed)}")
    return analyser.cast(node, typed, DOUBLE)


# -- planar circles


def is_within(
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    centre_x: NDArray[np.float64],
    centre_y: NDArray[np.float64],
    radii: NDArray[np.float64],
) -> NDArray[np.bool_]:
    """Whether points are at most the radius away. A point with a NaN or infinite coordinate is not."""
    with np.errstate(all="ignore"):
        dx, dy = x - centre_x, y - centre_y
        return np.asarray(np.sqrt(dx * dx + dy * dy) <= radii, np.bool_)
