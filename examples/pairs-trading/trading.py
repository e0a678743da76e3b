"""Pairs trading: thousands of alerts on the spreads between two exchanges, and between banks and mines.

Run: python examples/pairs-trading/trading.py [--spark]
"""

from __future__ import annotations

import argparse
import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from chart import draw
from market import QUOTE, SECTORS, START, Alerts, Market

import vedette as vd

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SECONDS_BETWEEN = 10  # of steps, and of samples of the performances
SHOWN = 8
COLUMNS = {"left_time": "ts", "right_time": "ts", "left_id": "id", "right_id": "id"}
CurrentPairs = Counter[tuple[str, str, str]]  # band, bank and mine: 1 while the two are in the band


def load_alerts(alerts: Alerts) -> vd.JoinQuerySet:
    pairs = vd.JoinQuerySet(left=QUOTE, right=QUOTE)
    pairs.add_many(alerts.ids, alerts.texts, within=alerts.within)
    return pairs


def load_bands(ids: list[str], lows: Any, highs: Any) -> vd.BandQuerySet:
    bands = vd.BandQuerySet()
    bands.add_many(ids, lows, highs)
    return bands


def cut(quotes: pa.Table) -> list[pa.Table]:
    """The quotes of every ten seconds."""
    seconds = pc.subtract(quotes["ts"].cast(pa.int64()), pa.scalar(int(START.timestamp() * 1_000_000)))
    slices = pc.divide(seconds, SECONDS_BETWEEN * 1_000_000)
    return [quotes.filter(pc.equal(slices, i)) for i in range(pc.max(slices).as_py() + 1)]


def watch_spreads(pairs: vd.JoinQuerySet, left: list[pa.Table], right: list[pa.Table]) -> pa.Table:
    """The pairs of quotes that each alert finds, processed ten seconds at a time."""
    join = pairs.window(**COLUMNS)
    n = max(len(left), len(right))
    none = left[0].slice(0, 0)
    steps = zip(left + [none] * (n - len(left)), right + [none] * (n - len(right)), strict=True)
    return in_order([join.step(left=here, right=there) for here, there in steps])


def in_order(tables: list[pa.Table]) -> pa.Table:
    plain = pa.schema({"query": pa.string(), "left": pa.int64(), "right": pa.int64()})
    return pa.concat_tables([table.cast(plain) for table in tables]).sort_by(
        [("left", "ascending"), ("right", "ascending"), ("query", "ascending")]
    )


def watch_performances(bands: vd.BandQuerySet, performances: list[dict[str, float]]) -> list[CurrentPairs]:
    """After each sample, which banks and mines are in which bands: the sum of the changes that the join reports."""
    join = bands.monitor()
    before: dict[str, float] = {}
    current: CurrentPairs = Counter()
    history = []
    for now in performances:
        moved = {symbol: value for symbol, value in now.items() if before.get(symbol) != value}
        removed = {side: [symbol for symbol in side_of(moved, sector) if symbol in before] for side, sector in SIDES}
        new = {side: as_rows(side_of(moved, sector)) for side, sector in SIDES}
        for changes in (join.delete(**removed), join.insert(**new)):
            add_up(current, changes)
        before = now
        history.append(current.copy())
    return history


SIDES = (("left", SECTORS[0]), ("right", SECTORS[1]))


def side_of(values: dict[str, float], sector: str) -> dict[str, float]:
    return {symbol: value for symbol, value in values.items() if symbol.startswith(sector)}


def as_rows(values: dict[str, float]) -> dict[str, list[Any]]:
    return {"id": list(values), "value": list(values.values())}


def add_up(current: CurrentPairs, changes: pa.Table) -> None:
    signs = changes["sign"].to_pylist()
    for sign, *pair in zip(signs, *(changes[name].to_pylist() for name in ("query", "left", "right")), strict=True):
        current[tuple(pair)] += sign
        if not current[tuple(pair)]:
            del current[tuple(pair)]


# The same in Spark, over files that arrive.


def watch_spreads_in_spark(
    spark: SparkSession, pairs: vd.JoinQuerySet, left: list[pa.Table], right: list[pa.Table], folder: Path
) -> pa.Table:
    from vedette import spark as vs

    frames = []
    for name, tables in (("left", left), ("right", right)):
        write_files(tables, folder / name)
        frames.append(read_files(spark, folder / name, QUOTE, 10).withWatermark("ts", "0 seconds"))
    run(vs.window_join(*frames, pairs, **COLUMNS), folder)
    return in_order([spark.read.parquet(str(folder / "found")).toArrow()])


def watch_performances_in_spark(
    spark: SparkSession, bands: vd.BandQuerySet, performances: list[dict[str, float]], folder: Path
) -> CurrentPairs:
    """Which banks and mines are in which bands in the end. A new value of an id replaces the previous one."""
    from vedette import spark as vs

    frames = []
    for side, sector in SIDES:
        write_files([pa.table(as_rows(side_of(now, sector))) for now in performances], folder / side)
        frames.append(read_files(spark, folder / side, "id string, value double", 10))
    run(vs.band_join(*frames, bands, known_id="replace"), folder)
    current: CurrentPairs = Counter()
    add_up(current, spark.read.parquet(str(folder / "found")).toArrow())
    return current


def write_files(tables: list[pa.Table], folder: Path) -> None:
    folder.mkdir(parents=True)
    for number, table in enumerate(tables):
        path = folder / f"{number:05d}.parquet"
        pq.write_table(table, path)
        os.utime(path, (number, number))  # Spark reads files in the order of their times


