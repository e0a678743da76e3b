"""How a query set travels to Spark's workers: small ones inside the task, large ones as a file that workers map.

A worker keeps the sets it has loaded by their content, so the tasks after the first start at once.
"""

from __future__ import annotations

import atexit
import hashlib
import importlib
import os
import socket
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vedette import __version__
from vedette.errors import PipelineError
from vedette.settings import settings

if TYPE_CHECKING:
    from vedette.engine.band_query_set import BandQuerySet
    from vedette.engine.join_query_set import JoinQuerySet
    from vedette.engine.query_set import QuerySet

    Queries = QuerySet | BandQuerySet | JoinQuerySet

_KEPT_SETS = 4  # in a worker; a worker serves few pipelines, and a set may be hundreds of megabytes
_loaded: dict[str, Any] = {}


@dataclass(frozen=True)
class Parcel:
    """A frozen query set on its way: its bytes, or the path of the file that holds them."""

    token: str  # of the content
    content: bytes | None
    path: str
    sender: str  # the package's version where it was packed
    kind: tuple[str, str]  # of the set: the module and the name of its class


def pack(queries: Queries, snapshot_dir: str | Path | None, inline_bytes: int | None = None) -> Parcel:
    """The set as it stands now, to be opened by `unpack` in another process.

    Up to `inline_bytes`, or what the settings say where that is less, it travels inside the task.
    """
    sender, kind = __version__, (type(queries).__module__, type(queries).__name__)
    most = min(settings().inline_bytes, inline_bytes or settings().inline_bytes)
    content = queries.to_bytes() if queries.nbytes <= most else b""
    if 0 < len(content) <= 2 * most:  # what was removed is in the bytes too
        return Parcel(hashlib.blake2b(content, digest_size=12).hexdigest(), content, "", sender, kind)
    path = _save(queries, Path(snapshot_dir) if snapshot_dir is not None else settings().snapshot_path)
    if snapshot_dir is None and not settings().snapshot_dir:
        atexit.register(path.unlink, missing_ok=True)  # in a directory that somebody chose, it stays
    return Parcel(path.stem, None, str(path), sender, kind)


def unpack(parcel: Parcel) -> Any:
    """The set, loaded once per worker."""
    if parcel.token not in _loaded:
        check_sender(parcel.sender)
        while len(_loaded) >= _KEPT_SETS:
            del _loaded[next(iter(_loaded))]
        _loaded[parcel.token] = _load(parcel)
    return _loaded[parcel.token]


def check_sender(sender: str) -> None:
    """Raise unless this worker has the version of the driver."""
    if __version__ != sender:
        raise PipelineError(
            f"the Spark worker on {socket.gethostname()} has vedette {__version__} but the driver has {sender}; "
            f"install the same version on both"
        )


def worker_function(module: str, name: str, sender: str, *bound: Any) -> Callable[..., Any]:
    """One of our functions, for workers. It names nothing of us until it runs, so a worker without us can say so."""

    def call(*arguments: Any) -> Any:
        import importlib

        try:
            function = getattr(importlib.import_module(module), name)
        except ModuleNotFoundError as error:
            import socket
            import sys

            raise RuntimeError(
                f"the Spark worker on {socket.gethostname()} cannot import {error.name!r} by {sys.executable}; "
                f"install vedette {sender} there, or point PYSPARK_PYTHON at a Python that has it"
            ) from None
        return function(*bound, *arguments)

    return call


def _load(parcel: Parcel) -> Any:
    module, name = parcel.kind
    kind = getattr(importlib.import_module(module), name)
    if parcel.content is None:
        if not os.path.exists(parcel.path):
            raise PipelineError(
                f"the Spark worker on {socket.gethostname()} cannot see {parcel.path}, the snapshot of the query set; "
                f"pass snapshot_dir= with a directory that the driver and every worker share"
            )
        return kind.load(parcel.path)
    return kind.from_bytes(parcel.content)


def _save(queries: Queries, directory: Path) -> Path:
    """Write the set to a file named after its content, which is there as a whole or not at all."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix="vedette-", suffix=".part", dir=directory)
    except OSError as error:
        raise PipelineError(
            f"cannot put a snapshot of the query set into {directory}: {error.strerror}; "
            f"pass snapshot_dir= with a directory that can be written and that every worker sees"
        ) from None
    os.close(handle)
    draft = Path(name)
    try:
        queries.save(draft)
        draft.chmod(0o644)  # workers may run as somebody else
        return draft.replace(directory / f"vedette-{_digest(draft)}.queries")
    finally:
        draft.unlink(missing_ok=True)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=12)).hexdigest()
