"""Rows that an operator cannot process: they stop the stream, are dropped, or become dead letters with the reason.

Each transform says which rows are bad, as conditions that Spark evaluates. Bad rows leave before the rows are packed
for shards; the task that packs writes the dead letters, so that rows are not sent to Python twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

from vedette import __version__
from vedette.data.keyed_rows import MAX_TIME
from vedette.delivery.dead_letters import LetterPlace
from vedette.errors import PipelineError
from vedette.spark.checks import check_choice, quoted
from vedette.spark.declared import remember_columns
from vedette.spark.shipping.query_sets import worker_function

ERROR, DROP, DEAD_LETTER = POLICIES = ("error", "drop", "dead-letter")
BAD_ROWS = "bad rows"  # the end of the name of an observation
_WORKER = "vedette.spark.workers.bad_rows"
_JSON = {"ignoreNullFields": "false"}
_TEXT = t.StringType()


@dataclass(frozen=True)
class BadRows:
    """What a transform does with them."""

    policy: str
    place: LetterPlace | None
    observe: str | None

    @classmethod
    def read(cls, on_bad_row: Any, dead_letters: Any, observe: Any, operator: str) -> BadRows:
        check_choice("on_bad_row", on_bad_row, POLICIES)
        if (on_bad_row == DEAD_LETTER) != (dead_letters is not None):
            wanted = "needs dead_letters: a folder, or a registry"
            given = f"is {on_bad_row!r}, but dead_letters is given; omit it, or use 'dead-letter'"
            reason = f"is 'dead-letter', which {wanted}" if dead_letters is None else given
            raise PipelineError(reason, option="on_bad_row")
        place = None if dead_letters is None else LetterPlace.read(dead_letters, operator)
        return cls(on_bad_row, place, observe if isinstance(observe, str) else None)

    def judge(self, reasons: Mapping[str, Column], side: str = "") -> Judged | None:
        """The same with the conditions of one stream, by the reasons that letters show. None: bad rows are errors."""
        if self.policy == ERROR:
            return None
        reason = f.coalesce(*(f.when(is_bad, f.lit(text)) for text, is_bad in reasons.items()))
        return Judged(self, reason, side)


@dataclass(frozen=True)
class Judged:
    """Which rows of a stream are bad: those with a reason."""

    rules: BadRows
    reason: Column
    side: str

    def apply(self, rows: DataFrame) -> tuple[DataFrame, list[Column], dict[str, Any]]:
        """The rows to send, further columns to send, and what the worker does with them. Bad rows are counted."""
        if self.rules.observe is not None:
            name = " ".join(filter(None, (self.rules.observe, BAD_ROWS, self.side)))
            rows = rows.observe(name, f.count(self.reason).alias("bad_rows"))
        if self.rules.place is None:
            return rows.where(self.reason.isNull()), [], {}
        body = f.when(self.reason.isNotNull(), f.to_json(f.struct(*map(quoted, rows.columns)), _JSON))
        place = self.rules.place
        return rows, [self.reason, body], {"bad_rows": {"place": place, "label": f"{place.source} {self.side}"}}


def set_aside(rows: DataFrame, reason: Column, body: Column, place: LetterPlace, label: str) -> DataFrame:
    """The rows without a reason. The others become dead letters, with this body. All rows are sent to Python."""
    columns = [t.StructField(str(i), column.dataType) for i, column in enumerate(rows.schema)]
    added = [t.StructField("reason", _TEXT), t.StructField("body", _TEXT)]
    values = [f.col(quoted(each)).alias(column.name) for each, column in zip(rows.columns, columns, strict=True)]
    sent = rows.select(*values, reason.alias("reason"), body.alias("body"))
    work = worker_function(_WORKER, "keep_good", __version__, {"place": place, "label": label})
    kept = remember_columns(sent, t.StructType([*columns, *added])).mapInArrow(work, t.StructType(columns))
    return kept.toDF(*rows.columns)


def is_null(what: str, column: t.StructField) -> dict[str, Column]:
    """The condition that a column is null, by its reason."""
    return {f"{what}, column {column.name!r}, is null": f.col(quoted(column.name)).isNull()}


def is_no_time(what: str, column: t.StructField) -> dict[str, Column]:
    """The conditions that a column is not a time."""
    if isinstance(column.dataType, t.FloatType | t.DoubleType):
        return is_no_number(what, column)
    conditions = is_null(what, column)
    if isinstance(column.dataType, t.LongType):
        value = f.col(quoted(column.name))
        conditions[f"{what}, column {column.name!r}, is beyond 2^62"] = (value >= MAX_TIME) | (value <= -MAX_TIME)
    return conditions


def is_no_number(
    what: str, column: t.StructField, is_used: Column | None = None, most: float = inf
) -> dict[str, Column]:
    """The conditions that a column is null, NaN, infinite or beyond `most` in a row where it is used."""
    value = f.col(quoted(column.name)).cast("double")
    is_bad = value.isNull() | f.isnan(value) | (f.abs(value) > most) | (f.abs(value) == inf)
    limit = "a finite number" if most == inf else f"a number from {-most:g} to {most:g}"
    reason = f"{what}, column {column.name!r}, is not {limit}"
    return {reason: is_bad if is_used is None else is_bad & is_used}
