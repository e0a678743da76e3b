"""Functions of geofences."""

from __future__ import annotations

import operator

import numpy as np
from numpy.typing import NDArray

from vedette.language.functions.function import Call, Function
from vedette.language.geofences import is_within, read_fence
from vedette.language.vectors import Vector, strict


def is_in_circle(call: Call) -> Vector:
    """The arguments are x, y, and the circle's x, y and radius; the value of the node is a margin around it."""
    x, y, centre_x, centre_y, radii = (arg.values for arg in call.args)
    margin = call.node.value if isinstance(call.node.value, float) else 0.0
    return strict(is_within(x, y, centre_x, centre_y, radii + margin), *call.args)


def find_geodesic_distance(call: Call) -> Vector:
    from vedette.language.geodesics import geodesic_distances

    return strict(geodesic_distances(*(arg.values for arg in call.args)), *call.args)


def find_great_circle_distance(call: Call) -> Vector:
    from vedette.language.geodesics import great_circle_distances

    return strict(great_circle_distances(*(arg.values for arg in call.args)), *call.args)


def is_sign(op: str, signs: NDArray[np.int8]) -> NDArray[np.bool_]:
    """The truth of comparisons, from the signs of differences."""
    return np.asarray(_SIGN_TESTS[op](signs, 0))


_SIGN_TESTS = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    "<>": operator.ne,
}

FUNCTIONS = (
    Function(
        "ST_Contains(polygon, point)",
        read_fence,
        None,
        "whether the point is inside; **a point on the border is not**",
    ),
    Function("ST_Within(point, polygon)", read_fence, None, "`ST_Contains` with its arguments swapped"),
    Function(
        "ST_Intersects(polygon, point)",
        read_fence,
        None,
        "whether the point is inside or on the border; the arguments may be swapped",
    ),
    Function(
        "ST_DWithin(point, centre, radius[, in_metres])",
        read_fence,
        is_in_circle,
        "whether the two are at most `radius` apart; the points may be swapped. With TRUE as the last argument the "
        "radius is in metres on the WGS 84 spheroid, and both points may have fields",
    ),
    Function(
        "ST_DistanceSpheroid(point, point)",
        read_fence,
        find_geodesic_distance,
        "the shortest distance on the WGS 84 spheroid, in metres",
    ),
    Function(
        "ST_DistanceSphere(point, point)",
        read_fence,
        find_great_circle_distance,
        "the shortest distance on a sphere with a radius of 6371008 metres, in metres",
    ),
    Function(
        "ST_GeomFromText(wkt)",
        read_fence,
        None,
        "a polygon, with or without holes, or a `MULTIPOLYGON`, as WKT in quotes: `'POLYGON ((0 0, 4 0, 4 3, 0 0))'`",
    ),
    Function(
        "ST_Point(lon, lat)",
        read_fence,
        None,
        "a point: `x` first, `y` second. Fields, or expressions, of numbers, which are read as doubles",
    ),
)
