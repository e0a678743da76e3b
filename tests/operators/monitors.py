"""One small monitor of each operator, with rows in it."""

from __future__ import annotations

import vedette as vd

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
    monitor = joins.window(left_time="t", right_time="t", left_id="k", columns={"left": ["x"]})
    monitor.step(left=ROWS, right=ROWS)
    return monitor


def band_join():
    bands = vd.BandQuerySet()
    bands.add("close", -1.0, 1.0)
    monitor = bands.monitor(columns={"left": ["value"]})
    monitor.insert(left={"id": ["a", "b"], "value": [1.0, 2.0]}, right={"id": [7, 8], "value": [1.0, 5.0]})
    return monitor


def moving_join():
    moving = vd.MovingJoin(60, columns={"b": ["x_low"]})
    moving.load(a=OBJECTS, b=OBJECTS, time=0.0)
    return moving


KINDS = {
    border: "border state",
    window_join: "window join state",
    band_join: "band join state",
    moving_join: "moving join state",
}


def change(monitor):
    """Let a few rows arrive, so that a delta has something to say."""
    if isinstance(monitor, vd.MovingJoin):
        monitor.update(a={name: values[:1] for name, values in OBJECTS.items()}, time=1.0)
    elif hasattr(monitor, "insert"):
        monitor.insert(left={"id": ["c"], "value": [3.0]})
    elif hasattr(monitor, "keys"):
        monitor.step({"k": ["a"], "x": [9.0], "t": [4]})
    else:
        monitor.step(left={"k": ["a"], "x": [9.0], "t": [4]})
