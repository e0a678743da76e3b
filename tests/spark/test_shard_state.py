"""The state of a shard between batches: what is written and read, and when a worker reuses its monitor."""

from __future__ import annotations

import json
import random
from collections import Counter

import pytest

import vedette as vd
from vedette.host_files.memory_budget import MemoryBudget
from vedette.spark.shards import monitor_cache
from vedette.spark.shards import state as shard_state
from vedette.spark.shards.monitor_cache import MonitorCache
from vedette.spark.shards.state import LoadCounts, ShardState

FACTS = {
    "format": 1,
    "operator": "border monitor",
    "shards": 2,
    "key": ["symbol", "string"],
    "time": ["ts", "timestamp"],
    "report": "pairs",
}


class Store:
    """Spark's state variables of one shard, after a committed batch."""

    def __init__(self):
        self.content, self.pieces, self.n_read, self.n_written = None, {}, 0, 0

    def exists(self):
        return self.content is not None

    def get(self):
        assert self.exists(), "Spark warns in its log where there is no value"
        return self.content

    def update(self, value):
        self.content = value

    def getValue(self, key):  # noqa: N802
        self.n_read += len(self.pieces[key][0])
        return self.pieces[key]

    def updateValue(self, key, value):  # noqa: N802
        assert len(value[0]) <= shard_state.PIECE_BYTES
        self.n_written += len(value[0])
        self.pieces[key] = value

    def removeKey(self, key):  # noqa: N802
        del self.pieces[key]

    def copy(self):
        other = Store()
        other.content, other.pieces = self.content, dict(self.pieces)
        return other


class Sums:
    """A fake monitor: a sum per key."""

    n_rebuilt = 0

    def __init__(self, n_pad=0):
        self.sums, self.changed, self.n_pad = {}, set(), n_pad

    @property
    def state_nbytes(self):
        return sum(map(len, self.sums))

    def add(self, key, value):
        self.sums[key] = self.sums.get(key, 0) + value
        self.changed.add(key)

    def save(self):
        return json.dumps([self.sums, "x" * self.n_pad]).encode()

    def load(self, blob):
        if blob.startswith(b"bad"):
            raise vd.SnapshotError("of another set")
        self.sums, pad = json.loads(blob)
        self.n_pad = len(pad)
        self.changed = set()

    def take_delta(self):
        delta = {key: self.sums[key] for key in self.changed}
        self.changed = set()
        return json.dumps(delta).encode()

    def apply_delta(self, blob):
        self.sums |= json.loads(blob)


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    """A fresh worker for every test, on a host of its own."""
    monkeypatch.setattr(monitor_cache, "MemoryBudget", lambda purpose: MemoryBudget(purpose, tmp_path))
    monkeypatch.setattr(shard_state, "counts", LoadCounts())
    another_worker(monkeypatch)


def another_worker(monkeypatch):
    monkeypatch.setattr(shard_state, "_cache", MonitorCache())


def opened(store, make=Sums, facts=FACTS, place="shard", kind="queries", **options):
    state = ShardState(store, store, facts, make, place, kind, **options)
    state.open()
    return state


def run_batch(store, additions, make=Sums, **options):
    state = opened(store, make, **options)
    monitor = state.load()
    for key, value in additions.items():
        monitor.add(key, value)
    state.save(monitor)
    return monitor.sums.copy()


def test_a_worker_reuses_its_monitor_and_reads_nothing():
    store = Store()
    for _ in range(5):
        sums = run_batch(store, {"a": 1})

    assert sums == {"a": 5}
    assert store.n_read == 0


def test_another_worker_reads_the_base_and_all_deltas(monkeypatch):
    store = Store()
    for number in range(5):
        run_batch(store, {"a": 1, f"k{number}": number})
    another_worker(monkeypatch)

    assert run_batch(store, {}) == {"a": 5} | {f"k{number}": number for number in range(5)}


