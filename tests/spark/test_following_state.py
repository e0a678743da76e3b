"""The state of shards whose queries are followed: bases that outlive changes, and monitors whose set has moved on."""

from __future__ import annotations

import json

import pytest
from spark.test_shard_state import FACTS, Store, Sums

import vedette as vd
from vedette.registry import snapshots
from vedette.spark import following, shard_state
from vedette.spark.shard_state import ShardState


class FollowingSums(Sums):
    """Sums that belong to a set of queries."""

    def __init__(self, queries):
        super().__init__()
        self.queries = queries


@pytest.fixture(autouse=True)
def worker(monkeypatch):
    """A worker of its own for every test."""
    monkeypatch.setattr(shard_state, "_cache", shard_state._Cache())
    monkeypatch.setattr(following, "_kept", following._Kept())


def run_batch(store, version, queries="a set"):
    """Add 1 under a version; the sum, and how many entries the store has."""
    state = ShardState(store, store, FACTS, lambda: FollowingSums(queries), "shard", "kind")
    state.open()
    state.follow(queries, version)
    monitor = state.load()
    monitor.add("a", 1)
    state.save(monitor)
    return monitor.sums["a"], len(json.loads(store.content[0])["entries"])


def test_a_base_is_written_anew_when_its_version_may_soon_be_forgotten_and_not_with_every_change(monkeypatch):
    monkeypatch.setattr(shard_state, "RETAINED_VERSIONS", 10)
    store = Store()
    found = [run_batch(store, version) for version in (3, 4, 8, 8, 9, 10, 14, 15)]

    assert [n_entries for _, n_entries in found] == [1, 2, 3, 4, 1, 2, 3, 1]
    assert [total for total, _ in found] == list(range(1, 9))


def test_a_shard_without_rows_steps_where_the_queries_have_changed():
    store = Store()
    run_batch(store, 3)
    for version, is_changed in ((3, False), (4, True)):
        state = ShardState(store, store, FACTS, None, "shard", "kind")
        state.open()
        state.follow("a set", version)
        assert state.is_changed == is_changed


def test_a_monitor_of_a_set_that_was_loaded_anew_is_read_from_the_store():
    store = Store()
    run_batch(store, 3)
    assert run_batch(store, 4)[0] == 2
    assert store.n_read == 0
    assert run_batch(store, 2, "the set, loaded anew")[0] == 3
    assert store.n_read > 0


def test_band_joins_go_on_from_a_state_older_than_what_bases_remember(tmp_path, monkeypatch):
    monkeypatch.setattr(snapshots, "RETAINED_VERSIONS", 2)
    monkeypatch.setattr(snapshots, "FEW_CHANGES", 2)
    registry = vd.Registry(f"sqlite:///{tmp_path / 'bands.db'}")
    registry.create("bands", kind="band join")
    for number in range(6):
        registry.add("bands", f"b{number}", low=number, high=number + 1)
    parcel = {"token": "", "sender": vd.__version__, "followed": registry.follow("bands").to_facts()}
    monitor = following.open_queries({**parcel, "version": 2}).queries.monitor()
    monitor.insert(left={"id": [1], "value": [4.5]}, right={"id": [1], "value": [0.0]})
    blob = monitor.save()
    following._kept.sets.clear()
    registry.compact("bands")

    later = following.open_queries({**parcel, "version": 6})
    with pytest.raises(vd.SnapshotError, match="what has changed since is known from version 4 on only"):
        later.queries.monitor().load(blob)
    known = following.open_queries({**parcel, "version": 6}, since=2)
    goes_on = known.queries.monitor()
    goes_on.load(blob)
    assert [(row["sign"], row["query"]) for row in goes_on.refresh().to_pylist()] == [(1, "b4")]
    assert following.open_queries({**parcel, "version": 6}, since=2).queries is known.queries
    registry.close()
