"""Lists of the rows of a window, each in the order of a code and a key.

A list holds the rows that some standing queries select from one stream, so that a probe finds those that join as one
run. The lists share three arrays. A list that is full first loses its expired rows, and moves to twice the room when
that is not enough; before the arrays grow, all lists lose theirs. What arrives is merged in from the back, so a batch
costs a move of what is behind its first row, and many rows at once are cheaper than one by one. Expired rows that are
still there are passed over by whoever reads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vedette.native.buffers import grown
from vedette.native.kernels import kernel

SMALL_ARENA = 4096


@dataclass(frozen=True)
class Arrivals:
    """New rows by list: those of `lists[i]` are `rows[starts[i] : starts[i + 1]]`, in the order of codes and keys."""

    lists: NDArray[np.int32]
    starts: NDArray[np.int64]
    rows: NDArray[np.int32]


@dataclass(frozen=True)
class Expiry:
    """Which rows no later arrival joins with: those below a number, or older than a window, by list.

    `first_rows` is for windows that count. Ages are told by the very subtraction that a probe makes: one that is
    rounded to the length of the window is in it.
    """

    first_rows: NDArray[np.int64]
    times: NDArray[Any]  # of the rows of the window, by row less `shift`
    shift: int
    now: Any
    longest: NDArray[Any]  # by list

    @property
    def parts(self) -> tuple[NDArray[np.int64], NDArray[Any], int, Any, NDArray[Any]]:
        return self.first_rows, self.times, self.shift, self.now, self.longest


class OrderedLists:
    """Lists by number. Rows are numbers; the caller knows their codes and keys."""

    def __init__(self, *, has_codes: bool) -> None:
        self.has_codes = has_codes
        self.n = 0
        self.starts = np.empty(0, np.int64)
        self.lengths = np.empty(0, np.int32)
        self.rooms = np.empty(0, np.int32)
        self.codes = np.empty(0, np.int32)  # stays empty without codes
        self.keys = np.empty(0, np.int64)
        self.rows = np.empty(0, np.int32)
        self._used = 0  # of the three arrays
        self._room = 0  # of the lists in them

    @property
    def nbytes(self) -> int:
        by_list = self.starts.nbytes + self.lengths.nbytes + self.rooms.nbytes
        return by_list + self.codes.nbytes + self.keys.nbytes + self.rows.nbytes

    def add(self, n: int) -> None:
        """More lists, without rows."""
        for name in ("starts", "lengths", "rooms"):
            setattr(self, name, grown(getattr(self, name), self.n, self.n + n))
        self.n += n

    def clear(self, lists: NDArray[np.int32]) -> None:
        """Take all rows from some lists, and their room."""
        self._room -= int(self.rooms[lists].sum())
        self.lengths[lists] = self.rooms[lists] = 0

    def insert(
        self, arrivals: Arrivals, codes: NDArray[np.int32], keys: NDArray[np.int64], shift: int, expiry: Expiry
    ) -> None:
        """Put rows into lists. `codes` and `keys` are by row less `shift`; a row whose code is below 0 is left out."""
        needed = int(_make_room(arrivals.lists, arrivals.starts, *self._arrays, *expiry.parts))
        if self._used + needed > len(self.rows):
            is_idle = np.ones(self.n, np.bool_)
            is_idle[arrivals.lists] = False
            self._room -= int(_give_up_room(np.flatnonzero(is_idle), *self._arrays, *expiry.parts))
        self._reserve(needed)
        self._used, added = _insert(
            arrivals.lists,
            arrivals.starts,
            arrivals.rows,
            codes,
            keys,
            shift,
            *self._arrays,
            self._used,
        )
        self._room += added

    @property
    def _arrays(
        self,
    ) -> tuple[
        NDArray[np.int64], NDArray[np.int32], NDArray[np.int32], NDArray[np.int32], NDArray[np.int64], NDArray[np.int32]
    ]:
        return self.starts, self.lengths, self.rooms, self.codes, self.keys, self.rows

    def _reserve(self, needed: int) -> None:
        """Room for as many entries, by closing gaps where these are most, else by larger arrays."""
        if self._used + needed > len(self.rows) and self._used > 2 * self._room + SMALL_ARENA:
            self._pack(self._room + needed)
        n = self._used + needed
        if n > len(self.rows):
            self.keys, self.rows = grown(self.keys, self._used, n), grown(self.rows, self._used, n)
            if self.has_codes:
                self.codes = grown(self.codes, self._used, n)

    def _pack(self, n: int) -> None:
        codes = np.empty(n if self.has_codes else 0, np.int32)
        keys, rows = np.empty(n, np.int64), np.empty(n, np.int32)
        self._used = int(
            _pack(self.n, self.starts, self.lengths, self.rooms, self.codes, self.keys, self.rows, codes, keys, rows)
        )
        self.codes, self.keys, self.rows = codes, keys, rows


@kernel
def _make_room(
    lists: NDArray[np.int32],
    arrival_starts: NDArray[np.int64],
    starts: NDArray[np.int64],
    lengths: NDArray[np.int32],
    rooms: NDArray[np.int32],
    codes: NDArray[np.int32],
    keys: NDArray[np.int64],
    rows: NDArray[np.int32],
    first_rows: NDArray[np.int64],
    times: NDArray[np.int64],
    shift: int,
    now: int,
    longest: NDArray[np.int64],
) -> int:
    """Drop the expired rows of lists that are too full for what arrives; the room that larger lists need then.

    A list that is to move has its room below 0 until it has moved.
    """
    needed = 0
    for i in range(len(lists)):
        one = lists[i]
        n_new = arrival_starts[i + 1] - arrival_starts[i]
        if lengths[one] + n_new <= rooms[one]:
            continue
        n = _drop_expired(
            starts[one], lengths[one], codes, keys, rows, first_rows[one], times, shift, now, longest[one]
        )
        lengths[one] = n
        if 4 * (n + n_new) > 3 * rooms[one]:  # or it would be full again soon
            needed += 2 * (n + n_new) + 2
            rooms[one] = -1 - rooms[one]
    return needed


@kernel
def _give_up_room(
    lists: NDArray[np.int64],
    starts: NDArray[np.int64],
    lengths: NDArray[np.int32],
    rooms: NDArray[np.int32],
    codes: NDArray[np.int32],
    keys: NDArray[np.int64],
    rows: NDArray[np.int32],
    first_rows: NDArray[np.int64],
    times: NDArray[np.int64],
    shift: int,
    now: int,
    longest: NDArray[np.int64],
) -> int:
    """Drop the expired rows of lists to which nothing comes, and the room of those that are not half full then."""
    given_up = 0
    for one in lists:
        n = _drop_expired(
            starts[one], lengths[one], codes, keys, rows, first_rows[one], times, shift, now, longest[one]
        )
        lengths[one] = n
        if 2 * n < rooms[one]:
            given_up += rooms[one] - n
            rooms[one] = n
    return given_up


@kernel
def _drop_expired(
    start: int,
    length: int,
    codes: NDArray[np.int32],
    keys: NDArray[np.int64],
    rows: NDArray[np.int32],
    first_row: int,
    times: NDArray[np.int64],
    shift: int,
    now: int,
    longest: int,
) -> int:
    """Move the rows of a list that are not expired up to its beginning; how many they are."""
    n = 0
    for at in range(start, start + length):
        row = rows[at]
        if row >= first_row and row >= shift and now - times[row - shift] <= longest:
            if len(codes):
                codes[start + n] = codes[at]
            keys[start + n], rows[start + n] = keys[at], row
            n += 1
    return n


@kernel
def _insert(
    lists: NDArray[np.int32],
    arrival_starts: NDArray[np.int64],
    arrivals: NDArray[np.int32],
    row_codes: NDArray[np.int32],
    row_keys: NDArray[np.int64],
    shift: int,
    starts: NDArray[np.int64],
    lengths: NDArray[np.int32],
    rooms: NDArray[np.int32],
    codes: NDArray[np.int32],
    keys: NDArray[np.int64],
    rows: NDArray[np.int32],
    used: int,
) -> tuple[int, int]:
    """Merge what arrives, which is in order, into each list; how much of the arrays is used then, and the new room."""
    has_codes = len(codes) > 0
    added = 0
    for i in range(len(lists)):
        one = lists[i]
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
            n_new += row_codes[arrivals[k] - shift] >= 0
        start = starts[one]
        at, old = start + n + n_new - 1, start + n - 1  # the merge goes from the back, in place
        for k in range(last - 1, first - 1, -1):
            row = arrivals[k]
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
    return used, added


@kernel
def _pack(
    n_lists: int,
    starts: NDArray[np.int64],
    lengths: NDArray[np.int32],
    rooms: NDArray[np.int32],
    codes: NDArray[np.int32],
    keys: NDArray[np.int64],
    rows: NDArray[np.int32],
    new_codes: NDArray[np.int32],
    new_keys: NDArray[np.int64],
    new_rows: NDArray[np.int32],
) -> int:
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
