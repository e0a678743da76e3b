"""The decorator for all compiled loops.

A kernel is a free function over NumPy arrays. It releases the GIL and is cached on disk, so a process with a warm cache
starts without compiling. With NUMBA_DISABLE_JIT=1 kernels are plain Python, slow and steppable.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import pickle
import sys
import uuid
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType
from typing import Any, TypeVar

import numba
import numpy as np
from numba.core import config
from numba.core.dispatcher import Dispatcher
from numba.core.serialize import dumps

from vedette.native.kernel_folder import choose_folder, read_trusted

Function = TypeVar("Function", bound=Callable[..., object])
Arrays = TypeVar("Arrays", bound=tuple[Any, ...])
_CHECKSUM_BYTES = 4


def kernel(function: Function) -> Function:
    if config.DISABLE_JIT:  # type: ignore[attr-defined]
        return _plain(function)
    compile_: Any = functools.partial(numba.njit, nogil=True, error_model="numpy")
    try:
        compiled = compile_(cache=True)(function)
    except (RuntimeError, OSError):  # no file can be written next to the source or in the user's folder
        return compile_()(function)  # type: ignore[no-any-return]
    return compiled if _keep_in_files(compiled, function) else compile_()(function)  # type: ignore[no-any-return]


def plain_tuple(arrays: Arrays) -> Arrays:
    """A NamedTuple of arrays as a plain tuple, for the call of a kernel that unpacks it.

    At every call Numba tells a NamedTuple by the names of its fields, which costs 0.1 microseconds per field; a plain
    tuple by its types alone. For mypy both are the same. A kernel that reads a field by its name does not compile then.
    """
    return tuple(arrays)  # type: ignore[return-value]


def _keep_in_files(compiled: Any, function: Callable[..., object]) -> bool:
    """Cache a kernel in `KernelFiles`, in a safe folder. Returns whether it is cached in a safe folder at all."""
    cache = compiled._cache
    folder = choose_folder(cache.cache_path)
    numbered: Any = getattr(cache, "_cache_file", None)
    if folder is None or not hasattr(numbered, "_source_stamp"):  # a Numba that stores its files differently
        return folder is not None and folder == Path(cache.cache_path)
    cache._cache_file = KernelFiles(function, folder, cache._impl.filename_base, numbered._source_stamp)
    cache._impl.locator.ensure_cache_path = lambda: None  # Numba's own folder may be another one: do not create it
    cache._impl.rebuild = functools.partial(_rebuild, cache._impl.rebuild)
    return True


def _rebuild(rebuild: Callable[..., Any], *arguments: Any) -> Any:
    """A kernel from its file, or None: then it is compiled again."""
    try:
        return rebuild(*arguments)
    except Exception:  # this Numba or this machine cannot use the file
        return None


def _plain(function: Function) -> Function:
    """The plain function, without warnings about overflow and invalid operations, like compiled ones."""

    @functools.wraps(function)
    def call(*arguments: Any) -> Any:
        with np.errstate(over="ignore", invalid="ignore"):
            return function(*arguments)

    return call  # type: ignore[return-value]


class KernelFiles:
    """The cache of one kernel: a file per signature, whose name depends on everything that its code was made of.

    Numba's own files have numbers, which an index assigns without a lock. If two processes compile two signatures
    concurrently, both may get the same number, and one signature then runs the code of the other. Numba's files also
    depend on the source of the kernel alone, although they contain code and constants of other modules.
    """

    def __init__(self, function: Callable[..., object], folder: Path, name: str, source_stamp: object) -> None:
        _note_sources(function.__module__)
        self._function, self._folder = function, folder
        self._name = f"{name}.{_digest(numba.__version__, source_stamp, _source_digest(__name__))[:8]}-"
        self._older = f"{name}."

    def load(self, key: Any) -> Any:
        """The data saved under the key, or None: a missing, unsafe, damaged or foreign file is ignored."""
        try:
            whole = read_trusted(self._file(key))
            if whole[:_CHECKSUM_BYTES] != _checksum(whole[_CHECKSUM_BYTES:]):
                return None
            kept, data = pickle.loads(whole[_CHECKSUM_BYTES:])
            return data if kept == key else None
        except Exception:  # unpickling may raise anything
            return None

    def save(self, key: Any, data: Any) -> None:
        """Write a file atomically, and remove those of an older source. If that is impossible, nothing is stored."""
        file = self._file(key)
        written = file.with_name(f"{file.name}.{uuid.uuid4().hex[:16]}")
        with contextlib.suppress(OSError):
            try:
                content: bytes = dumps((key, data))  # type: ignore[no-untyped-call]
                handle = os.open(written, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
                with os.fdopen(handle, "wb") as draft:
                    draft.write(_checksum(content) + content)
                written.replace(file)
            finally:
                written.unlink(missing_ok=True)
            self._remove(lambda name: not name.startswith(self._name))

    def flush(self) -> None:
        self._remove(lambda name: True)

    def _file(self, key: Any) -> Path:
        return self._folder / f"{self._name}{_digest(key, sorted(_made_of(self._function)))[:24]}.nbc"

    def _remove(self, is_old: Callable[[str], bool]) -> None:
        for name in os.listdir(self._folder):
            if name.startswith(self._older) and name.endswith((".nbc", ".nbi")) and is_old(name):
                with contextlib.suppress(OSError):  # already deleted, or owned by another account
                    (self._folder / name).unlink()


def _checksum(content: bytes) -> bytes:
    return zlib.crc32(content).to_bytes(_CHECKSUM_BYTES, "big")


def _digest(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def _made_of(function: Callable[..., object]) -> set[str]:
    """The sources and constants that a kernel's code contains, including those of the kernels that it calls."""
    found = set()
    left: list[Any] = [function]
    seen = {function}
    while left:
        each = left.pop()
        for name in set(_names(each.__code__)) & each.__globals__.keys():
            value = each.__globals__[name]
            if isinstance(value, Dispatcher):
                value = value.py_func
                if value not in seen:
                    seen.add(value)
                    left.append(value)
            if (module := _defined_in(value, function.__module__)) is not None:
                found.add(f"{module} {_source_digest(module)}")
            if isinstance(value, bool | int | float | str | tuple):
                found.add(f"{each.__module__}.{name} {value!r}")
            elif isinstance(value, np.ndarray | np.generic):
                found.add(f"{each.__module__}.{name} {_digest(value.dtype, value.shape, value.tobytes())}")
    return found


def _names(code: CodeType) -> Iterator[str]:
    """Names of globals that the code and its inner functions may read."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


@functools.cache
def _note_sources(module: str) -> None:
    """Compute the digests of all sources of a module's kernels now: the files may change after the import."""
    for value in tuple(vars(sys.modules[module]).values()):
        if (other := _defined_in(value, module)) is not None:
            _source_digest(other)


def _defined_in(value: object, user: str) -> str | None:
    """The module of a kernel, intrinsic or class, if it belongs to this package or to the package of the user."""
    module = getattr(value, "__module__", None)
    packages = {name.partition(".")[0] for name in (__name__, user)}
    return module if isinstance(module, str) and module.partition(".")[0] in packages else None


@functools.cache
def _source_digest(module: str) -> str:
    """The digest of a module's current file; empty for a module without a file, as in a prompt."""
    loaded: Any = sys.modules.get(module)
    file = getattr(loaded, "__file__", None)
    if file is None:
        return ""
    is_archived = not Path(file).exists()
    return hashlib.sha256(loaded.__loader__.get_data(file) if is_archived else Path(file).read_bytes()).hexdigest()
