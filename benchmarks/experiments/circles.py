"""Circles on the earth in metres, against shapely's STRtree with a geodesic check by pyproj."""

from __future__ import annotations

import statistics
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray
from pyproj import Geod

import vedette as vd
from benchmarks.harness import AnswersDifferError, Bench, experiment, time_once

TIMES = 5
LEAST, MOST = 50.0, 5000.0  # metres
METRES_A_DEGREE = 110_500.0  # of latitude, at least
SPREADS = {"in towns": 0.1, "in the country": 1.0}  # degrees, around the middles of towns
SPHEROID = Geod(ellps="WGS84")


@experiment("circles")
def circles(bench: Bench) -> None:
    """A million circles of 50 m to 5 km and a million positions, around 2,000 towns up to 64 degrees of latitude."""
    n_queries, n_rows = bench.size(1_000_000, 50_000), bench.size(1_000_000, 50_000)
    for place, spread in SPREADS.items():
        source = np.random.default_rng(31)
        n_towns = max(1, n_queries // 500)
        towns = source.uniform(-175, 175, n_towns), np.degrees(np.arcsin(source.uniform(-0.9, 0.9, n_towns)))
        lons, lats = (each.round(6) for each in _around(towns, spread, n_queries, source))
        radii = np.exp(source.uniform(np.log(LEAST), np.log(MOST), n_queries)).round(2)
        queries = vd.QuerySet("lon double, lat double")
        queries.add_many(np.arange(n_queries), _texts(lons, lats, radii))
        tree = _tree(lons, lats, radii)
        x, y = _around(towns, spread, n_rows, source)
        points, rows = shapely.points(x, y), {"lon": x, "lat": y}

        def match_peer(tree: Any = tree, points: Any = points, all_: Any = (x, y, lons, lats, radii)) -> Any:
            x, y, lons, lats, radii = all_
            found, members = tree.query(points)
            near = SPHEROID.inv(x[found], y[found], lons[members], lats[members])[2] <= radii[members]
            return found[near], members[near]

        hits = queries.match(rows)
        _check(hits, *match_peer(), n_rows)
        ours = statistics.median(time_once(lambda: queries.match(rows)) for _ in range(bench.repeats))  # noqa: B023
        peer = statistics.median(time_once(match_peer) for _ in range(bench.repeats))
        bench.record("circles", place, "match", ours, n_queries=n_queries, n_rows=n_rows)
        bench.record("circles", place, "STRtree, then pyproj", peer, n_queries=n_queries, n_rows=n_rows)
        bench.verdict("circles", place, "times faster than STRtree and pyproj", peer / ours, TIMES, "at least")
        bench.note("circles", place, "matches a row", len(hits.positions) / n_rows)


def _around(
    towns: tuple[NDArray[np.float64], NDArray[np.float64]], spread: float, n: int, source: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    chosen = source.integers(0, len(towns[0]), n)
    lon, lat = (each[chosen] + source.normal(0, spread, n).clip(-4, 4) for each in towns)
    return lon, lat


def _texts(lons: NDArray[np.float64], lats: NDArray[np.float64], radii: NDArray[np.float64]) -> list[str]:
    return [
        f"ST_DWithin(ST_Point(lon, lat), ST_Point({lon}, {lat}), {radius}, TRUE)"
        for lon, lat, radius in zip(lons.tolist(), lats.tolist(), radii.tolist(), strict=True)
    ]


def _tree(lons: NDArray[np.float64], lats: NDArray[np.float64], radii: NDArray[np.float64]) -> shapely.STRtree:
    """Over boxes around the circles, none of which is near a pole or the antimeridian."""
    up = radii / METRES_A_DEGREE
    wide = up / np.cos(np.radians(np.abs(lats) + up))
    tree = shapely.STRtree(shapely.box(lons - wide, lats - up, lons + wide, lats + up))
    tree.query(shapely.points(0.0, 0.0))  # the tree is packed at its first use
    return tree


def _check(hits: Any, found: NDArray[np.int64], members: NDArray[np.int64], n_rows: int) -> None:
    rows = np.repeat(np.arange(n_rows), np.diff(hits.starts))
    ours = np.sort(rows << 32 | hits.positions)
    if not np.array_equal(ours, np.sort(found << 32 | members)):
        raise AnswersDifferError(f"Vedette finds {len(ours):,} pairs, STRtree with pyproj {len(found):,}")
