"""Band joins of DataFrames: schema, batch and stream, shards, order, restarts, errors."""

from __future__ import annotations

import logging
from collections import Counter

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import functions as f
from spark import bands
from spark.streams import read_stream, run_stream, write_batches

import vedette as vd
from vedette import spark as vs
from vedette.spark.workers.band_join import check_rows, step

ROCKSDB = "spark.sql.streaming.stateStore.providerClass"


def write_sides(directory, lefts, rights, first=0):
    for name, batches in (("left", lefts), ("right", rights)):
        write_batches([bands.to_table(rows) for rows in batches], directory / name, first)


def streams_of(spark, directory):
    return [read_stream(spark, directory / name) for name in ("left", "right")]


def frames_of(spark, directory):
    return [spark.read.parquet(str(directory / name)) for name in ("left", "right")]


@pytest.fixture(scope="module")
def queries():
    return bands.make_bands()


@pytest.fixture(scope="module")
def frame(spark):
    return spark.createDataFrame([(1, 2.0, "insert"), (2, 3.5, "insert")], "id bigint, value double, op string")


@pytest.mark.parametrize("shards", [1, pytest.param(6, marks=pytest.mark.fast)])
def test_a_stream_emits_the_net_change_of_each_micro_batch(spark, queries, tmp_path, shards):
    lefts, rights = bands.make_batches(4, 12, seed=1), bands.make_batches(3, 15, seed=2)
    write_sides(tmp_path, lefts, rights)

    out = vs.band_join(*streams_of(spark, tmp_path), queries, op="op", shards=shards)
    changes = bands.as_tuples(run_stream(spark, out, tmp_path))

    expected = [change for changes in bands.expected_changes(lefts, rights) for change in changes]
    assert changes == sorted(expected)
    assert {sign for sign, *_ in changes} == {1, -1}


def test_a_stream_emits_each_affected_query_once_per_micro_batch(spark, queries, tmp_path):
    lefts, rights = bands.make_batches(4, 12, seed=3), bands.make_batches(4, 9, seed=4)
    write_sides(tmp_path, lefts, rights)

    out = vs.band_join(*streams_of(spark, tmp_path), queries, report="queries", op="op", shards=4)
    found = [row["query"] for row in run_stream(spark, out, tmp_path).collect()]

    expected = Counter()
    for changes in bands.expected_changes(lefts, rights):
        expected.update({query for _, query, _, _ in changes})
    assert Counter(found) == expected
    assert max(expected.values()) > 1


@pytest.mark.parametrize("shards", [None, 6])
def test_a_batch_emits_the_pairs_at_the_end(spark, queries, tmp_path, shards):
    lefts, rights = bands.make_batches(1, 60, seed=5), bands.make_batches(1, 50, seed=6)
    write_sides(tmp_path, lefts, rights)
    left, right = frames_of(spark, tmp_path)

    changes = bands.as_tuples(vs.band_join(left, right, queries, op="op", shards=shards))
    affected = vs.band_join(left, right, queries, op="op", report="queries", shards=shards).collect()

    assert changes == sorted(bands.expected_changes(lefts, rights)[0])
    assert {sign for sign, *_ in changes} == {1}
    assert sorted(row["query"] for row in affected) == sorted({query for _, query, _, _ in changes})


def test_rows_of_a_sorted_batch_are_applied_in_order_for_any_partitions(spark, queries):
    rows = [(number % 10, float(number), "delete" if number % 3 == 2 else "insert", number) for number in range(100)]
    schema = "id bigint, value double, op string, at int"
    left = spark.createDataFrame(rows, schema).orderBy(f.hash("at")).repartition(5).orderBy("at")
    right = spark.createDataFrame([(1, 80.0)], "id bigint, value double")

    changes = vs.band_join(left, right, queries, left_op="op", known_id="replace", shards=4)

    expected = bands.expected_changes([[row[:3] for row in rows]], [[(1, 80.0, "insert")]])[0]
    assert bands.as_tuples(changes) == sorted(expected)


