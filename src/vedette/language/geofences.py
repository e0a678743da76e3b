"""Geofences: whether a point of two fields lies in a polygon, or within a distance of a point.

Indexes find the box around the fence; the fence itself is a residual, checked on the points in the box. Coordinates are
planar, in the units of the fields.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vedette.data.schema import Type
from vedette.language.expressions import BOOLEAN, DOUBLE, NULL, STRING, Typed, Written, field_in
from vedette.language.literals import SlotError, read_strings
from vedette.language.polygons import find_faults
from vedette.language.types import NUMERIC

if TYPE_CHECKING:
    from vedette.language.analysis import Analyser

POLYGON_TESTS = ("st_contains", "st_intersects")  # as typed: x, y, polygon
FENCES = (*POLYGON_TESTS, "st_dwithin")  # this one: x, y, and the circle's x, y and radius
LONGITUDES = ("lon", "lng", "long", "longitude")  # names of fields, or their last words, as in start_lon
LATITUDES = ("lat", "latitude")
_HALF_TURN = 180.0
_SLACK_DEGREES = 1e-6  # maps that end at 180 degrees may exceed it by rounding
_MAX_RADIUS_DEGREES = 90.0  # a larger radius is probably in metres
_CIRCLE = "ST_DWithin(ST_Point(lon, lat), ST_Point(4.35, 50.85), 0.5)"
_EPSILON = float(np.finfo(np.float64).eps)
_LOST_IN_SQUARES = 1e-161


# -- typing


def read_fence(analyser: Analyser, node: Written) -> Typed:
    """The typed tree of a function about geometries."""
    op = node.op
    if op in ("st_point", "st_geomfromtext"):
        name = "ST_Point" if op == "st_point" else "ST_GeomFromText"
        analyser.refuse(node, f"{name} can be used only inside ST_Contains, ST_Within, ST_Intersects or ST_DWithin")
    if op == "st_dwithin":
        return _read_circle(analyser, node)
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
    first, second, radius = node.args
    point, centre = (first, second) if _is_written_out(second) else (second, first)
    x, y = _read_point(analyser, point)
    if not _is_written_out(centre):
        analyser.refuse(node, f"ST_DWithin needs a centre of two number literals, such as {_CIRCLE}")
    if radius.op != "literal":
        place = node if radius.start < 0 else radius  # NULL has no place
        analyser.refuse(place, f"ST_DWithin needs a radius that is a number literal, such as {_CIRCLE}")
    middle = _read_point(analyser, centre)
    reach = _read_number(analyser, radius, "a radius must be a number")
    return analyser.made(node, "st_dwithin", BOOLEAN, x, y, *middle, reach)


def _is_written_out(node: Written) -> bool:
    return node.op == "st_point" and all(arg.op == "literal" for arg in node.args)


def _read_number(analyser: Analyser, node: Written, wanted: str) -> Typed:
    typed = analyser.read(node)
    if typed.type != NULL and typed.type.name not in NUMERIC:
        analyser.refuse(node, f"{wanted}, not {analyser.shown(typed)}")
    return analyser.cast(node, typed, DOUBLE)


# -- boxes


@dataclass(frozen=True)
class Bounds:
    """Closed boxes, one per fence."""

    x_lows: NDArray[np.float64]
    x_highs: NDArray[np.float64]
    y_lows: NDArray[np.float64]
    y_highs: NDArray[np.float64]


def bounds_of(fence: Typed, columns: Any, values: Callable[[int, Type], Any]) -> Bounds:
    """The boxes around the fences of all texts of a shape. An invalid fence is a SlotError.

    `columns[slot]` are the literals of a slot as written, `values` reads them as a type.
    """
    x, y = (None if (field := field_in(arg)) is None else field.name for arg in fence.args[:2])
    if fence.op in POLYGON_TESTS:
        slot = fence.args[2].slot
        geometries, faults = find_faults(read_strings(columns[slot]))
        _raise_first(faults, slot)
        bounds = bounds_of_polygons(geometries)
        _raise_first(find_strays(bounds, x, y), slot)
        return bounds
    x_slot, y_slot, radius_slot = (_slot_of(arg) for arg in fence.args[2:])
    xs, ys, radii = (values(slot, DOUBLE) for slot in (x_slot, y_slot, radius_slot))
    _raise_first(
        {int(i): f"a radius must be 0 or more, not {radii[i]:g}" for i in np.flatnonzero(radii < 0)}, radius_slot
    )
    strays = find_strays(Bounds(xs, xs, ys, ys), x, y)
    _raise_first(strays, x_slot if strays and _is_beyond(x, xs, xs)[min(strays)] else y_slot)
    if np.isfinite(_limit_of(x)) and np.isfinite(_limit_of(y)):
        reason = "is too large for degrees; a radius has the units of the fields, not metres"
        wide = np.flatnonzero(radii > _MAX_RADIUS_DEGREES)
        _raise_first({int(i): f"a radius of {radii[i]:g} {reason}" for i in wide}, radius_slot)
    return bounds_of_circles(xs, ys, radii)


def bounds_of_polygons(geometries: NDArray[Any]) -> Bounds:
    import shapely  # type: ignore[import-untyped]

    x_lows, y_lows, x_highs, y_highs = np.ascontiguousarray(shapely.bounds(geometries).T) + 0.0  # -0.0 becomes 0.0
    return Bounds(x_lows, x_highs, y_lows, y_highs)


def bounds_of_circles(xs: NDArray[np.float64], ys: NDArray[np.float64], radii: NDArray[np.float64]) -> Bounds:
    """Boxes slightly wider than the circles, to allow for rounding in `is_within`.

    Squares below 5e-324 are rounded to 5e-324 or to 0, so a point may be 2e-162 farther away than its distance says.
    """
    ends = []
    with np.errstate(over="ignore"):
        for centres in (xs, ys):
            margins = 4 * _EPSILON * (np.abs(centres) + radii) + _LOST_IN_SQUARES
            ends.append(np.nextafter(centres - radii - margins, -np.inf) + 0.0)
            ends.append(np.nextafter(centres + radii + margins, np.inf) + 0.0)
    return Bounds(*ends)


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


# -- longitudes and latitudes


def find_strays(bounds: Bounds, x: str | None, y: str | None) -> dict[int, str]:
    """Messages, by place, about boxes outside the longitudes or latitudes that the fields' names suggest."""
    x_ends, y_ends = (bounds.x_lows, bounds.x_highs), (bounds.y_lows, bounds.y_highs)
    x_stray, y_stray = _is_beyond(x, *x_ends), _is_beyond(y, *y_ends)
    swapped = ~(_is_beyond(x, *y_ends) | _is_beyond(y, *x_ends))
    messages = {}
    for i in np.flatnonzero(x_stray | y_stray).tolist():
        name, (lows, highs) = (x, x_ends) if x_stray[i] else (y, y_ends)
        what = "the coordinates look swapped" if swapped[i] else "the coordinates are out of range"
        got = f"{lows[i]:g}" if lows[i] == highs[i] else f"{lows[i]:g} to {highs[i]:g}"
        limit = _limit_of(name)
        messages[i] = f"{what}: {name} is {got}, beyond [-{limit:g}, {limit:g}]; the order is {x or 'x'} {y or 'y'}"
    return messages


