"""Geofences: points in polygons and circles, against plain geometry and against shapely one by one."""

from __future__ import annotations

import contextlib
import json
import math
import pickle
import subprocess
import sys
import threading
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import oracles
import pyarrow as pa
import pytest
import shapely
from hypothesis import assume, example, given
from hypothesis import strategies as st
from language.plain import answers, columns_of

import vedette as vd
from vedette.data.boxes import CLOSED, Ranges
from vedette.data.schema import Schema
from vedette.language import Residual, check_text, compile_texts
from vedette.language.fence_bounds import bounds_of_circles
from vedette.language.geofences import is_within
from vedette.language.polygons import Polygons

Polygon = list[list[tuple[int, int]]]  # the outer ring and the holes
plane = Schema.parse("x double, y double, n bigint")
earth = Schema.parse("lon double, lat double, speed bigint, name string")

# Every half step of a small square: vertices, borders, inside and outside.
STEPS = [step / 2 for step in range(-11, 12)]
GRID = [(x, y) for x in STEPS for y in STEPS]
GRID_ROWS: dict[str, list[Any]] = {
    "x": [*(x for x, _ in GRID), None, 0.0, None, math.nan, math.inf, 0.0],
    "y": [*(y for _, y in GRID), 0.0, None, None, 0.0, 0.0, -math.inf],
    "n": [*(k % 7 for k in range(len(GRID))), 0, 1, 2, 3, 4, 5],
}
N_ROWS = len(GRID) + 6
NULLS = set(range(len(GRID), len(GRID) + 3))
NOWHERE = set(range(len(GRID) + 3, N_ROWS))  # NaN and infinity: known, but in no fence
grid = columns_of(GRID_ROWS, plane)

coordinate = st.integers(-5, 5)


@st.composite
def rings(draw: st.DrawFn) -> list[tuple[int, int]]:
    """A closed ring around its own middle, which mostly does not cross itself."""
    points = draw(st.lists(st.tuples(coordinate, coordinate), min_size=3, max_size=8, unique=True))
    if draw(st.booleans()):
        x, y = (sum(side) / len(points) for side in zip(*points, strict=True))
        points.sort(key=lambda point: math.atan2(point[1] - y, point[0] - x))
    return [*points, points[0]]


@st.composite
def polygons(draw: st.DrawFn) -> Polygon:
    square = [(-5, -5), (5, -5), (5, 5), (-5, 5), (-5, -5)]
    polygon = [draw(rings() | st.just(square))]
    assume(is_valid([polygon]))
    for hole in draw(st.lists(rings(), max_size=2)):
        if is_valid([[*polygon, hole]]):
            polygon.append(hole)
    return polygon


@st.composite
def fences(draw: st.DrawFn) -> list[Polygon]:
    """One polygon or several; those that would overlap others are left out."""
    parts = [draw(polygons())]
    for part in draw(st.lists(polygons(), max_size=2)):
        if is_valid([*parts, part]):
            parts.append(part)
    return parts


def to_wkt(fence: list[Polygon]) -> str:
    parts = [
        "(" + ", ".join("(" + ", ".join(f"{x} {y}" for x, y in ring) + ")" for ring in rings) + ")" for rings in fence
    ]
    return f"POLYGON {parts[0]}" if len(parts) == 1 else f"MULTIPOLYGON ({', '.join(parts)})"


def is_valid(fence: list[Polygon]) -> bool:
    geometry = shapely.from_wkt(to_wkt(fence), on_invalid="ignore")
    return geometry is not None and bool(shapely.is_valid(geometry))


def kept(*texts: str) -> list[set[int]]:
    return answers(compile_texts(texts, plane), grid, N_ROWS)


HOLED: list[Polygon] = [[[(0, 0), (4, 0), (4, 4), (0, 4), (0, 0)], [(1, 1), (3, 1), (3, 3), (1, 1)]]]
TOUCHING: list[Polygon] = [[[(0, 0), (2, 0), (2, 2), (0, 0)]], [[(2, 2), (4, 2), (4, 4), (2, 2)]]]


