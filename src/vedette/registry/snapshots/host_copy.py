"""One copy per host of a file in a store: one process downloads it, the others wait and then use the same file.

The process that locks the draft downloads. The lock ends with the process, so another takes over if it is killed.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from vedette.errors import FileError, SnapshotError
from vedette.host_files.file_lease import FileLease, is_at, remove_unused

STALLED_SECONDS = 120.0  # how long to wait for a download of another process that makes no progress
KEPT_DAYS = 30  # unused copies are deleted after this time
_POLL_SECONDS = 0.02


def obtain(path: Path, is_whole: Callable[[Path], bool], download: Callable[[BinaryIO], None]) -> FileLease:
    """A lease on the complete file at `path`, which is downloaded if it is missing.

    Raises SnapshotError if the store's file is damaged, FileError if another process's download makes no progress.
    """
    draft = path.with_name(f"{path.name}.part")
    wait = _Wait(path.name)
    while True:
        lease = FileLease.take(path)
        if lease is not None and is_whole(path):
            return lease
        if lease is not None:
            lease.release()
        handle = _lock(draft, wait)
        if handle is not None:
            try:
                _download(handle, draft, path, is_whole, download)
            finally:
                os.close(handle)


def remove_old(directory: Path, is_old: Callable[[str], bool]) -> None:
    """Delete old copies that no process uses, and drafts that killed processes left behind."""
    for draft in directory.glob("*.part"):
        remove_unused(draft)
    for path in directory.glob("*.queries"):
        try:
            days = (time.time() - path.stat().st_mtime) / 86_400
        except OSError:
            continue
        if is_old(path.name) or days > KEPT_DAYS:
            remove_unused(path)


@dataclass
class _Wait:
    """How long another process has made no progress."""

    name: str
    n_bytes: int = 0
    since: float = field(default_factory=time.monotonic)

    def go_on(self, n_bytes: int) -> None:
        """Wait a moment; raise if there has been no progress for too long."""
        now = time.monotonic()
        if n_bytes not in (0, self.n_bytes):
            self.n_bytes, self.since = n_bytes, now
        if now - self.since > STALLED_SECONDS:
            raise FileError(
                f"another process of this host is downloading {self.name} and has made no progress for "
                f"{STALLED_SECONDS:.0f} seconds, at {self.n_bytes:,} bytes; end that process, or try again later"
            )
        time.sleep(_POLL_SECONDS)


def _lock(draft: Path, wait: _Wait) -> int | None:
    """The draft, open and locked: this process downloads. None after another process has finished or given up."""
    handle = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    is_ours = False
    try:
        while not is_ours and is_at(handle, draft):
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                is_ours = is_at(handle, draft)
            except BlockingIOError:
                wait.go_on(os.fstat(handle).st_size)
        return handle if is_ours else None
    finally:
        if not is_ours:
            os.close(handle)


def _download(
    handle: int, draft: Path, path: Path, is_whole: Callable[[Path], bool], download: Callable[[BinaryIO], None]
) -> None:
    """Download to the locked draft and move it into place, unless another process was first."""
    try:
        if path.exists() and is_whole(path):
            return
        os.ftruncate(handle, 0)  # a killed process may have left half of it
        with os.fdopen(os.dup(handle), "wb") as target:
            download(target)
        os.replace(draft, path)
        if not is_whole(path):
            path.unlink()
            raise SnapshotError(f"the snapshot {path.name} is damaged: its checksum is wrong")
    finally:
        if is_at(handle, draft):
            draft.unlink()
