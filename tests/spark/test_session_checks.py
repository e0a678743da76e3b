"""Sessions and columns that would change the meaning of predicates are refused."""

from __future__ import annotations

import datetime
import random
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql.functions import expr
from strategies import SCHEMA as PREDICATES
from strategies import Maker

import vedette as vd
from vedette import spark as vs
from vedette.data.schema import Schema
from vedette.spark.session_checks import SETTINGS

SCHEMA = "id string, s string, m decimal(10,2), n decimal(18,6), w decimal(38,10), x double, b boolean, ts timestamp"
SIDES = "x_low double, x_high double, y_low double, y_high double, vx double, vy double"

# A predicate that Spark's filter answers differently under the setting.
DIFFER = {
    "spark.sql.ansi.enabled": ("false", "b IN (TRUE, 'yes')"),
    "spark.sql.ansi.doubleQuotedIdentifiers": ("true", 's = "s"'),
    "spark.sql.parser.escapedStringLiterals": ("true", r"s = 'a\tb'"),
    "spark.sql.legacy.consecutiveStringLiterals.enabled": ("true", "s = 'it''s'"),
    "spark.sql.legacy.exponentLiteralAsDecimal.enabled": ("true", "w = 12345678901234567e0"),
    "spark.sql.legacy.literal.pickMinimumPrecision": ("false", "m / 3 = 0.3333333333333"),
    "spark.sql.decimalOperations.allowPrecisionLoss": ("false", "n * n * n > 0"),
    "spark.sql.legacy.decimal.retainFractionDigitsOnTruncate": ("true", "w > 1.0000000000000000000000000001"),
    "spark.sql.timestampType": ("TIMESTAMP_NTZ", "ts = CAST('2024-02-29 16:00:00+02:00' AS timestamp)"),
}


@pytest.fixture(scope="module")
def rows(spark):
    texts = ["it's", "a\tb", "s", "1"]
    made = spark.createDataFrame([(text, text) for text in texts], "id string, s string")
    return made.selectExpr(
        "id",
        "s",
        "CAST(1.00 AS decimal(10,2)) AS m",
        "CAST(0.001 AS decimal(18,6)) AS n",
        "CAST(12345678901234567.89 AS decimal(38,10)) AS w",
        "1e0 AS x",
        "TRUE AS b",
        "TIMESTAMP '2024-02-29 14:00:00' AS ts",
    ).cache()


@pytest.fixture
def conf(spark):
    """Changes settings, and restores them."""
    changed = {}

    def set_(name, value):
        changed.setdefault(name, spark.conf.get(name, None))
        spark.conf.set(name, value)

    yield set_
    for name, value in changed.items():
        spark.conf.unset(name) if value is None else spark.conf.set(name, value)


def keeps(rows, text):
    try:
        return sorted(row["s"] for row in rows.filter(text).collect())
    except PySparkException as error:
        return error.getCondition()


def operators(text, left, right=None):
    """Each transform with predicates, over these rows, by name."""
    alerts = vd.QuerySet(SCHEMA)
    alerts.add("q", text)
    joins = vd.JoinQuerySet(left=SCHEMA, right=SCHEMA)
    joins.add("q", f"left.s = right.s AND ({text.replace('ts', 'left.ts') if 'ts' in text else 'left.b'})", within=5.0)
    right = left if right is None else right
    times = {"left_time": "x", "right_time": "x"}
    return {
        "match": lambda: left.transform(vs.match(alerts)),
        "border": lambda: left.transform(vs.border(alerts, key="id", time="ts")),
        "window join": lambda: vs.window_join(left, right, joins, **times),
    }


@pytest.mark.parametrize("name", DIFFER)
def test_a_setting_that_changes_what_filter_keeps_is_refused_by_each_operator(rows, conf, name):
    value, text = DIFFER[name]
    made = operators(text, rows)
    for each in made.values():
        each()
    before = keeps(rows, text)

    conf(name, value)

    assert keeps(rows, text) != before, "Spark answers the same, so there is no reason to refuse"
    for operator, each in made.items():
        with pytest.raises(vd.PipelineError, match=rf"the Spark session has {name}={value}, which changes .*set it"):
            each()
        conf(name, next(setting.value for setting in SETTINGS if setting.name == name))
        assert each() is not None, operator
        conf(name, value)


