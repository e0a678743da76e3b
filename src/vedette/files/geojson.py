"""GeoJSON files as queries: each polygon becomes a geofence over two fields of the rows."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from vedette.data.schema import Schema
from vedette.errors import FileError
from vedette.language.geofences import LATITUDES, LONGITUDES, bounds_of_polygons, find_strays, find_wrapped
from vedette.language.polygons import find_faults
from vedette.language.spelling import write_name

GEOMETRIES = ("Polygon", "MultiPolygon")
_GREATEST = sys.float_info.max
ROOTS = ("FeatureCollection", "Feature", *GEOMETRIES)


class _FeatureError(Exception):
    """What is wrong with one feature."""


def read_geojson(
    path: str | os.PathLike[str],
    x: str = "lon",
    y: str = "lat",
    id_property: str | None = None,
    *,
    errors: list[tuple[int, FileError]] | None = None,
    warnings: list[tuple[int, str]] | None = None,
) -> tuple[list[str] | list[int], list[str], list[dict[str, Any]]]:
    """Ids, texts and properties of the polygons of a file; `x` and `y` are the fields that the texts compare.

    An id is the feature's own, or its property `id_property`, else its number, from 1; if some are strings, all are.
    Raises a FileError that names the first bad feature. With `errors`, bad features are appended there as (number,
    error) instead, and left out. `warnings` gets (number, text) of polygons that are taken but look wrong: those that
    seem to cross the antimeridian.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "zones.geojson"
    ...     _ = path.write_text('{"type": "Polygon", "coordinates": [[[0, 0], [4, 0], [4, 3], [0, 0]]]}')
    ...     read_geojson(path)
    ([1], ["ST_Contains(ST_GeomFromText('POLYGON ((0 0, 4 0, 4 3, 0 0))'), ST_Point(lon, lat))"], [{}])
    """
    numbers: list[int] = []
    ids: list[Any] = []
    polygons: list[str] = []
    properties: list[dict[str, Any]] = []
    bad: dict[int, str] = {}
    seen: dict[str, int] = {}
    for number, feature in enumerate(_features(path), start=1):
        try:
            polygon = _write_wkt(feature)
            query_id = _id_of(feature, number, id_property, seen)
        except _FeatureError as error:
            bad[number] = str(error)
            continue
        numbers.append(number)
        ids.append(query_id)
        polygons.append(polygon)
        properties.append(feature.get("properties") or {})
    faults = _find_faults(polygons, x, y)
    bad |= {numbers[place]: reason for place, reason in faults.items()}
    found = [(number, FileError(f"{path}, feature {number}: {bad[number]}")) for number in sorted(bad)]
    if found and errors is None:
        raise found[0][1]
    if errors is not None:
        errors += found
    kept = [place for place in range(len(ids)) if place not in faults]
    if warnings is not None and kept:
        wrapped = find_wrapped(find_faults([polygons[place] for place in kept])[0], x)
        warnings += [(numbers[kept[place]], f"the polygon {words}") for place, words in sorted(wrapped.items())]
    if any(isinstance(query_id, str) for query_id in ids):
        ids = [str(query_id) for query_id in ids]
    point = f"ST_Point({write_name(x)}, {write_name(y)})"
    texts = [f"ST_Contains(ST_GeomFromText('{polygons[place]}'), {point})" for place in kept]
    return [ids[place] for place in kept], texts, [properties[place] for place in kept]


def point_fields(schema: Schema) -> tuple[str, str] | None:
    """The fields of a schema that are a point by their names: lon and lat, or x and y, however these are spelled."""
    for names in ((LONGITUDES, LATITUDES), (("x",), ("y",))):
        x, y = (next((field.name for name in side if (field := schema.find(name))), None) for side in names)
        if x is not None and y is not None:
            return x, y
    return None


def _features(path: str | os.PathLike[str]) -> list[Any]:
    """The features of a file; a geometry alone is one without an id."""
    try:
        with open(path, "rb") as file:
            root = json.loads(file.read())
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise FileError(f"{path} is no JSON: {error}") from None
    kind = root.get("type") if isinstance(root, dict) else None
    if kind not in ROOTS:
        got = f"its type is {kind!r}" if isinstance(root, dict) else f"it is a {type(root).__name__}"
        raise FileError(f"{path} is no GeoJSON of polygons: {got}; it takes {', '.join(ROOTS)}")
    if kind != "FeatureCollection":
        return [root if kind == "Feature" else {"type": "Feature", "geometry": root}]
    features = root.get("features")
    if not isinstance(features, list) or not features:
        raise FileError(f"{path} holds no features; a FeatureCollection lists them under 'features'")
    return features


def _id_of(feature: dict[str, Any], number: int, id_property: str | None, seen: dict[str, int]) -> str | int:
    if id_property is not None:
        properties = feature.get("properties") or {}
        if id_property not in properties:
            has = ", ".join(map(str, properties)) or "none"
            raise _FeatureError(f"it has no property {id_property!r} for its id, but: {has}")
        query_id = properties[id_property]
    else:
        query_id = number if feature.get("id") is None else feature["id"]
    if not isinstance(query_id, str | int) or isinstance(query_id, bool) or query_id == "":
        raise _FeatureError(f"its id is {query_id!r}; it takes a string or a whole number")
    first = seen.setdefault(str(query_id), number)
    if first != number:
        raise _FeatureError(f"it has the id {query_id!r} of feature {first}")
    return query_id


def _write_wkt(feature: Any) -> str:
    """The feature's polygon as WKT, every digit kept."""
    if not isinstance(feature, dict) or feature.get("type") != "Feature":
        raise _FeatureError("it is no object with the type 'Feature'")
    if not isinstance(feature.get("properties"), dict | None):
        raise _FeatureError("its properties are no object")
    geometry = feature.get("geometry")
    if not isinstance(geometry, dict):
        raise _FeatureError("it has no geometry")
    kind, coordinates = geometry.get("type"), geometry.get("coordinates")
    if kind not in GEOMETRIES:
        raise _FeatureError(f"its geometry is a {kind}; a geofence is a Polygon or a MultiPolygon")
    if kind == "Polygon":
        return f"POLYGON {_write_rings(coordinates)}"
    return f"MULTIPOLYGON ({', '.join(map(_write_rings, _items(coordinates, 'a list of polygons')))})"


