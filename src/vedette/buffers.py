"""Memory for large results, taken from Arrow's pool.

The first touch of fresh pages costs more than filling them; Arrow's pool keeps pages warm from one batch to the next.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import DTypeLike, NDArray

_SMALL_BYTES = 1 << 16  # below this NumPy's own allocation is quicker


def empty(n: int, dtype: DTypeLike) -> NDArray[Any]:
    """An uninitialised array of `n` values."""
    n_bytes = n * np.dtype(dtype).itemsize
    if n_bytes < _SMALL_BYTES:
        return np.empty(n, dtype)
    return np.frombuffer(pa.allocate_buffer(n_bytes), dtype)
