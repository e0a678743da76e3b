"""The registry as a data source: reads, writes, refusals."""

from __future__ import annotations

import datetime

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as f

import vedette as vd
from vedette import spark as vs
from vedette.registry.read.followed import address_of
from vedette.spark.workers import registry_source

EXPIRY = datetime.datetime(2100, 1, 2, 3, 4, 5, 678901, tzinfo=datetime.UTC)
KINDS = {
    "match": ({"schema": "price double"}, {"text": "price < 1"}, {"text": "price < 2"}),
    "border": ({"schema": "price double"}, {"text": "price < 1"}, {"text": "price < 2"}),
    "window join": (
        {"left": "x double", "right": "y double", "windows": "any"},
        {"text": "left.x = right.y", "within": "5 seconds"},
        {"text": "left.x < right.y", "rows": {"left": 3, "right": 4}},
    ),
    "band join": ({}, {"low": -1.5, "high": 2.0}, {"low": None, "high": 0.0}),
    "moving join": (
        {},
        {"x_low": 0.0, "x_high": 1.0, "y_low": 0.0, "y_high": 1.0},
        {"x_low": 5.0, "x_high": 6.0, "y_low": 7.0, "y_high": 8.0},
    ),
}


@pytest.fixture
def registry(tmp_path):
    made = vd.Registry(f"sqlite:///{tmp_path / 'alerts.db'}")
    made.create("alerts", schema="symbol string, price double")
    made.add("alerts", "cheap", "price < 10", metadata={"owner": "ann"}, expires_at=EXPIRY)
    made.add("alerts", "ibm", "symbol = 'IBM'")
    made.replace("alerts", "cheap", "price < 9")
    made.remove("alerts", "ibm")
    yield made
    made.close()


@pytest.fixture
def where(registry):
    return address_of(registry)


def read(where, **options):
    """The rows that a read returns, without Spark."""
    names = registry_source.read_schema(where, options).fieldNames()
    plan = registry_source.plan_read(where, options)
    return pa.Table.from_batches(registry_source.read(where, plan, names)).to_pylist()


def write(where, rows, overwrite=False, **options):
    """Write rows of two tasks, without Spark."""
    table = pa.Table.from_pylist(rows)
    registry_source.check_columns(where, options, [(field.name, str(field.type)) for field in table.schema])
    parts = [table.slice(0, 1), table.slice(1)]
    contents = [registry_source.gather(where, part.to_batches()) for part in parts]
    registry_source.commit(where, options, overwrite, [*contents, registry_source.gather(where, [])])


def test_queries_history_and_versions_are_read(where):
    (query,) = read(where, set="alerts")
    assert {name: query[name] for name in ("id", "where", "metadata", "expires_at", "added")} == {
        "id": "cheap", "where": "price < 9", "metadata": '{"owner": "ann"}', "expires_at": EXPIRY, "added": 3
    }  # fmt: skip
    history = [(row["id"], row["where"], row["state"], row["added"], row["removed"]) for row in read(where, set="alerts", of="history")]  # fmt: skip  # noqa: E501
    assert history == [
        ("cheap", "price < 10", "replaced", 1, 3),
        ("ibm", "symbol = 'IBM'", "removed", 2, 4),
        ("cheap", "price < 9", "active", 3, None),
    ]
    versions = [(row["version"], row["n_added"], row["n_removed"]) for row in read(where, set="alerts", of="versions")]
    assert versions == [(0, 0, 0), (1, 1, 0), (2, 1, 0), (3, 1, 1), (4, 0, 1)]


def test_a_read_is_of_one_version(where, registry):
    assert [row["id"] for row in read(where, set="alerts", version="2")] == ["cheap", "ibm"]
    plan = registry_source.plan_read(where, {"set": "alerts"})
    registry.remove("alerts", "cheap")

    names = registry_source.read_schema(where, {"set": "alerts"}).fieldNames()
    (batch,) = registry_source.read(where, plan, names)

    assert batch.column("id").to_pylist() == ["cheap"]
    assert read(where, set="alerts") == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ids", [["a", "b"], [2**40, 7]])
