"""Five sets of a registry, one for each operator, which two writers change; and what streams should answer.

A query contains everything from its lower end to `WIDTH` above it: a price, the difference of two values, or a place.
Answers are found by plain comparison, from what the writers recorded.
"""

from __future__ import annotations

import threading
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from operators.border import border_model
from spark import fleets, ticks
from spark.streams import read_answers, read_cuts, to_tuples, write_rows
from sqlalchemy import create_engine, text

import vedette as vd

WIDTH = 5
NOT_REMOVED = {"base": (0,)}  # active from the first version on, so that window joins keep rows
SIDE = "id bigint, value double, ts timestamp"
START = 1_772_000_000
SOURCES = {
    "match": ["rows"],
    "border": ["rows"],
    "window join": ["left", "right"],
    "band join": ["left", "right"],
    "moving join": ["objects"],
}
KINDS = list(SOURCES)


def to_query(kind, low):
    """A query as arguments of the registry."""
    if kind == "band join":
        return {"low": low, "high": low + WIDTH}
    if kind == "moving join":
        return {"x_low": low, "x_high": low + WIDTH, "y_low": 0, "y_high": 0}
    if kind == "window join":
        return {"text": f"left.value - right.value BETWEEN {low} AND {low + WIDTH}", "within": "1 hour"}
    return {"text": f"price BETWEEN {low} AND {low + WIDTH}"}


def create_sets(url, kinds=KINDS):
    registry = vd.Registry(url)
    for kind in kinds:
        schema = {"schema": ticks.SCHEMA} if kind in ("match", "border") else {}
        if kind == "window join":
            schema = {"left": SIDE, "right": SIDE}
        registry.create(kind, kind=kind, **schema)
        for query, (low,) in NOT_REMOVED.items():
            assert registry.add(kind, query, **to_query(kind, low)) == 1
    registry.close()


def write_sources(directory, n_batches, n_rows=8):
    """Write files for a number of micro-batches of each stream, and some more of the joins, which start first."""
    write_rows(ticks.make_rows(n_rows * 5 * n_batches), directory / "rows", 5 * n_batches)
    for seed, name in enumerate(("left", "right")):
        n_files = 2 * (n_batches + 2)
        n_all = n_rows * n_files
        values = np.random.default_rng(seed).integers(0, 60, n_all).astype(float)
        times = pa.array((START + np.arange(n_all)) * 1_000_000, pa.timestamp("us", "UTC"))
        rows = pa.table([pa.array(range(n_all), pa.int64()), values, times], ["id", "value", "ts"])
        write_rows(rows, directory / name, n_files)
    write_objects(directory / "objects", 2 * (n_batches + 4), n_rows)


def write_objects(directory, n_files, n_rows):
    """Few objects that do not move; each row moves one to another place, at its own time."""
    random, n_all = np.random.default_rng(2), n_rows * n_files
    columns = {
        "id": pa.array(random.integers(0, 10, n_all)),
        "time": np.arange(n_all, dtype=float),
        "x": random.integers(0, 60, n_all).astype(float),
    }
    write_rows(pa.table(columns | {name: np.zeros(n_all) for name in ("y", "vx", "vy")}), directory, n_files)


class Writers:
    """Two writers, each with its own connection and queries, that change all sets until they are stopped."""

    def __init__(self, url):
        self.url = url
        self.changes = {kind: {} for kind in KINDS}  # by version: id, and its lower end or None
        self.errors = []
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._write, args=(number,)) for number in range(2)]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        for thread in self._threads:
            thread.join()
        assert not self.errors

    def _write(self, number):
        try:
            registry, random, own = vd.Registry(self.url), np.random.default_rng(number), set()
            while not self._stop.wait(random.uniform(0, 0.1)):
                kind, query = KINDS[random.integers(0, len(KINDS))], f"w{number}-{random.integers(0, 5)}"
                low = int(random.integers(0, 55))
                if (kind, query) not in own:
                    version = registry.add(kind, query, **to_query(kind, low))
                elif low % 3:
                    version = registry.replace(kind, query, **to_query(kind, low))
                else:
                    version, low = registry.remove(kind, query), None
                self.changes[kind][version] = query, low
                (own.discard if low is None else own.add)((kind, query))
            registry.close()
        except Exception as error:
            self.errors.append(error)

    def active(self, kind):
        """The active queries by version."""
        now, states = NOT_REMOVED, {1: NOT_REMOVED}
        changes = self.changes[kind]
        assert sorted(changes) == list(range(2, len(changes) + 2))
        for version in sorted(changes):
            query, low = changes[version]
            now = {each: ends for each, ends in now.items() if each != query}
            if low is not None:
                now[query] = (low,)  # a separate object per revision
            states[version] = now
        return states


