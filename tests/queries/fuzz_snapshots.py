"""Saved sets and states, changed at random under a valid checksum, must be refused or answer; they must never crash.

The full run has 10,000 mutations of sets and 2,000 of states. It takes about ten minutes on two cores, prints how many
were refused and how many answered, and exits with 1 if anything else happened. From the root of the repository:

    python tests/queries/fuzz_snapshots.py

`--first-seed 100000` tries other mutations. `--only Keyed` names a specimen; with `--seed 4711` it runs one mutation in
this process. Otherwise mutations run in subprocesses under a limit of memory and time, so that a crash is counted and
the run goes on. `test_fuzzed_snapshots.py` runs some of them.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import decimal
import json
import multiprocessing
import random
import resource
import signal
import sys
import time
import traceback
import zlib
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, is_dataclass
from typing import Any

import numpy as np
import pyarrow as pa

import vedette as vd
from vedette.language.residual import Residual
from vedette.queries import snapshot

SECONDS = 120  # for one mutation, load of a busy machine included
MEMORY = 12 << 30  # address space of a process that loads; Numba and Arrow reserve much more than they use
EXTREMES = (
    0,
    1,
    -1,
    2,
    63,
    64,
    127,
    128,
    255,
    256,
    32767,
    32768,
    2**31 - 1,
    -(2**31),
    2**40,
    2**62,
    2**63 - 1,
    -(2**63),
)
HOSTILE = (
    *(None, True, False, 0, -1, 1, 2**31, 2**63, 2**64, -(2**63), 10**30, 1.5, 1e308, float("nan"), float("inf")),
    *("", "x", "None", "é\ud800", "9" * 5000, [], {}, [[]], {"array": 0}, {"array": -1}, {"list": []}, {"tuple": [1]}),
    *({"strings": [{"array": 0}, {"array": 1}]}, {"integers": ["1" * 5000]}, {"integers": ["7"]}, {"dict": [[[], 1]]}),
    *(
        {"class": "Scan", "fields": {}},
        {"class": "QuerySet", "fields": {}},
        {"class": [], "fields": 1},
        {"residual": 1},
    ),
)


@dataclass(frozen=True)
class Specimen:
    """Saved content, and its use after a mutation: it is loaded, matched and changed."""

    name: str
    data: bytes
    use: Callable[[bytes], Any]  # raises SnapshotError, or returns answers
    change: Callable[[bytes, int], bytes] | None = None  # how it is changed; None: by `mutate`


# Specimens.

RANDOM = np.random.default_rng(5)
N_ROWS = 1500  # enough for screens and for batches that are joined
ROWS: dict[str, Any] = {
    "x": RANDOM.uniform(-5, 105, N_ROWS),
    "y": RANDOM.uniform(-5, 105, N_ROWS),
    "z": RANDOM.integers(-3, 40, N_ROWS),
    "k": [f"k{number}" for number in RANDOM.integers(0, 40, N_ROWS)],
    "t": np.arange(N_ROWS),
    "d": [decimal.Decimal(int(number)) * 10**20 for number in RANDOM.integers(-9, 9, N_ROWS)],
    "e": [decimal.Decimal(int(number)) for number in RANDOM.integers(-9, 30, N_ROWS)],
    "s": [datetime.date(2024, 1, 1 + int(number)) for number in RANDOM.integers(0, 9, N_ROWS)],
    "u": [datetime.datetime(2024, 1, 1 + n % 4, n % 24, tzinfo=datetime.UTC) for n in range(N_ROWS)],
    "b": RANDOM.random(N_ROWS) < 0.5,
}
SCHEMA = "x double, y double, z bigint, k string, t bigint"


def use_set(data: bytes) -> Any:
    """Load, match a batch and a row, step a monitor, change, match, compact, match, save, load."""
    queries = vd.QuerySet.from_bytes(data)
    answers = _match(queries)
    try:
        monitor = queries.border(key="k", time="t")
        events = monitor.step({name: values[:300] for name, values in ROWS.items()})
        _change(queries)
        monitor.step({name: values[300:400] for name, values in ROWS.items()} | {"t": np.arange(300, 400)})
    except vd.VedetteError as error:  # a schema without these fields
        events = type(error)
        _change(queries)
    _match(queries)
    queries.compact()
    again = vd.QuerySet.from_bytes(queries.to_bytes())
    _match(again)
    return answers, str(events)


def _match(queries: Any) -> Any:
    try:
        found = queries.match(ROWS)
        one = queries.match_one({name: values[7] for name, values in ROWS.items()})
    except vd.VedetteError as error:
        return type(error)
    queries.explain()
    return found.starts.tolist(), np.sort(found.positions).tolist(), found.to_arrow().num_rows, sorted(map(str, one))


def _change(queries: Any) -> None:
    ids = queries.ids.to_pylist()
    active = [each for each in ids[:50] if each in queries]
    new = max(ids) + 1 if ids and isinstance(ids[0], int) else "new"
    text = f"{queries.schema.names[0]} IS NOT NULL"
    for change in (
        lambda: queries.remove_many(list(dict.fromkeys(active[: len(active) // 2]))),
        lambda: queries.replace(active[-1], text),
        lambda: queries.add(new, text),
        lambda: queries.remove(new),
    ):
        with contextlib.suppress(vd.VedetteError, IndexError):
            change()


def query_sets() -> Iterable[Specimen]:
    n = 700
    lows, more = RANDOM.uniform(0, 100, n), RANDOM.uniform(0, 100, n)
    widths = RANDOM.exponential(3, n)
    ids = [f"q{number}" for number in range(n)]
    keys = [f"k{number}" for number in RANDOM.integers(0, 40, n)]
    one = {"x": (lows, lows + widths)}
    two = {**one, "y": (more, more + 5 * widths)}
    three = {**two, "z": (np.arange(n) % 20, np.arange(n) % 20 + 9)}
    keyed = {"k": (keys, keys), **one}
    wide = {"x": (lows, lows + 60), "y": (more, more + 60), "z": (np.zeros(n, int), np.arange(n) % 30 + 5)}
    coarse = {name: (np.floor(ends[0] / 10) * 10, np.floor(ends[0] / 10) * 10 + 20) for name, ends in two.items()}
    for name, index, bounds, named in (
        ("Scan", "Scan", {name: (ends[0][:60], ends[1][:60]) for name, ends in three.items()}, ids[:60]),
        ("Lists", "Lists", {"k": (keys, keys)}, ids),
        ("Buckets", "Buckets", one, np.arange(n)),
        ("Buckets many", "Buckets", {"x": (lows, lows + 40 * widths)}, ids),
        ("Keyed", "Keyed", keyed, ids),
        ("KeyedRuns", "KeyedRuns", {"k": (keys, keys), "x": (np.full(n, -np.inf), lows)}, ids),
        ("KeyedRuns ranges", "KeyedRuns", keyed, ids),
        ("Quadtree", "Quadtree", two, np.arange(n) * 3),
        ("Quadtree grouped", "Quadtree", coarse, ids),
        ("Bitmaps", "Bitmaps", wide, ids),
        ("Verified", "Verified", {**keyed, "z": three["z"]}, ids),
        ("Verified Quadtree", "Verified", three, ids),
        ("Dual", "Dual", wide, ids),
        ("R-tree", "R-tree", two, ids),
        ("planned", None, two, ids),
    ):
        queries = vd.QuerySet(SCHEMA, index=index)
        queries.add_boxes(named, bounds)
        yield Specimen(name, queries.to_bytes(), use_set)
    yield Specimen("changed", _changed_set().to_bytes(), use_set)
    yield Specimen("residuals", _set_with_residuals().to_bytes(), use_set)
    yield Specimen("geofences", _geofences().to_bytes(), use_set, mutate_polygons)
    yield Specimen("empty", vd.QuerySet(SCHEMA).to_bytes(), use_set)


def _changed_set() -> vd.QuerySet:
    """Several parts, removed queries, some of them retained, and a screen."""
    queries = vd.QuerySet(SCHEMA)
    queries.retain()
    queries.add_boxes(np.arange(3000), {"x": (RANDOM.uniform(0, 100, 3000), np.full(3000, 101.0))})
    queries.match(ROWS)
    queries.add_many(np.arange(5000, 5020), [f"x BETWEEN {n} AND {n}.5" for n in range(20)])
    queries.remove_many(np.arange(0, 200, 3))
    queries.replace(7, "y > 50 AND k = 'k3' OR z IS NULL")
    queries.match(ROWS)
    queries.remove(5003)
    return queries


def _set_with_residuals() -> vd.QuerySet:
    queries = vd.QuerySet(f"{SCHEMA}, d decimal(30,2), e decimal(9,2), s date, u timestamp, b boolean")
    polygon = "POLYGON ((0 0, 40 0, 40 30, 0 0))"
    texts = [
        "x > y", "x + 1 > y AND z < 20", "k LIKE 'k1%'", "k LIKE '%2' AND x > 3", "lower(k) = 'k4' OR x < y",
        f"ST_Contains(ST_GeomFromText('{polygon}'), ST_Point(x, y))", "ST_DWithin(ST_Point(x, y), ST_Point(3, 4), 20)",
        "d > 12345678901234567890.25", "d * 2 > 98765432109876543210", "e < 12.5", "s < DATE'2024-01-02'", "b", "NOT b",
        "u > TIMESTAMP'2024-01-02 03:04:05'", "CASE WHEN x > 3 THEN y > 4 ELSE z > 5 END", "round(x, 1) = 3.5",
        "coalesce(z, 3) IN (1, 2, 3)", "hour(u) = 3", "length(k) > 2", "true", "x IS NULL", "substring(k, 2, 1) = '3'",
    ]  # fmt: skip
    texts += [f"x * {number} > y AND x < {number}" for number in range(40)]
    queries.add_many([f"q{number}" for number in range(len(texts))], texts)
    return queries


def _geofences() -> vd.QuerySet:
    """Three of one shape, and one with a margin of distance."""
    queries = vd.QuerySet(SCHEMA)
    polygons = ["POLYGON ((0 0, 40 0, 40 30, 0 0))", "POLYGON ((50 50, 90 50, 90 90, 50 90, 50 50))", SQUARE]
    texts = [f"ST_Contains(ST_GeomFromText('{polygon}'), ST_Point(x, y))" for polygon in polygons]
    queries.add_many(["a", "b", "c"], texts)
    queries.add("d", f"ST_Intersects(ST_GeomFromText('{SQUARE}'), ST_Point(x, y)) AND z > 3")
    return queries


def use_joins(data: bytes) -> Any:
    """Load, join, change, join, save, load."""
    joins = vd.JoinQuerySet.from_bytes(data)
    joins.explain()
    try:
        answers = _join(joins)
        ids = joins.ids.to_pylist()
        joins.remove_many([each for each in ids[:6] if each in joins])
        joins.add("new", "left.x < right.x", rows=3)
        _join(joins)
    except vd.VedetteError as error:
        answers = type(error)
    vd.JoinQuerySet.from_bytes(joins.to_bytes())
    return answers


def _join(joins: Any) -> Any:
    join = joins.window(**{f"{stream}_time": "t" for stream in joins.streams})
    found = []
    for start in (0, 60):
        some = {name: values[start : start + 60] for name, values in ROWS.items()}
        found.append(join.step(**dict.fromkeys(joins.streams, some)).num_rows)
    return found


def join_sets() -> Iterable[Specimen]:
    joins = vd.JoinQuerySet(left=SCHEMA, right=SCHEMA)
    joins.add("equal", "left.k = right.k AND left.x - right.x BETWEEN -5 AND 5", within=10)
    joins.add("less", "left.x < right.x AND left.y > 90 AND right.y < 10", rows=5)
    joins.add("apart", "abs(left.x - right.y) > 95", rows={"left": 3, "right": 8})
    joins.add("rest", "left.x * right.x > 100 AND left.k = right.k AND left.z = right.z", within=5)
    joins.add(
        "either", "left.z = right.z AND (left.x > 99 OR right.x > 99) OR left.k = right.k AND right.y < 1", rows=9
    )
    joins.add_many(
        [f"q{n}" for n in range(30)],
        [f"left.x > {n} AND left.z = right.z AND right.y < {n}" for n in range(30)],
        rows=4,
    )
    joins.remove("q7")
    yield Specimen("joins", joins.to_bytes(), use_joins)
    three = vd.JoinQuerySet(left=SCHEMA, middle=SCHEMA, right=SCHEMA)
    three.add("chain", "left.k = middle.k AND middle.z = right.z AND left.x < right.x", rows=5)
    three.add("cross", "left.x > 95 AND middle.x > 95 AND right.x > 95", rows=4)
    yield Specimen("joins of three", three.to_bytes(), use_joins)


def use_bands(data: bytes) -> Any:
    """Load, join, change, join, save, load."""
    bands = vd.BandQuerySet.from_bytes(data)
    for report in ("pairs", "queries"):
        join = bands.monitor(report=report)
        join.insert(left={"id": np.arange(50), "value": ROWS["x"][:50]})
        answers = join.insert(right={"id": np.arange(50), "value": ROWS["y"][:50]})
    ids = bands.ids.to_pylist()
    with contextlib.suppress(vd.VedetteError, IndexError):
        bands.remove_many(ids[:40])
        bands.replace(ids[-1], -1.0, 1.0)
        bands.add_many(np.arange(90_000, 90_030), np.arange(30.0), np.arange(30.0) + 2)
    join.delete(right=np.arange(20))
    join.insert(right={"id": np.arange(20), "value": ROWS["y"][100:120]})
    vd.BandQuerySet.from_bytes(bands.to_bytes())
    return answers.num_rows


def band_sets() -> Iterable[Specimen]:
    bands = vd.BandQuerySet()
    bands.retain()
    lows = RANDOM.uniform(-100, 100, 600)
    bands.add_many(np.arange(600), lows, lows + RANDOM.exponential(2, 600))
    bands.to_bytes()
    bands.remove_many(np.arange(0, 60, 2))
    bands.add_many([1000, 1001, 1002], [None, 3.0, -np.inf], [5.0, None, np.inf])
    bands.replace(7, 1.0, 2.0)
    yield Specimen("bands", bands.to_bytes(), use_bands)
    many = vd.BandQuerySet()
    many.add_many([f"b{n}" for n in range(1500)], -RANDOM.uniform(0, 9, 1500), RANDOM.uniform(0, 9, 1500))
    yield Specimen("bands of one point", many.to_bytes(), use_bands)


# States. Each is loaded by its own monitor, which then continues.


def _queries() -> vd.QuerySet:
    queries = vd.QuerySet(f"{SCHEMA}, d decimal(30,2)")
    queries.retain()
    queries.add_boxes([f"q{n}" for n in range(40)], {"x": (np.arange(40.0), np.arange(40.0) + 20)})
    queries.add("text", "k LIKE 'k1%' AND z > 3 AND d > 0")
    queries.remove("q3")
    return queries


def _some(start: int, end: int) -> dict[str, Any]:
    return {name: values[start:end] for name, values in ROWS.items()}


def use_border(data: bytes) -> Any:
    return _go_on(_border_monitor(), data, lambda monitor: monitor.step(_some(300, 400)))


def use_border_delta(data: bytes) -> Any:
    monitor = _border_monitor()
    monitor.load(_border_states()[0])
    return _go_on(monitor, data, lambda monitor: monitor.step(_some(300, 400)))


def _border_monitor() -> Any:
    return _queries().border(key="k", time="t", dwell=5, margin=1.0, expire_after=200)


def _go_on(monitor: Any, data: bytes, step: Callable[[Any], Any]) -> Any:
    """Take the state, or the delta, go on with a step, save, and load that."""
    try:
        monitor.load(data)
    except vd.SnapshotError as error:
        if "the bytes are a delta" not in str(error):
            raise
        monitor.apply_delta(data)
    try:
        answers = step(monitor).num_rows
    except vd.RowError as error:  # keys of another kind, or times
        answers = type(error)
    monitor.take_delta()
    monitor.load(monitor.save())
    return answers


def _border_states() -> tuple[bytes, bytes]:
    monitor = _border_monitor()
    monitor.step(_some(0, 200))
    saved = monitor.save()
    monitor.step(_some(200, 300))
    return saved, monitor.take_delta()


def _joins() -> vd.JoinQuerySet:
    joins = vd.JoinQuerySet(left=SCHEMA, right=SCHEMA)
    joins.add("equal", "left.k = right.k AND left.x - right.x BETWEEN -5 AND 5", within=10)
    joins.add("less", "left.x < right.x AND left.y > 90", rows=5)
    return joins


def _join_step(start: int) -> Callable[[Any], Any]:
    some = {name: values[start : start + 50] for name, values in ROWS.items()}
    return lambda monitor: monitor.step(left=some, right=some)


def _join_monitor() -> Any:
    return _joins().window(left_time="t", right_time="t", left_id="k")


def _join_states() -> tuple[bytes, bytes]:
    monitor = _join_monitor()
    _join_step(0)(monitor)
    saved = monitor.save()
    _join_step(50)(monitor)
    return saved, monitor.take_delta()


def use_join_state(data: bytes) -> Any:
    return _go_on(_join_monitor(), data, _join_step(100))


def use_join_delta(data: bytes) -> Any:
    monitor = _join_monitor()
    monitor.load(_join_states()[0])
    return _go_on(monitor, data, _join_step(100))


def _band_monitor() -> Any:
    bands = vd.BandQuerySet()
    bands.retain()
    bands.add_many(np.arange(100), np.arange(-50.0, 50.0), np.arange(-50.0, 50.0) + 3)
    bands.remove(7)
    return bands.monitor()


def _band_step(start: int) -> Callable[[Any], Any]:
    ids = np.arange(start, start + 40)
    return lambda monitor: monitor.insert(
        left={"id": ids, "value": ROWS["x"][ids]}, right={"id": [f"r{n}" for n in ids], "value": ROWS["y"][ids]}
    )


def _band_states() -> tuple[bytes, bytes]:
    monitor = _band_monitor()
    _band_step(0)(monitor)
    saved = monitor.save()
    monitor.delete(left=np.arange(10))
    _band_step(40)(monitor)
    return saved, monitor.take_delta()


def use_band_state(data: bytes) -> Any:
    return _go_on(_band_monitor(), data, _band_step(80))


def use_band_delta(data: bytes) -> Any:
    monitor = _band_monitor()
    monitor.load(_band_states()[0])
    return _go_on(monitor, data, _band_step(80))


def _objects(start: int) -> dict[str, Any]:
    ids = np.arange(start, start + 40)
    x, y, speeds = ROWS["x"][ids], ROWS["y"][ids], RANDOM_SPEEDS[ids]
    sides = {"x_low": x, "x_high": x + 5, "y_low": y, "y_high": y + 5}
    return {"id": ids, **sides, **dict.fromkeys(("vx_low", "vx_high", "vy_low", "vy_high"), speeds)}


RANDOM_SPEEDS = np.random.default_rng(9).uniform(-2, 2, N_ROWS)


def _moving_step(start: int) -> Callable[[Any], Any]:
    return lambda monitor: monitor.update(a=_objects(start), b=_objects(start + 500), time=float(start))


def _moving_states() -> tuple[bytes, bytes]:
    monitor = vd.MovingJoin(60)
    monitor.load(a=_objects(0), b=_objects(500), time=0.0)
    saved = monitor.save()
    _moving_step(20)(monitor)
    return saved, monitor.take_delta()


def use_moving_state(data: bytes) -> Any:
    return _go_on(vd.MovingJoin(60), data, lambda monitor: (_moving_step(50)(monitor), monitor.pairs(at=55.0))[1])


def use_moving_delta(data: bytes) -> Any:
    monitor = vd.MovingJoin(60)
    monitor.load(_moving_states()[0])
    return _go_on(monitor, data, lambda monitor: (_moving_step(50)(monitor), monitor.pairs(at=55.0))[1])


def states() -> list[Specimen]:
    made = []
    for name, both, uses in (
        ("border", _border_states(), (use_border, use_border_delta)),
        ("window join", _join_states(), (use_join_state, use_join_delta)),
        ("band join", _band_states(), (use_band_state, use_band_delta)),
        ("moving join", _moving_states(), (use_moving_state, use_moving_delta)),
    ):
        made += [Specimen(f"{name} state", both[0], uses[0]), Specimen(f"{name} delta", both[1], uses[1])]
    return made


# Mutations.


def mutate(data: bytes, seed: int) -> bytes:
    """The bytes with one kind of change, or a few of one kind, and a checksum that fits."""
    chance = random.Random(seed)
    length = int.from_bytes(data[16:24], "little")
    header, body = data[24 : 24 + length], bytearray(data[24 + length :])
    kind = chance.random()
    if kind < 0.55:
        body = _change_arrays(json.loads(header)["arrays"], body, chance)
    elif kind < 0.70:
        tree = json.loads(header)
        _change_places(tree["arrays"], chance)
        header = _written(tree)
    elif kind < 0.95:
        tree = json.loads(header)
        for _ in range(chance.choice((1, 1, 1, 2, 5))):
            _change_tree(tree, chance)
        header = _written(tree)
    elif kind < 0.98:
        changed = bytearray(header)
        for _ in range(chance.choice((1, 3))):
            changed[chance.randrange(len(changed))] = chance.randrange(256)
        header = bytes(changed)
    else:
        body = chance.choice(
            (body[: chance.randrange(len(body) + 1)], body + bytes(chance.randrange(1, 200)), bytearray())
        )
    sizes = len(header) if chance.random() < 0.995 else chance.choice(EXTREMES) % 2**64
    return sealed(data[:12], sizes, header, bytes(body))


SQUARE = "POLYGON ((20 20, 80 20, 80 80, 20 80, 20 20))"
POLYGONS: tuple[Callable[[random.Random], str], ...] = (
    lambda chance: chance.choice(("", " ", "x", "POLYGON", "POLYGON EMPTY", "MULTIPOLYGON EMPTY", "POLYGON ()")),
    lambda chance: chance.choice(("POINT (1 2)", "POINT EMPTY", "LINESTRING (0 0, 9 9)", "MULTIPOINT ((0 0), (1 1))")),
    lambda chance: chance.choice(
        (
            "CURVEPOLYGON (CIRCULARSTRING (0 0, 4 4, 8 0, 0 0))", "TRIANGLE ((0 0, 1 0, 0 1, 0 0))",
            "TIN (((0 0, 1 0, 0 1, 0 0)))", "POLYHEDRALSURFACE (((0 0, 1 0, 0 1, 0 0)))", f"SRID=4326;{SQUARE}",
            "GEOMETRYCOLLECTION EMPTY", f"GEOMETRYCOLLECTION ({SQUARE})", "LINEARRING (0 0, 1 0, 0 1, 0 0)",
            "POLYGON Z ((0 0 1, 9 0 1, 9 9 1, 0 0 1))", "POLYGON ZM ((0 0 1 1, 9 0 1 1, 9 9 1 1, 0 0 1 1))",
        )
    ),
    lambda chance: f"{chance.choice(WORDS)} (" * chance.choice((2, 50, 900, 999, 1001, 5000, 200_000)) + SQUARE,
    lambda chance: (f"{chance.choice(WORDS)} (" * (n := chance.choice((2, 50, 900, 1001)))) + SQUARE + ")" * n,
    lambda chance: f"POLYGON {'(' * chance.choice((1, 2, 3, 999, 1002, 100_000))}0 0, 9 0, 9 9, 0 0))",
    lambda chance: f"POLYGON ((0 0, {chance.choice(NUMBERS)} 0, 9 {chance.choice(NUMBERS)}, 0 0))",
    lambda chance: f"POLYGON ((0 0, 90 0, 0 90, 90 90{chance.choice((', 0 0', ''))}))",
    lambda chance: chance.choice((f"\0{SQUARE}", f"{SQUARE}\0", f"{SQUARE} x", f"  {SQUARE.lower()} ", SQUARE[:-3])),
    lambda chance: _ring(chance.choice((3, 100, 200_000)), chance.choice((1e-300, 1.0, 1e9, 1e150, 1e300))),
    lambda chance: "MULTIPOLYGON (" + ", ".join([SQUARE[8:]] * chance.choice((2, 999, 3000))) + ")",
    lambda chance: "POLYGON (" + ", ".join([SQUARE[9:-1]] * chance.choice((2, 1001, 3000))) + ")",
    lambda chance: "".join(chance.choice("POLYGON()0123456789.,- eE") for _ in range(chance.randrange(200))),
)  # fmt: skip
WORDS = ("GEOMETRYCOLLECTION", "MULTIPOLYGON", "POLYGON", "COMPOUNDCURVE", "MULTISURFACE", "")
NUMBERS = ("nan", "inf", "-inf", "1e308", "1e400", "9" * 5000, "5e-324", "0x10", "1e", "--1", "é", "\u0661", "")


def _ring(n: int, radius: float) -> str:
    angles = np.linspace(0, 2 * np.pi, n, endpoint=False)
    points = [f"{radius * x} {radius * y}" for x, y in zip(np.cos(angles), np.sin(angles), strict=True)]
    return f"POLYGON (({', '.join([*points, points[0]])}))"


def mutate_polygons(data: bytes, seed: int) -> bytes:
    """The bytes with other texts in the place of polygons, or with one of the other changes."""
    chance = random.Random(seed)
    if chance.random() < 0.2:
        return mutate(data, seed)
    content = snapshot.from_bytes(data)
    residuals = list(_residuals_in(content))
    for residual in chance.sample(residuals, chance.randrange(1, len(residuals) + 1)):
        texts = [each.to_pylist() if isinstance(each, pa.Array) else each for each in residual.constants]
        for _ in range(chance.choice((1, 1, 2, 3))):
            slot = chance.choice([place for place, each in enumerate(texts) if isinstance(each, list)])
            texts[slot][chance.randrange(len(texts[slot]))] = chance.choice(POLYGONS)(chance)
        changed = [pa.array(each, pa.large_string()) if isinstance(each, list) else each for each in texts]
        object.__setattr__(residual, "constants", tuple(changed))
    return snapshot.to_bytes(content)


def _residuals_in(content: Any) -> Iterable[Any]:
    if isinstance(content, Residual):
        if any(isinstance(each, pa.Array) for each in content.constants):
            yield content
        return
    inner = content.values() if isinstance(content, dict) else content if isinstance(content, (list, tuple)) else ()
    for each in vars(content).values() if is_dataclass(content) else inner:
        yield from _residuals_in(each)


def sealed(start: bytes, length: int, header: bytes, body: bytes) -> bytes:
    rest = length.to_bytes(8, "little") + header + body
    return start + zlib.crc32(rest).to_bytes(4, "little") + rest


def _written(tree: Any) -> bytes:
    try:
        text = json.dumps(tree, separators=(",", ":"))
    except RecursionError:
        text = "[" * 100_000
    header = text.encode("utf-8", "surrogatepass")
    return header + b" " * (-(len(header) + 24) % 64)


def _change_arrays(places: list[Any], body: bytearray, chance: random.Random) -> bytearray:
    """Some elements of one array: an extreme, a neighbour, another element, a bit, or noise."""
    filled = [(dtype, int(np.prod(shape)), offset) for dtype, shape, offset in places if np.prod(shape)]
    if not filled:
        return body
    dtype, n, offset = chance.choice(filled)
    array = np.frombuffer(body, dtype, n, offset).copy()
    how = chance.choice(("extreme", "step", "other", "bit", "noise", "run", "turned", "float"))
    for _ in range(chance.choice((1, 1, 2, 8))):
        place = chance.choice((0, n - 1, chance.randrange(n), chance.randrange(n)))
        bits = array.view(np.uint8).reshape(n, -1)
        if how == "extreme":
            value = chance.choice(EXTREMES)
            bits[place] = np.frombuffer((value % 2**64).to_bytes(8, "little"), np.uint8)[: bits.shape[1]]
        elif how == "float" and array.dtype.kind == "f":
            array[place] = chance.choice((np.nan, np.inf, -np.inf, 0.0, -0.0, 1e308, -1e308, 5e-324))
        elif how == "step" and array.dtype.kind in "iu":
            with np.errstate(over="ignore"):
                array[place] += array.dtype.type(chance.choice((1, 1, 2, 3)))
        elif how == "other":
            array[place] = array[chance.randrange(n)]
        elif how == "bit":
            bits[place, chance.randrange(bits.shape[1])] ^= 1 << chance.randrange(8)
        elif how == "run":
            array[place : place + chance.randrange(1, 50)] = array[place]
        elif how == "turned":
            end = min(n, place + chance.randrange(2, 50))
            array[place:end] = array[place:end][::-1].copy()
        else:
            bits[place] = [chance.randrange(256) for _ in range(bits.shape[1])]
    body[offset : offset + array.nbytes] = array.tobytes()
    return body


def _change_places(places: list[Any], chance: random.Random) -> None:
    """The types, shapes and offsets of arrays, exchanged or made up."""
    if not places:
        places.append(["<i8", [chance.choice(EXTREMES)], 0])
        return
    one, other = chance.choice(places), chance.choice(places)
    how = chance.choice(("exchange", "dtype", "shape", "offset", "drop", "twice", "turn"))
    if how == "exchange":
        one[:], other[:] = other[:], one[:]
    elif how == "dtype":
        one[0] = chance.choice(("<i4", "<i8", "<f8", "|u1", "|b1", "<u8", "|O", "<U9", "<M8[s]", "i4,i4", "", "|V8", 7))
    elif how == "shape":
        one[1] = chance.choice(([], [0], [2**62], [-1], [2**33, 2**33], one[1][::-1], [*one[1], 1], [1, *one[1]], None))
    elif how == "turn" and one[1]:
        one[1][chance.randrange(len(one[1]))] += chance.choice((1, -1, 2**31))
    elif how == "offset":
        one[2] = chance.choice((*EXTREMES, other[2], "0", None))
    elif how == "drop":
        places.remove(one)
    else:
        places.append(list(one))


def _change_tree(tree: dict[str, Any], chance: random.Random) -> None:
    """A value somewhere in the content: a hostile one, another of the file, or none."""
    holder, key = tree, "content"
    for _ in range(chance.randrange(1, 40)):
        inner = holder[key]
        if isinstance(inner, dict) and inner:
            holder, key = inner, chance.choice(list(inner))
        elif isinstance(inner, list) and inner:
            holder, key = inner, chance.randrange(len(inner))
        else:
            break
    how = chance.random()
    if how < 0.6:
        holder[key] = _copied(chance.choice(HOSTILE))
    elif how < 0.65:
        deep: Any = []
        for _ in range(chance.choice((50, 5000))):
            deep = {"list": [deep]}
        holder[key] = deep
    elif how < 0.75 and isinstance(holder[key], int):
        holder[key] += chance.choice((1, -1, 2**31))
    elif how < 0.85 and isinstance(holder, list):
        holder.append(_copied(holder[key])) if chance.random() < 0.5 else holder.pop()
    elif how < 0.9 and isinstance(holder, dict):
        holder[f"{key}x"] = holder.pop(key)
    else:
        holder[key] = _copied(_somewhere(tree["content"], chance))


def _copied(tree: Any) -> Any:
    try:
        return json.loads(json.dumps(tree))
    except RecursionError:  # what is copied was made deep before
        return None


def _somewhere(tree: Any, chance: random.Random) -> Any:
    for _ in range(chance.randrange(1, 40)):
        inner = list(tree.values()) if isinstance(tree, dict) else tree
        if not isinstance(inner, list) or not inner:
            break
        tree = chance.choice(inner)
    return tree


# Running.


def try_one(specimen: Specimen, seed: int, expected: str) -> str:
    """What became of a mutation: refused, same, other; or what should not be, with a traceback."""
    try:
        answers = specimen.use((specimen.change or mutate)(specimen.data, seed))
    except vd.SnapshotError as error:
        return "refused" if len(str(error)) < 1000 else f"FAILED: a message of {len(str(error))} characters"
    except BaseException:
        return f"FAILED: {traceback.format_exc(limit=-4)}"
    return "same" if str(answers) == expected else "other"


def _work(which: Callable[[], list[Specimen]], jobs: list[tuple[int, int]], reported: Any) -> None:
    """In its own process: try mutations, and report before and after each."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.setrecursionlimit(1000)
    specimens = which()
    expected: dict[int, str] = {}
    for number, seed in jobs:
        specimen = specimens[number]
        if number not in expected:
            expected[number] = str(specimen.use(specimen.data))
        reported.send((number, seed, None))
        started = time.monotonic()
        became = try_one(specimen, seed, expected[number])
        if time.monotonic() - started > SECONDS:
            became = f"FAILED: it took {time.monotonic() - started:.0f} s"
        reported.send((number, seed, became))
    reported.send(None)