def test_queries_of_every_kind_are_written_as_they_are_read(where, registry, kind, ids):
    options, *queries = KINDS[kind]
    for name in ("source", "copy"):
        registry.create(name, kind, **options)
    for query_id, query in zip(ids, queries, strict=True):
        registry.add("source", query_id, **query, metadata={"n": 1})

    write(where, read(where, set="source"), set="copy")

    def plain(name):
        return [
            (each.id, each.text, each.window, each.low, each.high, each.sides, each.metadata)
            for each in registry.list(name)
        ]

    assert plain("copy") == plain("source")
    assert registry.set("copy").version == 1


def test_append_adds_and_overwrite_replaces_in_one_version(where, registry):
    write(where, [{"id": "a", "where": "price < 1"}, {"id": "b", "where": "price < 2"}], set="alerts")
    assert registry.set("alerts").version == 5
    write(where, [{"ID": "a", "Where": "price < 3"}], overwrite=True, set="alerts")

    assert registry.set("alerts").version == 6
    assert {query.id: query.text for query in registry.list("alerts")} == {
        "a": "price < 3", "b": "price < 2", "cheap": "price < 9"
    }  # fmt: skip


def test_replaced_queries_keep_what_the_rows_do_not_have(where, registry):
    write(where, [{"id": "cheap", "where": "price < 3"}], overwrite=True, set="alerts")
    kept = registry.get("alerts", "cheap")
    assert (kept.text, kept.metadata, kept.expires_at) == ("price < 3", {"owner": "ann"}, EXPIRY)

    row = {"id": "cheap", "where": "price < 3", "metadata": [("owner", "bob")], "expires_at": None}
    table = pa.Table.from_pylist([row], pa.schema({
        "id": pa.string(), "where": pa.string(), "metadata": pa.map_(pa.string(), pa.string()),
        "expires_at": pa.timestamp("us", "UTC"),
    }))  # fmt: skip
    content = registry_source.gather(where, table.to_batches())
    registry_source.commit(where, {"set": "alerts"}, True, [content])

    changed = registry.get("alerts", "cheap")
    assert (changed.metadata, changed.expires_at) == ({"owner": "bob"}, None)


@pytest.mark.parametrize(
    ("rows", "overwrite", "message"),
    [
        ([{"id": "a", "where": "price <"}], False, "query 'a': "),
        ([{"id": "a", "where": None}], False, "query 'a': it has no text under 'where'"),
        ([{"id": "cheap", "where": "price < 1"}], False, "'cheap'"),
        ([{"id": "new", "where": "price < 1"}], True, "'new'"),
        ([{"id": "a", "where": "price < 1"}] * 2, False, "'a'"),
        ([{"id": 3, "where": "price < 1"}], False, "3"),
        ([{"id": None, "where": "price < 1"}], False, "an id is None; it must be a string or an integer"),
        ([{"id": "a", "where": "price < 1", "metadata": "[1]"}], False, "query 'a': its metadata is not a JSON object"),
        ([{"id": "a", "where": "price < 1", "expires_at": "soon"}], False, "query 'a': its expires_at is 'soon'"),
    ],
)
def test_a_row_that_is_refused_is_named_and_nothing_is_written(where, registry, rows, overwrite, message):
    good = {"id": "good", "where": "price < 1"}
    rows = [{**dict.fromkeys(rows[0]), **good}, *rows] if not overwrite else rows

    with pytest.raises(vd.QueryError) as raised:
        write(where, rows if rows[-1]["id"] != 3 else rows[1:], overwrite, set="alerts")
    assert message in str(raised.value)
    assert registry.set("alerts").version == 4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, 'the option set is missing; name a set of the registry: .option("set", "alerts")'),
        (
            {"set": "alerts", "verion": "1"},
            "unknown option 'verion'; options are: set, of, version; did you mean 'version'?",
        ),
        ({"set": "alerts", "of": "all"}, "of must be one of: queries, history, versions; got 'all'"),
        ({"set": "alerts", "version": "-1"}, "version must be the number of a version; got '-1'"),
    ],
)
def test_options_that_are_wrong_are_refused(where, options, message):
    with pytest.raises(vd.PipelineError) as raised:
        read(where, **options)
    assert str(raised.value) == message


