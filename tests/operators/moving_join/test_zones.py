"""Zones: a set of static rectangles that changes while objects move, against the model of moving rectangles."""

from __future__ import annotations

import pickle
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles_moving import Ledger, Motion, World

import vedette as vd
from vedette.operators.moving_join import zone_set
from vedette.operators.moving_join.zone_set import FEW_REMOVED, ZoneSet
from vedette.queries.set_changes import Changes

INTERVAL = 6
side = st.tuples(st.integers(-6, 6), st.integers(0, 3)).map(lambda each: (float(each[0]), float(each[0] + each[1])))
speed = st.sampled_from([-2.0, -1.0, 0.0, 0.0, 0.5, 1.0])
names = st.integers(0, 3)
changes = st.lists(st.tuples(names, st.none() | st.tuples(side, side)), max_size=3)
objects = st.lists(st.tuples(names, side, side, speed, speed), max_size=3)
steps = st.lists(st.tuples(st.sampled_from([0, 0.5, 1, INTERVAL + 1]), changes, objects), min_size=1, max_size=8)


def sides(x, y):
    return {"x_low": x[0], "x_high": x[1], "y_low": y[0], "y_high": y[1]}


def rows(some):
    columns = {"id": np.array([row[0] for row in some], np.int64)}
    for place, axis in enumerate("xy"):
        columns[f"{axis}_low"] = np.array([row[1 + place][0] for row in some])
        columns[f"{axis}_high"] = np.array([row[1 + place][1] for row in some])
        columns[f"v{axis}"] = np.array([row[3 + place] for row in some])
    return columns


def change(zones, some):
    """Add, replace or remove zones."""
    for name, box in some:
        if box is None:
            if name in zones:
                zones.remove(name)
        elif name in zones:
            zones.replace(name, **sides(*box))
        else:
            zones.add(name, **sides(*box))


def motion(time, x, y, vx=0.0, vy=0.0):
    return Motion(time, ((*x, vx, vx), (*y, vy, vy)))


@given(steps, st.booleans(), st.sampled_from([0, 2, FEW_REMOVED]))
def test_pairs_and_changes_are_those_of_the_model_while_zones_change(steps, is_saved, n_kept):
    with mock.patch.object(zone_set, "FEW_REMOVED", n_kept):
        check_model(steps, is_saved)


def check_model(steps, is_saved):
    zones, world, ledger = ZoneSet(), World(INTERVAL, stands="b"), Ledger()
    watch = zones.monitor(max_update_interval=INTERVAL)
    time, moments = 0.0, []
    watch.update(rows([]), time=time)
    for passes, some_zones, some_objects in steps:
        before = time
        change(zones, some_zones)
        for name, box in some_zones:
            if name in world.moves["b"] or box is not None:
                world.put("b", name, before, None if box is None else motion(before, *box))
        time += passes
        for name, x, y, vx, vy in some_objects:
            world.put("a", name, time, motion(time, x, y, vx, vy))
        moments += [(before + time) / 2, time]
        if is_saved:
            state = watch.save()
            zones = pickle.loads(pickle.dumps(zones))
            watch = zones.monitor(max_update_interval=INTERVAL)
            watch.load(state)
        ledger.take(watch.update(rows(some_objects), time=time))
        found = watch.pairs().to_pylist()
        assert {(row["a"], row["b"]) for row in found} == world.pairs(time)
    for moment in moments:
        assert ledger.pairs(moment) == world.pairs(moment), moment


histories = st.lists(st.tuples(names, st.none() | st.tuples(side, side)), max_size=12)


@given(histories, st.sampled_from([0, 2, FEW_REMOVED]), st.booleans(), st.booleans())
def test_changes_since_a_version_are_the_difference_of_the_zones_then_and_now(history, n_kept, is_saved, is_text):
    zones, states = ZoneSet(), [{}]
    with mock.patch.object(zone_set, "FEW_REMOVED", n_kept):
        for name, box in history:
            change(zones, [(str(name) if is_text else name, box)])
            if is_saved:
                zones = pickle.loads(pickle.dumps(zones))
            active = zones.read_active()
            found, boxes = active.ids, active.sides
            states += [dict(zip(found.tolist(), map(tuple, boxes), strict=True))] * (zones.version - len(states) + 1)
    assert len(states) == zones.version + 1
    now = states[-1]
    for version, before in enumerate(states):
        changes = zones.changes_since(version)
        if changes is None:
            assert version < zones.version
            assert n_kept < FEW_REMOVED
            continue
        put = dict(zip(changes.ids.tolist(), map(tuple, changes.sides), strict=True))
        assert set(changes.removed.tolist()) == set(before) - set(now)
        assert {name for name in now if before.get(name) != now[name]} <= set(put)
        assert put == {name: now[name] for name in put}


