"""Moving joins of DataFrames: schema, batch and stream, shards, times, restarts, errors."""

from __future__ import annotations

import datetime
import itertools

import numpy as np
import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import functions as f
from spark import fleets
from spark.streams import read_stream, run_stream, write_batches

import vedette as vd
from vedette import spark as vs
from vedette.spark.workers.moving_join import check_rows

ROCKSDB = "spark.sql.streaming.stateStore.providerClass"
SCHEMA = "id bigint, time double, x double, y double, vx double, vy double, removed boolean, name string"
START = datetime.datetime(2026, 3, 1, tzinfo=datetime.UTC)


def write_sets(directory, a, b, n_dims=2, first=0):
    for name, batches in (("a", a), ("b", b)):
        write_batches([fleets.to_table(rows, n_dims) for rows in batches], directory / name, first)


def streams_of(spark, directory):
    return [read_stream(spark, directory / name) for name in "ab"]


def join(*frames, **options):
    return vs.moving_join(*frames, **{"max_update_interval": fleets.INTERVAL} | options)


def as_lines(changes):
    return fleets.as_lines(row.asDict() for row in changes.collect())


def as_pairs(pairs):
    found = [tuple(row) for row in pairs.collect()]
    assert len(found) == len(set(found))
    return set(found)


@pytest.fixture(scope="module")
def frame(spark):
    rows = [(1, 0.0, 0.0, 0.0, 1.0, 0.0, False, "n"), (2, 0.0, 5.0, 0.0, 0.0, 0.0, None, "n")]
    return spark.createDataFrame(rows, SCHEMA)


@pytest.mark.parametrize(
    ("shards", "n_batches", "n_dims"), [(1, 3, 2), pytest.param(4, 2, 3, marks=pytest.mark.fast), (6, 1, 2)]
)
def test_a_stream_emits_the_changes_of_one_join_for_any_micro_batches_and_shards(
    spark, tmp_path, shards, n_batches, n_dims
):
    sets = [fleets.make_rows(15, 4, seed, n_dims=n_dims) for seed in (1, 2)]
    write_sets(tmp_path, *(fleets.cut(rows, n_batches) for rows in sets), n_dims)

    changes = run_stream(spark, join(*streams_of(spark, tmp_path), shards=shards), tmp_path)

    lines = as_lines(changes)
    assert lines == fleets.tell(*sets, n_dims)
    assert {sign for sign, *_ in lines} == {1, -1}
    world, _ = fleets.make_world(sets)
    for time in np.arange(0, 15, 0.5).tolist():
        assert fleets.pairs_at(lines, time) == world.pairs(time), time
        if time % 5 == 2.5:
            assert as_pairs(vs.moving_pairs(changes, at=time)) == world.pairs(time)


def test_the_final_pairs_are_right_if_one_stream_is_ahead(spark, tmp_path):
    sets = [fleets.make_rows(12, 4, seed) for seed in (1, 2)]
    write_sets(tmp_path, *(fleets.cut(rows, n) for rows, n in zip(sets, (4, 6), strict=True)))

    lines = as_lines(run_stream(spark, join(*streams_of(spark, tmp_path), shards=4), tmp_path))

    world, _ = fleets.make_world(sets)
    assert fleets.pairs_at(lines, 11.0) == world.pairs(11.0)
    assert fleets.pairs_at(lines, 2.0) == world.pairs(2.0)  # both streams have rows until then


@pytest.mark.parametrize("shards", [None, 5])
def test_a_batch_is_replayed_in_the_order_of_times_for_any_order_and_partitions(spark, shards):
    # Of several rows of an object at one time the last one applies, and here there are none.
    sets = [list({row[:2]: row for row in fleets.make_rows(30, 5, seed)}.values()) for seed in (3, 4)]
    frames = [spark.createDataFrame(fleets.to_table(rows).to_pandas()) for rows in sets]
    a, b = (each.orderBy(f.hash("time", "id")).repartition(3) for each in frames)

    changes = join(a, b, shards=shards)

    assert as_lines(changes) == fleets.tell(*sets)
    world, _ = fleets.make_world(sets)
    for time in (0.0, 7.25, 29.0):
        assert as_pairs(vs.moving_pairs(changes, at=time)) == world.pairs(time)


