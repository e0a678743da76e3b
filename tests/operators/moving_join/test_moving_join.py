"""The answers of a moving join, compared with a model in plain Python and exact fractions."""

from __future__ import annotations

from datetime import datetime
from math import inf

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import config
from oracles_moving import Ledger, Motion, World

import vedette as vd
from tests.profiles import examples
from vedette.operators.moving_join import moving_set

SLOW = bool(config.DISABLE_JIT)
INTERVAL = 6

# Few distinct numbers, so that sides touch, speeds are equal, and updates come exactly at deadlines.
side = st.tuples(
    st.integers(-6, 6),
    st.integers(0, 3),
    st.sampled_from([-2, -1, 0, 0, 0.5, 1, 2]),
    st.sampled_from([0, 0, 0, -0.5, 1]),
)
duration = st.sampled_from([0, 0.5, 1, 1, 2, INTERVAL, INTERVAL + 1, 3 * INTERVAL])


def motions(n_dims):
    def make(sides):
        return tuple((low, low + size, speed, speed + growth) for low, size, speed, growth in sides)

    return st.lists(side, min_size=n_dims, max_size=n_dims).map(make)


def batches(n_dims, max_size=4):
    """Rows of one set: an id, and a motion or None if the object is removed."""
    row = st.tuples(st.integers(0, 3), st.none() | motions(n_dims) | motions(n_dims))
    return st.lists(row, max_size=max_size)


def script(n_dims):
    """Objects to load, and then steps: how much time passes, and the rows of both sets."""
    first = st.lists(st.tuples(st.integers(0, 3), motions(n_dims)), max_size=5)
    return st.tuples(
        first,
        first,
        st.lists(st.tuples(duration, batches(n_dims), batches(n_dims)), min_size=1, max_size=5 if SLOW else 8),
    )


def columns(rows, n_dims, time=None):
    """Rows as a table; removals have no numbers."""
    table = {"id": [name for name, *_ in rows], "removed": [sides is None for _, sides, *_ in rows]}
    for d, axis in enumerate("xyz"[:n_dims]):
        for k, name in enumerate((f"{axis}_low", f"{axis}_high", f"v{axis}_low", f"v{axis}_high")):
            table[name] = [None if sides is None else float(sides[d][k]) for _, sides, *_ in rows]
    if time is not None:
        table["time"] = time
    schema = {name: pa.float64() for name in table if name not in ("id", "removed")}
    return pa.table(
        {
            name: pa.array(values, schema.get(name, pa.int64() if name == "id" else pa.bool_()))
            for name, values in table.items()
        }
    )


def pairs(table):
    found = list(zip(table["a"].to_pylist(), table["b"].to_pylist(), strict=True))
    assert len(found) == len(set(found))
    return set(found)


def check(moving, world, ledger, moments):
    now = moving.time
    for time in (now, now + 0.25, now + 1, now + INTERVAL, now + INTERVAL + 0.5, now + 4 * INTERVAL):
        assert pairs(moving.pairs(at=time)) == world.pairs(time), time
    for time in moments[-3:]:
        assert ledger.pairs(time) == world.pairs(time), time
    late = moving.overdue(at=now + 1).to_pylist()
    assert {(row["set"], row["id"]) for row in late} == world.overdue(now + 1)
    check_intervals(world, ledger, now)


def check_intervals(world, ledger, now):
    """Future pairs begin and end when they should, or end at a deadline."""
    wanted = world.meetings()
    for a, b, start, end in ledger.lines:
        if end < now:
            continue
        first, last = wanted[a, b]
        assert start == pytest.approx(float(first), rel=1e-9, abs=1e-9)
        if end != pytest.approx(float(last), rel=1e-9, abs=1e-9):
            covered = [
                world.moves[of][name][-1][0] + INTERVAL for of, name in (("a", a), ("b", b)) if of != world.stands
            ]
            assert min(covered) <= end < last


def replay(script, n_dims, expires=False, stands=None, change=None):
    """Run a script beside its model; `change` replaces the join before each step."""
    a_first, b_first, steps = script
    world = World(INTERVAL, expires, stands)
    moving = vd.MovingJoin(max_update_interval=INTERVAL, expire_overdue=expires, static=stands)
    ledger = Ledger()
    for of, rows in (("a", a_first), ("b", b_first)):
        for name, sides in rows:
            world.put(of, name, 0.0, Motion(0.0, sides))
    ledger.take(moving.load(a=columns(a_first, n_dims), b=columns(b_first, n_dims), time=0))
    check(moving, world, ledger, [0.0])
    time, moments = 0.0, [0.0]
    for passes, a, b in steps:
        moments += [time + passes / 4, time + passes / 2]
        time += passes
        moments.append(time)
        for of, rows in (("a", a), ("b", b)):
            for name, sides in rows:
                world.put(of, name, time, None if sides is None else Motion(time, sides))
        if change is not None:
            moving = change(moving)
        ledger.take(moving.update(a=columns(a, n_dims), b=columns(b, n_dims), time=time))
        assert moving.time == time
        check(moving, world, ledger, moments)
    for moment in moments:  # as it was told, it still is
        assert ledger.pairs(moment) == world.pairs(moment), moment


