"""Motions as rows, one after the other in memory, which is how the loops over candidates read them.

A row holds when the motion was so, until when it is looked at, and for each dimension the low side, the high side and
the speeds of both. Two rows are compared as `vedette.motions.meet` has it, from the later of both times on: so the
answer is the same whenever it is asked for.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vedette.kernels import kernel
from vedette.motions import Motions

TIME, UNTIL, SIDES = 0, 1, 2  # columns; from SIDES on four for each dimension


def to_rows(motions: Motions) -> NDArray[np.float64]:
    """Rows that are looked at for no time yet."""
    rows = np.empty((len(motions), SIDES + 4 * motions.n_dims))
    rows[:, TIME] = rows[:, UNTIL] = motions.times
    for d in range(motions.n_dims):
        rows[:, SIDES + 4 * d] = motions.lows[d]
        rows[:, SIDES + 4 * d + 1] = motions.highs[d]
        rows[:, SIDES + 4 * d + 2] = motions.low_speeds[d]
        rows[:, SIDES + 4 * d + 3] = motions.high_speeds[d]
    return rows


def to_motions(rows: NDArray[np.float64]) -> Motions:
    lows, highs, low_speeds, high_speeds = (np.ascontiguousarray(rows[:, SIDES + k :: 4].T) for k in range(4))
    return Motions(lows, highs, low_speeds, high_speeds, rows[:, TIME].copy())


def vanishing_times(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """When each has shrunk to nothing: infinite, where it never does."""
    lows, highs, low_speeds, high_speeds = (rows[:, SIDES + k :: 4] for k in range(4))
    closing = low_speeds - high_speeds
    left = np.where(closing > 0, (highs - lows) / np.where(closing > 0, closing, 1.0), np.inf)
    return rows[:, TIME] + left.min(axis=1)  # type: ignore[no-any-return]


@kernel
def meet_rows(rows: NDArray[np.float64], row: int, others: NDArray[np.float64], other: int) -> tuple[float, float]:
    """The first and the last moment at which two rows intersect, from the later of both times until the earlier end.

    Where they do not, the first is after the last. Shrinking to nothing is not looked at: rows end before.
    """
    start, end = max(rows[row, TIME], others[other, TIME]), min(rows[row, UNTIL], others[other, UNTIL])
    passed, other_passed = start - rows[row, TIME], start - others[other, TIME]
    first, last = 0.0, end - start
    for c in range(SIDES, rows.shape[1], 4):
        low, low_speed = rows[row, c] + rows[row, c + 2] * passed, rows[row, c + 2]
        high, high_speed = rows[row, c + 1] + rows[row, c + 3] * passed, rows[row, c + 3]
        other_low, other_low_speed = others[other, c] + others[other, c + 2] * other_passed, others[other, c + 2]
        other_high, other_high_speed = others[other, c + 1] + others[other, c + 3] * other_passed, others[other, c + 3]
        # As `narrow` in vedette.motions has it, without branches: which of the two it is nobody could guess.
        gap, speed = high - other_low, high_speed - other_low_speed
        moment = -gap / speed
        first = max(first, moment if speed > 0.0 else (0.0 if speed < 0.0 or gap >= 0.0 else np.inf))
        last = min(last, moment if speed < 0.0 else np.inf)
        gap, speed = other_high - low, other_high_speed - low_speed
        moment = -gap / speed
        first = max(first, moment if speed > 0.0 else (0.0 if speed < 0.0 or gap >= 0.0 else np.inf))
        last = min(last, moment if speed < 0.0 else np.inf)
    if first > last:
        return np.inf, -np.inf
    return start + first, end if last >= end - start else min(start + last, end)


@kernel
def find_ended(rows: NDArray[np.float64], lives: NDArray[np.bool_], time: float) -> tuple[NDArray[np.int32], float]:
    """The slots of rows that have ended before a time, and when the first of the others will."""
    slots, n, earliest = np.empty(len(lives), np.int32), 0, np.inf
    for slot in range(len(lives)):
        if lives[slot]:
            end = rows[slot, UNTIL]
            if end < time:
                slots[n] = slot
                n += 1
            else:
                earliest = min(earliest, end)
    return slots[:n].copy(), earliest
