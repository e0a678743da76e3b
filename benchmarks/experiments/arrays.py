"""Conditions on arrays: a million queries `array_contains(tags, ?) AND price < ?`, against DuckDB."""

from __future__ import annotations

import statistics
from functools import partial
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

import vedette as vd
from benchmarks import N_THREADS
from benchmarks.answers import Answer
from benchmarks.harness import AnswersDifferError, Bench, experiment

TAGS_PER_ROW = 5
QUERIES_PER_TAG = 20
SHARE = 0.1  # of a tag's queries whose limit is above a row's price, on average
SAMPLE = 200  # rows checked with brute force
_UNNESTED = "SELECT row, price, unnest(tags) AS tag FROM rows"
_DISTINCT = "SELECT row, price, unnest(list_distinct(tags)) AS tag FROM rows"


@experiment("arrays")
def arrays(bench: Bench) -> None:
    """A million queries `array_contains(tags, ?) AND price < ?`, 200k rows with five tags each."""
    n_queries, n_rows = bench.size(1_000_000, 20_000), bench.size(200_000, 5_000)
    queries, rows = _make(n_queries, n_rows)
    ours = vd.QuerySet("tags array<string>, price double")
    texts = [
        f"array_contains(tags, '{tag}') AND price < {limit!r}"
        for tag, limit in zip(queries["tag"].to_pylist(), queries["price_below"].to_pylist(), strict=True)
    ]
    ours.add_many(np.arange(n_queries), texts)
    connection = duckdb.connect()
    connection.execute(f"SET threads = {N_THREADS}")
    for name, table in (("queries", queries), ("rows", rows)):
        connection.register("incoming", table)
        connection.execute(f"CREATE TABLE {name} AS SELECT * FROM incoming")
        connection.unregister("incoming")
    connection.execute(f"CREATE TABLE elements AS {_UNNESTED}")
    contestants = {
        "vedette": partial(ours.match, rows),
        "DuckDB, arrays unnested in the join": partial(_join, connection, f"({_UNNESTED})"),
        "DuckDB, a table of elements": partial(_join, connection, "elements"),
        "DuckDB, distinct elements unnested in the join": partial(_join, connection, f"({_DISTINCT})", "SELECT"),
    }
    n_pairs = _check(contestants, queries, rows)
    seconds = {name: statistics.median(runs) for name, runs in bench.time_in_turns(contestants).items()}
    case = f"{n_queries:,} queries, {n_rows:,} rows"
    for name, value in seconds.items():
        bench.record("arrays", case, name, value, n_queries=n_queries, n_rows=n_rows, n_pairs=n_pairs)
    best = min(value for name, value in seconds.items() if name != "vedette")
    bench.verdict("arrays", case, "times faster than the best of DuckDB", best / seconds["vedette"], 10, "at least")
    connection.close()


def _make(n_queries: int, n_rows: int) -> tuple[pa.Table, pa.Table]:
    source = np.random.default_rng(5)
    words = np.array([f"tag-{number}" for number in range(n_queries // QUERIES_PER_TAG)])
    queries = pa.table(
        {
            "query": np.arange(n_queries, dtype=np.int32),
            "tag": source.choice(words, n_queries),
            "price_below": source.uniform(0, 100, n_queries),
        }
    )
    chosen = source.integers(0, len(words), (n_rows, TAGS_PER_ROW))
    starts = np.arange(0, n_rows * TAGS_PER_ROW + 1, TAGS_PER_ROW, dtype=np.int32)
    tags = pa.ListArray.from_arrays(starts, pa.array(words[chosen.ravel()]))
    price = source.uniform(100 - 200 * SHARE, 100, n_rows)
    return queries, pa.table({"row": np.arange(n_rows, dtype=np.int32), "tags": tags, "price": price})


def _join(connection: duckdb.DuckDBPyConnection, elements: str, select: str = "SELECT DISTINCT") -> pa.Table:
    """Each pair once: a row may have a tag twice."""
    joined = f"{select} row, query FROM {elements} e JOIN queries q ON e.tag = q.tag AND e.price < q.price_below"
    return connection.sql(joined).to_arrow_table()


def _check(contestants: dict[str, Any], queries: pa.Table, rows: pa.Table) -> int:
    """Compare all answers, and a sample of ours with brute force. Returns the number of pairs."""
    answers = {}
    for name, run in contestants.items():
        found = run()
        if name == "vedette":
            answers[name] = Answer(found.positions, starts=found.starts)
        else:
            answers[name] = Answer(found["query"].to_numpy(), found["row"].to_numpy())
    digests = {name: answer.digest(rows.num_rows) for name, answer in answers.items()}
    if len(set(digests.values())) > 1:
        raise AnswersDifferError(f"answers differ: {digests}")
    tags, limits = queries["tag"].to_numpy(zero_copy_only=False), queries["price_below"].to_numpy()
    chosen = np.linspace(0, rows.num_rows - 1, SAMPLE).astype(np.int64)
    ours = answers["vedette"].of_rows(chosen)
    for row in chosen.tolist():
        one = rows.slice(row, 1).to_pylist()[0]
        if ours.get(row, []) != np.flatnonzero(np.isin(tags, one["tags"]) & (one["price"] < limits)).tolist():
            raise AnswersDifferError(f"row {row} has other queries by brute force")
    return digests["vedette"].n_pairs
