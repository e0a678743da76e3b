"""The cost model of section 7: how many updates there are, what one reads, and which interval is the best."""

from __future__ import annotations

import numpy as np
import pytest
from papers.moving.boxes import SLOW

from vedette.operators.moving_join.motions import Motions
from vedette.papers.moving import NO_TECHNIQUES, MTBJoin, Tally, TPRStarTree
from vedette.papers.moving.cost_model import (
    METHODS,
    CostModel,
    count_updates,
    equation_1,
    equivalent_updates,
    estimate_probability,
    expect_accesses,
    find_duration,
    mean_speed,
    recommend,
)
from vedette.papers.moving.window_query import query_windows


def crowd(seed, n, low, high, side=5.0):
    numbers = np.random.default_rng(seed)
    lows, speeds = numbers.uniform(low, high, (2, n)), numbers.uniform(-1, 1, (2, n))
    return Motions(lows, lows + side, speeds, speeds.copy(), np.zeros(n))


@pytest.mark.parametrize(("probability", "interval"), [(0.01, 60), (0.1, 7), (0.0, 20), (1.0, 5)])
def test_updates_and_their_probability_are_those_of_a_simulation(probability, interval):
    numbers, n_objects = np.random.default_rng(1), 400
    ages, n_updates, replaced = numbers.integers(0, interval, n_objects), 0, []
    for time in range(8 * interval):
        ages += 1
        is_updated = (numbers.random(n_objects) < probability) | (ages >= interval)
        if time >= 2 * interval:
            n_updates += int(is_updated.sum())
            replaced.append(ages[is_updated].astype(float))
        ages[is_updated] = 0

    expected = count_updates(n_objects, probability, interval)
    assert n_updates / (6 * interval) == pytest.approx(float(expected), rel=0.05)
    assert estimate_probability(np.concatenate(replaced), interval) == pytest.approx(probability, abs=0.01)


def test_equation_1_counts_voluntary_updates_and_an_even_share_of_forced_ones():
    assert equation_1(10_000, 0.01, 60.0) == pytest.approx(100 + 10_000 * 0.99**60 / 60)
    assert equation_1(10, 1.0, 1.0) == pytest.approx(float(count_updates(10, 1.0, 1.0)))


def test_eight_updates_represent_all_directions_and_keep_their_size():
    eight = equivalent_updates("eight-vbr", 0.5, 2)
    assert eight.shape == (8, 2, 2)
    assert np.array_equal(eight[:, 0], eight[:, 1])
    assert sorted(map(tuple, eight[:, 0].tolist())) == sorted(
        (0.5 * x, 0.5 * y) for x in (-1, 0, 1) for y in (-1, 0, 1) if x or y
    )
    assert equivalent_updates("eight-vbr", 0.5, 3).shape == (26, 2, 3)
    assert equivalent_updates("zero-vbr", 0.5, 2).tolist() == [[[0, 0], [0, 0]]]
    assert equivalent_updates("expanding-mbr", 0.5, 2).tolist() == [[[-0.5, -0.5], [0.5, 0.5]]]
    with pytest.raises(ValueError, match="method must be one of zero-vbr, expanding-mbr, eight-vbr; got 'one-vbr'"):
        equivalent_updates("one-vbr", 0.5, 2)


@pytest.mark.parametrize("duration", [0.0, 20.0])
def test_expected_accesses_are_those_of_queries_at_random_places(duration):
    """Equation 2, where all that nodes sweep is within the space."""
    n, n_queries = (60, 150) if SLOW else (600, 4000)
    tree, tally, numbers = TPRStarTree.make(2, 20.0, capacity=10), Tally.make(), np.random.default_rng(2)
    tree.insert(np.arange(n, dtype=np.int32), crowd(1, n, 40, 160), 0.0)
    centres, sides, speed = numbers.uniform(0, 200, (2, n_queries)), np.array([6.0, 3.0]), np.array([0.5, -0.5])
    lows, speeds = centres - sides[:, None] / 2, np.repeat(speed[:, None], n_queries, axis=1)
    queries = Motions(lows, lows + sides[:, None], speeds, speeds.copy(), np.full(n_queries, 2.0))
    query_windows(tree, queries, 2.0, 2.0 + duration, tally)

    updates = np.array([[speed, speed]])
    expected = expect_accesses(tree.nodes, sides, updates, 2.0, np.array([duration]), 200.0**2)
    assert expected[0] == pytest.approx(tally.node_accesses / n_queries, rel=0.35 if SLOW else 0.1)


