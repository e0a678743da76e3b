"""Lists of the rows of a window, each ordered by a code and a key.

A list has the rows that some queries select from one stream, so a probe finds the rows that join as one run. The lists
share three arrays. A full list first drops its expired rows, and moves to twice the room if that is not enough. Before
the arrays grow, all lists drop their expired rows. New rows are merged from the back, so a batch moves the entries
after its first row, and many rows at once are cheaper than one by one. Readers skip expired rows that are still there.
"""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vedette.native.buffers import grown
from vedette.native.kernels import kernel
from vedette.native.threads import count_pieces, cut, run_pieces

SMALL_ARENA = 4096
PIECE_ARRIVALS = 1 << 14  # at least, that a thread inserts


class Arrivals(NamedTuple):
    """New rows by list, each list once: `lists[i]` gets `rows[starts[i] : starts[i + 1]]`, ordered by code and key."""

    lists: NDArray[np.int32]
    starts: NDArray[np.int64]
    rows: NDArray[np.int32]


class Expiry(NamedTuple):
    """Which rows are expired, by list: those below a number, or older than a window.

    `first_rows` is for windows that count rows. Ages are computed by the same subtraction as in a probe, so an age that
    is rounded to the length of the window is in it.
    """

    first_rows: NDArray[np.int64]
    times: NDArray[Any]  # of the rows of the window, by row minus `shift`
    shift: int
    now: Any
    longest: NDArray[Any]  # by list


class ListArrays(NamedTuple):
    """List `i` has `lengths[i]` entries of the last three arrays from `starts[i]` on, and room for `rooms[i]`."""

    starts: NDArray[np.int64]
    lengths: NDArray[np.int32]
    rooms: NDArray[np.int32]
    codes: NDArray[np.int32]  # stays empty without codes
    keys: NDArray[np.int64]
    rows: NDArray[np.int32]


class OrderedLists:
    """Lists by number. Rows are numbers; the caller has their codes and keys."""

    def __init__(self, *, has_codes: bool) -> None:
        self.has_codes = has_codes
        self.n = 0
        by_list = np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, np.int32)
        self.arrays = ListArrays(*by_list, np.empty(0, np.int32), np.empty(0, np.int64), np.empty(0, np.int32))
        self._used = 0  # entries of the three arrays
        self._room = 0  # total room of the lists

    @property
    def nbytes(self) -> int:
        return sum(each.nbytes for each in self.arrays)

    def add(self, n: int) -> None:
        """Add lists without rows."""
        old = self.arrays
        self.arrays = old._replace(
            starts=grown(old.starts, self.n, self.n + n),
            lengths=grown(old.lengths, self.n, self.n + n),
            rooms=grown(old.rooms, self.n, self.n + n),
        )
        self.n += n

    def clear(self, lists: NDArray[np.int32]) -> None:
        """Remove all rows from some lists, and their room."""
        self._room -= int(self.arrays.rooms[lists].sum())
        self.arrays.lengths[lists] = self.arrays.rooms[lists] = 0

    def insert(
        self, arrivals: Arrivals, codes: NDArray[np.int32], keys: NDArray[np.int64], shift: int, expiry: Expiry
    ) -> None:
        """Insert rows. `codes` and `keys` are by row minus `shift`. A row with a code below 0 is skipped."""
        parts = _cut(arrivals)
        needed_by_part = run_pieces(lambda part: int(_make_room(parts[part], self.arrays, expiry)), len(parts))
        needed = sum(needed_by_part)
        if self._used + needed > len(self.arrays.rows):
            is_idle = np.ones(self.n, np.bool_)
            is_idle[arrivals.lists] = False
            self._room -= int(_give_up_room(np.flatnonzero(is_idle), self.arrays, expiry))
        self._reserve(needed)
        used = list(accumulate(needed_by_part, initial=self._used))  # where lists that move go, by part

        def insert(part: int) -> int:
            return int(_insert(parts[part], codes, keys, shift, self.arrays, used[part]))

        self._room += sum(run_pieces(insert, len(parts)))
        self._used = used[-1]

    def _reserve(self, needed: int) -> None:
        """Make room for `needed` entries: close gaps if they are most of the arrays, else enlarge the arrays."""
        if self._used + needed > len(self.arrays.rows) and self._used > 2 * self._room + SMALL_ARENA:
            self._pack(self._room + needed)
        n, old = self._used + needed, self.arrays
        if n > len(old.rows):
            codes = grown(old.codes, self._used, n) if self.has_codes else old.codes
            keys, rows = grown(old.keys, self._used, n), grown(old.rows, self._used, n)
            self.arrays = old._replace(codes=codes, keys=keys, rows=rows)

    def _pack(self, n: int) -> None:
        codes = np.empty(n if self.has_codes else 0, np.int32)
        packed = self.arrays._replace(codes=codes, keys=np.empty(n, np.int64), rows=np.empty(n, np.int32))
        self._used = int(_pack(self.n, self.arrays, packed))
        self.arrays = packed