@given(script(2))
def test_pairs_and_changes_are_those_of_the_model(script):
    replay(script, 2)


@given(script(3))
@examples(0.6)
def test_three_dimensions_are_one_more(script):
    replay(script, 3)


@given(script(2))
@examples(0.6)
def test_with_expire_overdue_an_object_that_misses_its_deadline_leaves_the_result(script):
    replay(script, 2, expires=True)


@given(script(2), st.booleans(), st.sampled_from("ab"))
@examples(0.6)
def test_a_static_set_is_never_overdue(script, expires, stands):
    replay(script, 2, expires=expires, stands=stands)


def loaded_anew(moving):
    copy = vd.MovingJoin(moving.max_update_interval, expire_overdue=moving.expire_overdue, static=moving.static)
    copy.load(moving.save())
    return copy


@given(script(2), st.booleans())
@examples(0.4)
def test_saving_and_loading_between_any_two_steps_changes_nothing(script, expires):
    replay(script, 2, expires=expires, change=loaded_anew)


@given(script(2), st.booleans())
@examples(0.4)
def test_pairs_are_stored_only_after_the_first_call_of_pairs_and_are_the_same_then(script, expires):
    a_first, b_first, steps = script
    asked, unasked = (vd.MovingJoin(INTERVAL, expire_overdue=expires) for _ in range(2))
    time = 0.0
    for passes, a, b in [(0.0, a_first, b_first), *steps]:
        time += passes
        told = [moving.update(a=columns(a, 2), b=columns(b, 2), time=time) for moving in (asked, unasked)]
        assert told[0].to_pylist() == told[1].to_pylist()
        assert asked.pairs().num_rows >= 0

    assert unasked.join.calendar is None
    assert unasked.nbytes < asked.nbytes
    for at in (time, time + INTERVAL / 2, time + 3 * INTERVAL):
        assert pairs(unasked.pairs(at=at)) == pairs(asked.pairs(at=at))
    assert unasked.n_pairs == asked.n_pairs
    events = [sorted(map(str, moving.events().to_pylist())) for moving in (asked, unasked)]
    assert events[0] == events[1]


@given(script(2))
@examples(0.4)
def test_the_answer_does_not_depend_on_how_rows_are_split_into_batches(script):
    """All steps in one batch with a column of times, compared with one step after the other."""
    a_first, b_first, steps = script
    one, many = vd.MovingJoin(INTERVAL), vd.MovingJoin(INTERVAL)
    ledgers = Ledger(), Ledger()
    for moving, ledger in zip((one, many), ledgers, strict=True):
        ledger.take(moving.load(a=columns(a_first, 2), b=columns(b_first, 2), time=0))
    time, rows, times = 0.0, ([], []), ([], [])
    for passes, *both in steps:
        time += passes
        for side, some in enumerate(both):
            rows[side].extend(some)
            times[side].extend([time] * len(some))
        ledgers[1].take(many.update(a=columns(both[0], 2), b=columns(both[1], 2), time=time))
    ledgers[0].take(one.update(a=columns(rows[0], 2, times[0]), b=columns(rows[1], 2, times[1]), time=time))

    assert pairs(one.pairs()) == pairs(many.pairs())
    moments = np.linspace(0, time, 23)
    assert [ledgers[0].pairs(t) for t in moments] == [ledgers[1].pairs(t) for t in moments]


# Named examples.


def still(name, x, y=0.0, size=1.0):
    return {
        "id": [name],
        "x_low": [x],
        "x_high": [x + size],
        "y_low": [y],
        "y_high": [y + size],
        "vx": [0.0],
        "vy": [0.0],
    }


def going(name, x, vx, y=0.0, size=1.0):
    return {**still(name, x, y, size), "vx": [vx]}


def lines(table):
    return [tuple(row.values()) for row in table.to_pylist()]


def test_touching_sides_and_touching_for_one_moment_are_intersecting():
    moving = vd.MovingJoin(60)
    assert lines(moving.load(a=still(1, 0), b=still(1, 1), time=0)) == [(1, 1, 1, 0.0, 60.0)]
    corner = going(2, -5.0, 1.0, y=1.0)  # passes over the upper side of a at x from -4 to 1
    assert lines(moving.load(a=still(1, 0), b=corner, time=0)) == [(1, 1, 2, 4.0, 6.0)]
    moving.load(a=still(1, 0), b={**going(2, 3.0, -1.0, y=-2.0), "vy": [1.0]}, time=0)
    assert pairs(moving.pairs(at=2)) == {(1, 2)}