def read_files(spark: SparkSession, folder: Path, schema: str, n_at_once: int) -> DataFrame:
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", n_at_once).parquet(str(folder))


def run(found: DataFrame, folder: Path) -> None:
    stream = (
        found.writeStream.format("parquet")
        .option("path", str(folder / "found"))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    stream.awaitTermination()


# Output.


def show_spreads(found: pa.Table, alerts: Alerts, left: pa.Table, right: pa.Table) -> None:
    symbol_of = dict(zip(alerts.ids, alerts.symbols, strict=True))
    alerted = {query: symbol_of[query] for query in found["query"].unique().to_pylist()}
    print(f"\nSpreads: {found.num_rows:,} pairs, for {len(alerted):,} of {len(alerts):,} alerts")
    pairs = Counter(symbol_of[query] for query in found["query"].to_pylist())
    widest = widest_spreads(found, left, right)
    for symbol, n in pairs.most_common(SHOWN):
        n_alerted = sum(each == symbol for each in alerted.values())
        print(f"  {symbol:8} {n:6,} pairs for {n_alerted:4,} alerts, widest spread {widest[symbol]:+.2f}")


def widest_spreads(found: pa.Table, left: pa.Table, right: pa.Table) -> dict[str, float]:
    """By symbol, the spread with the greatest absolute value."""
    here, there = left.take(found["left"]), right.take(found["right"])
    spreads = pc.subtract(here["price"], there["price"]).to_pylist()
    widest: dict[str, float] = {}
    for symbol, spread in zip(here["symbol"].to_pylist(), spreads, strict=True):
        widest[symbol] = max(widest.get(symbol, 0.0), spread, key=abs)
    return widest


def show_performances(history: list[CurrentPairs], n_bands: int, performances: list[dict[str, float]]) -> None:
    last, now = history[-1], performances[-1]
    couples = Counter((bank, mine) for _, bank, mine in last)
    n_held = len({band for band, *_ in last})
    print(f"\nPerformances: in the end {len(couples):,} pairs are in {n_held:,} of {n_bands:,} bands")
    for (bank, mine), n in couples.most_common(SHOWN):
        print(f"  {bank:8} minus {mine:8} {now[bank] - now[mine]:+.2f} points, in {n:4,} bands")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--spark", action="store_true", help="also run as Spark streams, and compare")
    parser.add_argument("--symbols", type=int, default=24)
    parser.add_argument("--minutes", type=int, default=10)
    parser.add_argument("--alerts", type=int, default=5000)
    parser.add_argument("--bands", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--output-dir", type=Path, default=Path("demo-report/pairs-trading"))
    chosen = parser.parse_args(arguments)

    folder: Path = chosen.output_dir
    folder.mkdir(parents=True, exist_ok=True)
    market = Market.build(chosen.seed, chosen.symbols, chosen.minutes)
    left, right = market.quotes(0), market.quotes(1)
    alerts, (band_ids, lows, highs) = market.alerts(chosen.alerts), market.bands(chosen.bands)
    performances = market.performances(SECONDS_BETWEEN)
    write_inputs(folder, left, right, alerts, performances[-1], (band_ids, lows, highs))
    print(f"{chosen.symbols} symbols for {chosen.minutes} minutes: {left.num_rows:,} and {right.num_rows:,} quotes")

    pairs, bands = load_alerts(alerts), load_bands(band_ids, lows, highs)
    here, there = cut(left), cut(right)
    found = watch_spreads(pairs, here, there)
    show_spreads(found, alerts, left, right)
    history = watch_performances(bands, performances)
    show_performances(history, chosen.bands, performances)
    draw(folder / "pairs-trading.png", left, right, alerts, found, performances, history, (lows, highs))
    print(f"\nChart: {folder / 'pairs-trading.png'}")

    if chosen.spark:
        run_in_spark(pairs, here, there, found, bands, performances, history[-1])


def write_inputs(
    folder: Path, left: pa.Table, right: pa.Table, alerts: Alerts, now: dict[str, float], bands: tuple[Any, Any, Any]
) -> None:
    """Write all inputs as files, for `vedette join`."""
    pq.write_table(left, folder / "here.parquet")
    pq.write_table(right, folder / "there.parquet")
    table = pa.table({"id": alerts.ids, "where": alerts.texts, "within": alerts.within})
    pa_csv.write_csv(table, folder / "alerts.csv")
    pa_csv.write_csv(pa.table(dict(zip(("id", "low", "high"), bands, strict=True))), folder / "bands.csv")
    for sector in SECTORS:
        pa_csv.write_csv(pa.table(as_rows(side_of(now, sector))), folder / f"{sector}s.csv")


def run_in_spark(
    pairs: vd.JoinQuerySet,
    left: list[pa.Table],
    right: list[pa.Table],
    found: pa.Table,
    bands: vd.BandQuerySet,
    performances: list[dict[str, float]],
    current: CurrentPairs,
) -> None:
    from tempfile import TemporaryDirectory

    from vedette import spark as vs

    spark = vs.session("pairs trading")
    with TemporaryDirectory() as name:
        folder = Path(name)
        same = watch_spreads_in_spark(spark, pairs, left, right, folder / "spreads") == found
        in_the_end = watch_performances_in_spark(spark, bands, performances, folder / "performances")
    same = in_the_end == current and same
    print("The Spark streams found the same pairs" if same else "The Spark streams found other pairs")
    spark.stop()


if __name__ == "__main__":
    main()
