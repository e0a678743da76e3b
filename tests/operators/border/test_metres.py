"""Margins in metres: a key leaves a geofence only when it is farther outside, by GeographicLib."""

from __future__ import annotations

from typing import Any

import oracles
import pytest
from geographiclib.geodesic import Geodesic
from hypothesis import example, given
from hypothesis import strategies as st

import vedette as vd
from tests.profiles import examples

FIELDS = "key string, lon double, lat double, t bigint"
PLACES = [(4.35, 50.85), (180.0, 0.0), (-179.999, -17.0), (10.0, 89.9995), (0.0, -90.0)]


def is_inside_after(text: str, places: list[tuple[float, float]], margin: Any, fields: str = FIELDS) -> list[bool]:
    """Whether a key is inside after each of its rows. Each row is a batch."""
    queries = vd.QuerySet(fields)
    queries.add("it", text)
    monitor, inside, states = queries.border(key="key", time="t", margin=margin), False, []
    for t, (lon, lat) in enumerate(places):
        for event in monitor.step({"key": ["A"], "lon": [lon], "lat": [lat], "t": [t]}).to_pylist():
            inside = event["event"] == "enter"
        states.append(inside)
    return states


def lingers(distances: list[float], radius: float, margin: float) -> list[bool]:
    inside, states = False, []
    for distance in distances:
        inside = distance <= radius or (inside and distance <= radius + margin)
        states.append(inside)
    return states


@examples(0.2)
@given(
    st.sampled_from(PLACES),
    st.sampled_from(["50 m", "0.2 km", "0 m"]),
    st.lists(st.tuples(st.integers(0, 359), st.floats(0, 800)), min_size=2, max_size=6),
    st.booleans(),
)
@example((180.0, 0.0), "50 m", [(0, 1.0), (90, 549.0), (270, 549.0), (90, 551.0), (90, 549.0)], False)
def test_a_key_stays_in_a_circle_up_to_the_margin(place: Any, margin: str, steps: Any, turned: bool) -> None:
    track = [Geodesic.WGS84.Direct(place[1], place[0], azimuth, distance) for azimuth, distance in steps]
    places = [(each["lon2"], each["lat2"]) for each in track]
    distances = [oracles.metres_between(each, place) for each in places]
    metres = {"50 m": 50.0, "0.2 km": 200.0, "0 m": 0.0}[margin]
    if any(abs(distance - limit) < 1e-5 for distance in distances for limit in (500, 500 + metres)):
        return
    circle = f"ST_DWithin(ST_Point(lon, lat), ST_Point({place[0]}, {place[1]}), 500, TRUE)"
    if turned:
        circle = f"500 > ST_DistanceSpheroid(ST_Point({place[0]}, {place[1]}), ST_Point(lon, lat)) AND t >= 0"

    assert is_inside_after(circle, places, margin) == lingers(distances, 500, metres)


METRE = 1 / 110574.3  # of latitude at the equator, in degrees
EAST = 1 / 111319.5


@pytest.mark.parametrize("middle", [0.0, 180.0])
def test_a_key_stays_near_a_polygon_up_to_the_margin(middle: float) -> None:
    ring = [(middle - 1, 0), (middle + 1, 0), (middle + 1, 1), (middle - 1, 1), (middle - 1, 0)]
    text = f"ST_Contains(ST_GeomFromText('POLYGON (({', '.join(f'{x} {y}' for x, y in ring)}))'), ST_Point(lon, lat))"
    near, far, away = -49 * METRE, -51 * METRE, middle - 1 - 49 * EAST
    track = [(middle, 0.5), (middle, near), (middle, far), (middle, near), (away, 0.0), (middle, 0.5), (away, 0.0)]
    if middle == 180:
        track += [(-179 + 49 * EAST, 0.0), (-179 + 51 * EAST, 0.0)]
    expected = [True, True, False, False, False, True, True] + [True, False] * (middle == 180)

    assert is_inside_after(text, track, "50 m") == expected


def test_conditions_that_are_not_on_the_earth_have_no_margin_in_metres() -> None:
    track = [(0.0, 0.0), (1e-5, 0.0)]
    for text in ("lon <= 0", "ST_DWithin(ST_Point(lon, lat), ST_Point(0, 0), 0.000001)", "NOT lon > 0"):
        assert is_inside_after(text, track, "50 m") == [True, False]
    both = "ST_DWithin(ST_Point(lon, lat), ST_Point(0, 0), 500, TRUE) AND lon + lat <= 0"
    assert is_inside_after(both, track, "50 m") == [True, False], "another residual has none"
    sphere = "ST_DistanceSphere(ST_Point(lon, lat), ST_Point(0, 0)) <= 1"
    assert is_inside_after(sphere, [*track, (40 * EAST, 0.0), (60 * EAST, 0.0)], "50 m") == [True, True, True, False]
    apart = f"NOT ST_DWithin(ST_Point(lon, lat), ST_Point(0, {100 * METRE}), 99, TRUE)"
    assert is_inside_after(apart, [(0.0, 0.0), (0.0, 2 * METRE)], "50 m") == [True, False], "negated"


def test_coordinates_may_be_decimals() -> None:
    fields = "key string, lon decimal(12,8), lat decimal(12,8), t bigint"
    circle = "ST_DWithin(ST_Point(lon, lat), ST_Point(180, 0), 500, TRUE)"
    from decimal import Decimal

    track: Any = [(Decimal(lon), Decimal(0)) for lon in ("179.999", "-179.9953", "-179.99", "179.9953")]

    assert is_inside_after(circle, track, "50 m", fields) == [True, True, False, False]


@pytest.mark.parametrize("margin", ["", "50", "50 miles", "-5 m", "1e9 m", "30000 km", "m"])
def test_a_margin_that_is_not_a_distance_is_refused(margin: str) -> None:
    queries = vd.QuerySet(FIELDS)
    with pytest.raises(
        vd.QueryError, match=r"margin must be a number, numbers by field, or metres such as '50 m'; got"
    ):
        queries.border(key="key", time="t", margin=margin)
