"""Late rows: rows whose time is before the time that the join has reached.

The option `late` says what happens to them. "apply": a late row is applied now, at the place where its motion has
brought the object. It is dropped if a newer row of its object is known, or if it is late by more than the update
interval, since the object must have sent a newer one. Removals, and rows of a static set, may be late by any time.
"drop": all late rows are dropped. "error": a late row is an error.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from vedette.data.ids import item
from vedette.errors import RowError, count, shown
from vedette.operators.moving_join.motion_rows import FARTHEST, SIDES, TIME
from vedette.operators.moving_join.moving_set import MovingSet
from vedette.operators.moving_join.rows import MovingRows

Late = Literal["apply", "drop", "error"]
LATE = ("apply", "drop", "error")


def take_rows(rows: MovingRows, of: MovingSet, now: float, late: str, name: str) -> tuple[MovingRows, int]:
    """The rows that are applied to a set at `now` or later, and how many are dropped.

    If rows are late, all are ordered by the times that they report.
    """
    if not len(rows) or rows.times.min() >= now:
        return rows, 0
    is_late = rows.times < now
    n_late = int(np.count_nonzero(is_late))
    if late == "error":
        first = int(np.argmin(rows.times))
        raise RowError(
            f"is 'error', and {count(n_late, 'row')} of set {name} came late: the first has time {rows.times[first]:g} "
            f"and id {shown(item(rows.ids, first))}, and the join is at {now:g}; use 'apply' or 'drop' to continue",
            option="late",
        )
    is_taken = ~is_late
    if late == "apply":
        places = np.flatnonzero(is_late)
        is_taken[places] = _is_newer(rows.take(places), of, now)
    places = np.flatnonzero(is_taken)
    taken = rows.take(places[np.argsort(rows.times[places], kind="stable")])
    return _moved_to(taken, now, name), len(rows) - len(taken)


def _is_newer(late: MovingRows, of: MovingSet, now: float) -> NDArray[np.bool_]:
    """Which late rows are newer than the last row of their object, and not too late."""
    is_newer: NDArray[np.bool_] = late.times >= of.find_reported(late.ids)
    if not of.is_static:
        is_newer &= late.removed | (late.times >= now - of.interval)
    return is_newer


def _moved_to(taken: MovingRows, now: float, name: str) -> MovingRows:
    """The rows, with late ones at their positions now. Objects that have vanished by now are removed."""
    rows, removed = taken.rows.copy(), taken.removed.copy()
    passed = np.maximum(now - rows[:, TIME], 0.0)[:, None]
    for k in range(2):
        rows[:, SIDES + k :: 4] += rows[:, SIDES + k + 2 :: 4] * passed
    is_far = (np.abs(rows[:, SIDES:]) > FARTHEST).any(axis=1) & ~removed
    if is_far.any():
        far = item(taken.ids, int(np.argmax(is_far)))
        raise RowError(
            f"a late row of set {name}, id {shown(far)}, has moved beyond {FARTHEST:g} by {now:g}; use smaller speeds"
        )
    removed |= (rows[:, SIDES::4] > rows[:, SIDES + 1 :: 4]).any(axis=1)
    rows[:, TIME] = np.maximum(rows[:, TIME], now)
    return replace(taken, rows=rows, removed=removed)
