"""Moves: the rows of a batch by key and in time order, each linked with the previous row of its key."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vedette.native.kernels import kernel
from vedette.operators.border.events import EXPIRED, FIRST, MOVED, TIME
from vedette.operators.border.key_state import KeyState
from vedette.operators.border.row_moments import RowMoments
from vedette.operators.border.silences import Windows


@dataclass(frozen=True)
class Moves:
    """Move `i` takes a key from row `before[i]` to row `after[i]`, where -1 is no row.

    Rows are numbered over the last rows of `known`, then the rows `kept` of the batch.
    """

    before: NDArray[np.int64]
    after: NDArray[np.int64]
    slots: NDArray[np.int32]  # the key of each move; moves of a key are consecutive
    times: NDArray[Any]  # the time of each move
    known: NDArray[np.int32]  # slots of the keys that had a last row
    kept: NDArray[np.int64]  # rows of the batch by key and time, without those that are late
    kept_slots: NDArray[np.int32]
    latest_times: NDArray[Any]  # by row kept: the latest time of its key so far; for a late row, that of an earlier row
    n_late: int
    passed: RowMoments | None = None  # by row: its moment, if queries use now()
    windows: Windows | None = None  # by move: which queries it concerns, if they differ in `expire_after`

    def __len__(self) -> int:
        return len(self.before)

    @classmethod
    def away(cls, slots: NDArray[np.int32], times: NDArray[Any]) -> Moves:
        """Keys that leave at these times, each after its last row."""
        n = len(slots)
        nothing = np.empty(0, np.int64), np.empty(0, np.int32)
        return cls(np.arange(n), np.full(n, -1, np.int64), slots, times, slots, *nothing, times[:0], 0)

    def part(self, start: int, stop: int) -> Moves:
        """The moves from `start` to `stop`, with the rows that they refer to.

        Keys are in the same order among the moves, the known rows and the rows kept, so these rows are consecutive.
        """
        before, after = self.before[start:stop], self.after[start:stop]
        n_known = len(self.known)
        first_known, end_known = _bounds(before, after, 0, n_known)
        first, end = _bounds(before, after, n_known, n_known + len(self.kept))

        first_kept = first - (end_known - first_known)
        known, kept = slice(first_known, end_known), slice(first - n_known, end - n_known)
        return Moves(
            _renumber(before, n_known, first_known, first_kept),
            _renumber(after, n_known, first_known, first_kept),
            self.slots[start:stop],
            self.times[start:stop],
            self.known[known],
            self.kept[kept],
            self.kept_slots[kept],
            self.latest_times[kept],
            0,
            None if self.passed is None else self.passed.slices(known, slice(first, end)),
            None if self.windows is None else self.windows.take(slice(start, stop)),
        )

    def at(self, chosen: NDArray[np.int64]) -> Moves:
        """Any of the moves, with the rows that they refer to."""
        before, after = self.before[chosen], self.after[chosen]
        rows = np.sort(np.concatenate([before, after]))  # np.unique takes several times as long
        rows = rows[(rows >= 0) & (np.diff(rows, prepend=-1) > 0)]
        before, after = (np.where(each < 0, -1, np.searchsorted(rows, each)) for each in (before, after))
        n_known = int(np.searchsorted(rows, len(self.known)))
        kept = rows[n_known:] - len(self.known)
        known, kept_slots = self.known[rows[:n_known]], self.kept_slots[kept]
        slots, times = self.slots[chosen], self.times[chosen]
        passed = None if self.passed is None else self.passed.take(rows)
        windows = None if self.windows is None else self.windows.take(chosen)
        return Moves(
            before, after, slots, times, known, self.kept[kept], kept_slots, self.latest_times[kept], 0, passed, windows
        )

    def find_versions(self, versions: NDArray[np.int32], current: int) -> NDArray[np.int32]:
        """By move: the version of its old row, given those of the known rows by slot. Rows of the batch are current."""
        return _find_versions(self.before, self.known, versions, current)

    @property
    def are_of_time(self) -> NDArray[np.bool_]:
        """By move: whether the row stays and time passes."""
        return np.zeros(len(self), np.bool_) if self.passed is None else self.passed.are_repeated(self.after)

    @property
    def reasons(self) -> NDArray[np.int8]:
        """By move: why queries are entered and left. A first row only enters, and a last row only leaves."""
        reasons = np.where(self.before < 0, FIRST, np.where(self.after < 0, EXPIRED, MOVED)).astype(np.int8)
        reasons[self.are_of_time] = TIME
        return reasons

    @property
    def have_one_reason(self) -> bool:
        """Whether every move is from one row of a key to another."""
        return not self.lacks_rows and (self.passed is None or not self.passed.is_repeated.any())

    @cached_property
    def lacks_rows(self) -> bool:
        """Whether some move has no row before or after it."""
        return bool((self.before < 0).any() or (self.after < 0).any())

    @property
    def ends(self) -> NDArray[np.int64]:
        """By move: where the moves of its key end."""
        if not len(self):
            return np.empty(0, np.int64)
        lasts = np.flatnonzero(np.append(self.slots[1:] != self.slots[:-1], True))
        return np.repeat(lasts + 1, np.diff(lasts, prepend=-1))

    def first_of(self, slots: NDArray[np.int32]) -> NDArray[np.int32]:
        """The first move of each of some keys, which all have one."""
        heads = np.flatnonzero(np.append(True, self.slots[1:] != self.slots[:-1]))[: len(self)]
        order = np.argsort(self.slots[heads], kind="stable")
        return heads[order[np.searchsorted(self.slots[heads][order], slots)]].astype(np.int32)

    @property
    def lasts(self) -> NDArray[np.int64]:
        """The places in `kept` of the last row of each key."""
        return _find_lasts(self.kept_slots)


def find_moves(
    slots: NDArray[np.int32],
    times: NDArray[Any],
    state: KeyState,
    *,
    drops_late: bool,
    expire_after: int | float | None,
    clock: Any = None,
) -> Moves:
    """Link the rows of a batch, given by the slot of their key and their time.

    Rows of a key are processed in time order, ties in the order of arrival. A key that was silent for longer than
    `expire_after` makes two moves at its next row: away when it expired, and in again. It was silent from its latest
    time until the row, or until `clock`, the time at which the batch begins, whichever is later.
    """
    order = order_rows(slots, times, len(state))
    kept, before = np.empty(len(order), np.int64), np.empty(len(order), np.int64)
    kept_slots, known = np.empty(len(order), np.int32), np.empty(len(order), np.int32)
    n_kept, n_known = _link(
        order, slots, times, state.has_row, state.times, drops_late, kept, kept_slots, known, before
    )
    kept, kept_slots, before = kept[:n_kept], kept_slots[:n_kept], before[:n_kept]
    kept_times = times[kept]
    known, after = known[:n_known], np.arange(n_known, n_known + n_kept)
    move_slots, move_times, latest_times = kept_slots, kept_times, kept_times
    if expire_after is not None or not drops_late:
        latest_times, expired = _find_latest_times(before, kept_times, state.times[known], expire_after, clock)
        if expired.any():
            twice = np.repeat(np.arange(len(kept)), 1 + expired)
            second = np.zeros(len(twice), np.bool_)
            second[1:] = twice[1:] == twice[:-1]
            first = np.append(second[1:], False)
            before, after = before[twice], after[twice]
            move_slots, move_times = kept_slots[twice], kept_times[twice]
            last_latest = np.concatenate([state.times[known], latest_times])[before]
            move_times = np.where(first, last_latest + expire_after, move_times).astype(times.dtype)
            before[second] = -1
            after[first] = -1
    return Moves(before, after, move_slots, move_times, known, kept, kept_slots, latest_times, len(order) - n_kept)


@kernel
def _find_lasts(slots: NDArray[np.int32]) -> NDArray[np.int64]:
    """The last place of each run of equal slots."""
    lasts, n = np.empty(len(slots), np.int64), 0
    for i in range(len(slots)):
        if i + 1 == len(slots) or slots[i + 1] != slots[i]:
            lasts[n] = i
            n += 1
    return lasts[:n]


@kernel
def _find_versions(
    before: NDArray[np.int64], known: NDArray[np.int32], versions: NDArray[np.int32], current: int
) -> NDArray[np.int32]:
    found = np.full(len(before), current, np.int32)
    for move in range(len(before)):
        if 0 <= before[move] < len(known):
            found[move] = versions[known[before[move]]]
    return found


@kernel
def _renumber(rows: NDArray[np.int64], n_known: int, first_known: int, first_kept: int) -> NDArray[np.int64]:
    """Rows with numbers from `first_known` on if they are known, else from `first_kept` on."""
    numbers = np.empty(len(rows), np.int64)
    for i in range(len(rows)):
        row = rows[i]
        numbers[i] = -1 if row < 0 else row - (first_known if row < n_known else first_kept)
    return numbers


@kernel
def _bounds(before: NDArray[np.int64], after: NDArray[np.int64], low: int, high: int) -> tuple[int, int]:
    """The first and the end of the rows from `low` on and below `high`."""
    first, end = high, low
    for rows in (before, after):
        for row in rows:
            if low <= row < high:
                first, end = min(first, row), max(end, row + 1)
    return (first, end) if first < end else (low, low)


def _find_latest_times(
    before: NDArray[np.int64], times: NDArray[Any], last_times: NDArray[Any], expire_after: Any, clock: Any
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """By row: the latest time of its key so far, and whether the key had expired before the row."""
    lowest, never = (np.iinfo(np.int64).min, np.iinfo(np.int64).max) if times.dtype == np.int64 else (-np.inf, np.inf)
    longest = never if expire_after is None else expire_after
    now = lowest if clock is None else clock
    latest_times, expired = times.copy(), np.zeros(len(times), np.bool_)
    kind = times.dtype.type
    _scan_latest_times(before, times, last_times, kind(longest), kind(now), latest_times, expired)
    return latest_times, expired


@kernel
def _scan_latest_times(
    before: NDArray[np.int64],
    times: NDArray[Any],
    last_times: NDArray[Any],
    expire_after: Any,
    clock: Any,
    latest_times: NDArray[Any],
    expired: NDArray[np.bool_],
) -> None:
    n_known = len(last_times)
    for i in range(len(before)):
        if before[i] >= 0:
            last = last_times[before[i]] if before[i] < n_known else latest_times[before[i] - n_known]
            if max(clock, times[i]) - last > expire_after:
                expired[i] = True
            elif last > times[i]:
                latest_times[i] = last


def order_rows(slots: NDArray[np.int32], times: NDArray[Any], n_slots: int) -> NDArray[np.int64]:
    """The rows ordered by slot and time, ties in the order of arrival."""
    are_few = len(slots) < n_slots // 8
    order = np.argsort(slots, kind="stable") if are_few else _sort_by_slot(slots, n_slots)
    return order if _is_in_time(slots, times, order) else np.lexsort((times, slots))


@kernel
def _sort_by_slot(slots: NDArray[np.int32], n_slots: int) -> NDArray[np.int64]:
    starts = np.zeros(n_slots + 1, np.int64)
    for row in range(len(slots)):
        starts[slots[row] + 1] += 1
    for slot in range(n_slots):
        starts[slot + 1] += starts[slot]
    order = np.empty(len(slots), np.int64)
    for row in range(len(slots)):
        order[starts[slots[row]]] = row
        starts[slots[row]] += 1
    return order


@kernel
def _is_in_time(slots: NDArray[np.int32], times: NDArray[Any], order: NDArray[np.int64]) -> bool:
    for i in range(1, len(order)):
        if slots[order[i]] == slots[order[i - 1]] and times[order[i]] < times[order[i - 1]]:
            return False
    return True


@kernel
def _link(
    order: NDArray[np.int64],
    slots: NDArray[np.int32],
    times: NDArray[Any],
    has_row: NDArray[np.bool_],
    last_times: NDArray[Any],
    drops_late: bool,
    kept: NDArray[np.int64],
    kept_slots: NDArray[np.int32],
    known: NDArray[np.int32],
    before: NDArray[np.int64],
) -> tuple[int, int]:
    """Write the rows that are kept, the slots that had a last row, and the previous row of each. Returns how many."""
    n = n_known = 0
    for i in range(len(order)):
        slot, time = slots[order[i]], times[order[i]]
        if drops_late and has_row[slot] and time < last_times[slot]:
            continue
        kept[n] = order[i]
        kept_slots[n] = slot
        if n > 0 and kept_slots[n - 1] == slot:
            before[n] = n - 1  # of the batch
        elif has_row[slot]:
            before[n] = -2 - n_known
            known[n_known] = slot
            n_known += 1
        else:
            before[n] = -1
        n += 1
    for i in range(n):
        if before[i] >= 0:
            before[i] += n_known
        elif before[i] < -1:
            before[i] = -2 - before[i]
    return n, n_known
