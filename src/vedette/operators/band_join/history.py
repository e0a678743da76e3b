"""What bands were before they changed, for as long as a monitor or a saved state may need it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vedette.native.buffers import grown
from vedette.native.damage import check, check_shape, check_type, check_within

RETAINED = 10_000  # at least this many changed bands stay known, or as many as there are queries

Bands = tuple[NDArray[np.int32], NDArray[np.float64], NDArray[np.float64]]


class BandHistory:
    """By change: its version, the name of the band, and its ends before, NaN where it did not exist."""

    def __init__(self) -> None:
        self.first = 0  # changes after this version are known
        self._n = 0
        self._versions = np.empty(0, np.int32)
        self._names = np.empty(0, np.int32)
        self._lows = np.empty(0)
        self._highs = np.empty(0)

    def __len__(self) -> int:
        return self._n

    @property
    def names(self) -> NDArray[np.int32]:
        return self._names[: self._n]

    @property
    def nbytes(self) -> int:
        return self._versions.nbytes + self._names.nbytes + self._lows.nbytes + self._highs.nbytes

    def note(
        self, version: int, names: NDArray[np.int32], lows: NDArray[np.float64], highs: NDArray[np.float64]
    ) -> None:
        """Record that a version changed these bands, with their ends before."""
        n = self._n + len(names)
        for name, new in (("_versions", version), ("_names", names), ("_lows", lows), ("_highs", highs)):
            column = grown(getattr(self, name), self._n, n)
            column[self._n : n] = new
            setattr(self, name, column)
        self._n = n

    def since(self, version: int) -> Bands:
        """The bands that changed after a version, each once, and their ends at that version."""
        start = int(np.searchsorted(self._versions[: self._n], version, side="right"))
        names, places = np.unique(self._names[start : self._n], return_index=True)  # the first change of each name
        return names, self._lows[start : self._n][places], self._highs[start : self._n][places]

    def forget(self, n_bands: int, needed: int) -> None:
        """Drop the oldest changes when there are twice too many, but none after the version that is still needed."""
        most = max(RETAINED, n_bands)
        if self._n <= 2 * most:
            return
        last = min(int(self._versions[self._n - most - 1]), needed)
        start = int(np.searchsorted(self._versions[: self._n], last, side="right"))
        for name in ("_versions", "_names", "_lows", "_highs"):
            setattr(self, name, getattr(self, name)[start : self._n].copy())
        self._n -= start
        self.first = max(self.first, last)

    def rename(self, new_names: NDArray[np.int32]) -> None:
        self._names = new_names[self.names]

    def to_parts(self) -> list[object]:
        """What a file holds."""
        used = slice(0, self._n)
        return [self.first, self._versions[used], self._names[used], self._lows[used], self._highs[used]]

    @classmethod
    def from_parts(
        cls,
        first: int,
        versions: NDArray[np.int32],
        names: NDArray[np.int32],
        lows: NDArray[np.float64],
        highs: NDArray[np.float64],
    ) -> BandHistory:
        history = cls()
        history.first, history._n = first, len(names)
        history._versions, history._names, history._lows, history._highs = versions, names, lows, highs
        return history

    def validate(self, n_names: int, version: int) -> None:
        """Raise DamageError unless changes from a file are of `n_names` names and of versions up to `version`."""
        check_type(self.first, int, "the first version of changes")
        check(0 <= self.first <= version, "the first version of changes is out of range")
        for numbers in (self._versions, self._names):
            check_type(numbers, NDArray[np.int32], "the changes of bands")
            check_shape(numbers, (self._n,), "the changes of bands")
        for ends in (self._lows, self._highs):
            check_type(ends, NDArray[np.float64], "the changes of bands")
            check_shape(ends, (self._n,), "the changes of bands")
        check_within(self._names, 0, n_names - 1, "the names of changed bands")
        check_within(self._versions, 0, version, "the versions of changes")
        check((np.diff(self._versions) >= 0).all(), "the versions of changes fall")
        check((np.isnan(self._lows) | (self._lows <= self._highs)).all(), "a band ended before it began")
