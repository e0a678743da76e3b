"""The zones of a set, for maps: the polygons, and the circles in metres, that the texts of its queries have.

A zone is a place in the text of a query, so that an editor can replace the geometry and keep the rest of the text.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import shapely  # type: ignore[import-untyped]
from numpy.typing import NDArray

from vedette.registry.read.set_info import SetInfo
from vedette.registry.registry import Registry
from vedette.serve.access import OWNER

_LEAST_METRES = 110_500.0  # of a degree of latitude
_MOST_INDEXES = 16  # sets whose zones are kept
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_NAME = r"[A-Za-z_][\w.]*"
_FIELDS = rf"ST_Point\(\s*(?P<x>{_NAME})\s*,\s*(?P<y>{_NAME})\s*\)"
_SHAPE = r"ST_GeomFromText\(\s*'(?P<wkt>[^']*)'\s*\)"
_FORMS = [
    re.compile(
        rf"ST_DWithin\(\s*{_FIELDS}\s*,\s*ST_Point\(\s*(?P<lon>{_NUMBER})\s*,\s*(?P<lat>{_NUMBER})\s*\)\s*,"
        rf"\s*(?P<radius>{_NUMBER})\s*,\s*TRUE\s*\)",
        re.IGNORECASE,
    ),
    re.compile(rf"ST_(?:Within|Intersects)\(\s*{_FIELDS}\s*,\s*{_SHAPE}\s*\)", re.IGNORECASE),
    re.compile(rf"ST_(?:Contains|Intersects)\(\s*{_SHAPE}\s*,\s*{_FIELDS}\s*\)", re.IGNORECASE),
]


@dataclass(frozen=True)
class Zone:
    """One polygon or circle of a query."""

    query: str | int
    owner: Any
    start: int  # of its function in the text
    end: int
    x: str
    y: str
    shape: Any  # a polygon; of a circle, its centre
    radius: float | None  # in metres; None for a polygon

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """West, south, east, north."""
        west, south, east, north = (float(each) for each in self.shape.bounds)
        if self.radius is None:
            return west, south, east, north
        up = self.radius / _LEAST_METRES
        shrinks = max(0.01, float(np.cos(np.radians(min(90.0, abs(south) + up)))))
        return west - up / shrinks, south - up, east + up / shrinks, north + up

    def to_feature(self) -> dict[str, Any]:
        """As GeoJSON. A circle is a point with a radius in metres."""
        own = {"kind": "polygon"} if self.radius is None else {"kind": "circle", "radius": self.radius}
        place = {"start": self.start, "end": self.end, "x": self.x, "y": self.y}
        geometry = shapely.geometry.mapping(self.shape)
        return {
            "type": "Feature",
            "id": self.query,
            "geometry": {"type": geometry["type"], "coordinates": geometry["coordinates"]},
            "properties": {**own, **place, "owner": self.owner},
        }


def read_zones(query: str | int, text: str, metadata: str | None) -> list[Zone]:
    """The zones of a query's text.

    >>> [zone] = read_zones("depot", "speed > 3 AND ST_DWithin(ST_Point(lon, lat), ST_Point(4.5, 51), 500, TRUE)", None)
    >>> zone.radius, zone.start, zone.x
    (500.0, 14, 'lon')
    """
    if "st_" not in text.lower():
        return []
    owner = json.loads(metadata).get(OWNER) if metadata else None
    found = []
    for form in _FORMS:
        for match in form.finditer(text):
            given = match.groupdict()
            shape = _read_shape(given)
            if shape is not None and not shape.is_empty:
                radius = float(given["radius"]) if "radius" in given else None
                found.append(Zone(query, owner, match.start(), match.end(), given["x"], given["y"], shape, radius))
    return found


def _read_shape(given: dict[str, str]) -> Any:
    if "wkt" not in given:
        return shapely.Point(float(given["lon"]), float(given["lat"]))
    shape = shapely.from_wkt(given["wkt"], on_invalid="ignore")
    return shape if shape is not None and shape.geom_type in ("Polygon", "MultiPolygon") else None


class ZoneIndex:
    """The zones of one set at its current version, largest first."""

    def __init__(self, registry: Registry, info: SetInfo) -> None:
        self._registry = registry
        self._name = info.name
        self.uid = info.uid
        self._version = -1
        self._by_query: dict[Any, list[Zone]] = {}
        self._zones: list[Zone] = []
        self._bounds = np.zeros((0, 4))
        self._lock = threading.Lock()

    def find(
        self, info: SetInfo, bounds: Sequence[float], limit: int, is_seen: Callable[[Zone], bool]
    ) -> tuple[list[Zone], int]:
        """The largest zones that meet a rectangle, and how many more do. Not in the event loop."""
        with self._lock:
            if info.version != self._version:
                self._follow(info.version)
            zones, their = self._zones, self._bounds
        west, south, east, north = bounds
        is_near = (their[:, 0] <= east) & (their[:, 2] >= west) & (their[:, 1] <= north) & (their[:, 3] >= south)
        near = [zones[place] for place in np.flatnonzero(is_near) if is_seen(zones[place])]
        return near[:limit], max(0, len(near) - limit)

    def _follow(self, version: int) -> None:
        if self._version < 0 or version < self._version:
            self._by_query = {}
            for piece in self._registry.active(self._name, version):
                self._add(piece)
        else:
            changes = self._registry.changes(self._name, self._version, version)
            for each in changes.by_version():
                for query in each.removed_ids:
                    self._by_query.pop(query, None)
                self._add(each)
        self._version = version
        zones = [zone for each in self._by_query.values() for zone in each]
        bounds = np.array([zone.bounds for zone in zones]).reshape(-1, 4)
        order = _by_size(bounds)
        self._zones, self._bounds = [zones[place] for place in order], bounds[order]

    def _add(self, changes: Any) -> None:
        texts = changes.texts or []
        metadata = changes.metadata or [None] * len(texts)
        for query, text, own in zip(changes.added_ids, texts, metadata, strict=False):
            if zones := read_zones(query, text, own):
                self._by_query[query] = zones


class ZoneIndexes:
    """The zones of the sets that maps have asked for, those asked for last."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._by_uid: dict[str, ZoneIndex] = {}
        self._lock = threading.Lock()

    def of(self, info: SetInfo) -> ZoneIndex:
        with self._lock:
            index = self._by_uid.pop(info.uid, None) or ZoneIndex(self._registry, info)
            self._by_uid[info.uid] = index
            while len(self._by_uid) > _MOST_INDEXES:
                del self._by_uid[next(iter(self._by_uid))]
            return index


def _by_size(bounds: NDArray[np.float64]) -> list[int]:
    sizes = (bounds[:, 2] - bounds[:, 0]) * (bounds[:, 3] - bounds[:, 1])
    order: list[int] = np.argsort(-sizes, kind="stable").tolist()
    return order
