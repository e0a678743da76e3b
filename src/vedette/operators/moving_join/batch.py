"""A batch of rows of both sets, ready for the join: without dropped late rows, and cut into moments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vedette.data.ids import take_ids
from vedette.operators.moving_join.join import IntersectionJoin, Step
from vedette.operators.moving_join.late_rows import take_rows
from vedette.operators.moving_join.rows import MovingRows

SETS = ("a", "b")


@dataclass(frozen=True)
class Batch:
    """The rows that are applied, and the moments at which time stops: at least those of all rows."""

    join: IntersectionJoin
    rows: tuple[MovingRows, MovingRows]
    moments: NDArray[np.float64]
    n_dropped: tuple[int, int]  # late rows of each set

    @classmethod
    def make(cls, join: IntersectionJoin, read: Sequence[MovingRows], times: NDArray[np.float64], late: str) -> Batch:
        """A batch of rows that were read. `times` are those of all rows, and others at which time stops.

        Rows without a time are applied first, at the time that the join has reached.
        """
        if any(len(rows) and not rows.is_timed for rows in read):
            times = np.append(times, join.now)
        taken, n_dropped = [], []
        for rows, of, name in zip(read, join.sets, SETS, strict=True):
            rows, n = take_rows(rows if rows.is_timed else rows.with_time(join.now), of, join.now, late, name)
            taken.append(rows)
            n_dropped.append(n)
        last = max(float(times.max()), join.now)
        is_one = max(float(times.min()), join.now) == last  # which most updates are
        moments = np.array([last]) if is_one else np.unique(np.maximum(times, join.now))
        return cls(join, (taken[0], taken[1]), moments, (n_dropped[0], n_dropped[1]))

    def steps(self) -> Iterator[tuple[float, Step, Step]]:
        """The changes of both sets at each moment. The join must take each step before the next one is read."""
        last = self.moments[-1]
        each_moment = zip(self.moments.tolist(), *(rows.at_each(self.moments) for rows in self.rows), strict=True)
        for moment, a, b in each_moment:
            if len(a) or len(b) or moment == last or self.join.has_ended(moment):
                yield moment, _to_step(a), _to_step(b)


def _to_step(rows: MovingRows) -> Step:
    if not rows.removed.any():
        return Step(rows.ids, rows.rows, rows.reported, rows.ids[:0], rows.reported[:0], rows.carried)
    kept, removed = np.flatnonzero(~rows.removed), np.flatnonzero(rows.removed)
    return Step(
        take_ids(rows.ids, kept),
        rows.rows[kept],
        rows.reported[kept],
        take_ids(rows.ids, removed),
        rows.reported[removed],
        None if rows.carried is None else rows.carried.take(pa.array(kept)),
    )
