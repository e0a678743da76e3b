"""A shard of a moving join: a part of both sets, which hears of all times, and what it knows of rows that come late.

All shards step at the same times, whether they have rows then or not. So what they tell does not depend on their
number, and they agree on what is late.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vedette.data.ids import item
from vedette.errors import RowError, count
from vedette.operators import state
from vedette.operators.moving_join.meetings import Meetings, find_net
from vedette.operators.moving_join.motion_rows import TIME
from vedette.operators.moving_join.moving_join import SETS, MovingJoin
from vedette.spark.workers.last_seen import LastSeen
from vedette.spark.workers.moving_updates import Updates

_KIND = "moving shard state"


class MovingShard:
    """One shard's objects. `late` says what becomes of rows from before the time that the join has come to."""

    def __init__(self, join: MovingJoin, n_dims: int, late: str) -> None:
        self.join = join
        self.late = late
        self._nothing = Updates.empty(n_dims)
        self._heard = LastSeen(), LastSeen()

    def step(self, a: Updates | None, b: Updates | None, times: NDArray[np.float64]) -> list[pa.Table]:
        """What a micro-batch changes. `times` are those of its rows in all shards, and may be there more than once."""
        clock = -np.inf if self.join.time is None else self.join.time
        moments = np.unique(np.maximum(times, clock)).tolist()
        if not moments:
            return []
        rows = [self._nothing if each is None else each for each in (a, b)]
        taken = [self._take(number, each, clock) for number, each in enumerate(rows)]
        moved = [each.moved_to(clock) for each in taken]
        for name, heard, late, each in zip(SETS, self._heard, taken, moved, strict=True):
            heard.take(each.ids, late.times, each.goes, late.times < clock)
            if name != self.join.static:  # of which rows may be late by any time
                heard.forget_gone(moments[-1] - self.join.max_update_interval)
        tables = []
        for moment in moments:
            a_rows, b_rows = (each.at(moment) for each in moved)
            if a_rows or b_rows or moment == moments[-1] or self._has_ended(moment):
                tables.append(_net(self._update(a_rows, b_rows, moment)))
        return tables

    # Rows that come late.

    def _take(self, number: int, rows: Updates, clock: float) -> Updates:
        """The rows, but late ones that are not wanted."""
        n_late = int(np.searchsorted(rows.times, clock, "left"))
        if not n_late:
            return rows
        if self.late == "error":
            raise RowError(
                f"is 'error', and {count(n_late, 'row')} of set {SETS[number]} came late: the first has time "
                f"{rows.times[0]:g} and id {item(rows.ids, 0)!r}, and the join is at {clock:g}; use 'apply' or 'drop' "
                f"to continue",
                option="late",
            )
        is_taken = np.ones(len(rows), np.bool_)
        is_taken[:n_late] = False
        if self.late == "apply":
            is_taken[:n_late] = self._is_news(number, rows.take(np.arange(n_late)), clock)
        return rows.take(np.flatnonzero(is_taken))

    def _is_news(self, number: int, late: Updates, clock: float) -> NDArray[np.bool_]:
        """Which late rows tell more than is known of their objects, which update at least every so often."""
        known = self._heard[number].find(late.ids)
        if self.join.join is not None:
            of = self.join.join.sets[number]
            slots = of.find(late.ids)
            is_here = np.isnan(known) & (slots >= 0)
            known[is_here] = of.rows[slots[is_here], TIME]
        is_news: NDArray[np.bool_] = ~(late.times < known)  # NaN where nothing is known
        if self.join.static != SETS[number]:
            is_news &= late.goes | (late.times >= clock - self.join.max_update_interval)
        return is_news

    # Time.

    def _has_ended(self, moment: float) -> bool:
        """Whether there are objects that are looked at for longer, once it is this late."""
        return self.join.join is not None and any(len(of.find_ended(moment)) for of in self.join.join.sets)

    def _update(self, a: dict[str, Any] | None, b: dict[str, Any] | None, moment: float) -> pa.Table:
        if a is None and b is None and self.join.n_a + self.join.n_b == 0:
            a = self._nothing.to_rows(slice(0, 0))  # which tells how many dimensions there are
        return self.join.update_unlimited(a, b, moment)

    # The state.

    @property
    def nbytes(self) -> int:
        return self.join.nbytes + sum(heard.nbytes for heard in self._heard)

    def save(self) -> bytes:
        return self._to_bytes(self.join.save(), only_changes=False)

    def take_delta(self) -> bytes:
        return self._to_bytes(self.join.take_delta(), only_changes=True)

    def load(self, blob: bytes) -> None:
        content = state.from_bytes(_KIND, blob)
        self.join.load(content["join"].tobytes())
        self._heard = LastSeen(), LastSeen()
        self._apply_heard(content)

    def apply_delta(self, blob: bytes) -> None:
        content = state.from_bytes(_KIND, blob)
        self.join.apply_delta(content["join"].tobytes())
        self._apply_heard(content)

    def _to_bytes(self, join: bytes, only_changes: bool) -> bytes:
        heard = [each.to_content(only_changes) for each in self._heard]
        return state.to_bytes(_KIND, {"join": np.frombuffer(join, np.uint8), "heard": heard})

    def _apply_heard(self, content: dict[str, Any]) -> None:
        for heard, each in zip(self._heard, content["heard"], strict=True):
            heard.apply(each)


def _net(changes: pa.Table) -> pa.Table:
    """The changes of one update, less lines that it takes back and tells again.

    A join leaves such lines out where it must look at some object for longer, which may be in another shard.
    """
    signs = changes["sign"].to_numpy()
    if not len(signs) or signs.min() == signs.max():
        return changes
    a, b = (changes[name].combine_chunks().indices.to_numpy() for name in SETS)
    places = find_net(signs, Meetings(a, b, changes["start"].to_numpy(), changes["end"].to_numpy()))
    return changes if len(places) == len(signs) else changes.take(np.sort(places))
