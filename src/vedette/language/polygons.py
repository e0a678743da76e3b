"""Polygons as WKT: whether they are valid, and which of them contain a point.

A text is validated when its query is added, and kept as text. It is parsed again and prepared when a row first needs
it. So polygons without rows nearby cost nothing, and a residual stays plain data.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from vedette.errors import shortened

_POLYGONAL = (3, 6)  # shapely's numbers of Polygon and MultiPolygon
_NAMES = ("POLYGON", "MULTIPOLYGON")
_NOTHING = "POLYGON EMPTY"
_TURN = 360.0  # degrees
_FEW = 1000  # parentheses; so many cannot nest too deeply
_MAX_COORDINATE = 1e150  # its square must be finite
_EXAMPLE = "'POLYGON ((0 0, 4 0, 4 3, 0 0))'"
_WORDS = {
    "Self-intersection": "it crosses itself",
    "Ring Self-intersection": "a ring touches itself",
    "Too few points in geometry component": "a ring has too few points",
    "Hole lies outside shell": "the hole is outside the shell",
    "Holes are nested": "the hole is inside another hole",
    "Interior is disconnected": "its holes cut it in two",
    "Nested shells": "the part is inside another part",
    "Duplicate Rings": "a ring is repeated",
    "Invalid Coordinate": "a coordinate is not a finite number",
}


def find_faults(texts: Sequence[str]) -> tuple[NDArray[Any], dict[int, str]]:
    """The shapely geometries of WKT texts, and the faults of those that are not valid polygons, by place."""
    import shapely  # type: ignore[import-untyped]

    foreign = {place: reason for place, text in enumerate(texts) if (reason := _why_not_parsed(text))}
    geometries = _parse([_NOTHING if place in foreign else text for place, text in enumerate(texts)])
    types = shapely.get_type_id(geometries)
    good = np.isin(types, _POLYGONAL) & ~shapely.is_empty(geometries)
    good[good] = shapely.is_valid(geometries[good])
    good[good] = np.abs(shapely.bounds(geometries[good])).max(axis=1, initial=0) <= _MAX_COORDINATE
    return geometries, {i: foreign.get(i) or _fault(texts[i], geometries[i]) for i in np.flatnonzero(~good).tolist()}


def _why_not_parsed(text: str) -> str:
    """The fault of a text that GEOS must not parse: nested collections would overflow its stack."""
    if "\0" in text:
        return "invalid geometry: the text has the character NUL"
    if text.count("(") <= _FEW:
        return ""
    word = text.lstrip()[:100].partition("(")[0].strip().upper()
    if word.startswith(_NAMES):
        return ""
    return f"a {shortened(word, 40)} is not a polygon; a geofence is a POLYGON or a MULTIPOLYGON"


def why_not_parsed(texts: pa.LargeStringArray) -> str:
    """The fault of the first text that GEOS must not parse, or "". Most texts are not read one by one."""
    suspects = pc.or_(pc.greater(pc.count_substring(texts, "("), _FEW), pc.match_substring(texts, "\0"))
    return next((reason for text in texts.filter(suspects).to_pylist() if (reason := _why_not_parsed(text))), "")


def _parse(texts: Sequence[str]) -> NDArray[Any]:
    """The geometries; None if a text is not WKT."""
    import shapely

    wkts = np.empty(len(texts), object)
    wkts[:] = texts
    with np.errstate(all="ignore"):  # infinite coordinates are reported later
        try:
            return np.asarray(shapely.from_wkt(wkts, on_invalid="ignore"), object)
        except NotImplementedError:  # a curve among them
            if len(wkts) == 1:
                return np.array([None], object)
            return np.concatenate([_parse([text]) for text in texts])


def _fault(text: str, geometry: Any) -> str:
    import shapely

    if geometry is None:
        return _why_unreadable(text)
    if geometry.geom_type not in ("Polygon", "MultiPolygon"):
        return f"a {geometry.geom_type.upper()} is not a polygon; a geofence is a POLYGON or a MULTIPOLYGON"
    if geometry.is_empty:
        return f"the polygon is empty; write {_EXAMPLE}"
    if shapely.is_valid(geometry):
        return f"a coordinate of the polygon is beyond {_MAX_COORDINATE:g}, where distances are not exact enough"
    reason, _, place = shapely.is_valid_reason(geometry).partition("[")
    return f"invalid geometry: {_ring_at(geometry, place)}: {_WORDS.get(reason, reason)}, at {place.rstrip(']')}"


def _ring_at(geometry: Any, place: str) -> str:
    """The ring of a fault at this place: of the nearest rings an invalid one, else the last."""
    import shapely

    try:
        point = shapely.Point([float(number) for number in place.rstrip("]").split()])
    except ValueError:
        return "ring 1"
    nearest: list[tuple[float, bool, int, int]] = []
    parts = shapely.get_parts(geometry)
    for number, polygon in enumerate(parts, start=1):
        for ring, line in enumerate([polygon.exterior, *polygon.interiors], start=1):
            with np.errstate(all="ignore"):  # coordinates may be infinite
                distance = shapely.distance(line, point)
            nearest.append((distance, bool(shapely.is_valid(shapely.polygons(line))), -number, -ring))
    _, _, number, ring = min(nearest)
    return f"ring {-ring}" if len(parts) == 1 else f"ring {-ring} of polygon {-number}"


def _why_unreadable(text: str) -> str:
    import shapely

    try:
        shapely.from_wkt(text)
        said = ""
    except (shapely.errors.GEOSException, NotImplementedError) as error:
        said = str(error).partition("Exception: ")[2] or str(error)
    if "closed linestring" in said:
        return f"invalid geometry: a ring is not closed: its last point must be its first, as in {_EXAMPLE}"
    if re.match(r"\s*SRID", text, re.IGNORECASE):
        return "an SRID is not supported: coordinates have the units of the fields; remove it"
    reason = said[:1].lower() + said[1:]
    return f"invalid geometry: {reason}; write {_EXAMPLE}"


class Polygons:
    """Polygons as texts, parsed and prepared when they are first used. Thread-safe."""

    def __init__(self, texts: pa.LargeStringArray) -> None:
        self._texts = texts
        self._geometries = np.empty(len(texts), object)
        self._is_ready = np.zeros(len(texts), np.bool_)
        self._x_ends = np.zeros((2, len(texts)))  # the least and the greatest x of those that are ready
        self._lock = Lock()

    def contain(
        self,
        members: NDArray[np.int64],
        x: NDArray[np.float64],
        y: NDArray[np.float64],
        *,
        borders: bool,
        turns: bool = False,
    ) -> NDArray[np.bool_]:
        """Whether polygon `members[j]` contains point j. With `borders`, the border is part of a polygon.

        A point with a NaN or infinite coordinate is in no polygon. With `turns`, x is a longitude in [-180, 180], and a
        polygon may continue beyond.
        """
        import shapely

        test = shapely.intersects_xy if borders else shapely.contains_xy
        return self._test(test, members, x, y, 0.0, turns)

    def are_near(
        self,
        members: NDArray[np.int64],
        x: NDArray[np.float64],
        y: NDArray[np.float64],
        distance: float,
        *,
        turns: bool = False,
    ) -> NDArray[np.bool_]:
        """Whether polygon `members[j]` is at most `distance` from point j."""
        import shapely

        def test(polygons: NDArray[Any], x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.bool_]:
            return np.asarray(shapely.dwithin(polygons, shapely.points(x, y), distance))

        return self._test(test, members, x, y, distance, turns)

    def are_within_metres(
        self, members: NDArray[np.int64], lon: NDArray[np.float64], lat: NDArray[np.float64], metres: float
    ) -> NDArray[np.bool_]:
        """Whether polygon `members[j]` is at most so many metres from place j, in the plane that touches the earth."""
        import shapely

        from vedette.language.earth import metres_per_degree

        def test(polygons: NDArray[Any], lon: NDArray[np.float64], lat: NDArray[np.float64]) -> NDArray[np.bool_]:
            points, pairs = shapely.get_coordinates(polygons, return_index=True)
            east, north = metres_per_degree(lat)
            points[:, 0] = (points[:, 0] - lon[pairs]) * east[pairs]
            points[:, 1] = (points[:, 1] - lat[pairs]) * north[pairs]
            moved = shapely.set_coordinates(polygons.copy(), points)
            return np.asarray(shapely.distance(moved, shapely.Point(0, 0)) <= metres)

        return self._test(test, members, lon, lat, _TURN, turns=True)

    def _test(
        self,
        test: Callable[..., NDArray[np.bool_]],
        members: NDArray[np.int64],
        x: NDArray[np.float64],
        y: NDArray[np.float64],
        distance: float,
        turns: bool,
    ) -> NDArray[np.bool_]:
        """A test of polygons and points. With `turns`, also of the points one turn to the east and to the west."""
        order, wanted = self._ready(members, x, y)
        found = np.zeros(len(members), np.bool_)
        with np.errstate(all="ignore"):  # far points
            found[order] = test(wanted, x[order], y[order])
            if not turns:
                return found
            lows, highs = self._x_ends[:, members[order]]
            for turn in (_TURN, -_TURN):
                turned = x[order] + turn
                chosen = (lows - distance <= turned) & (turned <= highs + distance) & ~found[order]
                found[order[chosen]] = test(wanted[chosen], turned[chosen], y[order[chosen]])
            return found & (np.abs(x) <= _TURN / 2)

    def at(self, member: int) -> Any:
        """One polygon."""
        self._make_ready(np.array([member]))
        return self._geometries[member]

    def _ready(
        self, members: NDArray[np.int64], x: NDArray[np.float64], y: NDArray[np.float64]
    ) -> tuple[NDArray[np.int64], NDArray[Any]]:
        """The pairs with a finite point, ordered by polygon for the CPU cache, and their polygons."""
        finite = np.flatnonzero(np.isfinite(x) & np.isfinite(y))
        order = finite[np.argsort(members[finite], kind="stable")]
        self._make_ready(members[order])
        return order, self._geometries[members[order]]

    def _make_ready(self, members: NDArray[np.int64]) -> None:
        """Parse and prepare those members that are not prepared yet.

        GEOS builds the index of a prepared polygon at the first test, which is not thread-safe; so one is made here.
        """
        import shapely

        missing = members[~self._is_ready[members]]
        if len(missing) == 0:
            return
        with self._lock:
            places = np.unique(missing)
            places = places[~self._is_ready[places]]
            if len(places):
                texts = self._texts.take(pa.array(places))
                if reason := why_not_parsed(texts):
                    raise ValueError(reason)
                with np.errstate(all="ignore"):  # texts of an untrusted file may have any coordinates
                    made = shapely.from_wkt(texts.to_numpy(zero_copy_only=False))
                    shapely.prepare(made)
                    corners = shapely.bounds(made)
                    shapely.contains_xy(made, corners[:, 0], corners[:, 1])
                    shapely.intersects_xy(made, corners[:, 0], corners[:, 1])
                self._geometries[places] = made
                self._x_ends[:, places] = corners[:, [0, 2]].T
                self._is_ready[places] = True
