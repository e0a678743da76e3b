from __future__ import annotations

import numpy as np
import pyarrow as pa

import vedette as vd
from vedette.operators.border.finder import BorderFinder


def walk(follows):
    """The events of keys that walk over ranges, and the memory of the region segments that were made."""
    random = np.random.default_rng(4)
    queries = vd.QuerySet("x double")
    lows = random.random(300)
    queries.add_boxes(np.arange(300), {"x": (lows, lows + 0.2)}, closed="both")
    monitor = queries.border(key="key", time="ts")
    values = random.random(50)
    events = []
    for time in range(6):
        table = pa.table({"key": np.arange(50), "ts": np.full(50, time), "x": values})
        found = monitor.step(table)
        columns = (found[name].to_pylist() for name in ("key", "time", "query", "event"))
        events += zip(*columns, strict=True)
        for borders in queries.shared(BorderFinder)._borders.values():
            borders.follows = follows
        values = values + random.normal(0, 0.01, 50)
    return sorted(events), queries.shared(BorderFinder).nbytes


def test_comparing_every_move_finds_the_same_and_makes_no_region_segments():
    followed, n_followed = walk(follows=True)
    compared, n_compared = walk(follows=False)

    assert compared == followed
    assert len(followed) > 300
    assert n_followed > 0
    assert n_compared == 0
