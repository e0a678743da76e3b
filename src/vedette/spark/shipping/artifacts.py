"""Query sets as artifacts of a session: Spark copies the file to every host with workers, so no directory is shared.

A classic session reads the file again for each executor that starts later, so it gets a link of its own, which exists
until this process ends. A Connect session uploads the file once. An artifact cannot be removed from its session.
"""

from __future__ import annotations

import atexit
import os
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from pyspark.errors import PySparkException

from vedette.errors import PipelineError
from vedette.host_files.account_directory import account_directory
from vedette.host_files.file_lease import remove_scratch, scratch_directory
from vedette.spark.java_errors import Py4JError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_sent: WeakKeyDictionary[SparkSession, set[str]] = WeakKeyDictionary()  # names of artifacts
_links: list[Path] = []  # the directory with the links of this process


def shares_files(spark: SparkSession) -> bool:
    """Whether all workers of a session run on this host, so that they can open its files."""
    if _is_connect(spark) and "SPARK_LOCAL_REMOTE" not in os.environ:  # PySpark sets it if this process has the server
        return False
    master = spark.conf.get("spark.master", "") or ""
    return master == "local" or master.startswith("local[")


def send(spark: SparkSession, path: Path) -> str:
    """Make a file an artifact of the session; returns its name, by which workers find it."""
    names = _sent.setdefault(spark, set())
    if path.name not in names:
        try:
            source = path if _is_connect(spark) else _link(path)
            spark.addArtifacts(str(source), file=True)
        except (PySparkException, Py4JError, OSError) as error:
            from vedette.spark.failures import first_line  # workers, which import this module, do not need it

            raise PipelineError(
                f"Spark cannot send {path}, the snapshot of the query set, to its workers: {first_line(error)}; "
                f"pass snapshot_dir= with a directory that the driver and every worker share"
            ) from None
        names.add(path.name)
    return path.name


def find(name: str) -> Path | None:
    """In a worker: the copy of an artifact on this host; None if Spark has none."""
    from pyspark import SparkFiles

    if SparkFiles._root_directory is None:  # not in a worker
        return None
    path = Path(SparkFiles.get(name))
    return path if path.is_file() else None


def _is_connect(spark: SparkSession) -> bool:
    return type(spark).__module__.startswith("pyspark.sql.connect")


def _link(path: Path) -> Path:
    if not _links:
        parent = account_directory("artifacts")
        remove_scratch(parent)
        kept = ExitStack()
        _links.append(kept.enter_context(scratch_directory(parent)))
        atexit.register(kept.close)
    link = _links[0] / path.name
    with suppress(FileExistsError):
        os.link(path, link)
    return link
