"""GeoJSON files as queries: each polygon, or point with a radius, becomes a geofence over two fields of the rows."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from vedette.data.schema import Schema
from vedette.errors import FileError, QueryError, count, shown
from vedette.files.circles import POINT, write_circle
from vedette.files.polygon_repair import repair_polygons
from vedette.files.rings import GEOMETRIES, write_polygons
from vedette.language.fence_bounds import LATITUDES, LONGITUDES, find_stray_polygons, find_wrapped
from vedette.language.polygons import find_faults
from vedette.language.spelling import write_name

ROOTS = ("FeatureCollection", "Feature", *GEOMETRIES)
_NAMED = 20  # repaired features that a log line names
_log = logging.getLogger(__name__)


@dataclass
class Feature:
    """A feature with a valid polygon, or a circle."""

    number: int  # in the file, from 1
    id: Any
    polygon: str  # as WKT; empty for a circle
    properties: dict[str, Any]
    is_repaired: bool = False
    text: str = ""  # of the query


@dataclass
class Features:
    """The features of a file: valid ones, and the errors and warnings about others, by number."""

    features: list[Feature]
    errors: dict[int, FileError]
    warnings: dict[int, str]

    @classmethod
    def read(
        cls, path: str | os.PathLike[str], x: str, y: str, id_property: str | None = None, *, repair: bool = False
    ) -> Features:
        """Read a file; `x` and `y` are the fields that the queries compare."""
        found = cls([], {}, {})
        seen: dict[str, int] = {}
        point = f"ST_Point({write_name(x)}, {write_name(y)})"
        for number, feature in enumerate(_features(path), start=1):
            query_id: Any = None
            try:
                _check_feature(feature)
                query_id = _id_of(feature, number, id_property, seen)
                geometry, properties = feature.get("geometry"), feature.get("properties") or {}
                made = Feature(number, query_id, "", properties)
                if isinstance(geometry, dict) and geometry.get("type") == POINT:
                    made.text = write_circle(geometry, properties, point)
                else:
                    made.polygon, made.is_repaired = write_polygons(geometry, repair=repair)
                found.features.append(made)
            except QueryError as error:
                found._add_error(path, number, query_id, error)
        circles = [each for each in found.features if not each.polygon]
        found.features = [each for each in found.features if each.polygon]
        found._check_polygons(path, x, y, repair)
        for each in found.features:
            each.text = f"ST_Contains(ST_GeomFromText('{each.polygon}'), {point})"
        found.features = sorted([*found.features, *circles], key=lambda each: each.number)
        if any(isinstance(each.id, str) for each in found.features):
            for each in found.features:
                each.id = str(each.id)
        return found

    def _add_error(self, path: Any, number: int, query_id: Any, error: QueryError) -> None:
        named = "" if query_id in (None, number) else f", id {shown(query_id)}"
        self.errors[number] = FileError(f"{path}, feature {number}{named}: {error.reason}", query=query_id)

    def _check_polygons(self, path: Any, x: str, y: str, repair: bool) -> None:
        """Move features with invalid polygons, or with coordinates out of range, to the errors."""
        geometries, faults = find_faults([each.polygon for each in self.features])
        for place in list(faults) if repair else []:
            text = repair_polygons(self.features[place].polygon)
            made, still = find_faults([text] if text else [])
            if still or not text:
                faults[place] += "; it cannot be repaired" + ("" if text else ": no area is left")
                continue
            self.features[place].polygon, geometries[place] = text, made[0]
            self.features[place].is_repaired = True
            del faults[place]
        good = [place for place in range(len(self.features)) if place not in faults]
        strays = find_stray_polygons(geometries[good], x, y)
        faults |= {good[place]: reason for place, reason in strays.items()}
        for place, reason in faults.items():
            feature = self.features[place]
            self._add_error(path, feature.number, feature.id, QueryError(reason))
        kept = [place for place in good if place not in strays and place not in faults]
        self.features = [self.features[place] for place in kept]
        if kept:
            wrapped = find_wrapped(np.asarray(geometries)[kept], x)
            numbers = {place: self.features[place].number for place in wrapped}
            self.warnings = {numbers[place]: f"the polygon {wrapped[place]}" for place in sorted(wrapped)}


def read_geojson(
    path: str | os.PathLike[str],
    x: str = "lon",
    y: str = "lat",
    id_property: str | None = None,
    *,
    repair: bool = False,
    errors: list[tuple[int, FileError]] | None = None,
    warnings: list[tuple[int, str]] | None = None,
    repaired: list[tuple[int, str | int]] | None = None,
) -> tuple[list[str] | list[int], list[str], list[dict[str, Any]]]:
    """Ids, texts and properties of the geofences of a file; `x` and `y` are the fields that the texts compare.

    A geofence is a polygon, or a point with the property `radius`: a circle in metres.

    An id is the feature's own, or its property `id_property`, else its number, from 1; if some are strings, all are.
    Raises a FileError that names the first invalid feature. With `errors`, invalid features are skipped, and (number,
    error) is appended there. `warnings` gets (number, text) of valid polygons that look wrong: those that seem to cross
    the antimeridian.

    With `repair`, invalid polygons are repaired with shapely's make_valid, and only the polygons of the result are
    kept. `repaired` gets (number, id) of each; without it, one log line counts and names them.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "zones.geojson"
    ...     _ = path.write_text('{"type": "Polygon", "coordinates": [[[0, 0], [4, 0], [4, 3], [0, 0]]]}')
    ...     read_geojson(path)
    ([1], ["ST_Contains(ST_GeomFromText('POLYGON ((0 0, 4 0, 4 3, 0 0))'), ST_Point(lon, lat))"], [{}])
    """
    found = Features.read(path, x, y, id_property, repair=repair)
    if found.errors and errors is None:
        raise found.errors[min(found.errors)]
    if errors is not None:
        errors += sorted(found.errors.items())
    if warnings is not None:
        warnings += found.warnings.items()
    mended = [(each.number, each.id) for each in found.features if each.is_repaired]
    if repaired is not None:
        repaired += mended
    elif mended:
        named = ", ".join(shown(query_id) for _, query_id in mended[:_NAMED])
        more = ", ..." if len(mended) > _NAMED else ""
        _log.warning("repaired %s of %s: %s%s", count(len(mended), "polygon"), path, named, more)
    kept = found.features
    return [each.id for each in kept], [each.text for each in kept], [each.properties for each in kept]


def point_fields(schema: Schema) -> tuple[str, str] | None:
    """The fields of a schema that are a point by their names: lon and lat, or x and y, in any case."""
    for names in ((LONGITUDES, LATITUDES), (("x",), ("y",))):
        x, y = (next((field.name for name in side if (field := schema.find(name))), None) for side in names)
        if x is not None and y is not None:
            return x, y
    return None


def _features(path: str | os.PathLike[str]) -> Sequence[Any]:
    """The features of a file; a bare geometry is one feature without an id."""
    try:
        with open(path, "rb") as file:
            root = json.loads(file.read())
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise FileError(f"{path} is not JSON: {error}") from None
    kind = root.get("type") if isinstance(root, dict) else None
    if kind not in ROOTS:
        got = f"its type is {shown(kind)}" if isinstance(root, dict) else f"it is a {type(root).__name__}"
        raise FileError(f"{path} is not GeoJSON with geofences: {got}; it must be one of: {', '.join(ROOTS)}")
    if kind != "FeatureCollection":
        return [root if kind == "Feature" else {"type": "Feature", "geometry": root}]
    features = root.get("features")
    if not isinstance(features, list) or not features:
        raise FileError(f"{path} has no features; a FeatureCollection lists them under 'features'")
    return features


def _check_feature(feature: Any) -> None:
    if not isinstance(feature, dict) or feature.get("type") != "Feature":
        raise QueryError("it is not an object with the type 'Feature'")
    if not isinstance(feature.get("properties"), dict | None):
        raise QueryError("its properties are not an object")


def _id_of(feature: dict[str, Any], number: int, id_property: str | None, seen: dict[str, int]) -> str | int:
    if id_property is not None:
        properties = feature.get("properties") or {}
        if id_property not in properties:
            has = ", ".join(map(str, properties)) or "none"
            raise QueryError(f"it has no property {id_property!r} for its id; it has: {has}")
        query_id = properties[id_property]
    else:
        query_id = number if feature.get("id") is None else feature["id"]
    if not isinstance(query_id, str | int) or isinstance(query_id, bool):
        raise QueryError(f"its id is {shown(query_id)}; it must be a string or a whole number")
    first = seen.setdefault(str(query_id), number)
    if first != number:
        raise QueryError(f"its id {shown(query_id)} is also the id of feature {first}")
    return query_id
