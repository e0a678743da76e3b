"""Records which files have been checked on this host, so that a file is checked once and not by every worker.

A note says "this file, in this state, passed this check". The state is the file's device, inode, size and times of
change: writing to the file changes them. Notes are empty files in a directory that only this account can read or write.
If that directory cannot be created, every process checks for itself.
"""

from __future__ import annotations

import hashlib
import os
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

from vedette.host_files.account_directory import account_directory

KEPT_SECONDS = 30 * 86_400.0  # notes that were not used for this time are removed
_checked: set[str] = set()  # by this process


def is_checked(state: os.stat_result, check: str) -> bool:
    """Whether a file in this state has passed the check on this host."""
    name = _name(state, check)
    if name in _checked:
        return True
    folder = _folder()
    if folder is None:
        return False
    try:
        os.utime(folder / name)  # marks it as used
    except OSError:
        return False
    _checked.add(name)
    return True


def note_checked(state: os.stat_result, check: str) -> None:
    """Record, for all processes of this account, that a file in this state has passed the check."""
    name = _name(state, check)
    _checked.add(name)
    folder = _folder()
    if folder is not None:
        with suppress(OSError):
            (folder / name).touch(mode=0o600)
            _remove_old(folder)


def has_digest(path: Path, digest: str) -> bool:
    """Whether a file has the BLAKE2 digest. It is computed once per host and state of the file."""
    state, check = path.stat(), f"digest {digest}"
    if is_checked(state, check):
        return True
    n_bytes = len(digest) // 2
    if not 0 < n_bytes <= hashlib.blake2b.MAX_DIGEST_SIZE or file_digest(path, n_bytes) != digest:
        return False
    note_checked(state, check)
    return True


def file_digest(path: Path, n_bytes: int) -> str:
    """The BLAKE2 digest of a file in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=n_bytes)).hexdigest()


def _name(state: os.stat_result, check: str) -> str:
    parts = check, state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns
    return hashlib.blake2b(repr(parts).encode(), digest_size=16).hexdigest()


@cache
def _remove_old(folder: Path) -> None:
    """Remove old notes, once per process: reading all notes for each new one would be quadratic."""
    for note in folder.iterdir():
        with suppress(OSError):
            if note.stat().st_mtime < time.time() - KEPT_SECONDS:
                note.unlink()


@cache
def _folder() -> Path | None:
    """The directory of notes; None if it cannot be created."""
    try:
        return account_directory("checked")
    except OSError:
        return None
