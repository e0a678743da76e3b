"""Motions as rows, because the loops over candidates read all numbers of a motion together.

A row holds the time of the motion, its end, until which it is used, and for each dimension the low side, the high side
and the speeds of both. Two rows are compared from the later of both times on, so the answer does not depend on when it
is computed.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vedette.native.kernels import kernel
from vedette.operators.moving_join.motions import Motions

Doubles = NDArray[np.float64]
Int32s = NDArray[np.int32]

TIME, UNTIL, SIDES = 0, 1, 2  # columns; from SIDES on four for each dimension
FARTHEST = 1e100  # the largest time, side and speed, so that products of two are finite


def to_rows(motions: Motions) -> Doubles:
    """Rows that end at their own time."""
    rows = np.empty((len(motions), SIDES + 4 * motions.n_dims))
    rows[:, TIME] = rows[:, UNTIL] = motions.times
    for d in range(motions.n_dims):
        rows[:, SIDES + 4 * d] = motions.lows[d]
        rows[:, SIDES + 4 * d + 1] = motions.highs[d]
        rows[:, SIDES + 4 * d + 2] = motions.low_speeds[d]
        rows[:, SIDES + 4 * d + 3] = motions.high_speeds[d]
    return rows


def to_motions(rows: Doubles) -> Motions:
    lows, highs, low_speeds, high_speeds = (np.ascontiguousarray(rows[:, SIDES + k :: 4].T) for k in range(4))
    return Motions(lows, highs, low_speeds, high_speeds, rows[:, TIME].copy())


def vanishing_times(rows: Doubles) -> Doubles:
    """When each motion vanishes: infinite if never."""
    lows, highs, low_speeds, high_speeds = (rows[:, SIDES + k :: 4] for k in range(4))
    closing = low_speeds - high_speeds
    left = np.where(closing > 0, (highs - lows) / np.where(closing > 0, closing, 1.0), np.inf)
    return rows[:, TIME] + left.min(axis=1)  # type: ignore[no-any-return]


@kernel
def meet_rows(rows: Doubles, row: int, others: Doubles, other: int) -> tuple[float, float]:
    """The first and the last moment at which two rows intersect, from the later of both times until the earlier end.

    If they do not intersect, the last moment is -inf. A row ends before it vanishes, so vanishing is not checked here.
    There are no branches, because they would be mispredicted, and no early exit: four divisions are faster.
    """
    start, end = max(rows[row, TIME], others[other, TIME]), min(rows[row, UNTIL], others[other, UNTIL])
    passed, other_passed = start - rows[row, TIME], start - others[other, TIME]
    first, last = 0.0, end - start
    for c in range(SIDES, rows.shape[1], 4):
        low_speed, high_speed = rows[row, c + 2], rows[row, c + 3]
        other_low_speed, other_high_speed = others[other, c + 2], others[other, c + 3]
        gap = (rows[row, c + 1] + high_speed * passed) - (others[other, c] + other_low_speed * other_passed)
        first, last = _narrow(first, last, gap, high_speed - other_low_speed)
        gap = (others[other, c + 1] + other_high_speed * other_passed) - (rows[row, c] + low_speed * passed)
        first, last = _narrow(first, last, gap, other_high_speed - low_speed)
    moment = start + last
    moment = moment if moment < end else end
    moment = end if last >= end - start else moment
    return min(start + first, end), -np.inf if first > last else moment


@kernel
def _narrow(first: float, last: float, gap: float, speed: float) -> tuple[float, float]:
    """The part of [first, last] in which a gap that is `gap` at 0 and grows by `speed` is not negative."""
    moment = -gap / (1.0 if speed == 0.0 else speed)
    begin = -np.inf if speed <= 0.0 else moment
    begin = np.inf if (speed == 0.0) & (gap < 0.0) else begin
    end = np.inf if speed >= 0.0 else moment
    return begin if begin > first else first, end if end < last else last


@kernel
def set_ends(rows: Doubles, slots: Int32s, interval: float, now: float, renews: bool, is_static: bool) -> float:
    """Set the ends of rows; the earliest end.

    A row ends an interval after its time. If rows renew, intervals are added until `now` is reached. A static row that
    does not move has no end. No row ends after it vanishes.
    """
    earliest = np.inf
    for i in range(len(slots)):
        slot = slots[i]
        time = rows[slot, TIME]
        end = time + interval
        if renews and end < now:
            end = time + np.ceil((now - time) / interval) * interval
            end = end if end >= now else end + interval
        moves, vanishes = False, np.inf
        for c in range(SIDES, rows.shape[1], 4):
            moves |= (rows[slot, c + 2] != 0.0) | (rows[slot, c + 3] != 0.0)
            closing = rows[slot, c + 2] - rows[slot, c + 3]
            if closing > 0.0:
                vanishes = min(vanishes, (rows[slot, c + 1] - rows[slot, c]) / closing)
        if is_static and not moves:
            end = np.inf
        rows[slot, UNTIL] = min(end, time + vanishes)
        earliest = min(earliest, rows[slot, UNTIL])
    return earliest
