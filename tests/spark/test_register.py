"""Query sets of a registry as functions of SQL: batch, stream, versions, refusals."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as f
from pyspark.sql import types as t
from spark.streams import read_stream, run_stream

import vedette as vd
from vedette import spark as vs

SCHEMA = "symbol string, price double, volume bigint, total decimal(12,2), ts timestamp, day date, ok boolean"
TEXTS = {
    "cheap-ibm": "symbol = 'IBM' AND price < 40",
    "block": "volume >= 1000",
    "late": "ts >= TIMESTAMP '2026-03-02 15:00:00'",
    "large": "total > 10.25 OR day < DATE '2026-01-01'",
    "unknown": "price IS NULL AND ok",
    "failing": "10 / volume >= 1",
}


@pytest.fixture
def registry(tmp_path):
    made = vd.Registry(f"sqlite:///{tmp_path / 'alerts.db'}")
    made.create("alerts", schema=SCHEMA)
    made.add_many("alerts", list(TEXTS), list(TEXTS.values()))
    yield made
    made.close()


@pytest.fixture(scope="module")
def ticks(spark):
    rows = [
        (1, "IBM", 39.5, 10, "10.30", "2026-03-02 14:00:00", "2026-03-02", True),
        (2, "IBM", 40.0, 1000, "10.20", "2026-03-02 15:00:00", "2025-12-31", False),
        (3, "SAP", 9.99, 0, None, "2026-03-02 15:00:01", None, None),
        (4, None, None, None, None, None, None, True),
        (5, "SAP", float("nan"), 2**60 + 1, "-1.0", "2026-03-02 14:59:59", "2026-01-01", None),
    ]
    made = spark.createDataFrame(
        rows, "id int, symbol string, price double, VOLUME bigint, total string, ts string, day string, ok boolean"
    )
    types = {"total": "decimal(5,1)", "ts": "timestamp", "day": "date"}
    made = made.withColumns({name: f.col(name).cast(type_) for name, type_ in types.items()})
    made.repartition(3).createOrReplaceTempView("ticks")
    return spark.table("ticks")


def pairs_by_filter(ticks):
    """The rows that Spark's own filter keeps, per query."""
    texts = TEXTS | {"failing": "try_divide(10, volume) >= 1"}
    return {
        (row["symbol"], row["VOLUME"], name) for name, text in texts.items() for row in ticks.filter(text).collect()
    }


@pytest.mark.fast
def test_both_functions_find_what_filter_keeps(spark, ticks, registry):
    functions = vs.register(spark, registry)

    pairs = spark.sql("SELECT * FROM vedette_match_alerts(TABLE(ticks))")
    lists = spark.sql("SELECT *, vedette_queries('alerts', struct(*)) AS queries FROM ticks")

    assert functions == ["vedette_match_alerts", "vedette_queries"]
    assert pairs.columns == ["symbol", "price", "volume", "total", "ts", "day", "ok", "query", "version"]
    found = [(row["symbol"], row["volume"], row["query"]) for row in pairs.collect()]
    assert sorted(found, key=str) == sorted(pairs_by_filter(ticks), key=str)
    assert {row["version"] for row in pairs.collect()} == {1}
    listed = [(row["symbol"], row["VOLUME"], query) for row in lists.collect() for query in row["queries"]]
    assert sorted(listed, key=str) == sorted(pairs_by_filter(ticks), key=str)
    assert lists.count() == ticks.count()


def test_columns_have_the_types_of_the_set_and_values_of_the_row(spark, ticks, registry):
    vs.register(spark, registry)

    hits = spark.sql("SELECT * FROM vedette_match_alerts(TABLE(ticks))")

    fields = [t.LongType(), t.DecimalType(12, 2), t.TimestampType(), t.DateType(), t.BooleanType()]
    assert [field.dataType for field in hits.schema.fields] == [
        *[t.StringType(), t.DoubleType()], *fields, *[t.StringType(), t.LongType()]
    ]  # fmt: skip
    names = ["symbol", "price", "volume", "total", "ts", "day", "ok"]
    kept, given = hits.select(*names).distinct(), ticks.select(*names).distinct()
    assert kept.exceptAll(given).count() == 0


