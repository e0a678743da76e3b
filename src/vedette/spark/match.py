"""Matching inside Spark: a transform that finds the queries that each row of a batch or stream matches.

It is one `mapInArrow`: all columns of a row go to Python and back unchanged, with the answer added.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

from pyspark.sql import DataFrame
from pyspark.sql.types import ArrayType, StructField, StructType

from vedette.errors import PipelineError
from vedette.settings import settings
from vedette.spark.checks import check_free, find_columns
from vedette.spark.observation import check_observe, observed, with_report
from vedette.spark.session_checks import check_session
from vedette.spark.shipping.query_sets import worker_function
from vedette.spark.shipping.query_source import QuerySource

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import Observation

    from vedette.queries.query_set import QuerySet
    from vedette.registry.read.followed import Followed

_WORKER = "vedette.spark.workers.match"
_ADDED = {"pairs": "query", "list": "queries"}


def match(
    queries: QuerySet | Followed,
    output: Literal["pairs", "list"] = "pairs",
    *,
    snapshot_dir: str | Path | None = None,
    observe: str | Observation | None = None,
) -> Callable[[DataFrame], DataFrame]:
    """A transform that matches each row with the queries: `hits = ticks.transform(vs.match(alerts))`.

    "pairs" returns one row per row and matching query, with the query's id in column `query`. "list" returns one row
    per row, with the matching ids in a list column `queries`, which may be empty. Both keep all columns of the row.

    The set is read when the transform is applied to the DataFrame; later changes need a new transform. A set from
    `registry.follow` is followed instead: each micro-batch sees the version that is current when it begins, and answers
    have a last column `version`.

    A set above 4 MB is sent to the workers as a file: in `snapshot_dir`, which they must be able to read, or, without
    it, as an artifact of the session.

    `observe` is a name under which Spark reports what workers count, or an `Observation`; see docs/spark.md.
    """
    given = QuerySource.read(queries, "vs.match", "match")
    if output not in _ADDED:
        raise PipelineError(f"must be one of: {', '.join(map(repr, _ADDED))}; got {output!r}", option="output")
    check_observe(observe)

    def transform(rows: DataFrame) -> DataFrame:
        added = _ADDED[output]
        for name in (added, *(column.name for column in given.added_columns)):
            check_free(rows, name)
        check_session(rows, given.queries)
        places = find_columns(rows, given.queries.schema, given.fields, follows=given.followed is not None)
        answer = StructField(added, ArrayType(given.id_type, False) if output == "list" else given.id_type, False)
        schema = StructType([*rows.schema.fields, answer, *given.added_columns])
        facts = given.pack(rows, snapshot_dir)
        batch_bytes = settings().answer_batch_bytes
        name = "match_batches" if observe is None else "match_and_report"
        work = worker_function(_WORKER, name, facts["sender"], facts, places, output, batch_bytes)
        return observed(rows.mapInArrow(work, with_report(schema, observe)), observe, "match")

    return transform