@given(fences())
@example(HOLED)
@example(TOUCHING)
def test_polygons_hold_the_points_that_plain_geometry_and_shapely_say(fence: list[Polygon]) -> None:
    polygon = f"ST_GeomFromText('{to_wkt(fence)}')"
    contains, within, intersects, turned, outside = kept(
        f"ST_Contains({polygon}, ST_Point(x, y))",
        f"st_within(st_point(X, Y), st_geomfromtext('{to_wkt(fence)}'))",
        f"ST_Intersects({polygon}, ST_Point(x, y))",
        f"ST_INTERSECTS(ST_POINT(x, y), {polygon})",
        f"NOT ST_Contains({polygon}, ST_Point(x, y))",
    )
    places = [oracles.locate(point, fence) for point in GRID]

    assert contains == within == {row for row, place in enumerate(places) if place == "inside"}
    assert intersects == turned == {row for row, place in enumerate(places) if place != "outside"}
    assert outside == {row for row, place in enumerate(places) if place != "inside"} | NOWHERE
    geometry = shapely.from_wkt(to_wkt(fence))
    for row, point in enumerate(GRID):
        assert (row in contains) == shapely.contains(geometry, shapely.Point(point))
        assert (row in intersects) == shapely.intersects(geometry, shapely.Point(point))


@given(coordinate, coordinate, st.integers(0, 20).map(lambda quarters: quarters / 4))
@example(1, 1, 5.0)
def test_circles_hold_the_points_at_most_the_radius_away(x: int, y: int, radius: float) -> None:
    near, turned, far = kept(
        f"ST_DWithin(ST_Point(x, y), ST_Point({x}, {y}), {radius})",
        f"st_dwithin(ST_Point({x}.0, {y}e0), ST_Point(x, y), {radius}D)",
        f"NOT ST_DWithin(ST_Point(x, y), ST_Point({x}, {y}), {radius})",
    )

    assert near == turned == {row for row, point in enumerate(GRID) if oracles.is_near(point, (x, y), radius)}
    assert far == set(range(len(GRID))) - near | NOWHERE


@cache
def metres_apart(degrees: float, lat: float, other_lat: float) -> float:
    return float(oracles.metres_between((degrees, lat), (0, other_lat)))


@st.composite
def conditions(draw: st.DrawFn, depth: int = 2) -> tuple[str, list[bool | None]]:
    """A condition of fences and comparisons, and its truth for every row of the grid."""
    kind = draw(st.sampled_from(["polygon", "circle", "metres", "plain"] + ["and", "or", "not"] * (depth > 0)))
    known = [None if row in NULLS else False for row in range(N_ROWS)]
    if kind == "polygon":
        fence = draw(fences())
        truth = [oracles.locate(point, fence) == "inside" for point in GRID] + known[len(GRID) :]
        return f"ST_Contains(ST_GeomFromText('{to_wkt(fence)}'), ST_Point(x, y))", truth
    if kind == "circle":
        x, y, radius = draw(coordinate), draw(coordinate), draw(st.integers(0, 5))
        truth = [oracles.is_near(point, (x, y), radius) for point in GRID] + known[len(GRID) :]
        return f"ST_DWithin(ST_Point(x, y), ST_Point({x}, {y}), {radius})", truth
    if kind == "metres":
        x, y, radius = draw(coordinate), draw(coordinate), draw(st.sampled_from([0, 60_000, 300_000, 700_000]))
        truth = [metres_apart(abs(px - x), py, y) <= radius for px, py in GRID] + known[len(GRID) :]
        return f"ST_DWithin(ST_Point(x, y), ST_Point({x}, {y}), {radius}, TRUE)", truth
    if kind == "plain":
        bound = draw(st.integers(0, 6))
        return f"n < {bound}", [n < bound for n in GRID_ROWS["n"]]
    text, truth = draw(conditions(depth - 1))
    if kind == "not":
        return f"NOT ({text})", [None if one is None else not one for one in truth]
    other, others = draw(conditions(depth - 1))
    short = kind == "or"
    both = [
        short if short in (a, b) else None if None in (a, b) else not short for a, b in zip(truth, others, strict=True)
    ]
    return f"({text}) {kind} ({other})", both


