"""Which maximum update interval is recommended, and why."""

from __future__ import annotations

import numpy as np
import pytest

import vedette as vd
from vedette.operators.moving_join.interval import UpdateRates, expected_costs


def some(random, ids, n, speed):
    side = n**0.5 * 5
    low, speeds = random.uniform(0, side, (2, len(ids))), random.uniform(-speed, speed, (2, len(ids)))
    sides = {"x_low": low[0], "x_high": low[0] + 3, "y_low": low[1], "y_high": low[1] + 3}
    return {"id": ids, **sides, "vx": speeds[0], "vy": speeds[1]}


def moving_with(voluntary, interval=20.0, n=150, speed=1.0, steps=30):
    """Objects that update at random with some probability per step, and at their deadlines."""
    random = np.random.default_rng(1)
    moving = vd.MovingJoin(interval)
    moving.load(a=some(random, np.arange(n), n, speed), b=some(random, np.arange(n), n, speed), time=0)
    last = np.zeros((2, n))
    for time in range(1, steps + 1):
        ids = [np.flatnonzero((random.random(n) < voluntary) | (time - last[k] >= interval)) for k in range(2)]
        for k in range(2):
            last[k, ids[k]] = time
        moving.update(a=some(random, ids[0], n, speed), b=some(random, ids[1], n, speed), time=time)
    return moving


def test_voluntary_updates_are_distinguished_from_forced_ones():
    for rate in (0.02, 0.2):
        assert moving_with(rate, n=400).join.traffic().rates == pytest.approx((rate, rate), rel=0.2)
    never = moving_with(0.0).join
    assert (never.rates[0].n_voluntary, never.rates[0].n_forced, never.traffic().rates[0]) == (0, 150, 0.0)


def test_a_rate_counts_the_time_in_which_nothing_happened():
    rates = UpdateRates()
    rates.note(np.array([10.0, 10.0, 5.0]), 10.0)
    assert (rates.n_voluntary, rates.n_forced, rates.rate(15.0)) == (1, 2, 1 / 40)


def test_objects_that_update_often_need_a_short_interval():
    candidates = [1, 5, 20, 80, 320]
    busy, calm = moving_with(0.6), moving_with(0.0)
    assert busy.recommend_interval(candidates) <= calm.recommend_interval(candidates)
    assert calm.recommend_interval(candidates) > 1


def test_objects_that_do_not_move_need_the_longest_interval():
    assert moving_with(0.0, speed=0.0).recommend_interval([10, 20, 1000]) == 1000


def test_costs_fall_and_rise_again():
    costs = moving_with(0.01, n=300).interval_costs([0.1, 1, 5, 20, 100, 1000, 10_000])["cost"].to_numpy()
    best = int(np.argmin(costs))
    assert 0 < best < 6
    assert (np.diff(costs[: best + 1]) < 0).all()
    assert (np.diff(costs[best:]) > 0).all()


def test_a_static_set_costs_nothing():
    moving = vd.MovingJoin(20, static="b")
    random = np.random.default_rng(2)
    moving.load(a=some(random, np.arange(50), 50, 1.0), b=some(random, np.arange(50), 50, 0.0), time=0)
    traffic = moving.join.traffic()
    both = expected_costs(traffic.__class__(**{**vars(traffic), "is_static": (False, False)}), np.array([10.0]))
    assert 0 < expected_costs(traffic, np.array([10.0]))[0] < both[0]


@pytest.mark.parametrize("n_dims", [2, 3])
@pytest.mark.parametrize("flat", ["x", "y", "xy", "z", "xz", "xyz"])
@pytest.mark.parametrize("size", [0.0, 2.0])
@pytest.mark.parametrize("speed", [0.0, 1.0])
def test_objects_on_a_line_or_in_one_point_have_finite_costs(n_dims, flat, size, speed):
    random, n = np.random.default_rng(3), 40
    moving = vd.MovingJoin(20)

    def some():
        rows = {"id": np.arange(n)}
        for axis in "xyz"[:n_dims]:
            low = np.zeros(n) if axis in flat else random.uniform(0, 50, n)
            rows |= {f"{axis}_low": low, f"{axis}_high": low + (0.0 if axis in flat else size)}
            rows[f"v{axis}"] = np.zeros(n) if axis in flat else random.uniform(-speed, speed, n)
        return rows

    moving.load(a=some(), b=some(), time=0)
    moving.update(a=some(), time=3)
    costs = moving.interval_costs([1e-9, 0.1, 1, 10, 100, 1000, 1e6])["cost"].to_numpy()
    assert (np.isfinite(costs) & (costs > 0)).all()
    if speed == 0:  # with nothing that moves, looking farther ahead costs no more
        assert moving.recommend_interval([1, 10, 100]) == 100


def test_candidates_are_intervals():
    moving = moving_with(0.1, steps=2, n=20)
    for wrong in ([], [0], [10, -1], [np.nan], ["long"]):
        with pytest.raises(vd.QueryError, match=r"interval"):
            moving.recommend_interval(wrong)
    with pytest.raises(vd.QueryError, match=r"^the join has no objects, so intervals cannot be compared"):
        vd.MovingJoin(60).recommend_interval([10])