def test_each_query_sees_the_current_version_and_a_column_says_which(spark, ticks, registry):
    vs.register(spark, registry)
    select = "SELECT DISTINCT query, version FROM vedette_match_alerts(TABLE(ticks))"
    counted = "SELECT count(*) FROM ticks WHERE array_contains(vedette_queries('alerts', struct(*)), 'all')"

    before = {tuple(row) for row in spark.sql(select).collect()}
    assert spark.sql(counted).first()[0] == 0
    registry.add("alerts", "all", "TRUE")
    registry.remove("alerts", "block")
    after = {tuple(row) for row in spark.sql(select).collect()}

    assert before == {(name, 1) for name in TEXTS}
    assert after == {(name, 3) for name in [*TEXTS, "all"] if name != "block"}
    assert spark.sql(counted).first()[0] == ticks.count()


def test_all_tasks_of_a_query_see_one_version_even_if_the_set_changes_meanwhile(spark, registry):
    registry.create("numbers", schema="n bigint")
    registry.add("numbers", "all", "TRUE")
    vs.register(spark, registry)
    url = str(registry.database.url)

    @f.udf("bigint")
    def change(number):
        import vedette as vd

        vd.Registry(url).replace("numbers", "all", "TRUE", metadata={"by": number})
        return number

    spark.range(4).repartition(4).select(change("id").alias("n")).createOrReplaceTempView("changing")

    hits = spark.sql("SELECT version FROM vedette_match_numbers(TABLE(changing))").collect()

    assert len(hits) == 4
    assert len({row["version"] for row in hits}) == 1
    assert registry.set("numbers").version >= 5


def test_a_query_that_spark_runs_as_an_rdd_sees_one_version(spark, ticks, registry):
    vs.register(spark, registry)

    hits = spark.sql("SELECT * FROM vedette_match_alerts(TABLE(ticks))").rdd.map(lambda row: row["version"]).collect()

    assert set(hits) == {1}


def test_a_stream_sees_one_version_per_micro_batch(spark, ticks, registry, tmp_path):
    vs.register(spark, registry)
    rows = ticks.drop("id").coalesce(1)
    select = "SELECT query, version FROM vedette_match_alerts(TABLE(streamed))"

    rows.write.parquet(str(tmp_path / "rows"))
    read_stream(spark, tmp_path / "rows").createOrReplaceTempView("streamed")
    first = run_stream(spark, spark.sql(select), tmp_path)
    assert {row["version"] for row in first.collect()} == {1}
    registry.replace("alerts", "block", "volume < 0")
    rows.write.mode("append").parquet(str(tmp_path / "rows"))
    second = run_stream(spark, spark.sql(select), tmp_path)

    n_pairs = len(pairs_by_filter(ticks))
    assert second.where("version = 1").count() == n_pairs
    assert second.where("version = 2").count() == n_pairs - 2
    assert second.where("version = 2 AND query = 'block'").count() == 0


def test_the_array_of_ids_works_on_a_stream(spark, ticks, registry, tmp_path):
    vs.register(spark, registry)
    ticks.coalesce(1).write.parquet(str(tmp_path / "rows"))
    stream = read_stream(spark, tmp_path / "rows")

    answers = stream.selectExpr("id", "vedette_queries('alerts', struct(*)) AS queries")

    found = run_stream(spark, answers, tmp_path).collect()
    assert sum(len(row["queries"]) for row in found) == len(pairs_by_filter(ticks))


def test_integer_ids_are_bigint_in_pairs_and_strings_in_arrays(spark, ticks, registry):
    registry.create("numbers", schema="price double")
    registry.add("numbers", 2**40, "price < 10")
    vs.register(spark, registry)

    (hit,) = spark.sql("SELECT * FROM vedette_match_numbers(TABLE(ticks))").collect()
    lists = spark.sql("SELECT vedette_queries('numbers', struct(price)) FROM ticks WHERE price = 9.99").first()

    assert (hit["price"], hit["query"], hit["version"]) == (9.99, 2**40, 1)
    assert lists[0] == [str(2**40)]


def test_a_set_can_have_another_name_in_sql_and_a_fixed_version(spark, ticks, registry):
    registry.create("price-alerts", schema="price double")
    registry.add("price-alerts", "low", "price < 10")
    registry.replace("price-alerts", "low", "price < 0")
    sets = {"prices": "price-alerts", "first": registry.follow("price-alerts", version=1)}

    assert vs.register(spark, registry, sets) == ["vedette_match_prices", "vedette_match_first", "vedette_queries"]

    assert spark.sql("SELECT * FROM vedette_match_prices(TABLE(ticks))").collect() == []
    hits = spark.sql("SELECT * FROM vedette_match_first(TABLE(ticks))").collect()
    assert [tuple(row) for row in hits] == [(9.99, "low", 1)]
    rows = "(SELECT CASE WHEN id < 4 THEN 'prices' ELSE 'first' END AS which, CAST(id AS double) AS price FROM ticks)"
    both = spark.sql(f"SELECT price, vedette_queries(which, struct(price)) FROM {rows} ORDER BY price").collect()
    assert [tuple(row) for row in both] == [(1.0, []), (2.0, []), (3.0, []), (4.0, ["low"]), (5.0, ["low"])]


