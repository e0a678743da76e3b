"""Tables that answer for a few values and a few bands, shared by all with the same order (Lemma 2 of the paper).

An *event* is a value passing an end of a band as the shift grows: it reaches the lower end, or goes above the upper
one. Which values are in which bands depends only on how many events, in their order, are past. So values and bands
whose events have the same order share one table: the events in that order, and the pairs for each number of past
events. Comparing shifted values with ends finds the place of a shift in the order, so a table needs no numbers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vedette.native.kernels import kernel
from vedette.papers.bands.rounding import least_shift


class Tables(NamedTuple):
    """Table `t` has the events `events[first_events[t]:first_events[t + 1]]`.

    Event `2 * p` is pair p at its lower end, `2 * p + 1` beyond its upper one, where pair `p` is of value
    `p // n_bands` and band `p % n_bands`. When e events of table t are past, its slot is `s = first_events[t] + t + e`,
    and its pairs are `pairs[slot_starts[s]:slot_starts[s + 1]]`.
    """

    first_events: NDArray[np.int64]
    events: NDArray[np.int32]
    slot_starts: NDArray[np.int64]
    pairs: NDArray[np.int32]


class OrderTables:
    """Tables by the order of their events, while they are collected."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[int, int, bytes], int] = {}
        self._events: list[NDArray[np.int32]] = []

    def list_all(
        self,
        values: NDArray[np.float64],
        lows: NDArray[np.float64],
        highs: NDArray[np.float64],
        gap_starts: NDArray[np.int64],
        r: int,
    ) -> tuple[Tables, NDArray[np.int32]]:
        """The tables of all pieces of `r` values with all gaps, and the number of the table for each piece and gap."""
        n_pieces, sizes = -(-len(values) // r), np.diff(gap_starts)
        table_of = np.empty((n_pieces, len(sizes)), np.int32)
        for piece in range(n_pieces):
            shifts = _find_events(values[piece * r : (piece + 1) * r], lows, highs)
            for size in np.unique(sizes):
                gaps = np.flatnonzero(sizes == size)
                bands = gap_starts[gaps][:, None] + np.arange(size)
                ends = shifts[:, bands].transpose(1, 0, 2, 3).reshape(len(gaps), -1)  # by gap: value, band, end
                table_of[piece, gaps] = self._number(np.argsort(ends, axis=1, kind="stable"), len(shifts), int(size))
        return self._to_tables(), table_of

    def _number(self, orders: NDArray[np.int64], n_values: int, n_bands: int) -> NDArray[np.int32]:
        """The number of the table for each order of events."""
        orders = np.ascontiguousarray(orders, np.int32)
        keys = orders.view(np.dtype((np.void, orders.dtype.itemsize * orders.shape[1]))).reshape(-1)
        distinct, firsts, which = np.unique(keys, return_index=True, return_inverse=True)
        numbers = np.empty(len(distinct), np.int32)
        for i, first in enumerate(firsts):
            key = n_values, n_bands, distinct[i].tobytes()
            if key not in self._numbers:
                self._numbers[key] = len(self._events)
                self._events.append(orders[first])
            numbers[i] = self._numbers[key]
        return np.asarray(numbers[which.reshape(-1)])

    def _to_tables(self) -> Tables:
        lengths = [len(each) for each in self._events]
        first_events = np.cumsum([0, *lengths], dtype=np.int64)
        events = np.concatenate([np.empty(0, np.int32), *self._events])
        n_slots = int(first_events[-1]) + len(lengths)
        slot_starts = np.zeros(n_slots + 1, np.int64)
        n = _list_slots(first_events, events, slot_starts, np.empty(0, np.int32))
        pairs = np.empty(n, np.int32)
        _list_slots(first_events, events, slot_starts, pairs)
        return Tables(first_events, events, slot_starts, pairs)


class Ends(NamedTuple):
    """The ends of bands."""

    lows: NDArray[np.float64]
    highs: NDArray[np.float64]


@kernel
def find_slot(
    shift: float, values: NDArray[np.float64], ends: Ends, first: int, last: int, tables: Tables, table: int
) -> int:
    """The slot of a table that a shift falls into, for these values and the bands [first, last); O(log r)."""
    lows, highs, first_events, events = ends.lows, ends.highs, tables.first_events, tables.events
    n_bands = last - first
    past, ahead = first_events[table], first_events[table + 1]
    while past < ahead:
        middle = (past + ahead) >> 1
        pair = events[middle] >> 1
        shifted, band = values[pair // n_bands] + shift, first + pair % n_bands
        is_past = shifted > highs[band] if events[middle] & 1 else shifted >= lows[band]
        if is_past:
            past = middle + 1
        else:
            ahead = middle
    return past + table  # type: ignore[no-any-return]


@kernel
def _find_events(
    values: NDArray[np.float64], lows: NDArray[np.float64], highs: NDArray[np.float64]
) -> NDArray[np.float64]:
    """By value, band and end, the least shift under which the event is past; infinite where it never is."""
    shifts = np.empty((len(values), len(lows), 2))
    for i in range(len(values)):
        for band in range(len(lows)):
            shifts[i, band, 0] = least_shift(values[i], lows[band])
            above = np.nextafter(highs[band], np.inf)
            shifts[i, band, 1] = np.inf if highs[band] == np.inf else least_shift(values[i], above)
    return shifts


@kernel
def _list_slots(
    first_events: NDArray[np.int64],
    events: NDArray[np.int32],
    slot_starts: NDArray[np.int64],
    pairs: NDArray[np.int32],
) -> int:
    """Write as many pairs of all slots as there is room for, and where they start; how many there are."""
    n, slot = 0, 0
    for table in range(len(first_events) - 1):
        begin, end = first_events[table], first_events[table + 1]
        meets = np.zeros((end - begin) // 2 + 1, np.bool_)
        for past in range(end - begin + 1):
            if past > 0:
                event = events[begin + past - 1]
                meets[event >> 1] = not event & 1
            for pair in range(len(meets)):
                if meets[pair]:
                    if n < len(pairs):
                        pairs[n] = pair
                    n += 1
            slot += 1
            slot_starts[slot] = n
    return n
