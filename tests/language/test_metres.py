"""Distances in metres on the earth, against GeographicLib."""

from __future__ import annotations

import math
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import oracles
import pytest
from geographiclib.geodesic import Geodesic
from hypothesis import example, given
from hypothesis import strategies as st

import vedette as vd
from vedette.data.boxes import Ranges
from vedette.data.schema import Schema
from vedette.language import check_text, compile_texts
from vedette.language.earth import boxes_of_circles
from vedette.language.geodesics import Circles, geodesic_distances, great_circle_distances

MICROMETRE = 1e-6
earth = Schema.parse("lon double, lat double, to_lon double, to_lat double, reach double, name string")

lons = st.sampled_from([-180.0, -179.9999, -90.0, 0.0, 1e-9, 90.0, 179.9999999, 180.0]) | st.floats(-180, 180)
lats = st.sampled_from([-90.0, -89.99999, -60.0, 0.0, 1e-9, 45.0, 89.9999999, 90.0]) | st.floats(-90, 90)
places = st.tuples(lons, lats)
metres = st.sampled_from([0.0, 1e-3, 50.0, 5000.0, 1e6, 10_001_965.7, 20_003_931.4]) | st.floats(0, 20_003_931)


def antipode(place: tuple[float, float]) -> tuple[float, float]:
    lon, lat = place
    return (lon - 180 if lon > 0 else lon + 180), -lat


@st.composite
def pairs(draw: st.DrawFn) -> tuple[tuple[float, float], tuple[float, float]]:
    """Two places: any, equal, antipodes, or near to one of these."""
    place = draw(places)
    other = draw(st.sampled_from([place, antipode(place)]) | places)
    if draw(st.booleans()):
        shift = st.floats(-0.3, 0.3) | st.floats(-1e-6, 1e-6)
        lon, lat = other[0] + draw(shift), other[1] + draw(shift)
        other = (lon - 360 * round(lon / 360), max(-90.0, min(90.0, lat)))
    return place, other


def arrays(*values: float) -> list[Any]:
    return [np.array([value], np.float64) for value in values]


@given(pairs())
@example(((0.0, 0.0), (179.5, 0.5)))
@example(((0.0, 0.0), (179.9, 0.0)))
@example(((180.0, 10.0), (-180.0, 10.0)))
@example(((7.0, 90.0), (-100.0, 90.0)))
@example(((7.0, -90.0), (-100.0, 90.0)))
def test_distances_are_within_a_millimetre_of_geographiclib(pair: Any) -> None:
    (place, other), near = pair, 1e-3
    (distance,), (back,) = (geodesic_distances(*arrays(*a, *b)) for a, b in ((place, other), (other, place)))

    assert distance == pytest.approx(oracles.metres_between(place, other), abs=near)
    assert back == distance
    (angular,) = great_circle_distances(*arrays(*place, *other))
    assert angular == pytest.approx(oracles.metres_on_sphere(place, other), abs=0.2 if angular > 2e7 else near)


@given(pairs(), st.sampled_from([-1.0, -1e-3, -2e-6, 2e-6, 1e-3, 1.0]) | st.floats(-1e5, 1e5))
def test_the_bounds_of_a_geodesic_decide_as_the_geodesic_does(pair: Any, off: float) -> None:
    distance = oracles.metres_between(*pair)
    limit = distance + off
    (sign,) = Circles.of(*arrays(*pair[1], limit)).compare(*arrays(*pair[0]), np.zeros(1, np.int64))

    if abs(distance - limit) > MICROMETRE:
        assert sign == (1 if distance > limit else -1)


def test_few_geodesics_are_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    from vedette.language import geodesics

    random, n, computed = np.random.default_rng(5), 20_000, []
    lon, lat = random.uniform(-180, 180, n), random.uniform(-89, 89, n)
    radii = random.uniform(50, 5000, n)
    other_lat = lat + np.degrees(radii / 6.36e6) * random.uniform(-1, 1, n)
    exact = geodesic_distances
    monkeypatch.setattr(geodesics, "geodesic_distances", lambda *args: computed.append(len(args[0])) or exact(*args))
    signs = Circles.of(lon, lat, radii).compare(lon, other_lat, np.arange(n))

    assert {-1, 1} <= set(signs.tolist())
    assert sum(computed) <= 2


