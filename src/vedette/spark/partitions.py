"""Partitions of state: Spark makes as many as `spark.sql.shuffle.partitions`, and each costs time in every micro-batch.

On two cores a micro-batch of border monitoring took 1 s with 2 partitions and 22 s with 200, Spark's default, whatever
the number of shards. A checkpoint fixes the number for ever.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql import functions as f

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PARTITIONS = "spark.sql.shuffle.partitions"
MANY = 4  # for each core
FEWEST_ELSEWHERE = 16  # on a cluster, whose executors may still be starting
_told: set[tuple[int, int]] = set()
_log = logging.getLogger(__name__)


def count_partitions(spark: SparkSession) -> int:
    return int(spark.conf.get(PARTITIONS) or 1)


def count_cores(spark: SparkSession) -> int | None:
    """The cores that Spark sees, by how it plans to cut a range; no job runs, and Connect tells it too."""
    plan = spark.sql("EXPLAIN SELECT * FROM range(1)").collect()[0][0]
    found = re.search(r"splits=(\d+)", plan)
    return None if found is None else int(found[1])


def warn_of_many(spark: SparkSession) -> None:
    """Warn, once for the same numbers, where a stream would have too many partitions of state."""
    n_partitions, n_cores = count_partitions(spark), count_cores(spark)
    if n_cores is None or n_partitions <= MANY * n_cores or (n_partitions, n_cores) in _told:
        return
    _told.add((n_partitions, n_cores))
    _log.warning(
        "the stream has %d partitions of state on %d cores, and each costs time in every micro-batch; before the first "
        'start set spark.conf.set("%s", "%d"), as a checkpoint fixes the number',
        n_partitions, n_cores, PARTITIONS, n_cores,
    )  # fmt: skip


def fit_partitions(spark: SparkSession, checkpoints: Iterable[str], is_local: bool) -> None:
    """Let the session have the partitions of the checkpoints, or where they are fresh as many as there are cores.

    A number that somebody configured is kept, unless a checkpoint fixes another.
    """
    fixed = next((n for n in (read_partitions(spark, each) for each in checkpoints) if n is not None), None)
    if fixed is not None:
        spark.conf.set(PARTITIONS, str(fixed))
    elif PARTITIONS not in spark.conf.getAll:
        n_cores = count_cores(spark) or FEWEST_ELSEWHERE
        spark.conf.set(PARTITIONS, str(n_cores if is_local else max(n_cores, FEWEST_ELSEWHERE)))


def read_partitions(spark: SparkSession, checkpoint: str) -> int | None:
    """The partitions that a checkpoint fixes; None where no batch has begun."""
    path = re.sub(r"([\[\]{}*?\\])", r"\\\1", checkpoint.rstrip("/")) + "/offsets"
    try:
        lines = spark.read.text(path).where(f.col("value").contains(PARTITIONS)).limit(1).collect()
    except PySparkException as error:
        if error.getCondition() == "PATH_NOT_FOUND":
            return None
        raise
    found = re.search(rf'"{re.escape(PARTITIONS)}":"(\d+)"', lines[0][0]) if lines else None
    return None if found is None else int(found[1])
