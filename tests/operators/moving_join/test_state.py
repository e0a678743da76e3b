"""The state of a moving join: save, load and deltas."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from numba import config

import vedette as vd

SLOW = bool(config.DISABLE_JIT)


def some(random, ids):
    low, speed = random.integers(0, 40, (2, len(ids))), random.integers(-2, 3, (2, len(ids)))
    sides = {"x_low": low[0], "x_high": low[0] + 3, "y_low": low[1], "y_high": low[1] + 3}
    return {"id": ids, **{name: values.astype(float) for name, values in sides.items()}, "vx": speed[0], "vy": speed[1]}


def everything(moving):
    now = moving.time
    at = [sorted(map(tuple, zip(*moving.pairs(at=now + t).to_pydict().values(), strict=True))) for t in (0, 3, 30)]
    return now, moving.n_a, moving.n_b, at, sorted(map(str, moving.overdue().to_pylist()))


def walk(moving, random, steps, n=40):
    for _ in range(steps):
        ids = random.choice(n, 5, replace=False), random.choice(n, 5, replace=False)
        gone = random.choice(n, 2, replace=False)
        moving.update(a=some(random, ids[0]), b=some(random, ids[1]), remove_a=gone, time=moving.time + 1)


def begun(random, n=40, **options):
    moving = vd.MovingJoin(10, **options)
    moving.load(a=some(random, np.arange(n)), b=some(random, np.arange(n)), time=100)
    return moving


@pytest.mark.parametrize("options", [{}, {"expire_overdue": True}, {"static": "b"}])
def test_a_loaded_state_answers_and_continues_as_the_saved_one(options):
    random = np.random.default_rng(1)
    moving = begun(random, **options)
    walk(moving, random, 4 if SLOW else 20)
    copy = vd.MovingJoin(10, **options)
    copy.load(moving.save())
    assert everything(copy) == everything(moving)
    assert [each.to_numbers() for each in copy.join.rates] == [each.to_numbers() for each in moving.join.rates]

    told = []
    for each in (moving, copy):
        walk(each, np.random.default_rng(2), 3)
        told.append(sorted(map(str, each.changes.to_pylist())))
    assert told[0] == told[1]
    assert everything(copy) == everything(moving)


def test_a_pickled_join_continues_as_the_original():
    random = np.random.default_rng(8)
    moving = begun(random, 60 if SLOW else 400)
    copy = pickle.loads(pickle.dumps(moving))
    for each in (moving, copy):
        walk(each, np.random.default_rng(9), 4 if SLOW else 25, n=300)
    assert everything(copy) == everything(moving)


def test_deltas_update_a_state():
    random = np.random.default_rng(3)
    moving = begun(random)
    copy = vd.MovingJoin(10)
    copy.load(moving.save())
    for _ in range(4):
        walk(moving, random, 3)
        copy.apply_delta(moving.take_delta())
        assert everything(copy) == everything(moving)
        blob = copy.take_delta()  # an applied delta is not taken again
        assert len(blob) < 2_000


def test_a_delta_is_as_small_as_the_changes():
    random = np.random.default_rng(4)
    n = 300 if SLOW else 5_000
    moving = begun(random, n)
    whole = len(moving.save())
    moving.update(a=some(random, np.array([1, 2, 3])), time=101)
    assert len(moving.take_delta()) < whole / 20


def test_deltas_from_nothing_and_of_everything():
    moving, copy = vd.MovingJoin(10), vd.MovingJoin(10)
    copy.load(moving.save())
    assert copy.time is None
    copy.apply_delta(moving.take_delta())
    random = np.random.default_rng(5)
    moving.load(a=some(random, np.arange(9)), b=some(random, np.arange(9)), time=0)
    copy.apply_delta(moving.take_delta())
    assert everything(copy) == everything(moving)


def test_a_state_that_does_not_fit_is_refused():
    random = np.random.default_rng(6)
    moving = begun(random)
    blob = moving.save()
    walk(moving, random, 1)
    before = everything(moving)
    with pytest.raises(
        vd.SnapshotError, match=r"^the state was saved with max_update_interval=10\.0, and here it is 20"
    ):
        vd.MovingJoin(20).load(blob)
    with pytest.raises(vd.SnapshotError, match=r"^the state was saved with static=None, and here it is 'a'"):
        vd.MovingJoin(10, static="a").load(blob)
    with pytest.raises(vd.SnapshotError, match=r"^the bytes are a delta; load what `save` returned"):
        moving.load(moving.take_delta())
    with pytest.raises(vd.SnapshotError, match=r"damaged"):
        moving.load(blob[:-1] + b"!")
    with pytest.raises(vd.SnapshotError, match=r"^a saved moving join state is bytes; got int"):
        moving.load(7)
    bands = vd.BandQuerySet().monitor()
    with pytest.raises(vd.SnapshotError, match=r"^the bytes are not a saved moving join state but a band join state"):
        moving.load(bands.save())
    with pytest.raises(
        vd.QueryError, match=r"^load takes a saved state, or sets a and b with their time, but not both$"
    ):
        moving.load(blob, time=3)
    assert everything(moving) == before


def test_a_delta_of_a_join_that_was_loaded_again_is_whole():
    random = np.random.default_rng(5)
    moving = begun(random)
    copy = vd.MovingJoin(10)
    copy.load(moving.save())
    names = [f"n{i}" for i in range(8)]
    named = some(random, np.arange(8)) | {"id": names, "z": np.arange(8.0), "vz": np.zeros(8)}
    moving.load(a=named, b=named, time=3)
    copy.apply_delta(moving.take_delta())
    assert everything(copy) == everything(moving)
    moving.clear()
    copy.apply_delta(moving.take_delta())
    assert (copy.n_a, copy.n_b, copy.time) == (0, 0, None)


def test_a_join_that_only_applies_deltas_frees_the_memory_of_removed_objects():
    random = np.random.default_rng(6)
    moving = begun(random)
    copy = vd.MovingJoin(10)
    copy.load(moving.save())
    for start in range(100, 6100, 1000):
        ids = np.arange(start, start + 1000)
        moving.update(a=some(random, ids), time=moving.time)
        moving.update(remove_a=ids, time=moving.time)
        moving.update(time=moving.time + 11)
        copy.apply_delta(moving.take_delta())
    assert len(copy.join.a.ids) < 3000
    assert everything(copy) == everything(moving)


def test_changes_that_no_delta_takes_need_one_byte_per_object():
    random = np.random.default_rng(7)
    n, n_steps = (30, 5) if SLOW else (500, 40)
    moving = begun(random, n)
    other, copy = pickle.loads(pickle.dumps(moving)), vd.MovingJoin(10)
    copy.load(moving.save())
    for step in range(n_steps):
        rows = [some(random, np.arange(n)) for _ in "ab"]
        for each in (moving, other):
            each.update(*rows, remove_a=[step], time=101 + step)
    grown = [len(pickle.dumps(each)) for each in (moving, other)]
    assert grown[0] < grown[1] + 4 * n + 2_000
    copy.apply_delta(moving.take_delta())
    assert everything(copy) == everything(moving)