def test_a_monitor_reads_only_the_changes_of_a_version(monkeypatch):
    zones = ZoneSet()
    zones.add_many(["a", "b", "c"], x_low=[0, 5, 9], x_high=[1, 6, 10], y_low=0, y_high=1)
    watch = zones.monitor(max_update_interval=10)
    watch.update(rows([(1, (0.0, 0.0), (0.0, 0.0), 0.0, 0.0)]), time=0)
    monkeypatch.setattr(ZoneSet, "read_active", None)  # all zones

    zones.remove("a")
    zones.replace("b", **sides((0, 6), (0, 1)))
    zones.add("d", **sides((20, 21), (0, 1)))
    found = watch.update(time=1).to_pylist()

    assert sorted((row["sign"], row["b"]) for row in found) == [(-1, "a"), (1, "b")]
    assert watch.update(time=2).num_rows == 0


def test_zones_that_exist_before_the_first_object_begin_with_its_time():
    zones = ZoneSet()
    zones.add("z", x_low=0, x_high=1, y_low=0, y_high=1)
    watch = zones.monitor(max_update_interval=10)

    found = watch.update({"id": [1, 2], "time": [5.0, 7.0], "x": [0, 0], "y": [0, 9], "vx": [0, 0], "vy": [0, 0]})

    assert found.to_pylist() == [{"sign": 1, "a": 1, "b": "z", "start": 5.0, "end": 15.0}]


@pytest.mark.parametrize(("late", "found"), [("apply", {1, 2}), ("drop", {1})])
def test_late_objects_are_handled_as_by_a_moving_join(late, found):
    zones = ZoneSet()
    zones.add("z", x_low=0, x_high=1, y_low=0, y_high=1)
    watch = zones.monitor(max_update_interval=10, late=late)
    still = rows([(1, (0.0, 0.0), (0.0, 0.0), 0.0, 0.0)])
    watch.update(still, time=5)

    watch.update(still | {"id": np.array([2])} | {"time": np.array([3.0])})

    assert {row["a"] for row in watch.pairs().to_pylist()} == found
    assert (watch.time, watch.n_late) == (5.0, 2 - len(found))
    assert watch.overdue(at=16).num_rows == len(found)


def test_a_late_object_may_be_an_error():
    watch = ZoneSet().monitor(max_update_interval=10, late="error")
    still = rows([(1, (0.0, 0.0), (0.0, 0.0), 0.0, 0.0)])
    watch.update(still, time=5)

    with pytest.raises(vd.RowError, match=r"^late is 'error', and 1 row of set a came late: the first has time 3 and"):
        watch.update(still | {"time": np.array([3.0])})


def test_three_dimensions_are_one_more():
    zones = ZoneSet(dimensions=3)
    zones.add("z", x_low=0, x_high=1, y_low=0, y_high=1, z_low=5, z_high=6)
    watch = zones.monitor(max_update_interval=10)

    plane = {"id": [1], "x": [0], "y": [0], "z": [0], "vx": [0], "vy": [0], "vz": [1]}

    assert watch.update(plane, time=0).to_pylist() == [{"sign": 1, "a": 1, "b": "z", "start": 5.0, "end": 6.0}]
    with pytest.raises(vd.RowError, match="the objects have no z, but the zones have 3 dimensions"):
        watch.update(rows([(1, (0.0, 0.0), (0.0, 0.0), 0.0, 0.0)]), time=1)