@given(st.lists(conditions(), min_size=1, max_size=4))
def test_fences_are_conditions_as_any_others(drawn: list[tuple[str, list[bool | None]]]) -> None:
    found = kept(*(text for text, _ in drawn))

    assert found == [{row for row, one in enumerate(truth) if one is True} for _, truth in drawn]


SQUARE = "ST_GeomFromText('POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0))')"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"ST_Contains({SQUARE}, ST_Point(i, m))", {1}),
        (f"ST_Intersects({SQUARE}, ST_Point(i, m))", {0, 1, 3}),
        (f"ST_Contains({SQUARE}, ST_Point(i, w))", {1}),
        ("ST_DWithin(ST_Point(i, m), ST_Point(9007199254740992, 1), 0)", {2}),
        ("ST_DWithin(ST_Point(m, w), ST_Point(0.1, 0.2), 0)", {4}),
        ("ST_DWithin(ST_Point(m, w), ST_Point(0.1, 0), 0.2)", {4}),
        (f"ST_Contains({SQUARE}, ST_Point(i + 1, m * 2)) IS NULL", {5}),
        (f"ST_Contains({SQUARE}, ST_Point(1, m))", {1, 2, 3, 4, 5}),
        (f"ST_Contains({SQUARE}, ST_Point(m, m))", {1, 2, 3, 4, 5}),
        (f"ST_Contains({SQUARE}, ST_Point(m, NULL)) IS NULL", {0, 1, 2, 3, 4, 5}),
        (f"ST_Contains({SQUARE}, ST_Point(1, 2))", {0, 1, 2, 3, 4, 5}),
        (f"coalesce(ST_Contains({SQUARE}, ST_Point(i, m)), TRUE)", {1, 5}),
        (f"CASE WHEN ST_Contains({SQUARE}, ST_Point(i, m)) THEN i ELSE 7 END = 3", {1}),
        (f"ST_Contains({SQUARE}, ST_Point(i, m)) <=> TRUE", {1}),
    ],
)
def test_coordinates_of_all_kinds_of_numbers_are_read_as_doubles(text: str, expected: set[int]) -> None:
    schema = Schema.parse("i bigint, m decimal(8,2), w decimal(30,4)")
    rows: dict[str, list[Any]] = {
        "i": [4, 3, 2**53 + 1, 0, -1, None],
        "m": [Decimal("4.00"), Decimal("3.99"), Decimal("1.00"), Decimal("1.00"), Decimal("0.10"), Decimal("1.00")],
        "w": [Decimal("0.0000"), Decimal("3.9999"), Decimal("4.0001"), Decimal("1.0000"), Decimal("0.2000"), None],
    }

    assert answers(compile_texts([text], schema), columns_of(rows, schema), 6) == [expected]


def test_the_box_of_a_polygon_is_the_box_of_its_query() -> None:
    compiled = compile_texts([f"ST_Contains({SQUARE}, ST_Point(x, y)) AND n > 3 AND x > 1"], plane)
    (block,) = compiled.blocks

    assert set(block.ranges) == {"x", "y", "n"}
    x, y = block.ranges["x"], block.ranges["y"]
    assert isinstance(x, Ranges)
    assert isinstance(y, Ranges)
    assert (x.lows[0], x.highs[0], y.lows[0], y.highs[0]) == (1.0, 4.0, 0.0, 4.0)
    assert (int(x.high_ends[0]), int(y.low_ends[0]), int(y.high_ends[0])) == (CLOSED, CLOSED, CLOSED)
    assert compiled.residuals[0].fields == ("x", "y"), "what is a box has left the residual"