@given(places, metres, st.booleans())
@example((180.0, 0.0), 500.0, False)
@example((-180.0, 89.0), 111_000.0, False)
@example((10.0, -90.0), 0.0, False)
@example((179.0, -80.0), 5000.0, True)
@example((0.0, 0.0), 10_001_965.7, False)
def test_the_boxes_of_a_circle_contain_it(place: tuple[float, float], radius: float, on_sphere: bool) -> None:
    """Points of the border, in all directions, and on the sphere a little inside that of the spheroid."""
    boxes = boxes_of_circles(*arrays(*place, radius), on_sphere=on_sphere)
    for azimuth in range(0, 360, 15):
        found = Geodesic.WGS84.Direct(place[1], place[0], azimuth, radius * (0.99 if on_sphere else 1))
        lon, lat = found["lon2"], found["lat2"]
        assert boxes.lat_lows[0] <= lat <= boxes.lat_highs[0]
        inside = boxes.lon_lows[0] <= lon <= boxes.lon_highs[0]
        beyond = boxes.crosses[0] and boxes.more_lows[0] <= lon <= boxes.more_highs[0]
        assert inside or beyond or abs(lat) == 90


def test_boxes_are_not_much_larger_than_their_circles() -> None:
    """The sides of a box of 5 km: north and south to a metre, east and west to one in 500 at 60 degrees."""
    (block,) = compile_texts(["ST_DWithin(ST_Point(lon, lat), ST_Point(20, 60), 5000, TRUE)"], earth).blocks
    lon, lat = block.ranges["lon"], block.ranges["lat"]
    assert isinstance(lon, Ranges)
    assert isinstance(lat, Ranges)

    assert oracles.metres_between((20, 60), (20, lat.highs[0])) == pytest.approx(5000, abs=1)
    assert oracles.metres_between((20, 60), (20, lat.lows[0])) == pytest.approx(5000, abs=1)
    assert 5000 < oracles.metres_between((20, 60), (lon.highs[0], 60)) < 5010


def circle(place: tuple[float, float], radius: float) -> str:
    return f"ST_DWithin(ST_Point(lon, lat), ST_Point({place[0]!r}D, {place[1]!r}D), {radius!r}D, TRUE)"


@st.composite
def circles(draw: st.DrawFn) -> tuple[tuple[float, float], float]:
    return draw(places), draw(metres)


@given(st.lists(circles(), min_size=1, max_size=6), st.lists(places, min_size=1, max_size=6), st.floats(0.5, 1.5))
@example([((180.0, 10.0), 5000.0), ((-179.99, 10.0), 5000.0)], [(180.0, 10.01), (-180.0, 10.01), (0.0, 10.0)], 1.0)
@example([((0.0, 89.99), 5000.0), ((0.0, 89.99), 0.0)], [(180.0, 89.97), (90.0, 90.0), (0.0, 89.99)], 1.0)
def test_a_query_set_finds_the_points_at_most_the_radius_away(drawn: Any, rows: Any, share: float) -> None:
    """Besides any rows, some on the way from each centre, within its radius or beyond."""
    for (lon, lat), radius in drawn:
        found = Geodesic.WGS84.Direct(lat, lon, 37 * radius, share * radius)
        rows = [*rows, (found["lon2"], found["lat2"]), (lon, lat)]
    queries = vd.QuerySet("lon double, lat double")
    queries.add_many(list(range(len(drawn))), [circle(*each) for each in drawn])
    hits = queries.match({"lon": [lon for lon, _ in rows], "lat": [lat for _, lat in rows]})

    for row, place in enumerate(rows):
        found_ids = set(hits.positions[hits.starts[row] : hits.starts[row + 1]].tolist())
        for number, (centre, radius) in enumerate(drawn):
            distance = oracles.metres_between(place, centre)
            if place == centre or abs(distance - radius) > MICROMETRE:
                assert (number in found_ids) == (distance <= radius), (place, centre, radius, distance)


