"""`on_bad_row`: rows that an operator cannot process stop it, are dropped and counted, or become dead letters."""

from __future__ import annotations

import json
import math

import pytest
from pyspark.errors import PySparkException

import vedette as vd
from vedette import spark as vs
from vedette.delivery.dead_letters import open_letters
from vedette.errors import PipelineError

NAN, INF = math.nan, math.inf


def reasons_of(folder):
    """The rows that were set aside, with the reason of each, in any order."""
    return sorted(
        (json.loads(each.body)["n"], each.reason, each.kind, each.source) for each in open_letters(folder).read()
    )


def border(spark):
    """Rows of a border monitor, what it does with them, the number of good ones, and why the others are bad."""
    alerts = vd.QuerySet("x double")
    alerts.add("low", "x < 5")
    good = [(i, f"k{i}", float(i), NAN if i == 1 else 3.0) for i in range(4)]  # NaN is a value like others
    bad = {
        (10, None, 1.0, 3.0): "the key, column 'key', is null",
        (11, "k", None, 3.0): "the time, column 't', is not a finite number",
        (12, "k", NAN, 3.0): "the time, column 't', is not a finite number",
        (13, None, None, None): "the key, column 'key', is null",
    }
    rows = spark.createDataFrame([*good, *bad], "n int, key string, t double, x double")
    return (lambda **options: rows.transform(vs.border(alerts, key="key", time="t", **options))), 3, bad


def window_join(spark):
    pairs = vd.JoinQuerySet(left="x bigint, t bigint", right="x bigint, t bigint")
    pairs.add("same", "left.x = right.x", within=5)
    good = [(i, f"i{i}", i, 7) for i in range(3)]
    bad = {
        (10, None, 1, 7): "the id, column 'id', is null",
        (11, "i", None, 7): "the time, column 't', is null",
        (12, "i", -(2**63), 7): "the time, column 't', is beyond 2^62",
    }
    schema = "n int, id string, t bigint, x bigint"
    left, right = spark.createDataFrame([*good, *bad], schema), spark.createDataFrame([good[0]], schema)
    times = {"left_time": "t", "right_time": "t"}
    return (lambda **options: vs.window_join(left, right, pairs, **times, **options)), 3, bad


def band_join(spark):
    bands = vd.BandQuerySet()
    bands.add("near", -5.0, 5.0)
    good = [(i, f"i{i}", float(i), "insert") for i in range(3)]
    bad = {
        (10, None, 1.0, "insert"): "the id, column 'id', is null",
        (11, "i", None, "insert"): "the value, column 'value', is not a finite number",
        (12, "i", NAN, "insert"): "the value, column 'value', is not a finite number",
        (13, "i", -INF, "insert"): "the value, column 'value', is not a finite number",
        (14, "i", 1.0, "upsert"): "column 'op' is neither 'insert' nor 'delete'",
        (15, "i", 1.0, None): "column 'op' is neither 'insert' nor 'delete'",
    }
    schema = "n int, id string, value double, op string"
    left = spark.createDataFrame([*good, *bad, (5, "i9", None, "delete")], schema)
    right = spark.createDataFrame([(0, "r", 1.0, "insert")], schema)
    return (lambda **options: vs.band_join(left, right, bands, op="op", **options)), 3, bad


def moving_join(spark):
    good = [(i, f"i{i}", 0.0, 0.0, 1.0, False) for i in range(3)]
    bad = {
        (10, None, 0.0, 0.0, 1.0, False): "the id, column 'id', is null",
        (11, "i", NAN, 0.0, 1.0, False): "the time, column 'time', is not a number from -1e+100 to 1e+100",
        (12, "i", 0.0, NAN, 1.0, False): "x_low, column 'x_low', is not a number from -1e+100 to 1e+100",
        (13, "i", 0.0, 0.0, 1e300, None): "x_high, column 'x_high', is not a number from -1e+100 to 1e+100",
        (14, "i", 0.0, 2.0, 1.0, False): "x_low is above x_high",
    }
    schema = "n int, id string, time double, x_low double, x_high double, removed boolean"
    more = ("0.0D AS y", "0.0D AS vx", "0.0D AS vy")
    a = spark.createDataFrame([*good, *bad, (5, "i9", 0.0, NAN, None, True)], schema).selectExpr("*", *more)
    b = spark.createDataFrame([(0, "b", 0.0, 0.5, 0.5, False)], schema).selectExpr("*", *more)
    return (lambda **options: vs.moving_join(a, b, max_update_interval=60, **options)), 3, bad


@pytest.mark.parametrize("case", [border, window_join, band_join, moving_join])
def test_bad_rows_stop_it_or_are_dropped_or_become_dead_letters(spark, tmp_path, case):
    join, n_answers, bad = case(spark)
    expected = sorted((row[0], reason, "row", case.__name__.replace("_", " ")) for row, reason in bad.items())

    with pytest.raises(PySparkException):
        join().collect()
    assert len(join(on_bad_row="drop").collect()) == n_answers
    letters = join(on_bad_row="dead-letter", dead_letters=tmp_path / "letters", observe="counted").collect()
    assert len(letters) == n_answers
    assert reasons_of(tmp_path / "letters") == expected


@pytest.mark.fast
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"on_bad_row": "skip"}, "on_bad_row must be one of: 'error', 'drop', 'dead-letter'; got 'skip'"),
        (
            {"on_bad_row": "dead-letter"},
            "on_bad_row is 'dead-letter', which needs dead_letters: a folder, or a registry",
        ),
        ({"dead_letters": "x"}, "on_bad_row is 'error', but dead_letters is given; omit it, or use 'dead-letter'"),
    ],
)
def test_an_invalid_option_is_refused_with_its_name(options, message):
    with pytest.raises(PipelineError, match=message):
        vs.border(vd.QuerySet("x double"), key="k", time="t", **options)
