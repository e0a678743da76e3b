"""Sends the kernels that the driver's host has compiled to workers on other hosts, so that these compile nothing.

They are an artifact of the session. Loading a kernel runs code, as does the function that Spark sends with every task:
the digest of the artifact is in that function, and a worker uses no other content. It never writes kernels to disk. If
kernels cannot be sent, or are for another CPU, Python or Numba, workers compile their own.
"""

from __future__ import annotations

import functools
import logging
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from vedette.native.kernel_bundle import accept, bundle_digest, pack_files
from vedette.native.kernel_cache import package_folders
from vedette.native.kernel_files import current_files
from vedette.spark.shipping import artifacts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Sent = tuple[str, str]  # the name of the artifact, and its digest
_PACKAGE = __name__.partition(".")[0]
_sent: WeakKeyDictionary[SparkSession, Sent | None] = WeakKeyDictionary()
_log = logging.getLogger(__name__)


def send_kernels(spark: SparkSession) -> Sent | None:
    """Make the kernels an artifact of the session, once. None if workers need none or cannot get them."""
    if spark not in _sent:
        try:
            _sent[spark] = None if artifacts.shares_files(spark) else _send(spark)
        except Exception as error:  # Spark may refuse in many ways, and a job can do without
            _log.info("compiled kernels cannot be sent to Spark's workers: %s", error)
            _sent[spark] = None
    return _sent[spark]


@functools.cache
def receive_kernels(name: str, digest: str) -> bool:
    """In a worker: use the kernels of an artifact, if it has the digest. Returns whether they are used."""
    copy = artifacts.find(name)
    is_used = copy is not None and accept(copy.read_bytes(), digest)
    if not is_used:
        why = "is missing" if copy is None else "has changed since the driver sent it"
        _log.warning("the artifact %s %s; kernels are compiled instead", name, why)
    return is_used


def _send(spark: SparkSession) -> Sent | None:
    files = current_files(package_folders(_PACKAGE), _PACKAGE)
    archive = pack_files({name: file for name, file in files.items() if not name.startswith(f"{_PACKAGE}.papers.")})
    if archive is None:
        return None
    digest = bundle_digest(archive)
    name = f"vedette-{digest[:24]}.kernels"
    artifacts.send_content(spark, name, archive)
    return name, digest
