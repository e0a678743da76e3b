"""Late rows of a moving join: what each option does with them, and what the state stores for that."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from spark import fleets

import vedette as vd
from vedette.data.ids import Ids
from vedette.operators.moving_join import moving_join, moving_set
from vedette.operators.moving_join.join import IntersectionJoin
from vedette.operators.moving_join.rows import MovingTable, read_moving_rows


def step(moving, a=(), b=(), n_dims=2, ids=fleets.NUMBERS):
    """The lines that a batch of rows changes."""
    table = moving.update(*(fleets.to_table(rows, n_dims, ids) for rows in (a, b)))
    return fleets.as_lines(table.to_pylist())


def make_join(**options):
    return vd.MovingJoin(fleets.INTERVAL, **options)


def read_rows(rows, n_dims):
    """Rows as a shard gets them."""
    table = MovingTable(fleets.to_table(rows, n_dims), "a") if rows else None
    return read_moving_rows(table, None, Ids(), "a", n_dims=n_dims, time=None, is_static=False)


def reloaded(base, deltas, **options):
    """The join from its saved state."""
    other = make_join(**options)
    other.load(base)
    for delta in deltas:
        other.apply_delta(delta)
    return other


@pytest.mark.parametrize(("n_dims", "n_rows", "n_ids"), [(2, 2, 8), (3, 4, 8), (2, 9, 20)])
def test_shards_that_step_at_all_times_find_together_what_one_join_finds(n_dims, n_rows, n_ids):
    """Many rows at many times: some rows are extended just when other objects update."""
    sets = [fleets.make_rows(16, n_rows, seed, n_ids, n_dims, spacing=1.5) for seed in (30, 31)]
    times = np.array([time for rows in sets for _, time, _ in rows])

    lines = []
    for row, column in itertools.product(range(2), range(3)):
        a, b = [each for each in sets[0] if each[0] % 2 == row], [each for each in sets[1] if each[0] % 3 == column]
        for table in make_join().update_each(*(read_rows(rows, n_dims) for rows in (a, b)), times, 1 << 30):
            lines += fleets.as_lines(table.to_pylist())

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
def test_late_rows_count_from_the_time_of_the_join_or_not_at_all(late, batches):
    moving, lines, base, deltas = make_join(late=late), [], None, []
    for sides in batches:
        if base is not None and len(deltas) % 2:
            moving = reloaded(base, deltas, late=late)
        lines += step(moving, *sides) if any(sides) else []
        if base is None:
            base = moving.save()
        else:
            deltas.append(moving.take_delta())

    world, clock = fleets.make_world(*batches, late=late)
    if clock >= 0:
        for time in (*np.arange(0, clock, 0.75).tolist(), clock):
            assert fleets.pairs_at(lines, time) == world.pairs(time), time


def square(x, size=2, speed=0.0):
    return ((x, x + size, speed, speed), (0.0, 1.0, 0.0, 0.0))


def test_a_removal_counts_however_late_it_comes():
    moving = make_join()
    step(moving, [(1, 0.0, square(0))], [(7, 0.0, square(1))])
    step(moving, [(1, 10.0, square(0))], [])
    assert moving.n_b == 1
    step(moving, [], [(7, 3.0, None)])  # late by more than the interval, and nothing comes after it
    assert moving.n_b == 0


def test_a_removed_zone_does_not_come_back_with_an_older_row():
    moving = make_join(static="b")
    step(moving, [(1, 0.0, square(0))], [(7, 0.0, square(1))])
    step(moving, [(1, 10.0, square(0))], [(7, 10.0, None)])
    for time in (17.0, 30.0):
        step(moving, [(1, time, square(0))], [])
    step(moving, [], [(7, 5.0, square(1))])
    assert moving.n_b == 0


def test_a_late_row_is_applied_at_its_position_now():
    moving = make_join()
    step(moving, a=[(1, 10.0, square(0.0))])

    assert step(moving, b=[(7, 8.0, square(-6.0, speed=2.0))]) == [(1, 1, 7, 10.0, 12.0)]


def test_of_two_late_rows_of_an_object_the_older_is_dropped():
    moving = make_join()
    step(moving, a=[(1, 10.0, square(0.0))])
    step(moving, b=[(7, 8.0, square(0.0))])

    assert step(moving, b=[(7, 7.0, square(50.0))]) == []
    assert step(moving, b=[(7, 9.0, square(50.0))]) == [(-1, 1, 7, 10.0, 16.0)]


def test_a_removed_object_does_not_come_back_with_an_older_row():
    moving = make_join()
    step(moving, a=[(1, 10.0, square(0.0)), (2, 10.0, square(0.0))], b=[(7, 10.0, None)])

    assert step(moving, b=[(7, 9.0, square(0.0))]) == []
    assert len(step(moving, b=[(7, 10.0, square(0.0))])) == 2


def test_objects_that_were_removed_long_ago_are_forgotten(monkeypatch):
    monkeypatch.setattr(moving_set, "FEW_FREED", 10)
    moving = make_join()
    step(moving, a=[(id_, float(id_), None) for id_ in range(200)])

    assert moving.n_a == 0
    assert len(moving.join.a.ids) <= fleets.INTERVAL + 1


def test_a_row_late_by_more_than_the_interval_is_dropped_but_not_of_a_static_set():
    for options, n_lines in (({}, 0), ({"static": "b"}, 1)):
        moving = make_join(**options)
        step(moving, a=[(1, 10.0, square(0.0))])

        assert len(step(moving, b=[(7, 3.9, square(0.0))])) == n_lines


def test_late_rows_are_named_if_they_are_an_error():
    moving = make_join(late="error")
    step(moving, a=[(1, 10.0, square(0.0))])

    with pytest.raises(
        vd.RowError,
        match=r"late is 'error', and 2 rows of set b came late: the first has time 7 and id 5, and the join is at 10",
    ):
        step(moving, b=[(7, 8.0, square(0.0)), (5, 7.0, square(0.0)), (5, 11.0, square(0.0))])


def test_dropped_rows_are_counted_and_saved():
    moving = make_join(late="drop")
    step(moving, a=[(1, 10.0, square(0.0))])
    step(moving, b=[(7, 8.0, square(0.0)), (5, 7.0, square(0.0)), (5, 11.0, square(0.0))])

    assert moving.n_late == 2
    assert reloaded(moving.save(), [], late="drop").n_late == 2


def test_a_refused_update_counts_no_late_rows_and_remembers_none(monkeypatch):
    moving = make_join()
    step(moving, a=[(id_, 10.0, square(0.0)) for id_ in range(20)])
    monkeypatch.setattr(moving_join, "max_answer_bytes", lambda: 400)

    with pytest.raises(vd.AnswerError):
        step(moving, b=[(7, 9.0, square(0.0)), (8, 1.0, square(0.0)), (9, 9.0, None)])
    assert (moving.n_late, moving.n_b) == (0, 0)
    monkeypatch.undo()
    assert len(step(moving, b=[(9, 8.0, square(0.0))])) == 20


def test_a_late_row_that_has_moved_out_of_range_is_refused():
    moving = make_join()
    step(moving, a=[(1, 10.0, square(0.0))])

    with pytest.raises(vd.RowError, match=r"a late row of set b, id 7, has moved beyond 1e\+100 by 10; use smaller"):
        step(moving, b=[(7, 8.0, ((9e99, 9e99, 9e99, 9e99), (0.0, 1.0, 0.0, 0.0)))])
    assert step(moving, b=[(7, 10.0, square(0.0))])


# Rows of the static set without times.


def zones(ids, x=0.0):
    ones = np.ones(len(ids))
    return {"id": ids, "x_low": x * ones, "x_high": (x + 5) * ones, "y_low": 0 * ones, "y_high": ones}


def test_zones_without_times_are_applied_at_the_time_that_the_join_has_reached():
    moving = make_join(static="b")
    assert moving.update(b=zones([1, 2])).num_rows == 0  # they wait for the first time
    assert moving.update(b=zones([2], x=50.0), remove_b=[1]).num_rows == 0
    assert step(moving, a=[(7, 10.0, square(0.0))]) == []
    assert moving.update(b=zones([1])).to_pylist() == [{"sign": 1, "a": 7, "b": 1, "start": 10.0, "end": 16.0}]
    step(moving, a=[(7, 12.0, square(50.0))])
    assert pairs_of(moving) == {(7, 2)}
    assert fleets.as_lines(moving.update(remove_b=[2]).to_pylist()) == [(-1, 7, 2, 12.0, 18.0)]
    moving.update(b=zones([3], x=48.0))
    assert pairs_of(moving) == {(7, 3)}


def test_zones_that_wait_are_saved():
    moving = make_join(static="a")
    moving.update(a=zones(["old", "new"]), remove_a=["old"])
    other = reloaded(moving.save(), [moving.take_delta()], static="a")

    assert step(other, b=[(7, 10.0, square(0.0))]) == [(1, "new", 7, 10.0, 16.0)]
    assert other.waiting is None


def test_only_the_static_set_may_lack_times():
    moving = make_join(static="b")
    with pytest.raises(vd.RowError, match=r"the rows of set a lack column 'time'; add one"):
        moving.update(a={**zones([1]), "vx": [0.0], "vy": [0.0]})
    with pytest.raises(vd.RowError, match=r"objects of set a are to be removed, but the time is missing"):
        moving.update(remove_a=[1])
    moving.update(b=zones([1]))
    with pytest.raises(vd.RowError, match=r"the rows of set a have a z, but the join has two dimensions"):
        moving.update(a={**zones([1]), "z": [0.0], "vx": [0.0], "vy": [0.0], "vz": [0.0]}, time=1)


def pairs_of(moving):
    return {(row["a"], row["b"]) for row in moving.pairs().to_pylist()}


# The state.


@pytest.mark.parametrize("n_dims", [2, 3])
@pytest.mark.parametrize("ids", [pa.int64(), pa.string()])
def test_a_join_continues_from_its_state_and_deltas_to_the_last_bit(n_dims, ids):
    batches = [fleets.cut(fleets.make_rows(12, 3, seed, n_dims=n_dims), 12) for seed in (3, 4)]
    straight, carried, base, deltas = make_join(), make_join(), None, []
    for a, b in zip(*batches, strict=True):
        if base is not None:
            carried = reloaded(base, deltas)
        lines = step(carried, a, b, n_dims, ids)
        if base is None:
            base = carried.save()
        else:
            deltas.append(carried.take_delta())

        assert lines == step(straight, a, b, n_dims, ids)
    assert straight.n_pairs > 3


def test_updates_store_no_pairs_and_find_none_again_after_loading(monkeypatch):
    """Spark never lists pairs, so neither a step, nor a new worker, nor `nbytes` may find them."""
    batches = [fleets.cut(fleets.make_rows(12, 3, seed), 6) for seed in (3, 4)]
    monkeypatch.setattr(IntersectionJoin, "start", lambda join: pytest.fail("the initial join runs"))
    moving, n_lines = make_join(), 0
    for a, b in zip(*batches, strict=True):
        n_lines += len(step(moving, a, b))
        moving = reloaded(moving.save(), [])
        assert moving.nbytes > 0

    assert n_lines > 10
    assert moving.join.calendar is None
