"""Border monitoring of DataFrames: schema, batch and stream, shards, time, restarts, errors."""

from __future__ import annotations

import datetime
import decimal
import math
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark import cloudpickle
from pyspark.errors import StreamingQueryException
from pyspark.sql import functions as f
from pyspark.sql import types as t
from spark import ticks
from spark.streams import read_stream, run_stream, write_rows

import vedette as vd
from vedette import spark as vs
from vedette.spark.border import _needed_columns
from vedette.spark.shards.transform import make_processor
from vedette.spark.shipping import query_sets as shipping

ROCKSDB = "spark.sql.streaming.stateStore.providerClass"


def step_locally(monitor, batches):
    """The events of a monitor in this process, batch by batch."""
    events = []
    for batch in batches:
        table = monitor.step(batch, advance=False)
        times = table.column("time").cast(pa.timestamp("us")).cast(pa.int64()).to_pylist()
        for event, time in zip(table.to_pylist(), times, strict=True):
            events.append((event["key"], time // 1_000_000, event["query"], event["event"], event["reason"]))
    return sorted(events)


def at(seconds):
    return datetime.datetime.fromtimestamp(1_772_000_000 + seconds, datetime.UTC)


def rows_of(*rows):
    """Rows of (symbol, price, seconds)."""
    symbols, prices, seconds = zip(*rows, strict=True)
    times = pa.array([at(each) for each in seconds], pa.timestamp("us", "UTC"))
    return pa.table([pa.array(symbols, pa.string()), pa.array(prices, pa.float64()), times], ["symbol", "price", "ts"])


@pytest.fixture(scope="module")
def queries():
    return ticks.make_queries()


@pytest.mark.parametrize(("shards", "n_files"), [(1, 2), pytest.param(5, 3, marks=pytest.mark.fast)])
def test_streams_batches_and_local_steps_give_the_same_events(spark, queries, tmp_path, shards, n_files):
    rows = ticks.make_rows(1000)
    write_rows(rows, tmp_path / "rows", n_files)
    border = vs.border(queries, key="symbol", time="ts", shards=shards)
    expected = ticks.expected_events(rows)

    assert (
        ticks.as_tuples(run_stream(spark, read_stream(spark, tmp_path / "rows").transform(border), tmp_path))
        == expected
    )
    assert ticks.as_tuples(spark.read.parquet(str(tmp_path / "rows")).transform(border)) == expected
    assert step_locally(queries.border(key="symbol", time="ts"), [rows]) == expected


def test_a_batch_is_replayed_in_time_order_for_any_order_and_partitions(spark, queries):
    rows = ticks.make_rows(500)
    frame = spark.createDataFrame(rows.to_pandas()).orderBy(f.hash("ts")).repartition(5)

    events = frame.transform(vs.border(queries, key="symbol", time="ts"))

    assert ticks.as_tuples(events) == ticks.expected_events(rows)


def test_a_stream_accepts_a_set_of_two_megabytes(spark, tmp_path):
    queries = vd.QuerySet("k bigint, x double, t bigint")
    queries.add_boxes(list(range(30_000)), {"x": ([float(i) for i in range(30_000)], [i + 0.5 for i in range(30_000)])})
    assert 1_500_000 < queries.nbytes < 4_000_000
    (tmp_path / "rows").mkdir()
    rows = pa.table({"k": [1, 1, 1], "x": [5.25, 5.75, 7.25], "t": [1, 2, 3]})
    pq.write_table(rows, tmp_path / "rows" / "rows.parquet")

    events = read_stream(spark, tmp_path / "rows").transform(vs.border(queries, key="k", time="t"))

    found = run_stream(spark, events, tmp_path).collect()
    assert sorted((e["time"], e["query"], e["event"]) for e in found) == [
        (1, 5, "enter"),
        (2, 5, "exit"),
        (3, 7, "enter"),
    ]


def test_events_have_the_types_of_the_key_the_time_and_the_ids(spark):
    queries = vd.QuerySet("Price double, n bigint")
    queries.add("cheap", "price < 10")
    rows = spark.createDataFrame(
        [(7, 5.0, 1, "x"), (7, 15.0, 2, "y")], "sensor int, PRICE double, n smallint, m string"
    )

    events = rows.transform(vs.border(queries, key="SENSOR", time="n"))

    assert events.schema.simpleString() == "struct<key:int,time:smallint,query:string,event:string,reason:string>"
    assert [tuple(row) for row in events.orderBy("time").collect()] == [
        (7, 1, "cheap", "enter", "first"),
        (7, 2, "cheap", "exit", "moved"),
    ]


def test_a_stream_has_the_schema_of_a_batch(spark, queries, tmp_path):
    write_rows(ticks.make_rows(10), tmp_path / "rows", 1)
    border = vs.border(queries, key="symbol", time="ts")

    events = read_stream(spark, tmp_path / "rows").transform(border)

    assert events.isStreaming
    assert events.schema == spark.read.parquet(str(tmp_path / "rows")).transform(border).schema
    assert events.schema["key"].dataType == t.StringType()
    assert events.schema["time"].dataType == t.TimestampType()
    assert events.schema["query"].dataType == t.LongType()


@pytest.mark.fast
def test_columns_of_rows_and_event_ids_are_those_of_a_monitor_here(spark, tmp_path):
    queries = vd.QuerySet("k string, x double, ts timestamp", name="alerts")
    queries.add("low", "x < 1")
    n = 40
    rows = pa.table(
        {
            "k": pa.array([f"k{each % 5}" for each in range(n)]),
            "x": pa.array([float(each * 7 % 3) for each in range(n)]),
            "ts": pa.array([at(each) for each in range(n)], pa.timestamp("us", "UTC")),
            "whole": pa.array([None if each % 3 == 0 else (1 << 62) + each for each in range(n)], pa.int64()),
            "real": pa.array([None if each % 4 == 0 else math.nan if each % 4 == 1 else each / 2 for each in range(n)]),
            "exact": pa.array(
                [None if each % 3 == 0 else decimal.Decimal(each) for each in range(n)], pa.decimal128(9, 2)
            ),
            "day": pa.array([None if each % 3 == 0 else datetime.date(2026, 1, 1 + each % 9) for each in range(n)]),
            "raw": pa.array([None if each % 3 == 0 else bytes([each]) for each in range(n)]),
            "flag": pa.array([None, True, False, True] * 10),
            "text": pa.array([None, "a", "b", ""] * 10),
            "unused": pa.array([[each] for each in range(n)]),
        }
    )
    options = {"key": "k", "time": "ts", "columns": ["ts", "whole", "real", "exact", "day", "raw", "flag", "text"]}
    write_rows(rows, tmp_path / "rows", 3)
    border = vs.border(queries, shards=3, **options, observe="counted")
    wanted = in_order(queries.border(**options).step(rows, advance=False).to_pylist())
    for frame in (
        spark.read.parquet(str(tmp_path / "rows")).transform(border),
        run_stream(spark, read_stream(spark, tmp_path / "rows").transform(border), tmp_path),
    ):
        assert in_order(frame.toArrow().to_pylist()) == wanted


def in_order(events):
    """Events in the order of their ids. NaN equals itself."""
    plain = [{name: repr(value) for name, value in event.items()} for event in events]
    return sorted(plain, key=lambda event: event["event_id"])


def test_nested_columns_are_refused_by_name(frame, queries):
    nested = frame.selectExpr("*", "array(1) AS many")
    with pytest.raises(vd.RowError, match="columns names 'many', which is array<int>; only strings"):
        nested.transform(vs.border(queries, key="symbol", time="ts", columns=["many"]))


def test_only_needed_columns_are_sent(spark, queries):
    schema = "`x.y` string, price double, ts timestamp, z binary, w array<int>"
    frame = spark.createDataFrame([("a", 1.0, at(0), b"", [1])], schema)
    columns = {column.name: column for column in frame.schema.fields}

    needed = _needed_columns(frame, queries.schema, queries.fields, columns["x.y"], columns["ts"], [columns["z"]])
    assert [column.name for column in needed] == ["x.y", "ts", "price", "z"]
    assert len(frame.transform(vs.border(queries, key="x.y", time="ts")).collect()) == 2


@pytest.mark.parametrize("late", ["drop", "apply"])
def test_lateness_is_decided_row_by_row(spark, queries, tmp_path, late):
    batches = [
        rows_of(("a", 3.0, 100), ("b", 30.0, 100), ("a", 20.0, 300)),
        rows_of(("a", 9.0, 200), ("b", 31.0, 150), ("b", 50.0, 160)),
        rows_of(("a", 40.0, 299), ("a", 41.0, 301)),
    ]
    for number, batch in enumerate(batches):
        write_rows(batch, tmp_path / "rows", 1, first=number)
    expected = step_locally(queries.border(key="symbol", time="ts", late=late), batches)
    border = vs.border(queries, key="symbol", time="ts", late=late)

    # A watermark far ahead of late rows changes nothing.
    stream = read_stream(spark, tmp_path / "rows", watermark="1 second")
    assert ticks.as_tuples(run_stream(spark, stream.transform(border), tmp_path)) == expected
    times = {time - 1_772_000_000 for _, time, *_ in expected}
    assert times == ({100, 150, 160, 300, 301} if late == "drop" else {100, 150, 160, 200, 299, 300, 301})


def test_null_keys_are_an_error_or_dropped(spark, queries):
    frame = spark.createDataFrame([("a", 1.0, at(0)), (None, 1.0, at(1))], ticks.SCHEMA)

    with pytest.raises(Exception, match=r"null_key is 'error', and the key, column 'symbol', is null in 1 row"):
        frame.transform(vs.border(queries, key="symbol", time="ts")).collect()
    events = frame.transform(vs.border(queries, key="symbol", time="ts", null_key="drop")).collect()
    assert {row["key"] for row in events} == {"a"}


def test_an_empty_frame_and_an_empty_set_give_no_events(spark, queries):
    frame = spark.createDataFrame([("a", 1.0, at(0))], ticks.SCHEMA)

    assert frame.limit(0).transform(vs.border(queries, key="symbol", time="ts")).collect() == []
    assert frame.transform(vs.border(vd.QuerySet(ticks.SCHEMA), key="symbol", time="ts")).collect() == []


# Time.


def test_silent_keys_expire_by_the_watermark(spark, queries, tmp_path):
    batches = [
        rows_of(("a", 0.0, 0), ("b", 0.0, 1), ("c", 0.0, 2)),
        rows_of(("b", 0.5, 50)),
        rows_of(("b", 0.5, 100)),
        rows_of(("b", 0.5, 150), ("a", 0.0, 150)),
    ]
    for number, batch in enumerate(batches):
        write_rows(batch, tmp_path / "rows", 1, first=number)
    border = vs.border(queries, key="symbol", time="ts", expire_after="60 seconds", shards=2)
    stream = read_stream(spark, tmp_path / "rows", watermark="10 seconds").transform(border)

    events = ticks.as_tuples(run_stream(spark, stream, tmp_path))

    assert [(key, time - 1_772_000_000, event, reason) for key, time, _, event, reason in events] == [
        ("a", 0, "enter", "first"),
        ("a", 60, "exit", "expired"),
        ("a", 150, "enter", "first"),
        ("b", 1, "enter", "first"),
        ("c", 2, "enter", "first"),
        ("c", 62, "exit", "expired"),
    ]
    # On a batch only rows advance time, and c has no later row.
    replayed = ticks.as_tuples(spark.read.parquet(str(tmp_path / "rows")).transform(border))
    assert replayed == [event for event in events if event[:2] != ("c", 1_772_000_062)]


def test_silent_keys_leave_each_query_after_its_own_silence(spark, tmp_path):
    queries = vd.QuerySet("price double, ts timestamp")
    silences = ["20 seconds", "60 seconds", None]
    queries.add_many(["short", "long", "never"], ["price < 50"] * 3, expire_after=silences)
    batches = [rows_of(("a", 0.0, 0)), rows_of(("b", 99.0, 40)), rows_of(("b", 99.0, 90)), rows_of(("a", 0.0, 150))]
    for number, batch in enumerate(batches):
        write_rows(batch, tmp_path / "rows", 1, first=number)
    border = vs.border(queries, key="symbol", time="ts", shards=2)
    stream = read_stream(spark, tmp_path / "rows", watermark="10 seconds").transform(border)

    events = ticks.as_tuples(run_stream(spark, stream, tmp_path))

    assert sorted((time - 1_772_000_000, query, event) for _, time, query, event, _ in events) == [
        *((0, query, "enter") for query in ("long", "never", "short")),
        (20, "short", "exit"),
        (60, "long", "exit"),
        (150, "long", "enter"),
        (150, "short", "enter"),
    ]
    assert sorted(ticks.as_tuples(spark.read.parquet(str(tmp_path / "rows")).transform(border))) == sorted(events)
    with pytest.raises(vd.PipelineError, match="expire_after needs a watermark on 'ts'"):
        read_stream(spark, tmp_path / "rows").transform(border)


def test_a_dwell_is_confirmed_by_the_watermark(spark, queries, tmp_path):
    batches = [
        rows_of(("a", 0.0, 0), ("b", 0.0, 1)),
        rows_of(("b", 100.0, 10), ("c", 0.0, 12)),
        rows_of(("d", 100.0, 100)),
    ]
    for number, batch in enumerate(batches):
        write_rows(batch, tmp_path / "rows", 1, first=number)
    border = vs.border(queries, key="symbol", time="ts", dwell="30 seconds", shards=2)

    stream = read_stream(spark, tmp_path / "rows", watermark="10 seconds").transform(border)
    events = ticks.as_tuples(run_stream(spark, stream, tmp_path))

    found = [(key, time - 1_772_000_000, event) for key, time, _, event, _ in events]
    assert found == [("a", 30, "enter"), ("c", 42, "enter")]


def test_bounds_pass_silent_keys_by_the_watermark(spark, tmp_path):
    queries = vd.QuerySet("price double, ts timestamp")
    queries.add("fresh", "price < 50 AND ts > now() - INTERVAL 60 SECONDS")
    batches = [rows_of(("a", 0.0, 0), ("b", 0.0, 1), ("c", 99.0, 2)), rows_of(("b", 0.5, 50)), rows_of(("c", 0.5, 100))]
    for number, batch in enumerate([*batches, rows_of(("c", 0.5, 120))]):
        write_rows(batch, tmp_path / "rows", 1, first=number)
    border = vs.border(queries, key="symbol", time="ts", shards=2)
    stream = read_stream(spark, tmp_path / "rows", watermark="10 seconds").transform(border)

    events = ticks.as_tuples(run_stream(spark, stream, tmp_path))

    assert [(key, time - 1_772_000_000, event, reason) for key, time, _, event, reason in events] == [
        ("a", 0, "enter", "first"),
        ("a", 60, "exit", "time"),
        ("b", 1, "enter", "first"),
        ("b", 110, "exit", "time"),
        ("c", 100, "enter", "moved"),
    ]
    with pytest.raises(vd.PipelineError, match=r"a query with now\(\) needs a watermark on 'ts'"):
        read_stream(spark, tmp_path / "rows").transform(border)


@pytest.mark.parametrize("option", ["expire_after", "dwell"])
def test_expiry_and_dwell_need_a_watermark(spark, queries, tmp_path, option):
    write_rows(ticks.make_rows(500), tmp_path / "rows", 1)
    border = vs.border(queries, key="symbol", time="ts", **{option: "1 minute"})

    with pytest.raises(
        vd.PipelineError, match=rf"{option} needs a watermark on 'ts'; set it before .*\.withWatermark\('ts', \"10 min"
    ):
        read_stream(spark, tmp_path / "rows").transform(border)
    assert spark.read.parquet(str(tmp_path / "rows")).transform(border).count()


def test_with_numeric_times_only_the_next_row_advances_time(spark, tmp_path):
    queries = vd.QuerySet("price double")
    queries.add(1, "price < 10")
    frame = spark.createDataFrame([(1, 5.0, 0.0), (1, 5.0, 99.5), (2, 5.0, 3.0)], "id bigint, price double, at double")
    frame.coalesce(1).write.parquet(str(tmp_path / "rows"))
    border = vs.border(queries, key="id", time="at", expire_after=50)
    expected = [(1, 0.0, "enter"), (1, 50.0, "exit"), (1, 99.5, "enter"), (2, 3.0, "enter")]

    streamed = run_stream(spark, read_stream(spark, tmp_path / "rows").transform(border), tmp_path)
    for events in (streamed, frame.transform(border)):
        assert sorted((row["key"], row["time"], row["event"]) for row in events.collect()) == expected


# Restarts.


def test_a_stream_continues_from_its_own_checkpoint_only(spark, queries, tmp_path):
    rows = ticks.make_rows(400)
    border = vs.border(queries, key="symbol", time="ts", shards=2)
    write_rows(rows.slice(0, 200), tmp_path / "rows", 2)
    run_stream(spark, read_stream(spark, tmp_path / "rows").transform(border), tmp_path)
    write_rows(rows.slice(200, 1), tmp_path / "rows", 1, first=2)
    write_rows(rows.slice(201), tmp_path / "rows", 1, first=3)
    other = vs.border(queries, "symbol", "ts", shards=7)

    # The next file has one row, most likely of a new shard.
    with pytest.raises(
        StreamingQueryException, match="SnapshotError: the checkpoint has 2 shards but the stream has 7; pass"
    ):
        run_stream(spark, read_stream(spark, tmp_path / "rows").transform(other), tmp_path)
    events = run_stream(spark, read_stream(spark, tmp_path / "rows").transform(border), tmp_path)
    assert ticks.as_tuples(events) == ticks.expected_events(rows)


def test_changed_queries_take_effect_when_a_stream_continues(spark, tmp_path):
    queries = ticks.make_queries()
    write_rows(rows_of(("a", 0.0, 0), ("b", 3.0, 0)), tmp_path / "rows", 1)
    run_stream(
        spark, read_stream(spark, tmp_path / "rows").transform(vs.border(queries, key="symbol", time="ts")), tmp_path
    )
    queries.remove(3)
    queries.add(100, "price = 0")
    write_rows(rows_of(("a", 0.0, 10), ("b", 3.0, 10)), tmp_path / "rows", 1, first=1)

    stream = read_stream(spark, tmp_path / "rows").transform(vs.border(queries, key="symbol", time="ts"))
    events = ticks.as_tuples(run_stream(spark, stream, tmp_path))

    later = [event for event in events if event[1] == 1_772_000_010]
    assert later == [("a", 1_772_000_010, 100, "enter", "added"), ("b", 1_772_000_010, 3, "exit", "removed")]


# Errors.


@pytest.fixture(scope="module")
def frame(spark):
    return spark.createDataFrame([("a", 1.0, at(0))], ticks.SCHEMA)


@pytest.mark.parametrize(("option", "column"), [("key", "symbl"), ("time", "tss")])
def test_the_error_about_a_missing_column_suggests_the_nearest(frame, queries, option, column):
    options = {"key": "symbol", "time": "ts"} | {option: column}
    with pytest.raises(
        vd.RowError, match=rf"{option} '{column}' is not a column of the DataFrame; it has: .*did you mean"
    ):
        frame.transform(vs.border(queries, **options))


def test_a_missing_field_that_queries_use_is_refused(frame, queries):
    with pytest.raises(vd.RowError, match="the DataFrame has no column 'price', but the queries use"):
        frame.drop("price").transform(vs.border(queries, key="symbol", time="ts"))


@pytest.mark.parametrize("type_", ["double", "boolean", "date", "decimal(5,0)"])
def test_a_key_that_is_not_a_string_or_integer_is_refused(frame, queries, type_):
    odd = frame.withColumn("odd", f.lit(None).cast(type_))
    with pytest.raises(vd.RowError, match=r"a key must be a string or an integer; column 'odd' is .*; cast it"):
        odd.transform(vs.border(queries, key="odd", time="ts"))


@pytest.mark.parametrize("type_", ["string", "boolean", "date", "timestamp_ntz", "decimal(5,0)"])
def test_a_time_that_is_not_a_timestamp_or_number_is_refused(frame, queries, type_):
    odd = frame.withColumn("odd", f.lit(None).cast(type_))
    with pytest.raises(
        vd.RowError, match=r"a time must be a timestamp or a number; column 'odd' is .*; cast it to times"
    ):
        odd.transform(vs.border(queries, key="symbol", time="odd"))


def test_two_columns_of_one_name_are_refused(frame, queries):
    doubled = frame.withColumn("other", f.lit("x")).toDF(*frame.columns, "SYMBOL")
    with pytest.raises(vd.RowError, match="2 columns named 'symbol'"):
        doubled.transform(vs.border(queries, key="symbol", time="ts"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"late": "later"}, "late"),
        ({"null_key": "keep"}, "null_key"),
        ({"dwell": "soon"}, "dwell must be a duration"),
        ({"expire_after": -1}, "expire_after must be a duration"),
        ({"margin": {"pric": 1.0}}, "pric"),
        ({"cross": "yes"}, "cross"),
        ({"key": 3}, "key"),
        ({"shards": 0}, "shards must be an integer from 1 to 10,000; got 0"),
        ({"shards": True}, "shards must be an integer"),
    ],
)
def test_invalid_options_are_refused(frame, queries, options, message):
    with pytest.raises(vd.VedetteError, match=message):
        frame.transform(vs.border(queries, **({"key": "symbol", "time": "ts"} | options)))


