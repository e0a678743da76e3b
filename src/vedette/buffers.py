"""Output arrays from Arrow's memory pool, which keeps pages warm: first touch costs more than a probe."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


def empty_int32(n: int) -> NDArray[np.int32]:
    """A writable array of `n` arbitrary values. Its memory goes back to the pool with the last view of it."""
    return np.frombuffer(pa.allocate_buffer(4 * n), dtype=np.int32)


def empty_int64(n: int) -> NDArray[np.int64]:
    """A writable array of `n` arbitrary values. Its memory goes back to the pool with the last view of it."""
    return np.frombuffer(pa.allocate_buffer(8 * n), dtype=np.int64)
