"""Matching inside Spark: a transform that asks every row of a DataFrame, batch or streaming, which queries it matches.

The work is one `mapInArrow`: all columns of the row go to Python and back as they are, beside the answer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

from pyspark.sql import DataFrame
from pyspark.sql.types import ArrayType, StructField, StructType

from vedette.errors import PipelineError
from vedette.settings import settings
from vedette.spark.checks import check_free, find_columns
from vedette.spark.session_checks import check_session
from vedette.spark.shipping.query_sets import worker_function
from vedette.spark.shipping.query_source import QuerySource

if TYPE_CHECKING:
    from pathlib import Path

    from vedette.queries.query_set import QuerySet
    from vedette.registry.read.followed import Followed

_WORKER = "vedette.spark.workers.match"
_ADDED = {"pairs": "query", "list": "queries"}


def match(
    queries: QuerySet | Followed,
    output: Literal["pairs", "list"] = "pairs",
    *,
    snapshot_dir: str | Path | None = None,
) -> Callable[[DataFrame], DataFrame]:
    """A transform that matches each row with the queries: `hits = ticks.transform(vs.match(alerts))`.

    "pairs" gives one row per row and matching query, with a column `query`, its id. "list" gives one row per row, with
    a column `queries`, the ids that match, empty where none does. Either keeps all columns of the row. The set is taken
    as it stands when the transform meets the DataFrame; later changes to it need a new transform. What
    `registry.follow` gives is followed instead: each micro-batch of a stream sees the version that stands as it begins,
    and answers have a column `version` at their end.

    A set above 4 MB goes to the workers as a file in `snapshot_dir`, which they must see too.
    """
    given = QuerySource.read(queries, "vs.match", "match")
    if output not in _ADDED:
        raise PipelineError(f"is one of: {', '.join(map(repr, _ADDED))}; got {output!r}", option="output")

    def transform(rows: DataFrame) -> DataFrame:
        added = _ADDED[output]
        for name in (added, *(column.name for column in given.added_columns)):
            check_free(rows, name)
        check_session(rows, given.queries)
        places = find_columns(rows, given.queries.schema, given.fields, follows=given.followed is not None)
        answer = StructField(added, ArrayType(given.id_type, False) if output == "list" else given.id_type, False)
        schema = StructType([*rows.schema.fields, answer, *given.added_columns])
        facts = given.pack(rows.isStreaming, snapshot_dir)
        batch_bytes = settings().answer_batch_bytes
        work = worker_function(_WORKER, "match_batches", facts["sender"], facts, places, output, batch_bytes)
        return rows.mapInArrow(work, schema)

    return transform
