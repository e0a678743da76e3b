"""Pipelines that follow a set of a registry: one version a micro-batch, told in the answer, and always that which stood."""

from __future__ import annotations

import datetime

import numpy as np
import pyarrow as pa
import pytest
from engine import border_model
from pyspark.errors import StreamingQueryException
from spark.streams import read_stream, run_stream, write_batches

import vedette as vd
from vedette import spark as vs

SCHEMA = "symbol string, price double, ts timestamp"


@pytest.fixture
def registry(tmp_path):
    made = vd.Registry(f"sqlite:///{tmp_path / 'alerts.db'}")
    yield made
    made.close()


def at(seconds):
    return datetime.datetime.fromtimestamp(1_772_000_000 + seconds, datetime.UTC)


def rows_of(*rows):
    """Rows of (symbol, price, seconds)."""
    symbols, prices, seconds = zip(*rows, strict=True)
    times = pa.array([at(each) for each in seconds], pa.timestamp("us", "UTC"))
    return pa.table([pa.array(symbols, pa.string()), pa.array(prices, pa.float64()), times], ["symbol", "price", "ts"])


def some_rows(random, t, n=8):
    return rows_of(*((f"S{random.integers(0, 4)}", float(random.integers(0, 9)), t) for _ in range(n)))


class Feed:
    """A stream over files, run a micro-batch at a time; what it answers to each."""

    def __init__(self, spark, directory, transform, name="rows"):
        self.spark, self.directory, self.transform, self.name = spark, directory, transform, name
        self.n = 0

    def take(self, *tables):
        """The answers to one more file of each source."""
        names = [self.name] if len(tables) == 1 else ["left", "right"]
        for name, table in zip(names, tables, strict=True):
            write_batches([table], self.directory / name, first=self.n)
        self.n += 1
        streams = [read_stream(self.spark, self.directory / name) for name in names]
        before = self._read() if self.n > 1 else []
        run_stream(self.spark, self.transform(*streams), self.directory)
        after = self._read()
        for row in before:
            after.remove(row)
        return after

    def _read(self):
        return [tuple(row) for row in self.spark.read.parquet(str(self.directory / "answers")).collect()]


def test_a_change_before_a_micro_batch_counts_in_it_and_rows_tell_the_version(spark, registry, tmp_path):
    registry.create("alerts", schema=SCHEMA)
    registry.add("alerts", "low", "price < 5")
    feed = Feed(spark, tmp_path, vs.match(registry.follow("alerts")))
    rows = rows_of(("A", 3.0, 0), ("B", 7.0, 0))

    first = [(row[0], row[3:]) for row in feed.take(rows)]
    registry.replace("alerts", "low", "price > 5")
    registry.add("alerts", "all", "symbol IS NOT NULL")
    second = [(row[0], row[3:]) for row in feed.take(rows)]
    third = feed.take(rows)
    registry.remove_many("alerts", ["low", "all"])

    assert first == [("A", ("low", 1))]
    assert sorted(second) == [("A", ("all", 3)), ("B", ("all", 3)), ("B", ("low", 3))]
    assert {row[-1] for row in third} == {3}
    assert feed.take(rows) == []
