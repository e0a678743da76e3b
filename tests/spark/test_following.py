"""Pipelines that follow a set of a registry: each micro-batch has one version, which is in the answers."""

from __future__ import annotations

import datetime

import numpy as np
import pyarrow as pa
import pytest
from operators.border import border_model
from spark.streams import read_stream, run_stream, write_batches

import vedette as vd
from vedette import spark as vs
from vedette.spark.workers import following

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
    """A stream over files that runs one micro-batch at a time, and its answers."""

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


@pytest.mark.fast
def test_a_change_before_a_micro_batch_is_visible_in_it_and_rows_have_the_version(spark, registry, tmp_path):
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


def holds(text, price):
    return eval(text, {"price": price})


def change_at_random(random, registry, name, active, make):
    """One random change of a set, recorded in `active` by version."""
    before = active[max(active)]
    query = f"q{random.integers(0, 5)}"
    now = dict(before)
    if query not in before:
        now[query] = make(random)
        version = registry.add(name, query, **now[query])
    elif random.random() < 0.5:
        now[query] = make(random)
        version = registry.replace(name, query, **now[query])
    else:
        version = registry.remove(name, query)
        del now[query]
    active[version] = now


def make_range(random):
    low = int(random.integers(0, 7))
    return {"text": f"price >= {low} and price <= {low + 2}"}


def events_of(model, rows, active, known):
    """The expected events of border monitoring, by plain comparison."""
    for query, given in active.items():
        text = given["text"]
        known.setdefault((query, id(given)), (lambda row, text=text: holds(text, row["price"]), lambda row: False))
    model.forms = {query: known[query, id(given)] for query, given in active.items()}
    return sorted(model.step(rows.to_pylist(), key="symbol", time="ts"))


def test_border_events_match_the_version_of_their_micro_batch(spark, registry, tmp_path):
    random = np.random.default_rng(5)
    registry.create("alerts", kind="border", schema=SCHEMA)
    active, model, known = {0: {}}, border_model.Model(), {}
    feed = Feed(spark, tmp_path, vs.border(registry.follow("alerts"), key="symbol", time="ts", shards=2))
    n_events = 0
    for t in range(2):
        for _ in range(int(random.integers(4, 10))):
            change_at_random(random, registry, "alerts", active, make_range)
        rows = some_rows(random, t, n=12)
        found = feed.take(rows)
        version = max(active)

        assert {row[-1] for row in found} <= {version}
        events = [(key, time.replace(tzinfo=datetime.UTC), *rest) for key, time, *rest, _ in found]
        assert sorted(events) == events_of(model, rows, active[version], known)
        n_events += len(events)
    assert n_events > 8


def values_of(ids, values):
    return pa.table({"id": pa.array(ids, pa.int64()), "value": pa.array(values, pa.float64())})


def make_band(random):
    low = float(random.integers(-3, 3))
    return {"low": low, "high": low + 2}


def test_band_joins_emit_the_effect_of_changed_queries(spark, registry, tmp_path):
    random = np.random.default_rng(7)
    registry.create("bands", kind="band join")
    active, total = {0: {}}, {}
    left, right = {}, {}
    followed = registry.follow("bands")
    feed = Feed(spark, tmp_path, lambda a, b: vs.band_join(a, b, followed, shards=2))
    distinct = Feed(spark, tmp_path / "affected", lambda a, b: vs.band_join(a, b, followed, report="queries", shards=4))
    n_affected = 0
    for t in range(2):
        for _ in range(5):
            change_at_random(random, registry, "bands", active, make_band)
        version, affected = max(active), set()
        new = [{10 * t + i: float(random.integers(0, 5)) for i in range(3)} for _ in range(2)]
        tables = [values_of(list(each), list(each.values())) for each in new]
        left, right = left | new[0], right | new[1]
        for sign, query, i, j, told_version in feed.take(*tables):
            assert told_version == version
            total[query, i, j] = total.get((query, i, j), 0) + sign
            affected.add((query, version))

        assert set(total.values()) <= {0, 1}
        assert {pair for pair, sign in total.items() if sign} == {
            (query, i, j)
            for query, band in active[version].items()
            for i, r in left.items()
            for j, s in right.items()
            if band["low"] <= r - s <= band["high"]
        }
        assert sorted(distinct.take(*tables)) == sorted(affected)
        n_affected += len(affected)
    assert n_affected > 6


def quotes_of(ids, prices, t):
    times = pa.array([at(t)] * len(ids), pa.timestamp("us", "UTC"))
    return pa.table({"id": pa.array(ids, pa.int64()), "x": pa.array(prices, pa.float64()), "t": times})


