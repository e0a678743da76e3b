"""Window joins of DataFrames: schema, layouts, batch and stream, time, restarts, errors."""

from __future__ import annotations

import datetime

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import functions as f
from spark import quotes
from spark.streams import read_stream, run_stream, write_batches

import vedette as vd
from vedette import spark as vs

TIMES = {"left_time": "ts", "right_time": "ts"}
ROCKSDB = "spark.sql.streaming.stateStore.providerClass"


def write_sides(directory, lefts, rights, first=0):
    write_batches(lefts, directory / "left", first)
    write_batches(rights, directory / "right", first)


def streams_of(spark, directory, watermark=None):
    return [read_stream(spark, directory / name, watermark) for name in ("left", "right")]


def at(seconds):
    return quotes.START + datetime.timedelta(seconds=seconds)


def rows_of(*rows):
    """Rows of (id, symbol, price, seconds)."""
    ids, symbols, prices, seconds = zip(*rows, strict=True)
    times = pa.array([at(each) for each in seconds], pa.timestamp("us", "UTC"))
    return pa.table({"id": ids, "symbol": symbols, "price": [float(price) for price in prices], "ts": times})


@pytest.fixture(scope="module")
def equated():
    return quotes.make_joins(quotes.EQUATED)


@pytest.fixture(scope="module")
def any_joins():
    return quotes.make_joins(quotes.ANY)


@pytest.fixture(scope="module")
def frame(spark):
    return spark.createDataFrame([(1, "a", 1.0, at(0))], f"id bigint, {quotes.SCHEMA}")


@pytest.mark.parametrize(
    ("queries", "shards", "n_batches", "layout"),
    [
        pytest.param(quotes.EQUATED, 3, (3, 2), None, marks=pytest.mark.fast),
        (quotes.EQUATED, 4, (1, 1), "grid"),
        (quotes.ANY, 6, (2, 4), None),
        (quotes.ANY, 1, (2, 3), "one"),
    ],
)
def test_streams_in_time_order_give_all_pairs_for_any_micro_batches_and_shards(
    spark, tmp_path, queries, shards, n_batches, layout
):
    pairs = quotes.make_joins(queries)
    sides = quotes.make_rows(80, seed=1), quotes.make_rows(90, seed=2)
    expected = quotes.expected_pairs(*sides, queries)
    write_sides(tmp_path, *(quotes.cut(side, n, seed=n) for side, n in zip(sides, n_batches, strict=True)))

    out = vs.window_join(*streams_of(spark, tmp_path), pairs, **TIMES, shards=shards, layout=layout)

    assert quotes.as_tuples(run_stream(spark, out, tmp_path)) == expected
    assert (
        quotes.step_locally(pairs.window(**TIMES, left_id="id", right_id="id"), *[[side] for side in sides]) == expected
    )
    assert len(expected) > 50


@pytest.mark.parametrize("queries", [quotes.EQUATED, quotes.ANY])
def test_a_batch_gives_all_pairs_for_any_order_and_partitions(spark, queries):
    sides = quotes.make_rows(120, seed=3, disorder=9), quotes.make_rows(100, seed=4, disorder=9)
    left, right = (spark.createDataFrame(side.to_pandas()).orderBy(f.hash("ts")).repartition(3) for side in sides)

    out = vs.window_join(left, right, quotes.make_joins(queries), **TIMES)

    assert quotes.as_tuples(out) == quotes.expected_pairs(*sides, queries)


def test_null_keys_join_nothing_by_equality_and_each_other_if_nulls_are_equal(spark):
    sides = quotes.make_rows(60, seed=13, nulls=0.6), quotes.make_rows(60, seed=14, nulls=0.6)
    left, right = (spark.createDataFrame(side.to_pandas()).repartition(2) for side in sides)
    same = {"same": ("left.symbol <=> right.symbol", (5, 5), lambda left, right: left["symbol"] == right["symbol"])}
    either = {
        "either": (
            "left.symbol = right.symbol OR left.symbol IS NULL AND right.symbol IS NULL AND left.price = right.price",
            (5, 5),
            lambda left, right: (
                quotes.are_equal(left, right)
                or (left["symbol"] is None and right["symbol"] is None and left["price"] == right["price"])
            ),
        )
    }
    for queries in (quotes.EQUATED, same, either, same | quotes.EQUATED):
        expected = quotes.expected_pairs(*sides, queries)

        assert len(expected) > 5
        assert quotes.as_tuples(vs.window_join(left, right, quotes.make_joins(queries), **TIMES)) == expected


