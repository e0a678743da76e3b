"""The same alerts as a join in Spark SQL and in DuckDB, timed on as many ticks as fit into a few seconds.

Both get the alerts in a form that suits them: bounds are always present and closed, and the test that most pairs fail
comes first. An alert for several symbols is one row for each of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

_BOUNDS = """
    ticks.price >= alerts.price_low AND ticks.price <= alerts.price_high
    AND ticks.volume >= alerts.volume_low AND ticks.ts >= alerts.since
    AND ticks.price * ticks.volume > alerts.turnover_low
"""
# Not all alerts name a symbol, so Spark has no equality to join by and compares every tick with every alert.
_CONDITION = f"(alerts.symbol IS NULL OR alerts.symbol = ticks.symbol) AND {_BOUNDS}"
# Written by hand as two joins, DuckDB can use a hash join for the alerts that name a symbol.
_DUCKDB_QUERY = f"""
    SELECT (SELECT count(*) FROM ticks JOIN alerts ON alerts.symbol = ticks.symbol AND {_BOUNDS})
         + (SELECT count(*) FROM ticks JOIN alerts ON alerts.symbol IS NULL AND {_BOUNDS})
"""


@dataclass(frozen=True)
class JoinTime:
    """A join of the first ticks with all alerts: its seconds and its number of pairs."""

    n_rows: int
    seconds: float
    n_pairs: int

    def scaled_to(self, n_rows: int) -> float:
        """Seconds for this many ticks at the same rate."""
        return self.seconds * n_rows / self.n_rows


def time_spark_join(ticks: DataFrame, alerts: pa.Table, n_ticks: int, seconds: float) -> JoinTime:
    """Spark's own join, a nested loop, over as many of the first ticks as take about this many seconds."""
    bounds = ticks.sparkSession.createDataFrame(make_bounds(alerts)).cache()
    bounds.count()

    def join(n_rows: int) -> tuple[float, int]:
        some = ticks.where(f.col("tick") < n_rows).repartition(2).cache()
        some.count()
        start = time.perf_counter()
        n_pairs = some.alias("ticks").join(f.broadcast(bounds.alias("alerts")), f.expr(_CONDITION)).count()
        took = time.perf_counter() - start
        some.unpersist()
        return took, n_pairs

    join(100)  # compiles
    timed = _grow(join, min(n_ticks, 100_000), seconds)
    bounds.unpersist()
    return timed


def time_duckdb_join(ticks_dir: Path, alerts: pa.Table, n_ticks: int, seconds: float) -> JoinTime | None:
    """DuckDB's join, on all cores, over as many of the first ticks as take about this many seconds.

    Returns None if DuckDB is not installed.
    """
    try:
        import duckdb
    except ImportError:
        return None
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute("SET enable_progress_bar = false")
    connection.register("bounds", make_bounds(alerts))
    connection.execute("CREATE TABLE alerts AS SELECT * FROM bounds")

    def join(n_rows: int) -> tuple[float, int]:
        files = f"read_parquet('{ticks_dir}/*.parquet')"
        connection.execute(f"CREATE OR REPLACE TABLE ticks AS SELECT * FROM {files} WHERE tick < {n_rows}")
        start = time.perf_counter()
        (n_pairs,) = connection.sql(_DUCKDB_QUERY).fetchall()[0]
        return time.perf_counter() - start, n_pairs

    timed = _grow(join, n_ticks, seconds)
    connection.close()
    return timed


def _grow(join: Callable[[int], tuple[float, int]], most_rows: int, seconds: float) -> JoinTime:
    """Join more and more rows until that takes about this many seconds."""
    n_rows = min(100, most_rows)
    while True:
        took, n_pairs = join(n_rows)
        if took >= seconds / 2 or n_rows >= most_rows:
            return JoinTime(n_rows, took, n_pairs)
        n_rows = min(most_rows, max(2 * n_rows, int(n_rows * seconds / max(took, 0.01) * 0.8)))


def make_bounds(alerts: pa.Table) -> pa.Table:
    """One row per alert and symbol with inclusive bounds. A missing bound becomes one that all values satisfy."""
    low, high = alerts["price_low"].to_numpy(), alerts["price_high"].to_numpy()  # NaN: no bound
    one_sided = np.isnan(low) | np.isnan(high)
    bounds = {
        "price_low": np.where(np.isnan(low), -np.inf, np.where(one_sided, np.nextafter(low, np.inf), low)),
        "price_high": np.where(np.isnan(high), np.inf, np.where(one_sided, np.nextafter(high, -np.inf), high)),
        "volume_low": pc.fill_null(alerts["volume_low"], 0),
        "turnover_low": pc.fill_null(alerts["turnover_low"], -np.inf),
        "since": pc.fill_null(alerts["since"], pa.scalar(0, pa.timestamp("us", tz="UTC"))),
    }
    named = pc.list_parent_indices(alerts["symbols"])
    unnamed = pc.indices_nonzero(pc.is_null(alerts["symbols"]))
    symbols = pa.concat_arrays(
        [pc.list_flatten(alerts["symbols"]).combine_chunks(), pa.nulls(len(unnamed), pa.string())]
    )
    places = pa.concat_arrays([_one(named).cast(pa.int64()), _one(unnamed).cast(pa.int64())])
    return pa.table({"id": alerts["id"], **bounds}).take(places).append_column("symbol", symbols)


def _one(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