def test_a_worker_that_missed_batches_reads_only_their_deltas(monkeypatch):
    store = Store()
    run_batch(store, {"a": 1}, lambda: Sums(n_pad=100_000))
    run_batch(store, {"a": 1})
    mine = shard_state._cache
    another_worker(monkeypatch)
    for _ in range(3):
        run_batch(store, {"a": 1})
    store.n_read = 0
    monkeypatch.setattr(shard_state, "_cache", mine)

    assert run_batch(store, {}) == {"a": 5}
    assert 0 < store.n_read < 100


def test_the_monitor_of_a_failed_attempt_is_not_reused():
    store = Store()
    run_batch(store, {"a": 1})
    committed = store.copy()
    assert run_batch(store, {"a": 10}) == {"a": 11}  # the batch fails after this, and Spark discards what it wrote

    assert run_batch(committed, {"a": 2}) == {"a": 3}
    assert run_batch(committed, {}) == {"a": 3}


def test_two_streams_from_copies_of_a_checkpoint_do_not_mix():
    one = Store()
    run_batch(one, {"a": 1})
    other = one.copy()
    for _ in range(3):
        run_batch(one, {"a": 1})
        run_batch(other, {"a": 10})

    assert run_batch(one, {}) == {"a": 4}
    assert run_batch(other, {}) == {"a": 31}


def test_a_worker_does_not_reuse_a_monitor_of_other_queries():
    store = Store()
    run_batch(store, {"a": 1})
    made = []
    state = opened(store, lambda: made.append(Sums()) or made[-1], kind="other queries")

    assert state.load().sums == {"a": 1}
    assert made


def test_a_state_knows_whether_its_queries_have_changed():
    store = Store()
    assert not opened(store).is_changed
    run_batch(store, {"a": 1})

    assert not opened(store).is_changed
    other = opened(store, kind="other queries")
    assert other.is_changed
    other.save(other.load())
    assert not opened(store, kind="other queries").is_changed


def test_a_batch_writes_only_what_it_changed():
    store = Store()
    run_batch(store, {f"key-{number}": number for number in range(200_000)})
    store.n_written = 0
    for _ in range(20):
        run_batch(store, {"key-1": 1})

    assert store.n_written < 1000


def test_deltas_larger_than_the_base_become_a_new_base(monkeypatch):
    store = Store()
    keys = {f"key-{number}": 1 for number in range(20_000)}
    for _ in range(20):
        sums = run_batch(store, keys)
        stored = sum(len(content) for (content,) in store.pieces.values())
        assert stored <= 3 * max(shard_state.LIGHT, len(json.dumps(sums)))  # the base, and deltas before and after it
    another_worker(monkeypatch)

    assert run_batch(store, {}) == dict.fromkeys(keys, 20)


def test_many_small_deltas_become_a_new_base():
    store = Store()
    for _ in range(200):
        run_batch(store, {"a": 1})

    assert len(store.pieces) <= 1 + 2 * shard_state.LIGHT // shard_state.LEAST_WEIGHT


def test_a_large_state_is_stored_in_pieces(monkeypatch):
    monkeypatch.setattr(shard_state, "PIECE_BYTES", 1000)
    store = Store()
    keys = {f"key-{number}": number for number in range(5000)}
    run_batch(store, keys)
    assert len(store.pieces) > 50
    run_batch(store, {"key-1": 1})
    another_worker(monkeypatch)

    assert run_batch(store, {}) == keys | {"key-1": 2}


def test_a_worker_keeps_the_monitors_that_fit_so_that_some_shards_are_always_in_memory():
    stores = [Store() for _ in range(10)]
    for _ in range(3):
        for number, store in enumerate(stores):
            run_batch(store, {"k" * 400: 1}, place=number, cache_bytes=1000)

    assert shard_state._cache.places == [0, 1]
    assert shard_state.counts == LoadCounts(n_new=10, n_kept=4, n_loaded=16)