def test_a_negated_fence_has_no_box() -> None:
    for fence in (f"ST_Contains({SQUARE}, ST_Point(x, y))", "ST_DWithin(ST_Point(x, y), ST_Point(1, 2), 3)"):
        (block,) = compile_texts([f"NOT {fence}"], plane).blocks
        assert block.ranges == {}


number = st.floats(allow_nan=False, allow_infinity=False) | st.floats(-200, 200)


@given(number, number, st.floats(0, allow_infinity=False) | st.floats(0, 10), st.integers(-4, 4), st.booleans())
@example(-1.0, 0.0, 1.0, 0, True)
@example(1e308, 0.0, 1.7e308, 0, True)
@example(0.0, 0.0, 5e-324, 1, False)
def test_the_box_of_a_circle_contains_the_circle(x: float, y: float, radius: float, steps: int, above: bool) -> None:
    """Points are a few floating-point numbers off the border; near 0, as much closer as doubles go."""
    with np.errstate(over="ignore"):
        ends = [np.float64(x + radius if above else x - radius), np.float64(x), np.float64(1e-17), np.float64(-1e-17)]
        points = np.array(ends)
        for _ in range(abs(steps)):
            points = np.nextafter(points, np.inf if steps > 0 else -np.inf)
    xs, ys, radii = (np.full(len(points), value) for value in (x, y, radius))
    bounds = bounds_of_circles(xs, ys, radii)

    kept_rows = is_within(points, ys, xs, ys, radii)
    assert (kept_rows <= ((bounds.x_lows <= points) & (points <= bounds.x_highs))).all()
    kept_rows = is_within(ys, points, ys, xs, radii)
    other = bounds_of_circles(ys, xs, radii)
    assert (kept_rows <= ((other.y_lows <= points) & (points <= other.y_highs))).all()


@given(number, number, number, number, st.integers(-2, 2))
@example(0.0, 0.0, -3.5, 0.2, 0)
@example(1e-170, 0.0, 0.0, 0.0, 0)
@example(2e-162, 2e-162, 0.0, 0.0, -1)
@example(1e-160, 3e-162, 1e-161, 0.0, 1)
def test_the_distance_is_the_square_root_of_the_sum_of_squares(
    x: float, y: float, centre_x: float, centre_y: float, steps: int
) -> None:
    """The radius is the distance, or a few floating-point numbers away; the box has the point if the circle does."""
    dx, dy = x - centre_x, y - centre_y
    distance = math.sqrt(dx * dx + dy * dy)
    assume(math.isfinite(distance))
    radius = distance
    for _ in range(abs(steps)):
        radius = max(0.0, math.nextafter(radius, math.inf if steps > 0 else -math.inf))
    arrays = [np.array([value]) for value in (x, y, centre_x, centre_y, radius)]

    (kept_rows,) = is_within(*arrays)

    assert kept_rows == (distance <= radius)
    bounds = bounds_of_circles(*arrays[2:])
    if kept_rows:
        assert bounds.x_lows[0] <= x <= bounds.x_highs[0]
        assert bounds.y_lows[0] <= y <= bounds.y_highs[0]


def test_st_dwithin_agrees_with_shapely_where_hypot_does_not() -> None:
    radius = 3.5057096285916205
    queries = vd.QuerySet("x double, y double")
    queries.add("near", f"ST_DWithin(ST_Point(x, y), ST_Point(-3.5, 0.2), {radius!r}D)")

    assert shapely.dwithin(shapely.Point(0, 0), shapely.Point(-3.5, 0.2), radius) == bool(
        queries.match_one({"x": 0.0, "y": 0.0})
    )
    assert math.hypot(3.5, 0.2) != math.sqrt(3.5 * 3.5 + 0.2 * 0.2)


ACROSS = "POLYGON ((179 0, -179 0, -179 5, 179 5, 179 0))"