def read_pins(url):
    """The versions of the batches of each stream, as the database has them."""
    engine = create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    with engine.connect() as connection:
        found = connection.execute(
            text("SELECT s.name, p.batch, p.version FROM vedette_pins p JOIN vedette_sets s ON s.id = p.set_id")
        )
        pins = {kind: {} for kind in KINDS}
        for kind, batch, version in found:
            assert batch not in pins[kind]
            pins[kind][batch] = version
    engine.dispose()
    return pins


def check_answers(directory, kind, pins, states):
    """Check that each micro-batch used the queries of its pinned version, and that every file was read once.

    Returns the answers of the tasks of each batch.
    """
    cuts = read_cuts(directory / kind / "checkpoint")
    sources = [directory / name for name in SOURCES[kind]]
    for files, source in zip(cuts, sources, strict=True):
        assert [file for batch in files for file in batch] == list(range(len(list(source.iterdir()))))
    answers, oracle = read_answers(directory / kind), ORACLES[kind]()
    batches = list(zip(*cuts, strict=True))
    assert sorted(pins) == list(range(len(batches)))
    assert set(answers) <= set(pins)
    for number, files in enumerate(batches):
        rows = [_read_files(source, some) for source, some in zip(sources, files, strict=True)]
        found = [row for table in answers.get(number, []) for row in to_tuples(table)]
        assert {row[-1] for row in found} <= {pins[number]}
        oracle.check([row[:-1] for row in found], states[pins[number]], *rows)
    return [answers.get(number, []) for number in range(len(batches))]


def _read_files(source, numbers):
    tables = [pq.read_table(source / f"{number:04}.parquet") for number in numbers]
    return [row for table in tables for row in table.to_pylist()]


def _contains(ends, number):
    return ends[0] <= number <= ends[0] + WIDTH


class Match:
    """Rows with the queries that they match."""

    def check(self, answers, active, rows):
        assert sorted(answers) == sorted(
            (row["symbol"], row["price"], int(row["ts"].timestamp()), query)
            for row in rows
            for query, low in active.items()
            if _contains(low, row["price"])
        )


class Border:
    """Events of keys."""

    def __init__(self):
        self.model, self.forms = border_model.Model(), {}

    def check(self, answers, active, rows):
        for query, low in active.items():
            form = (lambda row, low=low: _contains(low, row["price"])), lambda row: False
            self.forms.setdefault((query, id(low)), form)
        self.model.forms = {query: self.forms[query, id(low)] for query, low in active.items()}
        events = self.model.step(rows, key="symbol", time="ts")
        assert sorted(answers) == sorted((key, int(when.timestamp()), *rest) for key, when, *rest in events)


class WindowJoin:
    """Pairs, each with the later of its rows."""

    def __init__(self):
        self.sides = {}, {}

    def check(self, answers, active, *new):
        known = [set(side) for side in self.sides]
        for side, rows in zip(self.sides, new, strict=True):
            side.update((row["id"], row["value"]) for row in rows)
        assert sorted(answers) == sorted(
            (query, left, right)
            for left, r in self.sides[0].items()
            for right, s in self.sides[1].items()
            if left not in known[0] or right not in known[1]
            for query, low in active.items()
            if _contains(low, r - s)
        )


class BandJoin:
    """Pairs that change with rows and with queries."""

    def __init__(self):
        self.sides, self.pairs = ({}, {}), Counter()

    def check(self, answers, active, *new):
        for side, rows in zip(self.sides, new, strict=True):
            side.update((row["id"], row["value"]) for row in rows)
        assert len(set(answers)) == len(answers)
        for sign, *pair in answers:
            self.pairs[tuple(pair)] += sign
        assert set(self.pairs.values()) <= {0, 1}
        assert {pair for pair, n in self.pairs.items() if n} == {
            (query, left, right)
            for left, r in self.sides[0].items()
            for right, s in self.sides[1].items()
            for query, low in active.items()
            if _contains(low, r - s)
        }


class MovingJoin:
    """Pairs at the time of each row, by the lines that were reported so far."""

    def __init__(self):
        self.places, self.lines = {}, []

    def check(self, answers, active, rows):
        self.lines += answers
        for row in sorted(rows, key=lambda row: row["time"]):
            self.places[row["id"]] = row["x"]
            assert fleets.pairs_at(self.lines, row["time"]) == {
                (id_, zone) for id_, x in self.places.items() for zone, low in active.items() if _contains(low, x)
            }


ORACLES = {
    "match": Match,
    "border": Border,
    "window join": WindowJoin,
    "band join": BandJoin,
    "moving join": MovingJoin,
}
