"""The geofence example does what it says."""

from __future__ import annotations

import runpy
import sys
from itertools import groupby, pairwise
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "examples" / "geofence"


@pytest.fixture
def example(monkeypatch):
    """What fleet.py defines; the modules beside it are found as when it is run."""
    monkeypatch.syspath_prepend(FOLDER)
    yield runpy.run_path(str(FOLDER / "fleet.py"))
    for name in ("picture", "town"):
        sys.modules.pop(name)


@pytest.fixture
def day(example, tmp_path):
    """A town, its polygons as a file, and twenty minutes of five vans."""
    town = example["Town"].build(seed=3)
    town.write_geojson(tmp_path / "zones.geojson")
    return town, tmp_path / "zones.geojson", town.positions(n_vehicles=5, minutes=20)


def is_inside(rings, x, y):
    """Whether a ray to the east crosses the rings an odd number of times; on an upright or level side it is not in."""
    odd = False
    for ring in rings:
        for (x1, y1), (x2, y2) in pairwise(ring):
            if x == x1 == x2 and min(y1, y2) <= y <= max(y1, y2):
                return False
            if y == y1 == y2 and min(x1, x2) <= x <= max(x1, x2):
                return False
            if (y1 > y) != (y2 > y) and x < x1 + (y - y1) * (x2 - x1) / (y2 - y1):
                odd = not odd
    return odd


def walk(positions, is_in):
    """The events of zones as rows follow one another: key, time, zone, event."""
    events = []
    rows = sorted(positions.to_pylist(), key=lambda row: (row["vehicle"], row["ts"]))
    for vehicle, track in groupby(rows, key=lambda row: row["vehicle"]):
        before = set()
        for row in track:
            now = is_in(row)
            events += [(vehicle, row["ts"], zone, "exit") for zone in before - now]
            events += [(vehicle, row["ts"], zone, "enter") for zone in now - before]
            before = now
    return sorted(events)


def shown(events):
    return sorted((event["key"], event["time"], event["query"], event["event"]) for event in events.to_pylist())


def test_zones_are_entered_and_left_where_a_ray_says_so(example, day):
    town, path, positions = day

    def zones_of(row):
        mine = [zone for zone in town.zones if not zone.only or row["engine"] == "diesel"]
        return {zone.id for zone in mine if is_inside(zone.rings, row["x"], row["y"])}

    events = example["watch"](example["load_zones"](path), example["cut_by_minute"](positions))

    assert shown(events) == walk(positions, zones_of)
    assert {"low emission", "school 1"} & {event["query"] for event in events.to_pylist()}


def test_only_vans_that_stay_have_visited_a_customer(example, day):
    town, _, positions = day
    limit = 120

    def places_of(row):
        distances = {c.id: ((row["x"] - c.x) ** 2 + (row["y"] - c.y) ** 2) ** 0.5 - c.radius for c in town.customers}
        return {place for place, distance in distances.items() if distance <= 0}

    stays, since = [], {}
    for vehicle, time, place, event in walk(positions, places_of):
        if event == "enter":
            since[vehicle, place] = time
        elif (time - since.pop((vehicle, place))).total_seconds() >= limit:
            stays.append((vehicle, place, time))

    events = example["watch"](
        example["load_customers"](town.customers), example["cut_by_minute"](positions), dwell=example["DWELL"]
    )

    assert stays
    exits = [(event["key"], event["query"], event["time"]) for event in events.to_pylist() if event["event"] == "exit"]
    assert sorted(exits) == sorted(stays)


def test_it_prints_tables_and_writes_a_picture(example, tmp_path, capsys):
    example["main"](["--vehicles", "4", "--minutes", "15", "--output-dir", str(tmp_path)])

    said = capsys.readouterr().out
    assert "20 polygons, 14 circles, 4 vans, 720 positions" in said
    assert "Zones: " in said
    assert "customers were served" in said
    assert (tmp_path / "fleet.png").read_bytes().startswith(b"\x89PNG")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fleet.png", "positions.parquet", "zones.geojson"]


def test_streams_in_spark_give_the_same_events(spark, example, day, tmp_path):
    town, path, positions = day
    batches = example["cut_by_minute"](positions)

    for name, queries, options in (
        ("zones", example["load_zones"](path), {}),
        ("places", example["load_customers"](town.customers), {"dwell": example["DWELL"]}),
    ):
        events = example["watch"](queries, batches, **options)
        assert events.num_rows > 3
        assert example["watch_in_spark"](spark, queries, batches, tmp_path / name, **options) == events
