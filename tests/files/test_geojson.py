"""GeoJSON files become ids, texts and properties; errors have the feature's number."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import vedette as vd
from vedette.files.geojson import point_fields

TRIANGLE = [[0, 0], [4, 0], [4, 3], [0, 0]]
SQUARE = {
    "type": "Polygon",
    "coordinates": [[[0, 0], [4, 0], [4, 4], [0, 4], [0, 0]], [[1, 1], [2, 1], [2, 2], [1, 1]]],
}
BOTH = {"type": "MultiPolygon", "coordinates": [[TRIANGLE], [[[5, 5], [6.5, 5.25, 100.0], [6, 6], [5, 5]]]]}


def feature(geometry: Any = SQUARE, **more: Any) -> dict[str, Any]:
    return {"type": "Feature", "properties": {}, "geometry": geometry} | more


def spot(coordinates: Any, radius: Any, **more: Any) -> dict[str, Any]:
    return feature({"type": "Point", "coordinates": coordinates}, properties={"radius": radius}, **more)


def ring(*points: list[Any]) -> dict[str, Any]:
    return {"type": "Polygon", "coordinates": [list(points)]}


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def write_file(*features: Any) -> Path:
        path = tmp_path / "zones.geojson"
        path.write_text(json.dumps({"type": "FeatureCollection", "features": list(features)}))
        return path

    return write_file


def test_polygons_and_multipolygons_become_queries(write: Any) -> None:
    path = write(feature(id="a", properties={"city": "Ghent"}), feature(BOTH, id="b", properties=None))

    ids, texts, properties = vd.read_geojson(path, x="x", y="end")

    assert ids == ["a", "b"]
    assert texts == [
        "ST_Contains(ST_GeomFromText('POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0), (1 1, 2 1, 2 2, 1 1))'), ST_Point(x, `end`))",
        "ST_Contains(ST_GeomFromText('MULTIPOLYGON (((0 0, 4 0, 4 3, 0 0)), ((5 5, 6.5 5.25, 6 6, 5 5)))'), "
        "ST_Point(x, `end`))",
    ]
    assert properties == [{"city": "Ghent"}, {}]
    queries = vd.QuerySet("x double, `end` double")
    queries.add_many(ids, texts)
    assert queries.match({"x": [3.5, 1.75, 6.0], "end": [1.0, 1.5, 5.5]}).to_arrow().to_pylist() == [
        {"row": 0, "query": "a"},
        {"row": 0, "query": "b"},
        {"row": 2, "query": "b"},
    ]


def test_every_digit_of_a_coordinate_is_kept(write: Any) -> None:
    x = 0.1 + 0.2
    path = write(feature(ring([0, 0], [x, 0], [x, 1e-07], [0, 0])))

    _, (text,), _ = vd.read_geojson(path)

    assert "POLYGON ((0 0, 0.30000000000000004 0, 0.30000000000000004 1e-07, 0 0))" in text


@pytest.mark.parametrize(
    ("features", "id_property", "ids"),
    [
        ([feature(id=7), feature(id=5)], None, [7, 5]),
        ([feature(), feature(id=None)], None, [1, 2]),
        ([feature(), feature(id="b"), feature(id=9), feature(id="")], None, ["1", "b", "9", ""]),
        ([feature(id=7, properties={"name": "a"}), feature(properties={"name": "b"})], "name", ["a", "b"]),
    ],
)
def test_ids_are_the_features_or_a_property_or_numbers(
    write: Any, features: list[Any], id_property: str | None, ids: list[Any]
) -> None:
    assert vd.read_geojson(write(*features), id_property=id_property)[0] == ids


def test_points_with_a_radius_become_circles_in_metres(write: Any) -> None:
    path = write(spot([4.35, 50.85], 500, id="depot"), feature(id="zone"), spot([-180, -4.5, 7], 0.5, id="line"))

    ids, texts, properties = vd.read_geojson(path)

    assert ids == ["depot", "zone", "line"]
    assert texts[0] == "ST_DWithin(ST_Point(lon, lat), ST_Point(4.35, 50.85), 500, TRUE)"
    assert texts[2] == "ST_DWithin(ST_Point(lon, lat), ST_Point(-180, -4.5), 0.5, TRUE)"
    assert properties == [{"radius": 500}, {}, {"radius": 0.5}]
    queries = vd.QuerySet("lon double, lat double")
    queries.add_many(ids, texts)
    places = [(4.356, 50.85), (4.358, 50.85), (180.0, -4.5), (3.5, 1.0)]
    assert [queries.match_one({"lon": lon, "lat": lat}) for lon, lat in places] == [["depot"], [], ["line"], ["zone"]]


def test_a_feature_or_a_geometry_alone_is_one_query(tmp_path: Path) -> None:
    path = tmp_path / "zone.json"
    for root in (feature(id="a"), SQUARE):
        path.write_text("\ufeff" + json.dumps(root), encoding="utf-8")
        assert vd.read_geojson(path)[0] == (["a"] if "id" in root else [1])


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (
            feature({"type": "Point", "coordinates": [1, 2]}),
            "its geometry is a Point without a property 'radius', the radius of a circle in metres",
        ),
        (feature({"type": "LineString"}), "its geometry is a LineString; a geofence is a Polygon, a MultiPolygon or a"),
        (spot([4.35, 50.85], -1), "a radius must be 0 or more, not -1"),
        (spot([4.35, 50.85], 2.1e7), "a radius of 2.1e+07 metres is larger than half the earth"),
        (spot([4.35, 50.85], "500 m"), "its property 'radius' is \"500 m\" instead of a number"),
        (spot([4.35, 50.85], float("nan")), "its property 'radius' is NaN instead of a number"),
        (spot([4.35, 50.85], True), "its property 'radius' is true instead of a number"),
        (spot([50.85, 104], 5), "the coordinates look swapped: latitude is 104, beyond [-90, 90]"),
        (spot([190, 4], 5), "the coordinates are out of range: longitude is 190, beyond [-180, 180]"),
        (spot([4], 5), "its coordinates have [4] instead of a point such as [4.35, 50.85]"),
        (feature(None), "it has no geometry"),
        ([1, 2], "it is not an object with the type 'Feature'"),
        (SQUARE, "it is not an object with the type 'Feature'"),
        (feature(properties=[1]), "its properties are not an object"),
        (feature({"type": "Polygon"}), "its coordinates have null instead of a list of rings"),
        (feature({"type": "Polygon", "coordinates": []}), "its coordinates have [] instead of a list of rings"),
        (feature({"type": "Polygon", "coordinates": [7]}), "its coordinates have 7 instead of a list of points"),
        (feature({"type": "MultiPolygon", "coordinates": {}}), "have {} instead of a list of polygons"),
        (feature({"type": "Polygon", "coordinates": TRIANGLE}), "its coordinates have 0 instead of a point such as"),
        (feature(ring([0, 0], ["4", 0], [4, 3], [0, 0])), 'its coordinates have "4" instead of a number'),
        (feature(ring([0, 0], [True, 0], [4, 3], [0, 0])), "its coordinates have true instead of a number"),
        (feature(ring([0, 0], [float("nan"), 0], [4, 3], [0, 0])), "its coordinates have NaN instead of a number"),
        (feature(ring([0, 0], [10**400, 0], [4, 3], [0, 0])), "instead of a number"),
        (
            feature(ring([0, 0], [4, 0], [4, 3])),
            "invalid geometry: ring 1 is not closed: its first point is 0 0",
        ),
        (feature(ring([0, 0], [2, 2], [2, 0], [0, 2], [0, 0])), "invalid geometry: ring 1: it crosses itself, at 1 1"),
        (
            feature(ring([51, 104], [52, 104], [52, 105], [51, 104])),
            "the coordinates look swapped: lat is 104 to 105, beyond [-90, 90]; the order is lon lat",
        ),
        (feature(id=1.5), "its id is 1.5; it must be a string or a whole number"),
        (feature(id=True), "its id is True; it must be a string or a whole number"),
        (feature(id="first"), "its id 'first' is also the id of feature 1"),
    ],
)
def test_an_error_in_a_feature_is_reported_with_its_number(write: Any, bad: Any, reason: str) -> None:
    path = write(feature(id="first"), bad, feature(id="last"))

    with pytest.raises(vd.FileError) as caught:
        vd.read_geojson(path)
    assert str(caught.value).startswith(f"{path}, feature 2: ")
    assert reason in str(caught.value)

    errors: list[tuple[int, vd.FileError]] = []
    ids, texts, properties = vd.read_geojson(path, errors=errors)
    assert ids == ["first", "last"]
    assert len(texts) == len(properties) == 2
    assert [(number, str(error)) for number, error in errors] == [(2, str(caught.value))]


def test_a_missing_id_property_is_reported(write: Any) -> None:
    with pytest.raises(vd.FileError, match="feature 1: it has no property 'nmae' for its id; it has: name, city"):
        vd.read_geojson(write(feature(properties={"name": "a", "city": "b"})), id_property="nmae")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("{", "zones.geojson is not JSON: Expecting property name"),
        ("\udcff", "zones.geojson is not JSON: "),
        (
            "[1]",
            "is not GeoJSON with geofences: it is a list; it must be one of: FeatureCollection, Feature",
        ),
        (
            '{"type": "Topology"}',
            "is not GeoJSON with geofences: its type is 'Topology'; it must be one of",
        ),
        ('{"type": ["Feature"]}', "is not GeoJSON with geofences: its type is ['Feature']"),
        ('{"type": "FeatureCollection"}', "has no features; a FeatureCollection lists them under 'features'"),
        ('{"type": "FeatureCollection", "features": []}', "has no features"),
    ],
)
def test_a_file_that_is_not_geojson_is_refused(tmp_path: Path, content: str, reason: str) -> None:
    path = tmp_path / "zones.geojson"
    path.write_bytes(content.encode(errors="surrogateescape"))

    with pytest.raises(vd.FileError) as caught:
        vd.read_geojson(path)

    assert reason in str(caught.value)


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(vd.FileError, match=r"cannot read .*zones.geojson: No such file or directory"):
        vd.read_geojson(tmp_path / "zones.geojson")


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ("lat double, lon double", ("lon", "lat")),
        ("Longitude double, LATITUDE double, x double, y double", ("Longitude", "LATITUDE")),
        ("x double, y double, lon double", ("x", "y")),
        ("lng bigint, lat decimal(8,5)", ("lng", "lat")),
        ("price double, lat double", None),
    ],
)
def test_the_fields_of_a_point_are_found_by_their_names(fields: str, found: tuple[str, str] | None) -> None:
    assert point_fields(vd.Schema.parse(fields)) == found


def test_a_polygon_that_seems_to_cross_the_antimeridian_is_read_with_a_warning(tmp_path: Path) -> None:
    good = {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1], [0, 0]]]}
    across = {"type": "Polygon", "coordinates": [[[179, 0], [-179, 0], [-179, 5], [179, 0]]]}
    features = [{"type": "Feature", "geometry": each} for each in (good, {"type": "Point"}, across)]
    path = tmp_path / "zones.geojson"
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    errors: list[Any] = []
    warnings: list[tuple[int, str]] = []

    ids, _, _ = vd.read_geojson(path, errors=errors, warnings=warnings)

    assert ids == [1, 3]
    assert [number for number, _ in warnings] == [3]
    assert "the polygon spans 358 degrees of lon" in warnings[0][1]
