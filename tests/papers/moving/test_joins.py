"""What every continuous join promises: the pairs of the oracle, at first, of changed objects, and at every moment."""

from __future__ import annotations

import pickle
import random

import numpy as np
import oracles_moving_joins as oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st
from papers.moving.boxes import as_batch, as_dict, as_motions, assert_same, random_box, two_sets

from tests.profiles import examples
from vedette.operators.moving_join.motions import Motions
from vedette.papers.moving import ALL_TECHNIQUES, JOINS, NO_TECHNIQUES, MTBJoin, NaiveJoin, TCJoin, Techniques
from vedette.papers.moving.nodes import as_slots, meet_slots

INTERVAL = 4.0
every_join = pytest.mark.parametrize("join", JOINS.values(), ids=JOINS)
SINGLE = [
    Techniques(plane_sweep=True),
    Techniques(plane_sweep=True, dimension_selection=True),
    Techniques(intersection_check=True),
    Techniques(intersection_check=True, improved_order=True),
    Techniques(group_updates=True),
]
every_technique = pytest.mark.parametrize(
    "techniques", [*SINGLE, ALL_TECHNIQUES, NO_TECHNIQUES], ids=lambda which: "+".join(map(str, np.flatnonzero(which)))
)


def build(join, a, b, time=0.0, **options):
    options.setdefault("capacity", 4)
    return join.build(as_motions(a), as_motions(b), time, INTERVAL, **options)


def horizon(join, time):
    return oracle.INFINITY if join is NaiveJoin else time + INTERVAL


@every_join
@given(sets=two_sets())
@examples(0.5)
def test_initial_pairs_are_those_of_brute_force(join, sets):
    a, b = sets
    built = pickle.loads(pickle.dumps(build(join, a, b)))

    expected = oracle.pairs_within(dict(enumerate(a)), dict(enumerate(b)), 0, horizon(join, 0))
    assert_same(as_dict(built.initial_pairs()), expected)


@every_technique
@given(sets=two_sets(max_size=30))
@examples(0.25)
def test_no_technique_changes_the_answer(techniques, sets):
    a, b = sets
    expected = oracle.pairs_within(dict(enumerate(a)), dict(enumerate(b)), 0, INTERVAL)

    for join in (TCJoin, MTBJoin):
        assert_same(as_dict(build(join, a, b, techniques=techniques).initial_pairs()), expected)


class Stream:
    """Random updates that keep the interval, with removals and returns, and both sets as dicts of boxes."""

    def __init__(self, seed, n_dims=2, n=12):
        self.random = random.Random(seed)
        self.n_dims = n_dims
        self.sets = [{i: random_box(self.random, n_dims, 0) for i in range(n)} for _ in range(2)]
        self.updated = [dict.fromkeys(range(n), 0) for _ in range(2)]
        self.n_ever = n

    def step(self, time):
        """What changes and what goes at a time, of both sets; it is applied here, too."""
        batch = []
        for boxes, updated in zip(self.sets, self.updated, strict=True):
            gone = [i for i in boxes if self.random.random() < 0.05]
            for i in gone:
                del boxes[i], updated[i]
            due = [i for i in boxes if time - updated[i] >= INTERVAL or self.random.random() < 0.2]
            away = [i for i in range(self.n_ever + 1) if i not in boxes and i not in gone]
            if away and self.random.random() < 0.5:
                due.append(self.random.choice(away))
            changed = {i: random_box(self.random, self.n_dims, time) for i in due}
            boxes.update(changed)
            updated.update(dict.fromkeys(due, time))
            batch.append((changed, gone))
        self.n_ever = max([self.n_ever, *(i + 1 for boxes in self.sets for i in boxes)])
        return batch


def take_in(join, time, batch, n_dims):
    (a, a_gone), (b, b_gone) = batch
    gone = np.array(a_gone, np.int32), np.array(b_gone, np.int32)
    return as_dict(join.update(float(time), *as_batch(a, n_dims), *as_batch(b, n_dims), *gone))


