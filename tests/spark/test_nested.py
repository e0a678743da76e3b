"""Fields of arrays and structs on Spark: the same answers as in one process."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from data.test_nested import EXPECTED, FIELDS, ROWS, query_set

import vedette as vd
import vedette.spark as vs
from vedette.data.schema import Schema
from vedette.errors import RowError

pytestmark = pytest.mark.fast


def frame(spark: Any) -> Any:
    return spark.createDataFrame(pa.Table.from_pylist(ROWS, schema=Schema.parse(FIELDS).to_arrow()))


def test_nested_fields_are_matched_on_spark(spark: Any) -> None:
    found = frame(spark).transform(vs.match(query_set(), output="list")).collect()
    answers = {(row["k"], row["t"]): set(row["queries"]) for row in found}
    assert answers == {(row["k"], row["t"]): expected for row, expected in zip(ROWS, EXPECTED, strict=True)}


def test_nested_fields_are_followed_on_spark(spark: Any) -> None:
    queries = query_set()
    monitor = queries.border(key="k", time="t")
    expected = monitor.step(pa.Table.from_pylist(ROWS)).to_pylist()
    found = frame(spark).transform(vs.border(queries, key="k", time="t")).collect()
    names = ("key", "time", "query", "event")
    assert sorted(tuple(row[name] for name in names) for row in found) == sorted(
        tuple(row[name] for name in names) for row in expected
    )


def test_nested_fields_of_two_streams_are_joined_on_spark(spark: Any) -> None:
    joins = vd.JoinQuerySet(left=FIELDS, right="k bigint, t bigint, n bigint, tags array<string>")
    joins.add("both", "left.o.a = right.n AND arrays_overlap(left.tags, right.tags)", within=10)
    left = frame(spark).filter("k = 4 OR t = 0")
    right = spark.createDataFrame(
        [(8, 2, 4, ["c", "a"]), (9, 0, 1, ["b"])], "k long, t long, n long, tags array<string>"
    )
    joined = vs.window_join(left, right, joins, left_time="t", right_time="t", left_id="k", right_id="k")
    assert {(row["left"], row["right"]) for row in joined.collect()} == {(4, 8), (1, 9)}


def test_a_column_of_another_form_is_refused_before_anything_runs(spark: Any) -> None:
    rows = frame(spark)
    with pytest.raises(RowError, match=r"no single part 'o\.a'; o is int"):
        rows.withColumn("o", rows.k.cast("int")).transform(vs.match(query_set()))
    with pytest.raises(RowError, match=r"'tags'"):
        rows.withColumn("tags", rows.k).transform(vs.match(query_set()))