def run(
    which: Callable[[], list[Specimen]], jobs: list[tuple[int, int]], n_processes: int = 2
) -> tuple[Counter[tuple[int, str]], list[tuple[int, int, str]]]:
    """How mutations (specimen, seed) ended, and those that failed."""
    outcomes: Counter[tuple[int, str]] = Counter()
    failures: list[tuple[int, int, str]] = []
    context = multiprocessing.get_context("spawn")
    waiting = [jobs[number::n_processes] for number in range(n_processes)]
    running: list[Any] = []

    def start(own: list[tuple[int, int]]) -> None:
        if own:
            receiver, sender = context.Pipe(duplex=False)
            process = context.Process(target=_work, args=(which, own, sender), daemon=True)
            process.start()
            sender.close()
            running.append([process, receiver, own, None, time.monotonic()])

    for own in waiting:
        start(own)
    while running:
        for entry in list(running):
            process, receiver, own, current, since = entry
            try:
                reported = receiver.recv() if receiver.poll(0.2) else False
            except EOFError:
                process.join()
                reported = (*current, f"FAILED: the process ended with {process.exitcode}") if current else None
            if reported is False and current and time.monotonic() - since > SECONDS:
                process.kill()
                reported = (*current, f"FAILED: it took more than {SECONDS} s")
            if reported is False:
                continue
            if reported is None:
                process.join()
                running.remove(entry)
                continue
            number, seed, became = reported
            entry[3:] = (number, seed), time.monotonic()
            if became is None:
                continue
            entry[3] = None
            outcomes[number, became.partition(":")[0]] += 1
            if became.startswith("FAILED"):
                failures.append((number, seed, became))
            if became.startswith(("FAILED: the process", "FAILED: it took more")):
                running.remove(entry)
                start(own[own.index((number, seed)) + 1 :])
    return outcomes, failures