def test_sets_of_other_kinds_are_left_out_or_refused(spark, registry):
    registry.create("bands", kind="band join")

    assert vs.register(spark, registry) == ["vedette_match_alerts", "vedette_queries"]
    with pytest.raises(vd.PipelineError, match=r"vs\.register follows sets of kind match or border; set 'bands' is of"):
        vs.register(spark, registry, ["bands"])


def test_names_that_are_not_identifiers_are_refused(spark, registry):
    registry.create("price alerts", schema="price double")

    with pytest.raises(vd.PipelineError, match=r"'price alerts' cannot be part .* sets=\{'another_name': 'price al"):
        vs.register(spark, registry)


def test_two_sets_with_one_name_in_sql_are_refused(spark, registry):
    registry.create("Alerts", schema="price double")

    with pytest.raises(vd.PipelineError, match="'Alerts' and 'alerts' would both be vedette_match_alerts: SQL ignores"):
        vs.register(spark, registry)


@pytest.mark.parametrize(
    ("sets", "message"),
    [
        (["alrts"], "the registry has no set 'alrts'; it has: alerts; did you mean 'alerts'?"),
        ([3], "the registry has no set 3"),
        ("alerts", "sets must be names of sets, as a list or a dict; got 'alerts'"),
    ],
)
def test_unknown_sets_are_refused(spark, registry, sets, message):
    with pytest.raises(vd.PipelineError, match=message.replace("?", r"\?")):
        vs.register(spark, registry, sets)


def test_a_field_with_the_name_of_an_added_column_is_refused(spark, registry):
    registry.create("texts", schema="Query string, n bigint")

    with pytest.raises(
        vd.PipelineError, match="set 'texts' has a field 'Query', and vedette_match_texts adds a column"
    ):
        vs.register(spark, registry)


def test_a_session_in_another_time_zone_is_refused(spark, registry):
    registry.create("berlin", schema="price double", time_zone="Europe/Berlin")

    with pytest.raises(vd.PipelineError, match=r"set 'berlin': the Spark session's time zone .* or pass sets= without"):
        vs.register(spark, registry)


def test_something_else_than_a_registry_is_refused(spark):
    with pytest.raises(vd.PipelineError, match=r"vs\.register needs a vd\.Registry; got str"):
        vs.register(spark, "sqlite:///alerts.db")


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("SELECT * FROM vedette_match_alerts(TABLE(SELECT 1 AS price))", "the table has no column 'symbol'"),
        ("SELECT * FROM vedette_match_alerts(1)", "must be a table: vedette_match_alerts(TABLE(ticks))"),
        ("SELECT vedette_queries('alrts', struct(*)) FROM ticks", "did you mean 'alerts'"),
        ("SELECT vedette_queries(NULL, struct(*)) FROM ticks", "unknown set None"),
        ("SELECT vedette_queries('alerts', price) FROM ticks", "must be a struct, such as struct"),
        (
            "SELECT vedette_queries('alerts', struct(id AS symbol)) FROM ticks",
            "'symbol' is string in the query set but",
        ),
    ],
)
def test_calls_that_do_not_fit_say_why(spark, ticks, registry, statement, message):
    vs.register(spark, registry)

    with pytest.raises(PySparkException) as raised:
        spark.sql(statement).collect()
    assert message in str(raised.value)


def test_a_set_that_was_altered_needs_to_be_registered_again(spark, ticks, registry):
    vs.register(spark, registry)
    registry.alter("alerts", SCHEMA.replace("ok boolean", "ok boolean, id bigint"))
    select = "SELECT * FROM vedette_match_alerts(TABLE(ticks))"

    with pytest.raises(PySparkException, match=r"or call vs\.register again"):
        spark.sql(select).collect()
    vs.register(spark, registry)
    assert spark.sql(select).count() == len(pairs_by_filter(ticks))
