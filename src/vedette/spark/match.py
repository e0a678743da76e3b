"""Matching inside Spark: a transform that finds the queries that each row of a batch or stream matches.

It is one `mapInArrow`: all columns of a row go to Python and back unchanged, with the answer added. In a flow of a
declarative pipeline it is a table function, which Spark resolves together with the tables of the pipeline.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import ArrayType, StructField, StructType

from vedette.data.moments import NOW
from vedette.errors import PipelineError
from vedette.settings import settings
from vedette.spark.checks import check_free, find_columns, quoted
from vedette.spark.declared import Declared, is_connect
from vedette.spark.observation import check_observe, observed, with_report
from vedette.spark.session_checks import check_session
from vedette.spark.shipping.kernels import send_kernels
from vedette.spark.shipping.query_sets import worker_function
from vedette.spark.shipping.query_source import QuerySource
from vedette.spark.table_function import make_table_function

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
    schema: StructType | str | None = None,
    streaming: bool | None = None,
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

    `schema` and `streaming` declare the columns of the rows and whether they are a stream, where Spark cannot be asked:
    in a flow of a declarative pipeline. See docs/declarative-pipelines.md.
    """
    given = QuerySource.read(queries, "vs.match", "match")
    if output not in _ADDED:
        raise PipelineError(f"must be one of: {', '.join(map(repr, _ADDED))}; got {output!r}", option="output")
    check_observe(observe)
    declared = Declared.read(schema, streaming)

    def transform(own_rows: DataFrame) -> DataFrame:
        rows = declared.apply(own_rows)
        added = _ADDED[output]
        for name in (added, *(column.name for column in given.added_columns)):
            check_free(rows, name)
        check_session(rows, given.queries)
        places = find_columns(rows, given.queries.schema, given.fields, follows=given.followed is not None)
        answer = StructField(added, ArrayType(given.id_type, False) if output == "list" else given.id_type, False)
        returned = StructType([*rows.schema.fields, answer, *given.added_columns])
        columns = with_report(returned, observe)
        moment = _free_name(rows) if given.followed is not None or given.queries.uses_now else None
        if moment is not None:
            places[NOW] = len(rows.columns)
        is_live = given.followed is not None and declared.is_streaming(own_rows)
        facts = given.without_metadata().pack(rows, snapshot_dir, is_stream=is_live)
        bound = (facts, places, output, settings().answer_batch_bytes, observe is not None)
        kernels = send_kernels(rows.sparkSession)
        if declared.schema is None or not is_connect(rows.sparkSession) or not hasattr(f, "arrow_udtf"):
            sent = rows if moment is None else rows.withColumn(moment, f.current_timestamp())
            work = worker_function(_WORKER, "match_batches", facts["sender"], *bound, kernels=kernels)
            answers = sent.mapInArrow(work, columns)
        else:  # a table function, because Spark applies `to` only to rows that it can analyse at once
            types = {column.name: column.dataType.simpleString() for column in declared.schema}
            work = worker_function(_WORKER, "match_declared", facts["sender"], *bound, types, kernels=kernels)
            added_last = [] if moment is None else [f.current_timestamp().alias(moment)]
            sent = own_rows.select(*map(quoted, types), *added_last)
            answers = make_table_function(work, columns)(sent.asTable())
        return observed(answers, returned.names, observe, "match")

    return transform


def _free_name(rows: DataFrame) -> str:
    """A name for the column of the moment, which only workers see."""
    name = "_now"
    while any(column.lower() == name for column in rows.columns):
        name += "_"
    return name