@pytest.mark.parametrize("n_buckets", [1, 2, 3])
def test_an_update_looks_as_far_ahead_as_the_model_says(n_buckets):
    none, nothing = np.empty(0, np.int32), Motions.empty(2)
    join = MTBJoin.build(crowd(1, 30, 0, 100), crowd(2, 30, 0, 100), 0.0, 12.0, n_buckets=n_buckets, capacity=4)
    for time in range(1, 12):
        places = np.array([time, time + 15], np.int32)
        motions = crowd(time, 2, 0, 100)
        join.update(float(time), places, motions.rebased(float(time)), none, nothing)
        current = join.a.find_bucket(join.time)
        ends = {bucket: end for bucket, (_, end) in zip(sorted(join.a.trees), join.a.parts(join.time), strict=True)}
        for bucket, end in ends.items():
            assert find_duration(12.0, n_buckets, current - bucket, join.time) == pytest.approx(end - join.time)


def test_the_model_predicts_the_reads_of_updates_and_longer_intervals_read_more():
    n, space, interval = (120, 100.0, 12) if SLOW else (1500, 350.0, 30)
    numbers, sets = np.random.default_rng(3), [crowd(1, n, 0, space), crowd(2, n, 0, space)]
    join = MTBJoin.build(*sets, 0.0, float(interval), techniques=NO_TECHNIQUES, capacity=20)
    models = {
        method: CostModel.make([interval / 2, interval, 2 * interval], *sets, 0.0, space**2, method)
        for method in METHODS
    }
    order, n_updates = numbers.permuted(np.tile(np.arange(n), (2, 1)), axis=1), 0
    for time in range(1, 2 * interval + 1):
        share = np.arange(n * (time - 1) // interval, n * time // interval) % n
        places = [np.sort(order[side][share]).astype(np.int32) for side in range(2)]
        changed = [crowd(100 * time + side, len(places[side]), 0, space).rebased(0.0) for side in range(2)]
        changed = [Motions(c.lows, c.highs, c.low_speeds, c.high_speeds, np.full(len(c), float(time))) for c in changed]
        join.update(float(time), places[0], changed[0], places[1], changed[1])
        if time == interval:
            join.tally.reset()
            n_updates = 0
        n_updates += len(places[0]) + len(places[1])
        for model in models.values():
            if time > interval:
                model.observe(join)
    actual = join.tally.node_accesses / n_updates
    costs = {method: model.update_costs.mean(axis=0) for method, model in models.items()}

    assert costs["eight-vbr"][1] == pytest.approx(actual, rel=0.4)
    assert costs["zero-vbr"][1] <= costs["eight-vbr"][1] <= costs["expanding-mbr"][1]
    for each in costs.values():
        assert (np.diff(each) > 0).all()
    best = models["eight-vbr"].recommend((n, n), (0.01, 0.01))
    assert best.interval == models["eight-vbr"].candidates[np.argmin(best.costs)]


def test_rare_updates_make_long_intervals_best_and_frequent_ones_short():
    """Section 7.5."""
    candidates, costs = [10, 30, 60, 120], [np.array([2.0, 3.0, 5.0, 12.0])] * 2
    chosen = [recommend(candidates, costs, (100, 100), (p, p)).interval for p in (0.0, 0.01, 0.1, 1.0)]

    assert chosen == sorted(chosen, reverse=True)
    assert chosen[-1] == 10
    with pytest.raises(ValueError, match="candidates must be intervals greater than zero; got \\[0, 60\\]"):
        recommend([0, 60], costs, (100, 100), (0.1, 0.1))
    assert mean_speed(Motions.empty(2)) == 0