def test_the_answer_has_the_types_of_the_ids(spark):
    numbered = vd.BandQuerySet()
    numbered.add(7, 0, 1)
    left = spark.createDataFrame([(1, 5, "x")], "Sensor int, `a.b` smallint, other string")
    right = spark.createDataFrame([("r", 4.5)], "name string, value float")

    pairs = vs.band_join(left, right, numbered, left_id="sensor", left_value="A.b", right_id="name")
    affected = vs.band_join(
        left, right, numbered, report="queries", left_id="sensor", left_value="a.b", right_id="name"
    )

    assert pairs.schema.simpleString() == "struct<sign:tinyint,query:bigint,left:int,right:string>"
    assert [tuple(row) for row in pairs.collect()] == [(1, 7, 1, "r")]
    assert affected.schema.simpleString() == "struct<query:bigint>"
    assert [tuple(row) for row in affected.collect()] == [(7,)]


def test_a_stream_has_the_schema_of_a_batch(spark, queries, tmp_path):
    write_sides(tmp_path, [[(1, 1.0, "insert")]], [[(1, 1.0, "insert")]])
    for report in ("pairs", "queries"):
        stream = vs.band_join(*streams_of(spark, tmp_path), queries, report=report)

        assert stream.isStreaming
        assert stream.schema == vs.band_join(*frames_of(spark, tmp_path), queries, report=report).schema


def test_a_frame_may_be_joined_with_itself(spark, queries, tmp_path):
    rows = [bands.make_batches(2, 20, seed=8, with_ops=False)] * 2
    write_sides(tmp_path, *rows)
    stream = read_stream(spark, tmp_path / "left")

    changes = bands.as_tuples(run_stream(spark, vs.band_join(stream, stream, queries, shards=4), tmp_path))

    assert changes == sorted(change for changes in bands.expected_changes(*rows) for change in changes)


def test_no_rows_and_no_queries_give_no_pairs(frame, queries):
    assert vs.band_join(frame.limit(0), frame, queries).collect() == []
    assert vs.band_join(frame.limit(0), frame.limit(0), queries, report="queries").collect() == []
    assert vs.band_join(frame, frame, vd.BandQuerySet()).collect() == []


def test_a_stream_accepts_a_set_of_two_megabytes(spark, tmp_path):
    many = vd.BandQuerySet()
    many.add_many(list(range(12_000)), [float(low) for low in range(12_000)], [low + 0.5 for low in range(12_000)])
    assert 1_000_000 < many.nbytes < 4_000_000
    write_sides(tmp_path, [[(1, 105.25, "insert")]], [[(1, 5.0, "insert")]])

    out = vs.band_join(*streams_of(spark, tmp_path), many)

    assert bands.as_tuples(run_stream(spark, out, tmp_path)) == [(1, 100, 1, 1)]


# Known and unknown ids.


def test_a_known_id_is_an_error_or_its_value_is_replaced(spark, queries, tmp_path):
    lefts, rights = [[(1, 5.0, "insert")], [(1, 7.0, "insert")]], [[(1, 5.0, "insert")], []]
    write_sides(tmp_path, lefts, rights)

    out = vs.band_join(*streams_of(spark, tmp_path), queries, shards=2)
    with pytest.raises(
        StreamingQueryException, match=r"RowError: known_id is 'error', and left id 1 already has a value; delete"
    ):
        run_stream(spark, out, tmp_path)
    out = vs.band_join(*streams_of(spark, tmp_path), queries, known_id="replace", shards=2)
    changes = bands.as_tuples(run_stream(spark, out, tmp_path))
    assert changes == [(-1, "q1", 1, 1), (1, "q1", 1, 1), (1, "q2", 1, 1)]


def test_deletions_of_unknown_ids_are_reported_once_or_an_error(spark, frame, queries):
    rows = frame.union(spark.createDataFrame([(9, None, "DELETE")], frame.schema))

    def join(unknown_id):
        return [tuple(r) for r in vs.band_join(rows, rows, queries, op="op", unknown_id=unknown_id, shards=4).collect()]

    reported = join("report")
    with pytest.raises(
        Exception,
        match=r"unknown_id is 'error', and 1 (left|right) id to delete has no value: 9",
    ):
        join("error")

    assert sorted((row for row in reported if row[0] == 0), key=str) == [(0, None, 9, None), (0, None, None, 9)]
    assert sorted(join("log")) == sorted(row for row in reported if row[0] != 0)


