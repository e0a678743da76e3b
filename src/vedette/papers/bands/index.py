"""The interface of all structures over a fixed set of values and bands, so that they can be compared.

Values and bands are named by their position. A structure is a frozen dataclass of arrays, so it can be pickled.
"""

from __future__ import annotations

from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

Pairs = tuple[NDArray[np.int32], NDArray[np.int32]]


class BandIndex(Protocol):
    @classmethod
    def build(cls, values: NDArray[np.float64], lows: NDArray[np.float64], highs: NDArray[np.float64]) -> Self:
        """Finite values, and bands [lows[q], highs[q]] whose ends may be infinite."""

    def pairs(self, shift: float) -> Pairs:
        """(Q1) The values, and the bands, of all pairs where the shifted value is in the band."""

    def affected(self, shift: float) -> NDArray[np.int32]:
        """(Q2) The bands that hold at least one shifted value, each once."""

    @property
    def n_entries(self) -> int:
        """The size as the paper counts it: values, bands and intervals that are stored."""

    @property
    def nbytes(self) -> int:
        """The memory of the structure."""