def test_rows_of_one_object_at_one_time_are_applied_in_the_order_of_arrival(spark, tmp_path):
    rows = [(1, 0.0, ((0.0, 1.0, 0.0, 0.0),) * 2), (1, 0.0, ((5.0, 6.0, 0.0, 0.0),) * 2)]
    other = [(9, 0.0, ((5.5, 6.0, 0.0, 0.0),) * 2)]
    write_sets(tmp_path, [rows], [other])

    out = run_stream(spark, join(*streams_of(spark, tmp_path), shards=4), tmp_path)

    assert as_lines(out) == [(1, 1, 9, 0.0, 6.0)]


@pytest.mark.parametrize("options", [{"expire_overdue": True}, {"static": "b"}])
def test_options_have_the_same_meaning_as_in_one_process(spark, tmp_path, options):
    sets = [fleets.make_rows(8, 2, seed, spacing=2.5) for seed in (5, 6)]
    write_sets(tmp_path, *(fleets.cut(rows, 4) for rows in sets))

    out = run_stream(spark, join(*streams_of(spark, tmp_path), shards=4, **options), tmp_path)

    assert as_lines(out) == fleets.tell(*sets, **options)
    assert as_lines(out) != fleets.tell(*sets)


def test_late_rows_are_applied_dropped_or_an_error(spark, tmp_path):
    still = ((0.0, 1.0, 0.0, 0.0),)
    coming = ((-9.0, -8.0, 2.0, 2.0), *still)
    a = [[(1, 10.0, still * 2)], [(2, 11.0, ((50.0, 51.0, 0.0, 0.0),) * 2)]]
    b = [[], [(7, 8.0, coming), (8, 1.0, coming)]]  # the second is late by more than the interval
    write_sets(tmp_path, a, b)
    streams = streams_of(spark, tmp_path)

    applied, dropped = (
        run_stream(spark, join(*streams, late=late, shards=4), tmp_path / late) for late in ("apply", "drop")
    )

    assert as_lines(applied) == [(1, 1, 7, 12.0, 13.0)]
    assert as_lines(dropped) == []
    with pytest.raises(
        StreamingQueryException,
        match=r"RowError: late is 'error', and [12] rows? of set b came late: .* is at 10; use",
    ):
        run_stream(spark, join(*streams, late="error", shards=4), tmp_path / "error")


# Columns.


def test_the_answer_has_the_types_of_the_ids(spark):
    a = spark.createDataFrame(
        [("Ada", 0, 0, 0, 1.0, 0)], "`Ship.Name` string, at int, X int, y smallint, vx float, vy int"
    )
    b = spark.createDataFrame(
        [(7, 0.5, 10.0, 14.0, -1.0, 1.0, 0.0, 0.0, 0.0, 0.0, "other")],
        "id int, at double, x_low double, x_high double, y_low double, y_high double, "
        "vx_low double, vx_high double, vy_low double, vy_high double, z_name string",
    )

    out = join(a, b, a_id="ship.name", time="at")

    assert out.schema.simpleString() == "struct<sign:tinyint,a:string,b:int,start:double,end:double>"
    assert out.collect() == []  # it exists from 6 on
    assert as_lines(join(a, b, a_id="ship.name", time="at", max_update_interval=60)) == [(1, "Ada", 7, 10.0, 14.0)]


def test_times_may_be_timestamps(spark):
    def at(seconds):
        return START + datetime.timedelta(seconds=seconds)

    schema = "id int, ts timestamp, x double, y double, vx double, vy double"
    a = spark.createDataFrame([(1, at(0.25), 0.0, 0.0, 1.0, 0.0)], schema)
    b = spark.createDataFrame([(2, at(0.25), 4.0, 0.0, 0.0, 0.0), (2, at(5), 99.0, 0.0, 0.0, 0.0)], schema)

    changes = join(a, b, time="ts", max_update_interval=10).cache()

    (line,) = [line for line in as_lines(changes) if line[0] == 1]
    assert line[3:] == (at(4.25).timestamp(), at(4.25).timestamp())
    assert as_pairs(vs.moving_pairs(changes, at=at(4.25))) == {(1, 2)}
    assert as_pairs(vs.moving_pairs(changes, at=at(4.25).timestamp())) == {(1, 2)}
    assert as_pairs(vs.moving_pairs(changes, at=at(4.5))) == set()
    with pytest.raises(vd.RowError, match=r"or both numbers; 'ts' of set a is timestamp and 'n' of set b is int; cast"):
        join(a, b.selectExpr("*", "1 n"), a_time="ts", b_time="n")