def test_disjoint_objects_with_equal_speeds_never_intersect():
    moving = vd.MovingJoin(60)
    assert moving.load(a=going(1, 0, 1.0), b=going(2, 1.5, 1.0), time=0).num_rows == 0
    assert moving.pairs(at=1000).num_rows == 0


def test_a_vanished_object_intersects_nothing():
    shrinks = {**still(1, 0, size=4.0), "vx_low": [1.0], "vx_high": [-1.0]}
    del shrinks["vx"]
    moving = vd.MovingJoin(60)
    assert lines(moving.load(a=shrinks, b=still(7, -10, -10, 30), time=0)) == [(1, 1, 7, 0.0, 2.0)]
    assert moving.update(time=200).num_rows == 0
    assert moving.pairs(at=300).num_rows == 0


def test_an_update_cuts_the_intervals_of_its_object():
    moving = vd.MovingJoin(60)
    moving.load(a=going(1, 0, 1.0), b={**still(7, 10), "id": ["z"]}, time=0)
    told = lines(moving.update(a=going(1, 10, 0.0), time=10))
    assert told == [
        (-1, 1, "z", 9.0, 11.0),
        (1, 1, "z", 9.0, np.nextafter(10.0, 0)),
        (1, 1, "z", 10.0, 60.0),
    ]
    assert moving.changes.num_rows == 3


def test_both_objects_of_a_pair_may_update_in_one_batch():
    moving = vd.MovingJoin(60)
    moving.load(a=still(1, 0), b=still(2, 0), time=0)
    told = lines(moving.update(a=going(1, 5, 1.0), b=going(2, 8, 0.0), time=4))
    assert told == [(-1, 1, 2, 0.0, 60.0), (1, 1, 2, 0.0, np.nextafter(4.0, 0)), (1, 1, 2, 6.0, 8.0)]


def test_of_several_updates_of_one_object_in_one_batch_the_last_counts():
    moving = vd.MovingJoin(60)
    moving.load(b=still(2, 0), time=0)
    twice = pd.concat([pd.DataFrame(still(1, x)) for x in (0.0, 50.0, 0.5)])
    assert lines(moving.update(a=twice, time=1)) == [(1, 1, 2, 1.0, 60.0)]
    gone = pd.concat([pd.DataFrame(still(1, 0.0)), pd.DataFrame({"id": [1], "removed": [True]})])
    moving.update(a=gone.assign(removed=gone["removed"] == True), time=2)  # noqa: E712
    assert moving.n_a == 0


def test_a_removed_object_may_come_back():
    moving = vd.MovingJoin(60)
    moving.load(a=still("boat", 0), b=still(2, 0), time=0)
    assert lines(moving.update(remove_a=["boat", "never seen"], time=5)) == [
        (-1, "boat", 2, 0.0, 60.0), (1, "boat", 2, 0.0, np.nextafter(5.0, 0)),
    ]  # fmt: skip
    assert (moving.n_a, moving.pairs().num_rows) == (0, 0)
    assert lines(moving.update(a=still("boat", 1), time=7)) == [(1, "boat", 2, 7.0, 60.0)]


def test_an_object_may_be_inserted_and_removed_in_one_batch():
    moving = vd.MovingJoin(60)
    moving.load(b=still(2, 0), time=0)
    assert moving.update(a=still(1, 0), remove_a=[1], time=1).num_rows == 0
    assert moving.n_a == 0


def test_the_two_sets_have_their_own_ids():
    moving = vd.MovingJoin(60)
    moving.load(a=still(1, 0), b=still(1, 0), time=0)
    assert pairs(moving.pairs()) == {(1, 1)}
    moving.update(remove_a=[1], time=1)
    assert (moving.n_a, moving.n_b) == (0, 1)


def test_an_object_that_misses_its_deadline_keeps_its_motion_and_is_overdue():
    moving = vd.MovingJoin(10)
    moving.load(a=going("late", 0, 1.0), b=still("rock", 30), time=0)
    assert moving.overdue(at=10).num_rows == 0
    assert moving.overdue(at=10.5).to_pylist() == [
        {"set": "a", "id": "late", "deadline": 10.0}, {"set": "b", "id": "rock", "deadline": 10.0},
    ]  # fmt: skip
    assert pairs(moving.pairs(at=30)) == {("late", "rock")}
    assert lines(moving.update(b=still("rock", 30), time=25)) == [(1, "late", "rock", 29.0, 30.0)]
    assert lines(moving.update(time=31)) == [(-1, "late", "rock", 29.0, 30.0), (1, "late", "rock", 29.0, 31.0)]


def test_with_expire_overdue_an_overdue_object_is_gone_until_its_next_row():
    moving = vd.MovingJoin(10, expire_overdue=True)
    moving.load(a=still("late", 0), b=still("rock", 0), time=0)
    assert pairs(moving.pairs(at=10)) == {("late", "rock")}
    assert moving.pairs(at=10.5).num_rows == 0
    moving.update(b=still("rock", 0), time=11)
    assert [row["id"] for row in moving.overdue().to_pylist()] == ["late"]
    assert moving.pairs().num_rows == 0
    assert lines(moving.update(a=still("late", 0), time=12)) == [(1, "late", "rock", 12.0, 21.0)]


