"""Memory for arrays: output from Arrow's pool, whose pages are already mapped, and arrays that grow.

Small arrays come from NumPy: their pages are mapped, too, and allocating one takes a fifth of the time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vedette.native.budget import BOUND, OverBudgetError

SMALL = 1 << 16  # bytes


def empty_int8(n: int) -> NDArray[np.int8]:
    """A writable array of `n` arbitrary values. Its memory goes back to the pool with the last view of it."""
    return np.frombuffer(pa.allocate_buffer(n), dtype=np.int8)


def empty_int32(n: int) -> NDArray[np.int32]:
    """A writable array of `n` arbitrary values. Its memory goes back to the pool with the last view of it."""
    if 4 * n <= SMALL:
        return np.empty(n, np.int32)
    return np.frombuffer(pa.allocate_buffer(4 * n), dtype=np.int32)


def output_int32(n: int) -> NDArray[np.int32]:
    """As `empty_int32`, for parts of an answer. Raises OverBudgetError if it exceeds the bound."""
    if 4 * n > BOUND.n_bytes:
        raise OverBudgetError(4 * n)
    return empty_int32(n)


def empty_int64(n: int) -> NDArray[np.int64]:
    """A writable array of `n` arbitrary values. Its memory goes back to the pool with the last view of it."""
    if 8 * n <= SMALL:
        return np.empty(n, np.int64)
    return np.frombuffer(pa.allocate_buffer(8 * n), dtype=np.int64)


def grown(array: NDArray[Any], used: int, needed: int) -> NDArray[Any]:
    """The array if it is large enough, else a larger copy padded with zeros. Views of the old array stay valid."""
    if needed <= len(array):
        return array
    larger = np.zeros(max(needed, used + used // 2), array.dtype)
    larger[:used] = array[:used]
    return larger
