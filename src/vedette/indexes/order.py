"""Rows of a large batch in the order of the index, so that each part of it is fetched once for all rows that need it.

Lim et al., section 5, cluster a batch of data elements for the same reason.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vedette.kernels import kernel

MAX_BINS = 1 << 14


def order_rows(keys: NDArray[np.int32], n_keys: int) -> NDArray[np.int32]:
    """The rows by ascending key, where keys are below `n_keys`; coarsely, where there are more keys than bins."""
    shift = max(0, (n_keys - 1).bit_length() - MAX_BINS.bit_length() + 1)
    return _order_rows(keys, shift, ((n_keys - 1) >> shift) + 1)


@kernel
def _order_rows(keys: NDArray[np.int32], shift: int, n_bins: int) -> NDArray[np.int32]:
    """A stable counting sort by the high bits of the keys."""
    ends = np.zeros(n_bins + 1, np.int64)
    for i in range(len(keys)):
        ends[(keys[i] >> shift) + 1] += 1
    for b in range(n_bins):
        ends[b + 1] += ends[b]
    order = np.empty(len(keys), np.int32)
    for i in range(len(keys)):
        b = keys[i] >> shift
        order[ends[b]] = i
        ends[b] += 1
    return order
