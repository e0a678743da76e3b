"""Arrays of entries ordered by key. When entries are inserted or removed, those after them move.

`places[key]` is where the entries of a key begin. A change costs its own size, and one move of the arrays from the
first changed entry on. Nothing is sorted again.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vedette.native.kernels import kernel

FEW = 64  # arrays with fewer entries do not shrink


def fit(array: NDArray[Any], axis: int, n_used: int, n_needed: int) -> NDArray[Any]:
    """The array, or a copy of its used part, with room for this many entries on that axis.

    An array without room grows by at least half. One that would be three quarters empty shrinks.
    """
    n_room = array.shape[axis]
    if n_needed <= n_room <= 4 * n_needed + FEW:
        return array
    n_new = n_needed if n_room > n_needed else max(n_needed, n_used + n_used // 2)
    shape = list(array.shape)
    shape[axis] = n_new
    fitted = np.zeros(shape, array.dtype)
    used = (slice(None),) * axis + (slice(min(n_used, n_new)),)
    fitted[used] = array[used]
    return fitted


@kernel
def open_gaps(values: NDArray[np.int32], n: int, places: NDArray[np.int64], new_values: NDArray[np.int32]) -> None:
    """Insert each new value before the value at its place. Places are ascending, and there is room."""
    end = n
    for i in range(len(places) - 1, -1, -1):
        for place in range(end - 1, places[i] - 1, -1):
            values[place + i + 1] = values[place]
        values[places[i] + i] = new_values[i]
        end = places[i]


@kernel
def close_gaps(values: NDArray[np.int32], n: int, places: NDArray[np.int64]) -> None:
    """Remove the values at these places, which are ascending, from the first `n`."""
    for i in range(len(places)):
        end = places[i + 1] if i + 1 < len(places) else n
        for place in range(places[i] + 1, end):
            values[place - i - 1] = values[place]


@kernel
def move_places(places: NDArray[np.int32], keys: NDArray[np.int64], sign: int, n_before: int) -> None:
    """Update places for inserted (1) or removed (-1) entries with these ascending keys, `n_before` before all."""
    n = 0
    first = 0
    if n_before == 0 and len(keys) > 0:
        first = keys[0]
    for key in range(first, len(places)):
        while n < len(keys) and keys[n] < key:
            n += 1
        places[key] += sign * (n_before + n)
