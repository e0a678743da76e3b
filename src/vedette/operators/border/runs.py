"""Runs: the queries that each move leaves and enters, in one array, with counts per move.

A move is stored once and not with every change, which saves memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vedette.native.budget import BOUND, check_bytes
from vedette.native.buffers import empty_int8, empty_int32, empty_int64, output_int32
from vedette.native.kernels import kernel
from vedette.native.vectors import fill_eight
from vedette.operators.border.stamps import clear_stamps

SLACK = 8  # room after the last entry, for excess writes
EXIT, ENTER, CROSS = 0, 1, 2  # kinds of changes; in this order within a move


@dataclass(frozen=True)
class Runs:
    """Move `i` leaves the next `counts[EXIT, i]` of the queries, and enters the `counts[ENTER, i]` after them."""

    queries: NDArray[np.int32]
    counts: NDArray[np.int32]  # (2, moves)

    def __len__(self) -> int:
        """The number of changes."""
        return len(self.queries)

    @classmethod
    def none(cls, n_moves: int) -> Runs:
        return cls(np.empty(0, np.int32), np.zeros((2, n_moves), np.int32))

    @classmethod
    def merge(cls, many: Sequence[Runs], n_moves: int) -> Runs:
        """All changes of several answers about the same moves."""
        some = [each for each in many if len(each)]
        if not some:
            return cls.none(n_moves)
        merged = some[0]
        for each in some[1:]:
            queries = output_int32(len(merged) + len(each))
            _merge(merged.queries, merged.counts, each.queries, each.counts, queries)
            merged = cls(queries, merged.counts + each.counts)
        return merged

    def of_only_move(self) -> tuple[list[int], list[int]]:
        """The queries that the only move leaves, and those that it enters."""
        queries, n_exits = self.queries.tolist(), int(self.counts[EXIT, 0])
        return queries[:n_exits], queries[n_exits:]

    def of_moves(self, moves: NDArray[Any], n_moves: int) -> Runs:
        """The same changes with other numbers of moves: move `i` becomes `moves[i]` of `n_moves`."""
        counts = np.zeros((2, n_moves), np.int32)
        counts[:, moves] = self.counts
        return Runs(self.queries, counts)

    def without(self, is_removed: NDArray[np.bool_], limits: NDArray[np.int64]) -> Runs:
        """Without removed queries, and without those from a move's limit on. Either array may be empty for no limit."""
        queries, counts = empty_int32(len(self)), np.zeros_like(self.counts)
        n = _filter(self.queries, self.counts, is_removed, limits, queries, counts)
        return Runs(queries[:n], counts)

    def without_returns(self, stamps: NDArray[np.int32], first_query: int) -> Runs:
        """Without the queries that a move both leaves and enters: it went from one of their boxes to another.

        `stamps` are zeros for every query, from the first one on, as they are again afterwards.
        """
        queries, counts = empty_int32(len(self)), np.zeros_like(self.counts)
        n = _drop_returns(self.queries, self.counts, stamps, first_query, queries, counts)
        clear_stamps(stamps, self.queries, first_query)
        return Runs(queries[:n], counts)

    def columns(
        self, slots: NDArray[np.int32], times: NDArray[Any]
    ) -> tuple[NDArray[np.int32], NDArray[Any], NDArray[np.int8]]:
        """The elements of two arrays by move for each change, and whether it is EXIT or ENTER."""
        n = len(self)
        out_slots, out_kinds = empty_int32(n + SLACK), empty_int8(n + SLACK)
        out_times: NDArray[Any] = empty_int64(n + SLACK).view(times.dtype)
        _write_columns(self.counts, slots, times, out_slots, out_times, out_kinds)
        return out_slots[:n], out_times[:n], out_kinds[:n]

    def spread(self, by_move: NDArray[Any]) -> NDArray[Any]:
        """The elements of an array by move for each change."""
        return np.repeat(by_move, self.counts.sum(axis=0))


# Follows moves from the given one on while there is room: (first move, out, counts, skipped moves, their number) ->
# (next move, number of queries in `out`, number of skipped moves).
Walk = Callable[[int, NDArray[np.int32], NDArray[np.int32], NDArray[np.int32], int], tuple[int, int, int]]


