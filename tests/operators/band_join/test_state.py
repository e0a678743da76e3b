"""The state of a band join: save, load and deltas."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from numba import config

import vedette as vd
from vedette.operators.band_join.history import RETAINED

SLOW = bool(config.DISABLE_JIT)


@pytest.fixture
def bands():
    made = vd.BandQuerySet()
    made.add_many(["near", "above"], [-1.0, 0.0], [1.0, 100.0])
    return made


def rows(ids, values):
    return {"id": ids, "value": values}


def everything(join, queries=("near", "above")):
    return sorted((query, *row.values()) for query in queries for row in join.pairs(query).to_pylist())


def test_a_saved_state_continues_in_another_process(bands):
    join = bands.monitor()
    join.insert(left=rows(["a", "b"], [1.0, 2.0]), right=rows([1, 2], [1.5, -7.0]))
    join.delete(left=["b", "never"])
    copy = pickle.loads(pickle.dumps(bands)).monitor(report="queries")
    copy.load(join.save())

    assert (copy.n_left, copy.n_right, copy.n_unknown) == (1, 2, 1)
    assert sorted(copy.delete(right=[1, 2])["query"].to_pylist()) == ["above", "near"]


def test_changes_of_queries_after_the_save_are_reported_after_loading(bands):
    join = bands.monitor()
    join.insert(left=rows([1], [1.0]), right=rows([1], [0.5]))
    blob = join.save()
    bands.remove("near")
    bands.add("half", 0.5, 0.5)
    later = bands.monitor()
    later.load(blob)

    reported = [(row["sign"], row["query"]) for row in later.insert(right=rows([2], [50.0])).to_pylist()]
    assert reported == [(-1, "near"), (1, "half")]


def test_deltas_update_a_state(bands):
    random = np.random.default_rng(1)
    join, copy = bands.monitor(), bands.monitor()
    copy.load(join.save())
    next_id = 0
    for step in range(12):
        for side in ("left", "right"):
            n = int(random.integers(0, 20))
            ids = list(range(next_id, next_id + n))
            next_id += n
            join.insert(**{side: rows(ids, random.normal(0, 3, n))})
            gone = random.integers(0, next_id + 1, 5)
            join.delete(**{side: np.unique(gone)})
        if step == 5:  # an id is deleted and inserted again between two deltas
            join.delete(left=[0])
            join.insert(left=rows([0], [0.5]))
        if step % 3 == 2:
            copy.apply_delta(join.take_delta())
            assert everything(copy) == everything(join)
            assert (copy.n_left, copy.n_right, copy.n_unknown) == (join.n_left, join.n_right, join.n_unknown)


def test_a_delta_is_as_small_as_the_changes(bands):
    join = bands.monitor()
    join.insert(left=rows(range(10_000), np.arange(10_000.0)))
    whole = join.save()
    join.insert(left=rows([-1], [0.0]))
    join.delete(left=[5])
    delta = join.take_delta()

    assert len(delta) < len(whole) / 20
    copy = bands.monitor()
    copy.load(whole)
    copy.apply_delta(delta)
    assert copy.n_left == 10_000
    assert len(join.take_delta()) < len(whole) / 20


def test_a_delta_after_slots_were_packed_is_whole(bands):
    n = 300 if SLOW else 1_000
    join, copy = bands.monitor(), bands.monitor()
    copy.insert(left=rows([-5], [0.0]))
    copy.load(join.save())
    for start in range(0, 6 * n, n):
        for i in range(start, start + n):
            join.insert(left=rows([i], [float(i)]))
        join.delete(left=range(start, start + n - 1))
    copy.apply_delta(join.take_delta())

    assert copy.n_left == join.n_left == 6
    assert (
        copy.insert(right=rows([0], [float(n - 1)])).num_rows == join.insert(right=rows([0], [float(n - 1)])).num_rows
    )


def test_a_state_that_does_not_fit_is_refused_and_changes_nothing(bands):
    join = bands.monitor()
    join.insert(left=rows([1], [1.0]))
    other = vd.BandQuerySet()
    other.add_many(["near", "above"], [-1.0, 0.0], [1.0, 101.0])
    newer = pickle.loads(pickle.dumps(bands))
    newer.add("more", 0, 1)
    border = vd.QuerySet("k bigint, t bigint, x double").border(key="k", time="t")
    saved = {
        "with another set of queries": other.monitor().save(),
        "saved at version 2 of the queries, which are at version 1 here": newer.monitor().save(),
        "not a saved band join state but a border state": border.save(),
        "the bytes are not a saved band join state": b"what is this",
        "the bytes are a delta; load what `save` returned": _delta(bands),
    }
    for words, blob in saved.items():
        with pytest.raises(vd.SnapshotError, match=words):
            join.load(blob)
    damaged = bytearray(join.save())
    damaged[-70] ^= 1
    with pytest.raises(vd.SnapshotError, match="damaged"):
        join.load(bytes(damaged))

    assert (join.n_left, join.n_right) == (1, 0)


def _delta(bands):
    join = bands.monitor()
    join.save()
    join.insert(left=rows([7], [1.0]))
    return join.take_delta()


def forget_all_changes(bands):
    """Change so many bands that the set no longer knows what changed after its current version."""
    before = bands.version
    for turn in range(3):
        names = [f"{turn}-{i}" for i in range(RETAINED + 10)]
        bands.add_many(names, 0, 1)
        bands.remove_many(names)
    assert bands.oldest_version > before


def test_a_state_older_than_the_known_changes_is_refused_when_it_would_need_them(bands):
    join = bands.monitor()
    join.insert(left=rows([1], [1.0]), right=rows([1], [1.0]))
    blob = join.save()
    del join  # a monitor keeps the changes that it needs
    forget_all_changes(bands)
    later = bands.monitor()
    later.load(blob)

    for change in (later.refresh, lambda: later.insert(left=rows([2], [1.0])), lambda: later.delete(left=[1])):
        with pytest.raises(vd.SnapshotError, match=r"saved at version 1 of the queries; .* known only since version"):
            change()
    assert (later.n_left, later.n_right) == (1, 1)


def test_a_base_older_than_the_known_changes_is_loaded_where_a_later_delta_follows(bands):
    join = bands.monitor()
    join.insert(left=rows([1], [1.0]), right=rows([1], [1.0]))
    base = join.save()
    del join
    forget_all_changes(bands)
    join = bands.monitor()
    join.load(base)
    join.version = bands.version  # as if it had followed every change
    join.insert(left=rows([2], [0.5]))
    delta = join.take_delta()
    bands.add("exact", 0, 0)
    later = bands.monitor()
    later.load(base)
    later.apply_delta(delta)

    assert [row["query"] for row in later.refresh().to_pylist()] == ["exact"]


def test_report_queries_loads_a_state_older_than_the_known_changes(bands):
    alarms = bands.monitor(report="queries")
    alarms.insert(left=rows([1], [1.0]))
    blob = alarms.save()
    forget_all_changes(bands)
    bands.add("exact", 0, 0)

    later = bands.monitor(report="queries")
    later.load(blob)
    assert {"query": "exact"} in later.insert(right=rows([1], [1.0])).to_pylist()