def test_a_refused_update_changes_nothing():
    zones = ZoneSet()
    watch = zones.monitor(max_update_interval=10)
    still = rows([(1, (0.0, 0.0), (0.0, 0.0), 0.0, 0.0)])
    watch.update(still, time=0)
    zones.add("z", x_low=0, x_high=1, y_low=0, y_high=1)

    with pytest.raises(vd.RowError):
        watch.update(still | {"x_low": np.array([np.nan])}, time=1)

    assert watch.update(time=1).to_pylist() == [{"sign": 1, "a": 1, "b": "z", "start": 0.0, "end": 10.0}]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"x_low": 0, "x_high": 1, "y_low": 0},
            "a zone needs all its sides: x_low, x_high, y_low, y_high; got no y_hig",
        ),
        ({"x_low": 2, "x_high": 1, "y_low": 0, "y_high": 1}, "x_low 2 of zone 'q' is above its x_high 1"),
        ({"x_low": np.nan, "x_high": 1, "y_low": 0, "y_high": 1}, "x_low of zone 'q' is nan; sides are finite numbers"),
        ({"x_low": -1e101, "x_high": 1, "y_low": 0, "y_high": 1}, "x_low of zone 'q' is -1e.101; sides are finite"),
        ({"x_low": "a", "x_high": 1, "y_low": 0, "y_high": 1}, "x_low of zone 'q' must be a number; got 'a'"),
        ({"x_lo": 0}, "a zone has no side 'x_lo'; .*did you mean 'x_low'"),
        ({**sides((0, 1), (0, 1)), "z_low": 1}, "got z_low, but the zones of this set have two dimensions"),
    ],
)
def test_an_invalid_zone_is_refused_with_its_side(given, message):
    zones = ZoneSet()

    with pytest.raises(vd.QueryError, match=message):
        zones.add("q", **given)

    assert (len(zones), zones.version) == (0, 0)


def test_zones_are_added_as_columns_and_known_ids_are_refused():
    zones = ZoneSet()
    zones.add_many([1, 2], x_low=[0, 1], x_high=np.array([2.0, 3.0]), y_low=0, y_high=1)

    assert (len(zones), 2 in zones, 3 in zones, zones.version) == (2, True, False, 1)
    with pytest.raises(vd.QueryError, match="id 2 "):
        zones.add(2, **sides((0, 1), (0, 1)))
    with pytest.raises(vd.QueryError, match="got 1 values of x_low but 2 ids"):
        zones.add_many([3, 4], x_low=[0], x_high=1, y_low=0, y_high=1)
    with pytest.raises(vd.QueryError, match="no query 3"):
        zones.remove(3)


def test_removed_zones_are_dropped_once_they_are_many():
    zones = ZoneSet()
    ids = np.arange(3 * FEW_REMOVED)
    zones.add_many(ids, x_low=ids, x_high=ids + 1, y_low=0, y_high=1)
    zones.remove_many(ids[: 2 * FEW_REMOVED])

    active = zones.read_active()
    found, boxes = active.ids, active.sides

    assert found.tolist() == ids[2 * FEW_REMOVED :].tolist() == boxes[:, 0].tolist()
    assert len(zones.ids) == FEW_REMOVED


def test_changes_of_a_registry_are_applied_and_files_keep_versions(tmp_path):
    told = {name: np.array([0.0, 1.0]) for name in ("x_low", "y_low")} | {
        name: np.array([2.0, 3.0]) for name in ("x_high", "y_high")
    }
    zones = ZoneSet()
    zones.begin(4, 40)
    versions = np.array([5, 6])
    zones.apply(Changes(versions, versions * 10, ["a"], versions[1:], ["a", "b"], versions, sides=told))
    zones.save(tmp_path / "zones")
    again = ZoneSet.load(tmp_path / "zones")

    assert (again.version, again.history_mark(5), len(again)) == (6, 50, 1)
    active = again.read_active()
    ids, boxes = active.ids, active.sides
    assert (ids.to_pylist(), boxes.tolist()) == (["b"], [[1.0, 3.0, 1.0, 3.0]])
    again.add("c", **sides((0, 1), (0, 1)))
    assert len(again) == 2


def test_a_damaged_file_of_zones_is_refused():
    zones = ZoneSet()
    zones.add("a", **sides((0.0, 1.0), (0.0, 1.0)))
    zones._flat[0] = 2.0

    with pytest.raises(vd.SnapshotError, match="a low side is above its high side"):
        ZoneSet.from_bytes(zones.to_bytes())


def test_the_error_about_a_side_of_very_many_digits_is_short():
    with pytest.raises(vd.QueryError, match=r"^x_low of zone 'bay' must be a number; got an integer of [\d,]+ bits$"):
        ZoneSet().add("bay", x_low=10**5_000, x_high=1, y_low=0, y_high=1)
