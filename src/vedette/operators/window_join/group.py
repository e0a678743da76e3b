"""A group of branches: for each edge and side, ordered lists of the rows that its branches select.

Branches that select the same rows of a stream share a list, unless their windows differ by more than a factor of two:
a list keeps rows for the longest window of its branches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vedette.native.kernels import kernel
from vedette.native.ordering import GREATEST, LEAST
from vedette.operators.window_join.branches import Branches, Signature
from vedette.operators.window_join.bundles import Bundle, find_bundles
from vedette.operators.window_join.keys import RowKeys
from vedette.operators.window_join.ordered_lists import Arrivals, Expiry, OrderedLists
from vedette.operators.window_join.probes import NO_LINK

PROBES_AT_ONCE = 1 << 22


@dataclass(frozen=True)
class Selected:
    """New rows of a stream by selection: those of `selections[i]` are `rows[starts[i] : starts[i + 1]]`.

    They are ordered by the codes and keys of a port.
    """

    selections: NDArray[np.int32]  # in order, each once
    starts: NDArray[np.int64]
    rows: NDArray[np.int32]

    def of(self, selection: int) -> NDArray[np.int32]:
        """The rows of one selection."""
        place = int(np.searchsorted(self.selections, selection))
        if place == len(self.selections) or self.selections[place] != selection:
            return self.rows[:0]
        return self.rows[self.starts[place] : self.starts[place + 1]]

    def of_rows(self, start: int, end: int) -> Selected:
        """The same of a range of rows."""
        kept = (self.rows >= start) & (self.rows < end)
        counts = np.concatenate([[0], np.cumsum(kept)])[self.starts]
        some = np.flatnonzero(np.diff(counts))
        return Selected(self.selections[some], np.append(counts[some], counts[-1]), self.rows[kept])


@dataclass(frozen=True)
class Share:
    """A range of the new rows of a stream, and a range of the queries, whose pairs are searched together.

    Without rows, it means all new rows of all streams.
    """

    stream: int
    start: int
    end: int
    queries: range | None = None  # all

    def halves(self, n_queries: int) -> list[Share]:
        """The share in two halves: by rows while it has several, then by queries; empty if it cannot be divided."""
        if self.end - self.start > 1:
            middle = (self.start + self.end) // 2
            return [replace(self, end=middle), replace(self, start=middle)]
        queries = range(n_queries) if self.queries is None else self.queries
        middle = len(queries) // 2
        return [replace(self, queries=each) for each in (queries[:middle], queries[middle:])] if middle else []

    def is_of(self, queries: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Which of these queries are in the share."""
        if self.queries is None:
            return np.ones(len(queries), np.bool_)
        return (queries >= self.queries.start) & (queries < self.queries.stop)