def test_a_window_query_is_a_static_set():
    zones = {"id": ["harbour"], "x_low": [10.0], "x_high": [20.0], "y_low": [0.0], "y_high": [5.0]}  # without speeds
    moving = vd.MovingJoin(60, static="b")
    boats = {"id": [1, 2], "x": [0.0, 15.0], "y": [1.0, 1.0], "vx": [1.0, 0.0], "vy": [0.0, 1.0]}
    moving.load(a=boats, b=zones, time=0)
    assert moving.events().to_pylist() == [
        {"time": 4.0, "event": "exit", "a": 2, "b": "harbour"},
        {"time": 10.0, "event": "enter", "a": 1, "b": "harbour"},
        {"time": 20.0, "event": "exit", "a": 1, "b": "harbour"},
    ]
    assert moving.events(until=12)["event"].to_pylist() == ["exit", "enter"]
    moving.update(a={"id": [1], "x": [3.0], "y": [1.0], "vx": [1.0], "vy": [0.0]}, time=1000)
    assert [(row["set"], row["id"]) for row in moving.overdue().to_pylist()] == [("a", 2)]
    assert moving.events()["time"].to_pylist() == [1007.0, 1017.0]


def test_a_deadline_is_not_reported_as_an_exit():
    moving = vd.MovingJoin(10)
    moving.load(a=still(1, 0), b=still(2, 0), time=0)
    assert moving.events().num_rows == 0


@pytest.mark.parametrize("kind", [dict, pd.DataFrame, pl.DataFrame, pa.table])
def test_rows_come_in_any_frame(kind):
    moving = vd.MovingJoin(60)
    moving.load(a=kind(still("x", 0)), b=kind(still("y", 0.5)), time=0)
    assert pairs(moving.pairs()) == {("x", "y")}


def test_rows_may_have_their_own_times():
    moving = vd.MovingJoin(10)
    told = lines(moving.load(a={**going(1, 0, 1.0), "time": [-4]}, b={**still(2, 5), "time": [-2]}))
    assert (told, moving.time) == ([(1, 1, 2, 0.0, 2.0)], -2.0)
    moving.update(a={**going(1, 50, 1.0), "time": [3.5]}, time=4)
    assert moving.time == 4


def test_all_answers_of_a_new_join_are_empty():
    moving = vd.MovingJoin(60)
    assert moving.time is None
    assert (moving.n_a, moving.n_b, moving.n_pairs, moving.nbytes) == (0, 0, 0, 0)
    for table in (moving.pairs(at=3), moving.overdue(), moving.events(), moving.events(until=5), moving.changes):
        assert table.num_rows == 0
    moving.update(a=still(1, 0), time=5)  # without loading
    assert lines(moving.update(b=still(1, 0), time=6)) == [(1, 1, 1, 6.0, 65.0)]


def test_the_first_objects_decide_the_number_of_dimensions():
    moving = vd.MovingJoin(60)
    moving.update(time=3)
    box = {**still(1, 0), "z": [0.0], "vz": [1.0]}
    assert lines(moving.update(a=box, b={**box, "vz": [0.0]}, time=4)) == [(1, 1, 1, 4.0, 4.0)]
    with pytest.raises(vd.RowError, match=r"^the rows of set b lack column 'z_low' \(or 'z'\)"):
        moving.update(b=still(1, 0), time=5)


def test_slots_of_removed_objects_are_used_again(monkeypatch):
    monkeypatch.setattr(moving_set, "FEW_FREED", 10)
    moving = vd.MovingJoin(0.5)  # for so long removed objects are remembered
    moving.load(b=still("b", 0), time=0)
    n = 60 if SLOW else 1500
    for batch in range(4):
        ids = [f"{batch}-{i}" for i in range(n)]
        zeros = np.zeros(n)
        rows = {"id": ids, "x": zeros, "y": zeros, "vx": zeros, "vy": zeros}
        moving.update(a=rows, time=2 * batch + 1)
        assert len(pairs(moving.pairs())) == n
        moving.update(remove_a=ids, time=2 * batch + 2)
        assert moving.pairs().num_rows == 0
    assert len(moving.join.a.ids) < 3 * n
    moving.update(a=still("b", 0), time=20)
    assert pairs(moving.pairs()) == {("b", "b")}


