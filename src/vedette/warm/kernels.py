"""Compiles all kernels of the product ahead of time, into the folder where later processes look for them.

A process of its own compiles, because Numba compiles all code of a process for one CPU. If another account will run the
kernels, it can read them: it trusts files of root that no other account can write to.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from numba.core import config

from vedette.errors import FileError
from vedette.host_files.private_files import write_whole
from vedette.native.kernel_cache import package_folders
from vedette.native.kernel_files import current_files
from vedette.native.portable_cpu import portable_cpu

CPUS = ("portable", "native")
_PACKAGE = __name__.partition(".")[0]


@dataclass(frozen=True)
class Progress:
    """What one workload did."""

    workload: str
    seconds: float
    compiled: int
    loaded: int  # they existed already


@dataclass(frozen=True)
class Warmed:
    """All compiled kernels, and where they are."""

    folder: Path
    cpu: str
    n_files: int
    n_compiled: int


def warm_kernels(cpu: str = "portable", tell: Callable[[Progress], None] = lambda _: None) -> Warmed:
    """Compile what is missing: for every CPU with the usual features ("portable"), or for this one only ("native")."""
    name = _choose_cpu(cpu)
    folders = package_folders(_PACKAGE)
    if folders.store is None:
        raise FileError(
            "no folder for compiled kernels: a folder must be writable, and other accounts must not be able to write "
            "to it or its parents; set NUMBA_CACHE_DIR to such a folder"
        )
    n_compiled = _compile(name, tell)
    kept = {}
    for name_of_file, file in current_files(folders, _PACKAGE).items():
        kept[name_of_file] = folders.store / name_of_file
        if file.parent != folders.store:
            write_whole(kept[name_of_file], file.read_bytes())
    _let_others_read(folders.store, list(kept.values()))
    return Warmed(folders.store, name or "this CPU", len(kept), n_compiled)


def _choose_cpu(cpu: str) -> str | None:
    """The name of the CPU to compile for; None for this one."""
    if config.DISABLE_JIT:  # type: ignore[attr-defined]
        raise FileError("NUMBA_DISABLE_JIT is set, so nothing is compiled; unset it")
    if cpu not in CPUS:
        raise FileError(f"must be one of: {', '.join(map(repr, CPUS))}; got {cpu!r}", option="cpu")
    if cpu == "native":
        return None
    portable = portable_cpu()
    if portable is None:
        raise FileError("is 'portable', which exists for x86-64 and ARM only; use 'native'", option="cpu")
    name, lacking = portable
    if lacking:
        raise FileError(
            f"is 'portable', but this CPU lacks {', '.join(lacking)}, so it cannot run code for {name}; use 'native'",
            option="cpu",
        )
    return name


def _compile(cpu: str | None, tell: Callable[[Progress], None]) -> int:
    """Run the workloads in another process; returns how many kernels were compiled."""
    chosen = {} if cpu is None else {"NUMBA_CPU_NAME": cpu, "NUMBA_CPU_FEATURES": ""}
    command = [sys.executable, "-m", "vedette.warm.child"]
    n_compiled = 0
    with subprocess.Popen(
        command, env=os.environ | chosen | {"VEDETTE_THREADS": "1"}, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        for line in child.stdout:
            progress = Progress(**json.loads(line))
            n_compiled += progress.compiled
            tell(progress)
    if child.returncode:
        raise FileError(f"the process that compiles ended with code {child.returncode}; its messages are above")
    return n_compiled


def _let_others_read(folder: Path, files: list[Path]) -> None:
    """Let other accounts read the kernels. They contain code of this package, and no data."""
    for path, mode in ((folder, 0o755), *((file, 0o644) for file in files)):
        if path.stat().st_uid == os.geteuid():
            path.chmod(mode)
