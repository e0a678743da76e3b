"""The version that added each query, and the one that removed it.

Positions are assigned in the order of versions, so the adding versions are a list of runs. A large set that was loaded
at once takes a byte per query, and four more after the first removal. Versions count the changes of a set, unless a
registry numbers and marks them.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vedette.native.buffers import grown
from vedette.native.damage import check, check_shape, check_type, check_within

NOT_REMOVED = int(np.iinfo(np.int32).max)  # the removing version of an active query


class Versions:
    """By position: the version that added a query, the one that removed it, and whether it is removed."""

    def __init__(self) -> None:
        self.current = 0
        self.first = 0  # the oldest version whose mark is known
        self._n_runs = 0
        self._run_starts = np.zeros(0, np.int64)  # with room to grow, as all arrays below
        self._run_versions = np.zeros(0, np.int64)
        self._n = 0
        self._n_removed = 0
        self._is_removed = np.zeros(0, np.bool_)
        self._removed = np.zeros(0, np.int32)  # empty until something is removed
        self._marks = np.zeros(1, np.int64)  # by version from the first on: a checksum of all changes up to it

    def __len__(self) -> int:
        return self._n

    @property
    def n_active(self) -> int:
        return self._n - self._n_removed

    @property
    def n_removed(self) -> int:
        return self._n_removed

    @property
    def is_removed(self) -> NDArray[np.bool_]:
        return self._is_removed[: self._n]

    @property
    def nbytes(self) -> int:
        own = self._is_removed.nbytes + self._removed.nbytes + self._marks.nbytes
        return own + self._run_starts.nbytes + self._run_versions.nbytes

    @property
    def oldest_next(self) -> int:
        """The oldest version of queries that may still be added: a new set receives its queries in pieces."""
        if self.current > self.first:
            return self.current + 1
        return int(self._run_versions[self._n_runs - 1]) if self._n_runs else 0

    def begin(self, version: int, mark: int) -> None:
        """Before the first query: versions continue from this one, which has a mark of the registry."""
        self.first = self.current = version
        self._marks = np.array([mark], np.int64)

    def advance(self, change: Iterable[Any]) -> None:
        """Start a new version. The mark is computed from the content of the change, as bytes."""
        mark = int(self._marks[self.current - self.first])
        for piece in change:
            mark = zlib.crc32(piece, mark)
        self.follow([self.current + 1], [mark])

    def follow(self, versions: Sequence[int] | NDArray[np.int64], marks: Sequence[int] | NDArray[np.int64]) -> None:
        """The next versions, with their marks."""
        n = self.current - self.first + 1
        self._marks = grown(self._marks, n, n + len(versions))
        self._marks[n : n + len(versions)] = marks
        self.current += len(versions)

    def mark(self, version: int) -> int | None:
        """A checksum of all changes up to a version; two sets of one history have the same.

        None if it is unknown: for future versions and for versions before the first.
        """
        return int(self._marks[version - self.first]) if self.first <= version <= self.current else None

    def count_at(self, versions: NDArray[Any]) -> NDArray[np.int64]:
        """How many positions were assigned at each of some versions."""
        runs = np.searchsorted(self._run_versions[: self._n_runs], versions, side="right")
        return np.asarray(np.append(self._run_starts[: self._n_runs], self._n)[runs])

    def removed_at(self, positions: NDArray[Any]) -> NDArray[np.int64]:
        """The version that removed each of some removed queries."""
        return np.asarray(self._removed[positions], np.int64)

    def added_at(self, positions: NDArray[Any]) -> NDArray[np.int64]:
        """The version that added each of some queries."""
        runs = np.searchsorted(self._run_starts[: self._n_runs], positions, side="right") - 1
        return np.asarray(self._run_versions[runs])

    def added(self, position: int) -> int:
        """The version that added the query."""
        return int(self.added_at(np.array([position]))[0])

    def removed(self, position: int) -> int:
        """The version that removed the query, or NOT_REMOVED."""
        return int(self._removed[position]) if self._is_removed[position] else NOT_REMOVED

    def add(self, n: int) -> None:
        """Add `n` queries at the current version."""
        self._add_runs(np.array([0]), np.array([self.current]), n)

    def add_at(self, versions: NDArray[np.int64]) -> None:
        """Add queries at these versions, in ascending order."""
        starts = np.flatnonzero(np.diff(versions, prepend=-1))
        self._add_runs(starts, versions[starts], len(versions))

    def _add_runs(self, starts: NDArray[np.int64], versions: NDArray[np.int64], n: int) -> None:
        n_runs = self._n_runs + len(starts)
        self._run_starts = grown(self._run_starts, self._n_runs, n_runs)
        self._run_versions = grown(self._run_versions, self._n_runs, n_runs)
        self._run_starts[self._n_runs : n_runs] = starts + self._n
        self._run_versions[self._n_runs : n_runs] = versions
        self._n_runs = n_runs
        self._is_removed = grown(self._is_removed, self._n, self._n + n)
        if len(self._removed):
            self._removed = grown(self._removed, self._n, self._n + n)
        self._n += n

    def remove(self, positions: NDArray[np.int32], versions: NDArray[np.int64] | None = None) -> None:
        """Remove the active queries at these positions, at the current version or at a version for each."""
        if not len(self._removed):
            self._removed = np.zeros(len(self._is_removed), np.int32)
        self._is_removed[positions] = True
        self._removed[positions] = self.current if versions is None else versions
        self._n_removed += len(positions)

    def without_removed(self) -> Versions:
        """The versions of the active queries, which move up to the positions of the removed ones."""
        active = np.flatnonzero(~self.is_removed)
        added = self.added_at(active)
        kept = Versions()
        kept.add_at(added)
        kept.first, kept.current, kept._marks = self.first, self.current, self._marks
        return kept

    def to_parts(self) -> list[Any]:
        """The content for a file."""
        runs = np.stack([self._run_starts[: self._n_runs], self._run_versions[: self._n_runs]])
        marks = self._marks[: self.current - self.first + 1]
        return [self.current, self._n, runs, self._removed[: self._n], marks]

    @classmethod
    def from_parts(
        cls, current: int, n: int, runs: NDArray[np.int64], removed: NDArray[np.int32], marks: NDArray[np.int64]
    ) -> Versions:
        check_type(current, int, "the version")
        check(type(n) is int and len(removed) in (0, n), "the versions do not belong to the queries")
        versions = cls()
        versions.current, versions._n, versions._removed, versions._marks = current, n, removed, marks
        versions.first = current + 1 - len(marks)
        versions._run_starts, versions._run_versions = runs
        versions._n_runs = runs.shape[1]
        versions._is_removed = removed > 0 if len(removed) else np.zeros(n, np.bool_)
        versions._n_removed = int(np.count_nonzero(versions._is_removed))
        return versions

    def validate(self, n: int) -> None:
        """Raise DamageError unless versions from a file are those of `n` queries."""
        check(self._n == n, f"it has versions of {self._n} queries but {n} ids")
        check(0 <= self.first <= self.current < NOT_REMOVED, "the version is out of range")
        for array in (self._run_starts, self._run_versions, self._marks):
            check_type(array, NDArray[np.int64], "an array of versions")
            check(array.ndim == 1, "an array of versions has a wrong shape")
        check_shape(self._run_versions, (self._n_runs,), "an array of versions")
        check((self._run_starts[:1] == 0).all() and (n == 0) == (self._n_runs == 0), "versions are missing")
        check(
            (np.diff(self._run_starts) > 0).all() and (self._run_starts < n).all(),
            "positions of versions are not ascending",
        )
        check((np.diff(self._run_versions) >= 0).all(), "versions are not ascending")
        check_within(self._run_versions, 0, self.current, "the versions of queries")
        check_type(self._removed, NDArray[np.int32], "the versions that removed queries")
        check_within(self._removed, 0, self.current, "the versions that removed queries")
