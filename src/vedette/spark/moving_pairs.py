"""From the changes that a moving join tells to the pairs of one moment."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as f
from pyspark.sql import types as t

from vedette.errors import PipelineError, QueryError, RowError
from vedette.operators.moving_join.rows import read_number
from vedette.spark.checks import find_column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_CALL = "vs.moving_pairs"


def moving_pairs(deltas: DataFrame, at: float | datetime.datetime) -> DataFrame:
    """The pairs that intersect at a time, by what `vs.moving_join` told: `pairs = vs.moving_pairs(changes, at=t)`.

    One row per pair, with columns `a` and `b`. The time may be past, or as far ahead as intervals are known. Where the
    times of updates were timestamps, it may be one too, with its time zone; a number counts in seconds since 1970. On
    a stream of changes it is an aggregation, which is to be written in complete mode.
    """
    if not hasattr(deltas, "isStreaming"):
        raise PipelineError(f"{_CALL} takes a DataFrame of changes; got {type(deltas).__name__}")
    sign, a, b, start, end = (find_column(deltas, None, name, name) for name in ("sign", "a", "b", "start", "end"))
    _check_type(sign, t.IntegralType, "a whole number, 1 or -1")
    for each in (start, end):
        _check_type(each, t.DoubleType, "a double")
    moment = f.lit(_read_moment(at))
    told = deltas.where((f.col(start.name) <= moment) & (f.col(end.name) >= moment))
    counted = told.groupBy(f.col(a.name).alias("a"), f.col(b.name).alias("b")).agg(f.sum(sign.name).alias("n"))
    return counted.where("n > 0").select("a", "b")


def _read_moment(at: Any) -> float:
    if isinstance(at, datetime.datetime):
        if at.tzinfo is None:
            raise QueryError(f"at is a number, or a time with its time zone; got {at!r} without one")
        return at.timestamp()
    try:
        return read_number(at, "at")
    except RowError as error:
        raise QueryError(str(error)) from None


def _check_type(column: t.StructField, wanted: type[t.DataType], told: str) -> None:
    if not isinstance(column.dataType, wanted):
        raise RowError(
            f"column {column.name!r} of the changes is {told}; here it is {column.dataType.simpleString()}; give "
            f"{_CALL} what vs.moving_join told"
        )
