"""Table functions of Spark from Arrow batches to Arrow batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import functions as f
from pyspark.sql import types as t


def make_table_function(work: Callable[[Any], Any], columns: t.StructType) -> Any:
    """A table function that calls `work` for each Arrow batch. It does not import this package until it runs."""

    class Batches:
        def eval(self, rows: Any) -> Any:
            yield from work(rows)

    return f.arrow_udtf(Batches, returnType=columns)