def test_a_radius_of_0_holds_the_place_by_all_its_names() -> None:
    queries = vd.QuerySet("lon double, lat double")
    queries.add_many(["line", "pole"], [circle((180.0, 10.0), 0.0), circle((7.0, -90.0), 0.0)])

    for place, expected in (((-180.0, 10.0), ["line"]), ((-100.0, -90.0), ["pole"]), ((7.0, 90.0), [])):
        assert queries.match_one({"lon": place[0], "lat": place[1]}) == expected


NEW_YORK = (-73.98, 40.75)
CENTRE = "ST_Point(-73.98, 40.75)"
POINT = "ST_Point(lon, lat)"
ROWS: dict[str, list[Any]] = {  # metres from the centre: 0, 111.0, 499.7, 555.2, far; then unknown or nowhere
    "lon": [-73.98, -73.98, -73.98, -73.98, 100.0, None, math.nan, math.inf, -433.98, -73.98],
    "lat": [40.75, 40.751, 40.7545, 40.755, -40.0, 40.75, 40.75, 40.75, 40.75, 130.75],
}
ROWS |= {"to_lon": [-73.98] * 10, "to_lat": [40.75] * 10, "reach": [500.0] * 9 + [None], "name": ["a"] * 10}
NOWHERE = {6, 7, 8, 9}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"ST_DWithin({POINT}, {CENTRE}, 500, TRUE)", {0, 1, 2}),
        (f"st_dwithin({CENTRE}, {POINT}, 500.0, true)", {0, 1, 2}),
        (f"ST_DWithin({POINT}, {CENTRE}, 0, TRUE)", {0}),
        (f"ST_DWithin({POINT}, {CENTRE}, 0.002, FALSE)", {0, 1}),
        (f"NOT ST_DWithin({POINT}, {CENTRE}, 500, TRUE)", {3, 4} | NOWHERE),
        (f"ST_DWithin({POINT}, {CENTRE}, 500, TRUE) IS NULL", {5}),
        (f"ST_DistanceSpheroid({POINT}, {CENTRE}) < 500", {0, 1, 2}),
        (f"500 >= ST_DistanceSpheroid({CENTRE}, {POINT})", {0, 1, 2}),
        (f"ST_DistanceSpheroid({POINT}, {CENTRE}) < reach * 0", set()),
        (f"ST_DistanceSpheroid({POINT}, {CENTRE}) > 500", {3, 4} | NOWHERE),
        (f"500 < ST_DistanceSpheroid({POINT}, {CENTRE})", {3, 4} | NOWHERE),
        (f"NOT ST_DistanceSpheroid({POINT}, {CENTRE}) > 500", {0, 1, 2}),
        (f"NOT 500 <= ST_DistanceSpheroid({POINT}, {CENTRE})", {0, 1, 2}),
        (f"ST_DistanceSpheroid({POINT}, {CENTRE}) BETWEEN 100 AND 550", {1, 2}),
        (f"ST_DistanceSpheroid({POINT}, {CENTRE}) = 0", {0}),
        (f"ST_DistanceSpheroid({POINT}, {CENTRE}) <> 0", {1, 2, 3, 4} | NOWHERE),
        (f"ST_DistanceSpheroid({POINT}, {CENTRE}) IN (0, 7)", {0}),
        (f"ST_DistanceSpheroid({POINT}, {CENTRE}) <=> 0", {0}),
        (f"ST_DistanceSpheroid({POINT}, {CENTRE}) / 1000 < 0.5", {0, 1, 2}),
        (f"round(ST_DistanceSpheroid({POINT}, {CENTRE})) = 111", {1}),
        (f"isnan(ST_DistanceSpheroid({POINT}, {CENTRE}))", NOWHERE),
        (f"ST_DistanceSpheroid({POINT}, {CENTRE}) < reach", {0, 1, 2}),
        (f"ST_DistanceSpheroid({POINT}, {CENTRE}) < CAST('NaN' AS DOUBLE) * reach", {0, 1, 2, 3, 4}),
        (f"ST_DistanceSpheroid({POINT}, {CENTRE}) < name", set()),
        (f"ST_DWithin({POINT}, ST_Point(to_lon, to_lat), 500, TRUE)", {0, 1, 2}),
        (f"ST_DWithin({POINT}, ST_Point(to_lon, 40.75), 500, TRUE) AND lat > 40.7501", {1, 2}),
        (f"ST_DWithin(ST_Point(lon + 0, lat), {CENTRE}, 500, TRUE)", {0, 1, 2}),
        (f"ST_DWithin(ST_Point(lon, NULL), {CENTRE}, 500, TRUE) IS NULL", set(range(10))),
        (f"ST_DistanceSphere({POINT}, {CENTRE}) <= 500.4", {0, 1, 2}),
        (f"ST_DistanceSphere({POINT}, {CENTRE}) BETWEEN 500.3 AND 500.4", {2}),
        (f"NOT ST_DistanceSphere({POINT}, {CENTRE}) <= 500", {2, 3, 4} | NOWHERE),
        (f"ST_DWithin({POINT}, {CENTRE}, 500, TRUE) AND name = 'b'", set()),
    ],
)
def test_distances_in_conditions(text: str, expected: set[int]) -> None:
    queries = vd.QuerySet(earth)
    queries.add("it", text)
    hits = queries.match(ROWS)

    assert {row for row in range(10) if hits.starts[row] < hits.starts[row + 1]} == expected