def test_a_pair_takes_less_than_48_bytes():
    n, steps = (200, 4) if SLOW else (4000, 60)
    random = np.random.default_rng(5)
    side = 1000 * (n / 10_000) ** 0.5
    moving = vd.MovingJoin(60)

    def some(ids):
        k = len(ids)
        low = random.uniform(0, side, (2, k))
        speed = random.uniform(-1, 1, (2, k))
        sides = {"x_low": low[0], "x_high": low[0] + 5, "y_low": low[1], "y_high": low[1] + 5}
        return {"id": ids, **sides, "vx": speed[0], "vy": speed[1]}

    moving.load(a=some(np.arange(n)), b=some(np.arange(n)), time=0)
    for time in range(1, steps):
        rows = {of: some(random.choice(n, n // 50, replace=False)) for of in "ab"}
        moving.update(**rows, time=time)
        if not SLOW:
            assert moving.join.pair_nbytes <= 48 * moving.n_pairs


# What cannot be taken.


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            {"x_high": [-1.0]},
            "row 0 of set a, id 1, has x_low 0 above x_high -1; a low side must not be above its high side",
        ),
        ({"y_low": [np.nan]}, "row 0 of set a, id 1, has y_low nan; times, sides and speeds are finite numbers"),
        ({"vx": [np.inf]}, "row 0 of set a, id 1, has vx inf; times, sides and speeds are finite numbers"),
        ({"x_low": [None]}, "row 0 of set a, id 1, has x_low null; times, sides and speeds are finite numbers"),
        (
            {"vy": [1e308]},
            r"row 0 of set a, id 1, has vy 1e\+308; times, sides and speeds are numbers from -1e\+100 to 1",
        ),
        ({"x_low": ["west"]}, "column 'x_low' of set a holds string; sides and speeds are numbers: double, float or"),
        ({"x_low": [[0.0]]}, "column 'x_low' of set a holds list<item: double>; sides and speeds are numbers"),
        ({"x_low": np.zeros((1, 1))}, "column 'x_low' of set a holds an array of 2 dimensions; sides and speeds are"),
        ({"x_low": ["west", 1]}, "column 'x_low' of set a holds values of several types; sides and speeds are numbers"),
        ({"x_low": 0.0}, "set a: field 'x_low' is 0.0, not an array; give arrays of one value$"),
        ({"id": "one"}, "set a: field 'id' is 'one', not an array; give arrays of one value$"),
        (
            {"removed": [1]},
            "column 'removed' of set a holds int64; it is true for a removed object, otherwise false or",
        ),
        ({"removed": ["yes"]}, "column 'removed' of set a holds string; it is true for a removed object"),
        (
            {"time": np.array(["2026-01-01"], "datetime64[us]")},
            r"column 'time' of set a holds timestamp\[us\]; times are numbers, such as seconds since 1970: double",
        ),
        (
            {"x": [0.0]},
            "the rows of set a have 'x', which means both sides, and 'x_low'; pass 'x', or 'x_low' and",
        ),
        ({"vy_high": [0.0]}, "the rows of set a have 'vy', which means both sides, and 'vy_high'; pass 'vy', or"),
        ({"x_low": [0.0, 1.0]}, "the rows of set a have 1 ids but 2 values of 'x_low'"),
        ({"id": [None]}, "the ids of set a: an id is null; ids must be strings or integers"),
        ({"id": ["one"]}, "the ids of set a: the ids of this set are integers; got the string 'one'"),
        ({"time": [7.0]}, "row 0 of set a has time 7, after the time= of the update, 6"),
        ({"z": [0.0], "vz": [0.0]}, "the rows of set a have a z, but the join has two dimensions"),
    ],
)
def test_a_refused_batch_changes_nothing(rows, message):
    moving = vd.MovingJoin(60)
    moving.load(a=still(1, 0), b=still(2, 0), time=5)
    before = moving.save(), moving.pairs().to_pylist(), moving.changes.to_pylist()
    with pytest.raises(vd.RowError, match=r"^" + message.replace("(", r"\(")):
        moving.update(a={**still(1, 0), **rows}, b=still(2, 50), time=6)
    assert (moving.save(), moving.pairs().to_pylist(), moving.changes.to_pylist()) == before
    with pytest.raises(vd.RowError):
        moving.update(b={**still(2, 50), **rows}, a=still(1, 9), time=6)
    assert (moving.save(), moving.pairs().to_pylist(), moving.changes.to_pylist()) == before


def test_a_refused_load_changes_nothing():
    moving = vd.MovingJoin(60)
    moving.load(a=still(1, 0), b=still(2, 0), time=5)
    with pytest.raises(vd.RowError, match="has x_low 0 above x_high -1"):
        moving.load(a={**still(1, 0), "x_high": [-1.0]}, b=still(2, 0), time=0)
    assert (moving.time, pairs(moving.pairs())) == (5.0, {(1, 2)})


