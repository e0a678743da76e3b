"""Values of expressions, here and in Spark: whole columns over hostile rows.

A value is null where ANSI mode would fail the job. Which rows fail is found with a projection of Spark for each
expression; then all expressions are columns of one query, without these rows.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from language.plain import columns_of

from vedette.data.schema import Schema
from vedette.errors import QueryError
from vedette.language import compile_texts
from vedette.language.evaluation import Evaluation

NO_CODEGEN = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
_PLAIN = {  # types as plain numbers: the same as ours
    "date": "unix_date({})",
    "timestamp": "unix_micros({})",
    "timestamp_ntz": "unix_micros({})",
    "interval day": "CAST(CAST(CAST({} AS INTERVAL SECOND) AS DECIMAL(19,6)) * 1000000 AS BIGINT)",
    "interval year": "CAST(CAST({} AS INTERVAL MONTH) AS INT)",
    "interval month": "CAST({} AS INT)",
}


def our_values(text: str, schema: Schema, rows: dict[str, list[Any]], zone: str) -> list[Any] | str:
    """The values of an expression, in their physical form, or the reason why it is refused."""
    try:
        (residual,) = compile_texts([f"({text}) <=> ({text})"], schema, zone).residuals
    except QueryError as error:
        return str(error.reason)
    n = len(next(iter(rows.values())))
    members = np.zeros(n, np.int64)
    evaluation = Evaluation(residual.constants, zone, columns_of(rows, schema), np.arange(n), members, {})
    result = evaluation.of(residual.expression.args[0])
    values = result.values.to_pylist() if isinstance(result.values, pa.Array) else result.values.tolist()
    return [value if ok else None for value, ok in zip(values, result.usable.tolist(), strict=True)]


def spark_values(
    spark: Any, texts: list[str], schema: Schema, rows: dict[str, list[Any]], zone: str
) -> list[list[Any] | str]:
    """The values of each expression in Spark, or the first line of what Spark says against it."""
    from pyspark.errors import PySparkException
    from pyspark.sql.functions import expr

    before = {name: spark.conf.get(name) for name in (*NO_CODEGEN, "spark.sql.session.timeZone")}
    for name, value in {**NO_CODEGEN, "spark.sql.session.timeZone": zone}.items():
        spark.conf.set(name, value)
    arrow = schema.to_arrow()
    table = pa.table({name: pa.array(column, arrow.field(name).type) for name, column in rows.items()})
    table = table.append_column("row_", pa.array(range(table.num_rows), pa.int32()))
    frame = spark.createDataFrame(table, f"{schema}, row_ int").coalesce(1).cache()
    found: list[list[Any] | str] = [[] for _ in texts]
    columns = {}
    try:
        stored = list(frame._jdf.queryExecution().executedPlan().executeCollect())
        for place, text in enumerate(texts):
            try:
                one = frame.selectExpr(text)
            except PySparkException as error:
                found[place] = str(error).split("\n")[0]
                continue
            type_ = one.schema[0].dataType.simpleString()
            plain = _PLAIN.get(type_, next((form for start, form in _PLAIN.items() if type_.startswith(start)), "{}"))
            failing = _failing_rows(spark, one, stored)
            if len(failing) == len(stored):
                found[place] = [None] * len(stored)
                continue
            whole = f"CASE WHEN row_ NOT IN ({', '.join(map(str, failing))}) THEN {{}} END" if failing else "{}"
            columns[place] = expr(whole.format(plain.format(text)))
        _fill(frame, list(columns.items()), found)
        return found
    finally:
        frame.unpersist()
        for name, value in before.items():
            spark.conf.set(name, value)


def _fill(frame: Any, columns: list[tuple[int, Any]], found: list[Any]) -> None:
    """The values of columns. Those of a constant that fails when a query is planned are null."""
    from pyspark.errors import PySparkException

    if not columns:
        return
    try:
        result = frame.select(*(column.alias(f"c{place}") for place, column in columns)).toArrow()
    except PySparkException:
        middle = len(columns) // 2
        if middle:
            _fill(frame, columns[:middle], found)
            _fill(frame, columns[middle:], found)
        else:
            found[columns[0][0]] = [None] * frame.count()
        return
    for place, _ in columns:
        found[place] = [_as_number(value) for value in result.column(f"c{place}").to_pylist()]


def _failing_rows(spark: Any, frame: Any, rows: list[Any]) -> list[int]:
    """The rows for which the only expression of a frame fails, evaluated row by row in Spark's own projection."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    projections = spark._jvm.org.apache.spark.sql.catalyst.expressions.UnsafeProjection
    try:
        plan = frame._jdf.queryExecution().optimizedPlan()
        projection = projections.create(plan.projectList(), plan.child().output())
    except (Py4JJavaError, PySparkException):
        return list(range(len(rows)))
    failing = []
    for place, row in enumerate(rows):
        try:
            projection.apply(row)
        except (Py4JJavaError, PySparkException):
            failing.append(place)
    return failing


def _as_number(value: Any) -> Any:
    """A value in our physical form."""
    if isinstance(value, dt.timedelta):
        return value // dt.timedelta(microseconds=1)
    return int(value.scaleb(-value.as_tuple().exponent)) if isinstance(value, Decimal) else value


def differences(
    spark: Any, texts: list[str], schema: Schema, rows: dict[str, list[Any]], zone: str, *, refusals: bool = True
) -> list[str]:
    """Each expression whose values differ from Spark's, in words. A text that only one of both refuses differs too."""
    different = []
    for text, theirs in zip(texts, spark_values(spark, texts, schema, rows, zone), strict=True):
        ours = our_values(text, schema, rows, zone)
        if isinstance(ours, str) or isinstance(theirs, str):
            if isinstance(ours, str) != isinstance(theirs, str) and (refusals or isinstance(theirs, str)):
                different.append(f"[{zone}] {text}\n   ours: {ours}\n   Spark: {theirs}"[:600])
            continue
        wrong = [row for row in range(len(ours)) if not _same(ours[row], theirs[row])]
        if wrong:
            row = wrong[0]
            shown = {name: column[row] for name, column in rows.items() if name in text}
            different.append(
                f"[{zone}] {text}\n   ours {ours[row]!r}, Spark {theirs[row]!r} for {shown} and {len(wrong) - 1} more"
            )
    return different


def _same(ours: Any, theirs: Any) -> bool:
    if ours is None or theirs is None:
        return ours is theirs
    return bool(ours == theirs or (ours != ours and theirs != theirs))
