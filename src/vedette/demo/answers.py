"""The hits and events that the demo shows, and their comparison with Spark's own `filter`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f


@dataclass(frozen=True)
class Mismatch:
    """An alert for which Spark finds other hits or events."""

    alert: str
    n_hits: int
    n_events: int
    n_hits_spark: int
    n_events_spark: int


@dataclass(frozen=True)
class Answers:
    """Ticks, hits (a row per tick, with the list of its alerts) and events (enter and exit)."""

    ticks: DataFrame
    hits: DataFrame
    events: DataFrame

    def count_hits(self) -> DataFrame:
        """Alert, symbol, hits, first and last time, lowest and highest price."""
        pairs = self.hits.select("symbol", "price", "ts", f.explode("queries").alias("query"))
        aggregates = (f.count("*").alias("n_hits"), f.min("ts").alias("first"), f.max("ts").alias("last"))
        bounds = (f.min("price").alias("low"), f.max("price").alias("high"))
        return pairs.groupBy("query", "symbol").agg(*aggregates, *bounds).cache()

    def count_events(self) -> DataFrame:
        """Alert and its number of enter events."""
        entered = self.events.where("event = 'enter'")
        return entered.groupBy("query").agg(f.count("*").alias("n_enters")).cache()

    def busiest_symbols(self, counts: DataFrame, n: int) -> list[tuple[Any, ...]]:
        """Symbol, hits, alerts that were hit, lowest and highest price among the hits."""
        aggregates = (f.sum("n_hits").alias("n_hits"), f.count("*"), f.min("low"), f.max("high"))
        return _collect(counts.groupBy("symbol").agg(*aggregates).orderBy(f.desc("n_hits"), "symbol").limit(n))

    def most_triggered(self, counts: DataFrame, enters: DataFrame, n: int) -> list[tuple[Any, ...]]:
        """Alert, hits, enter events, first and last time."""
        aggregates = (f.sum("n_hits").alias("n_hits"), f.min("first").alias("first"), f.max("last").alias("last"))
        top = counts.groupBy("query").agg(*aggregates).orderBy(f.desc("n_hits"), "query").limit(n)
        joined = top.join(enters, "query", "left").orderBy(f.desc("n_hits"), "query")
        return _collect(joined.select("query", "n_hits", f.coalesce("n_enters", f.lit(0)), "first", "last"))

    def count_triggered(self, counts: DataFrame) -> int:
        return counts.select("query").distinct().count()

    def by_minutes(self, minutes: int) -> list[tuple[Any, ...]]:
        """The start of each part of the day, its hits and its events."""
        hits = self.hits.select("ts", f.size("queries").alias("n_hits"), f.lit(0).alias("n_events"))
        events = self.events.select(f.col("time").alias("ts"), f.lit(0).alias("n_hits"), f.lit(1).alias("n_events"))
        bucket = f.window("ts", f"{minutes} minutes").start.alias("start")
        counts = hits.unionAll(events).groupBy(bucket).agg(f.sum("n_hits"), f.sum("n_events"))
        return _collect(counts.orderBy("start"))

    def prices(self, symbol: str, n: int) -> list[tuple[Any, ...]]:
        """About `n` of the symbol's ticks in time order: time and price."""
        return _sample(self.ticks.where(f.col("symbol") == symbol), n)

    def hits_of(self, alert: str, n: int) -> list[tuple[Any, ...]]:
        """About `n` of the ticks that hit the alert, in time order: time and price."""
        return _sample(self.hits.where(f.array_contains("queries", alert)), n)

    def crossings_of(self, alert: str, symbol: str, event: str) -> list[tuple[Any, ...]]:
        """Time and price of the ticks at which the symbol entered or left the alert."""
        moments = self.events.where((f.col("query") == alert) & (f.col("event") == event) & (f.col("key") == symbol))
        ticks = self.ticks.where(f.col("symbol") == symbol)
        return _collect(ticks.join(moments, ticks.ts == moments.time).select("ts", "price").distinct().orderBy("ts"))

    def check(self, texts: dict[str, str], report: Callable[[int], None]) -> list[Mismatch]:
        """Compare hits and events of these alerts with the rows that Spark's `filter` keeps."""
        ours = self._our_fingerprints(list(texts))
        by_symbol = Window.partitionBy("symbol").orderBy("ts", "tick")
        ticks, wrong = self.ticks.cache(), []
        for n, (alert, text) in enumerate(texts.items(), start=1):
            inside = f.coalesce(f.expr(text), f.lit(False))
            moved = inside != f.lag(inside, 1, False).over(by_symbol)
            rows = ticks.select("tick", inside.alias("inside"), moved.alias("moved"))
            sparks = tuple(rows.agg(*_fingerprint("inside"), f.count_if("moved")).collect()[0])
            own = ours.get(alert, (0, None, 0))
            if own != sparks:
                wrong.append(Mismatch(alert, own[0], own[2], sparks[0], sparks[2]))
            report(n)
        ticks.unpersist()
        return wrong

    def _our_fingerprints(self, ids: list[str]) -> dict[str, tuple[Any, ...]]:
        pairs = self.hits.select("tick", f.explode("queries").alias("query"), f.lit(True).alias("inside"))
        hits = pairs.where(f.col("query").isin(ids)).groupBy("query").agg(*_fingerprint("inside"))
        events = self.events.where(f.col("query").isin(ids)).groupBy("query").agg(f.count("*").alias("n_events"))
        rows = hits.join(events, "query", "left").collect()
        return {row["query"]: (row[1], row[2], row["n_events"] or 0) for row in rows}


def _fingerprint(kept: str) -> tuple[Any, Any]:
    """Identifies the set of ticks that are kept: their number and the sum of their hashes."""
    return f.count_if(kept), f.sum(f.when(f.col(kept), f.xxhash64("tick").cast("decimal(38,0)")))


def _collect(rows: DataFrame) -> list[tuple[Any, ...]]:
    """The rows, with times in UTC."""
    return [tuple(row.values()) for row in rows.toArrow().to_pylist()]


def _sample(rows: DataFrame, n: int) -> list[tuple[Any, ...]]:
    """About `n` rows at equal distances: time and price."""
    chosen = rows.select("ts", "price")
    share = min(1.0, n / max(1, chosen.count()))
    return _collect(chosen.where(f.rand(1) < share).orderBy("ts"))
