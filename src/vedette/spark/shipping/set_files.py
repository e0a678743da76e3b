"""Files with large query sets for Spark's workers, named by their content.

By default they are in the directory of this account. Each driver that uses a file has a lease on it, and the last one
deletes it when it ends. A driver keeps leases on the last sets that it sent. Files in a directory that the user chose
are not deleted.
"""

from __future__ import annotations

import atexit
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from vedette.errors import PipelineError
from vedette.host_files.account_directory import account_directory
from vedette.host_files.checked_files import file_digest, has_digest
from vedette.host_files.file_lease import FileLease, remove_scratch, remove_unused, scratch_directory
from vedette.host_files.private_files import make_directory

DIGEST_BYTES = 12  # of the digest that names files and loaded sets
_KEPT_FILES = 100  # per driver; each needs an open file, and a process can often have only 1,024
_leases: dict[Path, FileLease] = {}  # on the files that this driver uses, and on their directory, so that both are kept


def publish(queries: Any, chosen: str | Path | None) -> tuple[str, Path]:
    """Write a set to a file that workers can open; returns the digest of its content, and the path.

    In the directory `chosen`, the file is not deleted. Otherwise the last driver that uses it deletes it.
    """
    try:
        directory = account_directory("sets") if chosen is None else Path(chosen)
        make_directory(directory)
        with scratch_directory(directory) as scratch:
            draft = scratch / "queries"
            queries.save(draft)
            digest = file_digest(draft, DIGEST_BYTES)
            put = _put_leased if chosen is None else _put
            return digest, put(draft, directory, digest)
    except OSError as error:
        where = "the temporary directory" if chosen is None else chosen
        raise PipelineError(
            f"cannot write a snapshot of the query set to {where}: {error.strerror or error}; "
            f"pass snapshot_dir= with a writable directory that every worker can read"
        ) from None


def _put(draft: Path, directory: Path, digest: str) -> Path:
    """Move a file into place. If its name belongs to another account, use a name of this account."""
    for name in (f"vedette-{digest}.queries", f"vedette-{digest}-{os.geteuid()}.queries"):
        path = directory / name
        if not path.exists() or path.stat().st_uid == os.geteuid():
            with suppress(PermissionError):  # another account created it meanwhile
                return draft.replace(path)
    raise PipelineError(
        f"cannot write a snapshot of the query set to {directory}: files of other accounts have its names; "
        f"pass snapshot_dir= with another directory"
    )


def _put_leased(draft: Path, directory: Path, digest: str) -> Path:
    """Link a file into place, or use the existing one. This process keeps a lease on it."""
    path = directory / f"vedette-{digest}.queries"
    if not _leases:
        atexit.register(_release_all)
    _take_lease(directory)
    while not _take_lease(path) or not has_digest(path, digest):
        with suppress(FileNotFoundError):
            path.unlink()  # damaged
        with suppress(FileExistsError):
            os.link(draft, path)
    _release_oldest()
    _remove_unused_files(directory)
    return path


def _take_lease(path: Path) -> bool:
    """Take a lease on a file; returns whether the file exists."""
    lease = FileLease.take(path)
    if lease is not None:
        before = _leases.pop(path, None)  # so that the most recently used one is last
        _leases[path] = lease
        if before is not None:
            before.release()
    return lease is not None


def _release_oldest() -> None:
    files = [path for path in _leases if path.suffix == ".queries"]
    for path in files[:-_KEPT_FILES]:
        _release(path)


def _release_all() -> None:
    for path in list(_leases):
        _release(path)


def _release(path: Path) -> None:
    _leases.pop(path).release()
    if path.suffix == ".queries":
        remove_unused(path)


def _remove_unused_files(directory: Path) -> None:
    """Delete files that killed drivers left behind."""
    remove_scratch(directory)
    for path in directory.glob("*.queries"):
        remove_unused(path)