@every_join
@given(seed=st.integers(0, 2**32), n_dims=st.sampled_from([2, 3]))
@examples(0.08)
def test_updates_give_the_pairs_of_changed_objects_as_far_as_the_algorithm_looks(join, seed, n_dims):
    stream = Stream(seed, n_dims)
    built = build(join, stream.sets[0].values(), stream.sets[1].values())
    for time in range(1, 10):
        before = [dict(updated) for updated in stream.updated]
        batch = stream.step(time)
        found = take_in(built, time, batch, n_dims)
        (a_changed, _), (b_changed, _) = batch

        def end(i, j, time=time, before=before, a_changed=a_changed, b_changed=b_changed):
            """Until when a pair is told: MTB-Join looks until the end of the bucket of the object that was there."""
            if join is not MTBJoin or (i in a_changed and j in b_changed):
                return horizon(join, time)
            last = before[1][j] if i in a_changed else before[0][i]
            bucket = -(-last // (INTERVAL / 2)) * (INTERVAL / 2)
            return min(bucket, time) + INTERVAL

        within = oracle.pairs_within(stream.sets[0], stream.sets[1], time, end)
        expected = {(i, j): when for (i, j), when in within.items() if i in a_changed or j in b_changed}
        assert_same(found, expected)


@every_join
@given(seed=st.integers(0, 2**32), n_dims=st.sampled_from([2, 3]))
@examples(0.08)
def test_reported_pairs_are_the_answer_at_every_moment_while_objects_keep_the_interval(join, seed, n_dims):
    """Theorems 1 and 2."""
    stream = Stream(seed, n_dims)
    built = build(join, stream.sets[0].values(), stream.sets[1].values())
    told = as_dict(built.initial_pairs())
    for time in range(1, 14):
        for part in (0.0, 0.25, 0.5):  # of the timestamp before
            moment = time - 1 + part
            current = {pair for pair, (start, end) in told.items() if start <= moment <= end}

            assert current == oracle.pairs_at(*stream.sets, moment)
        batch = stream.step(time)
        named = [{*changed, *gone} for changed, gone in batch]
        told = {(i, j): when for (i, j), when in told.items() if i not in named[0] and j not in named[1]}
        told |= take_in(built, time, batch, n_dims)


@pytest.mark.parametrize("n_buckets", [1, 2, 3, 5])
@given(seed=st.integers(0, 2**32))
@examples(0.15)
def test_any_number_of_buckets_gives_the_answer_in_at_most_one_more_tree(n_buckets, seed):
    stream = Stream(seed)
    built = build(MTBJoin, stream.sets[0].values(), stream.sets[1].values(), n_buckets=n_buckets)
    told = as_dict(built.initial_pairs())
    for time in range(1, 10):
        batch = stream.step(time)
        named = [{*changed, *gone} for changed, gone in batch]
        told = {(i, j): when for (i, j), when in told.items() if i not in named[0] and j not in named[1]}
        told |= take_in(built, time, batch, 2)
        current = {pair for pair, (start, end) in told.items() if start <= time <= end}

        assert current == oracle.pairs_at(*stream.sets, time)
        for trees, boxes in zip((built.a, built.b), stream.sets, strict=True):
            assert len(trees) == len(boxes)
            assert len(trees.trees) <= n_buckets + 1


@pytest.mark.parametrize("techniques", [NO_TECHNIQUES, ALL_TECHNIQUES], ids=["none", "all"])
@given(seed=st.integers(0, 2**32), time=st.sampled_from([0.0, 0.7, 1234567.1]))
def test_pairs_are_those_of_comparing_all_to_the_last_bit_so_that_rounding_hides_no_touch(techniques, seed, time):
    """Sides that touch at tenths, some of them for ever: doubles that are hardly ever equal on two ways."""
    numbers = np.random.default_rng(seed)
    a, b = (_tenths(numbers, 25, time) for _ in range(2))
    built = TCJoin.build(a, b, time, INTERVAL, techniques=techniques, capacity=4)

    assert as_dict(built.initial_pairs()) == _compare_all(a, b, time, time + INTERVAL)
    changed, places = _tenths(numbers, 12, time + 0.3), np.arange(12, dtype=np.int32)
    found = as_dict(built.update(time + 0.3, places, changed, np.empty(0, np.int32), Motions.empty(2)))
    assert found == _compare_all(changed, b, time + 0.3, time + 0.3 + INTERVAL)


def _tenths(numbers, n, time):
    lows, sides = numbers.integers(0, 40, (2, n)) / 10, numbers.integers(0, 10, (2, n)) / 10
    low_speeds = numbers.choice([0.0, 0.1, -0.3, 0.7], (2, n))
    high_speeds = low_speeds + numbers.choice([0.0, 0.0, 0.1], (2, n))
    return Motions(lows, lows + sides, low_speeds, high_speeds, time - numbers.integers(0, 5, n) / 10)


def _compare_all(a, b, start, end):
    slots = as_slots(a), as_slots(b)
    everything = {
        (i, j): meet_slots(slots[0], i, slots[1], j, start, end) for i in range(len(a)) for j in range(len(b))
    }
    return {pair: when for pair, when in everything.items() if when[0] <= when[1]}


@every_join
def test_equal_velocities_apart_never_meet_and_empty_sets_have_no_pairs(join):
    apart = [([10.0 * i, 0.0], [10.0 * i + 1, 1.0], [1.0, 1.0], [1.0, 1.0], 0.0) for i in range(9)]
    found = build(join, apart[::2], apart[1::2]).initial_pairs()
    assert len(found.a) == 0
    for a, b in ((apart, []), ([], apart), ([], [])):
        built = build(join, a, b)
        assert len(built.initial_pairs().a) == 0
        none, nothing = np.empty(0, np.int32), Motions.empty(2)
        assert len(built.update(1.0, none, nothing, none, nothing).a) == 0
        some = np.arange(len(apart), dtype=np.int32)
        assert len(built.update(2.0, some, as_motions(apart), none, nothing).a) == len(b)


@every_join
def test_invalid_batches_are_refused(join):
    box = ([0.0, 0.0], [1.0, 1.0], [0.0, 0.0], [0.0, 0.0], 0.0)
    built = build(join, [box] * 3, [box] * 2, time=5.0)
    none, nothing = np.empty(0, np.int32), Motions.empty(2)

    with pytest.raises(ValueError, match="time runs backwards: got 4 after 5; pass batches in time order"):
        built.update(4.0, none, nothing, none, nothing)
    with pytest.raises(ValueError, match="object 1 is named more than once in a batch; pass only its last motion"):
        built.update(6.0, np.array([1, 0, 1], np.int32), as_motions([box] * 3), none, nothing)
