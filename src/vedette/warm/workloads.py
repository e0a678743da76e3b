"""Small workloads that call the kernels of the product with the types that they are called with.

A kernel is compiled when it is called, for the types of that call. These depend on the types of fields and keys, on the
index and on the options, rarely on the number of rows. So each workload runs a part of the product on few queries and
rows. `tests/warm/test_workloads.py` finds kernels that none of them calls.
"""

from __future__ import annotations

import contextlib
import datetime
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import vedette as vd
from vedette.errors import MissingPackageError
from vedette.files.text_records import read_records
from vedette.indexes.names import PLANNED_INDEXES

N_QUERIES, N_ROWS = 600, 400
MANY = 5_000  # queries or rows, where the way depends on their number
_WORDS = [f"word {number}" for number in range(50)]


def match_boxes() -> None:
    """Every index on numbers of fields that it supports: built, saved, loaded and changed."""
    for name, index in PLANNED_INDEXES.items():
        for n_fields in (1, 2, 4):
            if n_fields in index.n_fields:
                _match_boxes(name, n_fields, np.float64, n_rows=MANY)
    _match_boxes("Quadtree", 2, np.int64, MANY, step=100)  # many equal boxes
    _match_boxes(None, 1, np.int64)


def match_large_batches() -> None:
    """A batch that is joined with a grid file."""
    _match_boxes(None, 4, np.float64, 2 * MANY, MANY)


