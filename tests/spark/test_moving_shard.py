"""A shard of a moving join, without Spark: times it hears of, rows that come late, and its state."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from spark import fleets
from spark.moving_shards import make_shard, step

import vedette as vd
from vedette.operators.moving_join.join import IntersectionJoin


def reloaded(shard, base, deltas, n_dims):
    """The shard as another worker has it, from the store."""
    other = make_shard(n_dims)
    other.load(base)
    for delta in deltas:
        other.apply_delta(delta)
    return other


@pytest.mark.parametrize(("n_dims", "n_rows", "n_ids"), [(2, 2, 8), (3, 4, 8), (2, 9, 20)])
def test_shards_that_hear_of_all_times_tell_together_what_one_join_tells(n_dims, n_rows, n_ids):
    """Many rows at many times: some objects are looked at for longer just when others update."""
    sets = [fleets.make_rows(16, n_rows, seed, n_ids, n_dims, spacing=1.5) for seed in (30, 31)]
    times = [time for rows in sets for _, time, _ in rows]

    lines = []
    for row, column in itertools.product(range(2), range(3)):
        a, b = [each for each in sets[0] if each[0] % 2 == row], [each for each in sets[1] if each[0] % 3 == column]
        lines += step(make_shard(n_dims), a, b, times, n_dims)

    assert sorted(lines) == fleets.tell(*sets, n_dims)


# Rows that come late.

number = st.integers(-3, 3).map(float)
side = st.tuples(number, st.integers(0, 3), number, st.sampled_from([0, 0, 1, -1])).map(
    lambda each: (each[0], each[0] + each[1], each[2], each[2] + each[3])
)
late_row = st.tuples(st.integers(0, 2), st.integers(0, 12), st.none() | st.tuples(side, side) | st.tuples(side, side))
late_batches = st.lists(st.tuples(*[st.lists(late_row, max_size=4)] * 2), min_size=1, max_size=6)


@pytest.mark.parametrize("late", ["apply", "drop"])
@given(late_batches)
def test_late_rows_count_from_the_time_that_the_join_has_come_to_or_not_at_all(late, batches):
    shard, lines, base, deltas = make_shard(late=late), [], None, []
    for sides in batches:
        if base is not None and len(deltas) % 2:
            shard = reloaded(shard, base, deltas, 2)
            shard.late = late
        lines += step(shard, *sides)
        if base is None:
            base = shard.save()
        else:
            deltas.append(shard.take_delta())

    world, clock = fleets.make_world(*batches, late=late)
    if clock >= 0:
        for time in (*np.arange(0, clock, 0.75).tolist(), clock):
            assert fleets.pairs_at(lines, time) == world.pairs(time), time


def square(x, size=2, speed=0.0):
    return ((x, x + size, speed, speed), (0.0, 1.0, 0.0, 0.0))


def test_a_removal_counts_however_late_it_comes():
    shard = make_shard()
    step(shard, [(1, 0.0, square(0))], [(7, 0.0, square(1))])
    step(shard, [(1, 10.0, square(0))], [])
    assert shard.join.n_b == 1
    step(shard, [], [(7, 3.0, None)])  # late by more than the interval, and nothing comes after it
    assert shard.join.n_b == 0


def test_a_zone_that_was_removed_does_not_come_back_by_an_older_row():
    shard = make_shard(static="b")
    step(shard, [(1, 0.0, square(0))], [(7, 0.0, square(1))])
    step(shard, [(1, 10.0, square(0))], [(7, 10.0, None)])
    for time in (17.0, 30.0):
        step(shard, [(1, time, square(0))], [])
    step(shard, [], [(7, 5.0, square(1))])
    assert shard.join.n_b == 0


def test_a_late_row_is_where_its_motion_has_brought_it():
    shard = make_shard()
    step(shard, a=[(1, 10.0, square(0.0))])

    assert step(shard, b=[(7, 8.0, square(-6.0, speed=2.0))]) == [(1, 1, 7, 10.0, 12.0)]


def test_a_row_older_than_another_of_its_object_is_dropped_though_both_are_late():
    shard = make_shard()
    step(shard, a=[(1, 10.0, square(0.0))])
    step(shard, b=[(7, 8.0, square(0.0))])

    assert step(shard, b=[(7, 7.0, square(50.0))]) == []
    assert step(shard, b=[(7, 9.0, square(50.0))]) == [(-1, 1, 7, 10.0, 16.0)]


def test_an_object_that_went_does_not_come_back_by_an_older_row():
    shard = make_shard()
    step(shard, a=[(1, 10.0, square(0.0)), (2, 10.0, square(0.0))], b=[(7, 10.0, None)])

    assert step(shard, b=[(7, 9.0, square(0.0))]) == []
    assert len(step(shard, b=[(7, 10.0, square(0.0))])) == 2


def test_what_went_long_ago_is_forgotten():
    shard = make_shard()
    step(shard, a=[(id_, float(id_), None) for id_ in range(40)])

    assert shard.join.n_a == 0
    assert shard.nbytes < shard.join.nbytes + 8 * 200


def test_a_row_late_by_more_than_the_interval_is_dropped_but_not_of_a_static_set():
    for options, n_lines in (({}, 0), ({"static": "b"}, 1)):
        shard = make_shard(**options)
        step(shard, a=[(1, 10.0, square(0.0))])

        assert len(step(shard, b=[(7, 3.9, square(0.0))])) == n_lines


def test_late_rows_are_told_where_they_are_an_error():
    shard = make_shard(late="error")
    step(shard, a=[(1, 10.0, square(0.0))])

    with pytest.raises(
        vd.RowError,
        match=r"late is 'error', and 2 rows of set b came late: the first has time 7 and id 5, and the join is at 10",
    ):
        step(shard, b=[(7, 8.0, square(0.0)), (5, 7.0, square(0.0)), (5, 11.0, square(0.0))])


# The state.


@pytest.mark.parametrize("n_dims", [2, 3])
@pytest.mark.parametrize("ids", [pa.int64(), pa.string()])
def test_a_shard_goes_on_from_its_state_and_deltas_to_the_bit(n_dims, ids):
    batches = [fleets.cut(fleets.make_rows(12, 3, seed, n_dims=n_dims), 12) for seed in (3, 4)]
    batches[0][:2] = batches[1][:2] = [[], []]  # first it only hears of times
    straight, carried = make_shard(n_dims), make_shard(n_dims)
    base, deltas = None, []
    for number, (a, b) in enumerate(zip(*batches, strict=True)):
        if base is not None:
            carried = reloaded(carried, base, deltas, n_dims)
        lines = step(carried, a, b, [float(number)], n_dims, ids)
        if base is None:
            base = carried.save()
        else:
            deltas.append(carried.take_delta())

        assert lines == step(straight, a, b, [float(number)], n_dims, ids)
    assert straight.join.n_pairs > 3


def test_a_shard_keeps_no_pairs_and_finds_none_anew_in_another_worker(monkeypatch):
    """Nobody lists them on Spark, so neither a step, nor a new worker, nor a look at its memory may find them."""
    batches = [fleets.cut(fleets.make_rows(12, 3, seed), 6) for seed in (3, 4)]
    monkeypatch.setattr(IntersectionJoin, "start", lambda join: pytest.fail("the initial join runs"))
    shard, base, deltas, n_lines = make_shard(), None, [], 0
    for number, (a, b) in enumerate(zip(*batches, strict=True)):
        if base is not None:
            shard = reloaded(shard, base, deltas, 2)
        n_lines += len(step(shard, a, b, [float(number)]))
        if base is None:
            base = shard.save()
        else:
            deltas.append(shard.take_delta())
        assert shard.nbytes > 0

    assert n_lines > 10
    assert shard.join.join.calendar is None


def test_a_delta_follows_what_has_changed():
    shard = make_shard()
    step(shard, a=[(id_, 0.0, square(3.0 * id_)) for id_ in range(2000)])
    whole = shard.save()
    step(shard, a=[(1, 1.0, square(0.0)), (2, 1.0, None)])

    assert len(shard.take_delta()) < len(whole) / 20


def test_bytes_that_are_not_its_state_are_refused():
    with pytest.raises(vd.SnapshotError, match="the bytes are not a saved moving shard state but a moving join state"):
        make_shard().load(vd.MovingJoin(fleets.INTERVAL).save())