def test_rows_with_a_null_key_count_in_windows_that_count_rows(spark, tmp_path):
    pairs = vd.JoinQuerySet(left=quotes.SCHEMA, right=quotes.SCHEMA)
    pairs.add("last-2", "left.symbol = right.symbol", rows=2)
    lefts = rows_of((1, "a", 1, 0), (2, "a", 1, 1), (3, None, 1, 2), (4, None, 1, 3))
    write_sides(tmp_path, [lefts.slice(0, 2), lefts.slice(2)], [rows_of((7, "b", 1, 0)), rows_of((8, "a", 1, 9))])
    first, second = lefts.slice(0, 2), lefts.slice(2)
    expected = quotes.step_locally(
        pairs.window(left_id="id", right_id="id", **TIMES),
        [first, second],
        [rows_of((7, "b", 1, 0)), rows_of((8, "a", 1, 9))],
    )

    out = vs.window_join(*streams_of(spark, tmp_path), pairs, **TIMES)

    assert quotes.as_tuples(run_stream(spark, out, tmp_path)) == expected == []


@pytest.mark.parametrize(("queries", "shards", "late"), [(quotes.EQUATED, 3, "drop"), (quotes.ANY, 4, "apply")])
def test_rows_are_late_exactly_as_in_one_shard(spark, tmp_path, queries, shards, late):
    pairs = quotes.make_joins(queries)
    batches = [quotes.cut(quotes.make_rows(100, seed, disorder=15), 4, seed) for seed in (5, 6)]
    write_sides(tmp_path, *batches)
    on_time = pairs.window(**TIMES, left_id="id", right_id="id")
    expected = {"drop": quotes.step_locally(on_time, *batches)}
    expected["apply"] = quotes.step_locally(pairs.window(**TIMES, left_id="id", right_id="id", late="apply"), *batches)
    assert on_time.n_late > 10
    assert expected["drop"] != expected["apply"]

    out = vs.window_join(*streams_of(spark, tmp_path), pairs, **TIMES, late=late, shards=shards)

    assert quotes.as_tuples(run_stream(spark, out, tmp_path)) == expected[late]


def test_rows_too_old_to_join_are_removed(spark, tmp_path, equated):
    """Only one shard has left rows, but all are notified of them."""
    lefts = [rows_of((number, "a", 1, 100 * number)) for number in range(4)]
    rights = [rows_of(*((4 * number + k, f"S{k}", 1, 100 * number) for k in range(4))) for number in range(4)]
    write_sides(tmp_path, lefts, rights)

    out = vs.window_join(*streams_of(spark, tmp_path), equated, **TIMES, max_state_rows=4, shards=2)

    assert quotes.as_tuples(run_stream(spark, out, tmp_path)) == []


@pytest.mark.parametrize("shards", [None, 1])
def test_windows_that_count_rows_use_one_shard_in_order(spark, tmp_path, shards):
    pairs = quotes.make_joins(quotes.EQUATED)
    pairs.add("last", "left.symbol = right.symbol", rows=3)
    batches = [quotes.cut(quotes.make_rows(50, seed), 3, seed) for seed in (7, 8)]
    write_sides(tmp_path, *batches)
    expected = quotes.step_locally(pairs.window(**TIMES, left_id="id", right_id="id"), *batches)

    out = vs.window_join(*streams_of(spark, tmp_path), pairs, **TIMES, shards=shards)

    assert quotes.as_tuples(run_stream(spark, out, tmp_path)) == expected
    assert "last" in {query for query, *_ in expected}
    for options in ({"shards": 2}, {"layout": "grid"}):
        with pytest.raises(
            vd.PipelineError, match="a query has a window that counts rows, and needs its streams in order"
        ):
            vs.window_join(*streams_of(spark, tmp_path), pairs, **TIMES, **options)


def test_rows_without_times_may_be_counted(spark, tmp_path):
    pairs = vd.JoinQuerySet(left="x bigint", right="x bigint")
    pairs.add("last", "left.x <= right.x", rows=2)
    left = spark.createDataFrame([(1, 5), (2, 6), (3, 7)], "id int, x int")
    right = spark.createDataFrame([("a", 6)], "id string, x bigint")

    out = vs.window_join(left, right, pairs)

    assert out.schema.simpleString() == "struct<query:string,left:int,right:string>"
    assert quotes.as_tuples(out) == [("last", 2, "a")]