def test_deletions_of_unknown_ids_are_logged_with_their_number_and_ids(queries, caplog):
    rows = bands.to_table([(number, 0.0, "delete") for number in range(1, 13)] + [(4, 2.0, "insert")])
    deletes = pa.array([True] * 12 + [False])
    plan = {"reporters": [[0], [5]], "batch_bytes": 1 << 20}
    monitor = queries.monitor()
    sides = dict.fromkeys((0, 1), rows.set_column(2, "deletes", deletes))

    with caplog.at_level(logging.WARNING, "vedette.operators.band_join.monitor"):
        list(step(monitor, sides, 0, plan))

    message = "12 left ids to delete have no value: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, ..."
    ours = [record.getMessage() for record in caplog.records if record.name.startswith("vedette.")]
    assert ours == [message]  # another shard reports the right ones
    assert (monitor.n_left, monitor.n_right) == (1, 1)


def test_a_state_that_would_grow_too_large_is_an_error(frame, queries):
    with pytest.raises(Exception, match="RowError: max_state_rows is 3, but the join keeps 0 values and would keep 4"):
        vs.band_join(frame, frame, queries, max_state_rows=3, shards=1).collect()


# Restarts.


def test_a_stream_continues_from_its_own_checkpoint_only(spark, queries, tmp_path):
    lefts, rights = bands.make_batches(4, 12, seed=9), bands.make_batches(4, 12, seed=10)
    write_sides(tmp_path, lefts[:2], rights[:2])
    run_stream(spark, vs.band_join(*streams_of(spark, tmp_path), queries, op="op", shards=4), tmp_path)
    write_sides(tmp_path, lefts[2:], rights[2:], first=2)
    left, right = streams_of(spark, tmp_path)
    others = bands.make_bands({"other": (0, 1)} | bands.BANDS)

    with pytest.raises(
        StreamingQueryException,
        match="SnapshotError: the stream cannot continue from its checkpoint: the state was saved with another set",
    ):
        run_stream(spark, vs.band_join(left, right, others, op="op", shards=4), tmp_path)
    changes = run_stream(spark, vs.band_join(left, right, queries, op="op", shards=4), tmp_path)
    expected = [change for changes in bands.expected_changes(lefts, rights) for change in changes]
    assert bands.as_tuples(changes) == sorted(expected)


def test_changed_queries_take_effect_with_the_next_micro_batch(spark, tmp_path):
    changing = bands.make_bands()
    lefts, rights = bands.make_batches(1, 20, seed=11), bands.make_batches(1, 20, seed=12)
    write_sides(tmp_path, lefts, rights)
    run_stream(spark, vs.band_join(*streams_of(spark, tmp_path), changing, op="op", shards=6), tmp_path)
    changing.remove("q3")
    changing.add("new", 3, 5)
    write_sides(tmp_path, [[(1000, 1e9, "insert")]], [], first=1)  # one row, which joins nothing

    out = run_stream(spark, vs.band_join(*streams_of(spark, tmp_path), changing, op="op", shards=6), tmp_path)

    before = bands.expected_changes(lefts, rights)[0]
    came = bands.expected_changes(lefts, rights, {"new": (3, 5)})[0]
    went = [(-1, *change) for _, *change in before if change[0] == "q3"]
    assert went
    assert came
    assert bands.as_tuples(out) == sorted([*before, *came, *went])


