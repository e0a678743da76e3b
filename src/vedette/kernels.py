"""The one decorator under which compiled loops stand.

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

Function = TypeVar("Function", bound=Callable[..., object])


def kernel(function: Function) -> Function:
    if config.DISABLE_JIT:  # type: ignore[attr-defined]
        return _plain(function)
    compiled: Any = numba.njit(cache=True, nogil=True, error_model="numpy")(function)
    return compiled  # type: ignore[no-any-return]


def _plain(function: Function) -> Function:
    """The function as it is, but silent where hashes wrap around or infinities meet, as compiled ones are."""

    @functools.wraps(function)
    def call(*arguments: Any) -> Any:
        with np.errstate(over="ignore", invalid="ignore"):
            return function(*arguments)

    return call  # type: ignore[return-value]
