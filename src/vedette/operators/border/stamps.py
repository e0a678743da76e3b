"""Stamps: a mark per query for the time of one comparison, from a buffer that each thread keeps.

A buffer for a million queries takes longer to allocate and to clear than a comparison of a few rows. So whoever marks
queries clears these marks, and the buffer is all zeros whenever it is kept.
"""

from __future__ import annotations

import threading

import numpy as np
from numpy.typing import NDArray

from vedette.native.kernels import kernel

MOST_BYTES = 1 << 24  # a larger buffer is not kept
FEW = 8  # if there are so many times more stamps than marked queries, only those are cleared


class _Kept(threading.local):
    stamps: NDArray[np.int32] | None = None


_KEPT = _Kept()


def take_stamps(n: int) -> NDArray[np.int32]:
    """Zeros for at least `n` queries."""
    stamps, _KEPT.stamps = _KEPT.stamps, None
    return np.zeros(n, np.int32) if stamps is None or len(stamps) < n else stamps


def keep_stamps(stamps: NDArray[np.int32]) -> None:
    """Keep a buffer of zeros for the next time. After an error it is not given here, as it may have marks."""
    if stamps.nbytes <= MOST_BYTES:
        _KEPT.stamps = stamps


@kernel
def clear_stamps(stamps: NDArray[np.int32], queries: NDArray[np.int32], first_query: int) -> None:
    """Clear the marks of these queries."""
    if FEW * len(queries) > len(stamps):
        stamps[:] = 0
    else:
        for query in queries:
            stamps[query - first_query] = 0