def _cut(arrivals: Arrivals) -> list[Arrivals]:
    """Parts for threads: different lists, with about as many new rows."""
    n_parts = count_pieces(len(arrivals.rows), PIECE_ARRIVALS)
    if n_parts == 1:
        return [arrivals]
    cuts = np.searchsorted(arrivals.starts, cut(int(arrivals.starts[-1]), n_parts)).tolist()
    return [
        Arrivals(arrivals.lists[first:last], arrivals.starts[first : last + 1], arrivals.rows)
        for first, last in pairwise([0, *cuts[1:-1], len(arrivals.lists)])
    ]


@kernel
def _make_room(arrivals: Arrivals, lists: ListArrays, expiry: Expiry) -> int:
    """Drop the expired rows of lists that are too full for their new rows. Returns the room that larger lists need.

    A list that must move has a room below 0 until it has moved.
    """
    chosen, arrival_starts = arrivals.lists, arrivals.starts
    lengths, rooms = lists.lengths, lists.rooms
    needed = 0
    for i in range(len(chosen)):
        one = chosen[i]
        n_new = arrival_starts[i + 1] - arrival_starts[i]
        if lengths[one] + n_new <= rooms[one]:
            continue
        n = _drop_expired(one, lists, expiry)
        lengths[one] = n
        if 4 * (n + n_new) > 3 * rooms[one]:  # otherwise it would soon be full again
            needed += 2 * (n + n_new) + 2
            rooms[one] = -1 - rooms[one]
    return needed


@kernel
def _give_up_room(idle: NDArray[np.int64], lists: ListArrays, expiry: Expiry) -> int:
    """Drop the expired rows of lists without new rows, and the room of those that are then less than half full."""
    lengths, rooms = lists.lengths, lists.rooms
    given_up = 0
    for one in idle:
        n = _drop_expired(one, lists, expiry)
        lengths[one] = n
        if 2 * n < rooms[one]:
            given_up += rooms[one] - n
            rooms[one] = n
    return given_up


@kernel
def _drop_expired(one: int, lists: ListArrays, expiry: Expiry) -> int:
    """Move the rows of a list that are not expired to its beginning. Returns their number."""
    codes, keys, rows = lists.codes, lists.keys, lists.rows
    times, shift, now = expiry.times, expiry.shift, expiry.now
    first_row, longest = expiry.first_rows[one], expiry.longest[one]
    start, n = lists.starts[one], 0
    for at in range(start, start + lists.lengths[one]):
        row = rows[at]
        if row >= first_row and row >= shift and now - times[row - shift] <= longest:
            if len(codes):
                codes[start + n] = codes[at]
            keys[start + n], rows[start + n] = keys[at], row
            n += 1
    return n


@kernel
def _insert(
    arrivals: Arrivals,
    row_codes: NDArray[np.int32],
    row_keys: NDArray[np.int64],
    shift: int,
    lists: ListArrays,
    used: int,
) -> int:
    """Merge new rows, which are in order, into each list. Returns the new room, of lists that move to `used`."""
    chosen, arrival_starts, new_rows = arrivals.lists, arrivals.starts, arrivals.rows
    starts, lengths, rooms = lists.starts, lists.lengths, lists.rooms
    codes, keys, rows = lists.codes, lists.keys, lists.rows
    has_codes = len(codes) > 0
    added = 0
    for i in range(len(chosen)):
        one = chosen[i]
        first, last = arrival_starts[i], arrival_starts[i + 1]
        n = lengths[one]
        if rooms[one] < 0:
            room = 2 * (n + last - first) + 2
            start = starts[one]
            for at in range(n):
                if has_codes:
                    codes[used + at] = codes[start + at]
                keys[used + at], rows[used + at] = keys[start + at], rows[start + at]
            starts[one] = used
            used += room
            added += room - (-1 - rooms[one])
            rooms[one] = room
        n_new = 0
        for k in range(first, last):
            n_new += row_codes[new_rows[k] - shift] >= 0
        start = starts[one]
        at, old = start + n + n_new - 1, start + n - 1  # the merge goes from the back, in place
        for k in range(last - 1, first - 1, -1):
            row = new_rows[k]
            code, key = row_codes[row - shift], row_keys[row - shift]
            if code < 0:
                continue
            while old >= start and keys[old] > key and not has_codes:
                keys[at], rows[at] = keys[old], rows[old]
                at -= 1
                old -= 1
            while has_codes and old >= start and (codes[old] > code or (codes[old] == code and keys[old] > key)):
                codes[at], keys[at], rows[at] = codes[old], keys[old], rows[old]
                at -= 1
                old -= 1
            if has_codes:
                codes[at] = code
            keys[at], rows[at] = key, row
            at -= 1
        lengths[one] = n + n_new
    return added


@kernel
def _pack(n_lists: int, lists: ListArrays, packed: ListArrays) -> int:
    """Copy the entries without the gaps between lists. Both share the arrays by list. Returns how much is used."""
    starts, lengths, rooms = lists.starts, lists.lengths, lists.rooms
    codes, keys, rows = lists.codes, lists.keys, lists.rows
    new_codes, new_keys, new_rows = packed.codes, packed.keys, packed.rows
    used = 0
    for one in range(n_lists):
        start = starts[one]
        for at in range(lengths[one]):
            if len(codes):
                new_codes[used + at] = codes[start + at]
            new_keys[used + at], new_rows[used + at] = keys[start + at], rows[start + at]
        starts[one] = used
        used += rooms[one] if rooms[one] >= 0 else -1 - rooms[one]
    return used
