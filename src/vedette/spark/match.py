"""Matching inside Spark: a transform that asks every row of a DataFrame, batch or streaming, which queries it matches.

The work is one `mapInArrow`: all columns of the row go to Python and back as they are, beside the answer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

from pyspark.sql import DataFrame
from pyspark.sql.types import ArrayType, LongType, StringType, StructField, StructType

from vedette.errors import PipelineError
from vedette.spark.checks import check_free, check_time_zone, find_columns
from vedette.spark.shipping import pack, worker_function

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

    from vedette.engine.query_set import QuerySet

_WORKER = "vedette.spark.worker"
_ADDED = {"pairs": "query", "list": "queries"}


def match(
    queries: QuerySet, output: Literal["pairs", "list"] = "pairs", *, snapshot_dir: str | Path | None = None
) -> Callable[[DataFrame], DataFrame]:
    """A transform that matches each row with the queries: `hits = ticks.transform(vs.match(alerts))`.

    "pairs" gives one row per row and matching query, with a column `query`, its id. "list" gives one row per row, with
    a column `queries`, the ids that match, empty where none does. Either keeps all columns of the row. The set is taken
    as it stands when the transform meets the DataFrame; later changes to it need a new transform.

    A set above 4 MB goes to the workers as a file in `snapshot_dir`, which they must see too.
    """
    if not hasattr(queries, "match_one"):
        raise PipelineError(f"vs.match takes a QuerySet; got {type(queries).__name__}")
    if output not in _ADDED:
        raise PipelineError(f"unknown output {output!r}; outputs are: {', '.join(map(repr, _ADDED))}")

    def transform(rows: DataFrame) -> DataFrame:
        added = _ADDED[output]
        check_free(rows, added)
        check_time_zone(rows, queries)
        places = find_columns(rows, queries.schema, queries.fields)
        id_type = _spark_type(queries.ids.type)
        answer = StructField(added, ArrayType(id_type, False) if output == "list" else id_type, False)
        schema = StructType([*rows.schema.fields, answer])
        parcel = pack(queries, snapshot_dir)
        work = worker_function(_WORKER, "match_batches", parcel.sender, vars(parcel).copy(), places, output)
        return rows.mapInArrow(work, schema)

    return transform


def _spark_type(arrow_type: pa.DataType) -> LongType | StringType:
    return LongType() if str(arrow_type) == "int64" else StringType()
