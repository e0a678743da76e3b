"""Matches that are counted but not written, so that several threads can write theirs into one array."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from vedette.data.matches import Matches
from vedette.native.budget import check_bytes
from vedette.native.buffers import empty_int32

# Writes the matches of consecutive rows, given by their slice and by where they start in the array.
Fill = Callable[[slice, NDArray[np.int64], NDArray[np.int32]], None]


@dataclass(eq=False)
class Counted:
    """The matches of row `i` go from `starts[i]` to `starts[i + 1]`. `fill` overwrites at most `slack` entries more."""

    starts: NDArray[np.int64]
    slack: int
    fill: Fill

    @property
    def n_failed(self) -> int:
        return 0  # comparisons of cells cannot fail

    @property
    def n_found(self) -> int:
        return int(self.starts[-1])

    def to_matches(self) -> Matches:
        check_bytes(4 * self.n_found)
        positions = empty_int32(self.n_found + self.slack)
        self.fill(slice(None), self.starts, positions)
        return Matches(self.starts, positions[: self.n_found])

    def write(self, positions: NDArray[np.int32]) -> None:
        """Write the matches into an array of exactly their number, whose memory may continue: nothing else changes."""
        # The last rows, with as many matches as `fill` may overwrite, are written elsewhere and copied.
        last = max(0, int(np.searchsorted(self.starts, self.n_found - self.slack, side="right")) - 1)
        self.fill(slice(0, last), self.starts[: last + 1], positions)
        starts = self.starts[last:] - self.starts[last]
        rest = empty_int32(int(starts[-1]) + self.slack)
        self.fill(slice(last, None), starts, rest)
        positions[self.starts[last] :] = rest[: starts[-1]]


@runtime_checkable
class CountsFirst(Protocol):
    """An index that counts matches before it writes them."""

    def count(self, cells: NDArray[np.int32]) -> Counted: ...
