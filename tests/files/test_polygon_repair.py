"""Invalid polygons of GeoJSON files: their errors, and how they are repaired."""

from __future__ import annotations

import json
import logging
import math

import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

import vedette as vd
from tests.profiles import examples

SQUARE = [[0, 0], [4, 0], [4, 4], [0, 4], [0, 0]]
TIE = [[0, 0], [2, 2], [2, 0], [0, 2], [0, 0]]
INSIDE = [[1, 1], [2, 1], [2, 2], [1, 2], [1, 1]]
OUTSIDE = [[5, 5], [6, 5], [6, 6], [5, 6], [5, 5]]
TOUCHING = [[0, 0], [2, 0], [1, 1], [2, 2], [0, 2], [1, 1], [0, 0]]
FLAT = [[0, 0], [4, 0], [2, 0], [0, 0]]
POINT = {"type": "Point", "coordinates": [1, 1]}


def polygon(*rings):
    return {"type": "Polygon", "coordinates": list(rings)}


def parts(*polygons):
    return {"type": "MultiPolygon", "coordinates": [each["coordinates"] for each in polygons]}


def collection(*geometries):
    return {"type": "GeometryCollection", "geometries": list(geometries)}


@pytest.fixture
def write(tmp_path):
    def write_features(*geometries):
        features = [
            {"type": "Feature", "id": f"zone-{number}", "geometry": each} for number, each in enumerate(geometries)
        ]
        path = tmp_path / "zones.geojson"
        path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
        return path

    return write_features


def holds(path, point, **options):
    """Whether the first zone of a file contains a point."""
    ids, texts, _ = vd.read_geojson(path, "x", "y", **options)
    queries = vd.QuerySet("x double, y double")
    queries.add_many(ids, texts)
    return bool(queries.match_one({"x": point[0], "y": point[1]}))


INVALID = {
    "a bow tie": (polygon(TIE), "ring 1: it crosses itself, at 1 1"),
    "a ring that touches itself": (polygon(TOUCHING), "ring 1: a ring touches itself, at 1 1"),
    "a hole that crosses itself": (polygon(SQUARE, [[3, 3], [2, 2], [3, 2], [2, 3], [3, 3]]), "ring 2: it crosses"),
    "a hole outside": (polygon(SQUARE, OUTSIDE), "ring 2: the hole is outside the shell, at 5 5"),
    "a hole in a hole": (
        polygon([[-9, -9], [9, -9], [9, 9], [-9, 9], [-9, -9]], SQUARE, INSIDE),
        "ring 3: the hole is inside another hole",
    ),
    "a part in a part": (parts(polygon(SQUARE), polygon(INSIDE)), "ring 1 of polygon 2: the part is inside another"),
    "a second part that crosses itself": (
        parts(polygon(OUTSIDE), polygon(TIE)),
        "ring 1 of polygon 2: it crosses itself, at 1 1",
    ),
    "a ring that is not closed": (polygon(SQUARE[:4]), "ring 1 is not closed: its first point is 0 0, its last point"),
    "a hole that is not closed": (polygon(SQUARE, INSIDE[:4]), "ring 2 is not closed"),
    "a hole of two points": (
        polygon(SQUARE, [[1, 1], [2, 2], [1, 1]]),
        "ring 2 has too few points: 3; a closed ring needs at least 4",
    ),
}


@pytest.mark.parametrize("name", INVALID)
def test_an_invalid_polygon_is_reported_with_feature_ring_and_reason(write, name):
    geometry, reason = INVALID[name]

    with pytest.raises(vd.FileError) as caught:
        vd.read_geojson(write(polygon(SQUARE), geometry))

    assert f"zones.geojson, feature 2, id 'zone-1': invalid geometry: {reason}" in str(caught.value)
    assert caught.value.query == "zone-1"


@pytest.mark.parametrize("name", INVALID)
def test_a_repaired_polygon_is_valid_and_reported(write, caplog, name):
    path, repaired = write(polygon(SQUARE), INVALID[name][0]), []

    with caplog.at_level(logging.WARNING):
        ids, texts, _ = vd.read_geojson(path, repair=True)
    vd.read_geojson(path, repair=True, repaired=repaired)

    assert ids == ["zone-0", "zone-1"]
    assert shapely.is_valid(shapely.from_wkt(texts[1].split("'")[1]))
    assert repaired == [(2, "zone-1")]
    assert [each.getMessage() for each in caplog.records] == [f"repaired 1 polygon of {path}: 'zone-1'"]
    vd.QuerySet("lon double, lat double").add_many(ids, texts)