def collect_runs(walk: Walk, n_moves: int, n_expected: int) -> tuple[Runs, NDArray[np.int32]]:
    """The runs of all moves, and the moves that `walk` skips. `n_expected` is the expected number of queries."""
    counts, skipped = np.zeros((2, n_moves), np.int32), empty_int32(n_moves)
    n_room, n_found = 1024 + min(n_expected, BOUND.n_bytes // 4), 0
    pieces: list[NDArray[np.int32]] = []
    move = n_skipped = 0
    while move < n_moves:
        out = empty_int32(n_room)
        move, n, n_skipped = walk(move, out, counts, skipped, n_skipped)
        pieces.append(out[:n])
        n_found += n
        check_bytes(4 * n_found)
        n_room *= 2
    queries = pieces[0] if len(pieces) == 1 else np.concatenate([empty_int32(0), *pieces])
    return Runs(queries, counts), skipped[:n_skipped]


@kernel
def _merge(
    queries: NDArray[np.int32],
    counts: NDArray[np.int32],
    more_queries: NDArray[np.int32],
    more_counts: NDArray[np.int32],
    out: NDArray[np.int32],
) -> None:
    at = more_at = n = np.int64(0)
    for move in range(counts.shape[1]):
        for kind in range(2):
            for _ in range(counts[kind, move]):
                out[n] = queries[at]
                at += 1
                n += 1
            for _ in range(more_counts[kind, move]):
                out[n] = more_queries[more_at]
                more_at += 1
                n += 1


@kernel
def _filter(
    queries: NDArray[np.int32],
    counts: NDArray[np.int32],
    is_removed: NDArray[np.bool_],
    limits: NDArray[np.int64],
    out: NDArray[np.int32],
    out_counts: NDArray[np.int32],
) -> int:
    at = n = np.int64(0)
    for move in range(counts.shape[1]):
        for kind in range(2):
            start = n
            for _ in range(counts[kind, move]):
                query = queries[at]
                at += 1
                if (len(is_removed) == 0 or not is_removed[query]) and (len(limits) == 0 or query < limits[move]):
                    out[n] = query
                    n += 1
            out_counts[kind, move] = n - start
    return n  # type: ignore[return-value]


@kernel
def _drop_returns(
    queries: NDArray[np.int32],
    counts: NDArray[np.int32],
    stamps: NDArray[np.int32],
    first_query: int,
    out: NDArray[np.int32],
    out_counts: NDArray[np.int32],
) -> int:
    """A query has the move's stamp if it is left, and the negated stamp if it is also entered."""
    at = n = np.int64(0)
    for move in range(counts.shape[1]):
        stamp = np.int32(move + 1)
        middle = at + counts[EXIT, move]
        end = middle + counts[ENTER, move]
        for i in range(at, middle):
            stamps[queries[i] - first_query] = stamp
        for i in range(middle, end):
            if stamps[queries[i] - first_query] == stamp:
                stamps[queries[i] - first_query] = -stamp
        for i in range(at, end):
            if stamps[queries[i] - first_query] != -stamp:
                out[n] = queries[i]
                n += 1
                out_counts[EXIT if i < middle else ENTER, move] += 1
        at = end
    return n  # type: ignore[return-value]


@kernel
def _write_columns(
    counts: NDArray[np.int32],
    slots: NDArray[np.int32],
    times: NDArray[Any],
    out_slots: NDArray[np.int32],
    out_times: NDArray[Any],
    out_kinds: NDArray[np.int8],
) -> None:
    """Write move by move, eight at once. The next move overwrites excess entries."""
    n = np.int64(0)
    for move in range(counts.shape[1]):
        n_exits, n_all = counts[EXIT, move], counts[EXIT, move] + counts[ENTER, move]
        for i in range(n, n + n_all, 8):
            fill_eight(out_slots, i, slots[move])
            fill_eight(out_times, i, times[move])
        for i in range(n, n + n_exits, 8):
            fill_eight(out_kinds, i, np.int8(EXIT))
        for i in range(n + n_exits, n + n_all, 8):
            fill_eight(out_kinds, i, np.int8(ENTER))
        n += n_all
