"""The cost of each construct of the language: evaluated for pairs of a row and a query, and found by an index."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

import vedette as vd
from benchmarks.harness import AnswersDifferError, Bench, experiment

SCHEMA = (
    "symbol string, price double, volume bigint, fee decimal(10,2), small int, live boolean, day date, ts timestamp, "
    "tags array<string>, o struct<a: bigint, s: string>"
)
NOW = datetime(2024, 2, 1, tzinfo=UTC)
N_VALUES = 1000  # different literals of a condition
# Conditions with a place for a literal: a number below N_VALUES, as {0}, {0:04d} and {1}, a tenth of it.
CONSTRUCTS = (
    "price < {1}",
    "symbol = 'S{0:04d}'",
    "symbol IN ('S{0:04d}', 'X')",
    "fee BETWEEN {1} AND {1} + 0.5",
    "symbol LIKE 'S{0:04d}%'",
    "symbol LIKE '%{0:04d}'",
    "symbol ILIKE 's{0:04d}'",
    "contains(symbol, '{0:04d}')",
    "symbol RLIKE '^S{0:04d}$'",
    "regexp_extract(symbol, '([0-9]+)', 1) = '{0:04d}'",
    "lower(symbol) = 's{0:04d}'",
    "substring(symbol, 2, 4) = '{0:04d}'",
    "concat(symbol, 'x') = 'S{0:04d}x'",
    "split_part(symbol, 'S', 2) = '{0:04d}'",
    "length(symbol) = {0}",
    "levenshtein(symbol, 'S{0:04d}') < 1",
    "md5(symbol) = '{0:04d}'",
    "price * volume > {0}",
    "price + 1 < {1}",
    "volume % 1000 = {0}",
    "volume & 1023 = {0}",
    "abs(price) < {1}",
    "round(price, 1) = {1}",
    "sqrt(price) < {1} / 10",
    "power(price, 2) < {0}",
    "sin(price) > {0} / 1001.0",
    "price > volume + {0}",
    "CAST(price AS int) = {0}",
    "CAST(symbol AS string) = 'S{0:04d}'",
    "CAST(fee AS double) = {1}",
    "coalesce(price, 0) < {1}",
    "CASE WHEN live THEN price ELSE 0 END > {1}",
    "day = DATE '2024-01-01' + {0}",
    "ts > TIMESTAMP '2024-01-01 00:00:00' + INTERVAL {0} HOURS",
    "ts - INTERVAL 1 MONTH < TIMESTAMP '2024-01-01 00:00:00' + INTERVAL {0} HOURS",
    "ts > now() - INTERVAL {0} HOURS",
    "CAST(ts AS DATE) = DATE '2024-01-01' + {0}",
    "date_trunc('HOUR', ts) = TIMESTAMP '2024-01-01 00:00:00' + INTERVAL {0} HOURS",
    "hour(ts) * 60 + minute(ts) = {0}",
    "datediff(day, DATE '2024-01-01') = {0}",
    "date_format(ts, 'yyyy-MM-dd HH') = '2024-01-01 {0}'",
    "array_contains(tags, 'T{0:04d}')",
    "exists(tags, x -> x > 'T{0:04d}' AND x < 'T{0:04d}5')",
    "forall(tags, x -> x <> 'T{0:04d}')",
    "size(tags) = {0}",
    "tags[0] = 'T{0:04d}'",
    "o.a = {0}",
    "lower(o.s) = 's{0:04d}'",
)


@experiment("constructs")
def constructs(bench: Bench) -> None:
    """One condition of each kind, 500 queries of a shape, over 500 rows."""
    n_queries, n_rows = bench.size(500, 100), bench.size(500, 200)
    rows = _rows(n_rows)
    for construct in CONSTRUCTS:
        texts = [construct.format(value % N_VALUES, value % N_VALUES / 10) for value in range(n_queries)]
        found, evaluated = vd.QuerySet(SCHEMA), vd.QuerySet(SCHEMA)
        found.add_many(np.arange(n_queries), texts)
        evaluated.add_many(np.arange(n_queries), [f"coalesce({text}, FALSE)" for text in texts])  # has no box
        if _matches(found, rows, NOW) != _matches(evaluated, rows, NOW):
            raise AnswersDifferError(f"{construct} has other matches with an index than without")
        seconds = [_seconds(bench, partial(each.match, rows, now=NOW)) for each in (evaluated, found)]
        case, scale = f"`{construct}`", 1e9 / (n_rows * n_queries)
        bench.note("constructs", case, "ns per row and query, evaluated for all", scale * seconds[0])
        bench.note("constructs", case, f"ns per row and query, {_index_of(found)}", scale * seconds[1])


def _matches(queries: vd.QuerySet, rows: pa.Table, now: datetime) -> list[tuple[int, int]]:
    hits = queries.match(rows, now=now)
    return sorted(zip(hits.rows.tolist(), hits.positions.tolist(), strict=True))


def _index_of(queries: vd.QuerySet) -> str:
    first = queries.explain().splitlines()[1]
    return "every row is a candidate" if "every row" in first else f"by {first.split(': ')[1].split(',')[0]}"


def _seconds(bench: Bench, call: Callable[[], Any]) -> float:
    call()
    runs = []
    for _ in range(bench.repeats):
        start = time.process_time()
        call()
        runs.append(time.process_time() - start)
    return statistics.median(runs)


def _rows(n: int) -> pa.Table:
    source = np.random.default_rng(9)
    numbers = source.integers(0, N_VALUES, n)
    names = [f"S{number:04d}" for number in numbers]
    tags = [[f"T{tag:04d}" for tag in each] for each in source.integers(0, N_VALUES, (n, 3))]
    seconds = source.integers(1_704_067_200, 1_707_667_200, n)
    return pa.table(
        {
            "symbol": names,
            "price": source.random(n) * 100,
            "volume": source.integers(0, 10_000, n),
            "fee": pa.array(source.integers(0, 10_000, n) / 100).cast(pa.decimal128(10, 2), safe=False),
            "small": pa.array(numbers, pa.int32()),
            "live": source.random(n) < 0.5,
            "day": pa.array(seconds // 86_400, pa.int32()).cast(pa.date32()),
            "ts": pa.array(seconds, pa.timestamp("s", "UTC")).cast(pa.timestamp("us", "UTC")),
            "tags": pa.array(tags, pa.list_(pa.string())),
            "o": pa.array([{"a": int(number), "s": name} for number, name in zip(numbers, names, strict=True)]),
        }
    )
