"""Kernels that another process has compiled: an archive of kernel files, held in memory and never unpacked to disk.

Loading a kernel runs code. So an archive is accepted only with the digest that its sender gave by a trusted way.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

from vedette.native.kernel_folder import read_trusted

_KEPT = 2  # archives per process
_CODEC = "zstd"  # packs some 16 MB within the first job; deflate takes four times as long
_accepted: dict[str, zipfile.ZipFile] = {}  # by their digests


def pack_files(files: Mapping[str, Path]) -> bytes | None:
    """An archive of kernel files by their names; None without files. The same files give the same bytes."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as packed:
        for name in sorted(files):
            with contextlib.suppress(OSError):  # deleted meanwhile, or not safe
                packed.writestr(zipfile.ZipInfo(name), pa.compress(read_trusted(files[name]), _CODEC, asbytes=True))
    return archive.getvalue() if packed.namelist() else None


def bundle_digest(archive: bytes) -> str:
    return hashlib.sha256(archive).hexdigest()


def accept(archive: bytes, digest: str) -> bool:
    """Use the kernels of an archive from now on, unless it has another digest; returns whether they are used."""
    if bundle_digest(archive) != digest:
        return False
    while len(_accepted) >= _KEPT:
        del _accepted[next(iter(_accepted))]
    _accepted[digest] = zipfile.ZipFile(io.BytesIO(archive))
    return True


def received(name: str) -> bytes | None:
    """The file of this name in an accepted archive; None if there is none, or if this Arrow cannot read it."""
    for archive in tuple(_accepted.values()):
        if name in archive.NameToInfo:
            with contextlib.suppress(pa.ArrowException):
                return pa.input_stream(pa.py_buffer(archive.read(name)), _CODEC).read()  # type: ignore[no-any-return]
    return None