def test_times_may_be_numbers(spark, tmp_path):
    pairs = vd.JoinQuerySet(left="x double", right="x double")
    pairs.add(7, "left.x < right.x", within=1.5)
    rows = [(1, 1.0, 0.0), (2, 2.0, 1.5), (3, 3.0, 3.25)]
    stream = pa.table(dict(zip(("id", "x", "at"), map(list, zip(*rows, strict=True)), strict=True)))
    write_sides(tmp_path, [stream.slice(0, 1), stream.slice(1)], [stream])

    out = vs.window_join(*streams_of(spark, tmp_path), pairs, left_time="at", right_time="AT", shards=2)

    assert quotes.as_tuples(run_stream(spark, out, tmp_path)) == [(7, 1, 2)]


def test_three_streams_are_joined_by_what_all_queries_equate_or_in_one_shard(spark):
    streams = {name: f"k string, {name} bigint" for name in "abc"}
    rows = {
        name: spark.createDataFrame([(n, f"k{n % 2}", n, n) for n in range(4)], f"id int, k string, {name} int, t int")
        for name in "abc"
    }
    times = {f"{name}_time": "t" for name in "abc"}
    expected = [
        ("q", a, b, c) for a in range(4) for b in range(4) for c in range(4) if a % 2 == b % 2 == c % 2 and a < b <= c
    ]
    for text in (
        "a.k = b.k AND b.k = c.k AND a.a < b.b AND b.b <= c.c",
        "a.k = b.k AND c.k = b.k AND a.a < b.b AND b.b <= c.c",
    ):
        joins = vd.JoinQuerySet(**streams)
        joins.add("q", text, within=10)

        out = vs.window_join(pairs=joins, frames=rows, **times, shards=3)

        assert out.columns == ["query", "a", "b", "c"]
        assert quotes.as_tuples(out) == expected
    joins = vd.JoinQuerySet(**streams)
    joins.add("q", "a.a < b.b AND b.b < c.c", within=10)
    assert len(vs.window_join(pairs=joins, frames=rows, **times).collect()) == 4
    with pytest.raises(vd.PipelineError, match=r"needs one shard: a grid is for two streams; omit it"):
        vs.window_join(pairs=joins, frames=rows, **times, shards=4)
    with pytest.raises(
        vd.PipelineError, match=r"joins 3 streams; pass their DataFrames by name: frames=\{'a': \.\.\., 'b'"
    ):
        vs.window_join(rows["a"], rows["b"], joins, **times)


def test_a_watermark_removes_rows_if_one_side_is_silent(spark, tmp_path, equated):
    """By Spark's policy "max" the watermark is that of the stream that is ahead."""
    lefts = [rows_of((1, "a", 1, 0))]
    rights = [rows_of(*((10 * number + k, "a", 1, 100 * number) for k in range(3))) for number in range(5)]
    write_sides(tmp_path, lefts, rights)
    policy = "spark.sql.streaming.multipleWatermarkPolicy"
    spark.conf.set(policy, "max")
    try:
        out = vs.window_join(
            *streams_of(spark, tmp_path, "1 second"),
            equated,
            **TIMES,
            max_state_rows=9,
            shards=2,
            layout="equality",
        )
        found = quotes.as_tuples(run_stream(spark, out, tmp_path))
    finally:
        spark.conf.unset(policy)

    assert found == [("near", 1, 0), ("near", 1, 1), ("near", 1, 2)]


def test_without_a_watermark_rows_wait_for_the_other_side(spark, tmp_path, equated):
    lefts = [rows_of((1, "a", 1, 0))]
    rights = [rows_of(*((10 * number + k, "a", 1, 100 * number) for k in range(3))) for number in range(5)]
    write_sides(tmp_path, lefts, rights)

    out = vs.window_join(*streams_of(spark, tmp_path), equated, **TIMES, max_state_rows=9, shards=1)

    with pytest.raises(
        StreamingQueryException, match="RowError: max_state_rows is 9, but the join keeps 9 rows and would keep 12"
    ):
        run_stream(spark, out, tmp_path)


def test_a_stream_has_the_schema_of_a_batch(spark, tmp_path, equated):
    write_sides(tmp_path, [quotes.make_rows(3, 1)], [quotes.make_rows(3, 2)])
    frames = [spark.read.parquet(str(tmp_path / name)) for name in ("left", "right")]

    out = vs.window_join(*streams_of(spark, tmp_path), equated, **TIMES)

    assert out.isStreaming
    assert out.schema == vs.window_join(*frames, equated, **TIMES).schema
    assert out.schema.simpleString() == "struct<query:string,left:bigint,right:bigint>"


def test_no_rows_and_no_queries_give_no_pairs(frame, equated):
    assert vs.window_join(frame.limit(0), frame, equated, **TIMES).collect() == []
    assert (
        vs.window_join(frame, frame, vd.JoinQuerySet(left=quotes.SCHEMA, right=quotes.SCHEMA), **TIMES).collect() == []
    )


