"""Polygons across the antimeridian: rings with longitudes beyond 180 degrees, and parts on each side as in RFC 7946."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import oracles
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import vedette as vd
from vedette.data.schema import Schema
from vedette.language import compile_texts

earth = Schema.parse("lon double, lat double, x double, y double")
LONS = [-180.0, -179.0, -175.0, -170.0, -10.0, 0.0, 20.0, 170.0, 175.0, 179.0, 180.0]
LATS = [-2.0, 0.0, 1.0, 5.0]
ROWS = [(lon, lat) for lon in LONS for lat in LATS]


def write(polygon: list[list[tuple[int, int]]]) -> str:
    return "(" + ", ".join("(" + ", ".join(f"{x} {y}" for x, y in ring) + ")" for ring in polygon) + ")"


def kept(text: str, rows: list[tuple[float, float]] = ROWS) -> set[tuple[float, float]]:
    queries = vd.QuerySet("lon double, lat double")
    queries.add("it", text)
    hits = queries.match({"lon": [lon for lon, _ in rows], "lat": [lat for _, lat in rows]})
    return {row for place, row in enumerate(rows) if hits.starts[place] < hits.starts[place + 1]}


def fence(name: str, wkt: str) -> str:
    return f"{name}(ST_GeomFromText('{wkt}'), ST_Point(lon, lat))"


@given(st.integers(-360, 350), st.integers(1, 359), st.integers(-2, 0), st.integers(1, 5), st.booleans())
@example(170, 20, 0, 5, False)
@example(-190, 20, 0, 5, True)
@example(-180, 360, 0, 5, False)
@example(170, 10, 0, 5, False)
@example(200, 10, 0, 5, False)
def test_a_ring_beyond_180_degrees_continues_on_the_other_side(
    low: int, width: int, south: int, height: int, has_hole: bool
) -> None:
    """The oracle looks for a row at its longitude, one turn to the east and one to the west."""
    high, north = min(low + width, 360), south + height
    rings = [[(low, south), (high, south), (high, north), (low, north), (low, south)]]
    if has_hole and high - low > 4 and height > 2:
        hole = [(low + 1, south + 1), (high - 1, south + 1), (high - 1, north - 1), (low + 1, south + 1)]
        rings.append(hole)
    wkt = f"POLYGON {write(rings)}"

    def places(row: tuple[float, float]) -> set[str]:
        return {oracles.locate((Fraction(row[0]) + turn, Fraction(row[1])), [rings]) for turn in (-360, 0, 360)}

    assert kept(fence("ST_Contains", wkt)) == {row for row in ROWS if "inside" in places(row)}
    assert kept(fence("ST_Intersects", wkt)) == {row for row in ROWS if places(row) != {"outside"}}
    assert kept("NOT " + fence("ST_Contains", wkt)) == {row for row in ROWS if "inside" not in places(row)}


CUT = "MULTIPOLYGON (((170 0, 180 0, 180 5, 170 5, 170 0)), ((-180 0, -170 0, -170 5, -180 5, -180 0)))"
RING = "POLYGON ((170 0, 190 0, 190 5, 170 5, 170 0))"


def test_a_polygon_cut_as_in_rfc_7946_keeps_both_sides_and_its_cut_is_border() -> None:
    between = {row for row in ROWS if row[1] == 1}
    inside = {row for row in between if abs(row[0]) in (175, 179)}

    assert kept(fence("ST_Contains", CUT)) == inside
    assert kept(fence("ST_Contains", RING)) == inside | {(180.0, 1.0), (-180.0, 1.0)}
    assert kept(fence("ST_Intersects", CUT)) == kept(fence("ST_Intersects", RING))


@pytest.mark.parametrize(
    ("wkt", "expected"),
    [
        (CUT, [(-180, -170), (170, 180)]),
        (RING, [(-180, -170), (170, 180)]),
        ("POLYGON ((-190 0, -170 0, -170 5, -190 5, -190 0))", [(-180, -170), (170, 180)]),
        ("POLYGON ((200 0, 210 0, 210 5, 200 5, 200 0))", [(-160, -150)]),
        ("POLYGON ((170 0, 180 0, 180 5, 170 5, 170 0))", [(-180, -180), (170, 180)]),
        ("POLYGON ((-180 0, 180 0, 180 5, -180 5, -180 0))", [(-180, 180)]),
        ("POLYGON ((100 0, 170 0, 170 5, 100 5, 100 0))", [(100, 170)]),
        ("MULTIPOLYGON (((-100 0, -90 0, -90 5, -100 0)), ((90 0, 100 0, 100 5, 90 0)))", [(-100, -90), (90, 100)]),
    ],
)
def test_the_boxes_of_a_polygon_are_on_the_sides_where_it_is(wkt: str, expected: list[tuple[float, float]]) -> None:
    text = fence("ST_Contains", wkt)
    ranges: list[Any] = [block.ranges["lon"] for block in compile_texts([text], earth).blocks]
    (planar,) = compile_texts([text.replace("lon, lat", "x, y")], earth).blocks

    assert sorted(pair for each in ranges for pair in zip(each.lows, each.highs, strict=True)) == expected
    assert len(planar) == 1, "no longitude by its name"


def test_a_row_beyond_180_degrees_is_in_no_polygon_of_longitudes() -> None:
    rows = [(185.0, 1.0), (-185.0, 1.0), (545.0, 1.0), (math.nan, 1.0)]

    assert kept(fence("ST_Contains", RING), rows) == set()
    queries = vd.QuerySet("lon double, lat double, x double, y double")
    queries.add("x", fence("ST_Contains", RING).replace("lon, lat", "x, y"))
    assert queries.match_one({"x": 185.0, "y": 1.0}) == ["x"], "no longitude by its name"


def test_why_measures_the_near_side() -> None:
    queries = vd.QuerySet("lon double, lat double")
    queries.add("ring", fence("ST_Contains", RING))
    why = queries.why("ring", {"lon": -171.0, "lat": 2.0})

    assert why.holds
    assert "1 inside of the border" in str(why)