def _write_rings(rings: Any) -> str:
    written = (
        ", ".join(map(_write_point, _items(ring, "a list of points"))) for ring in _items(rings, "a list of rings")
    )
    return f"({', '.join(f'({points})' for points in written)})"


def _items(value: Any, wanted: str) -> Sequence[Any]:
    if not isinstance(value, list) or not value:
        raise _FeatureError(f"its coordinates have {_shown(value)} where {wanted} is needed")
    return value


def _write_point(point: Any) -> str:
    if not isinstance(point, list) or len(point) < 2:
        raise _FeatureError(f"its coordinates have {_shown(point)} where a point such as [4.35, 50.85] is needed")
    return " ".join(_numbers(point[:2]))


def _numbers(point: list[Any]) -> Iterator[str]:
    for number in point:
        if not isinstance(number, int | float) or isinstance(number, bool) or not abs(number) <= _GREATEST:
            raise _FeatureError(f"its coordinates have {_shown(number)} where a number is needed")
        yield repr(number)


def _shown(value: Any) -> str:
    shown = json.dumps(value)
    return shown if len(shown) <= 40 else shown[:37] + "..."


def _find_faults(polygons: list[str], x: str, y: str) -> dict[int, str]:
    """What is wrong with polygons, by their place: they are not valid, or not where fields of such names can be."""
    geometries, faults = find_faults(polygons)
    good = [place for place in range(len(polygons)) if place not in faults]
    strays = find_strays(bounds_of_polygons(geometries[good]), x, y)
    return faults | {good[place]: reason for place, reason in strays.items()}
