"""The private directory of this account on this host. Its processes share files there; other accounts have no access.

It is vedette-<uid> in the temporary directory, with mode 0700. If another account has created that name, a directory
with a random suffix is used instead. Processes of this account recognise it by its owner.
"""

from __future__ import annotations

import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path


def account_directory(name: str, parent: str | os.PathLike[str] | None = None) -> Path:
    """The subdirectory `name` of the account's directory in `parent`, by default the system's temporary directory.

    Both are created if they are missing. Raises OSError if that is impossible.
    """
    directory = _find(Path(parent or tempfile.gettempdir())) / name
    with suppress(FileExistsError):
        directory.mkdir(0o700)
    return directory


def _find(parent: Path) -> Path:
    usual = parent / f"vedette-{os.geteuid()}"
    with suppress(FileExistsError):
        usual.mkdir(0o700)
    if _is_own(usual):
        return usual
    for other in sorted(parent.glob(f"{usual.name}-*")):
        if _is_own(other):
            return other
    return Path(tempfile.mkdtemp(prefix=f"{usual.name}-", dir=parent))


def _is_own(path: Path) -> bool:
    """Whether this is a directory (not a link) of this account to which no other account can write.

    Read access of other accounts is removed.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        status = os.fstat(handle)
        if status.st_uid != os.geteuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            return False
        os.fchmod(handle, 0o700)
        return True
    finally:
        os.close(handle)