class Port:
    """One side of an edge: the lists of a stream in the order in which the other side probes them."""

    def __init__(self, stream: int, keys: RowKeys, *, has_codes: bool) -> None:
        self.stream = stream
        self.keys = keys
        self.lists = OrderedLists(has_codes=has_codes)
        self.list_of = np.empty(0, np.int32)  # by branch
        self.windows: NDArray[Any] = np.empty(0)  # by list
        self._kinds = np.empty(0, np.int64)  # by list: its selection, and the class of its windows
        self._order = np.empty(0, np.int32)  # the lists ordered by selection
        self._selections = np.empty(0, np.int32)  # their selections, in this order

    @property
    def nbytes(self) -> int:
        own = (self.list_of, self.windows, self._kinds, self._order, self._selections)
        return self.lists.nbytes + sum(each.nbytes for each in own)

    def follow(self, selections: NDArray[np.int32], windows: NDArray[Any]) -> NDArray[np.int32]:
        """Assign lists to the new branches, at the end of the selections. Returns the lists to fill."""
        n_before, n_lists = len(self.list_of), self.lists.n
        new_windows = windows[n_before:]
        classes = np.frexp(new_windows.astype(np.float64))[1].astype(np.int64) + (1 << 11)
        kinds, back = np.unique((selections[n_before:].astype(np.int64) << 12) | classes, return_inverse=True)
        order = np.argsort(self._kinds, kind="stable")
        places = np.atleast_1d(np.searchsorted(self._kinds[order], kinds))
        is_known = np.zeros(len(kinds), np.bool_)
        inside = np.flatnonzero(places < n_lists)
        is_known[inside] = self._kinds[order[places[inside]]] == kinds[inside]
        n_new = int(np.count_nonzero(~is_known))
        numbers = np.empty(len(kinds), np.int32)
        numbers[is_known] = order[places[is_known]]
        numbers[~is_known] = np.arange(n_lists, n_lists + n_new)
        self.lists.add(n_new)
        self.list_of = np.concatenate([self.list_of, numbers[back.reshape(-1)]])
        before = np.concatenate([self.windows.astype(windows.dtype), np.full(n_new, -1, windows.dtype)])
        self.windows = before.copy()
        np.maximum.at(self.windows, self.list_of[n_before:], new_windows)
        self._kinds = np.concatenate([self._kinds, kinds[~is_known]])
        by_list = (self._kinds >> 12).astype(np.int32)
        self._order = np.argsort(by_list, kind="stable").astype(np.int32)
        self._selections = by_list[self._order]
        return np.flatnonzero(self.windows != before).astype(np.int32)

    def arrivals(self, selected: Selected) -> Arrivals:
        """Selected rows by list."""
        firsts = np.searchsorted(self._selections, selected.selections)
        lasts = np.searchsorted(self._selections, selected.selections, side="right")
        if len(firsts) and (lasts - firsts == 1).all():
            return Arrivals(self._order[firsts], selected.starts, selected.rows)
        which, places = _spread(firsts, lasts)
        lists = self._order[places]
        starts = np.concatenate([[0], np.cumsum(np.diff(selected.starts)[which])])
        rows = np.empty(int(starts[-1]), np.int32)
        _copy_lists(selected.starts[which], starts, selected.rows, rows)
        return Arrivals(lists, starts, rows)

    def fill(self, lists: NDArray[np.int32], selected: Selected, times: NDArray[Any], shift: int) -> None:
        """Replace the rows of some lists."""
        self.lists.clear(lists)
        everything = self.arrivals(selected)
        kept = np.flatnonzero(np.isin(everything.lists, lists))
        counts = np.diff(everything.starts)[kept]
        starts = np.concatenate([[0], np.cumsum(counts)])
        rows = np.empty(int(starts[-1]), np.int32)
        _copy_lists(everything.starts[kept], starts, everything.rows, rows)
        self._insert(Arrivals(everything.lists[kept], starts, rows), times, shift, None, None)

    def insert(self, selected: Selected, times: NDArray[Any], shift: int, horizon: Any, n_before: int | None) -> None:
        """Insert new rows into the lists that select them, and drop expired rows of lists that are full.

        No later row of another stream is before `horizon`. `n_before` is the number of earlier rows, for windows that
        count rows. None means that no row has expired.
        """
        self._insert(self.arrivals(selected), times, shift, horizon, n_before)

    def _insert(self, arrivals: Arrivals, times: NDArray[Any], shift: int, horizon: Any, n_before: int | None) -> None:
        n = self.lists.n
        first_rows = np.full(n, LEAST, np.int64)
        now, longest = 0, np.full(n, np.inf if times.dtype == np.float64 else GREATEST, times.dtype)
        if n_before is not None:
            first_rows = n_before - self.windows.astype(np.int64)
        elif horizon is not None:
            now, longest = horizon, self.windows.astype(times.dtype)
        self.lists.insert(
            arrivals,
            self.keys.codes.values,
            self.keys.keys.values,
            shift,
            Expiry(first_rows, times, shift, times.dtype.type(now), longest),
        )


