"""Columns and metadata in the joins of DataFrames: as in one process, on a batch and on a stream that restarts."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from spark.streams import read_stream, run_stream, write_batches

import vedette as vd
from vedette import spark as vs
from vedette.errors import QueryError, RowError

N_ROWS = 12


def make_table(number, seed):
    """Rows of one micro-batch. Ids are new, and times ascend."""
    random, first = np.random.default_rng((seed, number)), N_ROWS * number
    ids = np.arange(first, first + N_ROWS)
    return pa.table(
        {
            "id": pa.array(ids),
            "value": pa.array(random.integers(0, 6, N_ROWS).astype(float)),
            "at": pa.array(ids * 2 + seed),
            "note": pa.array([None if each % 5 == 0 else f"{seed}-{each}" for each in ids], pa.string()),
            "n": pa.array([None if each % 3 == 0 else each for each in ids], pa.int32()),
        }
    )


def write_sides(directory, numbers):
    for seed, side in enumerate(("left", "right")):
        write_batches([make_table(number, seed) for number in numbers], directory / side, min(numbers))


def lines(frame):
    return sorted((tuple(row) for row in frame.collect()), key=str)


def expected(tables):
    return sorted((tuple(line.values()) for table in tables for line in table.to_pylist()), key=str)


def window_join():
    joins = vd.JoinQuerySet(left="id bigint, value double", right="id bigint, value double")
    joins.add("same", "left.value = right.value", within=30, metadata={"owner": "ann"})
    joins.add("below", "left.value < right.value AND left.value > 1", within=10)
    roles = {"left_time": "at", "right_time": "at"}
    ids = {"left_id": "id", "right_id": "id"}
    carried = {"columns": {"left": ["note", "N"], "right": ["note"]}, "metadata": ["owner"]}
    monitor = joins.window(**roles, **ids, **carried)
    return (
        lambda left, right, shards: vs.window_join(left, right, joins, **roles, **carried, shards=shards),
        lambda left, right: monitor.step(left=left, right=right),
    )


def band_join():
    bands = vd.BandQuerySet()
    bands.add("near", -0.5, 0.5, metadata={"owner": "ann"})
    carried = {"columns": {"left": ["note", "n"], "right": ["id"]}, "metadata": ["owner"]}
    monitor = bands.monitor(**carried)
    return (
        lambda left, right, shards: vs.band_join(left, right, bands, **carried, shards=shards),
        lambda left, right: monitor.step(left=left, right=right),
    )


KINDS = {"window join": window_join, "band join": band_join}


@pytest.mark.parametrize("kind", KINDS)
def test_a_stream_that_restarts_carries_what_one_process_carries(spark, tmp_path, kind):
    transform, step = KINDS[kind]()
    found, n = [], 4
    for numbers in (range(2), range(2, n)):
        write_sides(tmp_path, numbers)
        sides = [read_stream(spark, tmp_path / side) for side in ("left", "right")]
        found = lines(run_stream(spark, transform(*sides, 4), tmp_path))
    tables = [step(make_table(number, 0), make_table(number, 1)) for number in range(n)]
    assert found == expected(tables)
    assert len(found) > 20


@pytest.mark.parametrize("kind", [pytest.param("window join", marks=pytest.mark.fast), "band join"])
def test_a_batch_carries_what_one_process_carries(spark, kind):
    transform, step = KINDS[kind]()
    tables = [pa.concat_tables([make_table(number, seed) for number in range(2)]) for seed in range(2)]
    found = transform(*(spark.createDataFrame(table.to_pandas()) for table in tables), 2)
    own = transform(*(spark.createDataFrame(table) for table in tables), 2)
    assert lines(own) == expected([step(*tables)])
    assert found.columns == own.columns


def test_moving_objects_carry_columns_and_zones_metadata_over_a_restart(spark, tmp_path):
    registry = vd.Registry(f"sqlite:///{tmp_path / 'zones.db'}")
    registry.create("zones", kind="moving join")
    side = {"x_low": 10, "x_high": 14, "y_low": -1, "y_high": 1}
    registry.add("zones", "harbour", **side, metadata={"owner": "ann"})

    def rows(number):
        values = {"id": [1], "time": [float(number)], "x": [float(number)], "y": [0.0], "vx": [1.0], "vy": [0.0]}
        return pa.table(values | {"name": [f"row {number}"]})

    def run():
        ships = read_stream(spark, tmp_path / "ships")
        joined = vs.moving_join(
            ships, registry.follow("zones"), max_update_interval=60, columns=["name"], metadata=["owner"], shards=4
        )
        return [row.asDict() for row in run_stream(spark, joined, tmp_path).collect()]

    write_batches([rows(0)], tmp_path / "ships")
    (first,) = run()
    assert (first["sign"], first["a_name"], first["owner"]) == (1, "row 0", "ann")
    registry.replace("zones", "harbour", **(side | {"x_high": 15}), metadata={"owner": "bob"})
    write_batches([rows(1)], tmp_path / "ships", 1)
    later = [(row["sign"], row["a_name"], row["owner"], row["end"]) for row in run() if row != first]
    registry.close()
    assert (-1, "row 0", "ann", 14.0) in later
    assert (1, "row 0", "bob", 15.0) in later


@pytest.mark.parametrize("kind", ["window join", "band join"])
def test_metadata_is_as_of_the_version_of_each_micro_batch(spark, tmp_path, kind):
    registry = vd.Registry(f"sqlite:///{tmp_path / 'sets.db'}")
    if kind == "window join":
        schema = "id bigint, value double, at bigint"
        registry.create("s", kind=kind, windows="time", left=schema, right=schema)
        registry.add("s", "q", "left.value = right.value", within=1000, metadata={"owner": "ann"})
    else:
        registry.create("s", kind=kind)
        registry.add("s", "q", low=0, high=0, metadata={"owner": "ann"})

    def run():
        sides = [read_stream(spark, tmp_path / side) for side in ("left", "right")]
        if kind == "window join":
            times = {"left_time": "at", "right_time": "at"}
            joined = vs.window_join(*sides, registry.follow("s"), **times, metadata=["owner"], shards=2)
        else:
            joined = vs.band_join(*sides, registry.follow("s"), metadata=["owner"], shards=2)
        return [row.asDict() for row in run_stream(spark, joined, tmp_path).collect()]

    write_sides(tmp_path, range(1))
    first = run()
    registry.replace("s", "q", metadata={"owner": "bob"})
    version = registry.set("s").version
    write_sides(tmp_path, range(1, 2))
    both = run()
    registry.close()
    assert {row["owner"] for row in first} == {"ann"}
    assert {(row["owner"], row["version"] == version) for row in both} == {("ann", False), ("bob", True)}
    if kind == "window join":
        assert len({row["event_id"] for row in both}) == len(both)


def test_affected_queries_have_metadata_once_per_micro_batch(spark):
    bands = vd.BandQuerySet()
    bands.add_many(["a", "b"], [-9, -9], [9, 9], metadata=[{"owner": "ann"}, None])
    left, right = (spark.createDataFrame(make_table(0, seed)) for seed in range(2))
    found = vs.band_join(left, right, bands, report="queries", metadata=["owner"], shards=4)
    assert lines(found) == [("a", "ann"), ("b", None)]


def test_columns_that_do_not_fit_are_refused(spark):
    bands = vd.BandQuerySet()
    frame = spark.createDataFrame([(1, 2.0, [1])], "id bigint, value double, list array<int>")
    with pytest.raises(RowError, match=r"'lst' is not a column of the left DataFrame; .*did you mean 'list'"):
        vs.band_join(frame, frame, bands, columns=["lst"])
    with pytest.raises(RowError, match="names 'list', which is array<int>"):
        vs.band_join(frame, frame, bands, columns={"right": ["list"]})
    with pytest.raises(QueryError, match="two sets of moving objects have none"):
        vs.moving_join(frame, frame, max_update_interval=60, metadata=["owner"])
