"""Files and directories for this account alone, unless the settings `file_mode` and `directory_mode` say otherwise.

Modes are applied exactly: the umask neither widens nor narrows them.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from vedette.settings import settings


def create_file(path: str | os.PathLike[str]) -> BinaryIO:
    """A new file to write to. Raises FileExistsError if there is one."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, settings().file_mode)
    os.fchmod(handle, settings().file_mode)
    return os.fdopen(handle, "wb")


def make_directory(path: str | os.PathLike[str]) -> None:
    """Create a directory and its missing parents. Existing ones keep their modes."""
    mode = settings().directory_mode
    for each in reversed((Path(path), *Path(path).parents)):
        if not each.exists():
            with suppress(FileExistsError):
                each.mkdir(mode)
                each.chmod(mode)
    Path(path).mkdir(exist_ok=True)  # or it is a file


def is_trusted(status: os.stat_result) -> bool:
    """Whether only this account and root can change a file or directory with this status."""
    return status.st_uid in (0, os.geteuid()) and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def is_trusted_directory(path: str | os.PathLike[str]) -> bool:
    """Whether only this account and root can change what a directory contains, or put another one in its place.

    `path` must not contain symbolic links. Others may write to a parent that is sticky, as /tmp is.
    """
    try:
        own, *parents = (os.stat(each) for each in (path, *Path(path).absolute().parents))
    except OSError:
        return False
    return is_trusted(own) and all(is_trusted(each) or _is_sticky(each) for each in parents)


def _is_sticky(status: os.stat_result) -> bool:
    """Whether accounts can write to a directory, but can only rename and delete what is their own."""
    return status.st_uid in (0, os.geteuid()) and bool(status.st_mode & stat.S_ISVTX)
