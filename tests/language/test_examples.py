"""Conditions once answered otherwise than by Spark, or that random ones rarely reach; Spark agrees with each."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from language.plain import answers, columns_of

from vedette.data.schema import Schema
from vedette.errors import QueryError
from vedette.language import compile_texts

schema = Schema.parse("i bigint, x double, m decimal(10,2), w decimal(38,10), s string, b boolean")
ROWS: dict[str, list[Any]] = {
    "i": [None, 1, 2**53 + 1, -(2**63), 0],
    "x": [None, 2.0**63, float("nan"), -0.0, 1.005],
    "m": [None, Decimal("0.00"), Decimal("99999999.99"), Decimal("-0.01"), Decimal("1.50")],
    "w": [
        None,
        Decimal("1.0000000000"),
        Decimal("9999999999999999999999999999.9999999999"),
        Decimal("0"),
        Decimal("-1.5"),
    ],
    "s": [None, "1", "x", "", " 2 "],
    "b": [None, True, False, True, False],
}
# What it is about, the condition, its spelling in Spark where ANSI mode would fail the job.
EXAMPLES = [
    ("an integer is below every decimal beyond 64 bits, even where it is null", "i < 99999999999999999999", ""),
    ("and that holds for expressions", "length(s) < 9223372036854775808", ""),
    ("also for the least one", "i > -9223372036854775808.5", ""),
    ("but not for equality", "i <> 99999999999999999999", ""),
    ("nor for decimals", "m < 99999999999999999999", ""),
    ("between is two comparisons", "i BETWEEN -99999999999999999999 AND 1", ""),
    ("order against a long decimal is exact", "i >= 1.0000000000000000000000000001", ""),
    ("equality with a long decimal is rounded to 38 digits", "i = 1.0000000000000000000000000001", ""),
    ("a wide decimal is rounded to meet one with more places", "w = 1.00000000000000000000001", ""),
    ("a constant between two values does not hide one at the next", "m NOT IN (0.1, -0.0E+0, -1e-3, -3)", ""),
    ("isnan of null is false", "NOT isnan(x)", ""),
    ("floor of NaN is zero", "floor(if(isnan(x), x, 0e0)) = 0", ""),
    ("floor beyond 64 bits fails", "floor(x) >= 0", "CASE WHEN x < 9e18 OR isnan(x) THEN floor(x) >= 0 END"),
    ("2^63 is cast to the greatest bigint", "CAST(x AS bigint) > 5", "try_cast(x AS bigint) > 5"),
    ("one failed item does not decide a list", "x IN (1 / i, -0e0)", "x IN (try_divide(1, i), -0e0)"),
    ("round goes by the shortest decimal of a double", "round(x, 2) = 1.01", ""),
    ("an empty string is no number", "s = 1", "try_cast(s AS bigint) = 1"),
    ("nor a boolean", "s = b", "try_cast(s AS boolean) = b"),
    ("a string beside a decimal is a double", "s < m", "try_cast(s AS double) < m"),
    ("a list has the common type of its items from left to right", "i IN ('5', -9223372036854775809)", ""),
    ("so a string after a decimal makes doubles", "i IN (-9223372036854775809, '5')", ""),
    ("as in coalesce", "coalesce(i, '5', -9223372036854775809) = -9223372036854775809", ""),
    ("in either order", "coalesce(i, -9223372036854775809, '5') = -9223372036854775809", ""),
    ("minus binds tighter than everything", "-x % 2 * 3 - -x < 5", ""),
    ("and binds tighter than or", "b OR i = 1 AND NOT b", ""),
    ("a literal may touch its neighbours", "m BETWEEN'0'AND'2'AND(i IN(1,2.5))", ""),
    ("the least bigint is a literal", "i = -9223372036854775808", ""),
    ("numbers may begin or end with a point", "x > .5 AND m < 2.", ""),
    ("quotes are doubled or escaped", r"s <> 'it''s' AND s <> 'it\'s' AND s <> r'\' AND s <> ''''", ""),
    ("an escape may be any character", "s LIKE '!%%' ESCAPE '!' OR s LIKE '_'", ""),
    ("NULL may stand anywhere", "NULL OR i IN (NULL, 1) OR coalesce(NULL, b)", ""),
    ("CASE takes its first true branch", "CASE WHEN b THEN i WHEN NOT b THEN x END > 0", ""),
    ("a comparison of conditions", "(i > 0) = b OR (x > 1) <=> NULL", ""),
    ("decimals multiply into more digits", "m * m * m > 1", ""),
    ("and divide with Spark's scale", "m / 3 = 0.5 OR w / 7 < 0", ""),
    ("integers divide as doubles", "i / 2 = 0.5", ""),
    ("substring may begin before the start", "substring(s, -5, 4) = '' AND substring(s, 0, 1) = s", ""),
]


@pytest.mark.parametrize(("claim", "text", "in_spark"), EXAMPLES, ids=[claim for claim, _, _ in EXAMPLES])
def test_spark_agrees_that(spark: Any, claim: str, text: str, in_spark: str) -> None:
    from pyspark.sql.functions import expr

    arrow = schema.to_arrow()
    table = pa.table({name: pa.array(column, arrow.field(name).type) for name, column in ROWS.items()})
    frame = spark.createDataFrame(table).coalesce(1)
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    theirs = frame.select(expr(in_spark or text).alias("kept")).toArrow().column("kept").to_pylist()

    (ours,) = answers(compile_texts([text], schema), columns_of(ROWS, schema), 5)

    assert ours == {row for row, kept in enumerate(theirs) if kept is True}


@pytest.mark.parametrize(
    "text",
    [
        "b IN (TRUE, , FALSE)",
        "b IN (TRUE, )",
        "i IN (1 2)",
        "b BETWEEN TRUE FALSE",
        "i IS + NULL",
        "i ISNULL",
        "i NOT NULL",
        "b ! BETWEEN TRUE AND FALSE",
        "coalesce(, b)",
        ", i > 1",
        "i > 1) OR (b",
        "i > - DATE '2020-01-01'",
        "i > 1 AND",
        "s LIKE AND b",
        "s = 'a'i",
        "i > 1 LIMIT 5",
        "i > 1 AS j",
        "i = 1, b",
        "SELECT b",
        "b; DROP",
        "i = {1}",
        "i[0] = 1",
        "i.j = 1",
        "if(b, i) = 1",
        "abs(i, x) = 1",
        "count(*) > 1",
        "abs(DISTINCT i) > 1",
        "i = 1 COLLATE x",
        "i > ANY (1, 2)",
        "EXISTS (SELECT 1)",
        "s = 'a' 'b'",
        "x'1G' = s",
        "i = 12345678901234567890L",
        "i = 123456789012345678901234567890123456789",
        "x = 1e999",
        "i = 1e5BD",
        "s LIKE 'a\\\\b'",
        "-w < 1",
        "i = +1",
        "x > 1 IS NULL",
        "i = 1 = b",
        "i IS NULL = b",
        "i NOT IS NOT NULL",
        "i > 1 NOT b",
        "CAST(i AS decimal(5 * 1, 2)) > 1",
        "CAST(i AS decimal(s, 2)) > 1",
        "i IS NULL IS NULL",
        "i IN (1) = b",
        "b = i BETWEEN 1 AND 2",
        "b = NOT b",
        "i < x < 3",
        "x || s + 1 = s",
    ],
)
def test_unsupported_conditions_are_refused(text: str) -> None:
    with pytest.raises(QueryError) as caught:
        compile_texts([text], schema)

    assert text.split()[0][:3] in str(caught.value)