@pytest.mark.parametrize(
    ("polygon", "warns"),
    [
        (ACROSS, True),
        ("MULTIPOLYGON (((0 10, 1 10, 1 11, 0 10)), ((179 0, -179 0, -179 5, 179 0)))", True),
        ("MULTIPOLYGON (((179 0, 180 0, 180 5, 179 0)), ((-180 0, -179 0, -180 5, -180 0)))", False),
        ("POLYGON ((-180 -90, 180 -90, 180 -60, -180 -60, -180 -90))", False),
        ("POLYGON ((-90 0, 90 0, 90 5, -90 0))", False),
    ],
)
def test_check_warns_of_a_polygon_that_seems_to_cross_the_antimeridian(polygon: str, warns: bool) -> None:
    text = f"ST_Contains(ST_GeomFromText('{polygon}'), ST_Point({{}}, {{}}))"
    queries = vd.QuerySet("lon double, lat double, x double, y double")
    warnings = queries.check(text.format("lon", "lat"))

    assert bool(warnings) == warns
    if warns:
        assert "spans 358 degrees of lon, from -179 to 179; if it crosses the antimeridian, split it" in warnings[0]
    assert queries.check(text.format("x", "y")) == []  # no longitude by its name


def test_circles_of_all_sizes_are_read_in_few_groups() -> None:
    random = np.random.default_rng(3)
    texts = [
        f"ST_DWithin(ST_Point(lon, lat), ST_Point({x:.{p}f}, {y:.{q}f}), {r:.{p}f})"
        for x, y, r, p, q in zip(
            random.uniform(-180, 180, 3000),
            random.uniform(-90, 90, 3000),
            random.uniform(0, 9, 3000),
            random.integers(0, 8, 3000),
            random.integers(0, 8, 3000),
            strict=True,
        )
    ]
    compiled = compile_texts(texts, earth)

    assert len(compiled.residuals) < 50
    assert len({residual.expression for residual in compiled.residuals}) == 1
    assert sum(map(len, compiled.blocks)) == 3000


def many_fences(n: int) -> tuple[list[str], list[list[Polygon]]]:
    """Triangles all over the grid."""
    random = np.random.default_rng(8)
    found: list[list[Polygon]] = []
    while len(found) < n:
        points = [(int(x), int(y)) for x, y in random.integers(-5, 6, (3, 2))]
        fence = [[[*points, points[0]]]]
        if is_valid(fence):
            found.append(fence)
    return [f"ST_Contains(ST_GeomFromText('{to_wkt(fence)}'), ST_Point(x, y))" for fence in found], found


def test_a_set_of_fences_answers_the_same_when_saved_loaded_and_changed(tmp_path: Path) -> None:
    texts, drawn = many_fences(600)
    queries = vd.QuerySet("x double, y double, n bigint")
    queries.add_many(list(range(500)), texts[:500])
    queries.match(GRID_ROWS)  # some polygons are parsed by now
    queries.add_many(list(range(500, 600)), texts[500:])
    queries.remove(7)
    queries.replace(8, "ST_DWithin(ST_Point(x, y), ST_Point(0, 0), 0)")
    expected = {
        (row, k)
        for k, fence in enumerate(drawn)
        for row, point in enumerate(GRID)
        if k not in (7, 8) and oracles.locate(point, fence) == "inside"
    } | {(GRID.index((0.0, 0.0)), 8)}

    queries.save(tmp_path / "fences.vedette")
    for each in (queries, pickle.loads(pickle.dumps(queries)), vd.QuerySet.load(tmp_path / "fences.vedette")):
        for _ in range(2):
            found = {(line["row"], line["query"]) for line in each.match(GRID_ROWS).to_arrow().to_pylist()}
            assert found == expected


def residual_of(*texts: str) -> Residual:
    (residual,) = compile_texts(texts, plane).residuals
    return residual