def test_time_does_not_go_back():
    moving = vd.MovingJoin(60, late="error")
    moving.load(a=still(1, 0), b=still(2, 0), time=5)
    with pytest.raises(vd.RowError, match=r"^time goes back from 5 to 4; pass 5 or later$"):
        moving.update(a=still(1, 0), time=4)
    assert vd.MovingJoin(60).update(time=5).num_rows == 0
    lenient = vd.MovingJoin(60)
    lenient.load(a=still(1, 0), b=still(2, 0), time=5)
    assert lenient.update(time=4).num_rows == 0
    assert lenient.time == 5
    with pytest.raises(vd.QueryError, match=r"^pairs are known from the current time, 5, on; got 4"):
        moving.pairs(at=4)
    for wrong in (np.nan, inf, "noon", True):
        with pytest.raises(vd.RowError, match=r"^time must be a finite number; got"):
            moving.update(a=still(1, 0), time=wrong)
    for stamp in (datetime(2026, 1, 1), pd.Timestamp("2026-01-01"), np.datetime64("2026-01-01")):
        with pytest.raises(vd.RowError, match=r"^time must be a number, such as seconds since 1970; got"):
            moving.update(a=still(1, 0), time=stamp)
    with pytest.raises(vd.RowError, match=r"^time must be a number from -1e\+100 to 1e\+100; got 1e\+101$"):
        moving.update(a=still(1, 0), time=1e101)


@pytest.mark.parametrize("digits", [400, 10_000])
def test_the_error_about_a_number_of_very_many_digits_is_short(digits):
    huge = 10**digits
    calls = (
        lambda: vd.MovingJoin(60).update(a=still(1, 0), time=huge),
        lambda: vd.MovingJoin(60, static=huge),
        lambda: vd.MovingJoin(60, expire_overdue=huge),
        lambda: vd.ZoneSet(huge),
        lambda: vd.BandQuerySet().remove(huge),
        lambda: vd.BandQuerySet().monitor().values(huge),
    )
    for call in calls:
        with pytest.raises(vd.VedetteError) as caught:
            call()
        assert len(str(caught.value)) < 300


@pytest.mark.parametrize("wrong", [0, -1, np.nan, inf, "60", None, True])
def test_an_interval_is_above_zero(wrong):
    with pytest.raises(vd.QueryError, match=r"^max_update_interval must be "):
        vd.MovingJoin(wrong)


@pytest.mark.parametrize("on", ["y", "xy"])
def test_the_pairs_of_many_objects_on_a_line_or_in_a_point_are_found(on):
    random, n = np.random.default_rng(4), 50
    moving = vd.MovingJoin(60)
    xs = [np.zeros(n) if "x" in on else random.integers(0, 20, n).astype(float) for _ in range(2)]
    zeros = np.zeros(n)
    a, b = ({"id": np.arange(n), "x": x, "y": zeros, "vx": zeros, "vy": zeros} for x in xs)
    moving.load(a=a, b=b, time=0)
    assert pairs(moving.pairs()) == {(i, j) for i in range(n) for j in range(n) if xs[0][i] == xs[1][j]}


def test_an_interval_that_is_too_long_is_refused():
    with pytest.raises(vd.QueryError, match=r"^max_update_interval must be a number above 0, .*; got 1e\+300$"):
        vd.MovingJoin(1e300)


def test_expire_overdue_is_true_or_false():
    for wrong in ("no", 0, None):
        with pytest.raises(vd.QueryError, match=r"^expire_overdue must be True or False; got"):
            vd.MovingJoin(60, expire_overdue=wrong)
    assert vd.MovingJoin(60, expire_overdue=np.True_).expire_overdue is True


@pytest.mark.parametrize(
    "removals",
    [
        ["r12"],
        ("r12",),
        np.array(["r12"], object),
        pa.array(["r12"]),
        pa.chunked_array([["r12"]]),
        pd.Series(["r12"]),
        pl.Series(["r12"]),
        {"id": ["r12"]},
        {"ID": ["r12"], "x": [0.0]},
        pd.DataFrame({"x": [0.0], "id": ["r12"]}),
        pl.DataFrame({"id": ["r12"]}),
        pa.table({"id": ["r12"]}),
        pa.record_batch({"id": ["r12"]}),
    ],
)
def test_objects_are_removed_by_a_list_of_ids_or_by_rows_with_an_id(removals):
    moving = vd.MovingJoin(60)
    moving.load(a=pd.concat([pd.DataFrame(still(name, 0)) for name in ("r", "1", "r12", "id")]), time=0)
    moving.update(remove_a=removals, time=1)
    assert moving.n_a == 3
    moving.update(a=still("r12", 0), time=2)
    assert moving.n_a == 4


