"""The one decorator under which compiled loops stand.

A kernel is a free function over NumPy arrays. It releases the GIL and is cached on disk, so a process with a warm cache
starts without compiling. With NUMBA_DISABLE_JIT=1 kernels are plain Python, slow and steppable.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba

Function = TypeVar("Function", bound=Callable[..., object])


def kernel(function: Function) -> Function:
    compiled: Any = numba.njit(cache=True, nogil=True, error_model="numpy")(function)
    return compiled  # type: ignore[no-any-return]
