"""Counts that workers make, as observed metrics of Spark.

They are in progress reports, in `StreamingQueryListener` and in `Observation`, on clusters and through Connect. Workers
cannot report numbers to Spark in another way without a SparkContext. So with `observe=`, a task appends one row to its
answers, a *report*: a text in one more column, which is null in all other rows. The plan of the driver sums the reports
and removes them, with the column.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as f
from pyspark.sql import types as t

from vedette.errors import PipelineError
from vedette.spark.checks import quoted
from vedette.spark.workers.reports import REPORT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_OF_SHARDS = ("shard_steps", "full_loads")
# What each operator counts. Worker modules have functions that return these numbers.
COUNTED = {
    "match": ("pairs", "failed"),
    "border": ("events", "late", "null_keys", "failed", "held_back", "state_rows", *_OF_SHARDS),
    "window join": ("pairs", "late", "failed", "state_rows", *_OF_SHARDS),
    "band join": ("changes", "unknown_ids", "state_rows", *_OF_SHARDS),
    "moving join": ("changes", "late", "state_rows", *_OF_SHARDS),
    "webhook": ("delivered", "dead_letters", "requests", "retries"),
}


def check_observe(observe: Any) -> None:
    """Raise PipelineError unless this is a name, an Observation, or None."""
    is_name = isinstance(observe, str) and observe != ""
    if observe is not None and not is_name and type(observe).__name__ != "Observation":
        raise PipelineError(f"must be a name or an Observation of pyspark; got {observe!r}", option="observe")


def with_report(schema: t.StructType, observe: Any) -> t.StructType:
    """The columns of answers, with the column of reports if they are observed."""
    return schema if observe is None else t.StructType([*schema.fields, t.StructField(REPORT, t.StringType())])


def observed(answers: DataFrame, columns: Sequence[str], observe: Any, operator: str) -> DataFrame:
    """The answers with these columns and without reports, whose sums Spark observes under that name."""
    if observe is None:
        return answers
    report = f.col(REPORT)
    sums = [f.sum(f.get_json_object(report, f"$.{name}").cast("bigint")).alias(name) for name in COUNTED[operator]]
    version = f.max(f.get_json_object(report, "$.version").cast("bigint")).alias("version")
    warnings = f.concat_ws("\n", f.collect_set(f.get_json_object(report, "$.warnings"))).alias("warnings")
    hits = f.concat_ws("\n", f.collect_set(f.get_json_object(report, "$.hits"))).alias("hits")
    return answers.observe(observe, *sums, version, warnings, hits).where(report.isNull()).select(*map(quoted, columns))