@pytest.mark.parametrize(
    ("geometry", "inside", "outside"),
    [
        (polygon(TIE), [(1.7, 1), (0.3, 1)], [(1, 1.7), (1, 0.3)]),
        (polygon(TOUCHING), [(0.5, 0.2), (0.5, 1.8)], [(1.8, 1), (0.2, 1)]),
        (polygon(SQUARE, OUTSIDE), [(1, 1), (5.5, 5.5)], [(4.5, 4.5)]),  # a hole outside is a part
        (polygon(SQUARE, INSIDE[:4]), [(3, 3)], [(1.5, 1.5)]),
        (parts(polygon(SQUARE), polygon(INSIDE)), [(1.5, 1.5), (3, 3)], [(5, 5)]),  # an overlap is not a hole
        (collection(POINT, polygon(SQUARE), polygon(OUTSIDE)), [(1, 1), (5.5, 5.5)], [(4.5, 4.5)]),
        (collection(collection(polygon(TIE)), POINT), [(1.7, 1)], [(1, 1.7)]),
    ],
)
def test_a_repaired_polygon_contains_the_intended_points(write, geometry, inside, outside):
    path = write(geometry)

    assert [holds(path, point, repair=True, repaired=[]) for point in inside] == [True] * len(inside)
    assert [holds(path, point, repair=True, repaired=[]) for point in outside] == [False] * len(outside)


@pytest.mark.parametrize("geometry", [polygon(FLAT), polygon([[0, 0], [1, 1]]), collection(POINT), collection()])
def test_a_polygon_without_an_area_cannot_be_repaired(write, geometry):
    with pytest.raises(vd.FileError, match=r"feature 1, id 'zone-0': invalid geometry: .*; it cannot be repaired"):
        vd.read_geojson(write(geometry), repair=True)


def test_a_collection_is_refused_unless_it_is_repaired(write):
    with pytest.raises(vd.FileError, match=r"its geometry is a GeometryCollection; .* repair=True, keeps its polygons"):
        vd.read_geojson(write(collection(polygon(SQUARE))))


def test_a_collection_that_nests_deeply_is_refused(write):
    nested = polygon(SQUARE)
    for _ in range(200):
        nested = collection(nested)
    with pytest.raises(vd.FileError, match="its collections are nested more than 100 levels deep"):
        vd.read_geojson(write(nested), repair=True)


def test_valid_polygons_are_not_changed_by_repair(write):
    x = 0.1 + 0.2
    path, repaired = write(polygon([[0, 0], [x, 0], [x, 1e-07], [0, 0]])), []

    assert vd.read_geojson(path, repair=True, repaired=repaired) == vd.read_geojson(path)
    assert repaired == []


coordinate = st.integers(0, 6).map(float)
rings = st.lists(st.tuples(coordinate, coordinate).map(list), min_size=1, max_size=7)


@examples(1)
@given(st.lists(rings, min_size=1, max_size=3), st.tuples(coordinate, coordinate))
def test_any_rings_are_repaired_to_what_shapely_makes_of_them_or_refused(tmp_path_factory, shapes, point):
    path = tmp_path_factory.mktemp("zones") / "zones.geojson"
    path.write_text(json.dumps(polygon(*shapes)))
    closed = [ring if ring[0] == ring[-1] else [*ring, ring[0]] for ring in shapes]
    wanted = None
    if len(closed[0]) >= 4:
        made = shapely.make_valid(
            shapely.Polygon(closed[0], [ring for ring in closed[1:] if len(ring) >= 4]),
            method="structure",
            keep_collapsed=False,
        )
        wanted = made if made.area > 0 else None
    errors: list[tuple[int, vd.FileError]] = []

    _, texts, _ = vd.read_geojson(path, "x", "y", repair=True, repaired=[], errors=errors)

    assert len(texts) + len(errors) == 1
    assert bool(texts) == (wanted is not None)
    if wanted is not None:
        got = shapely.from_wkt(texts[0].split("'")[1])
        assert math.isclose(shapely.symmetric_difference(got, wanted).area, 0, abs_tol=1e-9)
        assert holds(path, point, repair=True, repaired=[]) == shapely.contains_xy(got, *point)
