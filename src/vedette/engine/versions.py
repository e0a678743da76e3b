"""The version that added each query, and the one that removed it.

Positions are given out in the order of versions, so what was added with which version is a list of runs; a large set
that was loaded at once takes a byte a query, and four more once queries are removed.
"""

from __future__ import annotations

from bisect import bisect_right
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
        return self._gone.nbytes + self._removed.nbytes + 16 * len(self._run_starts)

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
        added = np.array(self._run_versions, np.int64)[np.searchsorted(self._run_starts, standing, side="right") - 1]
        kept = Versions()
        for start in np.flatnonzero(np.diff(added, prepend=-1)).tolist():
            kept._run_starts.append(start)
            kept._run_versions.append(int(added[start]))
        kept.current, kept._n, kept._gone = self.current, len(standing), np.zeros(len(standing), np.bool_)
        return kept

    def to_parts(self) -> list[Any]:
        """What a file keeps."""
        runs = np.array([self._run_starts, self._run_versions], np.int64)
        return [self.current, self._n, runs, self._removed[: self._n]]

    @classmethod
    def from_parts(cls, current: int, n: int, runs: NDArray[np.int64], removed: NDArray[np.int32]) -> Versions:
        versions = cls()
        versions.current, versions._n, versions._removed = current, n, removed
        versions._run_starts, versions._run_versions = runs.tolist()
        versions._gone = removed > 0 if len(removed) else np.zeros(n, np.bool_)
        versions._n_gone = int(np.count_nonzero(versions._gone))
        return versions
