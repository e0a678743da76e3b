"""The number of state partitions: `spark.sql.shuffle.partitions`. Each one costs time in every micro-batch.

On two cores a micro-batch of border monitoring took 1 s with 2 partitions and 22 s with 200, Spark's default, for any
number of shards. A checkpoint fixes the number.
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
MANY = 4  # partitions per core
FEWEST_ON_CLUSTER = 16  # as executors may still be starting
_warned: set[tuple[int, int]] = set()  # numbers of partitions and cores
_log = logging.getLogger(__name__)


def count_partitions(spark: SparkSession) -> int:
    return int(spark.conf.get(PARTITIONS) or 1)


def count_cores(spark: SparkSession) -> int | None:
    """The number of cores, from the plan of a range: no job runs, and it also works through Connect."""
    plan = spark.sql("EXPLAIN SELECT * FROM range(1)").collect()[0][0]
    found = re.search(r"splits=(\d+)", plan)
    return None if found is None else int(found[1])


def warn_of_many(spark: SparkSession) -> None:
    """Log a warning, once for the same numbers, if a stream would have too many partitions of state."""
    n_partitions, n_cores = count_partitions(spark), count_cores(spark)
    if n_cores is None or n_partitions <= MANY * n_cores or (n_partitions, n_cores) in _warned:
        return
    _warned.add((n_partitions, n_cores))
    _log.warning(
        "the stream has %d partitions of state on %d cores, and each costs time in every micro-batch; a checkpoint "
        'fixes the number, so set it before the first start: spark.conf.set("%s", "%d")',
        n_partitions, n_cores, PARTITIONS, n_cores,
    )  # fmt: skip


def fit_partitions(spark: SparkSession, checkpoints: Iterable[str], is_local: bool) -> None:
    """Set the number of partitions to that of the checkpoints; for new checkpoints, to the number of cores.

    A configured number is kept, unless a checkpoint fixes another.
    """
    fixed = next((n for n in (read_partitions(spark, each) for each in checkpoints) if n is not None), None)
    if fixed is not None:
        spark.conf.set(PARTITIONS, str(fixed))
    elif PARTITIONS not in spark.conf.getAll:
        n_cores = count_cores(spark) or FEWEST_ON_CLUSTER
        spark.conf.set(PARTITIONS, str(n_cores if is_local else max(n_cores, FEWEST_ON_CLUSTER)))


def read_partitions(spark: SparkSession, checkpoint: str) -> int | None:
    """The number of partitions that a checkpoint fixes; None if no batch has begun."""
    path = re.sub(r"([\[\]{}*?\\])", r"\\\1", checkpoint.rstrip("/")) + "/offsets"
    try:
        lines = spark.read.text(path).where(f.col("value").contains(PARTITIONS)).limit(1).collect()
    except PySparkException as error:
        if error.getCondition() == "PATH_NOT_FOUND":
            return None
        raise
    found = re.search(rf'"{re.escape(PARTITIONS)}":"(\d+)"', lines[0][0]) if lines else None
    return None if found is None else int(found[1])