def match_texts() -> None:
    """Strings, decimals, times, arrays, and conditions that are no boxes."""
    queries = vd.QuerySet("s string, x double, y double, n bigint, d decimal(9, 2), t timestamp, tags array<string>")
    texts = [f"s = '{word}' AND x > {number}" for number, word in enumerate(_WORDS)]
    texts += [f"s LIKE 'word {number}%' AND n BETWEEN {number} AND {number + 9}" for number in range(40)]
    texts += [f"x > y AND d < {number}.5 AND s LIKE '%{number}%'" for number in range(40)]
    texts += [f"array_contains(tags, '{word}') OR n IN ({number}, 7)" for number, word in enumerate(_WORDS)]
    texts += [f"array_contains(tags, '{word}') AND x < {number} AND y > x" for number, word in enumerate(_WORDS)]
    texts += [f"t > TIMESTAMP '2026-01-01 00:00:{number}' OR upper(s) = 'W{number}'" for number in range(10, 30)]
    texts += [f"ST_DWithin(ST_Point(x, y), ST_Point({number}, {number}), 500, true)" for number in range(40)]
    queries.add_many([f"query {number}" for number in range(len(texts))], texts)
    words = [_WORDS[number % 50] for number in range(N_ROWS)]
    rows = pa.table(
        {
            "s": words,
            "x": _numbers(N_ROWS),
            "y": _numbers(N_ROWS),
            "n": pa.array(range(N_ROWS), pa.int64()),
            "d": pa.array(range(N_ROWS), pa.int64()).cast(pa.decimal128(19, 0)).cast(pa.decimal128(9, 2)),
            "t": pa.array(range(N_ROWS), pa.int64()).cast(pa.timestamp("us", "UTC")),
            "tags": [[word, "word 1"] for word in words],
        }
    )
    queries.match(rows)
    narrow = vd.QuerySet("n bigint, tags array<string>")
    narrow.add_many(np.arange(50), [f"n = {number} AND array_contains(tags, 'word 1')" for number in range(50)])
    narrow.match(pa.concat_tables([rows] * (MANY // N_ROWS + 1)))  # with a table of short strings
    queries.match_one({"s": "word 1", "x": 40.0, "y": 1.0, "n": 7, "tags": ["word 1", "word 2"]})
    queries.remove_many([f"query {number}" for number in range(30)])
    queries.replace("query 40", "x BETWEEN 1 AND 2 OR y BETWEEN 1 AND 2")
    vd.QuerySet.from_bytes(queries.to_bytes()).match(rows)


def watch_borders() -> None:
    """Border monitoring with keys and times of each type, and with each option."""
    numbers, texts = np.arange(N_ROWS) // 2, [f"key {number // 2}" for number in range(N_ROWS)]
    options: list[dict[str, Any]] = [
        {},
        {"dwell": 2, "expire_after": 20},
        {"margin": 5, "late": "apply"},
        {"cross": True},
    ]
    for n_fields, n_queries in ((1, N_QUERIES), (2, N_QUERIES), (2, MANY)):
        for kind, dtype in (("bigint", np.int64), ("double", np.float64)):
            for each in options:
                _watch_borders(n_fields, n_queries, f"time {kind}", dtype, "key bigint", numbers, each)
    _watch_borders(2, N_QUERIES, "time timestamp", np.dtype("datetime64[us]"), "key string", texts, {})
    _watch_moving_bounds(texts)
    for key in (7, "key"):
        for time in (1, 1.0, datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)):
            _watch_single_rows(key, time)
    for kind, dtype in (("bigint", np.int64), ("double", np.float64)):
        _watch_own_options(f"time {kind}", np.arange(9).astype(dtype), range(2, 7))
    moments = np.arange(9).astype("datetime64[s]").astype("datetime64[us]")
    _watch_own_options("time timestamp", moments, [f"{number} seconds" for number in range(2, 7)])


def join_windows() -> None:
    """Window joins: equalities, comparisons, differences; windows of time and of rows."""
    for time in ("bigint", "double"):
        for key, dtype in (("double", np.float64), ("bigint", np.int64)):
            _join_windows(time, key, dtype)


def join_bands() -> None:
    """Band joins: both reports, few and many bands, and bands that change."""
    for report in ("pairs", "queries"):
        for n_rows, n_bands, width in (
            (N_ROWS, 5, 1.0),
            (N_ROWS, MANY, 0.01),
            (N_ROWS, N_QUERIES, 300.0),
            (9, MANY, 0.01),
        ):
            _join_bands(report, n_rows, n_bands, width)


def join_moving() -> None:
    """Moving joins in two and three dimensions, their calendar of pairs, and zones."""
    for n_dims in (2, 3):
        _join_moving(n_dims)


def read_files() -> None:
    """Records of text files, and rows on their way to Spark's shards."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rows.csv")
        path.write_text("x,y\n1,2\n")
        list(read_records(path, is_csv=True))
    with contextlib.suppress(MissingPackageError):
        from vedette.spark.shards.packing import split  # needs PySpark

        for keys in (pa.array(range(N_ROWS), pa.int64()), pa.array(map(str, range(N_ROWS)))):
            list(split(pa.record_batch({"key": keys}), n_lines=4))


WORKLOADS: dict[str, Callable[[], None]] = {
    "match: every index": match_boxes,
    "match: large batches": match_large_batches,
    "match: texts": match_texts,
    "border": watch_borders,
    "window join": join_windows,
    "band join": join_bands,
    "moving join": join_moving,
    "files and shards": read_files,
}


def _numbers(n: int, seed: int = 1) -> NDArray[np.float64]:
    return 1000 * np.random.default_rng(seed).random(n)


def _match_boxes(
    index: str | None, n_fields: int, dtype: Any, n_queries: int = N_QUERIES, n_rows: int = N_ROWS, step: int = 1
) -> None:
    fields = [f"x{number}" for number in range(n_fields)]
    type_ = "double" if dtype is np.float64 else "bigint"
    queries = vd.QuerySet(", ".join(f"{field} {type_}" for field in fields), index=index)
    lows = {field: (_numbers(n_queries, seed) // step * step).astype(dtype) for seed, field in enumerate(fields)}
    width = 0 if index in ("Keyed", "KeyedRuns") else {1: 20, 2: 50}.get(n_fields, 300)
    bounds = {field: (low, low + (width if field == "x0" else 300)) for field, low in lows.items()}
    queries.add_boxes(np.arange(n_queries), bounds)
    rows = {field: _numbers(n_rows, seed + 9).astype(dtype) for seed, field in enumerate(fields)}
    row = {field: values[0].item() for field, values in rows.items()}
    queries.match(rows).to_arrow()
    queries.match_one(row)
    loaded = vd.QuerySet.from_bytes(queries.to_bytes())
    loaded.remove_many(np.arange(40))
    loaded.add_boxes(np.arange(n_queries, n_queries + 5), {"x0": (np.arange(5), np.arange(5) + 1)})
    loaded.match(rows)
    loaded.match({field: values[:3] for field, values in rows.items()})
    loaded.match_one(row)


def _watch_borders(
    n_fields: int, n_queries: int, time: str, dtype: Any, key: str, keys: Any, options: dict[str, Any]
) -> None:
    fields = ["x", "y"][:n_fields]
    queries = vd.QuerySet(f"{key}, {time}, {', '.join(f'{field} double' for field in fields)}")
    lows = {field: _numbers(n_queries, seed) for seed, field in enumerate(fields)}
    width = 20 if n_queries == N_QUERIES else 200
    queries.add_boxes(np.arange(n_queries), {field: (low, low + width) for field, low in lows.items()})
    queries.add_many(
        [n_queries, n_queries + 1], ["x BETWEEN 1 AND 20 OR x BETWEEN 20 AND 90", "x > 500 AND x * 2 < 1500"]
    )
    monitor = queries.border(key="key", time="time", **options)
    for step in range(4):
        places = {field: np.repeat(_numbers(N_ROWS // 2, seed + 9), 2) + step for seed, field in enumerate(fields)}
        times = (np.arange(N_ROWS) % 2 + 2 * step).astype(np.int64).astype(dtype)
        monitor.step({"key": keys, "time": times, **places})
        if step == 1:
            queries.remove_many(np.arange(40))
            queries.add_boxes(np.arange(n_queries + 2, n_queries + 7), {"x": (np.arange(5), np.arange(5) + 100)})
    other = queries.border(key="key", time="time", **options)
    other.load(monitor.save())
    later = {"key": keys, "time": np.full(N_ROWS, 9).astype(np.int64).astype(dtype)}
    list(other.step_batches(later | {field: _numbers(N_ROWS, 5) for field in fields}, max_bytes=1))
    if "expire_after" in options:
        other.advance(1000)


def _watch_own_options(time: str, times: NDArray[Any], durations: Sequence[Any]) -> None:
    """Queries with options of their own, and batches of other keys than those whose events are open."""
    queries = vd.QuerySet(f"key bigint, {time}, x double")
    lows, own = _numbers(N_QUERIES), [durations[number % 5] for number in range(N_QUERIES)]
    for name in ("cooldown", "dwell", "expire_after"):
        ids = [f"{name} {number}" for number in range(N_QUERIES)]
        options: dict[str, Any] = {name: own}
        queries.add_boxes(ids, {"x": (lows, lows + 90)}, **options)
    monitor = queries.border(key="key", time="time")
    for step in range(9):
        keys = np.arange(N_ROWS)[step % 2 :: 2 - step // 6]
        monitor.step({"key": keys, "time": times[np.full(len(keys), step)], "x": _numbers(len(keys), step)})


def _watch_single_rows(key: Any, time: Any) -> None:
    """Rows that come one by one or two at a time, of known and new keys, as columns of each form."""
    types = {int: "bigint", float: "double", str: "string", datetime.datetime: "timestamp"}
    queries = vd.QuerySet(f"key {types[type(key)]}, time {types[type(time)]}, s string, x double, y double, n bigint")
    for seed, fields in enumerate((["x"], ["x", "y"], ["n"], ["x", "y", "n"])):
        lows = {field: _numbers(N_QUERIES, seed) // 1 for field in fields}
        bounds = {
            field: (low.astype(np.int64), low.astype(np.int64) + 90) if field == "n" else (low, low + 90)
            for field, low in lows.items()
        }
        queries.add_boxes(np.arange(N_QUERIES) + seed * N_QUERIES, bounds)
    texts = [f"s = '{word}' AND x > {number}" for number, word in enumerate(_WORDS)]
    texts += [f"x * 2 > {number} OR n IN ({number}, 7)" for number in range(40)]
    queries.add_many(np.arange(len(texts)) + 9 * N_QUERIES, texts)
    monitor = queries.border(key="key", time="time")
    for step in range(12):
        row = {"key": [key], "time": [time], "s": [_WORDS[step]], "x": [80.0 * step], "y": [9.0 * step], "n": [step]}
        if step % 4 > 1:
            row = {name: values * 2 for name, values in row.items()} | {"key": [key, key * (step + 2)]}
        monitor.step(row if step % 2 else pa.table(row))
        if step == 6:
            queries.remove_many(np.arange(40))


def _watch_moving_bounds(keys: Sequence[str]) -> None:
    """Bounds that move with now(), cooldowns, and events that carry columns and ids."""
    queries = vd.QuerySet("key string, time timestamp, x double")
    texts = [f"time > now() - INTERVAL {n % 9 + 1} SECONDS AND x > {n}" for n in range(N_QUERIES)]
    queries.add_many(np.arange(N_QUERIES), texts)
    queries.add(N_QUERIES, "time < now() - INTERVAL 1 SECOND OR x < 5")
    monitor = queries.border(key="key", time="time", columns=["x"], cooldown="3 seconds")
    for step in range(4):
        times = (np.arange(N_ROWS) % 2 + 4 * step).astype("datetime64[s]").astype("datetime64[us]")
        monitor.step({"key": keys, "time": times, "x": _numbers(N_ROWS, step)})
    monitor.advance(datetime.datetime(1970, 1, 2, tzinfo=datetime.UTC))


def _join_windows(time: str, key: str, dtype: Any) -> None:
    stream = f"id bigint, time {time}, s string, x {key}, y double"
    queries = vd.JoinQuerySet(left=stream, right=stream)
    for number in range(80):
        queries.add(f"spread {number}", f"left.s = right.s AND left.x - right.x BETWEEN -{number} AND 9", within=5)
        queries.add(f"less {number}", f"left.x < right.x AND left.y > 9{number:02}", rows=50)
        queries.add(f"near {number}", f"left.x - right.x BETWEEN -1 AND {number} AND right.y > left.y", within=3)
        queries.add(f"equal {number}", f"left.x = right.x AND left.y < {number}", within=4)
    queries.add("all", "left.y > 999 AND right.y > 999", within=2)
    join = queries.window(left_time="time", right_time="time", left_id="id", right_id="id", event_id=True)
    for step in range(6):
        rows = [
            {
                "id": np.arange(N_ROWS) + step * N_ROWS,
                "time": np.full(N_ROWS, 4 * step, np.int64 if time == "bigint" else np.float64),
                "s": [_WORDS[number % 50] for number in range(N_ROWS)],
                "x": _numbers(N_ROWS, side + step).astype(dtype),
                "y": _numbers(N_ROWS, side + step + 9),
            }
            for side in range(2)
        ]
        join.step(left=rows[0], right=rows[1])
    queries.remove("all")
    other = queries.window(left_time="time", right_time="time", left_id="id", right_id="id")
    other.load(join.save())


def _join_bands(report: Any, n_rows: int, n_bands: int, width: float) -> None:
    queries = vd.BandQuerySet()
    lows = _numbers(n_bands) - 500
    queries.add_many(np.arange(n_bands), lows, lows + width)
    monitor = queries.monitor(report=report)
    ids = np.arange(n_rows)
    monitor.insert(left={"id": ids, "value": _numbers(n_rows, 2)}, right={"id": ids, "value": _numbers(n_rows, 3)})
    monitor.insert(left={"id": ids[:5] + n_rows, "value": _numbers(5, 4)})
    monitor.delete(left=ids[:50], right=ids[:3])
    queries.add_many(np.arange(n_bands, n_bands + 40), np.arange(40.0), np.arange(40.0) + 1)
    queries.remove_many(np.arange(3))
    monitor.refresh()
    queries.monitor(report=report).load(monitor.save())


def _join_moving(n_dims: int) -> None:
    names = "xyz"[:n_dims]

    def objects(n: int, seed: int, crowded: float = 5) -> dict[str, Any]:
        columns: dict[str, Any] = {"id": np.arange(n)}
        for number, name in enumerate(names):
            place, speed = _numbers(n, seed + number) / crowded, _numbers(n, seed + number + 5) / 500 - 1
            columns |= {f"{name}_low": place, f"{name}_high": place + 9}
            columns |= {f"v{name}_low": speed, f"v{name}_high": speed}
        return columns

    join = vd.MovingJoin(max_update_interval=10)
    join.load(a=objects(N_ROWS, 1), b=objects(N_ROWS, 2), time=0)
    join.pairs(at=1)
    for time in range(2, 6):
        join.update(a=objects(N_ROWS // time, 10 * time), b=objects(9, 20 * time), time=time)
        join.events(until=time)
    join.update(a=objects(N_ROWS // 4, 3, crowded=500), time=6)
    join.update(remove_a=np.arange(N_ROWS - 9), time=7)
    join.update(b=objects(9, 5), time=8)
    other = vd.MovingJoin(max_update_interval=10)
    other.load(join.save())
    other.pairs(at=9)