def test_window_joins_of_a_followed_set_use_the_queries_of_the_micro_batch_on_a_grid(spark, registry, tmp_path):
    streams = dict.fromkeys(("left", "right"), "id bigint, x double, t timestamp")
    registry.create("pairs", kind="window join", **streams)
    registry.add("pairs", "same", "left.x = right.x", within="1 minute")
    followed = registry.follow("pairs")
    options = {"left_time": "t", "right_time": "t"}
    feed = Feed(spark, tmp_path, lambda a, b: vs.window_join(a, b, followed, shards=2, **options))

    first = feed.take(quotes_of([1, 2], [5.0, 6.0], 0), quotes_of([1, 2], [5.0, 9.0], 1))
    registry.replace("pairs", "same", "left.x < right.x", within="1 minute")
    registry.add("pairs", "far", "abs(left.x - right.x) > 3", within="1 minute")
    second = feed.take(quotes_of([3], [1.0], 2), quotes_of([3], [6.0], 3))

    assert first == [("same", 1, 1, 1)]
    same = [("same", 1, 3, 3), ("same", 3, 1, 3), ("same", 3, 2, 3), ("same", 3, 3, 3)]
    far = [("far", 3, 1, 3), ("far", 3, 2, 3), ("far", 3, 3, 3)]
    assert sorted(second) == [*far, *same]
    rows = read_stream(spark, tmp_path / "left")
    with pytest.raises(vd.PipelineError, match="the set is followed, and a later query may have no equality"):
        vs.window_join(rows, rows, followed, layout="equality", **options)


def test_a_batch_sees_the_version_at_the_time_of_the_transform_or_the_fixed_one(spark, registry):
    registry.create("alerts", schema=SCHEMA)
    rows = spark.createDataFrame(rows_of(("A", 3.0, 0), ("B", 7.0, 0)).to_pandas())
    empty = rows.transform(vs.match(registry.follow("alerts"), output="list"))
    registry.add_many("alerts", [1, 2], ["price < 5", "price > 5"])
    hits = rows.transform(vs.match(registry.follow("alerts")))
    registry.replace("alerts", 1, "price > 1")
    frozen = rows.transform(vs.match(registry.follow("alerts", version=1)))
    now = rows.transform(vs.match(registry.follow("alerts"), output="list"))

    assert [row[3:] for row in empty.collect()] == [([], 0), ([], 0)]
    assert sorted(row[3:] for row in hits.collect()) == sorted(row[3:] for row in frozen.collect()) == [(1, 1), (2, 1)]
    assert [(row.version, sorted(row.queries)) for row in now.orderBy("symbol").collect()] == [(2, [1]), (2, [1, 2])]
    assert now.schema.names[-2:] == ["queries", "version"]
    assert [row[0] for row in hits.select("version").distinct().collect()] == [1]


def test_sets_that_cannot_be_followed_are_refused(spark, registry):
    registry.create("alerts", schema=SCHEMA)
    registry.create("bands", kind="band join")
    followed = registry.follow("alerts")
    rows = spark.createDataFrame(rows_of(("A", 3.0, 0)).to_pandas())
    with pytest.raises(
        vd.RowError, match="the DataFrame has no column 'price', but later queries of a followed set may"
    ):
        rows.drop("price").transform(vs.match(followed))
    with pytest.raises(vd.PipelineError, match="the DataFrame already has a column 'version'"):
        rows.withColumnRenamed("symbol", "version").transform(vs.match(followed))
    with pytest.raises(vd.PipelineError, match=r"vs.border follows sets of kind border; set 'alerts' is of kind match"):
        vs.border(followed, key="symbol", time="ts")
    with pytest.raises(vd.PipelineError, match=r"vs.match follows sets of kind match or border; set 'bands'"):
        vs.match(registry.follow("bands"))
    with pytest.raises(vd.PipelineError, match=r"needs a QuerySet; got str; to follow a set of a registry, pass"):
        vs.match("alerts")


def test_sqlite_followed_from_another_host_is_refused(registry):
    registry.create("alerts", schema=SCHEMA)
    facts = registry.follow("alerts").to_plain() | {"host": "elsewhere"}
    parcel = {"token": "", "sender": vd.__version__, "followed": facts, "version": None}
    with pytest.raises(
        vd.PipelineError, match=r"a file on host elsewhere, but a Spark worker runs on .*; use a registry in PostgreSQL"
    ):
        following.open_queries(parcel)


def test_a_worker_moves_its_set_forward_and_loads_it_again_for_an_older_version(registry, monkeypatch):
    registry.create("alerts", schema="x double")
    for number in range(6):
        registry.add("alerts", number, f"x > {number}")
    parcel = {"token": "", "sender": vd.__version__, "followed": registry.follow("alerts").to_plain()}
    monkeypatch.setattr(following, "_kept", following._Kept())
    opened = [following.open_queries({**parcel, "version": version}) for version in (2, 4, 4, 6, 3)]

    assert [each.version for each in opened] == [2, 4, 4, 6, 3]
    assert len({id(each.queries) for each in opened[:4]}) == 1
    assert opened[4].queries is not opened[0].queries
    assert opened[4].queries.match_one({"x": 9.0}) == [0, 1, 2]
    assert len(opened[0].queries) == 6
