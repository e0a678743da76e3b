"""The state of shards whose queries are followed: bases after changes, and monitors whose set has changed."""

from __future__ import annotations

import contextlib
import json
import sqlite3

import pytest
from spark.test_shard_state import FACTS, Store, Sums

import vedette as vd
from vedette.registry.host import reader
from vedette.registry.snapshots import bases as snapshots
from vedette.registry.snapshots import compiled_set
from vedette.spark.shards import state as shard_state
from vedette.spark.shards.monitor_cache import MonitorCache
from vedette.spark.shards.state import ShardState
from vedette.spark.workers import following


class FollowingSums(Sums):
    """Sums that belong to a set of queries."""

    def __init__(self, queries):
        super().__init__()
        self.queries = queries


@pytest.fixture(autouse=True)
def worker(monkeypatch):
    """A fresh worker for every test."""
    monkeypatch.setattr(shard_state, "_cache", MonitorCache())
    monkeypatch.setattr(following, "_kept", following._Kept())


def run_batch(store, version, queries="a set"):
    """Add 1 under a version; returns the sum, and the number of entries in the store."""
    state = ShardState(store, store, FACTS, lambda: FollowingSums(queries), "shard", "kind")
    state.open()
    state.follow(queries, version)
    monitor = state.load()
    monitor.add("a", 1)
    state.save(monitor)
    return monitor.sums["a"], len(json.loads(store.content[0])["entries"])


def test_a_new_base_is_written_before_its_version_may_be_forgotten_not_with_every_change(monkeypatch):
    monkeypatch.setattr(shard_state, "RETAINED_VERSIONS", 10)
    store = Store()
    found = [run_batch(store, version) for version in (3, 4, 8, 8, 9, 10, 14, 15)]

    assert [n_entries for _, n_entries in found] == [1, 2, 3, 4, 1, 2, 3, 1]
    assert [total for total, _ in found] == list(range(1, 9))


def test_a_shard_without_rows_steps_if_the_queries_have_changed():
    store = Store()
    run_batch(store, 3)
    for version, is_changed in ((3, False), (4, True)):
        state = ShardState(store, store, FACTS, None, "shard", "kind")
        state.open()
        state.follow("a set", version)
        assert state.is_changed == is_changed


def test_a_monitor_of_a_reloaded_set_is_read_from_the_store():
    store = Store()
    run_batch(store, 3)
    assert run_batch(store, 4)[0] == 2
    assert store.n_read == 0
    assert run_batch(store, 2, "the set, loaded again")[0] == 3
    assert store.n_read > 0


@pytest.fixture
def alerts(tmp_path):
    """A registry with a set of kind border, and a function that opens it as a task does."""
    registry = vd.Registry(f"sqlite:///{tmp_path / 'alerts.db'}")
    registry.create("alerts", kind="border", schema="x double")
    for number in range(4):
        registry.add("alerts", f"q{number}", f"x < {number}")
    followed = registry.follow("alerts")

    def open_at(version, since=None):
        facts = {"token": "", "sender": vd.__version__, "followed": followed.to_plain(), "version": version}
        return following.open_queries(facts | {"mark": followed.mark_of(version)}, since).queries

    yield registry, open_at
    registry.close()


def test_a_worker_whose_version_was_forgotten_opens_the_set_again(alerts):
    registry, open_at = alerts
    old = open_at(2)
    assert registry.forget("alerts", before=4) == 4
    registry.add("alerts", "new", "x < 9")

    again = open_at(5)
    assert again is not old
    assert sorted(again.match_one({"x": 2.5})) == ["new", "q3"]


@pytest.mark.parametrize("n_more", [1, 3])
def test_a_worker_does_not_reuse_a_set_of_a_restored_database(alerts, tmp_path, n_more):
    registry, open_at = alerts
    backup = (tmp_path / "alerts.db").with_suffix(".backup")
    with contextlib.closing(sqlite3.connect(tmp_path / "alerts.db")) as source:
        source.execute(f"VACUUM INTO '{backup}'")
    registry.add("alerts", "lost", "x < 9")
    assert "lost" in open_at(5)
    with (
        contextlib.closing(sqlite3.connect(backup)) as source,
        contextlib.closing(sqlite3.connect(tmp_path / "alerts.db")) as target,
    ):
        source.backup(target)
    for number in range(n_more):
        registry.add("alerts", f"kept {number}", "x < 8")

    queries = open_at(4 + n_more)
    assert "lost" not in queries
    assert len(queries) == 4 + n_more