def test_settings_are_checked_when_the_transform_is_applied(rows, conf):
    alerts = vd.QuerySet(SCHEMA)
    alerts.add("q", "b IN (TRUE, 'yes')")
    hits = rows.transform(vs.match(alerts))
    conf("spark.sql.ansi.enabled", "false")

    assert hits.count() == 4  # by the queries, although the session has changed
    with pytest.raises(vd.PipelineError, match=r"spark\.sql\.ansi\.enabled=false"):
        rows.transform(vs.match(alerts))


def test_a_default_collation_of_the_session_is_refused(rows, conf):
    conf("spark.sql.session.collation.default", "UNICODE_CI")

    for each in operators("b", rows).values():
        with pytest.raises(vd.PipelineError, match="changes how strings are compared; queries assume UTF8_BINARY"):
            each()


def test_a_case_sensitive_session_is_accepted(spark, rows, conf):
    conf("spark.sql.caseSensitive", "true")
    alerts = vd.QuerySet("s string")
    alerts.add("q", "S = 's'")

    assert rows.transform(vs.match(alerts)).count() == 1
    with pytest.raises(vd.RowError, match="has 2 columns named 's'; drop or rename all but one"):
        rows.selectExpr("*", "id AS S").transform(vs.match(alerts))


@pytest.mark.parametrize("collation", ["UTF8_LCASE", "UNICODE", "UNICODE_CI_AI", "de_CI"])
def test_collated_fields_are_refused_by_each_operator(rows, collation):
    collated = rows.selectExpr("id", f"s COLLATE {collation} AS s", "m", "n", "w", "x", "b", "ts")
    refusal = rf"column 's' of .*DataFrame has the collation {collation}.*collate\(`s`, 'UTF8_BINARY'\)"

    for name, each in operators("s = 'S'", collated).items():
        with pytest.raises(vd.RowError, match=refusal):
            each()
        mended = collated.selectExpr("*", "collate(`s`, 'UTF8_BINARY') AS t").drop("s").withColumnRenamed("t", "s")
        assert operators("s = 'S'", mended)[name]().count() >= 0
    with pytest.raises(vd.RowError, match="column 's' of the right DataFrame has the collation"):
        operators("s = 'S'", rows, collated)["window join"]()


def test_collated_keys_and_ids_are_refused_by_each_operator(spark, rows):
    names = rows.selectExpr("id COLLATE UTF8_LCASE AS name", "*")
    alerts = vd.QuerySet(SCHEMA)
    alerts.add("q", "x < 5")
    joins = vd.JoinQuerySet(left=SCHEMA, right=SCHEMA)
    joins.add("q", "left.x = right.x", within=5.0)
    bands = vd.BandQuerySet()
    bands.add("q", -1, 1)
    places = [f"{low} AS {name}" for name, low in zip(SIDES.replace(" double", "").split(", "), "010100", strict=True)]
    moving = names.selectExpr("name", "x AS time", *places)
    times = {"left_time": "x", "right_time": "x"}

    for call in (
        lambda: names.transform(vs.border(alerts, key="name", time="ts")),
        lambda: vs.window_join(names, rows, joins, left_id="name", **times),
        lambda: vs.band_join(rows, names, bands, left_value="x", right_id="name", right_value="x"),
        lambda: vs.moving_join(moving, moving, max_update_interval=5, a_id="name", b_id="name"),
    ):
        with pytest.raises(vd.RowError, match=r"column 'name' of .* has the collation UTF8_LCASE, but queries, keys"):
            call()


def test_collated_columns_that_no_query_uses_are_kept_with_their_collation(rows):
    alerts = vd.QuerySet(SCHEMA)
    alerts.add("q", "x < 5")

    hits = rows.selectExpr("x", "s COLLATE UTF8_LCASE AS other").transform(vs.match(alerts))

    assert hits.schema["other"].dataType.collation == "UTF8_LCASE"
    assert hits.filter("other = 'S'").count() == 1


def test_the_collation_that_a_table_declares_for_its_columns_is_seen(spark, tmp_path):
    alerts = vd.QuerySet("s string, v string")
    alerts.add("q", "s = 'A' OR v = 'A'")
    spark.sql(
        f"CREATE TABLE collated_rows (s string, v varchar(3)) USING parquet DEFAULT COLLATION UTF8_LCASE "
        f"LOCATION '{tmp_path}'"
    )
    try:
        spark.sql("INSERT INTO collated_rows VALUES ('a', 'a')")
        rows = spark.table("collated_rows")

        assert rows.filter("s = 'A'").count() == 1
        for name in ("s", "v"):
            one = vd.QuerySet(f"{name} string")
            one.add("q", f"{name} = 'A'")
            with pytest.raises(vd.RowError, match=f"column '{name}' of the DataFrame has the collation UTF8_LCASE"):
                rows.transform(vs.match(one))
    finally:
        spark.sql("DROP TABLE collated_rows")