def test_unknown_sets_and_versions_are_refused(where):
    with pytest.raises(vd.RegistryError, match="no set 'alrts'"):
        read(where, set="alrts")
    with pytest.raises(vd.RegistryError, match="set 'alerts' has no version 9; it is at version 4"):
        read(where, set="alerts", version="9")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (["id", "wher"], "column 'wher' is not part of a query of set 'alerts'; columns are: id, where, metadata, exp"),
        (["id"], "column 'where' is missing; a row to write to set 'alerts' needs an id and a text under 'where'"),
        (["id", "where", "ID"], "there are 2 columns 'id', ignoring case; drop all but one"),
        (["id", "where", "low"], "other values can be metadata: to_json(struct(low)) AS metadata"),
    ],
)
def test_columns_that_do_not_fit_are_refused(where, columns, message):
    with pytest.raises(vd.PipelineError) as raised:
        registry_source.check_columns(where, {"set": "alerts"}, [(name, "string") for name in columns])
    assert message in str(raised.value)


def test_a_write_takes_no_options_of_reads(where):
    with pytest.raises(vd.PipelineError, match="a write has only the option set; of and version are options of reads"):
        registry_source.check_columns(where, {"set": "alerts", "of": "history"}, [("id", "string")])


def test_a_sqlite_registry_is_refused_on_another_host(where):
    with pytest.raises(vd.PipelineError, match="the registry is a SQLite file on host elsewhere, but a Spark worker"):
        registry_source.read_schema(where | {"host": "elsewhere"}, {"set": "alerts"})


@pytest.mark.fast
def test_a_set_is_read_and_written_through_spark(spark, registry):
    vs.register(spark, registry)
    new = spark.range(1000).select(
        f.format_string("q%d", "id").alias("id"), f.format_string("price < %d", "id").alias("where")
    )

    new.repartition(3).write.format("vedette").option("set", "alerts").mode("append").save()
    assert registry.set("alerts").version == 5
    found = spark.read.format("vedette").option("set", "alerts").load()
    (replaced,) = found.where("id = 'q7'").collect()

    assert found.count() == 1001
    assert (replaced["where"], replaced["added"]) == ("price < 7", 5)
    found.where("id LIKE 'q%'").withColumn("where", f.lit("price > 1")).write.format("vedette").option(
        "set", "alerts"
    ).mode("overwrite").save()
    versions = spark.read.format("vedette").option("set", "alerts").option("of", "versions").load()
    assert versions.where("version = 6").first()["n_removed"] == 1000
    assert spark.read.format("vedette").option("set", "alerts").load().where("`where` = 'price > 1'").count() == 1000


def test_a_refused_row_is_named_in_the_error_of_spark(spark, registry):
    vs.register(spark, registry)
    rows = spark.createDataFrame([("a", "price < 1"), ("b", "prize < 1")], "id string, where string")

    with pytest.raises(PySparkException) as raised:
        rows.write.format("vedette").option("set", "alerts").mode("append").save()
    assert "query 'b': unknown field 'prize'" in str(raised.value)
    assert registry.set("alerts").version == 4


def test_history_is_read_through_spark(spark, registry):
    vs.register(spark, registry)

    history = spark.read.format("vedette").option("set", "alerts").option("of", "history").load()

    assert history.groupBy("state").count().orderBy("state").collect() == [
        ("active", 1), ("removed", 1), ("replaced", 1)
    ]  # fmt: skip
    assert history.where("id = 'cheap'").agg(f.max("expires_at")).first()[0] == EXPIRY.replace(tzinfo=None)
