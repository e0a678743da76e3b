"""Columns of values of expressions, here and in Spark, over the same rows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from language.plain import columns_of

from vedette.data.schema import Schema, Type
from vedette.errors import QueryError
from vedette.language import compile_texts
from vedette.language.evaluation import Evaluation

_SETTINGS = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}


def our_column(text: str, schema: Schema, rows: dict[str, list[Any]], zone: str = "UTC") -> tuple[Type, list[Any]]:
    """The type of an expression and its values; null also where it fails. Raises QueryError if it is refused."""
    compiled = compile_texts([f"isnull(coalesce({text}, NULL, {text}))"], schema, zone)
    (residual,) = compiled.residuals
    node = residual.expression.args[0].args[0]
    n = len(next(iter(rows.values())))
    members = np.zeros(n, np.int64)
    vector = Evaluation(residual.constants, zone, columns_of(rows, schema), np.arange(n), members, {}).of(node)
    items = vector.values.to_pylist() if isinstance(vector.values, pa.Array) else vector.values.tolist()
    return node.type, [_plain(item, node.type) if ok else None for item, ok in zip(items, vector.usable, strict=True)]


def _plain(value: Any, type_: Type) -> Any:
    """A value as Spark returns it; dates and timestamps are numbers."""
    if type_.name == "decimal":
        return Decimal(f"{value}e-{type_.scale}")
    if type_.name == "binary":
        return value.encode("latin-1")
    return value


@contextmanager
def interpreted(spark: Any, zone: str = "UTC") -> Iterator[Any]:
    """The session without code generation: compiling hundreds of expressions takes longer than running them."""
    settings = {**_SETTINGS, "spark.sql.session.timeZone": zone}
    before = {name: spark.conf.get(name) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield spark
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


def spark_columns(
    spark: Any, texts: list[str], schema: Schema, rows: dict[str, list[Any]], zone: str = "UTC"
) -> list[tuple[str, list[Any]] | str]:
    """The type and the values of each expression in Spark, or the first line of what Spark says against it."""
    with interpreted(spark, zone):
        arrow = schema.to_arrow()
        table = pa.table({name: pa.array(column, arrow.field(name).type) for name, column in rows.items()})
        frame = spark.createDataFrame(table, str(schema)).coalesce(1)
        return _run(frame, [f"{text} AS c{place}" for place, text in enumerate(texts)])


def compare(
    spark: Any,
    pairs: list[tuple[str, str]],
    schema: Schema,
    rows: dict[str, list[Any]],
    *,
    ulps: int = 0,
    zone: str = "UTC",
) -> list[str]:
    """The expressions whose types or values differ, in words. A pair is our text and the text for Spark."""
    theirs = spark_columns(spark, [text for _, text in pairs], schema, rows, zone)
    return differences([text for text, _ in pairs], theirs, schema, rows, ulps=ulps, zone=zone)


def differences(
    texts: list[str], theirs: list[Any], schema: Schema, rows: dict[str, list[Any]], *, ulps: int = 0, zone: str = "UTC"
) -> list[str]:
    found = []
    for text, each in zip(texts, theirs, strict=True):
        try:
            type_, values = our_column(text, schema, rows, zone)
        except QueryError as error:
            if not isinstance(each, str):
                found.append(f"{text}\n   refused: {error.reason}")
            continue
        if isinstance(each, str):
            found.append(f"{text}\n   in Spark {each}")
        elif str(type_) != each[0]:
            found.append(f"{text}\n   type {type_}, in Spark {each[0]}")
        else:
            found += _differing(text, values, each[1], rows, ulps)
    return found


def _run(frame: Any, names: list[str]) -> list[Any]:
    """Type and values of the columns, or the error of each that fails. One job, or halves of it where one fails."""
    from pyspark.errors import PySparkException

    try:
        selected = frame.selectExpr(*names)
        types = [field.dataType.simpleString() for field in selected.schema]
        return list(zip(types, map(_items, selected.toArrow().columns), strict=True))
    except PySparkException as error:
        if len(names) == 1:
            return [str(error).splitlines()[0]]
        middle = len(names) // 2
        return [*_run(frame, names[:middle]), *_run(frame, names[middle:])]


def _items(column: pa.ChunkedArray) -> list[Any]:
    """The values; dates and timestamps, which Python cannot hold all, are days and microseconds."""
    if pa.types.is_date32(column.type):
        column = column.cast(pa.int32())
    elif pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    items: list[Any] = column.to_pylist()
    return items


def _differing(text: str, ours: list[Any], theirs: list[Any], rows: dict[str, list[Any]], ulps: int) -> list[str]:
    wrong = [row for row in range(len(ours)) if not _is_same(ours[row], theirs[row], ulps)]
    if not wrong:
        return []
    row = wrong[0]
    values = {name: column[row] for name, column in rows.items() if name in text}
    return [f"{text}\n   {len(wrong)} rows, such as {values}: {ours[row]!r}, in Spark {theirs[row]!r}"]


def _is_same(ours: Any, theirs: Any, ulps: int) -> bool:
    if ours is None or theirs is None:
        return ours is theirs
    if isinstance(ours, float):
        if ours == theirs:
            return math.copysign(1, ours) == math.copysign(1, theirs)
        near = ulps and abs(ours - theirs) <= ulps * math.ulp(max(abs(ours), abs(theirs)))
        return bool(near) or (ours != ours and theirs != theirs)
    return bool(ours == theirs)
