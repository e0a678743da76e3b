"""A monitor that catches up by deltas, from any earlier batch, equals the one that stepped: answers and state."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import vedette as vd
from tests.profiles import examples
from vedette.operators.band_join import side as band_side
from vedette.operators.border import key_state
from vedette.operators.moving_join import moving_set
from vedette.operators.window_join import join as window_join
from vedette.operators.window_join import monitor as join_monitor

from .window_join.test_state import Streams, pairs_of
from .workers import Workers

seeds = st.integers(0, 2**32)


def lines(table):
    return sorted(map(repr, table.to_pylist()))


# Border monitoring.


@examples(0.25)
@given(seed=seeds, has_delays=st.booleans())
def test_border_monitors_catch_up(seed, has_delays):
    random_ = random.Random(seed)
    queries = vd.QuerySet("k string, x double, y double, s string, t bigint")
    queries.retain()
    options = {"expire_after": random_.choice([None, 5])}
    if has_delays:
        options |= {"dwell": 3, "margin": {"x": 0.5}}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(key_state, "FEW_FREED", random_.choice([0, 1024]))
        workers = Workers(random_, lambda: queries.border(key="k", time="t", **options), "border state")
        active = []
        for batch in range(30):
            change_queries(random_, queries, active, batch)
            rows = make_rows(random_, batch)
            workers.step(lambda monitor, rows=rows: lines(monitor.step(rows, advance=False)))
            if random_.random() < 0.4:
                workers.step(lambda monitor, time=batch: lines(monitor.advance(time)))
    assert workers.n_caught_up > 3


def change_queries(random_, queries, active, batch):
    for number in range(random_.choice([0, 0, 1, 2])):
        text = random_.choice(
            ["x < {0}", "x > {0} AND y < {1}", "s = 'a{0}'", "x BETWEEN {0} AND {1}", "y > {0} OR s = 'a{1}'"]
        )
        active.append(f"q{batch}-{number}")
        queries.add(active[-1], text.format(random_.randint(0, 4), random_.randint(2, 6)))
    if len(active) > 3 and random_.random() < 0.3:
        queries.remove(active.pop(random_.randrange(len(active))))
    if active and random_.random() < 0.2:
        queries.replace(random_.choice(active), f"x < {random_.randint(0, 5)}")


def make_rows(random_, batch):
    n = random_.choice([0, 1, 5, 20])

    def some(values):
        return [random_.choice(values) for _ in range(n)]

    numbers = [0.0, 1.0, 2.5, 4.0, 6.0, None, float("nan")]
    times = [batch + random_.choice([-2, 0, 0, 1]) for _ in range(n)]
    keys, texts = [f"key{i}" for i in range(12)], ["a0", "a2", "a3", None]
    return {"k": some(keys), "x": some(numbers), "y": some(numbers), "s": some(texts), "t": times}


# Window joins.


@examples(0.25)
@given(seed=seeds, times=st.sampled_from(["whole", "doubles", "none"]))
def test_window_joins_catch_up(seed, times):
    random_ = random.Random(seed)
    streams = Streams(random_, random_.choice(["strings", "numbers", "none"]), times)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(join_monitor, "_MAX_NUMBER", random_.choice([40, 2**31 - 1]))
        patch.setattr(window_join, "FEW_CODES", random_.choice([-1000, 0, 1 << 16]))
        workers = Workers(random_, streams.open, "window join state")
        for rows in streams.steps():
            streams.change()
            workers.step(lambda monitor, rows=rows: pairs_of(monitor.step(**rows)))


def test_a_window_join_that_catches_up_builds_no_lists():
    pairs = vd.JoinQuerySet(left="k bigint, x double, t bigint", right="k bigint, x double, t bigint")
    pairs.add("near", "left.k = right.k AND left.x - right.x BETWEEN -1 AND 1", within=50)
    random_ = random.Random(1)
    workers = Workers(
        random_, lambda: pairs.window(left_time="t", right_time="t"), "window join state", share_loaded=0.0
    )
    n_pairs = 0
    for batch in range(40):
        if batch == 20:
            pairs.add("above", "left.k = right.k AND left.x > right.x", within=20)
        rows = {
            side: {"k": keys.tolist(), "x": keys * 0.7, "t": [batch] * 6}
            for side, keys in zip(("left", "right"), np.random.default_rng(batch).integers(0, 5, (2, 6)), strict=True)
        }
        n_pairs += len(workers.step(lambda monitor, rows=rows: pairs_of(monitor.step(**rows))))
    assert n_pairs > 100
    assert workers.n_caught_up > 15
    assert max(monitor.n_rebuilt for monitor, _ in workers.kept) == 1  # after the state was loaded


# Band joins.


@examples(0.25)
@given(seed=seeds, report=st.sampled_from(["pairs", "queries"]))
def test_band_joins_catch_up(seed, report):
    random_ = random.Random(seed)
    bands = vd.BandQuerySet()
    bands.add_many(["near", "above"], [-1.0, 0.0], [1.0, 100.0])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(band_side, "FEW_FREED", random_.choice([0, 1024]))
        workers = Workers(random_, lambda: bands.monitor(report=report, known_id="replace"), "band join state")
        for batch in range(25):
            if random_.random() < 0.2:
                bands.add(f"q{batch}", -0.5, random_.choice([0.0, 1.0, 2.5]))
            sides = {side: value_rows(random_) for side in ("left", "right")}
            workers.step(lambda monitor, sides=sides: lines(monitor.step(**sides)))
    assert workers.n_caught_up > 3


def value_rows(random_):
    n = random_.choice([0, 1, 4, 15])
    ids = [random_.randrange(30) for _ in range(n)]
    ops = [random_.choice(["insert", "insert", "delete"]) for _ in range(n)]
    return {"id": np.array(ids, np.int64), "value": [random_.choice([0.0, 0.5, 1.0, 3.0]) for _ in range(n)], "op": ops}


# Moving joins.


@examples(0.25)
@given(
    seed=seeds,
    options=st.sampled_from([{}, {"expire_overdue": True}, {"static": "b"}, {"late": "drop"}]),
)
def test_moving_joins_catch_up(seed, options):
    random_ = random.Random(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(moving_set, "FEW_FREED", random_.choice([0, 1024]))
        patch.setattr(moving_set, "MANY", random_.choice([1, 4]))
        workers = Workers(random_, lambda: vd.MovingJoin(6, **options), "moving join state")
        time = 0.0
        for _ in range(25):
            time += random_.choice([0.0, 0.5, 1.0, 4.0])
            sets = {name: motions(random_, time, is_timed=random_.random() < 0.5) for name in "ab"}
            gone = [random_.randrange(15) for _ in range(random_.choice([0, 0, 2]))]
            workers.step(
                lambda monitor, sets=sets, gone=gone, time=time: lines(
                    monitor.update(**sets, remove_a=sorted(set(gone) - set(sets["a"]["id"])), time=time)
                )
            )
    assert workers.n_caught_up > 3


def motions(random_, time, *, is_timed):
    ids = random_.sample(range(15), random_.choice([0, 1, 3, 12]))
    n = len(ids)
    lows = {axis: [float(random_.randint(-4, 4)) for _ in range(n)] for axis in "xy"}
    rows = {"id": np.array(ids, np.int64)}
    for axis, values in lows.items():
        rows |= {f"{axis}_low": values, f"{axis}_high": [low + random_.choice([0.0, 1.0, 2.0]) for low in values]}
        rows[f"v{axis}"] = [random_.choice([-1.0, 0.0, 0.5, 2.0]) for _ in range(n)]
    if is_timed:
        rows["time"] = [time - random_.choice([0.0, 0.0, 0.5, 7.0]) for _ in range(n)]
    return rows


def test_a_moving_join_that_catches_up_builds_no_grid():
    random_ = random.Random(2)
    numbers = np.random.default_rng(2)
    workers = Workers(random_, lambda: vd.MovingJoin(60), "moving join state", share_loaded=0.0)

    def objects(ids):
        low = numbers.uniform(0, 100, (2, len(ids)))
        sides = {"x_low": low[0], "x_high": low[0] + 2, "y_low": low[1], "y_high": low[1] + 2}
        return {"id": ids, **sides, "vx": numbers.uniform(-1, 1, len(ids)), "vy": numbers.uniform(-1, 1, len(ids))}

    everything = {name: objects(np.arange(400)) for name in "ab"}
    workers.step(lambda monitor: lines(monitor.update(**everything, time=0.0)))
    for batch in range(1, 30):
        few = {name: objects(numbers.choice(400, 5, replace=False)) for name in "ab"}
        workers.step(lambda monitor, few=few, time=float(batch): lines(monitor.update(**few, time=time)))
    assert workers.n_caught_up > 10
    assert max(monitor.n_rebuilt for monitor, _ in workers.kept) <= 4
