"""One limit on the memory that the processes of this account use for one purpose on this host.

Each process writes the number of bytes that it uses to its own file, and holds a lock on that file for as long as it
lives. So the file of a process that ended, or was killed, is recognised and deleted. Without a directory for these
files, or if the disk is full, each process gets an equal part of the limit.
"""

from __future__ import annotations

import fcntl
import json
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from vedette.host_files.account_directory import account_directory
from vedette.host_files.file_lease import is_at, remove_unused

_LOCK = "lock"


@dataclass(frozen=True)
class _Use:
    """What another process wrote."""

    n_bytes: int
    is_short: bool  # it needs more, and has less than an equal part


@dataclass
class MemoryBudget:
    """The share of this process in a limit. `purpose` is the name of the directory of the files.

    A process may use what the others leave. Once a process is short, which means that it needs more and has less than
    an equal part, no process may use more than an equal part.
    """

    purpose: str
    parent: Path | None = None  # of the account's directory, by default the system's temporary directory
    _pid: int = field(default=-1, init=False)
    _own: Path | None = field(default=None, init=False)
    _handle: int = field(default=-1, init=False)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Other processes wait until the block ends. Call `room` and `use` in it."""
        if self._pid != os.getpid() or not (self._own is None or self._own.exists()):  # it may have been deleted
            self._begin()
        lock = self._lock()
        try:
            yield
        finally:
            if lock is not None:
                os.close(lock)

    def _lock(self) -> int | None:
        """The locked file of all processes; None if this process has no directory."""
        if self._own is None:
            return None
        try:
            lock = os.open(self._own.with_name(_LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError:
            self._give_up()
            return None
        with suppress(OSError):  # the file system has no locks
            fcntl.flock(lock, fcntl.LOCK_EX)
        return lock

    def room(self, wanted: int, limit: int) -> int:
        """How many bytes this process may use of the limit, if it wants to use `wanted`."""
        if self._own is None:
            return limit // (os.cpu_count() or 1)
        others = self._read_others()
        if sum(each.n_bytes for each in others) + wanted > limit or any(each.is_short for each in others):
            self._remove_ended()
            others = self._read_others()
        left = limit - sum(each.n_bytes for each in others)
        if any(each.is_short for each in others):
            left = min(left, limit // (len(others) + 1))
        return max(left, 0)

    def use(self, n_bytes: int, wanted: int, limit: int) -> None:
        """Record that this process uses `n_bytes`, and wanted to use `wanted`."""
        if self._own is None:
            return
        is_short = n_bytes < wanted and n_bytes < limit // (len(self._paths()) + 1)
        text = json.dumps([n_bytes, is_short]).encode()
        try:
            os.pwrite(self._handle, text.ljust(64), 0)
        except OSError:  # the disk is full
            self._give_up()

    def _begin(self) -> None:
        """Create the file of this process. A forked process needs its own."""
        self._give_up()
        self._pid = os.getpid()
        with suppress(OSError):
            path = account_directory(self.purpose, self.parent) / f"{os.getpid()}-{uuid.uuid4().hex[:8]}.bytes"
            self._handle = _create_locked(path)
            self._own = path
            self._remove_ended()

    def _give_up(self) -> None:
        """Leave the processes that share the limit. After a fork, the parent process keeps its lock."""
        if self._handle >= 0:
            os.close(self._handle)
        self._own, self._handle = None, -1

    def _paths(self) -> list[Path]:
        assert self._own is not None
        return [path for path in self._own.parent.glob("*.bytes") if path != self._own]

    def _read_others(self) -> list[_Use]:
        found = []
        for path in self._paths():
            with suppress(OSError, ValueError, TypeError):
                n_bytes, is_short = json.loads(path.read_bytes())
                found.append(_Use(max(int(n_bytes), 0), bool(is_short)))
        return found

    def _remove_ended(self) -> None:
        """Delete the files of processes that have ended."""
        for path in self._paths():
            remove_unused(path)


def _create_locked(path: Path) -> int:
    """A new file with a shared lock. Another process may delete it before it is locked; then it is created again."""
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_SH)
            if is_at(handle, path):
                return handle
        except OSError:
            os.unlink(path)
            os.close(handle)
            raise
        os.close(handle)