def test_a_column_says_which_objects_are_removed(spark, frame):
    gone = frame.where("id = 2").withColumn("time", f.lit(3.0)).withColumn("removed", f.lit(True))
    b = frame.where("id = 2").drop("removed")
    renamed = frame.union(gone).withColumnRenamed("removed", "gone")

    expected = [(-1, 2, 2, 0.0, 6.0), (1, 1, 2, 5.0, 5.0), (1, 2, 2, 0.0, 6.0), (1, 2, 2, 0.0, np.nextafter(3.0, 0.0))]
    assert as_lines(join(frame.union(gone), b)) == sorted(expected)
    assert as_lines(join(renamed, b, a_removed="Gone")) == sorted(expected)
    both = join(renamed, b.withColumn("gone", f.lit(None).cast("boolean")), removed="gone")
    assert as_lines(both) == sorted(expected)


def test_static_zones_need_no_speeds(spark, frame):
    zones = spark.createDataFrame(
        [("z", 0, 3.0, 4.0, -1.0, 1.0)],
        "id string, time int, x_low double, x_high double, y_low double, y_high double",
    )

    assert as_lines(join(frame, zones, static="b")) == [(1, 1, "z", 3.0, 4.0)]
    assert as_lines(join(frame, zones.selectExpr("*", "1D vz"), static="b")) == [(1, 1, "z", 3.0, 4.0)]
    with pytest.raises(
        vd.RowError, match=r"the rows of set b lack column 'vx_low' \(or 'vx'\); they have: id, time, x_"
    ):
        join(frame, zones)


def test_rows_that_are_all_removals_need_no_sides(spark, frame, tmp_path):
    gone = frame.selectExpr("id", "time", "true AS gone")
    assert join(gone, frame, a_removed="gone").collect() == []
    assert join(frame, gone.limit(0), b_removed="gone").collect() == []
    write_batches([frame.toArrow()], tmp_path / "a")
    write_batches([gone.where("id = 2").toArrow(), gone.where("id > 2").toArrow()], tmp_path / "b")
    streams = streams_of(spark, tmp_path)
    assert run_stream(spark, join(*streams, b_removed="gone", shards=2), tmp_path).collect() == []

    with pytest.raises(
        vd.RowError, match=r"the rows of set a lack column 'x_low' \(or 'x'\); they have: gone, id, time"
    ):
        join(gone, frame)
    with pytest.raises(
        Exception, match=r"RowError: the rows of set b lack column 'x_low' \(or 'x'\); they have: id, removed, time"
    ):
        join(frame, frame.select("id", "time", "removed")).collect()


def test_a_stream_has_the_schema_of_a_batch(spark, tmp_path):
    rows = [fleets.make_rows(1, 2, seed=7)]
    write_sets(tmp_path, rows, rows)
    frames = [spark.read.parquet(str(tmp_path / name)) for name in "ab"]

    out = join(*streams_of(spark, tmp_path))

    assert out.isStreaming
    assert out.schema == join(*frames).schema


def test_a_frame_may_be_joined_with_itself(spark, tmp_path):
    rows = fleets.make_rows(6, 4, seed=8)
    write_sets(tmp_path, fleets.cut(rows, 3), [])
    stream = read_stream(spark, tmp_path / "a")

    out = run_stream(spark, join(stream, stream, shards=4), tmp_path)

    assert as_lines(out) == fleets.tell(rows, rows)


def test_no_rows_give_no_changes(frame):
    assert join(frame.limit(0), frame).collect() == []
    assert join(frame.limit(0), frame.limit(0)).collect() == []


# Restarts.