# Errors.


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"left_id": "idd"},
            r"left_id 'idd' is not a column of the left DataFrame; it has: id, value, op; did you mean 'id'",
        ),
        (
            {"right_value": "valeu"},
            r"right_value 'valeu' is not a column of the right DataFrame; .* 'value'",
        ),
        ({"op": "ops"}, r"op 'ops' is not a column of the left DataFrame; .*did you mean 'op'"),
        ({"right_op": "ops"}, r"right_op 'ops' is not a column of the right DataFrame"),
        (
            {"left_id": "value"},
            r"an id must be a string or an integer; column 'value' is double; cast it to string or bigint",
        ),
        (
            {"left_value": "op"},
            r"a value must be a double, a float or an integer; column 'op' is string; cast it to double",
        ),
        ({"op": "id"}, r"op must name a column of strings, 'insert' or 'delete'; column 'id' is bigint"),
        ({"left_id": 3}, r"left_id must be the name of a column; got 3"),
        ({"report": "counts"}, r"report must be one of: 'pairs', 'queries'; got 'counts'"),
        ({"known_id": "drop"}, r"known_id must be one of: 'error', 'replace'; got 'drop'"),
        ({"unknown_id": "no"}, r"unknown_id must be one of: 'log', 'report', 'error'; got 'no'"),
        (
            {"unknown_id": "report", "report": "queries"},
            r"unknown_id is 'report', which adds ids to pairs; with report='queries' use 'log' or 'error'$",
        ),
        ({"max_state_rows": 0}, r"max_state_rows must be a whole number above 0, or None; got 0"),
        ({"shards": "4"}, r"shards must be an integer from 1 to 10,000; got '4'"),
    ],
)
def test_invalid_options_are_refused(frame, queries, options, message):
    with pytest.raises(vd.VedetteError, match=message):
        vs.band_join(frame, frame, queries, **options)


def test_arguments_that_are_not_bands_or_frames_are_refused(frame, queries):
    with pytest.raises(vd.PipelineError, match=r"vs.band_join needs a BandQuerySet; got QuerySet"):
        vs.band_join(frame, frame, vd.QuerySet("x double"))
    with pytest.raises(vd.PipelineError, match=r"joins DataFrames; right is of type list"):
        vs.band_join(frame, [], queries)
    with pytest.raises(vd.PipelineError, match=r"vs.match needs a QuerySet; got BandQuerySet"):
        vs.match(queries)


def test_a_stream_and_a_batch_are_refused(spark, frame, queries, tmp_path):
    write_sides(tmp_path, [[(1, 1.0, "insert")]], [])
    stream = read_stream(spark, tmp_path / "left")

    with pytest.raises(vd.PipelineError, match=r"or batches with batches; left is a stream and right is a batch; read"):
        vs.band_join(stream, frame, queries)


def test_a_stream_without_rocksdb_is_refused(spark, queries, tmp_path):
    write_sides(tmp_path, [[(1, 1.0, "insert")]], [[(1, 1.0, "insert")]])
    streams = streams_of(spark, tmp_path)
    provider = spark.conf.get(ROCKSDB)
    spark.conf.unset(ROCKSDB)
    try:
        with pytest.raises(
            vd.PipelineError, match=r"a stream with vs.band_join needs RocksDB as its state store; .* set"
        ):
            vs.band_join(*streams, queries)
    finally:
        spark.conf.set(ROCKSDB, provider)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([(None, 1.0, "insert")], r"the left id, column 'k', is null in 1 row; filter such rows out before the join"),
        (
            [(1, 1.0, "insert"), (2, float("nan"), "insert"), (3, None, "insert")],
            r"the left value, column 'v', is not a finite number in 2 rows; the first is nan, with id 2; filter",
        ),
        (
            [(3, None, "insert")],
            r"the left value, column 'v', is not a finite number in 1 row; the first is null, with id 3; filter",
        ),
        ([(3, 1.0, "upsert")], r"column 'op' of the left rows has 'upsert'; a row must say 'insert' or 'delete'"),
        ([(3, 1.0, None)], r"column 'op' of the left rows has null; a row must say 'insert' or 'delete'"),
    ],
)
def test_invalid_rows_are_refused(rows, message):
    (batch,) = bands.to_table(rows).rename_columns(["k", "v", "op"]).to_batches()

    with pytest.raises(vd.RowError, match=message):
        check_rows(batch, {"side": 0})


def test_deletions_need_no_value():
    rows = bands.to_table([(1, None, "delete"), (2, float("inf"), "Delete"), (3, 1.5, "insert")])

    checked = check_rows(rows.to_batches()[0], {"side": 0})

    assert checked.column("deletes").to_pylist() == [True, True, False]
    assert checked.column("value").to_pylist() == [0.0, 0.0, 1.5]
