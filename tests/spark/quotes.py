"""Quotes of two sides, joins of them, and the expected pairs."""

from __future__ import annotations

import datetime
import itertools

import numpy as np
import pyarrow as pa

import vedette as vd

SCHEMA = "symbol string, price double, ts timestamp"
START = datetime.datetime(2026, 3, 1, tzinfo=datetime.UTC)


def are_equal(left, right):
    """Whether the symbols are equal; null equals nothing."""
    return left["symbol"] is not None and left["symbol"] == right["symbol"]


# By query: the text, the window of each side in seconds, and the condition of two rows.
EQUATED = {
    "near": (
        "left.symbol = right.symbol AND left.price - right.price BETWEEN -0.5 AND 0.5",
        (10, 10),
        lambda left, right: are_equal(left, right) and -0.5 <= left["price"] - right["price"] <= 0.5,
    ),
    "dearer": (
        "left.symbol = right.symbol AND left.price > right.price AND right.price > 3",
        (5, 20),
        lambda left, right: are_equal(left, right) and left["price"] > right["price"] > 3,
    ),
}
ANY = EQUATED | {
    "cheap": (
        "left.price < 1 AND right.price < 2",
        (3, 3),
        lambda left, right: left["price"] < 1 and right["price"] < 2,
    ),
}


def make_joins(queries):
    pairs = vd.JoinQuerySet(left=SCHEMA, right=SCHEMA)
    for name, (text, (left, right), _) in queries.items():
        pairs.add(name, text, within={"left": f"{left} seconds", "right": f"{right} seconds"})
    return pairs


def make_rows(n_rows, seed, n_symbols=4, disorder=0, nulls=0.15):
    """About one quote per second, in time order or out of order by some seconds; some have no symbol."""
    random = np.random.default_rng(seed)
    seconds = np.cumsum(random.choice([0, 1, 1, 2], n_rows)) + random.integers(0, disorder + 1, n_rows)
    times = [START + datetime.timedelta(seconds=int(each)) for each in seconds]
    symbols = [f"S{each}" for each in random.integers(0, n_symbols, n_rows)]
    is_null = np.random.default_rng([seed, 1]).random(n_rows) < nulls
    return pa.table(
        {
            "id": pa.array(range(n_rows), pa.int64()),
            "symbol": pa.array(symbols, pa.string(), mask=is_null),
            "price": random.integers(0, 20, n_rows) / 2,
            "ts": pa.array(times, pa.timestamp("us", "UTC")),
        }
    )


def cut(rows, n_batches, seed):
    """Micro-batches of any size; some may be empty."""
    random = np.random.default_rng(seed)
    ends = [0, *sorted(random.integers(0, rows.num_rows + 1, n_batches - 1).tolist()), rows.num_rows]
    return [rows.slice(start, end - start) for start, end in itertools.pairwise(ends)]


def expected_pairs(lefts, rights, queries):
    """All pairs that are within the window of the earlier row, by plain comparison."""
    found = []
    for name, (_, windows, holds) in queries.items():
        for left in lefts.to_pylist():
            for right in rights.to_pylist():
                seconds = (right["ts"] - left["ts"]).total_seconds()
                if (0 <= seconds <= windows[0] or 0 <= -seconds <= windows[1]) and holds(left, right):
                    found.append((name, left["id"], right["id"]))
    return sorted(found)


def step_locally(monitor, *batches):
    """The pairs of a monitor in this process, per micro-batch; None means that a side has no more rows."""
    found = []
    for left, right in zip(*batches, strict=True):
        rows = {name: side for name, side in (("left", left), ("right", right)) if side is not None}
        found += [tuple(row.values()) for row in monitor.step(**rows).to_pylist()]
    return sorted(found)


def as_tuples(pairs):
    return sorted(tuple(row) for row in pairs.collect())
