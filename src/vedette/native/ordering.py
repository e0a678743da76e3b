"""Maps doubles to integers in Spark's order, in which NaN is the greatest and equal to itself, and -0.0 equals 0.0."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vedette.native.kernels import kernel

NAN_KEY = 0x7FF8000000000000
LEAST_INFINITE, GREATEST_INFINITE = -0x7FF0000000000001, 0x7FF0000000000000  # the keys of both infinities
LEAST, GREATEST = -(1 << 63), (1 << 63) - 1  # smaller and larger than all keys
_MASK = 0x7FFFFFFFFFFFFFFF


@kernel
def key_of_double(value: float) -> int:
    """The key of a double: keys compare as doubles do in Spark."""
    if value != value:
        return NAN_KEY
    bits = np.float64(value + 0.0).view(np.int64)
    return bits ^ ((bits >> 63) & _MASK)  # type: ignore[return-value]


@kernel
def double_of_key(key: int) -> float:
    """The double with this key."""
    return np.int64(key ^ ((key >> 63) & _MASK)).view(np.float64)


def keys_of_doubles(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """The key of each double."""
    bits = (values + 0.0).view(np.int64)
    keys = bits ^ ((bits >> 63) & _MASK)
    return np.where(np.isnan(values), NAN_KEY, keys)
