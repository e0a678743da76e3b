"""A damaged or hostile state is refused with a sentence, and the monitor does not change."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import vedette as vd
from vedette.operators import state
from vedette.queries import snapshot

from .monitors import KINDS, band_join, border, moving_join, window_join


@pytest.mark.parametrize("make", KINDS)
@pytest.mark.parametrize("kind", [None, 7, [], np.zeros(3), {"a": 1}])
def test_a_state_without_a_valid_kind_is_refused(make, kind):
    monitor = make()
    content = state.from_bytes(KINDS[make], monitor.save()) | {"kind": kind}

    with pytest.raises(vd.SnapshotError, match=r"the bytes are not a saved .* state; pass what `save` returned"):
        monitor.load(state.to_bytes(KINDS[make], content))


def test_a_set_without_a_valid_kind_is_refused():
    content = snapshot.from_bytes(vd.BandQuerySet().to_bytes()) | {"kind": np.zeros(3)}

    with pytest.raises(vd.SnapshotError, match="the saved content is: an unknown kind"):
        vd.BandQuerySet.from_bytes(snapshot.to_bytes(content))


@pytest.mark.parametrize(
    ("kind", "time"), [("bigint", 2**63 - 1), ("bigint", -(2**63)), ("double", np.inf), ("double", -np.inf)]
)
def test_a_join_that_advanced_beyond_all_times_loads_its_own_state(kind, time):
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
    content = state.from_bytes("border state", saved)

    with pytest.raises(vd.SnapshotError, match="the clock of a state is"):
        monitor.load(state.to_bytes("border state", content | {"clock": clock}))
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
    content = state.from_bytes("window join state", saved)

    harmed = content | {"clocks": [clock, content["clocks"][1]]}
    with pytest.raises(vd.SnapshotError, match="the clock of a state is"):
        monitor.load(state.to_bytes("window join state", harmed))
    assert monitor.save() == saved


def put(*path, value):
    """A change of content: another value at a path of names and positions."""

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
        (border, put("parts", "keys", "pending", 0, 0, value=99)),
        (border, put("parts", "keys", "pending", 0, 0, value=-1)),
        (border, put("parts", "keys", "pending", 3, 0, value=77)),
        (border, put("parts", "keys", "times", value=np.zeros(3))),
        (border, put("parts", "keys", "versions", 0, value=5)),
        (border, put("parts", "keys", "rows", "x", 0, value=np.zeros(2))),
        (border, put("parts", "keys", "rows", "nothing", value=[np.zeros(3), None])),
        (border, put("parts", "keys", "keys", value=vd.QuerySet("x double").ids)),
        (border, put("clock", value="late")),
        (border, put("clock", value=2**62)),
        (border, put("counts", value=[1])),
        (border, put("history", value=7)),
        (window_join, put("parts", "left", "times", value=np.zeros(3))),
        (window_join, put("parts", "left", "times", value=np.zeros(2, np.int64))),
        (window_join, put("parts", "left", "ids", 0, value=np.zeros(3, np.int64))),
        (window_join, put("parts", "right", "rows", "right.k", value=["string", np.zeros(3), None])),
        (window_join, put("parts", "left", "times", 2, value=2**62)),
        (window_join, put("parts", "left", "first", value=-4)),
        (window_join, put("clocks", value=[1])),
        (window_join, put("counts", value=[0, 0, 0, -1])),
        (window_join, put("options", "streams", value=np.zeros(2))),
        (band_join, put("parts", "left", "values", 0, value=np.nan)),
        (band_join, put("parts", "left", "values", value=np.zeros(9))),
        (band_join, put("parts", "right", "ids", 0, value=8)),
        (band_join, put("parts", "left", value=None)),
        (band_join, put("n_unknown", value=-1)),
        (moving_join, put("parts", "a", "rows", (0, 3), value=np.inf)),
        (moving_join, put("parts", "a", "rows", value=np.zeros((2, 4)))),
        (moving_join, put("parts", "b", "ids", 0, value=2)),
        (moving_join, put("n_dims", value=99)),
        (moving_join, put("n_dims", value=np.zeros(3))),
        (moving_join, put("options", "static", value=np.zeros(3))),
        (moving_join, put("options", "more", value=1)),
        (moving_join, put("parts", "a", "is_whole", value=None)),
        (border, put("parts", value=[])),
        (border, put("parts", "more", value={"is_whole": True})),
        (border, put("delays", value={})),
        (moving_join, put("now", value=np.nan)),
        (moving_join, put("rates", value=[])),
        (moving_join, put("parts", value={})),
    ],
)
def test_an_inconsistent_state_is_refused_and_changes_nothing(make, change):
    monitor = make()
    before = monitor.save()
    content = state.from_bytes(KINDS[make], before)
    harmed = state.to_bytes(KINDS[make], change(copy.copy(content)))

    for take in (monitor.load, monitor.apply_delta):
        with pytest.raises(vd.SnapshotError, match=r"is damaged: .*; start with a new state") as caught:
            take(harmed)
        assert len(str(caught.value)) < 200
        assert monitor.save() == before
    monitor.load(before)
    assert monitor.save() == before
