"""The boxes around geofences, and whether their coordinates can be meant."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vedette.data.schema import Type
from vedette.language.earth import HALF_EARTH, boxes_of_circles
from vedette.language.expressions import DOUBLE, Typed, field_in
from vedette.language.geofences import DISTANCES, POLYGON_TESTS, DistanceTest, distance_test, slot_in
from vedette.language.literals import SlotError, read_strings
from vedette.language.polygons import find_faults

LONGITUDES = ("lon", "lng", "long", "longitude")  # names of fields, or their last words, as in start_lon
LATITUDES = ("lat", "latitude")
_HALF_TURN = 180.0
_SLACK_DEGREES = 1e-6  # maps that end at 180 degrees may exceed it by rounding
_MAX_RADIUS_DEGREES = 90.0  # a larger radius is probably in metres
_EPSILON = float(np.finfo(np.float64).eps)
_LOST_IN_SQUARES = 1e-161

Values = Callable[[int, Type], Any]  # the literals of a slot, as a type


@dataclass(frozen=True)
class Bounds:
    """Closed boxes, one per fence. Where `alive` is False there is none; None means that there are all."""

    x_lows: NDArray[np.float64]
    x_highs: NDArray[np.float64]
    y_lows: NDArray[np.float64]
    y_highs: NDArray[np.float64]
    alive: NDArray[np.bool_] | None = None


def bounds_of(fence: Typed, columns: Any, values: Values) -> tuple[Bounds, ...]:
    """The boxes around the fences of all texts of a shape, one or two for each. An invalid fence is a SlotError.

    `columns[slot]` are the literals of a slot as written. Points farther away than a distance have no boxes.
    """
    test = distance_test(fence)
    if test is not None:
        return _bounds_on_earth(test, values)
    if fence.op in DISTANCES:
        _check_places(fence, values)
        return ()
    x, y = (None if (field := field_in(arg)) is None else field.name for arg in fence.args[:2])
    if fence.op in POLYGON_TESTS:
        slot = fence.args[2].slot
        geometries, faults = find_faults(read_strings(columns[slot]))
        _raise_first(faults, slot)
        _raise_first(find_stray_polygons(geometries, x, y), slot)
        return boxes_of_longitudes(geometries) if is_longitude(field_in(fence.args[0])) else (box_polygons(geometries),)
    x_slot, y_slot, radius_slot = (slot_in(arg) or 0 for arg in fence.args[2:])
    xs, ys, radii = (values(slot, DOUBLE) for slot in (x_slot, y_slot, radius_slot))
    _raise_first(_find_negative(radii), radius_slot)
    _check_point(xs, ys, (x_slot, y_slot), x, y)
    if np.isfinite(_limit_of(x)) and np.isfinite(_limit_of(y)):
        reason = "is too large for degrees; a radius has the units of the fields, not metres"
        hint = "write ST_DWithin(point, centre, radius, TRUE) for metres"
        wide = np.flatnonzero(radii > _MAX_RADIUS_DEGREES)
        _raise_first({int(i): f"a radius of {radii[i]:g} {reason}; {hint}" for i in wide}, radius_slot)
    return (bounds_of_circles(xs, ys, radii),)


def _bounds_on_earth(test: DistanceTest, values: Values) -> tuple[Bounds, ...]:
    limit_slot = slot_in(test.limit)
    assert limit_slot is not None
    metres = values(limit_slot, DOUBLE)
    _raise_first(find_bad_metres(metres, HALF_EARTH[test.distance.op]), limit_slot)
    slots = [slot_in(arg) for arg in test.distance.args[2:]]
    if None in slots:
        return ()
    _check_places(test.distance, values)
    lons, lats = (values(slot, DOUBLE) for slot in slots if slot is not None)
    boxes = boxes_of_circles(lons, lats, metres, on_sphere=test.on_sphere)
    bounds = Bounds(boxes.lon_lows, boxes.lon_highs, boxes.lat_lows, boxes.lat_highs)
    if not boxes.crosses.any():
        return (bounds,)
    return bounds, Bounds(boxes.more_lows, boxes.more_highs, boxes.lat_lows, boxes.lat_highs, boxes.crosses)


def find_bad_metres(metres: NDArray[np.float64], farthest: float) -> dict[int, str]:
    """Messages, by place, about radii that are negative or larger than half the earth."""
    reason = f"metres is larger than half the earth: points are at most {farthest:.0f} metres apart"
    far = {int(i): f"a radius of {metres[i]:g} {reason}" for i in np.flatnonzero(~(metres <= farthest))}
    return far | _find_negative(metres)


def _check_places(distance: Typed, values: Values) -> None:
    """Raise SlotError for literals that are no longitudes or latitudes."""
    for x, y in (distance.args[:2], distance.args[2:]):
        slots = slot_in(x), slot_in(y)
        known = [np.zeros(1) if slot is None else values(slot, DOUBLE) for slot in slots]
        lons, lats = np.broadcast_arrays(*known)
        _check_point(lons, lats, slots, "longitude", "latitude", slack=0)


def _check_point(
    xs: NDArray[np.float64],
    ys: NDArray[np.float64],
    slots: Sequence[int | None],
    x: str | None,
    y: str | None,
    slack: float = _SLACK_DEGREES,
) -> None:
    """Raise SlotError for a point out of range."""
    strays = find_strays(Bounds(xs, xs, ys, ys), x, y, slack)
    if strays:
        slot = slots[0] if _is_beyond(x, xs, xs, slack)[min(strays)] else slots[1]
        _raise_first(strays, slot or 0)


def _find_negative(radii: NDArray[np.float64]) -> dict[int, str]:
    return {int(i): f"a radius must be 0 or more, not {radii[i]:g}" for i in np.flatnonzero(radii < 0)}


def box_polygons(geometries: NDArray[Any]) -> Bounds:
    import shapely  # type: ignore[import-untyped]

    x_lows, y_lows, x_highs, y_highs = np.ascontiguousarray(shapely.bounds(geometries).T) + 0.0  # -0.0 becomes 0.0
    return Bounds(x_lows, x_highs, y_lows, y_highs)


def boxes_of_longitudes(geometries: NDArray[Any]) -> tuple[Bounds, ...]:
    """The boxes within [-180, 180], one or two for each. A polygon at 180 degrees is also at -180, and so on beyond.

    The parts of a polygon are divided where the gap between their longitudes is widest.
    """
    import shapely

    bounds = box_polygons(geometries)
    lows, highs = bounds.x_lows, bounds.x_highs
    several = shapely.get_num_geometries(geometries) > 1
    turned = (lows <= -_HALF_TURN) | (highs >= _HALF_TURN) | (several & (highs - lows > _HALF_TURN))
    if not turned.any():
        return (bounds,)
    ends = np.stack([lows, highs, lows, highs])
    for i in np.flatnonzero(turned):
        ends[:, i] = _divide(shapely.bounds(shapely.get_parts(geometries[i]))[:, [0, 2]])
    first = Bounds(ends[0], ends[1], bounds.y_lows, bounds.y_highs)
    return first, Bounds(ends[2], ends[3], bounds.y_lows, bounds.y_highs, ends[2] > ends[1])


def _divide(ranges: NDArray[np.float64]) -> tuple[float, float, float, float]:
    """Two ranges within [-180, 180] that contain those of the parts; if there is no gap, twice the same."""
    shifted = np.concatenate([ranges, ranges + 2 * _HALF_TURN, ranges - 2 * _HALF_TURN])
    shifted = shifted[(shifted[:, 0] <= _HALF_TURN) & (shifted[:, 1] >= -_HALF_TURN)].clip(-_HALF_TURN, _HALF_TURN)
    lows, highs = shifted[np.argsort(shifted[:, 0])].T
    highs = np.maximum.accumulate(highs)
    gaps = lows[1:] - highs[:-1]
    if not (gaps > 0).any():
        return lows[0], highs[-1], lows[0], highs[-1]
    place = int(np.argmax(gaps))
    return lows[0], highs[place], lows[place + 1], highs[-1]


def bounds_of_circles(xs: NDArray[np.float64], ys: NDArray[np.float64], radii: NDArray[np.float64]) -> Bounds:
    """Boxes slightly wider than the circles, to allow for rounding in `is_within`.

    Squares below 5e-324 are rounded to 5e-324 or to 0, so a point may be 2e-162 farther away than its distance says.
    """
    ends: list[NDArray[np.float64]] = []
    with np.errstate(over="ignore"):
        for centres in (xs, ys):
            margins = 4 * _EPSILON * (np.abs(centres) + radii) + _LOST_IN_SQUARES
            ends.append(np.nextafter(centres - radii - margins, -np.inf) + 0.0)
            ends.append(np.nextafter(centres + radii + margins, np.inf) + 0.0)
    return Bounds(ends[0], ends[1], ends[2], ends[3])


# -- longitudes and latitudes


def find_stray_polygons(geometries: NDArray[Any], x: str | None, y: str | None) -> dict[int, str]:
    """Messages, by place, about polygons out of range. Their longitudes may be beyond 180 degrees."""
    bounds = box_polygons(geometries)
    messages = find_strays(bounds, x, y, turns=2)
    if _limit_of(x) == _HALF_TURN:
        widths = bounds.x_highs - bounds.x_lows
        for i in np.flatnonzero(widths > 2 * (_HALF_TURN + _SLACK_DEGREES)).tolist():
            messages.setdefault(i, f"the polygon spans {widths[i]:g} degrees of {x}; 360 degrees are the whole earth")
    return messages


def find_strays(
    bounds: Bounds, x: str | None, y: str | None, slack: float = _SLACK_DEGREES, turns: int = 1
) -> dict[int, str]:
    """Messages, by place, about boxes outside the longitudes or latitudes that the fields' names suggest.

    `turns` are the half turns, east and west, within which a longitude may be.
    """
    x_ends, y_ends = (bounds.x_lows, bounds.x_highs), (bounds.y_lows, bounds.y_highs)
    x_stray, y_stray = _is_beyond(x, *x_ends, slack, turns), _is_beyond(y, *y_ends, slack, turns)
    swapped = ~(_is_beyond(x, *y_ends, slack, turns) | _is_beyond(y, *x_ends, slack, turns))
    messages = {}
    for i in np.flatnonzero(x_stray | y_stray).tolist():
        name, (lows, highs) = (x, x_ends) if x_stray[i] else (y, y_ends)
        what = "the coordinates look swapped" if swapped[i] else "the coordinates are out of range"
        got = f"{lows[i]:g}" if lows[i] == highs[i] else f"{lows[i]:g} to {highs[i]:g}"
        limit = _limit_of(name, turns)
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
    split = "split it into a MULTIPOLYGON with one part on each side"
    hint = f"if it crosses the antimeridian, {split}, or write longitudes beyond 180, such as 181 for -179"
    return {
        int(places[i]): f"spans {highs[i] - lows[i]:g} degrees of {x}, from {lows[i]:g} to {highs[i]:g}; {hint}"
        for i in np.flatnonzero(wrapped)[::-1]
    }


def is_longitude(field: Typed | None) -> bool:
    """Whether a field is a longitude by its name."""
    return field is not None and _limit_of(field.name) == _HALF_TURN


def is_latitude(field: Typed | None) -> bool:
    """Whether a field is a latitude by its name."""
    return field is not None and _limit_of(field.name) == _HALF_TURN / 2


def _limit_of(name: str | None, turns: int = 1) -> float:
    """180 for each of the turns if the name means a longitude, 90 if it means a latitude, else infinity."""
    word = "" if name is None else name.lower().rsplit("_", 1)[-1]
    return turns * _HALF_TURN if word in LONGITUDES else 90.0 if word in LATITUDES else np.inf


def _is_beyond(
    name: str | None, lows: NDArray[np.float64], highs: NDArray[np.float64], slack: float, turns: int = 1
) -> NDArray[np.bool_]:
    limit = _limit_of(name, turns) + slack
    return (lows < -limit) | (highs > limit)


def _raise_first(faults: dict[int, str], slot: int) -> None:
    if faults:
        position = min(faults)
        raise SlotError(faults[position], slot, position)
