"""Ticks of a few symbols with random prices, queries of ranges, and the expected events of border monitoring."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

import vedette as vd

SCHEMA = "symbol string, price double, ts timestamp"
N_KEYS = 25
N_QUERIES = 40
WIDTH = 5


def make_queries():
    """Query q matches prices from q to q + 5."""
    queries = vd.QuerySet(SCHEMA)
    lows = np.arange(N_QUERIES, dtype=np.float64)
    queries.add_boxes(np.arange(N_QUERIES), {"price": (lows, lows + WIDTH)})
    return queries


def make_rows(n_rows, seed=7):
    """One tick per second."""
    random = np.random.default_rng(seed)
    symbols = random.integers(0, N_KEYS, n_rows)
    prices = np.empty(n_rows)
    last = random.integers(0, 60, N_KEYS).astype(float)
    for row, symbol in enumerate(symbols):
        last[symbol] = min(60.0, max(0.0, last[symbol] + random.integers(-3, 4)))
        prices[row] = last[symbol]
    times = pa.array(1_772_000_000_000_000 + np.arange(n_rows) * 1_000_000, pa.timestamp("us", "UTC"))
    return pa.table([pa.array([f"S{symbol}" for symbol in symbols]), prices, times], names=["symbol", "price", "ts"])


def expected_events(rows):
    """The events of rows in time order, by plain comparison."""
    inside = {}
    events = []
    for row in rows.to_pylist():
        now = {query for query in range(N_QUERIES) if query <= row["price"] <= query + WIDTH}
        before = inside.get(row["symbol"])
        time = int(row["ts"].timestamp())
        for query in (before or set()) - now:
            events.append((row["symbol"], time, query, "exit", "moved"))
        for query in now - (before or set()):
            events.append((row["symbol"], time, query, "enter", "first" if before is None else "moved"))
        inside[row["symbol"]] = now
    return sorted(events)


def as_tuples(events):
    """The events of a DataFrame, times in seconds."""
    rows = events.selectExpr("key", "unix_seconds(time) time", "query", "event", "reason").collect()
    return sorted(tuple(row) for row in rows)
