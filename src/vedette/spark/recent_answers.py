"""Keeps the last answers of a stream in the database of a registry, where `vedette serve` shows them.

Answers pass through Python once more for that, so it is off by default.
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from vedette import __version__
from vedette.registry.store.database import Database
from vedette.spark.shipping.query_sets import worker_function

_WORKER = "vedette.spark.workers.recent_answers"


def keep_recent(answers: DataFrame, url: str, source: tuple[str, str, str], keep: int) -> DataFrame:
    """The same answers. Tasks write the last ones; `source` is the pipeline, set and sink."""
    plan = {"url": Database(url).address, "source": source, "keep": keep}
    work = worker_function(_WORKER, "keep_last", __version__, plan)
    return answers.mapInArrow(work, answers.schema)
