"""The version that added each query, and the one that removed it.

Positions are given out in the order of versions, so what was added with which version is a list of runs; a large set
that was loaded at once takes a byte a query, and four more once queries are removed.
"""

from __future__ import annotations

import zlib
from bisect import bisect_right
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vedette.buffers import grown

STANDING = int(np.iinfo(np.int32).max)  # the removing version of a query that stands


class Versions:
    """By position: from which version on a query stands, until which, and whether it is gone by now."""

    def __init__(self) -> None:
        self.current = 0
        self._run_starts: list[int] = []
        self._run_versions: list[int] = []
        self._n = 0
        self._n_gone = 0
        self._gone = np.zeros(0, np.bool_)  # with room to grow
        self._removed = np.zeros(0, np.int32)  # empty until something is removed
        self._marks = np.zeros(1, np.int64)  # by version, with room to grow: a checksum of all changes up to it

    def __len__(self) -> int:
        return self._n

    @property
    def n_standing(self) -> int:
        return self._n - self._n_gone

    @property
    def n_gone(self) -> int:
        return self._n_gone

    @property
    def is_gone(self) -> NDArray[np.bool_]:
        return self._gone[: self._n]

    @property
    def nbytes(self) -> int:
        return self._gone.nbytes + self._removed.nbytes + self._marks.nbytes + 16 * len(self._run_starts)

    def advance(self, change: Iterable[Any]) -> None:
        """A change makes a new version; what it consists of, as bytes, goes into its mark."""
        mark = int(self._marks[self.current])
        for piece in change:
            mark = zlib.crc32(piece, mark)
        self._marks = grown(self._marks, self.current + 1, self.current + 2)
        self.current += 1
        self._marks[self.current] = mark

    def mark(self, version: int) -> int | None:
        """A checksum of all changes up to a version, by which two sets of one history know each other."""
        return int(self._marks[version]) if 0 <= version <= self.current else None

    def count_at(self, versions: NDArray[Any]) -> NDArray[np.int64]:
        """How many of the positions had been given out at each of some versions."""
        starts = np.array([*self._run_starts, self._n], np.int64)
        return np.asarray(starts[np.searchsorted(self._run_versions, versions, side="right")])

    def removed_at(self, positions: NDArray[Any]) -> NDArray[np.int64]:
        """The version that removed each of some gone queries."""
        return np.asarray(self._removed[positions], np.int64)

    def added_at(self, positions: NDArray[Any]) -> NDArray[np.int64]:
        """The version that added each of some queries."""
        versions = np.array(self._run_versions, np.int64)
        return np.asarray(versions[np.searchsorted(self._run_starts, positions, side="right") - 1])

    def added(self, position: int) -> int:
        """The version that added the query."""
        return self._run_versions[bisect_right(self._run_starts, position) - 1]

    def removed(self, position: int) -> int:
        """The version that removed the query, or STANDING."""
        return int(self._removed[position]) if self._gone[position] else STANDING

    def add(self, n: int) -> None:
        """`n` queries stand from the current version on."""
        self._run_starts.append(self._n)
        self._run_versions.append(self.current)
        self._gone = grown(self._gone, self._n, self._n + n)
        if len(self._removed):
            self._removed = grown(self._removed, self._n, self._n + n)
        self._n += n

    def remove(self, positions: NDArray[np.int32]) -> None:
        """The queries at these positions, which stand, are gone with the current version."""
        if not len(self._removed):
            self._removed = np.zeros(len(self._gone), np.int32)
        self._gone[positions] = True
        self._removed[positions] = self.current
        self._n_gone += len(positions)

    def without_gone(self) -> Versions:
        """The versions of the queries that stand, which move up to the positions of those that are gone."""
        standing = np.flatnonzero(~self.is_gone)
        added = self.added_at(standing)
        kept = Versions()
        for start in np.flatnonzero(np.diff(added, prepend=-1)).tolist():
            kept._run_starts.append(start)
            kept._run_versions.append(int(added[start]))
        kept.current, kept._n, kept._gone = self.current, len(standing), np.zeros(len(standing), np.bool_)
        kept._marks = self._marks
        return kept

    def to_parts(self) -> list[Any]:
        """What a file keeps."""
        runs = np.array([self._run_starts, self._run_versions], np.int64)
        return [self.current, self._n, runs, self._removed[: self._n], self._marks[: self.current + 1]]

    @classmethod
    def from_parts(
        cls, current: int, n: int, runs: NDArray[np.int64], removed: NDArray[np.int32], marks: NDArray[np.int64]
    ) -> Versions:
        versions = cls()
        versions.current, versions._n, versions._removed, versions._marks = current, n, removed, marks
        versions._run_starts, versions._run_versions = runs.tolist()
        versions._gone = removed > 0 if len(removed) else np.zeros(n, np.bool_)
        versions._n_gone = int(np.count_nonzero(versions._gone))
        return versions
