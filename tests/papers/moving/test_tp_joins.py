"""TP-Join and ETP-Join: the current pairs and the next change are those of the oracle, change after change."""

from __future__ import annotations

import numpy as np
import oracles_moving_joins as oracle
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from papers.moving.boxes import as_batch, as_motions, two_sets
from papers.moving.test_joins import Stream

from tests.profiles import examples
from vedette.operators.moving_join.motions import Motions
from vedette.papers.moving import ETPJoin, Moment, Tally, TPRStarTree, tp_join


def plant(boxes):
    tree = TPRStarTree.make(len(boxes[0][0]), 4.0, capacity=4)
    tree.insert(np.arange(len(boxes), dtype=np.int32), as_motions(boxes), 0.0)
    return tree


def as_pairs(a, b):
    pairs = list(zip(a.tolist(), b.tolist(), strict=True))
    assert len(pairs) == len(set(pairs))
    return set(pairs)


STANDING = ([0.0, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0], 0.0)
MET_AT_SEVENTEEN_TENTHS = [
    [*[STANDING] * 4, ([0.0, -5.0], [0.0, -5.0], [0.0, 0.0], [0.0, 2.0], -1.0)],
    [
        *[STANDING] * 2,
        ([0.0, 2.5], [0.0, 2.5], [0.0, -0.5], [0.0, -0.5], -2.5),
        ([0.0, 5.5], [0.0, 5.5], [0.0, -3.0], [0.0, -3.0], 0.0),
    ],
]


@given(sets=two_sets())
@example(sets=MET_AT_SEVENTEEN_TENTHS)
@examples(0.4)
def test_tp_join_reports_the_current_pairs_and_all_pairs_that_change_next(sets):
    a, b = sets
    trees, (a, b) = (plant(a), plant(b)), (dict(enumerate(a)), dict(enumerate(b)))
    for moment in (Moment(0.0), Moment(0.0, True), Moment(1.5), Moment(2.0, True)):
        answer = tp_join(*trees, moment, Tally.make())
        (time, is_after), changed = oracle.next_change(a, b, moment)
        ended = {pair for pair, when in oracle.pairs_within(a, b, -1000, 1000).items() if when[1] == moment.time}

        current = oracle.pairs_at(a, b, moment.time) - (ended if moment.is_after else set())
        assert as_pairs(answer.a, answer.b) == current
        assert answer.expiry.time == pytest.approx(float(time), rel=1e-9, abs=1e-9)
        when_met = oracle.pairs_within(a, b, -(10**9), oracle.INFINITY).items()
        told = as_pairs(answer.a_changes, answer.b_changes)
        if float(time) == time:
            assert (answer.expiry.is_after, told) == (is_after, changed)
        else:  # rounded, pairs that change at once may change one after the other
            assert told
            assert told <= {pair for pair, when in when_met if time in when}
        alone = tp_join(*trees, moment, Tally.make(), with_pairs=False)
        assert len(alone.a) == 0
        assert (alone.expiry, set(alone.a_changes)) == (answer.expiry, set(answer.a_changes))


@given(seed=st.integers(0, 2**32), n_dims=st.sampled_from([2, 3]))
@examples(0.15)
def test_etp_join_follows_the_answer_through_changes_and_updates(seed, n_dims):
    stream = Stream(seed, n_dims, n=8)
    join = ETPJoin.build(*(as_motions(boxes.values()) for boxes in stream.sets), 0.0, 4.0, capacity=4)
    current = as_pairs(*join.current_pairs())
    for time in range(1, 9):
        changes = join.advance(time - 0.5)
        assert (np.diff(changes.times) >= 0).all()
        current = follow(current, changes)
        assert current == as_pairs(*join.current_pairs()) == oracle.pairs_at(*stream.sets, time - 0.5)
        (a, a_gone), (b, b_gone) = stream.step(time)
        gone = np.array(a_gone, np.int32), np.array(b_gone, np.int32)
        changes = join.update(float(time), *as_batch(a, n_dims), *as_batch(b, n_dims), *gone)
        current = follow(current, changes)

        assert current == as_pairs(*join.current_pairs()) == oracle.pairs_at(*stream.sets, time)


def follow(current, changes):
    for sign, a, b in zip(changes.signs.tolist(), changes.a.tolist(), changes.b.tolist(), strict=True):
        assert ((a, b) in current) == (sign < 0)
        current = current | {(a, b)} if sign > 0 else current - {(a, b)}
    return current


def test_every_change_of_the_answer_costs_a_descent_of_both_trees():
    """Boxes that pass by one after the other (Figure 7): two changes each."""
    target = [([0.0, 0.0], [1.0, 1.0], [0.0, 0.0], [0.0, 0.0], 0.0)]
    passing = [([-10.0 * (i + 1), 0.0], [-10.0 * i - 9.0, 1.0], [1.0, 0.0], [1.0, 0.0], 0.0) for i in range(5)]
    join = ETPJoin.build(as_motions(target), as_motions(passing), 0.0, 60.0, capacity=4)
    changes = join.advance(100.0)

    assert changes.times.tolist() == [9.0, 11.0, 19.0, 21.0, 29.0, 31.0, 39.0, 41.0, 49.0, 51.0]
    assert changes.b.tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    assert changes.signs.tolist() == [1, -1] * 5
    assert join.n_runs == 1 + 10


def test_an_update_that_invalidates_the_next_change_makes_it_search_again():
    target = [([0.0, 0.0], [1.0, 1.0], [0.0, 0.0], [0.0, 0.0], 0.0)]
    near, far = (
        ([-3.0, 0.0], [-2.0, 1.0], [1.0, 0.0], [1.0, 0.0], 0.0),
        ([-6.0, 0.0], [-5.0, 1.0], [1.0, 0.0], [1.0, 0.0], 0.0),
    )
    join = ETPJoin.build(as_motions(target), as_motions([near, far]), 0.0, 60.0, capacity=4)
    away = ([-2.0, 50.0], [-1.0, 51.0], [0.0, 0.0], [0.0, 0.0], 1.0)
    join.update(1.0, np.empty(0, np.int32), Motions.empty(2), np.array([0], np.int32), as_motions([away]))

    assert join.answer.expiry == Moment(5.0)
    assert join.advance(5.0).b.tolist() == [1]
    with pytest.raises(ValueError, match="time runs backwards: got 4 after 5"):
        join.advance(4.0)
