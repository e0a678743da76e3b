"""Query sets as artifacts of a session: Spark copies the file to every host with workers, so no directory is shared.

A classic session reads the file again for each executor that starts later, so it gets a link of its own, which exists
until this process ends. A Connect session uploads the file once. An artifact cannot be removed from its session.
"""

from __future__ import annotations

import atexit
import os
import re
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from pyspark.errors import PySparkException

from vedette.errors import PipelineError
from vedette.host_files.account_directory import account_directory
from vedette.host_files.file_lease import remove_scratch, scratch_directory
from vedette.host_files.private_files import write_whole
from vedette.spark.declared import is_connect
from vedette.spark.java_errors import Py4JError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_sent: WeakKeyDictionary[SparkSession, set[str]] = WeakKeyDictionary()  # names of artifacts
_SESSION = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")  # the name of a session's folder
_links: list[Path] = []  # the directory with the links of this process


def shares_files(spark: SparkSession) -> bool:
    """Whether all workers of a session run on this host, so that they can open its files."""
    if is_connect(spark) and "SPARK_LOCAL_REMOTE" not in os.environ:  # PySpark sets it if this process has the server
        return False
    master = spark.conf.get("spark.master", "") or ""
    return master == "local" or master.startswith("local[")


def send(spark: SparkSession, path: Path) -> str:
    """Make a file an artifact of the session; returns its name, by which workers find it."""
    names = _sent.setdefault(spark, set())
    if path.name not in names:
        try:
            source = path if is_connect(spark) else _link(path)
            spark.addArtifacts(str(source), file=True)
        except (PySparkException, Py4JError, OSError) as error:
            from vedette.spark.failures import first_line  # workers, which import this module, do not need it

            raise PipelineError(
                f"Spark cannot send {path}, the snapshot of the query set, to its workers: {first_line(error)}; "
                f"pass snapshot_dir= with a directory that the driver and every worker share"
            ) from None
        names.add(path.name)
    return path.name


def send_content(spark: SparkSession, name: str, content: bytes) -> None:
    """Make this content an artifact of the session."""
    path = _directory() / name
    if not path.exists():
        write_whole(path, content)
    spark.addArtifacts(str(path), file=True)


def find(name: str) -> Path | None:
    """In a worker: the copy of an artifact on this host; None if Spark has none."""
    from pyspark import SparkFiles

    if SparkFiles._root_directory is None:  # not in a worker
        return None
    folder = Path(SparkFiles.getRootDirectory()).resolve()
    # Through Connect, the files of a session are in a folder of its own, but Spark 4.3 names the folder above it to
    # stateful operators of streams.
    sessions = sorted(each for each in folder.iterdir() if _SESSION.fullmatch(each.name))
    return next((place / name for place in (folder, *sessions) if (place / name).is_file()), None)


def _link(path: Path) -> Path:
    link = _directory() / path.name
    with suppress(FileExistsError):
        os.link(path, link)
    return link


def _directory() -> Path:
    """The directory of this process for files that the session may read at any time."""
    if not _links:
        parent = account_directory("artifacts")
        remove_scratch(parent)
        kept = ExitStack()
        _links.append(kept.enter_context(scratch_directory(parent)))
        atexit.register(kept.close)
    return _links[0]
