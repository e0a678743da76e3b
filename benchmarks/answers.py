"""Answers in one form, so that contestants can be compared before any clock starts.

A digest is the number of pairs and two sums over a hash of every pair. Equal sets of pairs have equal digests in any
order; a missing, repeated or wrong pair changes the digest, except with a probability of 2^-64.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numba
import numpy as np
from numpy.typing import NDArray

from benchmarks.workloads import Moves, Workload


@dataclass(frozen=True)
class Digest:
    n_pairs: int
    total: int
    mixed: int


@dataclass(frozen=True)
class Answer:
    """Pairs of row and query, or lists of queries by row: `starts` is given and `rows` is not."""

    queries: NDArray[np.integer]
    rows: NDArray[np.integer] | None = None
    starts: NDArray[np.integer] | None = None
    row_order: NDArray[np.integer] | None = None  # the row of each list, if the lists are not in row order

    def digest(self, n_rows: int) -> Digest:
        """The digest of the pairs of the first `n_rows` rows."""
        queries = np.ascontiguousarray(self.queries).astype(np.int32, copy=False)
        if self.rows is not None:
            sums = _digest_pairs(np.ascontiguousarray(self.rows).astype(np.int64, copy=False), queries, n_rows)
        else:
            assert self.starts is not None
            starts = np.asarray(self.starts).astype(np.int64, copy=False)
            order = np.arange(len(starts) - 1) if self.row_order is None else self.row_order.astype(np.int64)
            sums = _digest_lists(starts, queries, order, n_rows)
        return Digest(*(int(number) for number in sums))

    def of_rows(self, chosen: NDArray[np.integer]) -> dict[int, list[int]]:
        """The sorted queries of the chosen rows."""
        if self.rows is None:
            assert self.starts is not None
            lists = np.arange(len(self.starts) - 1) if self.row_order is None else np.asarray(self.row_order)
            wanted = set(chosen.tolist())
            return {
                int(row): sorted(self.queries[self.starts[i] : self.starts[i + 1]].tolist())
                for i, row in enumerate(lists.tolist())
                if row in wanted
            }
        found: dict[int, list[int]] = {int(row): [] for row in chosen}
        for place in np.flatnonzero(np.isin(self.rows, chosen)):
            found[int(self.rows[place])].append(int(self.queries[place]))
        return {row: sorted(queries) for row, queries in found.items()}


@dataclass(frozen=True)
class AnswerInParts:
    """An answer that does not fit in memory; each use computes it again, part by part."""

    parts: Callable[[], Iterable[Answer]]

    def digest(self, n_rows: int) -> Digest:
        digests = [part.digest(n_rows) for part in self.parts()]
        total, mixed = (sum(getattr(each, name) for each in digests) % 2**64 for name in ("total", "mixed"))
        return Digest(sum(each.n_pairs for each in digests), total, mixed)

    def of_rows(self, chosen: NDArray[np.integer]) -> dict[int, list[int]]:
        found: dict[int, list[int]] = defaultdict(list)
        for part in self.parts():
            for row, queries in part.of_rows(chosen).items():
                found[row] += queries
        return {row: sorted(queries) for row, queries in found.items()}


def event_numbers(queries: NDArray[np.integer], is_exit: NDArray[np.bool_]) -> NDArray[np.int32]:
    """Query and kind of event as one number, so that events can be compared like pairs."""
    return 2 * queries.astype(np.int32, copy=False) + is_exit


def brute_force(workload: Workload, chosen: NDArray[np.integer]) -> dict[int, list[int]]:
    """The queries, or numbers of events, of the chosen rows by comparing each with every box."""
    found = {}
    for row in chosen.tolist():
        inside = _inside(workload, workload.rows[:, row])
        if isinstance(workload, Moves):
            was_inside = _inside(workload, workload.before[:, row])
            changed = np.flatnonzero(inside != was_inside)
            found[row] = event_numbers(changed, was_inside[changed]).tolist()
        else:
            found[row] = np.flatnonzero(inside).tolist()
    return found


def _inside(workload: Workload, values: NDArray[np.float64]) -> NDArray[np.bool_]:
    return ((workload.lows <= values[:, None]) & (values[:, None] <= workload.highs)).all(axis=0)


@numba.njit(cache=True)
def _hash(row, query):  # type: ignore[no-untyped-def]
    """The finishing steps of splitmix64 over the pair."""
    word = (np.uint64(row) << np.uint64(32)) + np.uint64(query) + np.uint64(0x9E3779B97F4A7C15)
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


@numba.njit(cache=True)
def _digest_pairs(rows, queries, n_rows):  # type: ignore[no-untyped-def]
    n_pairs, total, mixed = 0, np.uint64(0), np.uint64(0)
    for i in range(len(rows)):
        if rows[i] < n_rows:
            word = _hash(rows[i], queries[i])
            n_pairs += 1
            total += word
            mixed += word * word
    return n_pairs, total, mixed


@numba.njit(cache=True)
def _digest_lists(starts, queries, row_order, n_rows):  # type: ignore[no-untyped-def]
    n_pairs, total, mixed = 0, np.uint64(0), np.uint64(0)
    for i in range(len(row_order)):
        if row_order[i] < n_rows:
            for j in range(starts[i], starts[i + 1]):
                word = _hash(row_order[i], queries[j])
                n_pairs += 1
                total += word
                mixed += word * word
    return n_pairs, total, mixed