def sets() -> list[Specimen]:
    return [*query_sets(), *join_sets(), *band_sets()]


def jobs_of(specimens: list[Specimen], n: int, only: str | None = None, first_seed: int = 0) -> list[tuple[int, int]]:
    """Pairs of a specimen's number and a seed."""
    chosen = [number for number, each in enumerate(specimens) if only in (None, each.name)]
    return [(chosen[seed % len(chosen)], seed) for seed in range(first_seed, first_seed + n)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=10_000)
    parser.add_argument("--only")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--first-seed", type=int, default=0)
    options = parser.parse_args()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    n_failed = 0
    for which, n in ((sets, options.n), (states, options.n // 5)):
        specimens = which()
        chosen = [each for each in specimens if options.only in (None, each.name)]
        if not chosen:
            continue
        if options.seed is not None:
            print(try_one(chosen[0], options.seed, str(chosen[0].use(chosen[0].data))))
            return 0
        outcomes, failures = run(which, jobs_of(specimens, n, options.only, options.first_seed))
        for number, specimen in enumerate(specimens):
            ended = {kind: outcomes[number, kind] for kind in ("refused", "same", "other", "FAILED")}
            print(f"{specimen.name:20}", *(f"{kind} {count:5}" for kind, count in ended.items()), flush=True)
        for number, seed, became in failures[:40]:
            print(f"--only {specimens[number].name!r} --seed {seed}: {became}")
        n_failed += len(failures)
    return 1 if n_failed else 0


if __name__ == "__main__":
    sys.exit(main())
