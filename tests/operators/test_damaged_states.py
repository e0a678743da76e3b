"""A state in which something cannot be is refused with a sentence, and the monitor goes on as it was."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import vedette as vd
from vedette.queries import snapshot

ROWS = {"k": ["a", "b", "c"], "x": [1.0, 2.0, 3.0], "t": [1, 2, 3]}
OBJECTS = {"id": [1, 2], "x_low": [0.0, 9.0], "x_high": [1.0, 10.0], "y_low": [0.0, 0.0], "y_high": [1.0, 1.0]}
OBJECTS |= {name: [1.0, -1.0] for name in ("vx_low", "vx_high", "vy_low", "vy_high")}


def border():
    queries = vd.QuerySet("k string, x double, t bigint")
    queries.add("low", "x < 2.5")
    monitor = queries.border(key="k", time="t", dwell=5)
    monitor.step(ROWS)
    return monitor


def window_join():
    joins = vd.JoinQuerySet(left="k string, x double, t bigint", right="k string, x double, t bigint")
    joins.add("near", "left.k = right.k", rows=5)
    monitor = joins.window(left_time="t", right_time="t", left_id="k")
    monitor.step(left=ROWS, right=ROWS)
    return monitor


def band_join():
    bands = vd.BandQuerySet()
    bands.add("close", -1.0, 1.0)
    monitor = bands.monitor()
    monitor.insert(left={"id": ["a", "b"], "value": [1.0, 2.0]}, right={"id": [7, 8], "value": [1.0, 5.0]})
    return monitor


def moving_join():
    moving = vd.MovingJoin(60)
    moving.load(a=OBJECTS, b=OBJECTS, time=0.0)
    return moving


@pytest.mark.parametrize("make", [border, window_join, band_join, moving_join])
@pytest.mark.parametrize("kind", [None, 7, [], np.zeros(3), {"a": 1}])
def test_a_state_of_no_kind_is_refused(make, kind):
    monitor = make()
    content = snapshot.from_bytes(monitor.save(), "state") | {"kind": kind}

    with pytest.raises(vd.SnapshotError, match=r"the bytes are no state of a .*; give it what `save` returned"):
        monitor.load(snapshot.to_bytes(content))


def test_a_set_of_no_kind_is_refused():
    content = snapshot.from_bytes(vd.BandQuerySet().to_bytes()) | {"kind": np.zeros(3)}

    with pytest.raises(vd.SnapshotError, match="what was saved there is: of no kind"):
        vd.BandQuerySet.from_bytes(snapshot.to_bytes(content))


@pytest.mark.parametrize(
    ("kind", "time"), [("bigint", 2**63 - 1), ("bigint", -(2**63)), ("double", np.inf), ("double", -np.inf)]
)
def test_a_join_that_has_advanced_to_the_end_of_all_times_loads_what_it_saved(kind, time):
    joins = vd.JoinQuerySet(left=f"x double, t {kind}", right=f"x double, t {kind}")
    joins.add("equal", "left.x = right.x", within=5)
    monitor = joins.window(left_time="t", right_time="t")
    monitor.step(left={"x": [1.0], "t": [1]}, right={"x": [1.0], "t": [1]})
    monitor.advance(time)
    saved = monitor.save()
    monitor.load(saved)

    assert monitor.save() == saved


@pytest.mark.parametrize("clock", [np.inf, -np.inf, np.nan])
def test_a_border_state_with_a_clock_that_is_not_finite_is_refused(clock):
    queries = vd.QuerySet("k string, x double, t double")
    monitor = queries.border(key="k", time="t")
    monitor.step({"k": ["a"], "x": [1.0], "t": [1.0]})
    saved = monitor.save()
    content = snapshot.from_bytes(saved, "state")

    with pytest.raises(vd.SnapshotError, match="the clock of a state is"):
        monitor.load(snapshot.to_bytes(content | {"clock": clock}))
    assert monitor.save() == saved


@pytest.mark.parametrize(
    ("kind", "clock"), [("double", np.inf), ("double", -np.inf), ("double", np.nan), ("bigint", 2**62)]
)
def test_a_window_join_state_with_a_clock_that_no_row_could_have_is_refused(kind, clock):
    joins = vd.JoinQuerySet(left=f"x double, t {kind}", right=f"x double, t {kind}")
    joins.add("equal", "left.x = right.x", within=5)
    monitor = joins.window(left_time="t", right_time="t")
    monitor.step(left={"x": [1.0], "t": [1]}, right={"x": [1.0], "t": [1]})
    saved = monitor.save()
    content = snapshot.from_bytes(saved, "state")

    with pytest.raises(vd.SnapshotError, match="the clock of a state is"):
        monitor.load(snapshot.to_bytes(content | {"clocks": [clock, content["clocks"][1]]}))
    assert monitor.save() == saved


def put(*path, value):
    """A change of content: another value at a path of names and places."""

    def change(content):
        holder = content
        for step in path[:-1]:
            holder = holder[step]
        if isinstance(holder, np.ndarray):
            holder = np.array(holder)
            holder[path[-1]] = value
            return put(*path[:-1], value=holder)(content)
        holder[path[-1]] = value
        return content

    return change


@pytest.mark.parametrize(
    ("make", "change"),
    [
        (border, put("pending", 0, 0, value=99)),
        (border, put("pending", 0, 0, value=-1)),
        (border, put("pending", 3, 0, value=77)),
        (border, put("times", value=np.zeros(3))),
        (border, put("versions", 0, value=5)),
        (border, put("rows", "x", 0, value=np.zeros(2))),
        (border, put("rows", "nothing", value=[np.zeros(3), None])),
        (border, put("keys", value=vd.QuerySet("x double").ids)),
        (border, put("clock", value="late")),
        (border, put("clock", value=2**62)),
        (border, put("counts", value=[1])),
        (border, put("history", value=7)),
        (window_join, put("streams", 0, "times", value=np.zeros(3))),
        (window_join, put("streams", 0, "times", value=np.zeros(2, np.int64))),
        (window_join, put("streams", 0, "ids", 0, value=np.zeros(3, np.int64))),
        (window_join, put("streams", 1, "rows", "right.k", value=["string", np.zeros(3), None])),
        (window_join, put("streams", 0, "times", 2, value=2**62)),
        (window_join, put("streams", 0, "first", value=-4)),
        (window_join, put("clocks", value=[1])),
        (window_join, put("counts", value=[0, 0, 0, -1])),
        (window_join, put("names", value=None)),
        (band_join, put("sides", "left", "values", 0, value=np.nan)),
        (band_join, put("sides", "left", "values", value=np.zeros(9))),
        (band_join, put("sides", "right", "ids", 0, value=8)),
        (band_join, put("sides", "left", value=None)),
        (band_join, put("n_unknown", value=-1)),
        (moving_join, put("sets", 0, "rows", (0, 3), value=np.inf)),
        (moving_join, put("sets", 0, "rows", value=np.zeros((2, 4)))),
        (moving_join, put("sets", 1, "ids", 0, value=2)),
        (moving_join, put("n_dims", value=99)),
        (moving_join, put("n_dims", value=np.zeros(3))),
        (moving_join, put("options", "standing", value=np.zeros(3))),
        (moving_join, put("now", value=np.nan)),
        (moving_join, put("rates", value=[])),
        (moving_join, put("sets", value=[])),
    ],
)
def test_a_state_in_which_something_cannot_be_is_refused_and_changes_nothing(make, change):
    monitor = make()
    before = monitor.save()
    content = snapshot.from_bytes(before, "state")
    harmed = snapshot.to_bytes(change(copy.copy(content)))

    for take in (monitor.load, monitor.apply_delta):
        with pytest.raises(vd.SnapshotError, match=r"is damaged: .*; begin with a new state") as caught:
            take(harmed)
        assert len(str(caught.value)) < 200
        assert monitor.save() == before
    monitor.load(before)
    assert monitor.save() == before
