"""Files of compiled kernels: one per signature and CPU, whose name depends on everything that its code was made of.

Numba's own files have numbers, which an index assigns without a lock. If two processes compile two signatures
concurrently, both may get the same number, and one signature then runs the code of the other. Numba's files also depend
on the source of the kernel alone, although they contain code and constants of other modules; and on the time of that
source, so that no other installation of the package can use them.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import sys
import time
import uuid
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import llvmlite  # type: ignore[import-untyped]
import numba
from numba.core.serialize import dumps

from vedette.native.kernel_bundle import received
from vedette.native.kernel_folder import KernelFolders, read_trusted
from vedette.native.kernel_sources import digest, made_of, note_sources, source_digest

SUFFIX = ".nbc"
PYTHON = f"py{sys.version_info[0]}{sys.version_info[1]}{getattr(sys, 'abiflags', '')}"
KEPT_SECONDS = 30 * 86_400.0  # files of other sources, in a folder that several installations may share
_CHECKSUM_BYTES = 4

Cpu = tuple[str, str]  # its name and its features, as LLVM has them


class KernelFiles:
    """The files of one kernel."""

    def __init__(self, function: Callable[..., object], folders: KernelFolders) -> None:
        note_sources(function.__module__)
        self._function, self._folders = function, folders
        self._kernel = f"{function.__module__}.{function.__qualname__.replace('<', '').replace('>', '')}-{PYTHON}."
        self._name = f"{self._kernel}{stamp(function.__module__)}-"

    def load(self, key: Any, cpus: list[Cpu]) -> Any:
        """The data saved under the key for the first of the CPUs, or None.

        A missing, unsafe, damaged or foreign file is ignored.
        """
        sources = made_of(self._function)
        for cpu in cpus:
            for whole in self._contents(self._file(key, sources, cpu)):
                if (data := _open(whole, key, cpu)) is not None:
                    return data
        return None

    def save(self, key: Any, cpu: Cpu, data: Any) -> None:
        """Write a file atomically, and remove those of an older source. If that is impossible, nothing is stored."""
        if self._folders.store is None:
            return
        file = self._folders.store / self._file(key, made_of(self._function), cpu)
        written = file.with_name(f"{file.name}.{uuid.uuid4().hex[:16]}")
        with contextlib.suppress(OSError):
            try:
                content: bytes = dumps((key, cpu, data))  # type: ignore[no-untyped-call]
                handle = os.open(written, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
                with os.fdopen(handle, "wb") as draft:
                    draft.write(checksum(content) + content)
                written.replace(file)
            finally:
                written.unlink(missing_ok=True)
            self._remove_older(self._folders.store)

    def _file(self, key: Any, sources: list[str], cpu: Cpu) -> str:
        return f"{self._name}{digest(key, sources)[:24]}-{digest(cpu)[:8]}{SUFFIX}"

    def _contents(self, name: str) -> Iterator[bytes]:
        for folder in self._folders.readable:
            with contextlib.suppress(OSError):
                yield read_trusted(folder / name)
        if (content := received(name)) is not None:
            yield content

    def _remove_older(self, store: Path) -> None:
        """Remove files of other sources: at once next to the sources, elsewhere if they are old."""
        kept_until = time.time() - (0 if store.name == "__pycache__" else KEPT_SECONDS)
        for name in os.listdir(store):
            if name.startswith(self._kernel) and name.endswith(SUFFIX) and not name.startswith(self._name):
                with contextlib.suppress(OSError):  # already deleted, or owned by another account
                    if (store / name).stat().st_mtime < kept_until:
                        (store / name).unlink()


def current_files(folders: KernelFolders, package: str) -> dict[str, Path]:
    """The files of a package's kernels that belong to its current sources and to this Numba, by their names."""
    found: dict[str, Path] = {}
    for folder in reversed(folders.readable):
        with contextlib.suppress(OSError):
            for file in folder.glob(f"{package}.*-{PYTHON}.*{SUFFIX}"):
                kernel, _, rest = file.name.rpartition(f"-{PYTHON}.")
                if rest.partition("-")[0] == stamp(kernel.rpartition(".")[0]):
                    found[file.name] = file
    return found


def stamp(module: str) -> str:
    """The part of the names that all kernels of a module share."""
    versions = numba.__version__, llvmlite.__version__
    return digest(*versions, source_digest(module), source_digest(__name__))[:8]


def checksum(content: bytes) -> bytes:
    return zlib.crc32(content).to_bytes(_CHECKSUM_BYTES, "big")


def _open(whole: bytes, key: Any, cpu: Cpu) -> Any:
    try:
        if whole[:_CHECKSUM_BYTES] != checksum(whole[_CHECKSUM_BYTES:]):
            return None
        *kept, data = pickle.loads(whole[_CHECKSUM_BYTES:])
        return data if kept == [key, cpu] else None
    except Exception:  # unpickling may raise anything
        return None
