"""The folders of compiled kernels. Loading a kernel runs code, so no other account may be able to write there.

A folder is used if only this account and root can write to it and to its parents: one in NUMBA_CACHE_DIR, then the one
next to the sources, then one in the user's cache, then one in the directory of this account. Kernels are stored in the
first that is writable, and read from all: an image may contain kernels that root has compiled.
"""

from __future__ import annotations

import functools
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from numba.core import config

from vedette.host_files.account_directory import account_directory
from vedette.host_files.private_files import is_trusted, is_trusted_directory


class KernelFolders(NamedTuple):
    """Where the kernels of a package are stored, and where they are looked for."""

    store: Path | None  # None if no folder is writable
    readable: tuple[Path, ...]


@functools.cache
def find_folders(package: str, beside: Path | None) -> KernelFolders:
    """The folders for a package, whose sources are in the folder `beside`."""
    store, readable = None, []
    for folder in _candidates(package, beside):
        real = Path(os.path.realpath(folder))  # so that later changes of links do not matter
        if store is None and _make_writable(real):
            store = real
        if real not in readable and is_trusted_directory(real):
            readable.append(real)
    return KernelFolders(store, tuple(readable))


def read_trusted(path: Path) -> bytes:
    """The content of a file. Raises OSError if another account could have written it."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode) or not is_trusted(status):
            raise PermissionError(f"another account could have written {path}")
        return file.read()


def _candidates(package: str, beside: Path | None) -> Iterator[Path]:
    chosen: str = config.CACHE_DIR  # type: ignore[attr-defined]
    if chosen:
        yield Path(chosen, package)
    if beside is not None:
        yield beside / "__pycache__"
    caches = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    if os.path.isabs(caches):
        yield Path(caches, "vedette", "kernels", package)
    try:
        yield account_directory("kernels") / package
    except OSError:
        return


def _make_writable(folder: Path) -> bool:
    """Create a folder if it is missing; returns whether it is trusted and files can be created in it."""
    try:
        os.makedirs(folder, mode=0o755, exist_ok=True)
        if is_trusted_directory(folder):
            tempfile.TemporaryFile(dir=folder).close()
            return True
    except OSError:
        pass
    return False