def test_a_monitor_that_does_not_fit_is_read_again_and_logged_once(caplog):
    store = Store()
    for _ in range(3):
        sums = run_batch(store, {"k" * 400: 1}, cache_bytes=300)

    assert sums == {"k" * 400: 3}
    assert shard_state._cache.places == []
    assert caplog.messages == [
        "the state of a shard (400 bytes) is read again in each batch: the monitors of this host exceed 300 bytes "
        "(setting monitor_cache_bytes)"
    ]


def test_monitors_that_are_no_longer_used_make_room(monkeypatch):
    run_batch(Store(), {"k" * 400: 1}, place="a stream that ends", cache_bytes=500)
    run_batch(Store(), {"k" * 400: 1}, place="another", cache_bytes=500)
    assert shard_state._cache.places == ["a stream that ends"]
    monkeypatch.setattr(monitor_cache, "IDLE_SECONDS", -1.0)
    run_batch(Store(), {"k" * 400: 1}, place="another", cache_bytes=500)

    assert shard_state._cache.places == ["another"]


def test_workers_of_a_host_share_one_limit(monkeypatch):
    caches = [MonitorCache() for _ in range(4)]
    for number, cache in enumerate(caches * 3):
        monkeypatch.setattr(shard_state, "_cache", cache)
        run_batch(Store(), {"k" * 400: 1}, place=number, cache_bytes=2000)
        assert sum(each.n_bytes for each in caches) <= 2000

    assert [cache.n_bytes for cache in caches] == [400] * 4


# Workers that take turns.


class Host:
    """Shards with stores, and workers with caches; each batch of a shard runs on any worker."""

    def __init__(self, monkeypatch, n_workers, n_shards, make=Sums):
        self.monkeypatch, self.random, self.make = monkeypatch, random.Random(1), make
        self.caches = [MonitorCache() for _ in range(n_workers)]
        self.stores = [Store() for _ in range(n_shards)]
        self.expected = [Counter() for _ in range(n_shards)]

    def run_batch(self, n_keys, n_touched):
        for shard, store in enumerate(self.stores):
            self.monkeypatch.setattr(shard_state, "_cache", self.random.choice(self.caches))
            keys = self.random.sample(range(n_keys), n_touched)
            self.expected[shard].update(f"key-{key}" for key in keys)
            sums = run_batch(
                store, dict.fromkeys((f"key-{key}" for key in keys), 1), self.make, place=shard, number=shard
            )
            assert sums == self.expected[shard]


@pytest.mark.parametrize(("n_keys", "n_touched", "light"), [(100, 10, None), (2000, 100, 0)])
def test_workers_that_take_turns_rarely_load_a_whole_state(monkeypatch, n_keys, n_touched, light):
    if light is not None:  # the state is large beside its deltas, and bases are written often
        monkeypatch.setattr(shard_state, "LIGHT", light)
        monkeypatch.setattr(shard_state, "LEAST_WEIGHT", 1)
    host = Host(monkeypatch, n_workers=4, n_shards=3)
    host.run_batch(n_keys, n_keys)
    for _ in range(20):
        host.run_batch(n_keys, n_touched)
    monkeypatch.setattr(shard_state, "counts", LoadCounts())
    for _ in range(200):
        host.run_batch(n_keys, n_touched)

    assert shard_state.counts.n_steps == 600
    assert shard_state.counts.n_full <= 0.05 * 600
    assert shard_state.counts.n_caught_up > 0.6 * 600


def test_shards_write_their_bases_in_different_batches(monkeypatch):
    """With equal shards, each writes a base in every 20th batch or so; without a shift, all would in the same."""
    monkeypatch.setattr(shard_state, "LIGHT", 0)
    monkeypatch.setattr(shard_state, "LEAST_WEIGHT", 1)
    host = Host(monkeypatch, n_workers=1, n_shards=16)
    host.run_batch(1000, 1000)
    numbers, rewritten = [0] * 16, []
    for _ in range(100):
        host.run_batch(1000, 50)
        found = [json.loads(store.content[0])["first"] for store in host.stores]
        rewritten.append(sum(now != before for now, before in zip(found, numbers, strict=True)))
        numbers = found

    assert sum(rewritten) >= 16 * 4
    assert max(rewritten) <= 4