@pytest.mark.parametrize(
    ("text", "n_boxes"),
    [
        (circle(NEW_YORK, 500.0), 1),
        (circle((180.0, 10.0), 500.0), 2),
        (circle((-179.9999, 10.0), 500.0), 2),
        (circle((0.0, 89.999), 500.0), 1),
        (f"ST_DistanceSphere({POINT}, ST_Point(180, 0)) < 500", 2),
        (f"NOT ST_DistanceSpheroid({POINT}, ST_Point(180, 0)) > 500", 2),
        ("ST_DWithin(ST_Point(lon + 1, lat), ST_Point(180, 0), 500, TRUE)", 1),
    ],
)
def test_a_circle_across_the_antimeridian_is_two_boxes(text: str, n_boxes: int) -> None:
    compiled = compile_texts([text], earth)

    assert sum(map(len, compiled.blocks)) == n_boxes
    assert all("lat" in block.ranges for block in compiled.blocks)


@pytest.mark.parametrize("text", [f"ST_DistanceSpheroid({POINT}, {CENTRE}) > 500", f"NOT {circle(NEW_YORK, 500.0)}"])
def test_what_is_farther_than_a_distance_has_no_box(text: str) -> None:
    assert [block.ranges for block in compile_texts([text], earth).blocks] == [{}]
    assert "every row is a candidate" in check_text(text, earth)[0]


