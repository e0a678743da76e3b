"""Files in which large query sets go to Spark's workers, named by their content.

By default they are in the directory of this account. Each driver that uses a file has a lease on it, and the last one
to end deletes it. A driver keeps the leases on the sets that it shipped last. Files in a directory that the user chose
stay.
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

DIGEST_BYTES = 12  # by which files, and sets that a worker has loaded, are named
_KEPT_FILES = 100  # by a driver; each has an open file, of which a process may often have 1,024
_leases: dict[Path, FileLease] = {}  # on the files that this driver uses, and on their directory: cleaners skip it then


def publish(queries: Any, chosen: str | Path | None) -> tuple[str, Path]:
    """Write a set to a file that workers can open; the digest of its content, and the path.

    With `chosen`, a directory, the file stays there. Otherwise it is deleted after the last driver that uses it.
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
            f"cannot put a snapshot of the query set into {where}: {error.strerror or error}; "
            f"pass snapshot_dir= with a directory that can be written and that every worker sees"
        ) from None


def _put(draft: Path, directory: Path, digest: str) -> Path:
    """Move a file into place. If its name belongs to another account, use a name of this account."""
    for name in (f"vedette-{digest}.queries", f"vedette-{digest}-{os.geteuid()}.queries"):
        path = directory / name
        if not path.exists() or path.stat().st_uid == os.geteuid():
            with suppress(PermissionError):  # another account was faster
                return draft.replace(path)
    raise PipelineError(
        f"cannot put a snapshot of the query set into {directory}: files of other accounts have its names; "
        f"pass snapshot_dir= with another directory"
    )


def _put_leased(draft: Path, directory: Path, digest: str) -> Path:
    """Link a file into place, or use the one that is there; this process keeps a lease on it."""
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
    """Whether there is such a file; then this process has a lease on it."""
    lease = FileLease.take(path)
    if lease is not None:
        before = _leases.pop(path, None)  # so that the one used last is last
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
    """Delete what drivers left behind that were killed."""
    remove_scratch(directory)
    for path in directory.glob("*.queries"):
        remove_unused(path)
