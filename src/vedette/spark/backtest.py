"""Backtests inside Spark: matches are counted where rows are read, events are counted by day, query and key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

from vedette.backtesting.backtest import active_ids, check_sets
from vedette.backtesting.counts import EVENT_COUNTS, EVENT_KEYS, MATCH_COUNTS, MATCH_KEYS, check_time, plain_type
from vedette.backtesting.result import Backtest, KeyCounts, assemble, count_keys, empty_counts
from vedette.errors import QueryError
from vedette.spark.border import border
from vedette.spark.checks import find_columns, find_time, quoted
from vedette.spark.session_checks import check_session
from vedette.spark.shipping.kernels import send_kernels
from vedette.spark.shipping.query_sets import pack, worker_function

if TYPE_CHECKING:
    from pathlib import Path

    from vedette.queries.query_set import QuerySet

_WORKER = "vedette.spark.workers.backtest"


def backtest(
    rows: DataFrame,
    queries: QuerySet,
    *,
    time: str,
    key: str | None = None,
    against: QuerySet | None = None,
    snapshot_dir: str | Path | None = None,
    **options: Any,
) -> Backtest:
    """`vd.backtest` over a DataFrame that is not a stream: `vs.backtest(history, alerts, time="ts", key="symbol")`.

    The result is the same, with Arrow tables on the driver. Rows need no order. Memory is bounded by the number of days
    and queries with matches, not by rows. `options` are those of `vs.border`.
    """
    if rows.isStreaming:
        raise QueryError("a backtest needs a batch, not a stream; read the history with spark.read", option="rows")
    if options and key is None:
        raise QueryError(f"{next(iter(options))} is an option of events, which need a key", option="key")
    sets = check_sets(queries, against)
    check_session(rows, queries)
    column = find_time(rows, queries.schema, time)
    check_time(time, column.dataType.simpleString())
    ids = [active_ids(each) for each in sets]
    id_type = t.LongType() if plain_type(queries.ids.type) == pa.int64() else t.StringType()
    matches = _plain(_count_matches(rows, sets, column, id_type, snapshot_dir).toArrow())
    if key is None:
        nothing = empty_counts(plain_type(queries.ids.type), EVENT_KEYS)
        return assemble(matches, nothing.drop_columns(["key"]), count_keys(nothing), ids, {})
    events = _count_events(rows, sets, key, time, snapshot_dir, options).persist()
    try:
        by_pair = _plain(_sum(events, MATCH_KEYS, (*EVENT_COUNTS, *_flags(events))).toArrow())
        keys = KeyCounts(
            by_pair.select([*MATCH_KEYS, "keys_0", "keys_1"]),
            _plain(_distinct(events, "query").toArrow()),
            _plain(_distinct(events, "day").toArrow()).select(["day", "keys_0", "keys_1"]),
            _total(events),
        )
    finally:
        events.unpersist()
    return assemble(matches, by_pair.drop_columns(["keys_0", "keys_1"]), keys, ids, {})


def _count_matches(
    rows: DataFrame, sets: list[QuerySet], time: t.StructField, id_type: t.DataType, snapshot_dir: str | Path | None
) -> DataFrame:
    """MATCHES: each task adds up its own rows."""
    needed = {time.name.lower()}
    for queries in sets:
        find_columns(rows, queries.schema, queries.fields)
        needed |= {field.column.lower() for field in queries.schema if field.name in queries.fields}
    parcels = [vars(pack(queries, snapshot_dir, None, rows.sparkSession)).copy() for queries in sets]
    kernels = send_kernels(rows.sparkSession)
    work = worker_function(_WORKER, "count_batches", parcels[0]["sender"], parcels, time.name, kernels=kernels)
    counts = [t.StructField(name, t.LongType()) for name in MATCH_COUNTS]
    schema = t.StructType([t.StructField("day", t.DateType()), t.StructField("query", id_type), *counts])
    sent = rows.select(*(quoted(name) for name in rows.columns if name.lower() in needed))
    return _sum(sent.mapInArrow(work, schema), MATCH_KEYS, MATCH_COUNTS)


def _count_events(
    rows: DataFrame,
    sets: list[QuerySet],
    key: str,
    time: str,
    snapshot_dir: str | Path | None,
    options: dict[str, Any],
) -> DataFrame:
    """EVENTS, with a column for each side that says whether the key was notified."""
    sides = []
    for side, queries in enumerate(sets):
        events = rows.transform(border(queries, key=key, time=time, snapshot_dir=snapshot_dir, **options))
        counts = {name: f.lit(0).cast("bigint") for name in EVENT_COUNTS}
        counts[f"events_{side}"] = f.lit(1).cast("bigint")
        counts[f"notifications_{side}"] = (f.col("event") == "enter").cast("bigint")
        named = [each.alias(name) for name, each in counts.items()]
        sides.append(events.select(f.to_date("time").alias("day"), "query", "key", *named))
    joined = sides[0] if len(sides) == 1 else sides[0].unionByName(sides[1])
    summed = _sum(joined, EVENT_KEYS, EVENT_COUNTS)
    flags = {f"keys_{side}": (f.col(f"notifications_{side}") > 0).cast("bigint") for side in (0, 1)}
    return summed.withColumns(flags)


def _flags(events: DataFrame) -> list[str]:
    return [name for name in events.columns if name.startswith("keys_")]


def _sum(lines: DataFrame, keys: tuple[str, ...], counts: tuple[str, ...]) -> DataFrame:
    return lines.groupBy(*keys).agg(*(f.sum(name).alias(name) for name in counts))


def _distinct(events: DataFrame, group: str) -> DataFrame:
    """By group, how many keys are notified on each side, and on one side alone."""
    each = events.groupBy(group, "key").agg(f.max("keys_0").alias("keys_0"), f.max("keys_1").alias("keys_1"))
    alone = {
        "only_0": (f.col("keys_0") > f.col("keys_1")).cast("bigint"),
        "only_1": (f.col("keys_1") > f.col("keys_0")).cast("bigint"),
    }
    return _sum(each.withColumns(alone), (group,), ("keys_0", "keys_1", "only_0", "only_1"))


def _total(events: DataFrame) -> tuple[int, int]:
    each = events.groupBy("key").agg(f.max("keys_0").alias("keys_0"), f.max("keys_1").alias("keys_1"))
    before, after = each.agg(f.sum("keys_0"), f.sum("keys_1")).collect()[0]
    return int(before or 0), int(after or 0)


def _plain(table: pa.Table) -> pa.Table:
    """A table of Spark in the types of the tables that are counted here."""
    types = {"query": plain_type(table.schema.field("query").type) if "query" in table.column_names else None}
    fields = [pa.field(each.name, types.get(each.name) or each.type) for each in table.schema]
    return table.cast(pa.schema(fields)).combine_chunks()
