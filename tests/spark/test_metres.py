"""Circles in metres on Spark: matches and border events, against GeographicLib."""

from datetime import UTC, datetime, timedelta

import numpy as np
import oracles

import vedette as vd
from vedette import spark as vs

CIRCLES = {"line": ((180.0, 0.0), 3000.0), "pole": ((0.0, 89.999), 500.0), "town": ((4.35, 50.85), 5000.0)}
START = datetime(2026, 3, 2, tzinfo=UTC)


def test_circles_in_metres_match_and_are_crossed(spark):
    zones = vd.QuerySet("ship string, lon double, lat double, ts timestamp")
    texts = [f"ST_DWithin(ST_Point(lon, lat), ST_Point({x}, {y}), {r}, TRUE)" for (x, y), r in CIRCLES.values()]
    zones.add_many(list(CIRCLES), texts)
    source = np.random.default_rng(3)
    rows = []
    for ship, ((x, y), _) in enumerate(CIRCLES.values()):
        spread = 90.0 if y > 80 else 0.05
        for step in range(40):
            lon, lat = x + source.uniform(-spread, spread), min(90.0, y + source.uniform(-0.05, 0.05))
            lon = lon - 360 if lon > 180 else lon
            rows.append((f"{ship}", lon, lat, START + timedelta(seconds=step)))
    ships = spark.createDataFrame(rows, "ship string, lon double, lat double, ts timestamp")
    inside = {
        (ship, ts, query)
        for ship, lon, lat, ts in rows
        for query, (centre, radius) in CIRCLES.items()
        if oracles.metres_between((lon, lat), centre) <= radius
    }

    hits = ships.transform(vs.match(zones)).collect()
    assert {(hit.ship, hit.ts.astimezone(UTC), hit.query) for hit in hits} == inside
    assert len({query for *_, query in inside}) == 3
    events = ships.transform(vs.border(zones, key="ship", time="ts")).collect()
    entered = {(event.key, event.time.astimezone(UTC), event.query) for event in events if event.event == "enter"}
    before = timedelta(seconds=1)
    assert entered == {(ship, ts, query) for ship, ts, query in inside if (ship, ts - before, query) not in inside}
