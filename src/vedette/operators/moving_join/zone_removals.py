"""The removed zones of a set in the order of versions, for joins that follow its changes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vedette.native.buffers import grown
from vedette.queries.versions import Versions


class ZoneRemovals:
    """Positions of removed zones, and the version that removed each, oldest first."""

    def __init__(self, first: int = 0) -> None:
        self.first = first  # removals after this version are known
        self._n = 0
        self._positions = np.empty(0, np.int32)
        self._versions = np.empty(0, np.int64)

    @classmethod
    def from_versions(cls, versions: Versions, first: int) -> ZoneRemovals:
        """The removals of a set that was loaded."""
        removals = cls(first)
        positions = np.flatnonzero(versions.is_removed).astype(np.int32)
        removed_at = versions.removed_at(positions)
        order = np.argsort(removed_at, kind="stable")
        removals.add(positions[order], removed_at[order])
        return removals

    @property
    def nbytes(self) -> int:
        return self._positions.nbytes + self._versions.nbytes

    def add(self, positions: NDArray[np.int32], versions: NDArray[np.int64] | int) -> None:
        """Note removals of the latest versions, one for all positions or one each in ascending order."""
        n = self._n + len(positions)
        self._positions = grown(self._positions, self._n, n)
        self._versions = grown(self._versions, self._n, n)
        self._positions[self._n : n] = positions
        self._versions[self._n : n] = versions
        self._n = n

    def since(self, version: int) -> NDArray[np.int32]:
        """The positions of zones that were removed after a version."""
        start = int(np.searchsorted(self._versions[: self._n], version, side="right"))
        return self._positions[start : self._n]