class JoinGroup:
    """The branches of one signature, with a port for each side of each edge."""

    def __init__(self, signature: Signature, ports: list[tuple[Port, Port]], kinds: list[int]) -> None:
        self.signature = signature
        self.ports = ports  # by edge, for its first and second stream
        self.kinds = kinds  # by edge, how the value of its link is computed
        self.branches: Branches | None = None
        self.is_removed = np.empty(0, np.bool_)
        self.windows: list[NDArray[Any]] = []  # by stream, of each branch
        self.bundles: list[Bundle] = []
        self._orders: list[NDArray[np.int32]] = []  # by stream: branches by selection
        self._selections: list[NDArray[np.int32]] = []  # by stream: their selections, in this order

    @property
    def all_ports(self) -> list[Port]:
        return [port for pair in self.ports for port in pair]

    @property
    def nbytes(self) -> int:
        parts: list[Any] = [*self.all_ports, *self.bundles]
        return sum(each.nbytes for each in parts)

    def follow(
        self, branches: Branches, is_removed: NDArray[np.bool_], time_dtype: Any
    ) -> list[tuple[Port, NDArray[Any]]]:
        """Update the branches: there may be new ones, and removed ones. Returns the new lists by port."""
        is_new = self.branches is None or len(branches) != len(self.branches)
        has_removed = is_new or not np.array_equal(is_removed, self.is_removed)
        self.branches, self.is_removed = branches, is_removed
        new_lists = self._add_lists(branches, time_dtype) if is_new else []
        if has_removed and len(self.ports) == 1 and self.kinds[0] != NO_LINK:
            first, second = self.ports[0]
            self.bundles = find_bundles(self.kinds[0], (first.list_of, second.list_of), ~is_removed, self.windows)
        return new_lists

    def _add_lists(self, branches: Branches, time_dtype: Any) -> list[tuple[Port, NDArray[Any]]]:
        counts = self.signature.counts
        self.windows = [
            (branches.numbers if time_dtype == np.float64 and not counts[stream] else branches.units)[stream].astype(
                time_dtype
            )
            for stream in range(len(counts))
        ]
        self._orders = [np.argsort(each, kind="stable").astype(np.int32) for each in branches.selections]
        self._selections = [each[order] for each, order in zip(branches.selections, self._orders, strict=True)]
        return [
            (port, port.follow(branches.selections[port.stream], self.windows[port.stream])) for port in self.all_ports
        ]

    def probes(
        self, selected: Selected, bundled: Sequence[Bundle], share: Share
    ) -> Iterator[tuple[NDArray[np.int32], NDArray[np.int32]]]:
        """The probes of a share: branches, and their selected rows in order; in slices.

        Branches of matched bundles are skipped.
        """
        stream = share.stream
        assert self.branches is not None
        firsts = np.searchsorted(self._selections[stream], selected.selections)
        lasts = np.searchsorted(self._selections[stream], selected.selections, side="right")
        which, places = _spread(firsts, lasts)
        branches = self._orders[stream][places]
        is_out = self.is_removed
        if bundled:
            is_out = is_out.copy()
            is_out[np.concatenate([bundle.branches for bundle in bundled])] = True
        if share.queries is not None:
            is_out = is_out | ~share.is_of(self.branches.queries)
        active = np.flatnonzero(~is_out[branches])
        which, branches = which[active], branches[active]
        counts = np.diff(selected.starts)[which]
        for start, end in slices(counts, PROBES_AT_ONCE):
            rows = np.empty(int(counts[start:end].sum()), np.int32)
            starts = np.concatenate([[0], np.cumsum(counts[start:end])])
            _copy_lists(selected.starts[which[start:end]], starts, selected.rows, rows)
            yield np.repeat(branches[start:end], counts[start:end]), rows


def slices(lengths: NDArray[Any], most: int) -> list[tuple[int, int]]:
    """Consecutive slices with a total length of at most `most`, or of one element."""
    ends = np.cumsum(np.abs(lengths.astype(np.int64)))
    found, start, done = [], 0, 0
    while start < len(lengths):
        end = max(start + 1, int(np.searchsorted(ends, done + most, side="right")))
        found.append((start, end))
        start, done = end, int(ends[end - 1])
    return found


def _spread(firsts: NDArray[Any], lasts: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """All places from `firsts[i]` to `lasts[i]`, for each i, and the i of each place."""
    counts = lasts - firsts
    which = np.repeat(np.arange(len(firsts)), counts)
    return which, np.arange(len(which)) - np.repeat(np.cumsum(counts) - counts, counts) + firsts[which]


@kernel
def _copy_lists(
    from_starts: NDArray[np.int64], starts: NDArray[np.int64], rows: NDArray[np.int32], out: NDArray[np.int32]
) -> None:
    for i in range(len(from_starts)):
        for k in range(starts[i + 1] - starts[i]):
            out[starts[i] + k] = rows[from_starts[i] + k]
