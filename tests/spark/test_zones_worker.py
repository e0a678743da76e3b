"""Zones in workers, without Spark: any number of shards follows a changing set."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from oracles_moving import Motion, World
from spark import fleets

import vedette as vd
from vedette.spark.shards import packing
from vedette.spark.workers import moving_join, zones

PLAN = {"side": 0, "names": ["id", "time", "removed", *fleets.side_names(2)], "n_dims": 2, "is_static": False}


def run_shards(shards, rows, n_shards):
    """The lines of all shards for one micro-batch of objects."""
    lines = packing.by_grid(n_shards, 0)
    plan = {"zones": {"side": 1, "lines": packing.by_grid(n_shards, 1)}, "n_dims": 2, "max_answer_bytes": 1 << 30}
    batch = moving_join.check_rows(
        pa.record_batch(fleets.to_table(rows).to_pydict(), fleets.to_table(rows).schema), PLAN
    )
    note = pa.ipc.open_stream(moving_join.note(batch, PLAN)).read_all()
    parts = dict(packing.split(batch, len(lines)))
    answers = []
    for label, shard in shards.items():
        number = next(n for n, line in enumerate(lines) if label in line)
        sides = {packing.note_of(0): note}
        if number in parts:
            sides[0] = pa.Table.from_batches([parts[number]])
        for table in zones.step(shard, sides, label, plan):
            answers += [tuple(row[name] for name in fleets.LINE) for row in table.to_pylist()]
    return answers


@pytest.mark.parametrize("n_shards", [1, 4, 6])
@pytest.mark.parametrize("takes_turns", [False, True])
def test_shards_find_the_pairs_of_the_current_zones(n_shards, takes_turns):
    held, world, random = vd.ZoneSet(), World(fleets.INTERVAL, stands="b"), np.random.default_rng(3)
    labels = {label for line in packing.by_grid(n_shards, 1) for label in line}
    shards = {label: zones.ZoneShard(vd.MovingJoin(fleets.INTERVAL, static="b"), held) for label in sorted(labels)}
    others = {}  # of another worker, one batch behind
    lines, moments, clock = [], [], 0.0
    for rows in fleets.cut(fleets.make_rows(12, 4, 1), 6):
        for _ in range(3):
            name = f"z{random.integers(0, 6)}"
            if name in held and random.random() < 0.4:
                held.remove(name)
                world.put("b", name, clock, None)
                continue
            (x, y), (width, height) = random.integers(-5, 6, 2).tolist(), random.integers(0, 4, 2).tolist()
            box = {"x_low": x, "x_high": x + width, "y_low": y, "y_high": y + height}
            (held.replace if name in held else held.add)(name, **box)
            sides = tuple((float(low), float(low + size), 0.0, 0.0) for low, size in ((x, width), (y, height)))
            world.put("b", name, clock, Motion(clock, sides))
        for id_, time, sides in rows:
            world.put("a", id_, time, None if sides is None else Motion(time, sides))
        clock = max(time for _, time, _ in rows)
        moments += [clock - 0.5, clock]
        lines += run_shards(shards, rows, n_shards)
        for label, shard in shards.items():
            again = others.get(label)
            if again is None or not takes_turns:  # as after a restart
                again = zones.ZoneShard(vd.MovingJoin(fleets.INTERVAL, static="b"), held)
                again.load(shard.save())
                assert again.version is None
            else:
                again.apply_delta(shard.take_delta())
                again.set_version(held.version)
                assert again.version == held.version
            shards[label], others[label] = again, shard
    for moment in moments:
        assert fleets.pairs_at(lines, moment) == world.pairs(moment), moment