def test_a_stream_continues_from_its_own_checkpoint_only(spark, tmp_path):
    sets = [fleets.make_rows(16, 3, seed) for seed in (9, 10)]
    batches = [fleets.cut(rows, 4) for rows in sets]
    write_sets(tmp_path, *(each[:2] for each in batches))
    run_stream(spark, join(*streams_of(spark, tmp_path), shards=4), tmp_path)
    write_sets(tmp_path, *(each[2:] for each in batches), first=2)
    a, b = streams_of(spark, tmp_path)

    message = r"the checkpoint was written with a_id='id' \(bigint\) but the stream has a_id='k' \(string\)"
    with pytest.raises(StreamingQueryException, match=f"SnapshotError: {message}"):
        run_stream(spark, join(a.selectExpr("*", "string(id) k"), b, shards=4, a_id="k"), tmp_path)
    out = run_stream(spark, join(a, b, shards=4, late="error"), tmp_path)
    assert as_lines(out) == fleets.tell(*sets)


# The pairs at one time.


def test_a_stream_of_changes_gives_pairs_in_complete_mode(spark, tmp_path):
    sets = [fleets.make_rows(4, 6, seed) for seed in (11, 12)]
    write_sets(tmp_path, *([rows] for rows in sets))
    out = join(*(spark.read.parquet(str(tmp_path / name)) for name in "ab"))
    write_batches([out.toArrow()], tmp_path / "changes")

    pairs = vs.moving_pairs(read_stream(spark, tmp_path / "changes"), at=2.5)
    writer = pairs.writeStream.format("memory").queryName("pairs_of_a_moment").outputMode("complete")
    writer.option("checkpointLocation", str(tmp_path / "state")).trigger(availableNow=True).start().awaitTermination()

    expected = fleets.make_world(sets)[0].pairs(2.5)
    assert as_pairs(spark.table("pairs_of_a_moment")) == expected
    assert expected


@pytest.mark.parametrize(
    ("at", "message"),
    [
        ("noon", r"at must be a finite number; got 'noon'"),
        (float("nan"), r"at must be a finite number; got nan"),
        (None, r"at must be a finite number; got None"),
        (
            datetime.datetime(2026, 3, 1),
            r"at must be a number or a datetime with a time zone; got datetime.* without one",
        ),
    ],
)
def test_an_invalid_time_is_refused(frame, at, message):
    with pytest.raises(vd.QueryError, match=message):
        vs.moving_pairs(join(frame, frame), at=at)


def test_a_frame_without_changes_is_refused(spark, frame):
    with pytest.raises(vd.RowError, match=r"sign 'sign' is not a column of the DataFrame; it has: id, time"):
        vs.moving_pairs(frame, at=1)
    odd = spark.createDataFrame([(1, 1, 1, 1, 1)], "sign int, a int, b int, start int, end int")
    with pytest.raises(
        vd.RowError, match=r"column 'start' of the changes must be a double; it is int; pass vs.moving_"
    ):
        vs.moving_pairs(odd, at=1)
    with pytest.raises(vd.RowError, match=r"column 'sign' of the changes must be an integer, 1 or -1; it is string"):
        vs.moving_pairs(odd.withColumn("sign", f.lit("+")), at=1)
    with pytest.raises(vd.PipelineError, match=r"vs.moving_pairs needs a DataFrame of changes; got list"):
        vs.moving_pairs([], at=1)


# Errors.


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"a_id": "idd"}, r"a_id 'idd' is not a column of the a DataFrame; it has: id, time, .*did you mean 'id'"),
        ({"b_id": "x"}, r"an id must be a string or an integer; column 'x' is double; cast it to string or bigint"),
        ({"a_id": 3}, r"a_id must be the name of a column; got 3"),
        ({"time": "tim"}, r"time 'tim' is not a column of the a DataFrame; .*did you mean 'time'"),
        ({"b_time": "tim"}, r"b_time 'tim' is not a column of the b DataFrame"),
        (
            {"time": "name"},
            r"a time must be a timestamp or a number; column 'name' is string; cast it to timestamp, bigint",
        ),
        ({"removed": "gone"}, r"removed 'gone' is not a column of the a DataFrame"),
        (
            {"b_removed": "name"},
            r"b_removed must name a boolean column, true for removed objects; column 'name' is",
        ),
        (
            {"max_update_interval": 0},
            r"max_update_interval must be a number above 0, or a duration .*; got 0",
        ),
        (
            {"max_update_interval": "60"},
            r"max_update_interval must be a duration such as '5 minutes'; got '60'; units are",
        ),
        ({"static": "c"}, r"static must be 'a', 'b' or None; got 'c'"),
        ({"late": "never"}, r"late must be one of: 'apply', 'drop', 'error'; got 'never'"),
        ({"shards": 0}, r"shards must be an integer from 1 to 10,000; got 0"),
    ],
)
def test_invalid_options_are_refused(frame, options, message):
    with pytest.raises(vd.VedetteError, match=message):
        join(frame, frame, **options)


