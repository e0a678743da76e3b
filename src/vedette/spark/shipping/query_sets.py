"""Sends a query set to Spark's workers: a small one inside the task, a large one as a file that workers map.

Workers open the file where the driver wrote it, or the copy of it that Spark has made on their host. A worker caches
loaded sets by their content, so only its first task loads a set.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import pwd
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vedette import __version__
from vedette.errors import PipelineError
from vedette.host_files.checked_files import has_digest
from vedette.host_files.file_lease import FileLease
from vedette.settings import settings
from vedette.spark.shipping import artifacts
from vedette.spark.shipping.set_files import DIGEST_BYTES, publish

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from vedette.operators.band_join.query_set import BandQuerySet
    from vedette.operators.window_join.query_set import JoinQuerySet
    from vedette.queries.query_set import QuerySet

    Queries = QuerySet | BandQuerySet | JoinQuerySet

_KEPT_SETS = 4  # per worker; a worker serves few pipelines, and a set may be hundreds of megabytes
_loaded: dict[str, Any] = {}


@dataclass(frozen=True)
class Parcel:
    """A serialized query set: its bytes, or the path of the file that contains them."""

    token: str  # the digest of the content
    content: bytes | None
    path: str
    sender: str  # the driver's version of this package
    kind: tuple[str, str]  # of the set: the module and the name of its class
    host: str = ""  # where the file was written
    artifact: str = ""  # the name of the copies that Spark makes for workers on other hosts; empty if it makes none


def pack(
    queries: Queries,
    snapshot_dir: str | Path | None,
    inline_bytes: int | None = None,
    spark: SparkSession | None = None,
) -> Parcel:
    """The current set, which `unpack` opens in another process.

    It is sent inside the task up to `inline_bytes` or the setting of that name, whichever is less. The file of a larger
    set is an artifact of the session, unless its workers share a directory with this process.
    """
    sender, kind = __version__, (type(queries).__module__, type(queries).__name__)
    most = min(settings().inline_bytes, inline_bytes or settings().inline_bytes)
    content = queries.to_bytes() if queries.nbytes <= most else b""
    if 0 < len(content) <= 2 * most:  # the bytes also contain removed queries
        return Parcel(hashlib.blake2b(content, digest_size=DIGEST_BYTES).hexdigest(), content, "", sender, kind)
    shared = settings().snapshot_dir or None if snapshot_dir is None else snapshot_dir
    token, path = publish(queries, shared)
    is_sent = spark is not None and shared is None and not artifacts.shares_files(spark)
    artifact = artifacts.send(spark, path) if spark is not None and is_sent else ""
    return Parcel(token, None, str(path.absolute()), sender, kind, socket.gethostname(), artifact)


def unpack(parcel: Parcel) -> Any:
    """The set, loaded once per worker."""
    if parcel.token not in _loaded:
        check_sender(parcel.sender)
        while len(_loaded) >= _KEPT_SETS:
            del _loaded[next(iter(_loaded))]
        _loaded[parcel.token] = _load(parcel)
    return _loaded[parcel.token]


def check_sender(sender: str) -> None:
    """Raise PipelineError unless this worker has the same version as the driver."""
    if __version__ != sender:
        raise PipelineError(
            f"the Spark worker on {socket.gethostname()} has vedette {__version__} but the driver has {sender}; "
            f"install the same version on both"
        )


def worker_function(
    module: str, name: str, sender: str, *bound: Any, kernels: tuple[str, str] | None = None
) -> Callable[..., Any]:
    """A function of this package for workers. It imports the package when it runs, so a missing package is reported.

    `kernels` are those that the driver has sent (`send_kernels`).
    """

    def call(*arguments: Any) -> Any:
        import importlib

        try:
            if kernels is not None:
                importlib.import_module("vedette.spark.shipping.kernels").receive_kernels(*kernels)
            function = getattr(importlib.import_module(module), name)
        except ModuleNotFoundError as error:
            import socket
            import sys

            raise RuntimeError(
                f"the Spark worker on {socket.gethostname()} cannot import {error.name!r} with {sys.executable}; "
                f"install vedette {sender} there, or set PYSPARK_PYTHON to a Python that has it"
            ) from None
        return function(*bound, *arguments)

    return call


def _load(parcel: Parcel) -> Any:
    module, name = parcel.kind
    kind = getattr(importlib.import_module(module), name)
    if parcel.content is not None:
        return kind.from_bytes(parcel.content)
    if parcel.artifact and not (parcel.host == socket.gethostname() and os.access(parcel.path, os.R_OK)):
        copy = _find_copy(parcel)
        _check_digest(copy, parcel)
        return kind.load(copy)
    with _leased(parcel):
        _check_digest(Path(parcel.path), parcel)
        return kind.load(parcel.path)


def _find_copy(parcel: Parcel) -> Path:
    copy = artifacts.find(parcel.artifact)
    if copy is None:
        raise PipelineError(
            f"the Spark worker on {socket.gethostname()} has no copy of {parcel.artifact}, the snapshot of the query "
            f"set, which the driver on {parcel.host} sent as an artifact of its session; start the job again, or pass "
            f"snapshot_dir= with a directory that the driver and every worker share"
        )
    return copy


def _check_digest(path: Path, parcel: Parcel) -> None:
    if not has_digest(path, parcel.token):
        raise PipelineError(
            f"{path}, the snapshot of the query set, has changed since the driver wrote it; start the job again, and "
            f"let only trusted accounts write to that directory"
        )


@contextmanager
def _leased(parcel: Parcel) -> Iterator[None]:
    """Hold a lease while the file is opened. After that, a mapped file stays readable even if it is deleted."""
    worker = f"the Spark worker on {socket.gethostname()}"
    share = "pass snapshot_dir= with a directory that the driver and every worker share"
    try:
        lease = FileLease.take(parcel.path)
    except OSError as error:
        raise PipelineError(
            f"{worker}, which runs as {_account()}, cannot read {parcel.path}, the snapshot of the query set: "
            f"{error.strerror}; run workers as the driver's account, or {share}, and set file_mode and directory_mode "
            f"so that the workers' account can read it"
        ) from None
    if lease is None:
        is_here = parcel.host == socket.gethostname()
        why = ": it was deleted, or the driver has ended; start the job again, or" if is_here else ";"
        raise PipelineError(f"{worker} cannot find {parcel.path}, the snapshot of the query set{why} {share}")
    try:
        yield
    finally:
        lease.release()


def _account() -> str:
    try:
        return f"{pwd.getpwuid(os.geteuid()).pw_name!r}"
    except KeyError:
        return f"uid {os.geteuid()}"