def test_char_columns_which_spark_compares_padded_are_refused_as_fields(spark, tmp_path):
    alerts = vd.QuerySet("c string, v string, ts timestamp")
    alerts.add("q", "c = 'ab'")
    spark.sql(f"CREATE TABLE padded_rows (c char(5), v varchar(5)) USING parquet LOCATION '{tmp_path}'")
    try:
        spark.sql("INSERT INTO padded_rows VALUES ('ab', 'ab')")
        rows = spark.table("padded_rows")
        assert rows.filter("c = 'ab'").count() == 1

        with pytest.raises(vd.RowError, match=r"is char\(5\): Spark ignores its trailing spaces .*rtrim\(`c`\)"):
            rows.transform(vs.match(alerts))
        assert rows.selectExpr("rtrim(`c`) AS c").transform(vs.match(alerts)).count() == 1
        alerts.replace("q", "v = 'ab'")
        assert rows.transform(vs.match(alerts)).count() == 1
    finally:
        spark.sql("DROP TABLE padded_rows")


def test_a_char_column_may_be_a_key(spark, tmp_path):
    alerts = vd.QuerySet("x double, ts timestamp")
    alerts.add("q", "x < 5")
    spark.sql(f"CREATE TABLE keyed_rows (k char(3), x double, ts timestamp) USING parquet LOCATION '{tmp_path}'")
    try:
        spark.sql("INSERT INTO keyed_rows VALUES ('ab', 1.0, TIMESTAMP '2024-01-01 00:00:00')")

        events = spark.table("keyed_rows").transform(vs.border(alerts, key="k", time="ts")).collect()

        assert [(event["key"], event["time"]) for event in events] == [("ab ", datetime.datetime(2024, 1, 1))]
    finally:
        spark.sql("DROP TABLE keyed_rows")


# Settings with these names define how texts are parsed and typed.
READING = ("spark.sql.ansi.", "spark.sql.legacy.", "spark.sql.parser.", "spark.sql.decimalOperations.")


def other_settings(spark):
    """Other settings of Spark for parsing texts, with a value that is not the default."""
    known = getattr(getattr(spark._jvm, "org.apache.spark.sql.internal.SQLConf$"), "MODULE$").getConfigEntries()
    refused, entries = {setting.name for setting in SETTINGS}, known.iterator()
    while entries.hasNext():
        entry = entries.next()
        name, default = entry.key(), entry.defaultValueString()
        if name.startswith(READING) and name not in refused and default in ("true", "false", "<undefined>"):
            yield name, "false" if default == "true" else "true"


@pytest.mark.timeout(1800)
def test_no_other_setting_for_reading_texts_changes_what_random_predicates_keep(spark, conf):
    """A new Spark may add one, which then belongs into the table."""
    conf("spark.sql.codegen.wholeStage", "false")
    conf("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    maker = Maker(random.Random(20240229))
    arrow = Schema.parse(PREDICATES).to_arrow()
    rows = {name: pa.array(column, arrow.field(name).type) for name, column in maker.rows(25).items()}
    frame = spark.createDataFrame(pa.table(rows)).coalesce(1)
    texts = [text for text in (maker.predicate(1).spark for _ in range(60)) if isinstance(kept(frame, [text]), list)]
    before = kept(frame, texts)

    assert len(texts) > 40
    others = [each for each in other_settings(spark) if spark.conf.isModifiable(each[0])]
    for name, value in others:
        conf(name, value)
    after = kept(frame, texts)

    assert len(others) > 40
    assert after == before


def kept(frame, texts):
    """The result of each text for each row, or Spark's error."""
    try:
        return frame.select(*(expr(text).alias(f"p{place}") for place, text in enumerate(texts))).toArrow().to_pylist()
    except PySparkException as error:
        return error.getCondition()


def test_the_page_lists_each_setting_that_is_refused():
    page = (Path(__file__).parents[2] / "docs" / "spark.md").read_text()

    for setting in SETTINGS:
        assert f"| `{setting.name}` | `{setting.value}`" in page
    assert set(DIFFER) == {setting.name for setting in SETTINGS} - {"spark.sql.session.collation.default"}
