"""Probes of a batch, cut into pieces for threads. The pairs are in the order of one thread."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from vedette.native.buffers import empty_int32
from vedette.native.concatenation import concat_columns
from vedette.native.kernels import kernel
from vedette.native.threads import count_pieces, count_threads, cut, run_pieces
from vedette.operators.window_join.ordered_lists import ListArrays
from vedette.operators.window_join.pair_sink import PairSink
from vedette.operators.window_join.probes import (
    Before,
    LinkRanges,
    Probes,
    Reach,
    RowKeyArrays,
    Runs,
    Taken,
    find_runs,
    name_pairs,
    take_runs,
)

PIECE_PROBES = 1 << 13  # at least, whose runs a thread finds
PIECE_CANDIDATES = 1 << 16  # at least, that a thread checks


@dataclass(frozen=True)
class Hopping:
    """Probes from the rows of one stream into the lists of another."""

    probes: Probes
    own: RowKeyArrays
    link: LinkRanges
    lists: ListArrays
    runs: Runs

    @classmethod
    def of(
        cls, probes: Probes, own: RowKeyArrays, link: LinkRanges, list_of: NDArray[np.int32], lists: ListArrays
    ) -> Hopping:
        """Find the run of each probe."""
        n = len(probes.branches)
        runs = Runs(np.empty(n, np.int64), np.empty(n, np.int32))
        n_pieces = count_pieces(n, PIECE_PROBES)
        if n_pieces == 1:
            find_runs(probes, own, link, list_of, lists, runs)
            return cls(probes, own, link, lists, runs)
        cuts = cut(n, n_pieces)

        def find(piece: int) -> None:
            part = slice(cuts[piece], cuts[piece + 1])
            some = Probes(*(each[part] for each in probes))
            find_runs(some, own, link, list_of, lists, Runs(runs.starts[part], runs.lengths[part]))

        run_pieces(find, n_pieces)
        return cls(probes, own, link, lists, runs)

    def take(
        self, before: Before, reach: Reach, span: tuple[int, int], taken: NDArray[np.int32], base: int
    ) -> list[tuple[tuple[int, int], NDArray[np.int32]]]:
        """Consecutive spans of the probes from `span[0]` to `span[1]`, and the rows that join with them, minus `base`.

        The number of rows of each probe is written to `taken`.
        """
        return self._take(before, reach, self._cut(span), taken, base)

    def _take(
        self, before: Before, reach: Reach, spans: list[tuple[int, int]], taken: NDArray[np.int32], base: int
    ) -> list[tuple[tuple[int, int], NDArray[np.int32]]]:
        def take(piece: int) -> NDArray[np.int32]:
            first, last = spans[piece]
            room = empty_int32(self._count(first, last) + 1)
            written = Taken(base, taken, room, 0)
            n = take_runs(
                self.probes, self.own.keys, before, self.runs, self.link, self.lists, reach, spans[piece], written
            )
            return room[:n]

        return list(zip(spans, run_pieces(take, len(spans)), strict=True))

    def take_all(
        self, before: Before, reach: Reach, span: tuple[int, int], taken: NDArray[np.int32]
    ) -> NDArray[np.int32]:
        """The rows that join with the probes from `span[0]` to `span[1]`."""
        [rows] = concat_columns([(rows,) for _, rows in self.take(before, reach, span, taken, 0)])
        return rows.copy() if 2 * len(rows) < self._count(*span) else rows

    def deliver(
        self,
        before: Before,
        reach: Reach,
        span: tuple[int, int],
        taken: NDArray[np.int32],
        named: Named,
        sink: PairSink,
    ) -> None:
        """Write the pairs of the probes from `span[0]` to `span[1]` to the sink."""
        spans = self._cut(span)
        if len(spans) == 1:
            n_before = sink.n
            queries, out = sink.reserve(self._count(*span) + 1)
            written = Taken(named.bases[named.to_stream], taken, out[named.to_stream], n_before)
            n = take_runs(self.probes, self.own.keys, before, self.runs, self.link, self.lists, reach, span, written)
            self._name(span, taken, named, queries, out[named.origin], n_before)
            sink.n = n
            return
        pieces = self._take(before, reach, spans, taken, named.bases[named.to_stream])
        places = (sink.n + np.cumsum([0, *(len(rows) for _, rows in pieces)])).tolist()
        queries, out = sink.reserve(places[-1] - sink.n + 1)

        def copy(piece: int) -> None:
            part, rows = pieces[piece]
            out[named.to_stream][places[piece] : places[piece + 1]] = rows
            self._name(part, taken, named, queries, out[named.origin], places[piece])

        run_pieces(copy, len(pieces))
        sink.n = places[-1]

    def _name(
        self,
        span: tuple[int, int],
        taken: NDArray[np.int32],
        named: Named,
        queries: NDArray[np.int32],
        rows: NDArray[np.int32],
        n: int,
    ) -> None:
        base, (first, last) = named.bases[named.origin], span
        name_pairs(self.probes.branches, named.queries, named.rows, base, taken, first, last, queries, rows, n)

    def _count(self, first: int, last: int) -> int:
        """The number of candidates of some probes."""
        return _count(self.runs.lengths, first, last)

    def _cut(self, span: tuple[int, int]) -> list[tuple[int, int]]:
        """Spans with about the same number of candidates."""
        if count_threads() == 1:
            return [span]
        first, last = span
        total = self._count(first, last)
        places = _cut(self.runs.lengths, first, last, total, count_pieces(total, PIECE_CANDIDATES)).tolist()
        return [(start, end) for start, end in pairwise(places) if start < end] or [span]


@kernel
def _count(lengths: NDArray[np.int32], first: int, last: int) -> int:
    """The sum of some lengths, of which those of runs in reverse are negative."""
    n = np.int64(0)
    for probe in range(first, last):
        n += abs(np.int64(lengths[probe]))
    return n  # type: ignore[return-value]


@kernel
def _cut(lengths: NDArray[np.int32], first: int, last: int, total: int, n_pieces: int) -> NDArray[np.int64]:
    """Where to cut probes into pieces with about the same number of candidates: the first of each, and the end."""
    places = np.full(n_pieces + 1, last, np.int64)
    places[0] = first
    n, piece = np.int64(0), 1
    for probe in range(first, last):
        n += abs(np.int64(lengths[probe]))
        while piece < n_pieces and n * n_pieces >= total * piece:
            places[piece] = probe + 1
            piece += 1
    return places


@dataclass(frozen=True)
class Named:
    """What pairs are reported as: the queries of branches, the own rows of probes, and rows counted from a base."""

    queries: NDArray[np.int32]
    rows: NDArray[np.int32]
    origin: int
    to_stream: int
    bases: Sequence[int]