def test_rows_with_a_null_in_the_equated_field_join_with_none(spark, equated, tmp_path):
    rows = rows_of((1, None, 1, 0), (2, "a", 1, 1))
    write_sides(tmp_path, [rows], [rows])

    out = vs.window_join(*streams_of(spark, tmp_path), equated, **TIMES, shards=3)

    assert quotes.as_tuples(run_stream(spark, out, tmp_path)) == [("near", 2, 2)]


def test_a_stream_accepts_a_set_of_more_than_a_megabyte(spark, tmp_path):
    many = vd.JoinQuerySet(left=quotes.SCHEMA, right=quotes.SCHEMA)
    texts = [f"left.symbol = right.symbol AND left.price = {number} AND right.price < 1" for number in range(8000)]
    many.add_many(list(range(8000)), texts, within="10 seconds")
    assert many.nbytes > 1_000_000
    write_sides(tmp_path, [rows_of((1, "a", 77, 0))], [rows_of((2, "a", 0, 1))])

    out = vs.window_join(*streams_of(spark, tmp_path), many, **TIMES)

    assert quotes.as_tuples(run_stream(spark, out, tmp_path)) == [(77, 1, 2)]


# Restarts.


def test_a_stream_continues_from_its_own_checkpoint_only(spark, tmp_path):
    pairs = quotes.make_joins(quotes.EQUATED)
    batches = [quotes.cut(quotes.make_rows(100, seed), 4, seed) for seed in (9, 10)]
    write_sides(tmp_path, *(side[:2] for side in batches))
    run_stream(spark, vs.window_join(*streams_of(spark, tmp_path), pairs, **TIMES, shards=4), tmp_path)
    write_sides(tmp_path, *(side[2:] for side in batches), first=2)

    out = vs.window_join(*streams_of(spark, tmp_path), pairs, **TIMES, shards=4, layout="grid")
    with pytest.raises(
        StreamingQueryException,
        match="SnapshotError: the checkpoint was written with layout='equality' but the stream has layout='grid'",
    ):
        run_stream(spark, out, tmp_path)
    out = vs.window_join(*streams_of(spark, tmp_path), pairs, **TIMES, shards=4)
    lefts, rights = (pa.concat_tables(side) for side in batches)
    assert quotes.as_tuples(run_stream(spark, out, tmp_path)) == quotes.expected_pairs(lefts, rights, quotes.EQUATED)


def test_changed_queries_act_as_in_one_shard(spark, tmp_path):
    pairs = quotes.make_joins(quotes.EQUATED)
    batches = [quotes.cut(quotes.make_rows(100, seed), 4, seed) for seed in (11, 12)]
    monitor = pairs.window(**TIMES, left_id="id", right_id="id")
    expected = quotes.step_locally(monitor, *(side[:2] for side in batches))
    write_sides(tmp_path, *(side[:2] for side in batches))
    run_stream(spark, vs.window_join(*streams_of(spark, tmp_path), pairs, **TIMES, shards=4), tmp_path)
    pairs.remove("near")
    pairs.add("far", "left.symbol = right.symbol AND left.price - right.price > 5", within="30 seconds")
    expected += quotes.step_locally(monitor, *(side[2:] for side in batches))
    write_sides(tmp_path, *(side[2:] for side in batches), first=2)

    out = vs.window_join(*streams_of(spark, tmp_path), pairs, **TIMES, shards=4)

    assert quotes.as_tuples(run_stream(spark, out, tmp_path)) == sorted(expected)
    assert {query for query, *_ in expected} == {"near", "dearer", "far"}


# Errors.


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"left_time": "tss"}, r"left_time 'tss' is not a column of the left DataFrame; it has: .*did you mean 'ts'"),
        ({"right_id": "idd"}, r"right_id 'idd' is not a column of the right DataFrame; .*did you mean 'id'"),
        ({"right_id": "price"}, r"right_id 'price' is double; an id must be a string or a whole number"),
        ({"left_time": "symbol"}, r"left_time 'symbol' is string; a time must be a timestamp or a number"),
        ({"left_time": "price"}, r"within must be a number; query 'near' has a duration"),
        ({"left_time": None}, r"left_time is missing: the right stream has a time column"),
        ({"left_id": None}, r"left_id must be the name of a column; got None"),
        (
            {"middle_id": "id"},
            r"unknown option 'middle_id' of window; the options are: left_time, left_id, right_time, right_id",
        ),
        ({"late": "never"}, r"late must be one of: 'drop', 'apply'; got 'never'"),
        ({"max_state_rows": -1}, r"max_state_rows must be a whole number above 0"),
        ({"shards": 1.5}, r"shards must be an integer from 1 to 10,000; got 1.5"),
        ({"layout": "square"}, r"layout must be one of: 'equality', 'grid', 'one'; got 'square'"),
        ({"layout": "one", "shards": 3}, r"shards is 3, but the join needs one shard: layout='one'; omit it"),
        ({"frames": {}}, r"frames= must name all DataFrames; omit left and right"),
    ],
)
def test_invalid_options_are_refused(frame, equated, options, message):
    with pytest.raises(vd.VedetteError, match=message):
        vs.window_join(frame, frame, equated, **TIMES | options)