def test_an_argument_that_is_not_a_query_set_is_refused():
    with pytest.raises(vd.PipelineError, match="needs a QuerySet; got list"):
        vs.border([], key="symbol", time="ts")


def test_a_session_in_another_time_zone_is_refused(spark, frame, queries):
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:
        with pytest.raises(vd.PipelineError, match="time zone is 'Europe/Berlin' but the query set's is 'UTC'"):
            frame.transform(vs.border(queries, key="symbol", time="ts"))
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_a_stream_without_rocksdb_is_refused(spark, queries, tmp_path):
    write_rows(ticks.make_rows(10), tmp_path / "rows", 1)
    stream = read_stream(spark, tmp_path / "rows")
    provider = spark.conf.get(ROCKSDB)
    spark.conf.unset(ROCKSDB)
    try:
        with pytest.raises(vd.PipelineError, match=r"needs RocksDB as its state store; .* set it: spark\.conf\.set"):
            stream.transform(vs.border(queries, key="symbol", time="ts"))
    finally:
        spark.conf.set(ROCKSDB, provider)


PACK = "made(iter([]))"
PROCESS = """
class Nothing:
    def getCurrentWatermarkInMs(self):
        return 0
    def __getattr__(self, name):
        return lambda *arguments: None
made.init(Nothing())
list(made.handleInputRows((0,), iter([]), Nothing()))
"""


@pytest.mark.parametrize("use", [PACK, PROCESS])
def test_a_worker_without_the_package_says_what_to_install(queries, tmp_path, use):
    parcel = shipping.pack(queries, None)
    function = shipping.worker_function("vedette.spark.workers.shard", "pack_rows", parcel.sender, {})
    made = function if use == PACK else make_processor({}, parcel.sender)
    (tmp_path / "made").write_bytes(cloudpickle.dumps(made))
    script = (
        "import pickle, sys\n"
        "class Absent:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] == 'vedette':\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n"
        "sys.meta_path.insert(0, Absent())\n"
        f"made = pickle.load(open({str(tmp_path / 'made')!r}, 'rb'))\n{use}\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)

    assert "cannot import 'vedette' with" in done.stderr
    assert f"install vedette {parcel.sender} there" in done.stderr
