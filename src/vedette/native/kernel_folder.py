"""The folder of compiled kernels. Loading a kernel runs code, so no other account may be able to write there.

The folder that Numba chooses is used if only this account and root can write to it and to its parents. Otherwise it is
one in the user's cache, or in the directory of this account.
"""

from __future__ import annotations

import functools
import hashlib
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from vedette.host_files.account_directory import account_directory
from vedette.host_files.private_files import is_trusted, is_trusted_directory


@functools.cache
def choose_folder(chosen: str) -> Path | None:
    """The folder that Numba chose, or a private one instead; None if no folder is writable."""
    for folder in _candidates(chosen):
        try:
            os.makedirs(folder, mode=0o755, exist_ok=True)
            real = os.path.realpath(folder)  # so that later changes of links do not matter
            if is_trusted_directory(real):
                tempfile.TemporaryFile(dir=real).close()
                return Path(real)
        except OSError:
            pass
    return None


def read_trusted(path: Path) -> bytes:
    """The content of a file. Raises OSError if another account could have written it."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode) or not is_trusted(status):
            raise PermissionError(f"another account could have written {path}")
        return file.read()


def _candidates(chosen: str) -> Iterator[str | Path]:
    yield chosen
    name = f"kernels-{hashlib.sha256(chosen.encode()).hexdigest()[:16]}"  # a separate folder per package
    caches = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    if os.path.isabs(caches):
        yield Path(caches, "vedette", name)
    try:
        yield account_directory("kernels") / name
    except OSError:
        return