def find_wrapped(geometries: NDArray[Any], x: str | None) -> dict[int, str]:
    """Warnings, by place, about polygons that span more than 180 degrees of longitude.

    Polygons from -180 to 180 are intentional. Each part of a multipolygon is checked by itself.
    """
    import shapely

    if _limit_of(x) != _HALF_TURN:
        return {}
    parts, places = shapely.get_parts(geometries, return_index=True)
    lows, _, highs, _ = shapely.bounds(parts).T
    ends = _HALF_TURN - _SLACK_DEGREES
    wrapped = (highs - lows > _HALF_TURN) & ~((lows <= -ends) & (highs >= ends))
    hint = "if it crosses the antimeridian, split it into a MULTIPOLYGON with one part on each side"
    return {
        int(places[i]): f"spans {highs[i] - lows[i]:g} degrees of {x}, from {lows[i]:g} to {highs[i]:g}; {hint}"
        for i in np.flatnonzero(wrapped)[::-1]
    }


def _limit_of(name: str | None) -> float:
    """180 if the name means a longitude, 90 if it means a latitude, else infinity."""
    word = "" if name is None else name.lower().rsplit("_", 1)[-1]
    return _HALF_TURN if word in LONGITUDES else 90.0 if word in LATITUDES else np.inf


def _is_beyond(name: str | None, lows: NDArray[np.float64], highs: NDArray[np.float64]) -> NDArray[np.bool_]:
    limit = _limit_of(name) + _SLACK_DEGREES
    return (lows < -limit) | (highs > limit)


def _slot_of(node: Typed) -> int:
    return node.args[0].slot if node.op == "cast" else node.slot


def _raise_first(faults: dict[int, str], slot: int) -> None:
    if faults:
        position = min(faults)
        raise SlotError(faults[position], slot, position)
