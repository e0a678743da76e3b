"""Creates files and directories that only this account can use, unless `file_mode` or `directory_mode` is set.

Modes are applied exactly: the umask does not change them.
"""

from __future__ import annotations

import os
import stat
import uuid
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from vedette.settings import settings


def create_file(path: str | os.PathLike[str]) -> BinaryIO:
    """A new file to write to. Raises FileExistsError if it exists."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, settings().file_mode)
    os.fchmod(handle, settings().file_mode)
    return os.fdopen(handle, "wb")


def write_whole(path: Path, *pieces: bytes | memoryview) -> None:
    """Write a file, or replace it: as a whole or not at all."""
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        with create_file(temporary) as file:
            for piece in pieces:
                file.write(piece)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def make_directory(path: str | os.PathLike[str]) -> None:
    """Create a directory and its missing parents. Existing ones keep their modes."""
    mode = settings().directory_mode
    for each in reversed((Path(path), *Path(path).parents)):
        if not each.exists():
            with suppress(FileExistsError):
                each.mkdir(mode)
                each.chmod(mode)
    Path(path).mkdir(exist_ok=True)  # raises if it is a file


def is_trusted(status: os.stat_result) -> bool:
    """Whether only this account and root can change a file or directory with this status."""
    return status.st_uid in (0, os.geteuid()) and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def is_trusted_directory(path: str | os.PathLike[str]) -> bool:
    """Whether only this account and root can change the contents of a directory, or replace the directory.

    `path` must not contain symbolic links. Other accounts may write to a parent that is sticky, such as /tmp.
    """
    try:
        own, *parents = (os.stat(each) for each in (path, *Path(path).absolute().parents))
    except OSError:
        return False
    return is_trusted(own) and all(is_trusted(each) or _is_sticky(each) for each in parents)


def _is_sticky(status: os.stat_result) -> bool:
    """Whether accounts can rename and delete only their own files in a directory."""
    return status.st_uid in (0, os.geteuid()) and bool(status.st_mode & stat.S_ISVTX)
