"""What a kernel's code is made of: digests of the sources and constants that it contains.

They depend on contents, not on paths or times of files, so a copy of the package finds the kernels of another one.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import sys
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any

import numpy as np
from numba.core.dispatcher import Dispatcher


def digest(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def made_of(function: Callable[..., object]) -> list[str]:
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
                found.add(f"{module} {source_digest(module)}")
            if isinstance(value, bool | int | float | str | tuple):
                found.add(f"{each.__module__}.{name} {value!r}")
            elif isinstance(value, np.ndarray | np.generic):
                found.add(f"{each.__module__}.{name} {digest(value.dtype, value.shape, value.tobytes())}")
    return sorted(found)


@functools.cache
def note_sources(module: str) -> None:
    """Compute the digests of all sources of a module's kernels now: the files may change after the import."""
    source_digest(module)
    for value in tuple(vars(sys.modules[module]).values()):
        if (other := _defined_in(value, module)) is not None:
            source_digest(other)


@functools.cache
def source_digest(module: str) -> str:
    """The digest of a module's current file; empty for a module without a file, as in a prompt."""
    loaded: Any = sys.modules.get(module)
    try:
        spec: Any = getattr(loaded, "__spec__", None) or importlib.util.find_spec(module)
        return hashlib.sha256(spec.loader.get_data(spec.origin)).hexdigest()
    except (ImportError, AttributeError, ValueError, OSError, TypeError):  # no file, or not a module
        return ""


def _names(code: CodeType) -> Iterator[str]:
    """Names of globals that the code and its inner functions may read."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _defined_in(value: object, user: str) -> str | None:
    """The module of a kernel, intrinsic or class, if it belongs to this package or to the package of the user."""
    module = getattr(value, "__module__", None)
    packages = {name.partition(".")[0] for name in (__name__, user)}
    return module if isinstance(module, str) and module.partition(".")[0] in packages else None