def test_missing_and_non_numeric_columns_are_refused(frame):
    with pytest.raises(vd.RowError, match=r"the rows of set b lack column 'y_low' \(or 'y'\); they have: id, name"):
        join(frame, frame.drop("y"))
    with pytest.raises(vd.RowError, match=r"the rows of set a lack column 'x_high'; they have: id,"):
        join(frame.withColumnRenamed("x", "x_low"), frame)
    with pytest.raises(vd.RowError, match=r"the rows of set b lack column 'z_low' \(or 'z'\)"):
        join(frame.selectExpr("*", "1 z", "0 vz"), frame)
    with pytest.raises(
        vd.RowError, match=r"a value must be a double, a float or an integer; column 'vx' is string; cast it"
    ):
        join(frame.withColumn("vx", f.lit("1")), frame)
    with pytest.raises(vd.RowError, match=r"the a DataFrame has 2 columns named 'x'; drop or rename all but one"):
        join(frame.selectExpr("*", "1D X"), frame)


def test_other_arguments_and_a_stream_with_a_batch_are_refused(spark, frame, tmp_path):
    write_sets(tmp_path, [fleets.make_rows(1, 1, seed=1)], [])
    with pytest.raises(vd.PipelineError, match=r"vs.moving_join needs a ZoneSet or a DataFrame; got list"):
        join(frame, [])
    with pytest.raises(vd.PipelineError, match=r"a_updates is a stream and b_updates is a batch; read all with"):
        join(read_stream(spark, tmp_path / "a"), frame)


def test_a_stream_without_rocksdb_is_refused(spark, tmp_path):
    write_sets(tmp_path, *([fleets.make_rows(1, 1, seed=1)] for _ in "ab"))
    streams = streams_of(spark, tmp_path)
    provider = spark.conf.get(ROCKSDB)
    spark.conf.unset(ROCKSDB)
    try:
        with pytest.raises(vd.PipelineError, match=r"a stream with vs.moving_join needs RocksDB as its state store"):
            join(*streams)
    finally:
        spark.conf.set(ROCKSDB, provider)


NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"id": None}, r"the id of set b, column 'mmsi', is null in 1 row; filter such rows out before the join"),
        ({"x_low": NAN}, r"row 1 of set b, id 5, has x_low nan; times, sides and speeds are finite numbers"),
        ({"vy_high": INF}, r"row 1 of set b, id 5, has vy_high inf; times, sides and speeds are finite numbers"),
        ({"y_high": None}, r"row 1 of set b, id 5, has y_high null"),
        ({"time": None}, r"row 1 of set b, id 5, has time null"),
        (
            {"x_low": 2.0, "x_high": 1.0},
            r"row 1 of set b, id 5, has x_low 2 above x_high 1; a low side must not be above its",
        ),
    ],
)
def test_invalid_rows_are_refused(row, message):
    names = ["id", "time", "removed", *fleets.side_names(2)]
    good = {"id": 4, "time": 1.0, "removed": False} | dict.fromkeys(fleets.side_names(2), 0.0)
    rows = [good, good | {"id": 5} | row]
    types = [pa.int64(), pa.float64(), pa.bool_(), *itertools.repeat(pa.float64(), 8)]
    columns = [pa.array([each[name] for each in rows], type_) for name, type_ in zip(names, types, strict=True)]
    batch = pa.record_batch(columns, names=["mmsi", *names[1:]])

    with pytest.raises(vd.RowError, match=message):
        check_rows(batch, {"side": 1, "names": names, "n_dims": 2, "is_static": False})


def test_an_error_in_a_row_reaches_the_driver(frame):
    # The first task decides which row is reported.
    with pytest.raises(
        Exception, match=r"RowError: row 0 of set a, id \d, has x nan; times, sides and speeds are finite"
    ):
        join(frame.withColumn("x", f.lit(NAN)), frame).collect()