def test_what_a_residual_has_parsed_stays_with_it() -> None:
    residual = residual_of(*many_fences(20)[0])
    rows, members = np.arange(len(GRID)).repeat(20), np.tile(np.arange(20), len(GRID))
    before = pickle.dumps(residual)
    expected, _ = residual.evaluate(grid, rows, members)

    assert pickle.dumps(residual) == before
    description, arrays = residual.to_parts()
    stored = Residual.from_parts(json.loads(json.dumps(description)), arrays)
    for copy in (pickle.loads(before), stored, residual.take(np.arange(20)), Residual.concat([residual])):
        assert (copy.evaluate(grid, rows, members)[0] == expected).all()


def test_a_residual_is_thread_safe() -> None:
    texts, _ = many_fences(300)
    rows, members = np.arange(len(GRID)).repeat(300), np.tile(np.arange(300), len(GRID))
    expected, _ = residual_of(*texts).evaluate(grid, rows, members)
    shared = residual_of(*texts)
    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.append(shared.evaluate(grid, rows, members)[0])) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(found) == 8
    assert all((each == expected).all() for each in found)


CONTAINS = "ST_Contains(ST_GeomFromText({}), ST_Point(lon, lat))"
NEAR = "ST_DWithin(ST_Point(lon, lat), ST_Point({}), {})"


