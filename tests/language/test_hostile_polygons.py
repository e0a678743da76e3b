"""Polygons that would crash GEOS, or that it cannot compute with, are refused; large ones are cheap to ask."""

from __future__ import annotations

import subprocess
import sys
import time

import numpy as np
import pytest
import shapely

import vedette as vd
from vedette.errors import QueryError

SQUARE = "(0 0, 4 0, 4 3, 0 3, 0 0)"
REFUSED = {
    "GEOMETRYCOLLECTION (" * 5000 + f"POLYGON ({SQUARE})" + ")" * 5000: "a GEOMETRYCOLLECTION is not a polygon",
    " " * 500 + "geometrycollection(" * 5000 + ")" * 5000: "a GEOMETRYCOLLECTION is not a polygon",
    f"GEOMETRYCOLLECTION (POLYGON ({SQUARE}))": "a GEOMETRYCOLLECTION is not a polygon",
    "MULTIPOLYGON (" + "(" * 5000 + "0 0" + ")" * 5000: "invalid geometry",
    "(" * 5000: "is not a polygon",
    "POLYGON ((0 0, 4 0, 4 NaN, 0 0))": "a coordinate is not a finite number",
    "POLYGON ((0 0, 4 0, 4 -Infinity, 0 0))": "a coordinate is not a finite number",
    "POLYGON ((0 0, 4 0, 4 1e999, 0 0))": "a coordinate is not a finite number",
    "POLYGON ((-1e308 -1e308, 1e308 -1e308, 1e308 1e308, -1e308 -1e308))": r"beyond 1e\+150",
    "POLYGON EMPTY": "the polygon is empty",
    "MULTIPOLYGON EMPTY": "the polygon is empty",
    "POLYGON ((0 0, 4 4, 4 0, 0 4, 0 0))": "it crosses itself",
    f"POLYGON ({', '.join([SQUARE] * 2000)})": "ring 2000: it crosses itself",
    f"POLYGON ({SQUARE})\\0 and more": "NUL",
}


def fence(wkt: str) -> str:
    return f"ST_Contains(ST_GeomFromText('{wkt}'), ST_Point(x, y))"


@pytest.mark.parametrize(("wkt", "message"), REFUSED.items(), ids=[wkt[:30] for wkt in REFUSED])
def test_a_polygon_that_makes_no_sense_is_refused_with_a_sentence(wkt, message):
    with pytest.raises(QueryError, match=message) as refused:
        vd.QuerySet("x double, y double").add("q", fence(wkt))
    assert len(str(refused.value)) < 2500


def test_collections_in_collections_do_not_overflow_the_stack():
    program = (
        "import vedette as vd\n"
        "wkt = 'GEOMETRYCOLLECTION (' * 300_000 + ')' * 300_000\n"
        "text = f\"ST_Contains(ST_GeomFromText('{wkt}'), ST_Point(x, y))\"\n"
        "try:\n    vd.QuerySet('x double, y double').add('q', text)\n"
        "except vd.QueryError:\n    print('refused')"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)

    assert (done.returncode, done.stdout) == (0, "refused\n")


def test_far_points_are_outside_of_every_polygon():
    queries = vd.QuerySet("x double, y double")
    queries.add("in", fence(f"POLYGON ({SQUARE})"))
    queries.add("out", f"NOT {fence(f'POLYGON ({SQUARE})')}")

    hits = queries.match({"x": [1.0, 1e308, -1e308, 1.0], "y": [1.0, 1e308, 1.0, -1e308]}).to_arrow()
    assert hits["query"].to_pylist() == ["in", "out", "out", "out"]


@pytest.mark.timeout(300)
def test_a_candidate_does_not_cost_a_look_at_every_vertex():
    angles = np.linspace(0, 2 * np.pi, 99_998, endpoint=False)
    radii = 1 + 0.3 * np.sin(50 * angles)
    star = shapely.Polygon(np.stack([radii * np.cos(angles), radii * np.sin(angles)], axis=1))
    queries = vd.QuerySet("x double, y double")
    wkt = shapely.to_wkt(star, rounding_precision=9)
    queries.add("star", fence(wkt))
    rows = dict(zip("xy", np.random.default_rng(1).uniform(-1.3, 1.3, (2, 20_000)), strict=True))
    queries.match({name: values[:1] for name, values in rows.items()})

    start = time.process_time()
    hits = queries.match(rows)
    seconds = time.process_time() - start

    assert len(hits.positions) == np.count_nonzero(shapely.contains_xy(shapely.from_wkt(wkt), **rows))
    assert seconds < 10  # 0.15 s; with a look at all 100,000 vertices it would be two billion
