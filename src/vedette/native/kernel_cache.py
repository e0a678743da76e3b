"""The cache of one kernel, as Numba's dispatcher calls it."""

from __future__ import annotations

import hashlib
import itertools
import os
import secrets
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba.core.bytecode import FunctionIdentity
from numba.core.caching import _Cache
from numba.core.compiler import CompileResult
from numba.core.runtime.nrt import rtsys
from numba.core.serialize import dumps

from vedette.native.kernel_files import Cpu, KernelFiles
from vedette.native.kernel_folder import KernelFolders, find_folders
from vedette.native.kernel_sources import source_digest
from vedette.native.portable_cpu import portable_cpu

counts = {"loaded": 0, "compiled": 0}  # kernels of this process, by where they came from


def _start_numbers() -> None:
    """Let the names of functions that this process compiles differ from those of all other processes.

    A name contains a number that Numba counts from 1 in each process. A process that loads the kernels of two others
    may then have two functions of one name, and Numba gives both the constants of the first.
    """
    FunctionIdentity._unique_ids = itertools.count(secrets.randbits(60))


_start_numbers()
os.register_at_fork(after_in_child=_start_numbers)


class KernelCache(_Cache):
    """Loads compiled kernels for this CPU, otherwise portable ones; stores those that Numba compiles."""

    def __init__(self, function: Callable[..., object], folders: KernelFolders) -> None:
        self._function, self._folders = function, folders
        self._files = KernelFiles(function, folders)

    @property
    def cache_path(self) -> str | None:
        return None if self._folders.store is None else str(self._folders.store)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        rtsys.initialize(target_context)  # what allocates arrays; not `refresh`, which imports all that compiles code
        key, cpu = self._key(sig, target_context.codegen())
        data = self._files.load(key, _usable(cpu))
        if data is None:
            return None
        try:
            found = CompileResult._rebuild(target_context, *data)  # type: ignore[no-untyped-call]
        except Exception:  # this Numba or this machine cannot use the file
            return None
        counts["loaded"] += 1
        return found

    def save_overload(self, sig: Any, cres: Any) -> None:
        counts["compiled"] += 1
        if not cres.library.has_dynamic_globals and all(each.can_cache for each in cres.lifted):
            key, cpu = self._key(sig, cres.codegen)
            self._files.save(key, cpu, cres._reduce())

    def enable(self) -> None:
        pass

    def disable(self) -> None:
        pass

    def flush(self) -> None:
        pass

    def _key(self, sig: Any, codegen: Any) -> tuple[Any, Cpu]:
        """What a kernel's file depends on besides its sources: all but the CPU, and the CPU."""
        triple, name, features = codegen.magic_tuple()
        cells = tuple(cell.cell_contents for cell in self._function.__closure__ or ())
        code = self._function.__code__.co_code, dumps(cells) if cells else b""  # type: ignore[no-untyped-call]
        return (sig, triple, *(hashlib.sha256(each).hexdigest() for each in code)), (name, features)


def make_cache(function: Callable[..., object]) -> KernelCache | None:
    """The cache of a kernel; None if its source is not a file, or if no folder is safe."""
    if not source_digest(function.__module__):
        return None
    folders = package_folders(function.__module__.partition(".")[0])
    return KernelCache(function, folders) if folders.readable else None


def package_folders(package: str) -> KernelFolders:
    """The folders for the kernels of an imported package."""
    file = getattr(sys.modules[package], "__file__", None)
    return find_folders(package, None if file is None else Path(file).parent)


def _usable(own: Cpu) -> list[Cpu]:
    """The CPUs whose code this host can run, the best first."""
    portable = portable_cpu()
    if portable is None or portable[1] or own == (portable[0], ""):
        return [own]
    return [own, (portable[0], "")]