@pytest.mark.parametrize(
    ("text", "reason", "place"),
    [
        (f"ST_DWithin({POINT}, {CENTRE}, -5, TRUE)", "a radius must be 0 or more, not -5", "5"),
        (
            f"ST_DWithin({POINT}, {CENTRE}, 2.1e7, TRUE)",
            "a radius of 2.1e+07 metres is larger than half the earth: points are at most 20003931 metres apart",
            "2.1e7",
        ),
        (f"ST_DistanceSphere({POINT}, {CENTRE}) < 3e7", "a radius of 3e+07 metres is larger than half the", "3e7"),
        (f"ST_DistanceSpheroid({POINT}, {CENTRE}) > -1", "a radius must be 0 or more, not -1", "1"),
        (f"ST_DistanceSpheroid({POINT}, {CENTRE}) < 'NaN'", "a radius of nan metres", "'NaN'"),
        (
            f"ST_DWithin({POINT}, ST_Point(40.75, -173.98), 5, TRUE)",
            "the coordinates look swapped: latitude is -173.98, beyond [-90, 90]; the order is longitude latitude",
            "173.98",
        ),
        (
            f"ST_DWithin(ST_Point(190.5, 0), {POINT}, 5, TRUE)",
            "the coordinates are out of range: longitude is 190.5, beyond [-180, 180]",
            "190.5",
        ),
        (f"ST_DistanceSphere({POINT}, ST_Point(200, 95)) + 1 < 3", "the coordinates are out of range: lon", "200"),
        (f"ST_DWithin({POINT}, {CENTRE}, reach, TRUE)", "ST_DWithin needs a radius that is a number", "reach"),
        (f"ST_DWithin({POINT}, {CENTRE}, 5, lon > 3)", "the fourth argument of ST_DWithin is TRUE, for", "lon > 3"),
        (f"ST_DWithin({POINT}, {CENTRE}, 5, NULL)", "the fourth argument of ST_DWithin is TRUE, for", None),
        (f"ST_DistanceSphere({POINT}, name) < 3", "a point is needed here: ST_Point(lon, lat)", "name"),
        (f"ST_DistanceSphere({POINT}) < 3", "st_distancesphere takes 2 arguments, got 1", None),
    ],
)
def test_what_cannot_be_meant_is_refused_at_its_place(text: str, reason: str, place: str | None) -> None:
    with pytest.raises(vd.QueryError) as caught:
        compile_texts(["lon > 3", text], earth, ids=["good", "bad"])

    error = caught.value
    assert error.reason.startswith(f"query 'bad': {reason}")
    assert error.position is not None
    assert text[error.position : error.end] == place or place is None


def test_a_saved_set_answers_the_same(tmp_path: Path) -> None:
    queries = vd.QuerySet("lon double, lat double")
    queries.add_many(["ny", "date line"], [circle(NEW_YORK, 500.0), circle((180.0, 0.0), 500.0)])
    rows = {"lon": [-73.98, -179.999, 179.999, 0.0], "lat": [40.751, 0.0, 0.0, 0.0]}
    queries.save(tmp_path / "circles")
    loaded = vd.QuerySet.load(tmp_path / "circles")

    expected = [["ny"], ["date line"], ["date line"], []]
    for each in (queries, loaded):
        assert [each.match_one({"lon": x, "lat": y}) for x, y in zip(*rows.values(), strict=True)] == expected


def test_border_monitoring_follows_a_key_across_the_antimeridian() -> None:
    queries = vd.QuerySet("ship string, lon double, lat double, ts timestamp")
    queries.add("date line", circle((180.0, 0.0), 500.0))
    monitor = queries.border(key="ship", time="ts")
    times = [datetime(2026, 3, 2, 14, minute, tzinfo=UTC) for minute in range(5)]
    lons = [179.9, 179.999, -179.999, -179.9, 179.998]
    events = monitor.step({"ship": ["A"] * 5, "lon": lons, "lat": [0.0] * 5, "ts": times}).to_pylist()

    assert [(event["time"], event["event"]) for event in events] == [
        (times[1], "enter"),
        (times[3], "exit"),
        (times[4], "enter"),
    ]


def test_pyproj_is_imported_for_the_first_close_geodesic_and_not_before() -> None:
    program = (
        "import sys, vedette as vd; queries = vd.QuerySet('lon double, lat double');"
        "queries.add('a', 'ST_DWithin(ST_Point(lon, lat), ST_Point(4, 50), 500, TRUE)');"
        "assert queries.match_one({'lon': 4.001, 'lat': 50.0}) == ['a'];"
        "assert 'pyproj' not in sys.modules;"
        "queries.add('b', 'ST_DWithin(ST_Point(lon, lat), ST_Point(4, 50), 0, TRUE)');"
        "assert queries.match_one({'lon': 4.0, 'lat': 50.0}) == ['a', 'b'];"
        "assert 'pyproj' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
