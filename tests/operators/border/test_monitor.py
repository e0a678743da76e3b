"""The errors of a monitor, its state, and the form of its answers."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import vedette as vd
from vedette.operators.border.finder import BorderFinder

SCHEMA = "symbol string, price double, ts timestamp"
NOON = datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.UTC)


@pytest.fixture
def alerts():
    queries = vd.QuerySet(SCHEMA)
    queries.add("cheap", "price < 40")
    return queries


def ticks(*prices, start=0, symbol="IBM"):
    times = [NOON + datetime.timedelta(seconds=start + i) for i in range(len(prices))]
    return {"symbol": [symbol] * len(prices), "price": list(prices), "ts": times}


def test_events_are_an_arrow_table(alerts):
    events = alerts.border(key="symbol", time="ts").step(ticks(39.0, 41.0))

    assert events.column_names == ["key", "time", "query", "event", "reason"]
    assert events.schema.field("time").type == pa.timestamp("us", tz="UTC")
    assert events["query"].to_pylist() == ["cheap", "cheap"]
    assert events["time"].to_pylist() == [NOON, NOON + datetime.timedelta(seconds=1)]
    assert events.to_pandas()["event"].astype(str).tolist() == ["enter", "exit"]


def test_an_empty_batch_has_no_events(alerts):
    monitor = alerts.border(key="symbol", time="ts")

    assert monitor.step(pa.table(ticks(1.0)).slice(0, 0)).num_rows == 0
    assert monitor.step(pd.DataFrame({"symbol": [], "price": [], "ts": []})).num_rows == 0
    assert monitor.step(ticks(1.0)).num_rows == 1
    assert monitor.step(pa.table(ticks(1.0)).slice(0, 0)).num_rows == 0


def test_key_and_time_need_not_be_in_the_schema(alerts):
    rows = pd.DataFrame({"truck": [1, 1], "price": [39.0, 41.0], "clock": [0.5, 1.5]})

    events = alerts.border(key="truck", time="clock").step(rows)

    assert [(e["key"], e["time"], e["event"]) for e in events.to_pylist()] == [(1, 0.5, "enter"), (1, 1.5, "exit")]


def test_keys_may_be_a_dictionary_array(alerts):
    keys = pa.DictionaryArray.from_arrays(pa.array([2, 0, 2], pa.int8()), pa.array(["A", "unused", "B"]))
    rows = pa.table({"symbol": keys, "price": [39.0, 41.0, 41.0], "t": [1, 1, 2]})
    monitor = alerts.border(key="symbol", time="t")

    events = monitor.step(rows)

    assert [(e["key"], e["event"]) for e in events.to_pylist()] == [("B", "enter"), ("B", "exit")]
    assert len(monitor.keys) == 2


def test_durations_are_read_in_the_units_of_the_time(alerts):
    monitor = alerts.border(key="symbol", time="ts", dwell="2 seconds", expire_after="1 minute")

    assert monitor.step(ticks(39.0, 38.0)).num_rows == 0
    (event,) = monitor.step(ticks(37.0, start=5)).to_pylist()
    assert event["time"] == NOON + datetime.timedelta(seconds=2)
    (event,) = monitor.step(ticks(50.0, start=100, symbol="SAP")).to_pylist()
    assert (event["reason"], event["time"]) == ("expired", NOON + datetime.timedelta(seconds=65))


def test_advance_takes_a_datetime(alerts):
    monitor = alerts.border(key="symbol", time="ts", dwell="2 seconds")
    monitor.step(ticks(39.0))

    assert monitor.advance(NOON + datetime.timedelta(seconds=1)).num_rows == 0
    assert monitor.advance(NOON + datetime.timedelta(seconds=2)).num_rows == 1
    assert monitor.advance(NOON + datetime.timedelta(hours=2)).num_rows == 0
    with pytest.raises(vd.RowError, match="a time must be a datetime; got 'noon'"):
        monitor.advance("noon")


@pytest.mark.parametrize(
    "fence",
    [
        "ST_Contains(ST_GeomFromText('POLYGON ((0 0, 100 0, 100 100, 0 100, 0 0))'), ST_Point(x, y))",
        "ST_DWithin(ST_Point(x, y), ST_Point(50, 50), 50)",
        "x BETWEEN 0 AND 100 AND y BETWEEN 0 AND 100",
        "NOT NOT ST_Within(ST_Point(x, y), ST_GeomFromText('POLYGON ((0 0, 100 0, 100 100, 0 100, 0 0))')) AND k = 1",
    ],
)
def test_a_margin_widens_geofences_too(fence):
    zones = vd.QuerySet("k bigint, x double, y double, t bigint")
    zones.add("zone", fence)
    monitor = zones.border(key="k", time="t", margin=15)
    xs = [50.0, 105.0, 99.0, 114.9, 115.1, 110.0]

    events = monitor.step({"k": [1] * 6, "x": xs, "y": [50.0] * 6, "t": list(range(6))})

    assert [(e["time"], e["event"]) for e in events.to_pylist()] == [(0, "enter"), (4, "exit")]


def test_freed_keys_give_their_memory_back(alerts):
    monitor = alerts.border(key="symbol", time="t", expire_after=10)
    for start in range(0, 20_000, 2_000):
        keys = np.arange(start, start + 2_000)
        monitor.step({"symbol": keys.astype(str), "price": np.zeros(2_000), "t": np.full(2_000, start)})

    assert monitor.n_keys == 2_000
    assert len(monitor.keys) < 10_000


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"key": "", "time": "ts"}, "key must be the name of a column of the rows; got ''"),
        ({"key": "symbol", "time": 3}, "time must be the name of a column of the rows; got 3"),
        ({"late": "wait"}, "late must be one of: 'drop', 'apply'; got 'wait'"),
        ({"null_key": "keep"}, "null_key must be one of: 'error', 'drop'; got 'keep'"),
        ({"dwell": 5}, "dwell must be a duration such as '5 minutes'; got 5"),
        (
            {"dwell": "5 parsecs"},
            "dwell must be a duration such as '5 minutes'; got '5 parsecs'; units are microseconds (us)",
        ),
        (
            {"expire_after": "0 s"},
            "expire_after must be a duration above 0, such as '5 minutes'; got '0 s'",
        ),
        ({"margin": -1}, "margin must be a number of 0 or more, or a dict of such numbers by field; got -1"),
        (
            {"margin": {"prise": 1}},
            "margin names 'prise', which is not a numeric field; these are: price; did you",
        ),
        ({"cross": "yes"}, "cross must be True or False; got 'yes'"),
    ],
)
def test_a_bad_option_is_refused(alerts, options, words):
    with pytest.raises(vd.QueryError) as caught:
        alerts.border(**{"key": "symbol", "time": "ts", **options})

    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ({"price": [1.0], "ts": [NOON]}, "the rows have no column 'symbol' for the key; they have: price, ts"),
        (
            {"symbol": ["A"], "price": [1.0], "tss": [NOON]},
            "no column 'ts' for the time; they have: price, symbol, tss; did you mean 'tss'?",
        ),
        (
            {"symbol": ["A", None], "price": [1.0, 1.0], "ts": [NOON, NOON]},
            "null_key is 'error', and the key 'symbol' is null in row 1; give every row a key, or use 'drop'",
        ),
        ({"symbol": ["A"], "price": [1.0], "ts": [None]}, "time 'ts' is missing in row 0; every row needs one"),
        ({"symbol": ["A"], "price": [1.0], "ts": ["noon"]}, "field 'ts' is timestamp in the schema but"),
        ({"symbol": ["A"], "ts": [NOON]}, "the rows lack field 'price', which queries use"),
    ],
)
def test_bad_rows_are_refused_and_change_nothing(alerts, rows, words):
    monitor = alerts.border(key="symbol", time="ts")
    monitor.step(ticks(41.0))

    with pytest.raises(vd.RowError) as caught:
        monitor.step(rows)

    assert words in str(caught.value)
    assert monitor.step(ticks(39.0, start=1)).num_rows == 1


def test_a_time_must_be_a_timestamp_or_a_number(alerts):
    rows = {"symbol": ["A"], "price": [1.0], "when": ["noon"]}

    with pytest.raises(vd.RowError, match="time 'when' is string; a time must be a timestamp or a number"):
        alerts.border(key="symbol", time="when").step(rows)
    with pytest.raises(vd.QueryError, match="key 'price' is double; a key must be a string or a whole number"):
        alerts.border(key="price", time="ts")
    with pytest.raises(vd.QueryError, match="time 'symbol' is string; a time must be a timestamp or a number"):
        alerts.border(key="symbol", time="symbol")


@pytest.mark.parametrize(
    ("far", "words"),
    [
        ([1, 2**62], "time 'when' is beyond 2^62 in row 1; a time must be less than 2^62 from 0"),
        ([-(2**63), 1], "time 'when' is beyond 2^62 in row 0; a time must be less than 2^62 from 0"),
        ([1.0, float("inf")], "time 'when' is infinite in row 1; a time must be finite"),
        ([float("-inf"), 1.0], "time 'when' is infinite in row 0; a time must be finite"),
        (
            np.array([0, 2**62], "M8[us]"),
            "time 'when' is beyond 2^62 in row 1; a time must be less than 2^62 microseconds",
        ),
    ],
)
def test_a_time_that_cannot_be_computed_with_is_refused(alerts, far, words):
    monitor = alerts.border(key="symbol", time="when", expire_after="1 s" if isinstance(far, np.ndarray) else 10)

    with pytest.raises(vd.RowError) as caught:
        monitor.step({"symbol": ["A", "B"], "price": [1.0, 1.0], "when": far})

    assert words in str(caught.value)
    assert monitor.n_keys == 0


@pytest.mark.parametrize(("first", "far"), [(1, 2**62), (1, -(2**62)), (1.0, float("inf")), (1.0, float("-inf"))])
def test_time_cannot_pass_to_where_it_cannot_be_computed_with(alerts, first, far):
    monitor = alerts.border(key="symbol", time="when", expire_after=10)
    monitor.step({"symbol": ["A"], "price": [1.0], "when": [first]})

    with pytest.raises(vd.RowError, match=r"a time must be (finite|less than 2\^62 from 0); got"):
        monitor.advance(far)
    assert monitor.advance(100)["reason"].to_pylist() == ["expired"]


@pytest.mark.parametrize("sign", [1, -1])
def test_the_farthest_times_expire_as_others_do(alerts, sign):
    monitor = alerts.border(key="symbol", time="t", expire_after=10**17, dwell=10)
    ends = sorted([sign * (2**62 - 1), -sign * (2**62 - 1)])

    events = monitor.step({"symbol": ["A", "B"], "price": [1.0, 1.0], "t": ends})

    assert [(e["time"], e["event"], e["reason"]) for e in events.to_pylist()] == [
        (ends[0] + 10, "enter", "first"),
        (ends[0] + 10**17, "exit", "expired"),
    ]


def test_rows_without_a_key_can_be_left_out_and_are_counted(alerts):
    monitor = alerts.border(key="symbol", time="ts", null_key="drop")

    events = monitor.step({"symbol": ["A", None], "price": [1.0, 1.0], "ts": [NOON, NOON]})

    assert events["key"].to_pylist() == ["A"]
    assert monitor.n_null_keys == 1


def test_a_loaded_state_continues_where_it_was_saved(alerts):
    monitor = alerts.border(key="symbol", time="ts", margin=1)
    monitor.step(ticks(39.0, 40.5))
    other = alerts.border(key="symbol", time="ts", margin=1)

    other.load(monitor.save())

    assert other.step(ticks(40.9, start=5)).num_rows == 0
    assert other.step(ticks(41.1, start=6))["event"].to_pylist() == ["exit"]


def test_a_delta_is_as_large_as_what_changed():
    queries = vd.QuerySet("k bigint, x double, t bigint")
    queries.add_boxes([1], {"x": ([0.0], [1.0])})
    monitor = queries.border(key="k", time="t")
    monitor.step({"k": np.arange(20_000), "x": np.zeros(20_000), "t": np.zeros(20_000, np.int64)})

    assert len(monitor.save()) > 400_000
    monitor.step({"k": np.arange(10), "x": np.ones(10), "t": np.ones(10, np.int64)})
    assert len(monitor.take_delta()) < 5_000


def test_the_same_set_built_again_fits_a_saved_state():
    def make():
        queries = vd.QuerySet(SCHEMA)
        queries.add("cheap", "price < 40")
        queries.add_boxes(["b"], {"price": ([1.0], [2.0])})
        return queries.border(key="symbol", time="ts")

    monitor = make()
    monitor.step(ticks(39.0))
    restarted = make()
    restarted.load(monitor.save())

    assert restarted.step(ticks(41.0, start=1))["event"].to_pylist() == ["exit"]


def test_a_state_of_another_set_is_refused(alerts):
    monitor = alerts.border(key="symbol", time="ts")
    monitor.step(ticks(39.0))
    blob = monitor.save()
    other = vd.QuerySet(SCHEMA)
    other.add("cheap", "price < 41")
    older = vd.QuerySet(SCHEMA)
    cases = [
        (other.border(key="symbol", time="ts"), blob, "the state was saved with another set of queries"),
        (older.border(key="symbol", time="ts"), blob, "the state was saved at version 1 of the queries, which are at"),
        (alerts.border(key="symbol", time="t"), blob, "the state was saved with time='ts', and here it is 't'"),
        (monitor, blob[:-5], "damaged"),
        (monitor, b"nonsense", "the bytes are not a saved border state"),
        (monitor, alerts.to_bytes(), "the bytes are a query set, or a state that an earlier Vedette saved"),
        (monitor, "text", "a saved border state is bytes; got str"),
    ]
    for loads, given, words in cases:
        with pytest.raises(vd.SnapshotError) as caught:
            loads.load(given)
        assert words in str(caught.value)
    assert monitor.n_keys == 1


def rebuilt(retains):
    """The set of the fixture, built again and then changed."""
    queries = vd.QuerySet(SCHEMA)
    if retains:
        queries.retain()
    queries.add("cheap", "price < 40")
    queries.replace("cheap", "price < 30")
    return queries.border(key="symbol", time="ts")


def test_a_set_that_changed_before_its_monitor_existed_must_have_retained(alerts):
    monitor = alerts.border(key="symbol", time="ts")
    monitor.step(ticks(35.0))
    blob = monitor.save()

    with pytest.raises(vd.SnapshotError, match=r"version 2 removed or replaced queries .* call retain\(\) on the set"):
        rebuilt(retains=False).load(blob)
    again = rebuilt(retains=True)
    again.load(blob)

    (event,) = again.step(ticks(35.0, start=1)).to_pylist()
    assert (event["event"], event["reason"]) == ("exit", "replaced")


@pytest.mark.parametrize(("option", "value"), [("dwell", "5 seconds"), ("margin", 2)])
def test_a_state_with_delayed_events_needs_a_monitor_with_the_same_option(alerts, option, value):
    monitor = alerts.border(key="symbol", time="ts", **{option: value})
    monitor.step(ticks(39.0, 41.0))

    with pytest.raises(vd.SnapshotError, match=f"saved with {option}, but the monitor has no {option}; set it"):
        alerts.border(key="symbol", time="ts").load(monitor.save())


def test_a_refused_state_leaves_the_monitor_as_it_was(alerts):
    numbers = alerts.border(key="symbol", time="t")
    numbers.step({"symbol": ["A"], "price": [1.0], "t": [1]})
    other = alerts.border(key="symbol", time="t", dwell="5 minutes")
    other.step({"symbol": ["A", "B"], "price": [1.0, 1.0], "t": [NOON, NOON]})

    with pytest.raises(vd.SnapshotError, match="times of type bigint"):
        other.load(numbers.save())

    assert other.n_keys == 2


def test_a_delta_is_not_a_state(alerts):
    monitor = alerts.border(key="symbol", time="ts")
    monitor.step(ticks(1.0))
    monitor.save()
    monitor.step(ticks(2.0, start=1))

    with pytest.raises(vd.SnapshotError, match="the bytes are a delta; load what `save` returned"):
        alerts.border(key="symbol", time="ts").load(monitor.take_delta())


def test_the_first_delta_of_a_monitor_that_was_never_saved_is_everything(alerts):
    monitor = alerts.border(key="symbol", time="ts")
    monitor.step(ticks(1.0))
    other = alerts.border(key="symbol", time="ts")

    other.apply_delta(monitor.take_delta())

    assert other.n_keys == 1


def test_whole_times_have_whole_durations(alerts):
    monitor = alerts.border(key="symbol", time="t", dwell=10.0)
    start = 1_700_000_000_000_000_001
    rows = {"symbol": ["A", "A"], "price": [1.0, 1.0], "t": [start, start + 20]}

    assert monitor.step(rows)["time"].to_pylist() == [start + 10]
    with pytest.raises(vd.QueryError, match="dwell must be a whole number above 0, in the unit of the time column"):
        alerts.border(key="symbol", time="t", dwell=2.5).step(rows)


def test_empty_batches_and_batches_without_keys_fit_any_kind_of_key(alerts):
    monitor = alerts.border(key="id", time="t", null_key="drop")
    empty = pa.table(
        {"id": pa.array([], pa.int64()), "price": pa.array([], pa.float64()), "t": pa.array([], pa.int64())}
    )

    assert monitor.step({"id": [], "price": [], "t": []}).num_rows == 0
    assert pa.types.is_int64(monitor.step(empty).schema.field("key").type.value_type)
    assert monitor.step({"id": [7], "price": [1.0], "t": [1]}).num_rows == 1
    assert monitor.step({"id": [None], "price": [1.0], "t": [2]}).num_rows == 0
    assert monitor.step({"id": [], "price": [], "t": []}).num_rows == 0
    assert monitor.step(empty).num_rows == 0
    alerts.remove_many([])


def test_keys_may_be_polars_categories(alerts):
    polars = pytest.importorskip("polars")
    rows = polars.DataFrame({"symbol": ["A", "B"], "price": [1.0, 99.0], "t": [1, 1]})
    rows = rows.with_columns(polars.col("symbol").cast(polars.Categorical))

    assert alerts.border(key="symbol", time="t").step(rows)["key"].to_pylist() == ["A"]


def test_a_pending_enter_is_dropped_with_its_forgotten_query(alerts):
    monitor = alerts.border(key="symbol", time="ts", dwell="10 seconds")
    alerts.retained_versions = 2
    monitor.step(ticks(39.0))
    alerts.remove("cheap")
    for number in range(3):
        alerts.add(f"dear {number}", "price > 100")

    assert monitor.step(ticks(39.0, start=60)).num_rows == 0


def test_a_removed_query_is_forgotten_after_so_many_versions(alerts):
    monitor = alerts.border(key="symbol", time="ts")
    alerts.retained_versions = 3
    monitor.step(ticks(39.0))
    alerts.remove("cheap")
    for number in range(3):
        alerts.add(f"dear {number}", "price > 100")

    assert monitor.step(ticks(39.0, start=1)).num_rows == 0


def test_a_region_segment_takes_less_than_sixty_bytes():
    rng = np.random.default_rng(1)
    lows = rng.uniform(0, 1_000_000, 20_000)
    queries = vd.QuerySet("k bigint, x double, t bigint")
    queries.add_boxes(np.arange(20_000), {"x": (lows, lows + 1000)})
    monitor = queries.border(key="k", time="t")
    for time in range(2):
        monitor.step({"k": np.zeros(1, np.int64), "x": np.array([5e5 + time]), "t": np.array([time])})
    axis = queries.view().parts.compiled[0].axes["x"]

    assert 0 < (queries.shared(BorderFinder).nbytes + axis.nbytes) / 20_000 <= 60