@pytest.mark.parametrize(
    ("text", "reason", "place"),
    [
        (
            CONTAINS.format("'POLYGON ((0 0, 4 0, 4 3))'"),
            "invalid geometry: a ring is not closed: its last point must be its first, as in",
            "'POLYGON ((0 0, 4 0, 4 3))'",
        ),
        (
            "speed > 3 AND " + CONTAINS.format("'POLYGON ((0 0, 2 2, 2 0, 0 2, 0 0))'"),
            "invalid geometry: ring 1: it crosses itself, at 1 1",
            "'POLYGON ((0 0, 2 2, 2 0, 0 2, 0 0))'",
        ),
        (
            CONTAINS.format("'POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0), (5 5, 6 5, 6 6, 5 5))'"),
            "invalid geometry: ring 2: the hole is outside the shell, at 5 5",
            "'POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0), (5 5, 6 5, 6 6, 5 5))'",
        ),
        (
            CONTAINS.format("'POLYGON ((0 0, inf 0, 1 1, 0 0))'"),
            "invalid geometry: ring 1: a coordinate is not a finite number, at inf 0",
            "'POLYGON ((0 0, inf 0, 1 1, 0 0))'",
        ),
        (CONTAINS.format("'POLYGO ((0 0))'"), "invalid geometry: unknown type: 'POLYGO'; write", "'POLYGO ((0 0))'"),
        (CONTAINS.format("''"), "invalid geometry: expected word but encountered end of stream; write", "''"),
        (
            CONTAINS.format("'POLYGON ((0 0, 1 0, 1 1, 0 0)) !'"),
            "invalid geometry: ",
            "'POLYGON ((0 0, 1 0, 1 1, 0 0)) !'",
        ),
        (CONTAINS.format("'SRID=4326;POLYGON EMPTY'"), "an SRID is not supported", "'SRID=4326;POLYGON EMPTY'"),
        (
            CONTAINS.format("'CIRCULARSTRING (0 0, 1 1, 2 0)'"),
            "invalid geometry: nonlinear",
            "'CIRCULARSTRING (0 0, 1 1, 2 0)'",
        ),
        (
            CONTAINS.format("'POINT (1 2)'"),
            "a POINT is not a polygon; a geofence is a POLYGON or a MULTIPOLYGON",
            "'POINT (1 2)'",
        ),
        (CONTAINS.format("'MULTIPOLYGON EMPTY'"), "the polygon is empty; write", "'MULTIPOLYGON EMPTY'"),
        (
            f"CASE WHEN {CONTAINS.format(repr('POLYGON EMPTY'))} THEN 1 ELSE 2 END = 1",
            "the polygon is empty; write",
            "'POLYGON EMPTY'",
        ),
        (
            CONTAINS.format("'POLYGON ((51 104, 52 104, 52 105, 51 104))'"),
            "the coordinates look swapped: lat is 104 to 105, beyond [-90, 90]; the order is lon lat",
            "'POLYGON ((51 104, 52 104, 52 105, 51 104))'",
        ),
        (
            CONTAINS.format("'POLYGON ((500000 6600000, 500100 6600000, 500100 6600100, 500000 6600000))'"),
            "the coordinates are out of range: lon is 500000 to 500100, beyond [-360, 360]; the order is lon lat",
            "'POLYGON ((500000 6600000, 500100 6600000, 500100 6600100, 500000 6600000))'",
        ),
        (
            CONTAINS.format("'POLYGON ((-190 0, 190 0, 190 1, -190 1, -190 0))'"),
            "the polygon spans 380 degrees of lon; 360 degrees are the whole earth",
            "'POLYGON ((-190 0, 190 0, 190 1, -190 1, -190 0))'",
        ),
        (
            NEAR.format("1.3, 103.8", "0.1"),
            "the coordinates look swapped: lat is 103.8, beyond [-90, 90]; the order is lon lat",
            "103.8",
        ),
        (
            NEAR.format("-200, 3", "0.1"),
            "the coordinates are out of range: lon is -200, beyond [-180, 180]; the order is lon lat",
            "200",
        ),
        (NEAR.format("4, 50", "-1.5"), "a radius must be 0 or more, not -1.5", "1.5"),
        (NEAR.format("4, 50", "'NaN'"), "a radius must be a number, not a literal of type string", "'NaN'"),
        (NEAR.format("4, 50", "1e999"), "1e999 is beyond the range of a double", "1e999"),
        (NEAR.format("4, 50", "NULL"), "ST_DWithin needs a radius that is a number literal, such as ", None),
        (NEAR.format("4, 50", "speed"), "ST_DWithin needs a radius that is a number literal, such as ", "speed"),
        (
            NEAR.format("4, 50", "500"),
            "a radius of 500 is too large for degrees; a radius has the units of the fields",
            "500",
        ),
        (NEAR.format("speed, lat", "1"), "ST_DWithin needs a centre of two number literals, such as ", None),
        (NEAR.format("4, '50'", "1"), "ST_Point takes numbers, not a literal of type string", "'50'"),
        ("ST_Contains(ST_GeomFromText('x'), ST_Point(name, lat))", "ST_Point takes numbers, not field 'name'", "name"),
        (CONTAINS.format("name"), "ST_GeomFromText takes a text in quotes, such as ", "name"),
        (CONTAINS.format("5"), "ST_GeomFromText takes a text in quotes, such as ", "5"),
        ("ST_Contains('POLYGON EMPTY', ST_Point(lon, lat))", "a polygon is needed here: ", "'POLYGON EMPTY'"),
        ("ST_Contains(ST_GeomFromText('POINT (1 2)'), lon)", "a point is needed here: ST_Point(lon, lat)", "lon"),
        ("ST_Contains(ST_Point(lon, lat), ST_GeomFromText('x'))", "ST_Contains takes the polygon first", None),
        ("ST_Within(ST_GeomFromText('x'), ST_Point(lon, lat))", "ST_Contains takes the polygon first", None),
        (
            "ST_Point(lon, lat)",
            "ST_Point can be used only inside ST_Contains, ST_Within, ST_Intersects or ST_DWithin",
            None,
        ),
        ("ST_GeomFromText('x') = 'x'", "ST_GeomFromText can be used only inside ST_Contains", None),
        ("ST_Point(lon) > 3", "st_point takes 2 arguments, got 1", None),
        ("ST_Distance(ST_Point(lon, lat), ST_Point(1, 2)) < 3", "unsupported function 'st_distance'", None),
    ],
)
def test_what_cannot_be_meant_is_refused_at_its_place(text: str, reason: str, place: str | None) -> None:
    good = "lon > 3"
    with pytest.raises(vd.QueryError) as caught:
        compile_texts([good, text], earth, ids=["good", "bad"])

    error = caught.value
    assert error.reason.startswith(f"query 'bad': {reason}")
    assert error.position is not None
    assert text[error.position : error.end] == place or place is None


