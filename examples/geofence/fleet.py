"""A fleet and its geofences: which van enters and leaves which zone, and which one stopped at a customer.

Run: python examples/geofence/fleet.py [--spark]
"""

from __future__ import annotations

import argparse
import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from picture import draw
from town import SCHEMA, Customer, Town

import vedette as vd

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DWELL = "2 minutes"  # a van that stays this long has visited the customer
SHOWN = 12


def load_zones(path: Path) -> vd.QuerySet:
    """The polygons of a GeoJSON file; some are for certain vehicles only."""
    ids, texts, properties = vd.read_geojson(path, x="x", y="y")
    zones = vd.QuerySet(SCHEMA)
    zones.add_many(ids, [_narrow(text, kept["only"]) for text, kept in zip(texts, properties, strict=True)])
    return zones


def _narrow(text: str, only: str) -> str:
    return f"{text} AND {only}" if only else text


def load_customers(customers: list[Customer]) -> vd.QuerySet:
    """Add a circle around each customer."""
    places = vd.QuerySet(SCHEMA)
    texts = [f"ST_DWithin(ST_Point(x, y), ST_Point({c.x}, {c.y}), {c.radius})" for c in customers]
    places.add_many([customer.id for customer in customers], texts)
    return places


def cut_by_minute(positions: pa.Table) -> list[pa.Table]:
    minutes = pc.floor_temporal(positions["ts"], unit="minute")
    return [positions.filter(pc.equal(minutes, minute)) for minute in minutes.unique()]


def watch(queries: vd.QuerySet, batches: list[pa.Table], **options: Any) -> pa.Table:
    """The events of positions that arrive one minute at a time, and at the end those that only time decides."""
    monitor = queries.border(key="vehicle", time="ts", **options)
    events = [monitor.step(batch) for batch in batches]
    events.append(monitor.advance(pc.max(batches[-1]["ts"]).as_py()))
    return in_order([event for table in events for event in table.to_pylist()])


def watch_in_spark(
    spark: SparkSession, queries: vd.QuerySet, batches: list[pa.Table], directory: Path, **options: Any
) -> pa.Table:
    """The same over files that arrive, several per micro-batch."""
    from vedette import spark as vs

    arriving = directory / "positions"
    arriving.mkdir(parents=True)
    for batch in batches:
        last = pc.max(batch["ts"]).as_py()
        path = arriving / f"{last:%d-%H%M}.parquet"
        pq.write_table(batch, path)
        os.utime(path, (last.timestamp(), last.timestamp()))  # Spark reads files in the order of their times
    positions = (
        spark.readStream.schema("vehicle string, engine string, x double, y double, ts timestamp")
        .option("maxFilesPerTrigger", 10)
        .parquet(str(arriving))
        .withWatermark("ts", "0 seconds")
    )
    stream = (
        positions.transform(vs.border(queries, key="vehicle", time="ts", **options))
        .writeStream.format("parquet")
        .option("path", str(directory / "events"))
        .option("checkpointLocation", str(directory / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    stream.awaitTermination()
    return in_order(spark.read.parquet(str(directory / "events")).toArrow().to_pylist())


def in_order(events: list[dict[str, Any]]) -> pa.Table:
    """Events of all vehicles by time, in plain columns."""
    plain = {"key": pa.string(), "time": pa.timestamp("us", tz="UTC")}
    plain |= dict.fromkeys(("query", "event", "reason"), pa.string())
    events = sorted(events, key=lambda event: (event["time"], event["key"], event["event"] == "enter", event["query"]))
    return pa.Table.from_pylist(events, pa.schema(plain))


def show(title: str, events: pa.Table) -> None:
    print(f"\n{title}")
    for event in events.slice(0, SHOWN).to_pylist():
        print(f"  {event['time']:%H:%M:%S}  {event['key']:7} {event['event']:6} {event['query']:14} {event['reason']}")
    if events.num_rows > SHOWN:
        print(f"  ... and {events.num_rows - SHOWN} more")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--spark", action="store_true", help="also run as Spark streams, and compare")
    parser.add_argument("--vehicles", type=int, default=12)
    parser.add_argument("--minutes", type=int, default=40)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--output-dir", type=Path, default=Path("demo-report/geofence"))
    chosen = parser.parse_args(arguments)

    folder: Path = chosen.output_dir
    folder.mkdir(parents=True, exist_ok=True)
    town = Town.build(chosen.seed)
    town.write_geojson(folder / "zones.geojson")
    positions = town.positions(chosen.vehicles, chosen.minutes)
    pq.write_table(positions, folder / "positions.parquet")
    batches = cut_by_minute(positions)
    zones, places = load_zones(folder / "zones.geojson"), load_customers(town.customers)
    print(f"{len(zones)} polygons, {len(places)} circles, {chosen.vehicles} vans, {positions.num_rows:,} positions")

    visits, stops = watch(zones, batches), watch(places, batches, dwell=DWELL)
    show("Zones: vans that entered and left", visits)
    show(f"Customers: vans that stayed for at least {DWELL}", stops)
    served = Counter(event["query"] for event in stops.to_pylist() if event["event"] == "enter")
    print(f"\n{len(served)} of {len(places)} customers were served, {sum(served.values())} times in all")
    draw(town, positions, visits, stops, folder / "fleet.png")
    print(f"Picture: {folder / 'fleet.png'}")

    if chosen.spark:
        run_in_spark(zones, places, batches, visits, stops)


def run_in_spark(
    zones: vd.QuerySet, places: vd.QuerySet, batches: list[pa.Table], visits: pa.Table, stops: pa.Table
) -> None:
    from tempfile import TemporaryDirectory

    from vedette import spark as vs

    spark = vs.session("geofence")
    with TemporaryDirectory() as name:
        folder = Path(name)
        same = watch_in_spark(spark, zones, batches, folder / "zones") == visits
        same = watch_in_spark(spark, places, batches, folder / "places", dwell=DWELL) == stops and same
    print("The Spark streams found the same events" if same else "The Spark streams found other events")
    spark.stop()


if __name__ == "__main__":
    main()
