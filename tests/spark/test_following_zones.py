"""Moving joins over a set of zones of a registry: zones change between micro-batches, and streams are restarted."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from oracles_moving import Motion, World
from spark import fleets
from spark.test_following import Feed

import vedette as vd
from vedette import spark as vs

SIDES = ("x_low", "x_high", "y_low", "y_high")
STILL = "id bigint, time double, x double, y double, vx double, vy double"


@pytest.fixture
def registry(tmp_path):
    made = vd.Registry(f"sqlite:///{tmp_path / 'zones.db'}")
    yield made
    made.close()


def make_zone(random):
    x, y = random.integers(-5, 6, 2).tolist()
    return {"x_low": x, "x_high": x + int(random.integers(0, 4)), "y_low": y, "y_high": y + int(random.integers(0, 4))}


def change(random, registry, world, zones, clock):
    """Add, replace and remove a few zones; returns the last version."""
    for _ in range(3):
        name = f"z{random.integers(0, 6)}"
        if name in zones and random.random() < 0.4:
            registry.remove("zones", name)
            zones.discard(name)
            world.put("b", name, clock, None)
            continue
        zone = make_zone(random)
        (registry.replace if name in zones else registry.add)("zones", name, **zone)
        zones.add(name)
        x_low, x_high, y_low, y_high = (float(zone[side]) for side in SIDES)
        world.put("b", name, clock, Motion(clock, ((x_low, x_high, 0.0, 0.0), (y_low, y_high, 0.0, 0.0))))
    return registry.set("zones").version


@pytest.mark.full
@pytest.mark.parametrize("shards", [1, 6])
def test_pairs_match_the_zones_of_each_micro_batch_over_restarts(spark, registry, tmp_path, shards):
    registry.create("zones", kind="moving join")
    options = {"max_update_interval": fleets.INTERVAL, "shards": shards}
    feed = Feed(spark, tmp_path, lambda rows: vs.moving_join(rows, registry.follow("zones"), **options))
    random, world, zones, lines = np.random.default_rng(7), World(fleets.INTERVAL, stands="b"), set(), []
    moments, clock = [], 0.0
    for number, rows in enumerate(fleets.cut(fleets.make_rows(8, 4, 1), 4)):
        version = change(random, registry, world, zones, clock)
        for id_, time, sides in rows:
            world.put("a", id_, time, None if sides is None else Motion(time, sides))
        clock = max(time for _, time, _ in rows)
        moments += [clock - 0.5, clock]
        answers = feed.take(fleets.to_table(rows))
        assert {row[-1] for row in answers} == {version}
        lines += [row[:-1] for row in answers]
        assert number == 0 or {sign for sign, *_ in lines} == {1, -1}
    for moment in moments:
        assert fleets.pairs_at(lines, moment) == world.pairs(moment), moment


def test_a_batch_sees_the_current_zones_and_either_side_may_be_zones(spark, registry):
    registry.create("zones", kind="moving join", ids="integer")
    registry.add("zones", 7, x_low=10, x_high=14, y_low=-1, y_high=1)
    objects = spark.createDataFrame([(1, 0.0, 0.0, 0.0, 1.0, 0.0), (2, 2.0, 0.0, 9.0, 1.0, 0.0)], STILL)

    for pair in ((objects, registry.follow("zones")), (registry.follow("zones"), objects)):
        found = vs.moving_join(*pair, max_update_interval=60, shards=4)
        ids = (1, 7) if pair[0] is objects else (7, 1)
        assert found.schema.simpleString() == (
            "struct<sign:tinyint,a:bigint,b:bigint,start:double,end:double,version:bigint>"
        )
        assert [tuple(row) for row in found.collect()] == [(1, *ids, 10.0, 14.0, 1)]


def test_a_local_set_of_zones_and_a_fixed_version_do_not_change(spark, registry):
    zones = vd.ZoneSet()
    zones.add("z", x_low=10, x_high=14, y_low=-1, y_high=1)
    registry.create("zones", kind="moving join")
    registry.add("zones", "z", x_low=10, x_high=14, y_low=-1, y_high=1)
    registry.remove("zones", "z")
    objects = spark.createDataFrame([(1, 0.0, 0.0, 0.0, 1.0, 0.0)], STILL)

    frozen = registry.follow("zones", version=1)

    assert [tuple(row) for row in vs.moving_join(objects, zones, max_update_interval=60).collect()] == [
        (1, 1, "z", 10.0, 14.0)
    ]
    assert vs.moving_join(objects, frozen, max_update_interval=60).count() == 1
    assert vs.moving_join(objects, registry.follow("zones"), max_update_interval=60).count() == 0


@pytest.mark.full
def test_a_set_of_zones_that_changes_between_two_runs_of_a_stream_is_compared_with_its_state(spark, tmp_path):
    zones = vd.ZoneSet()
    zones.add_many(["a", "b"], x_low=[0, 5], x_high=[1, 6], y_low=0, y_high=1)
    feed = Feed(spark, tmp_path, lambda rows: vs.moving_join(rows, zones, max_update_interval=60, shards=3))

    def still(time):
        ends = {"x": 0.5, "y": 0.5, "vx": 0.0, "vy": 0.0}
        return pa.table({"id": [1], "time": [float(time)], **{name: [value] for name, value in ends.items()}})

    assert feed.take(still(0)) == [(1, 1, "a", 0.0, 60.0)]
    zones.remove("a")
    zones.replace("b", x_low=0, x_high=6, y_low=0, y_high=1)
    lines = feed.take(still(2))

    assert fleets.pairs_at([(1, 1, "a", 0.0, 60.0), *lines], 1.0) == {(1, "b")}


def test_options_that_do_not_fit_zones_are_refused(spark, registry):
    registry.create("zones", kind="moving join", dimensions=3)
    registry.create("bands", kind="band join")
    objects = spark.createDataFrame([(1, 0.0, 0.0, 0.0, 1.0, 0.0)], STILL)
    zones = registry.follow("zones")

    with pytest.raises(vd.RowError, match="the objects have no z, but the zones have 3 dimensions"):
        vs.moving_join(objects, zones, max_update_interval=60)
    with pytest.raises(vd.PipelineError, match=r"vs.moving_join follows sets of kind moving join; set 'bands'"):
        vs.moving_join(objects, registry.follow("bands"), max_update_interval=60)
    with pytest.raises(vd.PipelineError, match="pass a DataFrame of objects as one of the two"):
        vs.moving_join(zones, zones, max_update_interval=60)
    with pytest.raises(vd.PipelineError, match=r"vs.moving_join needs a ZoneSet or a DataFrame; got list"):
        vs.moving_join(objects, [1], max_update_interval=60)
    with pytest.raises(vd.QueryError, match="set b has zones, so it is the static set; omit static; got 'a'"):
        vs.moving_join(objects, vd.ZoneSet(), max_update_interval=60, static="a")
