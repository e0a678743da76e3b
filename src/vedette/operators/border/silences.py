"""How long a key may be silent before it leaves a query: `expire_after` of each query, or that of the monitor.

A key is judged by the revisions that it has seen: a query that was replaced or removed since the last row of the key
has the silence of its old revision. So what a silent key has left does not depend on later changes.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vedette.data.keyed_rows import TIME_TYPES
from vedette.queries.set_view import SetView


class Silences:
    """Silences in the units of the time column. A query without one has `never`, and `top` is longer than all."""

    def __init__(
        self, view: SetView, own: NDArray[np.float64] | None, default: int | float | None, time_type: str
    ) -> None:
        self._view, self._own = view, own
        self.kind: Any = np.dtype(TIME_TYPES[time_type])
        is_whole = self.kind == np.int64
        self.top: Any = self.kind.type(np.iinfo(np.int64).max if is_whole else np.inf)
        self.never: Any = self.kind.type(np.iinfo(np.int64).max - 1 if is_whole else np.finfo(np.float64).max)
        self.default: Any = self.kind.type(self.never if default is None else default)

    @property
    def longest(self) -> Any:
        """The silence after which a key is forgotten, or None: that of the active query with the longest."""
        return None if self._bounds[1] == self.never else self._bounds[1]

    @property
    def shortest(self) -> Any:
        """No query has a shorter one, among those that keys may be inside."""
        return self._bounds[0]

    @property
    def differ(self) -> bool:
        """Whether keys may leave some queries before others."""
        return bool(self._bounds[0] != self._bounds[1])

    @cached_property
    def _bounds(self) -> tuple[Any, Any]:
        """The shortest of all queries, and the longest of the active ones."""
        if self._own is None:
            return self.default, self.default
        numbers = self._fill(self._own, self.default)
        active = numbers[: self._view.first_retained][~self._view.versions.is_removed]
        longest = active.max() if len(active) else self.default
        removed = numbers[self._view.first_retained :]
        return min(active.min(initial=longest), removed.min(initial=longest)), longest

    def of(self, queries: NDArray[Any], seen: NDArray[np.int32], defaults: NDArray[Any]) -> NDArray[Any]:
        """The silences of queries for keys that have seen a version, under which the monitor had a default."""
        if self._own is None:
            return defaults
        revisions = queries.astype(np.int64)
        stale = np.flatnonzero(seen < self._view.versions.current)
        if len(stale) and len(self._view.retained):
            revisions[stale] = self._find_revisions(revisions[stale], seen[stale])
        return self._fill(self._own[revisions], defaults)

    def _fill(self, own: NDArray[np.float64], defaults: Any) -> NDArray[Any]:
        is_own = ~np.isnan(own)
        return np.where(is_own, np.where(is_own, own, 0).astype(self.kind), defaults).astype(self.kind)

    def _find_revisions(self, queries: NDArray[np.int64], seen: NDArray[np.int32]) -> NDArray[np.int64]:
        """The numbers of the revisions that were active at a version; of other queries, their own."""
        retained, first = self._view.retained, self._view.first_retained
        ids, order = self._by_id
        ids_of = np.where(queries < first, queries, 0)
        is_old = queries >= first
        ids_of[is_old] = self._unified[queries[is_old] - first]
        starts, ends = np.searchsorted(ids, ids_of, "left"), np.searchsorted(ids, ids_of, "right")
        found = queries.copy()
        for step in range(int((ends - starts).max(initial=0))):  # a query is rarely replaced more than once
            some = np.flatnonzero(starts + step < ends)
            number = order[starts[some] + step]
            was_active = (retained.added[number] <= seen[some]) & (seen[some] < retained.removed[number])
            found[some[was_active]] = first + number[was_active]
        return found

    @cached_property
    def _unified(self) -> NDArray[np.int64]:
        """By removed query: the number that all revisions of its id have."""
        return self._view.number(self._view.retained.ids.read_all()).astype(np.int64)

    @cached_property
    def _by_id(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        order = np.argsort(self._unified, kind="stable")
        return self._unified[order], order


class Windows(NamedTuple):
    """By move: it concerns the queries whose silence is at least `lows` and below `highs`."""

    lows: NDArray[Any]
    highs: NDArray[Any]
    since: NDArray[Any]  # the latest time of the key before
    seen: NDArray[np.int32]  # the version that the key had seen then
    defaults: NDArray[Any]  # the default that the monitor had then

    def take(self, chosen: Any) -> Windows:
        return Windows(*(column[chosen] for column in self))

    def silences_of(self, silences: Silences, moves: NDArray[Any], queries: NDArray[Any]) -> NDArray[Any]:
        """The silence of each query for the key of a move."""
        return silences.of(queries, self.seen[moves], self.defaults[moves])

    def concern(self, silences: Silences, moves: NDArray[Any], queries: NDArray[Any]) -> NDArray[np.bool_]:
        """Whether each move concerns the query."""
        own = self.silences_of(silences, moves, queries)
        return np.asarray((self.lows[moves] <= own) & (own < self.highs[moves]))


def elapsed(until: Any, since: NDArray[Any]) -> NDArray[Any]:
    """The time since each moment. One beyond the range of doubles is the longest finite one."""
    with np.errstate(over="ignore"):
        gone: NDArray[Any] = until - since
    return gone if gone.dtype == np.int64 else np.minimum(gone, np.finfo(np.float64).max)
