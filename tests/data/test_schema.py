from __future__ import annotations

import pyarrow as pa
import pytest

from vedette.data.schema import Field, Schema, Type, check_time_zone
from vedette.errors import SchemaError


def test_a_schema_reads_what_spark_writes():
    schema = Schema.parse(
        "symbol string, price DOUBLE, `odd name` decimal(10, 2), n: long, m:bigint, d date,ts timestamp, up boolean"
    )

    assert [str(field.type) for field in schema] == [
        "string",
        "double",
        "decimal(10,2)",
        "bigint",
        "bigint",
        "date",
        "timestamp",
        "boolean",
    ]
    assert schema.find("ODD NAME") == Field("odd name", Type("decimal", 10, 2))
    assert Schema.parse(str(schema)) == schema


def test_a_schema_is_an_arrow_schema():
    arrow = Schema.parse("x double, ts timestamp, d decimal(5, 1)").to_arrow()

    assert arrow.field("ts").type == pa.timestamp("us", tz="UTC")
    assert arrow.field("d").type == pa.decimal128(5, 1)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "at least one field"),
        ("x", "cannot read the schema at 'x'"),
        ("x double,", "ends in a comma"),
        ("x double y double", "expected a comma"),
        ("x double, X string", "is in the schema twice"),
        ("x doubel", "did you mean 'double'?"),
        ("x intt", "did you mean 'int'"),
        ("x floot", "did you mean 'float'"),
        ("x double(3)", "only decimal takes a precision"),
        ("x decimal(40, 2)", "out of range"),
        (f"x decimal({'9' * 5000})", "out of range"),
        (f"x decimal(10, {'1' * 5000})", "out of range"),
        ({"x": "double"}, "a schema must be a text such as 'symbol string, price double'; got dict"),
    ],
)
def test_the_error_of_an_invalid_schema_says_what_would_work(text, words):
    with pytest.raises(SchemaError, match=words.replace("(", r"\(").replace("?", r"\?")):
        Schema.parse(text)


def test_an_unknown_time_zone_is_refused():
    assert check_time_zone("Europe/Berlin") == "Europe/Berlin"
    for name in ("Mars/Olympus", 5):
        with pytest.raises(SchemaError, match=f"unknown time zone {name!r}"):
            check_time_zone(name)