@pytest.mark.parametrize(
    ("removals", "words"),
    [
        ("r12", r"or rows with a column 'id'; got 'r12'; for one id, give \['r12'\]"),
        (b"r12", r"or rows with a column 'id'; got b'r12'"),
        (12, r"or rows with a column 'id'; got 12; for one id, give \[12\]"),
        (np.array("r"), r"or rows with a column 'id'; got array\('r'"),
        (pa.scalar("r"), r"or rows with a column 'id'; got <pyarrow.StringScalar: 'r'>"),
        ({"ids": ["r"]}, r"or rows with a column 'id'; these rows have: ids; did you mean 'ids'\?"),
        (pd.DataFrame({"x": [1]}), r"or rows with a column 'id'; these rows have: x"),
        (pl.DataFrame({"x": [1]}), r"or rows with a column 'id'; these rows have: x"),
        (pa.table({"x": [1]}), r"or rows with a column 'id'; these rows have: x"),
        ({"id": "r12"}, r"field 'id' is 'r12', not an array"),
    ],
)
def test_invalid_removals_are_refused(removals, words):
    moving = vd.MovingJoin(60)
    moving.load(a=still("r", 0), b=still("r", 0), time=0)
    for name in "ab":
        with pytest.raises(vd.RowError, match=words):
            moving.update(time=1, **{f"remove_{name}": removals})
    assert (moving.n_a, moving.n_b, moving.time) == (1, 1, 0)


def test_rows_that_only_remove_objects_need_only_an_id():
    moving = vd.MovingJoin(60)
    moving.load(a=still(1, 0), b=still(2, 0), time=0)
    moving.update(a={"id": [1], "removed": [True]}, time=5)
    moving.update(b={"id": [2, 9], "removed": [True, True], "time": [6, 7]})
    assert (moving.n_a, moving.n_b, moving.time) == (0, 0, 7)
    with pytest.raises(vd.RowError, match=r"^the rows of set a lack column 'x_low' \(or 'x'\)"):
        moving.update(a={"id": [1, 2], "removed": [True, False]}, time=8)
    with pytest.raises(vd.RowError, match=r"^the rows of set a lack column 'x_low' \(or 'x'\)"):
        moving.update(a={"id": [], "removed": []}, time=8)


def test_overdue_ids_keep_their_types_where_the_sets_differ():
    moving = vd.MovingJoin(10)
    moving.load(a=still("Ada", 0), time=0)
    assert moving.overdue(at=11).to_pylist() == [{"set": "a", "id": "Ada", "deadline": 10.0}]
    moving.update(b=still(7, 0), time=0)
    late = moving.overdue(at=11)
    assert late.to_pylist() == [
        {"set": "a", "a": "Ada", "b": None, "deadline": 10.0}, {"set": "b", "a": None, "b": 7, "deadline": 10.0},
    ]  # fmt: skip
    moving.update(remove_b=late["b"].drop_null(), remove_a=late["a"].drop_null(), time=12)
    assert (moving.n_a, moving.n_b) == (0, 0)
    none = moving.overdue()
    assert (none.num_rows, none.column_names) == (0, ["set", "a", "b", "deadline"])
    zones = vd.MovingJoin(10, static="b")
    zones.load(a=still(3, 0), b=still("harbour", 0), time=0)
    assert zones.overdue(at=11).to_pylist() == [{"set": "a", "id": 3, "deadline": 10.0}]
    assert zones.overdue(at=5)["id"].type == pa.int64()


def test_loading_again_starts_again_and_retracts_nothing():
    moving = vd.MovingJoin(60)
    moving.load(a=still(1, 0), b=still(2, 0), time=50)
    assert lines(moving.load(a=still(3, 0), b=still(4, 0), time=20)) == [(1, 3, 4, 20.0, 80.0)]
    assert (moving.time, moving.n_a, moving.n_b) == (20, 1, 1)


def test_repr_and_explain_describe_the_join():
    moving = vd.MovingJoin(60, static="b")
    assert repr(moving) == "MovingJoin(max_update_interval=60, 0 objects in a, 0 objects in b, 0 pairs)"
    assert moving.explain() == "no objects yet; each must update at least every 60"
    moving.load(a=still(1, 0), b=still(2, 0), time=5)
    assert repr(moving) == "MovingJoin(max_update_interval=60, 1 object in a, 1 object in b, 1 pair)"
    first, a, b, found, interval, static = moving.explain().splitlines()
    assert first == "1 object in a and 1 object in b at time 5, rectangles in 2 dimensions; 0.0 MB"
    assert "a: 1 object; the grid is built at the first look-up" in a
    assert "b: a grid of 1 x 1 cells over the boxes that objects sweep" in b
    assert "1 pair now or later" in found
    assert found.endswith(" bytes including free room")
    assert interval == (
        "  pairs of an update are computed for 60 ahead; an object that misses its deadline keeps its last motion and "
        "is overdue"
    )
    assert static == "  the objects of b are static: they need not update, and are never overdue"
    again = vd.MovingJoin(60, static="b")
    again.load(moving.save())
    assert repr(again).endswith("1 object in b, pairs not found yet)")
    moving.update(remove_b=[2], time=6)
    assert "  b: no objects" in moving.explain()
    assert "0 pairs now or later, in slices of time by start" in moving.explain()