def test_the_bad_among_many_polygons_are_found() -> None:
    texts = many_fences(200)[0]
    texts[77] = "ST_Contains(ST_GeomFromText('POLYGON ((0 0, 2 2, 2 0, 0 2, 0 0))'), ST_Point(x, y))"
    texts[150] = "ST_Contains(ST_GeomFromText('POLYGON EMPTY'), ST_Point(x, y))"
    texts[151] = "ST_Contains(ST_GeomFromText('COMPOUNDCURVE ((0 0, 1 1))'), ST_Point(x, y))"
    errors: list[tuple[int, vd.QueryError]] = []
    compiled = compile_texts(texts, plane, errors=errors)

    assert [index for index, _ in errors] == [77, 150, 151]
    assert sum(map(len, compiled.blocks)) == 197


@pytest.mark.parametrize(
    ("fields", "taken"),
    [
        ("x double, y double", True),
        ("lat double, lon double", True),
        ("lon double, lat double", False),
        ("LNG double, Latitude double", False),
        ("pickup_longitude double, pickup_latitude double", False),
        ("longest double, latest double", True),
    ],
)
def test_the_names_of_the_fields_tell_what_their_numbers_may_be(fields: str, taken: bool) -> None:
    schema = Schema.parse(fields)
    x, y = schema.names
    texts = [
        f"ST_Contains(ST_GeomFromText('POLYGON ((50 104, 51 104, 51 105, 50 104))'), ST_Point({x}, {y}))",
        f"ST_DWithin(ST_Point(50, 104), ST_Point({x}, {y}), 1)",
    ]
    errors: list[tuple[int, vd.QueryError]] = []
    compile_texts(texts, schema, errors=errors)

    assert len(errors) == (0 if taken else 2)
    assert all("the coordinates look swapped" in error.reason for _, error in errors)


def test_a_fence_may_reach_to_the_edge_of_the_map() -> None:
    texts = [
        CONTAINS.format("'POLYGON ((-180.00000000000014 -90, 180 -90, 180 90, -180 90, -180.00000000000014 -90))'"),
        NEAR.format("179.9, 89.9", "1"),
        NEAR.format("-180, -90", "90"),
    ]

    assert len(compile_texts(texts, earth).residuals) >= 2


def test_fences_that_never_match_are_warned_of() -> None:
    text = CONTAINS.format("'POLYGON ((0 0, 4 0, 4 3, 0 0))'")

    assert check_text(text, earth) == []
    assert check_text(f"{text} AND lon > 9", earth) == ["never matches: it is false or null for every row"]
    assert check_text(text.replace("lon, lat", "9, 9"), earth) == ["never matches: it is false or null for every row"]


def test_shapely_is_imported_for_the_first_fence_and_not_before() -> None:
    program = (
        "import sys, vedette as vd; queries = vd.QuerySet('x double, y double'); queries.add('a', 'x > 3');"
        "assert 'shapely' not in sys.modules;"
        "queries.add('b', \"ST_Contains(ST_GeomFromText('POLYGON ((0 0, 4 0, 4 3, 0 0))'), ST_Point(x, y))\");"
        "assert 'shapely' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("number", ["1e308", "1e300", "nan", "inf", "1e400"])
def test_a_polygon_from_a_file_with_coordinates_that_no_query_may_have_warns_of_nothing(number):
    polygons = Polygons(pa.array([f"POLYGON ((0 0, {number} 0, 9 {number}, 0 0))"], pa.large_string()))
    members, x, y = np.zeros(3, np.int64), np.array([1.0, 1e200, 1e308]), np.array([0.5, -1e200, 1e308])

    for borders in (True, False):
        with contextlib.suppress(shapely.errors.GEOSException):
            assert len(polygons.contain(members, x, y, borders=borders)) == 3
