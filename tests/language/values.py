"""Values of expressions, here and in Spark, for tables of expressions over hostile rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from language.plain import columns_of

from vedette.data.schema import Schema
from vedette.errors import QueryError
from vedette.language.compiler import compile_texts
from vedette.language.evaluation import Evaluation

FAILED = "failed"  # a value whose evaluation failed; in Spark it stops the job
PER_JOB = 250


def our_values(text: str, schema: Schema, rows: dict[str, list[Any]], zone: str = "UTC") -> list[Any] | str:
    """The value for each row, or why the expression is refused."""
    try:
        (residual,) = compile_texts([f"({text}) IS NULL"], schema, zone).residuals
    except QueryError as error:
        return f"refused: {error.reason}"
    n = len(next(iter(rows.values())))
    columns, numbers, members = columns_of(rows, schema), np.arange(n), np.zeros(n, np.int64)
    vector = Evaluation(residual.constants, zone, columns, numbers, members, {}).of(residual.expression.args[0])
    values = vector.values.to_pylist() if isinstance(vector.values, pa.Array) else vector.values.tolist()
    found = [value if usable else None for value, usable in zip(values, vector.usable, strict=True)]
    for row in np.flatnonzero(vector.failed) if vector.failed is not None else ():
        found[row] = FAILED
    return found


def spark_values(spark: Any, texts: Sequence[str], schema: Schema, rows: dict[str, list[Any]]) -> list[list[Any] | str]:
    """The values that Spark has, or the first line of its error. An expression that fails for a row has an error."""
    from pyspark.errors import PySparkException
    from pyspark.sql.functions import expr

    arrow = schema.to_arrow()
    table = pa.table({name: pa.array(column, arrow.field(name).type) for name, column in rows.items()})
    frame = spark.createDataFrame(table, str(schema)).coalesce(1)
    found: list[list[Any] | str] = [""] * len(texts)
    accepted = []
    for place, text in enumerate(texts):
        try:
            frame.select(expr(text))
            accepted.append(place)
        except PySparkException as error:
            found[place] = "refused: " + str(error).split("\n")[0]

    def run(places: list[int]) -> None:
        try:
            result = frame.select(*(expr(texts[place]).alias(f"c{place}") for place in places)).toArrow()
        except PySparkException as error:
            if len(places) == 1:
                found[places[0]] = "refused: " + str(error).split("\n")[0]
                return
            middle = len(places) // 2
            run(places[:middle])
            run(places[middle:])
            return
        for place in places:
            found[place] = result.column(f"c{place}").to_pylist()

    for start in range(0, len(accepted), PER_JOB):
        run(accepted[start : start + PER_JOB])
    return found


def differences(
    spark: Any, texts: Sequence[str], schema: Schema, rows: dict[str, list[Any]], *, only_here: Sequence[str] = ()
) -> list[str]:
    """Expressions whose values are not Spark's. Those in `only_here` are refused here, and not in Spark."""
    found = []
    for text, theirs in zip(texts, spark_values(spark, texts, schema, rows), strict=True):
        ours = our_values(text, schema, rows)
        if isinstance(ours, str) or isinstance(theirs, str):
            stops = isinstance(theirs, str) and (isinstance(ours, str) or FAILED in ours)
            if not stops and not (text in only_here and isinstance(ours, str)):
                found.append(f"{text}: {str(ours)[:200]} here, {str(theirs)[:200]} in Spark")
        else:
            rows_ = [row for row, (a, b) in enumerate(zip(ours, theirs, strict=True)) if a != b and (a == a or b == b)]
            if rows_:
                values = {name: column[rows_[0]] for name, column in rows.items()}
                found.append(f"{text}: {ours[rows_[0]]!r} here, {theirs[rows_[0]]!r} in Spark, for {values}")
    return found
