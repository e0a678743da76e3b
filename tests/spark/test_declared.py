"""Columns that are declared with `schema=` and `streaming=`: what is refused, and that answers stay the same."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import types as t

import vedette as vd
from vedette import spark as vs
from vedette.spark.declared import IN_FLOW, Declared, refused_in_flow
from vedette.spark.shipping.query_sets import pack
from vedette.spark.workers.match import match_declared

FIELDS = "symbol string, price decimal(10,2), ts timestamp"


class Refused(AnalysisException):
    """What Spark raises in a flow."""

    def __init__(self, condition):
        super().__init__(message="refused")
        self.condition = condition

    def getCondition(self):  # noqa: N802
        return self.condition


class RowsInFlow:
    sparkSession = SimpleNamespace()  # noqa: N815

    @property
    def schema(self):
        raise Refused(IN_FLOW[0])

    isStreaming = schema  # noqa: N815


def test_a_text_is_read_without_spark():
    declared = Declared.read(FIELDS, True)

    assert declared.is_stream is True
    assert declared.schema == t.StructType(
        [
            t.StructField("symbol", t.StringType()),
            t.StructField("price", t.DecimalType(10, 2)),
            t.StructField("ts", t.TimestampType()),
        ]
    )
    assert Declared.read(declared.schema, None).schema is declared.schema


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((["price"], None), "^schema must be a StructType, or a text such as .*; got list$"),
        (("price dubble", None), "dubble"),
        (("tags array<string>", None), "^schema as a text has no arrays and structs; pass a StructType$"),
        (("o struct<a: string>", None), "^schema as a text has no arrays and structs; pass a StructType$"),
        ((None, "yes"), "^streaming must be True or False; got 'yes'$"),
    ],
)
def test_other_declarations_are_refused(arguments, message):
    with pytest.raises(vd.VedetteError, match=message):
        Declared.read(*arguments)


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (FIELDS, r"^schema must be a dict with the schema of each side: {'left': \.\.\., 'right': \.\.\.}; got str$"),
        ({"rigt": FIELDS}, "^schema has 'rigt', but the sides are: left, right; did you mean 'right'?"),
    ],
)
def test_sides_are_declared_by_their_names(schema, message):
    with pytest.raises(vd.PipelineError, match=message):
        Declared.read_sides(schema, None, ["left", "right"])

    sides = Declared.read_sides({"left": FIELDS}, False, ["left", "right"])
    assert (sides["right"], sides["left"].is_stream) == (Declared(None, False), False)


def test_what_a_flow_needs_is_named():
    rows = RowsInFlow()

    with pytest.raises(vd.PipelineError, match=r"^schema is required in a flow of a declarative pipeline, .* pass"):
        Declared().apply(rows)
    with pytest.raises(vd.PipelineError, match=r"^streaming is required in a flow .* pass streaming=True for"):
        Declared().is_streaming(rows)
    with pytest.raises(vd.PipelineError, match=r"^shards is required in a flow"), refused_in_flow("shards", "pass it"):
        raise Refused(IN_FLOW[1])
    with pytest.raises(AnalysisException), refused_in_flow("shards", "pass it"):
        raise Refused("TABLE_OR_VIEW_NOT_FOUND")


def test_a_column_of_another_type_than_declared_is_refused_by_the_worker():
    alerts = vd.QuerySet("price double")
    alerts.add("cheap", "price < 40")
    rows = pa.record_batch({"price": pa.array([39.5]), "name": pa.array(["a"])})
    bound = (vars(pack(alerts, None)), {"price": 0}, "pairs", 1 << 20)

    (answer,) = match_declared(*bound, False, {"price": "double", "name": "varchar(5)"}, rows)
    assert answer.to_pylist() == [{"price": 39.5, "name": "a", "query": "cheap"}]

    *_, report = match_declared(*bound, True, {"price": "double", "name": "string"}, rows)
    counts = json.loads(report.to_pylist()[0]["_vedette_report"])
    assert (counts["pairs"], counts["failed"]) == (1, 0)

    with pytest.raises(vd.RowError, match=r"^column 'price' is double, but schema= declares string; declare its type"):
        list(match_declared(*bound, False, {"price": "string", "name": "string"}, rows))


def test_declared_rows_have_the_same_answers(spark):
    alerts = vd.QuerySet("symbol string, price double, ts timestamp")
    alerts.add("cheap-ibm", "symbol = 'IBM' AND price < 40")
    pairs = vd.JoinQuerySet(left="symbol string, price double", right="symbol string, price double")
    pairs.add("rises", "left.symbol = right.symbol AND left.price < right.price", rows=10)
    text = "SELECT * FROM VALUES (1, 'IBM', 39.5D, 0, 'x'), (2, 'IBM', 41.5D, 1, 'y') AS t(id, symbol, price, s, more)"
    rows = spark.sql(text).selectExpr("id", "symbol", "price", "timestamp_seconds(s) AS ts", "more")
    fields = "symbol string, price double, ts timestamp"
    sides = {"left": "id bigint, symbol string, price double", "right": "id bigint, symbol string, price double"}

    (hit,) = rows.transform(vs.match(alerts, schema=fields)).collect()
    assert (hit.asDict().keys(), hit.query) == ({"symbol", "price", "ts", "query"}, "cheap-ibm")
    border = rows.transform(vs.border(alerts, "symbol", "ts", schema=fields, streaming=False))
    assert [row.event for row in border.collect()] == ["enter", "exit"]
    joined = vs.window_join(rows, rows, pairs, schema=sides, streaming=False)
    assert [tuple(row) for row in joined.collect()] == [("rises", 1, 2)]
    with pytest.raises(vd.PipelineError, match=r"^streaming is True, but the DataFrame is not a stream; omit it$"):
        rows.transform(vs.border(alerts, "symbol", "ts", schema=fields, streaming=True))