def test_an_impossible_layout_is_refused(frame, any_joins):
    with pytest.raises(
        vd.PipelineError,
        match=r"layout is 'equality', which is not possible: the queries .*; use 'grid'",
    ):
        vs.window_join(frame, frame, any_joins, **TIMES, layout="equality")


def test_a_field_that_queries_use_must_exist_with_a_fitting_type(frame, equated):
    with pytest.raises(vd.RowError, match="the right DataFrame has no column 'price', but the queries use"):
        vs.window_join(frame, frame.drop("price"), equated, **TIMES)
    odd = frame.withColumn("symbol", f.lit(1))
    with pytest.raises(
        vd.RowError, match="field 'symbol' is string in the query set but int in the left DataFrame; cast"
    ):
        vs.window_join(odd, frame, equated, **TIMES)


def test_times_of_two_types_are_refused(frame):
    pairs = vd.JoinQuerySet(left="x double", right="x double")
    pairs.add(1, "left.x < right.x", within=5)
    rows = frame.selectExpr("id", "price x", "1 t", "1.5D u")

    with pytest.raises(vd.RowError, match=r"times of the streams have different types \(left: bigint, right: double\)"):
        vs.window_join(rows, rows, pairs, left_time="t", right_time="u")


def test_arguments_that_are_not_joins_or_frames_are_refused(frame, equated):
    with pytest.raises(vd.PipelineError, match=r"needs a JoinQuerySet after the DataFrames; got BandQuerySet"):
        vs.window_join(frame, frame, vd.BandQuerySet(), **TIMES)
    with pytest.raises(vd.PipelineError, match=r"needs a JoinQuerySet after the DataFrames; got NoneType"):
        vs.window_join(frame, frame)
    with pytest.raises(vd.PipelineError, match=r"vs.window_join joins DataFrames; right is of type NoneType"):
        vs.window_join(frame, pairs=equated, **TIMES)
    forgotten = r"takes the DataFrames first, then the set; {} must be a DataFrame, got JoinQuerySet; check"
    with pytest.raises(vd.PipelineError, match=forgotten.format("right")):
        vs.window_join(frame, equated, **TIMES)
    with pytest.raises(vd.PipelineError, match=forgotten.format("left")):
        vs.window_join(equated, **TIMES)
    with pytest.raises(
        vd.PipelineError, match=r"frames= must name the DataFrame of each stream: left, right; got: left, rihgt"
    ):
        vs.window_join(pairs=equated, frames={"left": frame, "rihgt": frame}, **TIMES)


def test_a_stream_without_rocksdb_is_refused(spark, equated, tmp_path):
    write_sides(tmp_path, [quotes.make_rows(3, 1)], [quotes.make_rows(3, 2)])
    streams = streams_of(spark, tmp_path)
    provider = spark.conf.get(ROCKSDB)
    spark.conf.unset(ROCKSDB)
    try:
        with pytest.raises(
            vd.PipelineError, match=r"a stream with vs.window_join needs RocksDB as its state store; .* set"
        ):
            vs.window_join(*streams, equated, **TIMES)
    finally:
        spark.conf.set(ROCKSDB, provider)


@pytest.mark.parametrize("role", ["id", "ts"])
def test_rows_without_an_id_or_a_time_are_an_error(frame, equated, role):
    odd = frame.withColumn(role, f.when(f.col("price") > 5, f.col(role)))
    name = {"id": "id", "ts": "time"}[role]

    with pytest.raises(Exception, match=rf"RowError: the left {name}, column '{role}', is null in 1 row; filter such"):
        vs.window_join(odd, frame, equated, **TIMES).collect()


def test_a_session_in_another_time_zone_is_refused(spark, frame, equated):
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:
        with pytest.raises(vd.PipelineError, match="time zone is 'Europe/Berlin' but the query set's is 'UTC'"):
            vs.window_join(frame, frame, equated, **TIMES)
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
