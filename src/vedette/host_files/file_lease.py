"""Leases on files that processes share: a file exists while a process uses it, and can be deleted after that.

A lease is a shared lock (flock) on the file or directory itself. It ends with the process, even if that is killed. On a
file system without locks nothing is deleted.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


class FileLease:
    """Keeps a file or directory from being deleted by `remove_unused`, in any process, until it is released."""

    def __init__(self, handle: int) -> None:
        self._handle = handle

    @classmethod
    def take(cls, path: str | os.PathLike[str]) -> FileLease | None:
        """A lease, or None if the file does not exist."""
        while True:
            try:
                handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            except FileNotFoundError:
                return None
            with suppress(OSError):  # the file system has no locks
                fcntl.flock(handle, fcntl.LOCK_SH)
            if is_at(handle, path):
                return cls(handle)
            os.close(handle)  # it was deleted before the lock was granted

    def release(self) -> None:
        """End the lease. A forked child process keeps it until the child ends."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1


def remove_unused(path: str | os.PathLike[str], *others: Path) -> None:
    """Delete a file, or a directory with its contents, unless a process has a lease on it.

    Other files, which only processes with a lease create, are deleted before it.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if is_at(handle, path):
            for other in others:
                other.unlink(missing_ok=True)
            shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)
    except OSError:
        pass  # in use, deleted by another process, or the file system has no locks
    finally:
        os.close(handle)


@contextmanager
def scratch_directory(parent: Path) -> Iterator[Path]:
    """A directory that is deleted after use. If this process is killed, a later `remove_scratch` deletes it."""
    lease = None
    while lease is None:  # another process may delete the directory before it is leased
        path = Path(tempfile.mkdtemp(prefix="vedette-scratch-", dir=parent))
        lease = FileLease.take(path)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        lease.release()


def remove_scratch(parent: Path) -> None:
    """Delete the scratch directories that killed processes left behind."""
    for path in parent.glob("vedette-scratch-*"):
        remove_unused(path)


def is_at(handle: int, path: str | os.PathLike[str]) -> bool:
    """Whether an open file is still the one at that path."""
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except FileNotFoundError:
        return False
