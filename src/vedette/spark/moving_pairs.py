"""Computes the pairs at one time from the changes that a moving join emits."""

from __future__ import annotations

import datetime
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

from vedette.errors import PipelineError, QueryError, RowError
from vedette.operators.moving_join.rows import read_number
from vedette.spark.checks import find_column

_CALL = "vs.moving_pairs"


def moving_pairs(deltas: DataFrame, at: float | datetime.datetime) -> DataFrame:
    """The pairs that intersect at a time, from the changes of `vs.moving_join`: `vs.moving_pairs(changes, at=t)`.

    One row per pair, with columns `a` and `b`. The time may be in the past, or in the future as far as intervals are
    known. It is a number; if the times of updates were timestamps, it may be a datetime with a time zone, or seconds
    since 1970. On a stream of changes, the result is an aggregation, which must be written in complete mode.
    """
    if not isinstance(deltas, DataFrame):
        raise PipelineError(f"{_CALL} needs a DataFrame of changes; got {type(deltas).__name__}")
    sign, a, b, start, end = (find_column(deltas, None, name, name) for name in ("sign", "a", "b", "start", "end"))
    _check_type(sign, t.IntegralType, "an integer, 1 or -1")
    for each in (start, end):
        _check_type(each, t.DoubleType, "a double")
    time = f.lit(_read_time(at))
    changes = deltas.where((f.col(start.name) <= time) & (f.col(end.name) >= time))
    counted = changes.groupBy(f.col(a.name).alias("a"), f.col(b.name).alias("b")).agg(f.sum(sign.name).alias("n"))
    return counted.where("n > 0").select("a", "b")


def _read_time(at: Any) -> float:
    if isinstance(at, datetime.datetime):
        if at.tzinfo is None:
            raise QueryError(f"at must be a number or a datetime with a time zone; got {at!r} without one")
        return at.timestamp()
    try:
        return read_number(at, "at")
    except RowError as error:
        raise QueryError(str(error)) from None


def _check_type(column: t.StructField, wanted: type[t.DataType], described: str) -> None:
    if not isinstance(column.dataType, wanted):
        raise RowError(
            f"column {column.name!r} of the changes must be {described}; it is {column.dataType.simpleString()}; pass "
            f"{_CALL} the result of vs.moving_join"
        )
