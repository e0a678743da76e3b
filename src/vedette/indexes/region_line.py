"""Region segments on one axis: the ranges that a key enters and leaves when its value moves.

The RS list of BMQ-Index (Lee et al., section 3). A range is listed by the cell where it starts and by the cell where it
ends, and a move reads the stretch of each list between its old and its new cell: upwards it leaves what ends there and
enters what starts there. Stretches are copied as they are where no range is narrower than the move, else each range
is tested. 32 bytes a range, as long as its ends are of one kind, open or closed; 48 else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from vedette.buffers import empty_int32
from vedette.indexes.index import as_boxes, count_bytes
from vedette.kernels import kernel
from vedette.prefetch import prefetch
from vedette.runs import ENTER, EXIT, SLACK, Runs
from vedette.vectors import copy_eight

AHEAD = 6  # moves ahead for which entries are fetched
BLOCK = 64  # entries for which one number tells how narrow their ranges are


@dataclass(frozen=True)
class RegionLine:
    """Side 0 lists ranges by their first cell, side 1 by their last; ends at the rims of the axis are not listed.

    What starts after cell `a` and not after cell `b` are the entries `places[0, (a + shifts[0]) >> steps[0]]` to
    `places[0, (b + shifts[0]) >> steps[0]]`; what ends from `a` on and before `b` likewise, on side 1. A step is two
    cells where all ends of the side are cells of one kind, odd or even.
    """

    steps: NDArray[np.int64]
    shifts: NDArray[np.int64]
    places: NDArray[np.int32]  # (2, steps)
    ids: NDArray[np.int32]  # of the entries of side 0, then of side 1, and some slack
    others: NDArray[np.int32]  # the cell of the other end
    narrowest: NDArray[np.int32]  # by block of entries: the fewest cells between an end and the other
    null: int  # the last cell, from and to which no move is followed

    @classmethod
    def build(
        cls, firsts: NDArray[np.int32], lasts: NDArray[np.int32], ids: NDArray[np.int32], n_cells: Sequence[int]
    ) -> Self:
        """List the boxes of one axis."""
        firsts, lasts, ids = as_boxes(firsts, lasts, ids)
        null = n_cells[0] - 1
        listed = np.flatnonzero(firsts[0] > 0), np.flatnonzero(lasts[0] < null - 1)
        steps, shifts = np.zeros(2, np.int64), np.zeros(2, np.int64)
        n_all = len(listed[0]) + len(listed[1])
        all_ids, others = np.zeros(n_all + SLACK, np.int32), np.zeros(n_all, np.int32)
        places = []
        at = 0
        for side, (own, other) in enumerate(((firsts[0], lasts[0]), (lasts[0], firsts[0]))):
            cells = own[listed[side]]
            kinds = np.unique(cells & 1)
            steps[side] = 1 if len(kinds) == 1 else 0
            # Side 0 looks for the first entry above a cell, side 1 for the first that is not below it.
            shifts[side] = (2 - side - int(kinds[0])) if len(kinds) == 1 else 1 - side
            keys = cells >> steps[side]
            order = np.argsort(keys, kind="stable")
            places.append(at + np.searchsorted(keys[order], np.arange((null >> steps[side]) + 3)).astype(np.int32))
            chosen = listed[side][order]
            all_ids[at : at + len(chosen)] = ids[chosen]
            others[at : at + len(chosen)] = other[chosen]
            at += len(chosen)
        owns = np.concatenate([np.sort(firsts[0][listed[0]]), np.sort(lasts[0][listed[1]])])
        blocks = np.arange(0, n_all, BLOCK)
        widths = np.abs(others - owns)
        narrowest = np.minimum.reduceat(widths, blocks).astype(np.int32) if n_all else np.empty(0, np.int32)
        longest = max(map(len, places))
        table = np.stack([np.pad(each, (0, longest - len(each)), mode="edge") for each in places])
        return cls(steps, shifts, np.ascontiguousarray(table), all_ids, others, narrowest, null)

    @property
    def nbytes(self) -> int:
        return count_bytes(self)

    def count_read(
        self, cells: NDArray[np.int32], before: NDArray[np.int64], after: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """How many entries each move would read, at most; to tell that is a few look-ups. -1: it cannot be followed."""
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
        """What the moves change, by the ids of ranges, and the numbers of moves that are left out.

        Move `i` goes from row `before[i]` to row `after[i]`, where row `r` lies at `cells[0, r]`. Moves that lack a
        row, or start or end at null, or would read more than `max_read` entries, are left out. `n_expected` is how many
        entries all may read together.
        """
        tables = (self.steps, self.shifts, self.places, self.ids, self.others, self.narrowest, self.null)
        counts, rest = np.zeros((2, len(before)), np.int32), empty_int32(len(before))
        n_room = 1024 + n_expected
        narrowest = int(self.narrowest.min(initial=np.iinfo(np.int32).max))
        pieces: list[NDArray[np.int32]] = []
        move = n_rest = 0
        while move < len(before):
            out = empty_int32(n_room)
            found = _walk(cells[0], before, after, move, max_read, narrowest, *tables, out, counts, rest, n_rest)
            move, n, n_rest = found
            pieces.append(out[:n])
            n_room *= 2
        ids = pieces[0] if len(pieces) == 1 else np.concatenate([empty_int32(0), *pieces])
        return Runs(ids, counts), rest[:n_rest]

    def passed(
        self, cells: NDArray[np.int32], before: NDArray[np.int64], after: NDArray[np.int64]
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The number of the move and the id, for ranges that lie between the two cells of a move."""
        n_read = int(self.count_read(cells, before, after).clip(0).sum())
        moves, ids = empty_int32(n_read), empty_int32(n_read)
        lists = self.places, self.ids, self.others
        n = _find_passed(cells[0], before, after, self.steps, self.shifts, *lists, self.null, moves, ids)
        return moves[:n], ids[:n]


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
    narrowest_of_all: int,
    steps: NDArray[np.int64],
    shifts: NDArray[np.int64],
    places: NDArray[np.int32],
    ids: NDArray[np.int32],
    others: NDArray[np.int32],
    narrowest: NDArray[np.int32],
    null: int,
    out: NDArray[np.int32],
    counts: NDArray[np.int32],
    rest: NDArray[np.int32],
    n_rest: int,
) -> tuple[int, int, int]:
    """Follow moves while there is room; the next move, and how many changes and moves left out there are."""
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
        width = high - low
        # Upwards, what ends on the way is left and what starts is entered; downwards it is the other way round.
        start, end = (start_1, end_1) if is_up else (start_0, end_0)
        kept = _copy(start, end, is_up, low, high, width, narrowest_of_all, narrowest, ids, others, out, n)
        counts[EXIT, move] = kept - n
        n = kept
        start, end = (start_0, end_0) if is_up else (start_1, end_1)
        kept = _copy(start, end, not is_up, low, high, width, narrowest_of_all, narrowest, ids, others, out, n)
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
    width: np.int32,
    narrowest_of_all: int,
    narrowest: NDArray[np.int32],
    ids: NDArray[np.int32],
    others: NDArray[np.int32],
    out: NDArray[np.int32],
    n: np.int64,
) -> np.int64:
    """Copy the ranges that have one end between the two cells and the other beyond; where the copy ends.

    What is copied too much is overwritten. Where no range is narrower than the move, none has both ends in it.
    """
    n_narrow = int(width > narrowest_of_all)
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
    steps: NDArray[np.int64],
    shifts: NDArray[np.int64],
    places: NDArray[np.int32],
    ids: NDArray[np.int32],
    others: NDArray[np.int32],
    null: int,
    out_moves: NDArray[np.int32],
    out_ids: NDArray[np.int32],
) -> int:
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