def test_a_repeated_batch_uses_the_current_schema_of_the_stream(alerts):
    registry, open_at = alerts
    before = open_at(4)
    registry.alter("alerts", "x double, y double")
    followed = registry.follow("alerts")
    facts = {"token": "", "sender": vd.__version__, "followed": followed.to_plain(), "version": 4}
    again = following.open_queries(facts | {"mark": followed.mark_of(4)}).queries

    assert (str(before.schema), str(again.schema)) == ("x double", "x double, y double")
    assert again.match_one({"x": 2.5, "y": 0.0}) == ["q3"]
    assert open_at(4) is before


def test_a_key_exits_a_query_that_was_removed_before_the_base_of_its_state(alerts):
    registry, open_at = alerts
    monitor = open_at(4).border(key="k", time="t")
    monitor.step({"k": ["a"], "t": [1], "x": [0.5]})
    registry.remove("alerts", "q3")
    following._kept.sets.clear()
    blob = monitor.save()

    later = open_at(5, since=5).border(key="k", time="t")
    later.load(blob)
    events = later.step({"k": ["a"], "t": [2], "x": [0.6]}).to_pylist()
    assert [(event["query"], event["event"]) for event in events] == [("q3", "exit")]


def test_many_streams_of_a_worker_keep_their_sets(alerts, monkeypatch):
    registry, _ = alerts
    plain = registry.follow("alerts").to_plain()
    parcel = {"token": "", "sender": vd.__version__, "followed": plain, "version": None}

    def open_in(stream):
        monkeypatch.setattr(following, "_find_batch", lambda calls: following._Batch(stream, 0, None))
        return following.open_queries(parcel).queries

    opened = [open_in(f"stream {number}") for number in range(12)]
    again = [open_in(f"stream {number}") for number in range(12)]

    assert len({id(one) for one in opened}) == 12
    assert all(one is other for one, other in zip(opened, again, strict=True))


def test_band_joins_continue_from_a_state_with_a_forgotten_base_version(tmp_path):
    registry = vd.Registry(f"sqlite:///{tmp_path / 'bands.db'}")
    registry.create("bands", kind="band join")
    for number in range(6):
        registry.add("bands", f"b{number}", low=number, high=number + 1)
    followed = registry.follow("bands")
    monitor = followed.open(2).monitor()
    monitor.insert(left={"id": [1], "value": [4.5]}, right={"id": [1], "value": [0.0]})
    blob = monitor.save()
    assert followed.pin("stream", 7) == 6
    registry.forget("bands", before=6)

    facts = {"token": "", "sender": vd.__version__, "followed": followed.to_plain(), "version": 6}
    goes_on = following.open_queries(facts, since=2).queries.monitor()
    goes_on.load(blob)
    assert [(row["sign"], row["query"]) for row in goes_on.refresh().to_pylist()] == [(1, "b4")]
    registry.close()


def test_band_joins_continue_from_a_state_older_than_the_bases(tmp_path, monkeypatch):
    monkeypatch.setattr(compiled_set, "RETAINED_VERSIONS", 2)
    monkeypatch.setattr(snapshots, "FEW_CHANGES", 2)
    registry = vd.Registry(f"sqlite:///{tmp_path / 'bands.db'}")
    registry.create("bands", kind="band join")
    for number in range(6):
        registry.add("bands", f"b{number}", low=number, high=number + 1)
    parcel = {"token": "", "sender": vd.__version__, "followed": registry.follow("bands").to_plain()}
    monitor = following.open_queries({**parcel, "version": 2}).queries.monitor()
    monitor.insert(left={"id": [1], "value": [4.5]}, right={"id": [1], "value": [0.0]})
    blob = monitor.save()
    following._kept.sets.clear()
    registry.compact("bands")
    (tmp_path / "other host").mkdir(mode=0o700)  # without the files that the first one has
    monkeypatch.setattr(reader, "account_directory", lambda name: tmp_path / "other host")
    monkeypatch.setattr(reader, "_leaders", {})

    later = following.open_queries({**parcel, "version": 6})
    too_late = later.queries.monitor()
    too_late.load(blob)
    with pytest.raises(vd.SnapshotError, match="their changes are known only since version 4"):
        too_late.refresh()
    known = following.open_queries({**parcel, "version": 6}, since=2)
    goes_on = known.queries.monitor()
    goes_on.load(blob)
    assert [(row["sign"], row["query"]) for row in goes_on.refresh().to_pylist()] == [(1, "b4")]
    assert following.open_queries({**parcel, "version": 6}, since=2).queries is known.queries
    registry.close()