def test_shards_write_bases_for_new_versions_in_different_batches(monkeypatch):
    monkeypatch.setattr(shard_state, "RETAINED_VERSIONS", 400)
    monkeypatch.setattr(shard_state, "LIGHT", 1 << 40)
    stores, numbers, rewritten = [Store() for _ in range(16)], [0] * 16, []
    for version in range(1, 400):
        for shard, store in enumerate(stores):
            state = opened(store, place=shard, number=shard)
            state.follow(None, version)
            assert state.base_version is None or version - state.base_version <= 201
            state.save(state.load())
        found = [json.loads(store.content[0])["first"] for store in stores]
        rewritten.append(sum(now != before for now, before in zip(found, numbers, strict=True)))
        numbers = found

    assert sum(rewritten) >= 16
    assert max(rewritten) <= 2


def test_a_checkpoint_without_earlier_deltas_continues():
    store = Store()
    for _ in range(3):
        run_batch(store, {"a": 1})
    content = json.loads(store.content[0])
    del content["earlier"], content["shifted"]  # as earlier versions wrote it
    store.content = (json.dumps(content),)

    assert run_batch(store, {"a": 1}) == {"a": 4}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"shards": 5},
            r"has 2 shards but the stream has 5; pass shards=2, or start .* new",
        ),
        ({"format": 9}, r"has format 1 but this version of vedette writes format 9; continue with the version"),
        ({"key": ["id", "bigint"]}, r"written with key='symbol' \(string\) but the stream has key='id' \(bigint\)"),
        ({"time": ["t", "bigint"]}, r"time='ts' \(timestamp\) but the stream has time='t' \(bigint\); continue with"),
        (
            {"report": "queries"},
            r"written with report='pairs' but the stream has report='queries'; continue with the old value",
        ),
        (
            {"late": "drop"},
            r"written with late=None but the stream has late='drop'; continue with the old value, or start",
        ),
        ({"operator": "band join", "shards": 3}, r"is of a border monitor but the stream is a band join; start"),
    ],
)
def test_a_checkpoint_of_another_stream_is_refused(changed, message):
    store = Store()
    run_batch(store, {"a": 1})

    with pytest.raises(vd.SnapshotError, match=message):
        opened(store, facts=FACTS | changed)


def test_the_error_about_a_state_of_another_query_set_names_the_checkpoint(monkeypatch):
    store = Store()
    run_batch(store, {"a": 1})
    ((key, (content,)),) = store.pieces.items()
    store.pieces[key] = (b"bad" + content[3:],)
    another_worker(monkeypatch)

    with pytest.raises(vd.SnapshotError, match="cannot continue from its checkpoint: of another set"):
        run_batch(store, {})


def test_a_state_with_a_missing_piece_is_an_error(monkeypatch):
    store = Store()
    run_batch(store, {"a": 1})
    store.pieces = dict.fromkeys(store.pieces, (b"",))
    another_worker(monkeypatch)

    with pytest.raises(vd.SnapshotError, match="from its checkpoint: a part of the state is missing; start"):
        run_batch(store, {})


def test_changed_queries_begin_a_new_base(monkeypatch):
    store = Store()
    run_batch(store, {"a": 1})
    run_batch(store, {"a": 1})
    state = opened(store, kind="other queries")
    monitor = state.load()
    monitor.add("b", 1)
    state.save(monitor)

    assert len(store.pieces) == 1
    another_worker(monkeypatch)
    assert opened(store, kind="other queries").load().sums == {"a": 2, "b": 1}
