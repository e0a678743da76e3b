"""Region segments on one axis: the ranges that a key enters and leaves when its value moves.

The RS list of BMQ-Index (Lee et al., section 3). A range is listed by its first cell and by its last cell. A move reads
the part of each list between its old and its new cell: upwards, it leaves the ranges that end there and enters those
that start there. If no range is narrower than the move, this part is copied; else each range is tested. Ranges are
inserted and removed in place, which moves the entries after them. 32 bytes per range if all ends of a side are of one
kind, open or closed; 48 otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from vedette.indexes.index import as_boxes, count_bytes
from vedette.native.buffers import empty_int32
from vedette.native.kernels import kernel
from vedette.native.prefetch import prefetch
from vedette.native.vectors import copy_eight
from vedette.operators.border.gaps import close_gaps, fit, move_places, open_gaps
from vedette.operators.border.runs import ENTER, EXIT, SLACK, Runs, collect_runs

AHEAD = 6  # moves ahead for which entries are prefetched
BLOCK = 64  # entries that share one number: the width of their narrowest range
WIDEST = np.iinfo(np.int32).max


class _Line(NamedTuple):
    """The fields of `RegionLine` that kernels read."""

    steps: NDArray[np.int64]
    shifts: NDArray[np.int64]
    places: NDArray[np.int32]
    ids: NDArray[np.int32]
    others: NDArray[np.int32]
    narrowest: NDArray[np.int32]
    narrowest_of_all: int
    null: int


@dataclass
class RSList:
    """Side 0 lists ranges by their first cell, side 1 by their last. Ends at the limits of the axis are not listed.

    The ranges that start after cell `a` and not after cell `b` are the entries
    `places[0, (a + shifts[0]) >> steps[0]]` to `places[0, (b + shifts[0]) >> steps[0]]`; those that end from `a` on and
    before `b` are found in the same way on side 1. A step is two cells if all ends of the side are cells of one kind,
    odd or even. The region segments of section 3.1 lie between the steps with entries: a first entry in a step splits
    a segment, and removing the last entry of a step merges two.
    """

    steps: NDArray[np.int64]
    shifts: NDArray[np.int64]
    places: NDArray[np.int32]  # (2, steps)
    ids: NDArray[np.int32]  # of the entries of side 0, then of side 1, and some slack
    others: NDArray[np.int32]  # the cell of the other end
    narrowest: NDArray[np.int32]  # by block of entries: the fewest cells between the ends of a range
    null: int  # the last cell; moves from and to it are not followed

    @classmethod
    def build(
        cls, firsts: NDArray[np.int32], lasts: NDArray[np.int32], ids: NDArray[np.int32], n_cells: Sequence[int]
    ) -> Self:
        """List the boxes of one axis."""
        null = int(n_cells[0]) - 1
        places = np.zeros((2, (null >> 1) + 3), np.int32)
        steps, shifts = np.ones(2, np.int64), np.array([1, 0], np.int64)
        room = np.zeros(SLACK, np.int32), np.empty(0, np.int32), np.empty(0, np.int32)
        made = cls(steps, shifts, places, *room, null)
        made.insert(firsts, lasts, ids)
        return made

    @property
    def nbytes(self) -> int:
        return count_bytes(self)

    @property
    def n_entries(self) -> int:
        """The number of listed ends, on both sides."""
        return int(self.places[1, -1])

    def insert(self, firsts: NDArray[np.int32], lasts: NDArray[np.int32], ids: NDArray[np.int32]) -> None:
        """Register ranges of the same axis (section 3.2).

        Their ends are sorted and inserted; entries after the first of them move up. The first end of another kind than
        those of its side doubles its table of places.
        """
        firsts, lasts, ids = as_boxes(firsts, lasts, ids, [self.null + 1])
        ends = firsts[0], lasts[0]
        listed = np.flatnonzero(ends[0] > 0), np.flatnonzero(ends[1] < self.null - 1)
        if len(listed[0]) + len(listed[1]) == 0:
            return
        orders = [some[np.argsort(own[some], kind="stable")] for some, own in zip(listed, ends, strict=True)]
        cells = [own[order].astype(np.int64) for own, order in zip(ends, orders, strict=True)]
        self._set_steps([self._kinds(side) | _find_kinds(cells[side]) for side in range(2)])
        keys = [cells[side] >> self.steps[side] for side in range(2)]
        at = np.concatenate([self.places[side, keys[side] + 1] for side in range(2)]).astype(np.int64)
        n, n_after = self.n_entries, self.n_entries + len(at)
        self.ids = fit(self.ids, 0, n, n_after + SLACK)
        self.others = fit(self.others, 0, n, n_after)
        open_gaps(self.ids, n, at, ids[np.concatenate(orders)])
        open_gaps(self.others, n, at, np.concatenate([ends[1][orders[0]], ends[0][orders[1]]]))
        self._move_places(keys, 1)
        self._measure(int(at[0]))

    def remove(self, ids: NDArray[np.int32]) -> None:
        """Deregister all ranges of these ids (section 3.2).

        One pass over all ids finds them; entries after the first of them move down.
        """
        n = self.n_entries
        at = np.flatnonzero(np.isin(self.ids[:n], ids))
        if not len(at):
            return
        by_side = np.split(at, [np.searchsorted(at, self.places[1, 0])])
        keys = [np.searchsorted(self.places[side], by_side[side], "right") - 1 for side in range(2)]
        close_gaps(self.ids, n, at)
        close_gaps(self.others, n, at)
        self._move_places(keys, -1)
        n -= len(at)
        self.ids = fit(self.ids, 0, n, n + SLACK)
        self.others = fit(self.others, 0, n, n)
        self._set_steps([self._kinds(side) for side in range(2)])
        self._measure(int(at[0]))

    def _move_places(self, keys: Sequence[NDArray[np.int64]], sign: int) -> None:
        move_places(self.places[0], keys[0], sign, 0)
        move_places(self.places[1], keys[1], sign, len(keys[0]))

    def _kinds(self, side: int) -> set[int]:
        """The kinds of cells of the side's ends: 0 for even, 1 for odd."""
        places = self.places[side]
        if places[0] == places[-1]:
            return set()
        if self.steps[side]:
            return {int(2 - side - self.shifts[side])}
        return {kind for kind in range(2) if (places[kind:-1:2] < places[kind + 1 :: 2]).any()}

    def _set_steps(self, kinds: Sequence[set[int]]) -> None:
        """Set the step to one cell on sides with cells of both kinds, and to two on others. Entries do not move."""
        steps = np.array([len(each) < 2 for each in kinds], np.int64)
        shifts = [1 - side if len(each) == 2 else 2 - side - max(each, default=1) for side, each in enumerate(kinds)]
        if (steps != self.steps).any():
            numbers = np.arange((self.null >> int(steps.min())) + 3)
            rows = []
            for side in range(2):
                # The first entry that is not below a step is found in the old table.
                at = numbers
                if steps[side] > self.steps[side]:
                    at = 2 * numbers
                elif steps[side] < self.steps[side]:
                    at = (numbers + self.shifts[side] + side - 1) >> 1
                rows.append(self.places[side, np.minimum(at, self.places.shape[1] - 1)])
            self.steps, self.places = steps, np.stack(rows)
        self.shifts = np.array(shifts, np.int64)

    def _measure(self, first: int) -> None:
        """Compute the narrowest range of each block, from the block of the given entry on."""
        first_block = first // BLOCK
        first = first_block * BLOCK
        owns = []
        for side, places in enumerate(self.places):
            key = max(0, int(np.searchsorted(places, first, "right")) - 1)
            keys = np.repeat(np.arange(key, len(places) - 1, dtype=np.int32), np.diff(places[key:]))
            keys = keys[max(0, first - int(places[key])) :]
            owns.append(2 * keys + np.int32(2 - side - self.shifts[side]) if self.steps[side] else keys)
        widths = np.abs(self.others[first : self.n_entries] - np.concatenate(owns))
        narrowest = np.full(-(-len(self.others) // BLOCK), WIDEST, np.int32)
        narrowest[:first_block] = self.narrowest[:first_block]
        if len(widths):
            found = np.minimum.reduceat(widths, np.arange(0, len(widths), BLOCK))
            narrowest[first_block : first_block + len(found)] = found
        self.narrowest = narrowest
        vars(self).pop("_line", None)

    def count_read(
        self, cells: NDArray[np.int32], before: NDArray[np.int64], after: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """The maximum number of entries that each move would read, with a few lookups. -1: it cannot be followed."""
        n_read = np.empty(len(before), np.int64)
        _count_read(cells[0], before, after, self.steps, self.shifts, self.places, self.null, n_read)
        return n_read

    def changes(
        self,
        cells: NDArray[np.int32],
        before: NDArray[np.int64],
        after: NDArray[np.int64],
        max_read: float = np.inf,
        n_expected: int = 0,
    ) -> tuple[Runs, NDArray[np.int32]]:
        """The changes of the moves, by the ids of ranges, and the numbers of skipped moves.

        Move `i` goes from row `before[i]` to row `after[i]`, where row `r` lies at `cells[0, r]`. Moves that lack a
        row, start or end at null, or would read more than `max_read` entries are skipped. `n_expected` is the total
        number of entries that the moves may read.
        """
        line = self._line

        def walk(
            move: int, out: NDArray[np.int32], counts: NDArray[np.int32], rest: NDArray[np.int32], n_rest: int
        ) -> tuple[int, int, int]:
            return _walk(cells[0], before, after, move, max_read, line, out, counts, rest, n_rest)

        return collect_runs(walk, len(before), n_expected)

    def passed(
        self, cells: NDArray[np.int32], before: NDArray[np.int64], after: NDArray[np.int64]
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The number of the move and the id, for each range between the two cells of a move."""
        n_read = int(self.count_read(cells, before, after).clip(0).sum())
        moves, ids = empty_int32(n_read), empty_int32(n_read)
        n = _find_passed(cells[0], before, after, self._line, moves, ids)
        return moves[:n], ids[:n]

    @cached_property
    def _line(self) -> _Line:
        least = int(self.narrowest.min(initial=WIDEST))
        return _Line(self.steps, self.shifts, self.places, self.ids, self.others, self.narrowest, least, self.null)


def _find_kinds(cells: NDArray[np.int64]) -> set[int]:
    """The kinds of cells: 0 for even, 1 for odd."""
    return {kind for kind in range(2) if (cells & 1 == kind).any()}


@kernel
def _count_read(
    cells: NDArray[np.int32],
    before: NDArray[np.int64],
    after: NDArray[np.int64],
    steps: NDArray[np.int64],
    shifts: NDArray[np.int64],
    places: NDArray[np.int32],
    null: int,
    n_read: NDArray[np.int64],
) -> None:
    for move in range(len(before)):
        n_read[move] = -1
        if before[move] < 0 or after[move] < 0:
            continue
        low = min(cells[before[move]], cells[after[move]])
        high = max(cells[before[move]], cells[after[move]])
        if high == null and low < null:
            continue
        n_read[move] = 0
        for side in range(2):
            n_read[move] += places[side, (high + shifts[side]) >> steps[side]]
            n_read[move] -= places[side, (low + shifts[side]) >> steps[side]]


@kernel
def _walk(
    cells: NDArray[np.int32],
    before: NDArray[np.int64],
    after: NDArray[np.int64],
    first_move: int,
    max_read: float,
    line: _Line,
    out: NDArray[np.int32],
    counts: NDArray[np.int32],
    rest: NDArray[np.int32],
    n_rest: int,
) -> tuple[int, int, int]:
    """Follow moves while there is room. Returns the next move, and the numbers of changes and of skipped moves."""
    steps, shifts, places, ids, null = line.steps, line.shifts, line.places, line.ids, line.null
    n = np.int64(0)
    n_moves = len(before)
    for move in range(first_move, n_moves):
        if move + AHEAD < n_moves and before[move + AHEAD] >= 0:
            cell = cells[before[move + AHEAD]]
            prefetch(ids, places[0, (cell + shifts[0]) >> steps[0]])
            prefetch(ids, places[1, (cell + shifts[1]) >> steps[1]])
        if before[move] < 0 or after[move] < 0:
            rest[n_rest] = move
            n_rest += 1
            continue
        old, new = cells[before[move]], cells[after[move]]
        low, high = min(old, new), max(old, new)
        start_0 = np.int64(places[0, (low + shifts[0]) >> steps[0]])
        start_1 = np.int64(places[1, (low + shifts[1]) >> steps[1]])
        end_0 = np.int64(places[0, (high + shifts[0]) >> steps[0]])
        end_1 = np.int64(places[1, (high + shifts[1]) >> steps[1]])
        n_read = end_0 - start_0 + end_1 - start_1
        if n_read > max_read or (high == null and low < null):
            rest[n_rest] = move
            n_rest += 1
            continue
        if n + n_read + 3 * SLACK > len(out):
            return move, n, n_rest  # type: ignore[return-value]
        is_up = old < new
        # Upwards, ranges that end on the way are left, and those that start are entered; downwards vice versa.
        start, end = (start_1, end_1) if is_up else (start_0, end_0)
        kept = _copy(start, end, is_up, low, high, line, out, n)
        counts[EXIT, move] = kept - n
        n = kept
        start, end = (start_0, end_0) if is_up else (start_1, end_1)
        kept = _copy(start, end, not is_up, low, high, line, out, n)
        counts[ENTER, move] = kept - n
        n = kept
    return n_moves, n, n_rest  # type: ignore[return-value]


@kernel
def _copy(
    start: np.int64,
    end: np.int64,
    by_last: bool,
    low: np.int32,
    high: np.int32,
    line: _Line,
    out: NDArray[np.int32],
    n: np.int64,
) -> np.int64:
    """Copy the ranges that have one end between the two cells and the other outside. Returns where the copy ends.

    Excess entries are overwritten later. If no range is narrower than the move, none has both ends in it.
    """
    ids, others, narrowest = line.ids, line.others, line.narrowest
    width = high - low
    n_narrow = int(width > line.narrowest_of_all)
    if n_narrow and start < end:
        n_narrow = 0
        for block in range(start // BLOCK, (end - 1) // BLOCK + 1):
            n_narrow += width > narrowest[block]
    if n_narrow == 0:
        copy_eight(out, n, ids, start)
        for i in range(8, end - start, 8):
            copy_eight(out, n + i, ids, start + i)
        return n + end - start
    for place in range(start, end):
        out[n] = ids[place]
        n += others[place] <= low if by_last else others[place] >= high
    return n


@kernel
def _find_passed(
    cells: NDArray[np.int32],
    before: NDArray[np.int64],
    after: NDArray[np.int64],
    line: _Line,
    out_moves: NDArray[np.int32],
    out_ids: NDArray[np.int32],
) -> int:
    steps, shifts, places, ids, others, null = line.steps, line.shifts, line.places, line.ids, line.others, line.null
    n = np.int64(0)
    for move in range(len(before)):
        low = min(cells[before[move]], cells[after[move]])
        high = max(cells[before[move]], cells[after[move]])
        if high < null:
            for place in range(places[0, (low + shifts[0]) >> steps[0]], places[0, (high + shifts[0]) >> steps[0]]):
                out_moves[n] = move
                out_ids[n] = ids[place]
                n += others[place] < high
    return n  # type: ignore[return-value]
