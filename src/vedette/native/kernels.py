"""The decorator for all compiled loops.

A kernel is a free function over NumPy arrays. It releases the GIL and is cached on disk, so a process with a warm cache
starts without compiling. With NUMBA_DISABLE_JIT=1 kernels are plain Python, slow and steppable.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import numba
import numpy as np
from numba.core import config

from vedette.native.kernel_cache import make_cache

Function = TypeVar("Function", bound=Callable[..., object])
Arrays = TypeVar("Arrays", bound=tuple[Any, ...])


def kernel(function: Function) -> Function:
    if config.DISABLE_JIT:  # type: ignore[attr-defined]
        return _plain(function)
    compiled: Any = numba.njit(nogil=True, error_model="numpy")(function)
    cache = make_cache(function)
    if cache is not None:
        compiled._cache = cache
    return compiled  # type: ignore[no-any-return]


def plain_tuple(arrays: Arrays) -> Arrays:
    """A NamedTuple of arrays as a plain tuple, for the call of a kernel that unpacks it.

    At every call Numba tells a NamedTuple by the names of its fields, which costs 0.1 microseconds per field; a plain
    tuple by its types alone. For mypy both are the same. A kernel that reads a field by its name does not compile then.
    """
    return tuple(arrays)  # type: ignore[return-value]


def _plain(function: Function) -> Function:
    """The plain function, without warnings about overflow and invalid operations, like compiled ones."""

    @functools.wraps(function)
    def call(*arguments: Any) -> Any:
        with np.errstate(over="ignore", invalid="ignore"):
            return function(*arguments)

    return call  # type: ignore[return-value]