def test_explain_has_the_memory_of_a_pair_if_there_are_many():
    n = 40
    zeros = np.zeros(n)
    rows = {"id": np.arange(n), "x": zeros, "y": zeros, "vx": zeros, "vy": zeros}
    moving = vd.MovingJoin(60, expire_overdue=True)
    moving.load(a=rows, b=rows, time=0)
    text = moving.explain()
    assert "  1,600 pairs now or later, in slices of time by start, " in text
    assert f", {moving.join.pair_nbytes / n**2:.0f} bytes a pair including free room" in text
    assert "an object that misses its deadline leaves the result" in text


def test_messages_say_what_would_work():
    moving = vd.MovingJoin(60)
    with pytest.raises(vd.RowError, match=r"^no rows; pass a= or b=, or both, and time=$"):
        moving.load(time=0)
    with pytest.raises(vd.RowError, match=r"^the rows of set a lack column 'vy_low' \(or 'vy'\); they have: .*vx"):
        moving.load(a={"id": [1], "x": [0], "y": [0], "vx": [0]}, time=0)
    for take in (moving.load, moving.update):
        with pytest.raises(vd.RowError, match=r"^the rows of set a lack column 'time'; add one, or pass time= for all"):
            take(a=still(1, 0))
    with pytest.raises(
        vd.RowError, match=r"lack column 'vx_low' \(or 'vx'\); .*; only a static set, static='b', needs"
    ):
        moving.load(b={"id": [1], "x_low": [0], "x_high": [1], "y": [0]}, time=0)
    with pytest.raises(
        vd.RowError, match=r"lack column 'x_high'; they have: id, x_high_, x_low; did you mean 'x_high_'"
    ):
        moving.load(b={"id": [1], "x_low": [0], "x_high_": [1]}, time=0)
    with pytest.raises(vd.RowError, match=r"^objects of set a are to be removed, but the time is missing; pass time=$"):
        moving.update(a={**still(1, 0), "time": [1]}, remove_a=[3])
    with pytest.raises(vd.QueryError, match=r"^static must be 'a', 'b' or None; got"):
        vd.MovingJoin(60, static="c")
    with pytest.raises(vd.QueryError, match=r"^max_update_interval is 1e-09, which is too short to be added"):
        vd.MovingJoin(1e-9).load(a=still(1, 0), time=1.7e9)


@pytest.mark.parametrize(("place", "span"), [(320, 0), (0, 320), (320, 320), (60, -200), (-200, 100)])
def test_objects_meet_the_same_however_large_or_small_places_and_times_are(place, span):
    """Scaled by powers of two, so that rounding is the same as without scaling."""
    random, n = np.random.default_rng(9), 10 if SLOW else 40
    place, span = 2.0**place, 2.0**span

    def some(names):
        lows, sizes = random.integers(-20, 20, (len(names), 2)), random.integers(0, 4, (len(names), 2))
        speeds = random.integers(-4, 5, (len(names), 2)) / 2
        made = zip(lows.tolist(), sizes.tolist(), speeds.tolist(), strict=True)
        return [
            (name, [(low, low + size, v, v) for low, size, v in zip(*each, strict=True)])
            for name, each in zip(names, made, strict=True)
        ]

    def large(rows):
        factors = place, place, place / span, place / span
        return columns(
            [(name, [[x * by for x, by in zip(side, factors, strict=True)] for side in sides]) for name, sides in rows],
            2,
        )

    moving, world, ledger = vd.MovingJoin(INTERVAL * span), World(INTERVAL), Ledger()
    for time in (0.0, 1.0, 4.0, 12.0):
        ids = np.arange(n) if not time else random.choice(n, n // 4, replace=False)
        rows = {of: some(ids.tolist()) for of in "ab"}
        for of, each in rows.items():
            for name, sides in each:
                world.put(of, name, time, Motion(time, tuple(sides)))
        ledger.take(moving.update(**{of: large(each) for of, each in rows.items()}, time=time * span))
        for later in (0.0, 0.25, 3.0, 20.0):
            assert pairs(moving.pairs(at=(time + later) * span)) == world.pairs(time + later)
        for told in (0.0, 0.5, 2.0, 4.0, 7.0):
            if told <= time:
                assert ledger.pairs(told * span) == world.pairs(told)


def test_static_objects_of_two_dimensions_need_no_speeds_beside_objects_of_three():
    moving = vd.MovingJoin(60, static="b")
    zone = {"id": ["z"], "x": [3.0], "y": [0.0], "vz": [1.0]}
    vessel = {**still(1, 0), "vx": [1.0], "vz": [0.0]}
    assert lines(moving.load(a=vessel, b=zone, time=0)) == [(1, 1, "z", 2.0, 3.0)]
    with pytest.raises(vd.RowError, match=r"lack column 'vx_low' \(or 'vx'\); .*; only a static set, static='b',"):
        vd.MovingJoin(60).load(a=vessel, b=zone, time=0)
