"""Price alerts over a day of ticks: first as a batch, then as a stream. Run: python examples/price_alerts.py"""

from __future__ import annotations

import tempfile
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

import vedette as vd
from vedette import spark as vs

ALERTS = {
    "cheap-ibm": "symbol = 'IBM' AND price < 40",
    "tech-block": "symbol IN ('IBM', 'SAP') AND volume >= 10000",
    "after-lunch": "price BETWEEN 99.5 AND 100.5 AND ts >= TIMESTAMP '2026-03-02 13:00:00'",
    "big-ticket": "price * volume > 1000000",
}

TICKS = [
    ("IBM", 39.50, 100, "2026-03-02 09:30:00"),
    ("IBM", 41.00, 25_000, "2026-03-02 10:15:00"),
    ("SAP", 100.00, 500, "2026-03-02 12:59:59"),
    ("SAP", 100.25, 500, "2026-03-02 13:00:00"),
    ("ABC", None, 500, "2026-03-02 13:30:00"),
]


def make_alerts() -> vd.QuerySet:
    alerts = vd.QuerySet("symbol string, price double, volume bigint, ts timestamp")
    alerts.add_many(list(ALERTS), list(ALERTS.values()))
    return alerts


def make_ticks(spark: SparkSession) -> DataFrame:
    ticks = spark.createDataFrame(TICKS, "symbol string, price double, volume bigint, ts string")
    return ticks.selectExpr("symbol", "price", "volume", "cast(ts as timestamp) ts")


def run_batch(ticks: DataFrame, alerts: vd.QuerySet) -> list[tuple[str, str]]:
    """One row per tick and alert that it hits."""
    hits = ticks.transform(vs.match(alerts))
    return sorted((row["query"], row["symbol"]) for row in hits.collect())


def run_stream(spark: SparkSession, ticks: DataFrame, alerts: vd.QuerySet, directory: Path) -> list[tuple[str, str]]:
    """The same over files that arrive; `availableNow` ends when all that is there has been read."""
    ticks.write.parquet(str(directory / "ticks"))
    arriving = spark.readStream.schema(ticks.schema).parquet(str(directory / "ticks"))
    query = (
        arriving.transform(vs.match(alerts))
        .writeStream.format("parquet")
        .option("path", str(directory / "hits"))
        .option("checkpointLocation", str(directory / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return sorted((row["query"], row["symbol"]) for row in spark.read.parquet(str(directory / "hits")).collect())


def main() -> None:
    spark = vs.session("price alerts")
    alerts, ticks = make_alerts(), make_ticks(spark)
    with tempfile.TemporaryDirectory() as directory:
        batch, stream = run_batch(ticks, alerts), run_stream(spark, ticks, alerts, Path(directory))
    for alert, symbol in batch:
        print(f"{alert:12} {symbol}")
    print("the stream found the same" if stream == batch else f"the stream found {stream}")
    spark.stop()


if __name__ == "__main__":
    main()
