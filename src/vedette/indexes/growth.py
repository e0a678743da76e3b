"""Matches of unknown number, written row by row in one pass into a buffer that grows as needed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from vedette.data.matches import Matches
from vedette.native.budget import BOUND, OverBudgetError
from vedette.native.buffers import empty_int32, empty_int64

FIRST_ROOM = 1 << 20  # the rate at which it fills gives an estimate for all rows

# Writes the matches of rows from the given one on while there is room; returns the row at which it stopped.
Fill = Callable[[int, NDArray[np.int64], NDArray[np.int32]], int]


def collect(n_rows: int, most: int, fill: Fill) -> Matches:
    """The matches of all rows. `fill` continues while there is room for `most` more."""
    starts = empty_int64(n_rows + 1)
    starts[0] = 0
    most_room = most + BOUND.n_bytes // 4  # the last row may exceed the bound, so that a single row always fits
    positions = empty_int32(min(most + min(64 * n_rows, FIRST_ROOM), most_room))
    done = fill(0, starts, positions)
    while done < n_rows:
        found = int(starts[done])
        if len(positions) == most_room:
            raise OverBudgetError(4 * found * n_rows // done)
        larger = empty_int32(min(int(found / done * n_rows * 1.05) + 2 * most, most_room))
        larger[:found] = positions[:found]
        positions = larger
        done = fill(done, starts, positions)
    found = int(starts[-1])
    return Matches(starts, positions[:found] if 2 * found >= len(positions) else positions[:found].copy())
